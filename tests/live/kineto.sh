#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# Traces of an engine on the double of CUDA. The Kineto trace keeps its readers' contract and gives
# the figures of the profile. In the default trace, slices nest and all GPU work is there.
# shellcheck source=tests/live/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/live/gpu/lib.sh
. tests/live/gpu/lib.sh

# Debian's pandas needs Debian's Python.
python=python3
[ ! -x /usr/bin/python3 ] || python3 -c 'import pandas' 2>/dev/null || python=/usr/bin/python3

# facts COMMAND…: COMMAND prints its facts itself; 77: it has said why it cannot
facts()
{
	"$@"
	case $? in
	0 | 77) ;;
	*) FAILED=1 ;;
	esac
}

# check_kineto NAME TOOL-OPTION…: checks the trace of the capture
check_kineto()
{
	local name=$1

	shift
	holds "$name: the capture replays" "$FBT" --replay "$OUT.capture" --trace-format kineto \
		--trace "$TMP/$name.json" --profile "$TMP/$name.jsonl" --report none "$@"
	holds "$name: validate takes it" "$FBT" validate "$TMP/$name.json" "$TMP/$name.jsonl"
	holds "$name: it keeps the contract" python3 tests/kineto_check.py "$TMP/$name.json"
	facts "$python" tests/kineto_pandas.py "$TMP/$name.json" "$TMP/$name.jsonl"
	rm -f "$TMP/$name.jsonl"
}

check_default()
{
	holds 'default: validate takes it' "$FBT" validate "$OUT.trace"
	facts python3 tests/trace_lanes.py "$OUT.trace" "$OUT.capture"
}

# Runtime launches with the driver's call inside, driver launches, graphs, copies, waits.
OUT=$TMP/mixed
trace_gpu '--steps 60 --script h20,k50,v30,k5.1,g4,m4,d10,s,f200,k20,b5,p8,y' --detail all
check_default
check_kineto mixed

# Two threads with steps, and CUDA calls outside of steps.
OUT=$TMP/threads
trace_gpu '--steps 40 --step-threads 2 --script k20,g3,s --outside k5 --helper k7' --detail steps
check_default

# Written while tracing, with a rank given by option.
OUT=$TMP/live
rm -f "${OUT:?}".*
start_gpu --linger-ms 20000 --steps 30 --script k20,s
launch env --default-signal=INT "$FBT" --ready-fd 6 -p "$ENGINE" --step gpu_engine_step --report none --rank 3 \
	--trace-format kineto --trace "$OUT.json" --profile "$OUT.profile" >"$OUT.report" 2>"$OUT.err"
wait_attached "$TOOL" || not_ok 'the tool attaches'
await_armed || not_ok 'the shim is armed'
go
wait_for 60 is_done || not_ok 'the engine makes its steps'
sleep 0.1
stop_tool
end_gpu
holds 'live: it keeps the contract' python3 tests/kineto_check.py "$OUT.json"
has 'live: the rank is the one that was given' "$OUT.json" \
	'^,"distributedInfo": \{"rank": 3, "world_size": 4\}$'
has 'live: the double of CUPTI is named' "$OUT.json" '^,"cupti_version":130'

exit $FAILED
