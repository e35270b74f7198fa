# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""What live_inject_drive says of its rounds: figures, and every round that was not well.

usage: rounds.py NAME FILE ROUNDS
"""
import collections
import json
import sys


def share(values, percent):
    return sorted(values)[(len(values) * percent + 99) // 100 - 1]


def main():
    name, path, count = sys.argv[1:]
    with open(path, encoding="utf-8", errors="replace") as file:
        rounds = [json.loads(line) for line in file]
    bad = [round for round in rounds if not round["ok"] or round["result"] != 7]
    good = [round for round in rounds if round not in bad]
    for round in bad[:5]:
        print(f"# {name}: {json.dumps(round)}")
    if good:
        calls = collections.Counter(round["nr"] for round in good)
        tries = [round["tries"] for round in good]
        times = ", ".join(
            f"{key} p50 {share(values, 50):.0f} p99 {share(values, 99):.0f} most {max(values):.0f} us"
            for key, values in (
                ("stopped", [round["stop_us"] for round in good]),
                ("in all", [round["total_us"] for round in good]),
            )
        )
        where = ", ".join(f"{nr} {count}" for nr, count in calls.most_common())
        print(f"# {name}: {times}; stops {sum(tries)}, most {max(tries)}; calls {where}")
    whole = len(good) == int(count)
    print(f"{'ok' if whole else 'not ok'} - {name}: each round says that it is loaded")
    return not whole


sys.exit(main())
