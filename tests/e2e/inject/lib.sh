# shellcheck shell=bash disable=SC2034
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# What the tests share that inject a library into programs which nobody here wrote, again and again
# and under load: sourced first. tests/live_inject_drive injects; the programs and those that load
# them write facts ("ok - …") and figures ("# …") when they end.
#
# FBT_INJECT_ROUNDS: injections in a row (25; 100 with TEST_LONG=1). FBT_INJECT_PAUSE_MS: between two
# of them (10).
# shellcheck source=tests/live/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../live/lib.sh"

HERE=$PWD/tests/e2e
# shellcheck source=tests/e2e/lib/engine.sh
. "$HERE/lib/engine.sh"

ROUNDS=${FBT_INJECT_ROUNDS:-$(at_length 25 100)}
PAUSE=${FBT_INJECT_PAUSE_MS:-10}
PARTS=$HERE/inject
DRIVE=$(realpath -m "$FBT_BUILD/tests/live_inject_drive")
# A byte for each call of an injected library's entry.
LOADS=$TMP/loads

[ "$(uname -m)" = x86_64 ] || skip 'injecting is for x86-64'
[ -x "$DRIVE" ] || skip "no $DRIVE: make TESTS=e2e build-tests builds it"

# Programs of other users write there.
chmod 755 "$TMP"
: >"$LOADS"
chmod 666 "$LOADS"
export INJECT_PROBE_FILE=$LOADS

# Finds the interpreter itself, not a script that searches for it.
find_python()
{
	PYTHON=$(python3 -c 'import os, sys; print(os.path.realpath(sys.executable))' 2>/dev/null)
	[ -x "$PYTHON" ] || skip 'python3 is not installed'
}

# start NAME COMMAND…: in the background, until its output says ready; its id is in STARTED, its
# output in $TMP/NAME.out
start()
{
	local name=$1

	shift
	"$@" >"$TMP/$name.out" 2>"$TMP/$name.err" </dev/null &
	STARTED=$!
	until_true 120 grep -qs '^ready' "$TMP/$name.out" && return
	sed 's/^/# /' "$TMP/$name.out" "$TMP/$name.err"
	not_ok "$name starts"
	finish
}

# facts NAME: the facts that a program has printed
facts()
{
	local file=$TMP/$1.out

	sed -nE "s/^((not )?ok - )/\1$1: /p; s/^# /# $1: /p" "$file"
	grep -qE '^ok - ' "$file" || not_ok "$1 says how it went"
	! grep -q '^not ok' "$file" || FAILED=1
	[ ! -s "$TMP/$1.err" ] || sed "s/^/# $1: /" "$TMP/$1.err"
}

# end NAME PROCESS [SIGNAL]: asks it to end; prints its facts and checks its exit status
end()
{
	kill "-${3:-TERM}" "$2"
	wait "$2"
	is "$1 ends in order" $? 0
	facts "$1"
}

# build_threads FILE: builds the C++ program
build_threads()
{
	g++ -std=c++17 -O2 -o "$1" "$PARTS/threads.cpp" -lpthread 2>"$TMP/g++" && return
	sed 's/^/# /' "$TMP/g++"
	not_ok 'g++ compiles'
	finish
}

threads_of()
{
	find "/proc/$1/task" -mindepth 1 -maxdepth 1 2>/dev/null | wc -l
}

files_of()
{
	find "/proc/$1/fd" -mindepth 1 -maxdepth 1 2>/dev/null | wc -l
}

memory_of()
{
	awk '/^VmRSS/ {print $2}' "/proc/$1/status"
}

# most threads_of|files_of PROCESS: the maximum within a second, since programs vary by themselves
most()
{
	local most=0 now

	for _ in $(seq 20); do
		now=$("$1" "$2")
		[ "$now" -le "$most" ] || most=$now
		sleep 0.05
	done
	echo "$most"
}

at_most()
{
	[ "$("$1" "$2")" -le "$3" ]
}

# drive ROUNDS PROCESS ARGUMENT…: output goes to $TMP/rounds
drive()
{
	local rounds=$1 pid=$2

	shift 2
	"$DRIVE" -n "$rounds" -p "$PAUSE" -T 60 "$@" "$pid" >"$TMP/rounds" 2>"$TMP/rounds.err"
}

# Number of entries that were called.
loads()
{
	stat -c %s "$LOADS"
}

# libraries_of PROCESS: number of injected libraries in it. For a known name, dlopen returns the
# library that is already loaded.
libraries_of()
{
	awk '/\/memfd:libferrum.so/ {print $5}' "/proc/$1/maps" | sort -u | wc -l
}

# The facts of one series: each round loaded a library of its own, and nothing has grown between the
# first round and the last.
# inject NAME PROCESS [ARGUMENT…]: ROUNDS times in a row
inject()
{
	local name=$1 pid=$2 before libraries threads files memory

	shift 2
	drive 1 "$pid" "$@"
	is "$name: injected once" $? 0
	sed 's/^/# /' "$TMP/rounds.err"
	threads=$(most threads_of "$pid")
	files=$(most files_of "$pid")
	memory=$(memory_of "$pid")
	before=$(loads)
	libraries=$(libraries_of "$pid")
	drive "$ROUNDS" "$pid" "$@"
	is "$name: injected $ROUNDS times in a row" $? 0
	sed 's/^/# /' "$TMP/rounds.err"
	python3 "$PARTS/rounds.py" "$name" "$TMP/rounds" "$ROUNDS" || FAILED=1
	is "$name: as many entries were called" $(($(loads) - before)) "$ROUNDS"
	is "$name: in libraries of their own" $(($(libraries_of "$pid") - libraries)) "$ROUNDS"
	holds "$name: no thread is left behind" until_true 60 at_most threads_of "$pid" "$threads"
	holds "$name: no descriptor is left behind" until_true 60 at_most files_of "$pid" "$files"
	echo "# $name: $threads threads, $files descriptors," \
		"memory $memory KiB, and $(($(memory_of "$pid") - memory)) KiB more"
}

# A process that must not be injected: the driver says why, and the process keeps all that it has.
# inject_not NAME PROCESS STATUS ARGUMENT…: STATUS is a pattern for the driver's status
inject_not()
{
	local name=$1 pid=$2 pattern=$3 threads files before

	shift 3
	threads=$(most threads_of "$pid")
	files=$(most files_of "$pid")
	before=$(loads)
	drive 3 "$pid" "$@"
	is "$name: is not injected" $? 1
	has "$name: it is said why" "$TMP/rounds" \
		"\"status\":\"($pattern)\".*\"text\":\"[^\"]"
	! grep -q '"ok":true' "$TMP/rounds" || not_ok "$name: no round is said to be well"
	grep -m1 -o '"status.*' "$TMP/rounds" | sed "s/^/# $name: /"
	sed 's/^/# /' "$TMP/rounds.err"
	is "$name: nothing was loaded" "$(loads)" "$before"
	holds "$name: no thread is left behind" until_true 60 at_most threads_of "$pid" "$threads"
	holds "$name: no descriptor is left behind" until_true 60 at_most files_of "$pid" "$files"
}
