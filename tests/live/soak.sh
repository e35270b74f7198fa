#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# soak.sh [KIND…]: what a server does in hours, without the pauses. In each kind, after warming up,
# the tool's memory, its BPF maps, files, mappings, processes and temporary files must not grow.
# SOAK_HOURS=8 makes as many events as come in that many hours.
# shellcheck disable=SC2317 # soak_KIND is called by its name
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/gpu/lib.sh"

# For each kind: how many, and how many an hour.
counts='
children 16000  3600   a child a second does (-f), some by way of execve
threads  20000  36000  10 threads a second come, make a step and end
windows  60     60     a window a minute by flag, the profile moved away now and then
gpu      5000   12500  3 steps a second with GPU records and copies, and children
files    40000  180000 50 steps a second, each on a file that was never there
slow     2000   6000   100 escalations a minute, all shown, in a log that is cut off now and then
steps    10000  90000  two threads that make 25 steps a second each, with calls and waits
'
KIND=''
SAMPLES=''

# how_many: the number for this kind
how_many()
{
	awk -v kind="$KIND" -v hours="${SOAK_HOURS:-0}" \
		'$1 == kind { print hours ? hours * $3 : $2 }' <<<"$counts"
}

# sample: RssAnon in KiB, KiB of BPF maps, open files, mappings and processes of the tool and its
# helper; and the number of files except the target's and the windows'
sample()
{
	local children left pid texts=()

	read -ra children <"/proc/$TOOL/task/$TOOL/children"
	for pid in "$TOOL" "${children[@]}"; do
		texts+=("/proc/$pid/"{status,maps} "/proc/$pid/fdinfo/"*)
	done
	left=("$TMP"/[!f]*)
	cat "${texts[@]}" | awk -v left="${#left[@]}" '
		/^RssAnon/ { anon += $2 }
		/^memlock/ { locked += $2 / 1024 }
		/^pos/ { files++ }
		/^[0-9a-f]+-[0-9a-f]+ / { mappings++ }
		/^Tgid/ { processes++ }
		END { if (anon) print anon, int(locked), files, mappings, processes, left }' >>"$SAMPLES"
} 2>/dev/null

# grown COLUMN: growth from the middle fifth of the samples to the last
grown()
{
	local before now

	before=$(least "$1" 40 60)
	now=$(least "$1" 80 100)
	echo $((now - before))
}

# least COLUMN FROM TO: the minimum of the samples between those percentages, without the lowest
# twentieth
least()
{
	awk -v column="$1" '{ print $column }' "$SAMPLES.whole" |
		awk -v count="$(wc -l <"$SAMPLES.whole")" \
			'NR > count * '"$2"' / 100 && NR <= count * '"$3"' / 100' | sort -n |
		awk '{ value[NR] = $1 } END { print value[int((NR + 19) / 20)] }'
}

# stays WHAT COLUMN LESS-THAN UNIT
stays()
{
	local grown

	grown=$(grown "$2")
	holds "$KIND: $1 stay: grown by $grown${4:+ $4}, allowed less than $3" [ "$grown" -lt "$3" ]
}

# Memory that a stall took is given back, except 2 MiB at the end of the heap (user/main.c). A window
# gives back all that it had. The names of files are kept, at most 65,536 (user/model/window.h): in a
# run of hours all of them are there by the middle, but in a short run 1.6 MiB of them come between the
# two fifths.
check_memory()
{
	local allowed=4096

	if [ "$KIND" = windows ]; then
		allowed=2560
	elif [ "$KIND" = files ] && [ -z "${SOAK_HOURS:-}" ]; then
		allowed=6144
	fi
	stays memory 1 "$allowed" KiB
}

# The files that stacks are read from are opened when the first call is slow, and kept: the program and
# its libraries. In a short run with six libraries that may be in its second half.
check_files()
{
	local allowed=5

	if [ "$KIND" = gpu ] && [ -z "${SOAK_HOURS:-}" ]; then
		allowed=12
	fi
	stays files 3 "$allowed"
}

