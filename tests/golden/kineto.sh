#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# The contract of a Kineto trace with its readers: kineto_check.py finds each way to break it, and
# pandas computes from the trace the figures of the profile.
set -u
cd "$(dirname "$0")/.." || exit 1
trace=golden/kineto.trace.json
status=0

# kineto_break.py first checks the sound trace.
python3 kineto_break.py "$trace" || status=1

# Debian's pandas needs Debian's Python.
python=python3
[ ! -x /usr/bin/python3 ] || python3 -c 'import pandas' 2>/dev/null || python=/usr/bin/python3
"$python" kineto_pandas.py "$trace" golden/kineto.profile.jsonl
case $? in
0 | 77) ;; # it has said why it was skipped
*) status=1 ;;
esac
exit $status
