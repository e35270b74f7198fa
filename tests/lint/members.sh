#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# Each member that the code writes into the profile, the report as JSON and the result of diff is
# named in the pages about them.
set -u
cd "$(dirname "$0")/../.." || exit 1

if python3 - <<'EOF'; then
import re
import sys

# What writes it: where it is described.
PROFILE = ("docs/outputs.md", "docs/gpu.md")
REPORT = ("docs/json.md",) + PROFILE
WRITERS = {
    ("user/output/jsonl.c", "user/output/jsonl_window.c", "user/output/explained.c"): PROFILE,
    ("user/report/json.c", "user/report/cost.c", "user/report/driver.c", "user/report/explained.c",
     "user/report/findings.c", "user/report/peer.c",
     "user/report/python.c", "user/report/ranks.c", "user/output/slice.c"): REPORT,
    ("user/diff/json.c",): ("docs/diff.md",),
}
# Of slice.c what profile and report use: the rest is about traces.
IN_SLICE = (r"^const struct json_member gpu_\w+\[.*?\};",
            r"^(?:static )?void (?:sender|stop|peer|escalation)_fields_(?:add|fill)\(.*?^\}",
            r"^static void add_(?:unnamed|waker|holder|others_seen)\(.*?^\}")
# In the page of diff only.
NOT_DESCRIBED = {"curve_ns"}
CALL = r'\b(?:json|put|add|write|escalation_fields)_\w+\(\s*[^(),"]+,\s*'
KEY = re.compile(CALL + r'"([a-z][a-z0-9_.]*)"')
CHOSEN = re.compile(CALL + r'[^(),"]*\?\s*"([a-z]\w*)"\s*:\s*"([a-z]\w*)"')
# The keys of json_members, and those of other tables.
MEMBER = re.compile(r'\b(?:FIGURE|QUALITY|COUNT|KIND|WORK|FLUSH|TIME)\("?([a-z]\w*)"?[,)]')


def words_of(pages):
    """All words between backticks, without those in samples."""
    words = set()
    for page in pages:
        with open(page, encoding="utf-8") as file:
            text = re.sub(r"^```.*?^```$", "", file.read(), flags=re.M | re.S)
        for code in re.findall(r"`([^`]+)`", text):
            words |= set(re.findall(r"[\w.]+", code))
    return words


def keys_of(path):
    with open(path, encoding="utf-8") as file:
        text = re.sub(r"^#define .*$", "", file.read(), flags=re.M)
    if path.endswith("/slice.c"):
        text = "\n".join(match[0] for part in IN_SLICE
                         for match in re.finditer(part, text, re.M | re.S))
    keys = set(KEY.findall(text)) | set(MEMBER.findall(text))
    return (keys | {key for pair in CHOSEN.findall(text) for key in pair}) - NOT_DESCRIBED


def is_named(key, words):
    """Keys of tables get gpu_ before them, or _ns behind."""
    return bool({key, "gpu_" + key, key + "_ns"} & words)


bad = False
for writers, pages in WRITERS.items():
    words = words_of(pages)
    for path in writers:
        keys = keys_of(path)
        if len(keys) < 4:
            print(f"members: {path}: only {len(keys)} members were found")
            bad = True
        for key in sorted(keys):
            if not is_named(key, words):
                print(f"members: {path}: {key} is not in {', '.join(pages)}")
                bad = True
sys.exit(bad)
EOF
	echo 'ok - pages name each member of profile, JSON report and diff'
else
	echo 'not ok - pages name each member of profile, JSON report and diff'
	exit 1
fi
