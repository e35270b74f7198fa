#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# Without root: each use works with exactly its capabilities, and each missing one is named with a
# remedy. docs/privileges.md, "Without root", has the same table.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/gpu/lib.sh"
command -v setpriv >/dev/null || { echo 'SKIP there is no setpriv' && exit 77; }

# User ids that no user has.
us=64001
them=64002
# Open to every user, whatever the repository's folder allows.
bin=$TMP/bin
chmod 755 "$TMP"
mkdir "$bin" "$TMP/theirs"
cp "$FBT" "$bin/ferrum-bpftrace"
cp "$FBT_ENGINE" "$SHIM" "$GPU_ENGINE" "$FAKES/libcuda.so.1" "$FAKES/$CUPTI" "$bin"
cp "$FBT_ENGINE" "$TMP/theirs/engine"
chown -R $them:$them "$TMP/theirs"
chmod -R u=rwX,go= "$TMP/theirs"
chmod -R a+rX "$bin"
mkdir "$TMP/ours"
chown $us:$us "$TMP/ours"

# shellcheck disable=SC2317
has_become()
{
	case $(readlink "/proc/$1/exe") in
	'' | */bash | */setpriv | */env) return 1 ;;
	esac
}

# as USER COMMAND…: starts COMMAND in the background and waits until it runs; its id is in PID
as()
{
	local user=$1

	shift
	setpriv --reuid "$user" --regid "$user" --clear-groups "$@" >/dev/null 2>&1 </dev/null &
	PID=$!
	wait_for 60 has_become $PID || not_ok "$* runs"
}

