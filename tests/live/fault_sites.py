#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""fault_sites.py TRUTH CAPTURE FILE PROFILE: where tests/live/page_faults.c touched its memory, and what
the kernel counted for it, against what the tool counted; one line "ok - …" or "not ok - …" for each
fact."""
import json
import platform
import re
import sys

FILE, ANON, STACK = 1, 2, 3  # enum fbt_mapping
PAGES = {"anon": 4096, "file": 4096, "stack": 512, "cold": 4096, "remapped": 4096}
# Before Linux 5.17 the kernel does not tell a program which mapping an address is in.
KNOWS_MAPPINGS = tuple(map(int, re.findall(r"\d+", platform.release())[:2])) >= (5, 17)
MAPPINGS = {"anon": ANON, "file": FILE, "stack": STACK, "cold": FILE, "remapped": FILE}
FUNCTIONS = {"anon": ["touch", "faults_step"], "file": ["touch", "faults_step"],
             "stack": ["touch", "touch_stack"], "cold": ["faults_step"],
             "remapped": ["touch", "faults_step"]}
WARM_UP = 3
# Pages of a file are mapped up to 16 at a time; a stack has pages that other functions have touched.
LEAST = {"anon": 4096, "file": 4096, "stack": 500, "cold": 4096 // 16,
         "remapped": 4096}
failed = False


def fact(name, wrong):
    global failed
    for line in wrong[:3]:
        print("# %s: %s" % (name, line))
    failed = failed or bool(wrong)
    print("%sok - %s" % ("not " if wrong else "", name))


truth = json.load(open(sys.argv[1]))
events = json.load(open(sys.argv[2]))
steps = [event for event in events if event["type"] == "step"]
files = {event["id"]: event["path"] for event in events if event["type"] == "file"}
names = {event["id"]: event["function"] for event in events if event["type"] == "code"}
counted = {event["start_ns"]: event for event in events if event["type"] == "fault_sites"}
fact("all steps are there", [] if len(steps) == len(truth) else [(len(steps), len(truth))])
rows = [(true, step, counted.get(step["start_ns"])) for true, step in zip(truth, steps)][WARM_UP:]

rows = [row for row in rows if row[1]["minor"] + row[1]["major"]]
fact("each step with page faults is counted", [row for row in rows if not row[2]])
rows = [row for row in rows if row[2]]
fact("as many as the kernel counted for the thread",
     [(true["name"], step["minor"] + step["major"], sites["faults"], sites["in_calls"])
      for true, step, sites in rows
      if sites["faults"] + sites["in_calls"] != step["minor"] + step["major"]])
fact("and as the program read from the kernel, but for faults around the step",
     [(true["name"], true["minor"] + true["major"], sites["faults"] + sites["in_calls"])
      for true, step, sites in rows
      if not 0 <= true["minor"] + true["major"] - sites["faults"] - sites["in_calls"] <= 4])
for name in PAGES:
    own = [(step, sites, sites["sites"][0]) for true, step, sites in rows if true["name"] == name
           and sites["sites"]]
    fact("%s: there were some" % name, [] if len(own) >= 10 else [len(own)])
    fact("%s: nearly all are of this memory" % name,
         [sites for _, sites, most in own if most["mapping"] != MAPPINGS[name] * KNOWS_MAPPINGS or
          most["faults"] < 0.95 * sites["faults"]])
    fact("%s: no more than it has pages, and no fewer than are mapped at a time" % name,
         [most for _, _, most in own if not LEAST[name] <= most["faults"] <= PAGES[name]])
    fact("%s: in which function, and who called it" % name,
         [[names.get(code) for code in most["codes"]] for _, _, most in own
          if [names.get(code) for code in most["codes"]][:len(FUNCTIONS[name])] != FUNCTIONS[name]])
    if MAPPINGS[name] == FILE and KNOWS_MAPPINGS:
        wanted = sys.argv[3] + (".cold" if name == "cold" else "")
        fact("%s: of which file" % name,
             [files.get(most["file"]) for _, _, most in own if files.get(most["file"]) != wanted])
fact("cold: the major ones are told apart",
     [(true["major"], [site["majors"] for site in sites["sites"]]) for true, _, sites in rows
      if true["name"] == "cold" and sum(site["majors"] for site in sites["sites"]) != true["major"]])
fact("in_call: those in calls are no faults of functions",
     [sites for true, _, sites in rows if true["name"] == "in_call" and sites["faults"] > 4])
lines = [json.loads(line) for line in open(sys.argv[4])]
due = [line["shape"] for line in lines if line["event"] == "escalation_prof" and
       line["shape"]["cause"] == "page_faults" and line["shape"]["step"] > WARM_UP]
told = [shape for shape in due if "; counted: " in shape["cause_evidence"] and
        shape.get("faulted_in", "").startswith(("touch", "faults_step"))]
print("# %d steps of %d are told so" % (len(told), len(due)))
fact("each step that is slow for them tells it", [shape for shape in due if shape not in told])
fact("and there are some", [] if due or not KNOWS_MAPPINGS else ["none"])
sys.exit(failed)
