#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# What engine-env prints: an engine that is started so has the library in all of its processes, before
# their interpreters run; other programs that inherit it, and children by fork, are as ever.
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/live/python/lib.sh
. tests/live/python/lib.sh
# shellcheck source=tests/live/python/tree.sh
. tests/live/python/tree.sh

"$FBT" engine-env >"$TMP/env" 2>"$TMP/env.err"
is 'engine-env ends with 0' $? 0
is 'gpu-env is the same' "$("$FBT" gpu-env)" "$(cat "$TMP/env")"
eval "$(sed -n 's/^export LD_PRELOAD=/preload=/p' "$TMP/env")"
is 'it names the library' "$preload" "$LIBRARY"

# The engine by what it prints, all of whose processes are started by others of it.
run_tree 'by engine-env' vllm core
check_tree
only_steps api core worker0 worker1

# Both libraries into one process: one that runs Python and has CUDA.
printf '%s\n' 'import ctypes, sys, time' 'ctypes.CDLL(sys.argv[1])' 'print("ready", flush=True)' \
	'while True: time.sleep(0.01)' >"$TMP/cuda.py"
mkfifo "$TMP/ready"
/usr/bin/python3 "$TMP/cuda.py" "$(realpath "$FBT_BUILD/tests/libcuda.so.1")" >"$TMP/ready" &
CUDA=$!
read -r _ <"$TMP/ready"
rm "$TMP/ready"
rm -f "${OUT:?}".*
run_tool -p "$CUDA" --inject
holds '--inject: the library for Python' await_lines 1 "process $CUDA: libferrum_python.so injected" "$OUT.err"
holds '--inject: the shim' await_lines 1 "process $CUDA: shim injected" "$OUT.err"
stop_tool
holds '--inject: the process goes on' kill "$CUDA"
wait "$CUDA" 2>/dev/null

# Programs without Python, and one after the other in a shell.
is 'programs without Python are as ever' \
	"$(LD_PRELOAD=$preload sh -c 'echo a | cat; true && (env printf "%s\n" b); exec awk "BEGIN { print 3 }"' 2>&1)" \
	$'a\nb\n3'

# Orders from the first moment of a process on, before there is an interpreter, and to its end.
while read -r version path; do
	times=$(at_length 10 200)
	read -r ended unanswered < <(python3 tests/live/python/early.py "$path" "$LIBRARY" \
		"$FBT_BUILD/tests/live_python_drive" "$times")
	is "$version: with orders from its first moment on it ends as ever" "$ended" "$times"
	is "$version: and all of them are answered" "$unanswered" 0
done < <(interpreters)

# start_forked COMMAND…: the engine is a child that was forked; its pid is in CHILD
start_forked()
{
	rm -f "$TMP/truth.json" "$TMP/go"
	mkfifo "$TMP/go" "$TMP/ready"
	"$@" tests/live/python/forked.py "$TMP/truth.json" 300 <"$TMP/go" >"$TMP/ready" 7>&- &
	ENGINE=$!
	exec 7>"$TMP/go"
	read -r CHILD <"$TMP/ready"
	rm "$TMP/go" "$TMP/ready"
}

for mode in auto inject; do
	rm -f "${OUT:?}".*
	start_forked env LD_PRELOAD="$LIBRARY" /usr/bin/python3
	run_tool -p "$CHILD" --python=$mode
	wait_attached "$TOOL" || not_ok "forked, $mode: the tool attaches"
	go
	wait "$ENGINE"
	is "forked, $mode: the engine ends as ever" $? 0
	end_tool
	[ $mode = auto ] || fact "forked, $mode: each call is a step" \
		'T["calls"] == 300 == sum(s["kind"] == "EngineCore.step" for s in S) and
		T["requests"] == sum(s["arg.n_requests"] for s in S)'
done
start_forked env LD_PRELOAD="$LIBRARY" /usr/bin/python3
run_tool -p "$CHILD" -d 0.1
end_tool
has 'forked, without --python=inject: it is told' "$OUT.err" "no Python steps in $CHILD .*--python=inject"
go
wait "$ENGINE"

# A copy of the interpreter is called python3, without a version: "python3 -m venv --copies".
mkdir -p "$TMP/venv/bin"
cp "$(readlink -f /usr/bin/python3)" "$TMP/venv/bin/python3"
echo 'home = /usr/bin' >"$TMP/venv/pyvenv.cfg"
start_forked "$TMP/venv/bin/python3"
run_tool -p "$CHILD" -d 0.1
end_tool
has 'a copy called python3: what --python=inject would add' "$OUT.err" 'runs Python: with --python=inject'
go
wait "$ENGINE"
rm -f "${OUT:?}".*
start_forked "$TMP/venv/bin/python3"
run_tool -p "$CHILD" --python=inject
wait_attached "$TOOL" || not_ok 'a copy called python3: the tool attaches'
go
wait "$ENGINE"
is 'a copy called python3: it ends as ever' $? 0
end_tool
fact 'a copy called python3: each call is a step' \
	'T["calls"] == 300 == sum(s["kind"] == "EngineCore.step" for s in S)'
finish
