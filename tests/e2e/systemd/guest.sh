#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# Runs in the guest of e2e/systemd.sh, as a service beside the one that it is about. One fact a line on the
# console; the last line is FBT-END NONCE.
exec </dev/null >/dev/console 2>&1
export PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C SYSTEMD_COLORS=0 SYSTEMD_PAGER=
SERVICE=ferrum-bpftrace
CONFIG=/etc/ferrum-bpftrace.conf
DUMPS=/var/lib/ferrum-bpftrace
ENGINE_FILE=/opt/fbt/engine
# Emulated code takes ten to thirty times as long.
LONG=400

stty -F /dev/console onlcr 2>/dev/null
nonce=$(tr ' ' '\n' </proc/cmdline | sed -n 's/^fbt\.nonce=//p')
echo
echo "FBT-BEGIN $nonce $(uname -r)"

ok()
{
	echo "ok - $1"
}

not_ok()
{
	echo "not ok - $1"
}

# is NAME GOT WANTED
is()
{
	if [ "$2" = "$3" ]; then
		ok "$1"
	else
		echo "# $1: '$2', not '$3'"
		not_ok "$1"
	fi
}

# holds NAME COMMAND…
holds()
{
	local name=$1

	shift
	if "$@"; then ok "$name"; else not_ok "$name"; fi
}

show()
{
	systemctl show "${2:-$SERVICE}" -p "$1" --value
}

# wait_for SECONDS COMMAND…
wait_for()
{
	local end=$((SECONDS + $1))

	shift
	until "$@"; do
		[ $SECONDS -lt $end ] || return 1
		sleep 1
	done
}

log()
{
	journalctl -u $SERVICE -o cat --no-pager 2>/dev/null
}

# count REGEX: lines of the service's log
count()
{
	log | grep -cE -- "$1"
}

has_count()
{
	[ "$(count "$2")" -ge "$1" ]
}

# await NAME COUNT REGEX
await()
{
	if wait_for $LONG has_count "$2" "$3"; then
		ok "$1"
	else
		log | tail -n 25 | sed 's/^/# /'
		not_ok "$1"
	fi
}

# Links and programs of tracing; systemd's own are of cgroups.
links()
{
	bpftool link list 2>/dev/null | grep -E '^[0-9]+:' | grep -vc ' cgroup'
}

programs()
{
	bpftool prog list 2>/dev/null | grep -cE '^[0-9]+: (kprobe|tracing|raw_tracepoint|raw_tracepoint_writable|perf_event|tracepoint) '
}

perf_events()
{
	find /proc/[0-9]*/fd -lname 'anon_inode:\[perf_event\]' 2>/dev/null | wc -l
}

attached()
{
	echo "$(links) $(programs) $(perf_events)"
}

is_state()
{
	[ "$(systemctl is-active $SERVICE)" = "$1" ]
}

is_main_other_than()
{
	local main

	main=$(show MainPID)
	[ "$main" != "$1" ] && [ "$main" != 0 ] && is_state active
}

# The tracer of an engine, below the service's main process.
tracer_of()
{
	pgrep -f -- "--pid=$1 .*--flight-fd" | head -n 1
}

has_files()
{
	compgen -G "$DUMPS/ferrum_watch_*_$1.html" >/dev/null
}

