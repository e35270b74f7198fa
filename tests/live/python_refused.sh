#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# Processes whose Python functions cannot be steps: each is told with its own reason, and goes on.
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/live/python/lib.sh
. tests/live/python/lib.sh

python=/usr/bin/python3
step=py:__main__:step

# refuses NAME REGEX TOOL-OPTION…: a tool on $ENGINE ends with status 1 and says so; the process lives
refuses()
{
	local name=$1 wanted=$2

	shift 2
	run_tool -p "$ENGINE" --step $step "$@"
	end_tool 1 "$name: no steps"
	has "$name: the reason" "$OUT.err" "process $ENGINE: .*$wanted"
	holds "$name: the process lives" kill "$ENGINE"
	exec 7>&-
	wait "$ENGINE" 2>/dev/null
}

# The interpreter destroys the objects of a module once it is ending.
cat >"$TMP/ending.py" <<'EOF'
import os


class Late:
    def __del__(self, write=os.write, read=os.read):
        write(1, b'ready\n')
        read(0, 1)


late = Late()
EOF
start_waiting env LD_PRELOAD="$LIBRARY" $python "$TMP/ending.py"
refuses 'an interpreter that is ending' 'the interpreter is ending'

start_waiting env LD_PRELOAD="$LIBRARY" "$FBT_BUILD/tests/not_begun"
refuses 'an interpreter that has not begun' 'the interpreter has not begun'

start_waiting env LD_PRELOAD="$LIBRARY" $python -c 'import ctypes
print("ready", flush=True)
ctypes.PyDLL(None).sleep(600)'
refuses 'C code that keeps the GIL' 'did not let go of its lock within 2 s'

# A library for its own use alone is seen by no other one, unless it was there from the start.
own=$($python -c 'import os, sys; print(os.path.basename(os.path.realpath(sys.executable)))')
embedded=$(compgen -G "/usr/lib/*/lib$own.so.1.0" | head -1)
if [ -z "$embedded" ]; then
	echo "SKIP an embedded interpreter: lib$own.so.1.0 is not installed"
else
	"${CC:-gcc}" -O2 -o "$TMP/embedded" tests/fake/embedded.c -ldl
	start_waiting "$TMP/embedded" "$embedded"
	refuses 'an embedded interpreter, for the program alone' \
		"the interpreter is loaded for the program alone \\(RTLD_LOCAL\\): .*LD_PRELOAD=$embedded" --python=inject
	start_waiting env LD_PRELOAD="$embedded" "$TMP/embedded" "$embedded"
	refuses 'the same, as that line says' 'has no such name: step' --python=inject
fi

# Which of two it would be is not known.
cp "$(type -P true)" "$TMP/libpython3.9.so.1.0"
start_waiting $python -c 'import mmap, sys
with open(sys.argv[1], "rb") as file:
    code = mmap.mmap(file.fileno(), 0, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC)
print("ready", flush=True)
sys.stdin.read()' "$TMP/libpython3.9.so.1.0"
refuses 'two interpreters' 'two interpreters are mapped' --python=inject

# start_sleeper NAME: a program of that name that is no interpreter
start_sleeper()
{
	[ -e "$TMP/$1" ] || cp "$(command -v sleep)" "$TMP/$1"
	"$TMP/$1" 600 &
	ENGINE=$!
	holds "$1: it runs" wait_for 10 [ "/proc/$ENGINE/exe" -ef "$TMP/$1" ]
}

start_sleeper python3.15
refuses 'a version that is not known' '3\.15, and 3\.9 to 3\.14 are supported' --python=inject

start_sleeper python3.11
refuses 'a frozen program' 'does not export the functions of CPython' --python=inject

start_sleeper pypy3.10
"$FBT" -p "$ENGINE" --python=inject --dry-run >"$TMP/dry" 2>&1
is '--dry-run of another interpreter ends with 1' $? 1
has '--dry-run of another interpreter: the reason' "$TMP/dry" 'no CPython process'
run_tool -p "$ENGINE" --inject -d 0.1
end_tool
is '--inject is for what there is' "$(grep -c 'no CPython' "$OUT.err")" 0
refuses 'another interpreter' '--python=inject: no CPython' --python=inject
finish