check_samples()
{
	local count

	# The last samples may be of a tool that is ending.
	head -n -2 "$SAMPLES" >"$SAMPLES.whole"
	count=$(grep -c . "$SAMPLES.whole")
	echo "# $KIND: $count samples: anonymous KiB, KiB of maps in the kernel, files, mappings, processes, files left"
	sed -n '1p; $p' "$SAMPLES.whole" | sed 's/^/#   /'
	if [ "$count" -lt 15 ]; then
		echo "SKIP $KIND: it was over before the tool was warm"
		return
	fi
	check_memory
	stays 'maps in the kernel' 2 64 KiB
	check_files
	stays mappings 4 17
	stays processes 5 1
	stays 'temporary files' 6 2
}

check_outputs()
{
	"$FBT" validate "$@" >"$TMP/valid" 2>&1
	is "$KIND: outputs are valid" "$?" 0
}

# run_soak ARGUMENT…: the tool, which appends to a log
run_soak()
{
	: >"$OUT.err"
	launch env --default-signal=INT "$FBT" --ready-fd 6 --report json --rate-guard 0 "$@" \
		>"$OUT.report" 2>>"$OUT.err"
}

# turns_of_tool: how often the tool has waited for events
turns_of_tool()
{
	awk '/^voluntary_ctxt_switches/ { print $2 }' "/proc/$TOOL/status"
}

# shellcheck disable=SC2317
has_turned()
{
	[ "$(turns_of_tool)" -ge "$1" ] 2>/dev/null || ! kill -0 "$TOOL"
}

bytes_written()
{
	awk '/^wchar/ { print $2 }' "/proc/$TOOL/io"
}

# take_rested: a sample while the target is stopped, after the tool has processed everything: it has
# waited TURNS more times and written nothing meanwhile
TURNS=8
take_rested()
{
	local before now

	stop_process "$ENGINE"
	now=$(bytes_written)
	while [ "$now" != "${before:-}" ]; do
		before=$now
		wait_for 60 has_turned $(($(turns_of_tool) + TURNS)) || not_ok "$KIND: the tool gets on"
		now=$(bytes_written)
	done
	sample
	kill -CONT "$ENGINE"
} 2>/dev/null

# watch_to_end [FUNCTION]: takes samples until the target has ended, and then the tool
watch_to_end()
{
	wait_attached "$TOOL" || { cat "$OUT.err" && not_ok "$KIND: the tool attaches"; }
	go
	while kill -0 "$ENGINE" 2>/dev/null; do
		take_rested
		${1:+"$1"}
		sleep 0.1
	done
	wait "$ENGINE"
	is "$KIND: the target ends as it wants" $? 0
	end_tool 0 "$KIND: the tool ends"
	check_samples
	check_outputs "$OUT.profile" "$OUT.trace"
	grep '"event":"window_prof"' "$OUT.profile" >"$OUT.last.profile"
}

# in_window NAME EXPRESSION: a fact on the profile's last line
in_window()
{
	OUT=$OUT.last fact "$KIND: $1" "$2"
}

# soak_engine ENGINE-OPTION… -- TOOL-OPTION…
soak_engine()
{
	local options=()

	while [ "$1" != -- ]; do
		options+=("$1")
		shift
	done
	start_engine "${options[@]}"
	run_soak -p "$ENGINE" --step engine_step --trace "$OUT.trace" --profile "$OUT.profile" "${@:2}"
}

soak_target()
{
	mkdir -p "$TMP/target"
	start_program soak_target "$KIND" "$(how_many)" "$TMP/target"
	run_soak -p "$ENGINE" --step soak_step --trace "$OUT.trace" --profile "$OUT.profile" "$@"
	watch_to_end
	in_window 'each step is there, or counted' \
		'W["steps"] + W["lost_steps"] + W["lost_begins"] + W.get("untraced_steps", 0) >= T["steps"]'
}