# unharmed PID: the code of the engine is that of its file
unharmed()
{
	local range offset from to pages

	read -r range _ offset _ < <(grep "r-xp.*$ENGINE_FILE" "/proc/$1/maps" | head -n 1)
	from=$((0x${range%-*} / 4096)) to=$((0x${range#*-} / 4096))
	pages=$((to - from))
	cmp <(dd if="/proc/$1/mem" bs=4096 skip=$from count=$pages 2>/dev/null) \
		<(dd if=$ENGINE_FILE bs=4096 skip=$((0x$offset / 4096)) count=$pages 2>/dev/null) >/dev/null
}

status_of()
{
	sed -n "s/^$2:[[:space:]]*//p" "/proc/$1/status"
}


is 'PID 1 is systemd' "$(cat /proc/1/comm)" systemd
is 'it runs in the namespace of the machine' "$(readlink /proc/self/ns/pid)" 'pid:[4026531836]'
is 'cgroups are of version 2' "$(stat -fc %T /sys/fs/cgroup)" cgroup2fs
is 'the service is not enabled by its installation' "$(systemctl is-enabled $SERVICE 2>/dev/null)" disabled
is 'and not started' "$(systemctl is-active $SERVICE)" inactive
systemctl start $SERVICE
is 'without a configuration: start ends with 0' $? 0
is 'without a configuration: nothing is started' "$(systemctl is-active $SERVICE) $(show ConditionResult)" 'inactive no'
holds 'doctor finds nothing that would keep it from tracing' sh -c 'ferrum-bpftrace doctor >/run/doctor 2>&1'
before=$(attached)
echo "# links, programs, perf events before: $before"


container=$(od -An -N32 -tx1 /dev/urandom | tr -d ' \n')
cat >$CONFIG <<END
unit = fbt-engine
container = ${container:0:12}
step = engine_step
last = 60s
after = 2s
calls = 4s
sample = 2s
sample-every = 120s
cooldown = 1h
hang = 600s
rate-guard = 0
cv-threshold = 10000
efficiency-threshold = 0
memory-cliff-threshold = 100
END
systemctl enable --now $SERVICE 2>/dev/null
is 'enable --now ends with 0' $? 0
is 'Type=notify: it is active once it has said READY=1' "$(show Type) $(show ActiveState) $(show SubState)" 'notify active running'
main=$(show MainPID)
is 'its main process is watch' "$(tr '\0' ' ' <"/proc/$main/cmdline")" '/usr/bin/ferrum-bpftrace watch '
systemctl start fbt-engine
engine=$(show MainPID fbt-engine)
await 'an engine of a unit that starts later is watched' 1 "^watching $engine "
tracer=$(tracer_of "$engine")
holds 'its tracer has links' [ "$(links)" -gt "${before%% *}" ]
if unharmed "$engine"; then not_ok 'and the engine has probes'; else ok 'and the engine has probes'; fi
# shellcheck disable=SC2317
has_steps()
{
	[[ $(show StatusText) =~ ^watching\ 1\ of\ 1\ processes\;\ ([0-9]+)\ steps ]] && [ "${BASH_REMATCH[1]}" -gt 20 ]
}
holds 'systemctl status says how many steps it has seen' wait_for $LONG has_steps
echo "# $(show StatusText)"


# CAP_DAC_READ_SEARCH 2, SYS_PTRACE 19, PERFMON 38, BPF 39, CHECKPOINT_RESTORE 40; SYS_ADMIN 21
five=$((1 << 2 | 1 << 19 | 1 << 38 | 1 << 39 | 1 << 40)) six=$((five | 1 << 21))
is 'its capabilities are those of the unit' "$(status_of "$main" CapBnd)" "$(printf %016x $six)"
# Before 6.6 uprobes want CAP_SYS_ADMIN; on Debian's kernels, all events do.
release=$(uname -r | awk -F '[.-]' '{ print $1 * 1000 + $2 }')
[ "$release" -ge 6006 ] && [ "$(cat /proc/sys/kernel/perf_event_paranoid)" -lt 3 ] && six=$five
is 'its tracer keeps CAP_SYS_ADMIN only where perf_event_open wants it' "$(status_of "$tracer" CapPrm)" "$(printf %016x $six)"
is 'it can gain no privilege, and has filters' "$(status_of "$main" NoNewPrivs) $(status_of "$main" Seccomp)" '1 2'
holds 'the tracer has one filter more than watch: its own' \
	[ "$(status_of "$tracer" Seccomp_filters)" -gt "$(status_of "$main" Seccomp_filters)" ]
is 'no message says that something was not given up' \
	"$(count 'are not filtered|keeps more privileges|privileges are kept|not dropped')" 0
for path in /etc /usr /boot; do
	nsenter -t "$main" -m sh -c "touch $path/.fbt" 2>/dev/null
	is "ProtectSystem: $path cannot be written to" $? 1
done
nsenter -t "$main" -m sh -c "touch $DUMPS/.fbt && rm $DUMPS/.fbt"
is 'but its state directory can' "$? $(stat -c %a $DUMPS)" '0 700'


# shellcheck disable=SC2317
samples()
{
	pgrep -f -- '--detail=escalated' >/dev/null
}
# shellcheck disable=SC2317
has_sampled()
{
	! samples
}
holds 'system calls are sampled' wait_for $LONG samples
holds 'for a short time' wait_for $LONG has_sampled
kill -USR1 "$main"
await 'SIGUSR1: a dump is written' 1 'dump .*_manual\.\*'
await 'with the system calls after it' 1 'dump .*_manual_calls\.\*'
await 'and the sample before it' 1 'dump .*_manual_sample\.\*'
holds 'its page is there' has_files manual
for part in manual manual_calls manual_sample; do
	stem=$(compgen -G "$DUMPS/ferrum_watch_*_$part.html" | tail -n 1)
	stem=${stem%.html}
	ferrum-bpftrace validate "$stem.jsonl.gz" "$stem.trace.json.gz" >/run/validate 2>&1
	is "$part: trace and profile are valid" $? 0
	holds "$part: it has steps" [ "$(zcat "$stem.jsonl.gz" | grep -c '"event":"step_prof"')" -gt 5 ]
done
holds 'system calls are in it' sh -c "zcat '$DUMPS'/*_manual_calls.jsonl.gz | grep '\"event\":\"syscall_prof\"' | grep -q '\"calls\":[1-9]'"
is 'files are for root alone' "$(stat -c '%a %u' "$DUMPS"/ferrum_watch_2* | sort -u)" '600 0'


fed=$(show WatchdogTimestampMonotonic)
# shellcheck disable=SC2317
is_fed_again()
{
	[ "$(show WatchdogTimestampMonotonic)" -gt "$fed" ]
}
holds 'the watchdog is fed' wait_for 90 is_fed_again
fed=$(show WatchdogTimestampMonotonic)
holds 'and again' wait_for 90 is_fed_again
is 'it was not started again meanwhile' "$(show NRestarts) $(show MainPID)" "0 $main"


echo 'cooldown = 2h' >>$CONFIG
systemctl reload $SERVICE
is 'reload ends with 0' $? 0
await 'the configuration is read again' 1 'reload: done$'
wait_for 60 is_state active
is 'the same process is active' "$(show ActiveState) $(show MainPID)" "active $main"
is 'and the same tracer' "$(tracer_of "$engine")" "$tracer"
lines=$(wc -l <$CONFIG)
echo 'cooldwn = 2h' >>$CONFIG
systemctl reload $SERVICE
await 'a mistake is told with its line' 1 "$CONFIG:$((lines + 1)): unknown option 'cooldwn': did you mean cooldown"
await 'and the old configuration stays' 1 'reload: the configuration stays as it was'
wait_for 60 is_state active
is 'it is active all the same' "$(show ActiveState) $(show MainPID)" "active $main"
sed -i '$d' $CONFIG


systemctl restart fbt-engine
engine=$(show MainPID fbt-engine)
await 'the engine is found again after its restart' 1 "^watching $engine "
systemd-run --quiet --scope --unit="docker-$container.scope" $ENGINE_FILE --steps 0 --steady --compute-us 2000 --sleep-us 20000 \
	>/dev/null 2>&1 &
# shellcheck disable=SC2317
scope_runs()
{
	[ -n "$(cat "/sys/fs/cgroup/system.slice/docker-$container.scope/cgroup.procs" 2>/dev/null)" ]
}
holds 'a scope as Docker makes it runs' wait_for 60 scope_runs
inside=$(head -n 1 "/sys/fs/cgroup/system.slice/docker-$container.scope/cgroup.procs")
await 'the process of a container is found by 12 digits of its id' 1 "^watching $inside "
systemctl stop "docker-$container.scope"
await 'and its end is told' 1 "^$inside .* has ended"


group=/sys/fs/cgroup$(show ControlGroup)
is 'MemoryMax= is the limit of its cgroup' "$(cat "$group/memory.max")" $((4 << 30))
used=$(cat "$group/memory.current")
echo "# memory of the service, one engine: $((used >> 20)) MiB, peak $(($(cat "$group/memory.peak" 2>/dev/null || echo 0) >> 20)) MiB; $(wc -l <"$group/cgroup.procs") processes"
holds 'the tracer is in that cgroup' grep -qx "$(tracer_of "$engine")" "$group/cgroup.procs"
watched=$(count "^watching $engine ")
systemctl set-property --runtime $SERVICE MemoryMax=$((used / 2))
await 'too little memory: the tracer is killed, and told' 1 'its tracer has ended with an error; it is started again'
is 'OOMPolicy=continue: watch goes on' "$(show ActiveState) $(show MainPID)" "active $main"
systemctl set-property --runtime $SERVICE MemoryMax=4G
# What follows is about the one that runs.
main=$(show MainPID) restarts=$(show NRestarts)
await 'with enough of it the engine is watched again' $((watched + 1)) "^watching $engine "


tracer=$(tracer_of "$engine")
watched=$(count "^watching $engine ")
kill -KILL "$main"
holds 'kill -9: systemd starts it again' wait_for $LONG is_main_other_than "$main"
is 'kill -9: once' "$(show NRestarts)" $((restarts + 1))
main=$(show MainPID)
await 'kill -9: the engine is watched again' $((watched + 1)) "^watching $engine "
is 'kill -9: the old tracer has gone' "$(test -e "/proc/$tracer"; echo $?)" 1
mkdir -p /run/systemd/system/$SERVICE.service.d
printf '[Service]\nWatchdogSec=20\nTimeoutAbortSec=60\n' >/run/systemd/system/$SERVICE.service.d/watchdog.conf
systemctl daemon-reload
systemctl restart $SERVICE
main=$(show MainPID)
is 'restart: it is active' "$(show ActiveState)" active
watched=$(count "^watching $engine ")
wait_for $LONG has_count $((watched + 1)) "^watching $engine "
kill -STOP "$main"
holds 'a watch that hangs: the watchdog has it started again' wait_for $LONG is_main_other_than "$main"
holds 'it was the watchdog' sh -c "journalctl -u $SERVICE -o cat --no-pager | grep -qiE 'watchdog timeout'"
main=$(show MainPID)


watched=$(count "^watching $engine ")
wait_for $LONG has_count $((watched + 1)) "^watching $engine " || true
systemctl stop $SERVICE
is 'stop ends with 0' $? 0
is 'it ended by itself, well' "$(show ActiveState) $(show Result) $(show ExecMainStatus)" 'inactive success 0'
is 'no link, program or perf event is left' "$(attached)" "$before"
is 'no process is left' "$(pgrep -fc '^ferrum-bpftrace|/usr/bin/ferrum-bpftrace')" 0
is 'the engine runs' "$(systemctl is-active fbt-engine) $(show MainPID fbt-engine)" "active $engine"
holds 'and its code is as it was' unharmed "$engine"
is 'the filter of the tracers let them be' "$(count 'by our filter')" 0
is 'nothing was refused' "$(count 'Operation not permitted|Permission denied')" 0


allowed=$(sed -n 's/^SystemCallFilter=//p' /lib/systemd/system/$SERVICE.service)
cat >/run/systemd/system/$SERVICE.service.d/calls.conf <<END
[Service]
SystemCallFilter=
SystemCallLog=~$allowed
END
systemctl daemon-reload
seen=$(dmesg | grep 'type=1326' | grep -c 'exe="/usr/bin/ferrum-bpftrace"')
marks=$(count "^watching $engine ")
dumps=$(count 'dump .*_manual_calls\.\*')
systemctl start $SERVICE
wait_for $LONG has_count $((marks + 1)) "^watching $engine "
kill -USR1 "$(show MainPID)"
wait_for $LONG has_count $((dumps + 1)) 'dump .*_manual_calls\.\*'
systemctl stop $SERVICE
dmesg | grep 'type=1326' | grep 'exe="/usr/bin/ferrum-bpftrace"' | tail -n +$((seen + 1)) >/run/calls
# The numbers are those of x86-64; 317 is seccomp.
sed -nE 's/.*comm="([^"]*)".*syscall=([0-9]+).*/# beyond the unit: \1 makes system call \2/p' /run/calls | sort | uniq -c | sort -rn | head -n 20
is 'the unit allows all calls that it makes' "$(wc -l </run/calls)" 0

echo "# the service's log:"
log | tail -n 60 | cut -c1-180 | sed 's/^/#   /'
echo "FBT-END $nonce"
stty -F /dev/console onlcr 2>/dev/null
sleep 2
echo o >/proc/sysrq-trigger
sleep 30
