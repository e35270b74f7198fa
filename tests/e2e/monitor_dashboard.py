#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""The dashboard without Grafana, which Debian does not have.

monitor_dashboard.py check FILE        looks at its structure
monitor_dashboard.py query FILE PORT   asks Prometheus each of its queries, with variables replaced as
                                       Grafana does, and those of the variables themselves
"""
import json
import math
import re
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

VALUES = {"$__rate_interval": "20s", "$__range": "5m", "$__interval": "5s", "$tracer": ".*",
          "$engine": ".*", "$kind": ".*"}


def expand(text):
    for name, value in VALUES.items():
        text = text.replace(name, value)
    return text


def check(board):
    problems = []
    names = [v["name"] for v in board["templating"]["list"]]
    ids = [p["id"] for p in board["panels"]]
    used = set()
    if len(set(ids)) != len(ids):
        problems.append("a panel id twice")
    for key in ("uid", "title", "schemaVersion", "time", "tags"):
        if not board.get(key):
            problems.append("no " + key)
    cells = set()
    for panel in board["panels"]:
        title, at = panel["title"], panel["gridPos"]
        if panel["type"] not in ("stat", "timeseries", "heatmap") or not panel["targets"]:
            problems.append("%s: type %s" % (title, panel["type"]))
        if at["x"] + at["w"] > 24:
            problems.append("%s: beyond 24 columns" % title)
        area = {(x, y) for x in range(at["x"], at["x"] + at["w"])
                for y in range(at["y"], at["y"] + at["h"])}
        if cells & area:
            problems.append("%s: lies on another panel" % title)
        cells |= area
        if len({t["refId"] for t in panel["targets"]}) != len(panel["targets"]):
            problems.append("%s: a refId twice" % title)
        for target in panel["targets"]:
            used |= set(re.findall(r"ferrum_bpftrace_[a-z_]+", target["expr"]))
            for name in re.findall(r"\$(\w+)", target["expr"]):
                if name not in names and "$" + name not in VALUES:
                    problems.append("%s: $%s is no variable" % (title, name))
            # A part of the metrics divided by all of them, or the other way round.
            parts = [set(re.findall(r"\$(?:tracer|engine|kind)", part))
                     for part in target["expr"].split(" / ")]
            if any(part != parts[0] for part in parts):
                problems.append("%s: above and below / are not of the same series" % title)
            if target["datasource"]["uid"] != "${datasource}":
                problems.append("%s: a fixed data source" % title)
    with open("docs/metrics.md", encoding="utf-8") as page:
        known = set(re.findall(r"`(ferrum_bpftrace_[a-z_]+)`", page.read()))
    for name in used:
        if name not in known and re.sub("_(bucket|sum|count)$", "", name) not in known:
            problems.append("%s is no metric" % name)
    return problems


def ask(port, path, **parameters):
    url = "http://127.0.0.1:%s/api/v1/%s?%s" % (port, path, urllib.parse.urlencode(parameters, True))
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        return json.load(opener.open(url))["data"]
    except urllib.error.HTTPError as error:
        return "%s: %s" % (error, error.read().decode()[:300])
    except OSError as error:
        return str(error)


def has_numbers(answer):
    """At least one value that is a number: 0/0 is not."""
    return not isinstance(answer, str) and any(
        not math.isnan(float(value)) for series in answer["result"] for _, value in series["values"])


def query(board, port):
    problems, now = [], time.time()
    for variable in board["templating"]["list"]:
        if variable["type"] == "query":
            match = re.fullmatch(r"label_values\((.*), (\w+)\)", variable["query"]["query"])
            answer = ask(port, "label/%s/values" % match[2], **{"match[]": expand(match[1])})
            if isinstance(answer, str) or not answer:
                problems.append("variable %s: %s" % (variable["name"], answer))
    count = 0
    for panel in board["panels"]:
        for target in panel["targets"]:
            answer = ask(port, "query_range", query=expand(target["expr"]), start=now - 60, end=now,
                         step=1)
            count += 1
            if not has_numbers(answer):
                problems.append("%s: %s: %s" % (panel["title"], expand(target["expr"]), answer))
    print("%d queries, %d without data" % (count, len(problems)))
    return problems


def main():
    verb, path, *rest = sys.argv[1:]
    with open(path, encoding="utf-8") as file:
        board = json.load(file)
    problems = check(board) if verb == "check" else query(board, *rest)
    print("\n".join(problems))
    sys.exit(bool(problems))


main()
