#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# Processes under seccomp filters: a container's filter does not prevent an injection. A filter that
# would kill the process for one of our calls is noticed before the first call, and the list of
# those calls is complete.
#	INJECT_ROUNDS=30
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/inject/lib.sh"

: "${INJECT_ROUNDS:=30}"
filtered=$(realpath -m "$FBT_BUILD/tests/live_inject_seccomp")
shim=$(realpath -m "$FBT_BUILD/libferrum_cupti.so")
program=$INJECT_TARGET
trap '' PIPE

# start_filtered FILTERS OPTION…: starts the self-checking target under these filters
start_filtered()
{
	local filters=$1

	shift
	printf '#!/bin/sh\nexec %s %s -- %s "$@"\n' "$filtered" "$filters" "$program" >"$TMP/launch"
	chmod 755 "$TMP/launch"
	INJECT_TARGET=$TMP/launch
	start_target "$@"
}

# loads FILTERS: an injection under these filters succeeds each time
loads()
{
	start_filtered "$1"
	grep -q '^Seccomp:.*2$' "/proc/$TARGET/status" || not_ok "$1: it has a filter"
	drive -n "$INJECT_ROUNDS" -T 60
	is "$1, $INJECT_ROUNDS times: it is loaded" \
		"$(ask 'sum(r["ok"] for r in R), [r for r in R if not r["ok"]][:2]')" "($INJECT_ROUNDS, [])"
	is "$1: it was called as often" "$(count_probes)" "$INJECT_ROUNDS"
	ask '"# stopped for %.0f us at the median, %.0f us at most" % (
		(s := sorted(r["stop_us"] for r in R))[len(s) // 2], s[-1])'
	end_target "$1"
}

# refuses FILTERS CALL OPTION…: the options are those of the driver
refuses()
{
	local filters=$1 call=$2

	shift 2
	drive -T 5 "$@"
	is "$filters: it is refused" "$(ask '[r["status"] for r in R]')" "['refused']"
	is "$filters: the call is named" "$(ask "'$call' in R[0]['text'] or R")" True
	is "$filters: nothing was loaded" "$(count_probes)" 0
	holds "$filters: nobody holds it" wait_until 20 is_let_go
}

loads docker
loads 'docker enosys-clone3 errno-rseq errno-fallocate'

for filter in kill-memfd_create errno-memfd_create kill-pwrite64; do
	start_filtered $filter
	refuses $filter "${filter#*-}"
	end_target $filter
done

# Here the stop itself is dangerous: a thread in poll() would make that call when it is restarted.
start_filtered kill-restart_syscall
for name in poll s_read_pipe futex; do
	refuses kill-restart_syscall restart_syscall -t "$(thread_of $name)"
done
end_target kill-restart_syscall

# needed NAME DRIVER-OPTION…: a process that may make no other calls survives
needed()
{
	local name=$1 line input output

	shift
	coproc ONLY { exec "$filtered" only-needed; }
	TARGET=$ONLY_PID
	# The shell removes the array when the process ends.
	exec {output}<&"${ONLY[0]}" {input}>&"${ONLY[1]}"
	eval "exec ${ONLY[1]}>&-"
	read -r -t 120 line <&"$output"
	drive -n 3 -T 60 "$@"
	is "only needed calls: $name is loaded" "$(ask '[r["status"] for r in R]')" \
		"['loaded', 'loaded', 'loaded']"
	# The shim's thread wakes up every 2 s.
	sleep 3
	line=
	echo hello >&"$input"
	read -r -t 120 line <&"$output"
	is "only needed calls: with $name it goes on" "$line" hello
	exec {input}>&- {output}<&-
	wait "$TARGET"
	is "only needed calls: with $name it ends as it should" $? 0
}
needed 'the probe'
needed 'the shim' -l "$shim" -e InitializeInjection
# As the tool does: its thread takes on what the main thread has.
needed 'the shim, late' -l "$shim" -e ferrum_cupti_attach
finish
