#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# fault_clock.sh [really]: the wall clock jumps by an hour, back and forth, during a window. Steps,
# times, -d, the rate limit and flags must follow the monotonic clock. By default a library changes
# the clock of the tool alone. "really" sets the machine's clock, which is meant for a virtual
# machine.
# shellcheck disable=SC2317
. "$(dirname "$0")/lib.sh"

really=${1:-}
truth=$TMP/truth.bin
preload=()
if [ "$really" != really ]; then
	if ! ldd "$FBT" 2>/dev/null | grep -q libc.so || ldd "$FBT" | grep -q libasan; then
		echo 'SKIP static, or with a sanitizer: the clock cannot be stepped for it alone'
		exit 77
	fi
	"${CC:-cc}" -std=gnu11 -O2 -shared -fPIC tests/fake/step_clock.c -o "$TMP/step_clock.so"
	preload=(env "LD_PRELOAD=$TMP/step_clock.so")
fi

# Sets the machine's clock back and forth until told to stop, then sets it right.
step_machine()
{
	[ "$really" = really ] || { sleep "$1" && return; }
	python3 - "$1" <<'END'
import sys
import time

offset = time.clock_gettime_ns(time.CLOCK_REALTIME) - time.clock_gettime_ns(time.CLOCK_MONOTONIC)
end = time.monotonic() + float(sys.argv[1])
shift = 0
try:
    while time.monotonic() < end:
        shift = 0 if shift else 3600 * 10**9
        time.clock_settime_ns(time.CLOCK_REALTIME, time.clock_gettime_ns(time.CLOCK_MONOTONIC) + offset + shift)
        time.sleep(0.1)
finally:
    time.clock_settime_ns(time.CLOCK_REALTIME, time.clock_gettime_ns(time.CLOCK_MONOTONIC) + offset)
END
}

start_engine --steps 0 --sleep-us 1500 --slow-futex-every 15 --slow-us 5000
tool=$FBT
FBT="$TMP/tool"
printf '#!/bin/sh\nexec %s "%s" "$@"\n' "${preload[*]}" "$tool" >"$FBT"
chmod +x "$FBT"
rm -f "${OUT:?}".*
run_tool -p "$ENGINE" --step engine_step --detail all --rate-limit 2 --rate-interval 1 -d 4
wait_attached "$TOOL"
go
step_machine 3.5
end_tool 0 'the window ends'
kill -TERM "$ENGINE"
wait "$ENGINE"
is 'the target ends as it wants' $? 0
# The clock jumps by 3600 s. A tenth of that shows that no jump counts, and leaves time for a slow
# machine.
fact 'after 4 s, by the monotonic clock' '3.9e9 < R["window_ns"] < 360e9'
fact 'no step is longer than the window, none begins outside of it' \
	'len(S) > 0 and all(s["start_us"] + s["us"]["total"] <= R["window_ns"] / 1000 + 2 for s in S)'
fact 'nothing lost' 'lost == 0'
fact 'the rate limit is one of seconds that pass' \
	'2 <= len(G) <= 2 * (R["window_ns"] // 10**9 + 1) and W["escalations_suppressed"] > 0'
fact 'times in the trace too' \
	'len(X) > 0 and all(x["ts"] + x["dur"] <= R["window_ns"] / 1000 + 2 for x in X)'
holds 'outputs are valid' "$tool" validate "$OUT.profile" "$OUT.trace"

# A time server sets the clock in the middle of a long window.
if [ "$really" != really ]; then
	start_engine --steps 0 --sleep-us 1500 --slow-futex-every 50 --slow-us 5000
	rm -f "${OUT:?}".*
	export FBT_CLOCK_SET_NS=$(($(awk '{ sub("[.]", "", $1); print $1 }' /proc/uptime) * 10000000 + 6000000000))
	run_tool -p "$ENGINE" --step engine_step --detail all -d 8
	unset FBT_CLOCK_SET_NS
	wait_attached "$TOOL"
	go
	end_tool 0 'set once: the window ends'
	kill -TERM "$ENGINE"
	wait "$ENGINE"
	ahead='[round(monotonic_ns(h["time"]) / 1e9 - (W["epoch_monotonic_us"] + h["start_us"]) / 1e6) for _, h in sorted(H.items())]'
	echo "# $(q "sorted(set($ahead))")"
	fact 'set once: times of day follow the clock' "{0, 3600} == set($ahead) and $ahead == sorted($ahead)"
fi

# A flag counts by its existence, not by its time.
start_waiting "$FBT_BUILD/tests/live_fault_target" "$truth" 2 500 3
go
mkdir "$TMP/windows"
env --default-signal=INT "$FBT" -p "$ENGINE" --step fault_step --flag "$TMP/flag" --dir "$TMP/windows" "${calm[@]}" \
	--rate-guard 0 --report none >/dev/null 2>"$OUT.err" </dev/null 7>&- &
TOOL=$!
step_machine 0.5 &
stepper=$!
for window in 1 2 3; do
	await_lines $window '^waiting for /' "$OUT.err" || not_ok "flags: the tool waits for window $window"
	touch "$TMP/flag"
	await_lines $window 'is open' "$OUT.err" || not_ok "flags: window $window opens"
	sleep 0.3
	# An hour in the future or in the past.
	touch -d "$((RANDOM % 2 * 2 - 1)) hour" "$TMP/flag" 2>/dev/null
	sleep 0.1
	rm "$TMP/flag"
done
await_lines 4 '^waiting for /' "$OUT.err" || not_ok 'flags: the last window is closed'
wait $stepper
kill -INT "$TOOL"
end_tool 0 'flags: the tool ends'
is 'flags: a window for each' "$(find "$TMP/windows" -name '*.json' | wc -l)" 3
holds 'flags: their files are valid' "$tool" validate "$TMP/windows"/*
kill -TERM "$ENGINE"
wait "$ENGINE"
is 'flags: the target ends as it wants' $? 0
finish