soak_steps()
{
	soak_engine --steps "$(how_many)" --sleep-us 50 --step-threads 2 --noise 1 \
		--slow-futex-every 500 --slow-us 3000 --
	watch_to_end
	in_window 'each step is there, or counted' "W['steps'] + W['lost_steps'] >= 2 * $(how_many)"
}

soak_threads()
{
	soak_target
}

soak_children()
{
	soak_target -f
}

soak_files()
{
	soak_target
}

cut_log()
{
	[ "$(stat -c %s "$OUT.err")" -lt 20000 ] || : >"$OUT.err"
}

soak_slow()
{
	soak_engine --steps $(($(how_many) * 3)) --sleep-us 50 --slow-futex-every 3 --slow-us 500 -- \
		--rate-limit 1000000000 --budget-us 100
	watch_to_end cut_log
	# All but the first ones, which come before their class is known.
	in_window 'escalations are there' "W['escalations'] + W['lost_steps'] >= 0.9 * $(how_many)"
}

soak_gpu()
{
	start_gpu --steps "$(how_many)" --sleep-us 50 --fork-every 250 \
		--script k20,h10,g4,s --outside k5
	run_soak -p "$ENGINE" -f --step gpu_engine_step --trace "$OUT.trace" --profile "$OUT.profile"
	wait_for 20 is_armed || not_ok "$KIND: the shim is armed"
	watch_to_end
	in_window 'each step is there, or counted' "W['steps'] + W['lost_steps'] >= $(how_many)"
	in_window 'there are GPU records' "W['gpu_kernels'] >= 4 * $(how_many)"
}

# wait_for_lines REGEX COUNT
wait_for_lines()
{
	for _ in $(seq 1500); do
		[ "$(grep -cE -- "$1" "$OUT.err")" -ge "$2" ] && return 0
		kill -0 "$TOOL" 2>/dev/null || break
		sleep 0.02
	done
	sed 's/^/# /' "$OUT.err" | tail -5
	not_ok "$KIND: the tool says $1"
	return 1
}

soak_windows()
{
	local count flag=$TMP/flag window

	count=$(how_many)
	start_engine --steps 0 --sleep-us 500 --noise 1
	run_soak -p "$ENGINE" --step engine_step --flag "$flag" --dir "$TMP/windows" \
		--profile "$OUT.profile"
	go
	for window in $(seq "$count"); do
		wait_for_lines '^waiting for /' "$window" || break
		touch "$flag"
		wait_for_lines 'window [0-9]+ is open' "$window" || break
		sleep 0.1
		rm "$flag"
		wait_for_lines '^waiting for /' $((window + 1)) || break
		[ $((window % 10)) != 0 ] || mv "$OUT.profile" "$TMP/ferrum_profile_moved.$window"
		sample
	done
	kill -INT "$TOOL"
	end_tool 0 "$KIND: the tool ends"
	kill -TERM "$ENGINE"
	wait "$ENGINE"
	check_samples
	is "$KIND: $count traces" "$(find "$TMP/windows" -name 'ferrum_trace_*.json' | wc -l)" "$count"
	is "$KIND: $count windows in the profiles" \
		"$(cat "$TMP"/ferrum_profile_moved.* "$OUT.profile" | grep -c '"event":"window_prof"')" \
		"$count"
	check_outputs "$TMP"/ferrum_profile_moved.* "$TMP/windows/"*
}

[ $# != 0 ] || read -ra all <<<"$(awk 'NF { printf "%s ", $1 }' <<<"$counts")"
for KIND in "${@:-"${all[@]}"}"; do
	SAMPLES=$TMP/samples
	rm -rf "${OUT:?}".* "$TMP/target" "$TMP/windows" "$TMP"/ferrum_*
	: >"$SAMPLES"
	"soak_$KIND"
	echo "# $KIND: done after $SECONDS s"
done
finish
