#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# HolisticTraceAnalysis reads a Kineto trace of an engine on the double of CUDA: all of it, with the figures
# that are in it. hta/install.sh installs it.
. "$(dirname "$0")/../live/lib.sh"
# shellcheck source=tests/live/gpu/lib.sh
. tests/live/gpu/lib.sh

read -r VERSION VENV WHY < <(tests/e2e/hta/install.sh)
if [ "$VENV" = - ]; then
	echo "SKIP HolisticTraceAnalysis $VERSION: $WHY"
	exit 77
fi

OUT=$TMP/mixed
trace_gpu '--steps 60 --script h20,k50,v30,k5.1,g4,m4,d10,s,f200,k20,b5,p8,y' --detail all
holds 'the capture replays' "$FBT" --replay "$OUT.capture" --trace-format kineto --trace "$TMP/mixed.json" \
	--report none
# As make demo-gpu.
OUT=$TMP/demo
trace_gpu '--steps 200 --script h50,k400,S5,f1100,u400,k600,k500,d20,S5'
holds 'that of the demo does' "$FBT" --replay "$OUT.capture" --trace-format kineto --trace "$TMP/demo.json" \
	--report none
"$VENV/bin/python" tests/e2e/hta/read.py "$TMP/mixed.json" "$TMP/demo.json" 2>"$TMP/hta" || FAILED=1
grep -i -A5 Traceback "$TMP/hta" | sed 's/^/# /'
finish