# with CAPABILITIES TOOL-OPTION…: runs the tool with only these; its messages are in $OUT.err, its
# status in STATUS
with()
{
	local set=-all

	[ -z "$1" ] || set=-all,+${1//,/,+}
	shift
	rm -f "$TMP/ours/"*
	(cd "$TMP/ours" && exec setpriv --reuid $us --regid $us --clear-groups --inh-caps="$set" \
		--ambient-caps="$set" --bounding-set="$set" "$bin/ferrum-bpftrace" "$@" \
		>"$OUT.report" 2>"$OUT.err" </dev/null)
	STATUS=$?
}

# with_until FILE REGEX CAPABILITIES TOOL-OPTION…: the same, but ends the tool once a line of the
# file matches
with_until()
{
	local file=$1 regex=$2 shell

	shift 2
	rm -f "$file"
	(with "$@" && exit "$STATUS") &
	shell=$!
	wait_for 60 grep -qsE -- "$regex" "$file"
	pkill -TERM -P $shell
	wait $shell
	STATUS=$?
}

out=(--report none --trace none --profile profile)

# works NAME CAPABILITIES TOOL-OPTION…: the tool works and has steps
works()
{
	local name="$1 with $2" set=$2

	shift 2
	with "$set" "${out[@]}" "$@"
	is "$name" "$STATUS" 0
	holds "$name: steps" grep -q '"event":"step_prof"' "$TMP/ours/profile"
	[ "$STATUS" = 0 ] || sed 's/^/# /' "$OUT.err"
}

# works_on_gpu NAME CAPABILITIES TOOL-OPTION…: the tool works and has GPU records
works_on_gpu()
{
	local name="$1 with $2" set=$2

	shift 2
	with_until "$TMP/ours/profile" '"event":"gpu_prof"' "$set" "${out[@]}" "$@"
	is "$name" "$STATUS" 0
	holds "$name: GPU records" grep -q '"event":"gpu_prof"' "$TMP/ours/profile"
	[ "$STATUS" = 0 ] || sed 's/^/# /' "$OUT.err"
}

# lacks NAME CAPABILITIES WANTED TOOL-OPTION…: the tool refuses, in one line that names WANTED
lacks()
{
	local name="$1 without $3" wanted=$3
	local set=$2

	shift 3
	with "$set" "${out[@]}" "$@"
	is "$name: fails" "$STATUS" 1
	has "$name: says so" "$OUT.err" "$wanted"
	is "$name: in one line" "$(wc -l <"$OUT.err")" 1
}

# names NAME CAPABILITIES WANTED TOOL-OPTION…: the trace continues, and a line says what WANTED is
# for
names()
{
	local name="$1 without $3" wanted=$3
	local set=$2

	shift 3
	with_until "$OUT.err" "$wanted" "$set" "${out[@]}" "$@"
	is "$name: the trace goes on" "$STATUS" 0
	has "$name: says so" "$OUT.err" "$wanted"
}

# Since Linux 6.15 CAP_PERFMON allows reading the memory maps of other processes.
kernel=$(uname -r | awk -F '[.-]' '{ print $1 * 1000 + $2 }')

engine=("$bin/engine" --steps 0 --sleep-us 2000)
as $us "${engine[@]}"
own=$PID
as $them "${engine[@]}"
other=$PID
as $them "$TMP/theirs/engine" --steps 0 --sleep-us 2000
private=$PID

step=(--step engine_step -n 5)
# Perf uprobes may need more than CAP_PERFMON, see perf_uprobes.sh.
with bpf,perfmon "${out[@]}" -p $own "${step[@]}"
if [ "$kernel" -lt 6006 ] && grep -q 'uprobes only with CAP_SYS_ADMIN' "$OUT.err"; then
	echo 'SKIP this kernel allows uprobes only with CAP_SYS_ADMIN'
	exit 77
fi
works 'own process' bpf,perfmon -p $own "${step[@]}"
lacks 'own process' perfmon CAP_BPF -p $own "${step[@]}"
lacks 'own process' bpf CAP_PERFMON -p $own "${step[@]}"
lacks 'own process' '' 'CAP_BPF and CAP_PERFMON' -p $own "${step[@]}"

# The same with file capabilities, as in docs/privileges.md. Where those have no effect, this is
# skipped.
if command -v setcap >/dev/null && ! findmnt -no OPTIONS -T "$bin" | grep -q nosuid &&
	setcap cap_bpf,cap_perfmon+ep "$bin/ferrum-bpftrace" 2>/dev/null; then
	rm -f "$TMP/ours/"*
	(cd "$TMP/ours" && exec setpriv --reuid $us --regid $us --clear-groups \
		"$bin/ferrum-bpftrace" "${out[@]}" -v -p $own "${step[@]}" >"$OUT.report" 2>"$OUT.err" </dev/null)
	is "own process with the file's capabilities" $? 0
	holds "own process with the file's capabilities: steps" \
		grep -q '"event":"step_prof"' "$TMP/ours/profile"
	has "own process with the file's capabilities: these stay" "$OUT.err" \
		'stay: CAP_PERFMON CAP_BPF$'
	setcap -r "$bin/ferrum-bpftrace"
fi

works "another user's process" bpf,perfmon,sys_ptrace -p $other "${step[@]}"
if [ "$kernel" -lt 6015 ]; then
	lacks "another user's process" bpf,perfmon CAP_SYS_PTRACE -p $other "${step[@]}"
else
	works "another user's process, Linux 6.15" bpf,perfmon -p $other "${step[@]}"
fi

works 'a program that its user alone may read' bpf,perfmon,sys_ptrace,dac_read_search -p $private \
	"${step[@]}"
lacks 'a program that its user alone may read' bpf,perfmon,sys_ptrace CAP_DAC_READ_SEARCH \
	-p $private "${step[@]}"
lacks 'a program that its user alone may read' sys_ptrace,perfmon,dac_read_search CAP_BPF \
	-p $private "${step[@]}"

mv "$bin/engine" "$bin/old"
rm "$bin/old"
works 'a program that is deleted' \
	bpf,perfmon,sys_ptrace,dac_read_search,checkpoint_restore -p $other "${step[@]}"
lacks 'a program that is deleted' bpf,perfmon,sys_ptrace,dac_read_search CAP_CHECKPOINT_RESTORE -p $other \
	"${step[@]}"
cp "$FBT_ENGINE" "$bin/engine"

works '-- COMMAND' bpf,perfmon --step engine_step -- "$bin/engine" --steps 20
# The child continues until one of its steps was seen.
works '-f' bpf,perfmon -f --step engine_step -- /bin/sh -c "$bin/engine --steps 0 --sleep-us 2000 &
for i in \$(seq 300); do grep -q step_prof profile && break; sleep 0.1; done; kill \$!"
as $us "${engine[@]}"
works '-a' bpf,perfmon,sys_ptrace,dac_read_search -a "${step[@]}"
with bpf,perfmon --list-steps -p "$PID"
is '--list-steps with bpf,perfmon' "$STATUS" 0
has '--list-steps: names it' "$OUT.report" engine_step
with perfmon --list-steps -p "$PID"
is '--list-steps without CAP_BPF: fails' "$STATUS" 1
has '--list-steps without CAP_BPF: says so' "$OUT.err" CAP_BPF
kill $own $other $private "$PID"

# The child that looks for candidates executes this program once more, and gets its capabilities in
# the same way.
as $us "${engine[@]}" --compute-us 500 # one that only sleeps may look idle
seek=(-p "$PID" --step run_engine_never --wait-step --report none --trace none --profile none)
set=-all,+bpf,+perfmon
setpriv --reuid $us --regid $us --clear-groups --inh-caps=$set --ambient-caps=$set --bounding-set=$set \
	"$bin/ferrum-bpftrace" "${seek[@]}" 2>"$TMP/ambient.err" </dev/null &
seekers=$!
if command -v setcap >/dev/null && ! findmnt -no OPTIONS -T "$bin" | grep -q nosuid &&
	cp "$bin/ferrum-bpftrace" "$bin/capable" &&
	setcap cap_bpf,cap_perfmon,cap_setpcap,cap_kill+ep "$bin/capable" 2>/dev/null &&
	"$bin/capable" --version >"$OUT.report" 2>&1; then
	setpriv --reuid $us --regid $us --clear-groups "$bin/capable" "${seek[@]}" \
		2>"$TMP/file.err" </dev/null &
	seekers+=" $!"
	"$bin/capable" "${seek[@]}" 2>"$TMP/root.err" </dev/null &
	seekers+=" $!"
fi
for way in ambient file root; do
	[ -e "$TMP/$way.err" ] || continue
	wait_for 60 grep -qE 'calls/s|short of CPUs' "$TMP/$way.err"
	has "candidates, $way capabilities: they are named" "$TMP/$way.err" \
		'engine_step.*calls/s|short of CPUs'
done
# shellcheck disable=SC2086
kill -TERM $seekers
kill "$PID"

# GPU records: the shared memory is among the process's descriptors.
gpu=(env FERRUM_CUPTI_LIBRARY="$bin/$CUPTI" "$bin/gpu_engine" --steps 0 --script 'k50,h20,z1000,s')
gpu_step=(--step gpu_engine_step)
cannot='GPU records.*CAP_DAC_READ_SEARCH and CAP_SYS_PTRACE'
as $us env CUDA_INJECTION64_PATH="$bin/libferrum_cupti.so" "${gpu[@]}"
own=$PID
as $them env CUDA_INJECTION64_PATH="$bin/libferrum_cupti.so" "${gpu[@]}"
other=$PID
works_on_gpu 'own GPU records' bpf,perfmon -p $own "${gpu_step[@]}"
works_on_gpu "another user's GPU records" bpf,perfmon,sys_ptrace,dac_read_search -p $other "${gpu_step[@]}"
names "another user's GPU records" bpf,perfmon,sys_ptrace "$cannot" -p $other "${gpu_step[@]}"
[ "$kernel" -lt 6015 ] || names "another user's GPU records, no CAP_SYS_PTRACE" \
	bpf,perfmon,dac_read_search "$cannot" -p $other "${gpu_step[@]}"
kill $own $other

if [ "$(uname -m)" = x86_64 ]; then
	as $us "${gpu[@]}"
	own=$PID
	as $them "${gpu[@]}"
	other=$PID
	inject=(--gpu=inject --step gpu_engine_step)
	names "inject into another user's process" bpf,perfmon,sys_ptrace,dac_read_search \
		CAP_DAC_OVERRIDE -p $other "${inject[@]}"
	names "inject into another user's process" bpf,perfmon,dac_override CAP_SYS_PTRACE -p $other \
		"${inject[@]}"
	works_on_gpu "inject into another user's process" bpf,perfmon,sys_ptrace,dac_override -p $other \
		"${inject[@]}"
	set=bpf,perfmon,sys_ptrace
	[ "$(cat /proc/sys/kernel/yama/ptrace_scope 2>/dev/null || echo 0)" != 0 ] || set=bpf,perfmon
	works_on_gpu 'inject into an own process' $set -p $own "${inject[@]}"
	kill $own $other

	# The interpreter itself, so that the process has its name.
	cp "$FBT_BUILD/libferrum_python.so" tests/live/python/endless.py "$bin"
	python=("$(realpath /usr/bin/python3)" -I "$bin/endless.py")
	python_step=(--step py:__main__:step -n 5)
	# Its steps sleep, and its start hardly does.
	# shellcheck disable=SC2317,SC2329 # wait_for calls it
	makes_steps()
	{
		[ "$(awk '/^voluntary/ { print $2 }' "/proc/$PID/status")" -gt 50 ]
	}
	as $us env LD_PRELOAD="$bin/libferrum_python.so" "${python[@]}"
	wait_for 60 makes_steps
	works 'steps of a preloaded library' bpf,perfmon -p "$PID" "${python_step[@]}"
	kill "$PID"
	as $us "${python[@]}"
	wait_for 60 makes_steps
	with $set "${out[@]}" -p "$PID" --python=inject "${python_step[@]}"
	is 'inject into an own interpreter without CAP_CHECKPOINT_RESTORE: no steps' "$STATUS" 1
	has 'inject into an own interpreter without CAP_CHECKPOINT_RESTORE: says so' "$OUT.err" \
		'was not injected: .*CAP_CHECKPOINT_RESTORE'
	is 'nothing is injected that cannot be traced' "$(grep -c ferrum "/proc/$PID/maps")" 0
	works 'inject into an own interpreter' $set,checkpoint_restore -p "$PID" --python=inject "${python_step[@]}"
	with $set "${out[@]}" -p "$PID" "${python_step[@]}"
	has 'a later trace without CAP_CHECKPOINT_RESTORE: says so' "$OUT.err" CAP_CHECKPOINT_RESTORE
	with $set "${out[@]}" -p "$PID" -d 0.1
	is 'a later trace without CAP_CHECKPOINT_RESTORE: its calls are traced all the same' "$STATUS" 0
	kill "$PID"
fi
finish
