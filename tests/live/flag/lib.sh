# shellcheck shell=bash disable=SC2034
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# Windows that a flag opens and closes; sourced after lib.sh.

unset FERRUM_BPFTRACE FERRUM_BPFTRACE_FLAG FERRUM_BPFTRACE_DIR FERRUM_BPFTRACE_MAX_STEPS \
	FERRUM_BPFTRACE_DEBUG

FLAG=$TMP/flag
DIR=$TMP/windows

# run_waiting ARGUMENT…: a tool that waits for the flag; its id is in TOOL
run_waiting()
{
	rm -rf "$DIR" "$FLAG"
	run_by_flag "$@"
	wait_for_line '^waiting for /'
}

run_by_flag()
{
	rm -f "${OUT:?}".*
	: >"$OUT.err"
	env --default-signal=INT "$FBT" --flag "$FLAG" --dir "$DIR" --report none --rate-guard 0 "$@" \
		>"$OUT.report" 2>"$OUT.err" 7>&- </dev/null &
	TOOL=$!
}

# wait_for_line REGEX [COUNT]: until that many lines of the tool's stderr match
wait_for_line()
{
	local wanted=${2:-1}

	for _ in $(seq 3000); do
		[ "$(grep -cE -- "$1" "$OUT.err")" -ge "$wanted" ] && return 0
		kill -0 "$TOOL" 2>/dev/null || break
		sleep 0.02
	done
	[ "$(grep -cE -- "$1" "$OUT.err")" -ge "$wanted" ] && return 0
	sed 's/^/# /' "$OUT.err"
	not_ok "the tool says $1"
	return 1
}

count()
{
	find "$DIR" -name "$1" 2>/dev/null | wc -l
}

# open_window NUMBER, close_window NUMBER: waits until that is done
open_window()
{
	touch "$FLAG"
	wait_for_line 'window [0-9]+ is open' "$1"
}

close_window()
{
	rm "$FLAG"
	wait_for_line '^waiting for /' $(($1 + 1))
}

# about PATTERN EXPRESSION: evaluates it for the only profile whose name matches
about()
{
	local files

	mapfile -t files < <(find "$DIR" -name "ferrum_profile_$1.jsonl")
	[ ${#files[@]} = 1 ] || echo "${#files[@]} files match $1"
	cp "${files[0]}" "$TMP/one.profile"
	OUT=$TMP/one q "$2"
}

# steps_of [PID]: number of steps of that process in the newest window; all files of a window have
# the same time
steps_of()
{
	local newest

	newest=$(find "$DIR" -name 'ferrum_profile_*' -printf '%f\n' | sed 's/.*_//' | sort | tail -1)
	cat "$DIR"/ferrum_profile_*_"$newest" 2>/dev/null |
		grep -cE "\"event\":\"step_prof\".*\"pid\":${1:-[0-9]+}[,}]"
}

# wait_for_step [COUNT [PID]]: until the open window has that many steps of that process
wait_for_step()
{
	for _ in $(seq 3000); do
		[ "$(steps_of "${2:-}")" -ge "${1:-1}" ] && return
		sleep 0.01
	done
	not_ok 'there are steps in the window'
}

# shellcheck disable=SC2317
are_valid()
{
	"$FBT" validate "$@" >"$TMP/validated"
}

start_steady()
{
	"$FBT_ENGINE" --steps 0 --sleep-us 500 "$@" >/dev/null 2>&1 </dev/null &
	STEADY=$!
	for _ in $(seq 3000); do
		[ "$(readlink "/proc/$STEADY/exe")" = "$FBT_ENGINE" ] && return
		sleep 0.01
	done
	not_ok 'the engine starts'
}

end_steady()
{
	kill -TERM "$1"
	wait "$1"
}
