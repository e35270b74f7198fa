#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# fault_cpu.sh [really]: CPUs go offline and come back during a window, and one is offline when the
# tool attaches. No step and no call may be missing. The CPUs of the whole machine are taken, for
# 0.3 s at a time; "really" allows that.
# shellcheck disable=SC2317
. "$(dirname "$0")/lib.sh"

calls=3
truth=$TMP/truth.bin
cpus=()
for file in /sys/devices/system/cpu/cpu[1-9]*/online; do
	[ -w "$file" ] && cpus+=("$file")
done
if [ "${1:-}" != really ]; then
	echo 'SKIP takes CPUs from the machine: tests/live/fault_cpu.sh really'
	exit 77
fi
[ "${#cpus[@]}" -gt 0 ] || { echo 'SKIP no CPU of this machine can be taken away' && exit 77; }

set_cpu()
{
	echo "$2" >"$1" 2>/dev/null
}

set_all()
{
	local file

	for file in "${cpus[@]}"; do set_cpu "$file" "$1"; done
}

# shellcheck disable=SC2317
undo()
{
	set_all 1
}

set_cpu "${cpus[0]}" 0 || { echo 'SKIP no CPU of this machine can be taken away' && exit 77; }

# The first CPU is offline when the tool counts the CPUs.
start_waiting "$FBT_BUILD/tests/live_fault_target" "$truth" 4 500 $calls
run_tool -p "$ENGINE" --step fault_step --step-arg thread=arg1 --step-arg n=arg2 --detail all \
	--record "$OUT.capture" "${calm[@]}"
wait_attached "$TOOL"
set_cpu "${cpus[0]}" 1
go
sleep 0.5
for file in "${cpus[@]}" "${cpus[0]}"; do
	set_cpu "$file" 0
	sleep 0.3
	set_cpu "$file" 1
	sleep 0.3
done
kill -TERM "$ENGINE"
wait "$ENGINE"
is 'the target ends as it wants, each of its calls as it should be' $? 0
end_tool
holds 'each step there was, with its calls, and no other' \
	python3 tests/live/fault_truth.py killed "$truth" "$OUT" "$calls"
records=$(python3 tests/live/count_records.py "$OUT.capture")
fact "the table has the $records calls that have a record" \
	"sum(table.values()) == $records + R['lost']['calls'] and lost == 0"
holds 'outputs are valid' "$FBT" validate "$OUT.profile" "$OUT.trace"
is 'all CPUs are there again' "$(cat /sys/devices/system/cpu/online)" "$(cat /sys/devices/system/cpu/present)"
finish
