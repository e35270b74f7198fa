#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# The forms of --step, and the two other ways to see the end of a step.
. "$(dirname "$0")/lib.sh"

# traced NAME ARGUMENT…: a run with these arguments gives the engine's steps
traced()
{
	local name=$1

	shift
	rm -f "${OUT:?}".*
	start_engine --steps 37 --sleep-us 300
	run_tool -p "$ENGINE" "$@"
	wait_attached "$TOOL" || sed 's/^/# /' "$OUT.err"
	go
	wait "$ENGINE"
	wait "$TOOL"
	is "$name: a clean end" $? 0
	fact "$name: the engine's steps" 'len(S) == T["steps"] == 37 and total(S) == T["in_steps"]'
}

address=$(nm "$FBT_ENGINE" | awk '$3 == "engine_step" { print "0x" $1 }' | sed 's/0x0*/0x/')
engine=$(basename "$FBT_ENGINE")
traced 'glob' --step 'engine_s*p'
traced 'regular expression' --step '/^engine_.tep$/'
traced 'path and symbol' --step "$engine:engine_step"
traced 'path and address' --step "$engine+$address"
traced "two patterns, one function" --step engine_step --step "engine_s*p"
traced 'uretprobe' --step engine_step --uretprobe
has 'uretprobe: warns' "$OUT.err" 'uretprobe'
fact 'uretprobe: its own calls are nobody'"'"'s' 'all("probe" not in name for name in table)'

# A copy without symbols.
cp "$FBT_ENGINE" "$TMP/stripped"
strip "$TMP/stripped"
whole=$FBT_ENGINE
FBT_ENGINE=$TMP/stripped
traced 'stripped, by address' --step "stripped+$address"
traced 'stripped, symbols from another file' --step engine_step --symbols "$whole"
# Its libraries are mapped later: what belongs to the program is known by then.
"$FBT" --step engine_step --symbols "$whole" --trace none --profile none -- "$TMP/stripped" --steps 20 \
	--sleep-us 500 >"$TMP/said" 2>&1
has 'stripped, of a command: its steps are seen' "$TMP/said" '^20 steps of engine_step'
is 'stripped, of a command: the symbols are known to fit' "$(grep -c 'matches no file' "$TMP/said")" 0
cp "$whole" "$TMP/deleted"
FBT_ENGINE=$TMP/deleted
start_engine --steps 37 --sleep-us 300
rm "$TMP/deleted"
attach
go
wait "$ENGINE"
end_tool
fact 'deleted file: the engine'"'"'s steps' 'len(S) == T["steps"] == 37 and total(S) == T["in_steps"]'

# A file that only the engine's mount namespace shows, as in a container.
if unshare -m true 2>/dev/null; then
	mkdir "$TMP/hidden"
	cat >"$TMP/contained" <<-END
	#!/bin/sh
	exec unshare -m sh -c 'mount -t tmpfs tmpfs $TMP/hidden && cp $whole $TMP/hidden/contained &&
		exec $TMP/hidden/contained "\$@"' sh "\$@"
	END
	chmod +x "$TMP/contained"
	FBT_ENGINE=$TMP/contained
	traced 'other mount namespace' --step engine_step
	is 'other mount namespace: the file is not ours to see' "$(find "$TMP/hidden" -type f)" ''
else
	echo 'SKIP no mount namespace can be made in a chroot'
fi

# trace_markers ARGUMENT…: one run of the program with markers, of 43 steps
trace_markers()
{
	rm -f "${OUT:?}".* "$TMP/go"
	mkfifo "$TMP/go"
	"$FBT_BUILD/tests/live_usdt_loop" 43 <"$TMP/go" &
	ENGINE=$!
	exec 7>"$TMP/go"
	wait_for 30 [ "/proc/$ENGINE/exe" -ef "$FBT_BUILD/tests/live_usdt_loop" ]
	run_tool -p $ENGINE "$@"
	wait_attached "$TOOL" || sed 's/^/# /' "$OUT.err"
	go
	wait $ENGINE
	end_tool
}

trace_markers --step usdt:fake:step_begin,step_end
fact 'usdt: its steps' 'len(S) == 43 and all(s["step_source"] == "usdt" for s in S)'
fact 'usdt: exactly the calls between the two places' 'all(s["calls"] == s["by"]["other"]["calls"] == 8 for s in S)'
trace_markers --step usdt:fake:part_begin,part_end --step usdt:fake:step_begin,step_end
fact 'usdt in the step of another pair: it is a part of that one' \
	'len(S) == 43 and all((s["kind"], s["end"], s["calls"]) == ("fake:step_begin", "return", 8) for s in S)'
trace_markers --step make_step --step usdt:fake:step_begin,step_end
fact 'usdt in the step of a function: it is a part of that one' \
	'len(S) == 43 and all((s["kind"], s["end"], s["calls"]) == ("make_step", "return", 9) for s in S)'
finish
