#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# The time of page faults, compared with a program that times itself and asks the kernel for their
# number; and where they cannot be timed, that this is said.
. "$(dirname "$0")/lib.sh"

start_program page_faults "$TMP/pages"
attach --step faults_step --detail steps --rate-guard 0 --record "$OUT.capture"
# The perf events of the thread whose faults are timed, once its first step has had some.
attached=$(count_links "$TOOL")
# shellcheck disable=SC2317,SC2329 # wait_for calls it
has_more_links()
{
	[ "$(count_links "$TOOL")" -gt "$attached" ]
}
echo >&7
wait_for 60 has_more_links
go
wait "$ENGINE"
stop_tool
"$FBT_BUILD/tests/live_capture_json" "$OUT.capture" >"$OUT.json" || not_ok 'a capture'
python3 tests/live/page_faults.py "$TMP/truth.json" "$OUT.json" "$OUT.profile" || FAILED=1

# As under the filters of containers. Uprobes need perf_event_open themselves before Linux 6.6.
kernel=$(uname -r | awk -F '[.-]' '{ print $1 * 1000 + $2 }')
filtered=$(realpath -m "$FBT_BUILD/tests/live_inject_seccomp")
if [ "$(uname -m)" != x86_64 ] || [ "$kernel" -lt 6006 ]; then
	echo 'SKIP without perf_event_open: no filter for this machine, or no uprobe without it'
	finish
fi
printf '#!/bin/sh\nexec "%s" errno-perf_event_open -- "%s" "$@"\n' "$filtered" "$FBT" >"$TMP/tool"
chmod 755 "$TMP/tool"
FBT=$TMP/tool
rm -f "${OUT:?}".*
start_program page_faults "$TMP/pages" rare
attach --step faults_step
go
wait "$ENGINE"
end_tool
is 'without perf_event_open: that page faults are not timed is said once' \
	"$(grep -c 'page faults are not timed: perf_event_open(2): .*doctor' "$OUT.err")" 1
finish
