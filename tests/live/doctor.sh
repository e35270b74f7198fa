#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# shellcheck disable=SC2034
# doctor: what it says of a machine and a process must agree with what -p then does, in each failing
# case. doctor must leave nothing behind and not disturb the process.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/gpu/lib.sh"

nothing=(--trace none --profile none)

# doctor WANTED-STATUS NAME ARGUMENT…: its output is in $TMP/doctor. The words in under go before
# the program.
under=()
program=$FBT
doctor()
{
	local wanted=$1 name=$2

	shift 2
	"${under[@]}" "$program" doctor "$@" >"$TMP/doctor" 2>"$TMP/err" </dev/null
	is "$name: exit status $wanted" $? "$wanted"
	holds "$name: all that it says is in its output" [ ! -s "$TMP/err" ]
}

# says NAME MARK CHECK TEXT: a check has that mark, and TEXT in its finding or remedy
says()
{
	holds "$1" python3 - "$2" "$3" "$4" "$TMP/doctor" <<-'END'
		import re, sys
		mark, check, text, path = sys.argv[1:]
		blocks = re.split(r"\n(?=  (?:ok|warn|no|-)\s)", open(path).read().split("\n\n-p ")[0])
		found = [" ".join(b.split()) for b in blocks if b.startswith(f"  {mark:<4}  {check} ")]
		if not any(text in b for b in found):
		    sys.exit(f"# no '{mark} {check}' with '{text}' in:\n" + "\n".join(blocks))
	END
}

# agrees NAME PID[,PID…] OPTION…: -p PID does what doctor said
agrees()
{
	local name=$1 pid=$2 said did

	shift 2
	# shellcheck disable=SC2086
	"${under[@]}" "$program" doctor ${pid//,/ } "$@" >"$TMP/doctor" 2>"$TMP/err" </dev/null
	said=$?
	timeout 120 "${under[@]}" "$program" -p "$pid" -d 0.2 --report none "$@" >"$OUT.report" \
		2>"$OUT.err" </dev/null
	did=$?
	[ $said = $did ] || sed 's/^/# /' "$TMP/doctor" "$OUT.err"
	is "$name: -p does as doctor says ($said)" $did $said
}

mkdir "$TMP/empty"
(
	cd "$TMP/empty" || exit 1
	start=$(date +%s%N)
	doctor 0 'this machine'
	echo "# it took $((($(date +%s%N) - start) / 1000000)) ms"
	exit "$FAILED"
) || FAILED=1
has 'this machine: the kernel' "$TMP/doctor" "kernel +Linux $(uname -r), $(uname -m)\$"
says 'this machine: a trial' ok trial call
says 'this machine: a trial of a probe' ok trial step
has 'this machine: the end' "$TMP/doctor" '^-p PID would work'
for check in BTF tracing 'other users' 'bpf\(2\)' uprobes lockdown memlock 'PID namespace' clock memory \
	files 'other tracers' --otlp GPU shim 'engines?'; do
	has "this machine: $check" "$TMP/doctor" "^  (ok|warn|-) +$check "
done
is 'this machine: no file is left' "$(ls "$TMP/empty")" ''
# The names have columns of their own. Other tracers and engines on this machine may vary, and a price is
# told once something was counted.
grep -E '^  (ok|warn|no|-) ' "$TMP/doctor" | cut -c9-24 | sed 's/ *$//' | grep -vE '^(engine|explain)' >"$TMP/names"
"$FBT" doctor --report json >"$TMP/json" 2>"$TMP/err"
is 'JSON: exit status 0' $? 0
holds 'JSON: the same checks' python3 - "$TMP/json" "$TMP/names" <<-'END'
	import json, sys
	d = json.load(open(sys.argv[1]))
	assert d["works"] is True and all(c["pid"] is None for c in d["checks"])
	assert all(c["remedy"] for c in d["checks"] if c["status"] in ("warn", "no"))
	names = [c["name"] for c in d["checks"] if not c["name"].startswith(("engine", "explain"))]
	assert names == open(sys.argv[2]).read().splitlines(), names
END
doctor 0 'no report' --report none
is 'no report: nothing is printed' "$(cat "$TMP/doctor")" ''

nobody=$((1 << 22))
while kill -0 $nobody 2>/dev/null; do nobody=$((nobody - 1)); done
doctor 1 'no such process' $nobody
says 'no such process: says so' no process 'no such process'
doctor 1 'kernel thread' 2
says 'kernel thread: says so' no process 'kernel thread'
for bad in 'abc' '-a' '-- true' '--replay x' '1 --step /(/'; do
	# shellcheck disable=SC2086
	"$FBT" doctor $bad >/dev/null 2>"$TMP/err"
	is "usage: doctor $bad" "$? $(grep -c . "$TMP/err")" '2 1'
done

# One that only sleeps may look idle for as long as it is looked at.
start_engine --steps 0 --sleep-us 2000 --compute-us 500
go
doctor 0 'engine' "$ENGINE" "${nothing[@]}"
says 'engine: what it is' ok process "$FBT_ENGINE"
has 'engine: its calls are counted' "$TMP/doctor" 'system calls +[1-9][0-9,]* a second'
says 'engine: it is not known' warn 'step function' intervals
says 'engine: a candidate' warn 'step function' "'engine_step'"
doctor 0 'its step' "$ENGINE" --step engine_step "${nothing[@]}"
says 'its step: where' ok 'step function' "$FBT_ENGINE+0x"
agrees 'its step' "$ENGINE" --step engine_step "${nothing[@]}"
agrees 'no such step' "$ENGINE" --step no_such_step "${nothing[@]}"
says 'no such step: says so' no 'step function' 'no_such_step'
agrees 'too many steps' "$ENGINE" --step 'libc.so.6:pthread_*' "${nothing[@]}"
agrees 'a step to come' "$ENGINE" --step no_such_step --wait-step "${nothing[@]}"
agrees 'metadata' "$ENGINE" "${nothing[@]}"
FERRUM_PROFILE_CONCURRENCY=many agrees 'bad metadata' "$ENGINE" "${nothing[@]}"
agrees 'probes alone' "$ENGINE" --detail probes "${nothing[@]}"
says 'probes alone: nothing to measure' no 'step function' '--detail probes'
agrees 'probes and a step' "$ENGINE" --step engine_step --detail probes "${nothing[@]}"
says 'probes and a step: a step has its price, a call has none' ok trial 'a step, rings'
is 'probes and a step: calls are not counted' "$(grep -c 'system calls' "$TMP/doctor")" 0
# One process of several suffices.
sleep 600 &
other=$!
agrees 'one of two has it' "$other,$ENGINE" --step engine_step "${nothing[@]}"
says 'one of two has it: the other one has not' warn 'step function' engine_step
agrees 'neither has it' "$other,$ENGINE" --step no_such_step "${nothing[@]}"
agrees 'one of two, and probes alone' "$other,$ENGINE" --step engine_step --detail probes "${nothing[@]}"
agrees 'one of two cannot be searched' "$other,$ENGINE" --step '*' "${nothing[@]}"
kill $other
sh -c '"$0" --steps 0 --sleep-us 2000; :' "$FBT_ENGINE" 7>&- &
launcher=$!
wait_for 60 pgrep -P $launcher >"$TMP/child"
wait_for 60 [ "/proc/$(cat "$TMP/child")/exe" -ef "$FBT_ENGINE" ]
agrees 'a launcher' $launcher --step engine_step "${nothing[@]}"
says 'a launcher: what has it' no 'step function' "child $(pgrep -P $launcher)"
agrees 'a launcher, followed' $launcher -f --step engine_step "${nothing[@]}"
says 'a launcher, followed: what has it' - 'step function' "child $(pgrep -P $launcher)"
agrees 'a launcher, followed, no such step' $launcher -f --step no_such_step "${nothing[@]}"
agrees 'a launcher, followed, probes alone' $launcher -f --detail probes "${nothing[@]}"
kill "$(pgrep -P $launcher)"
wait $launcher

stop_process "$ENGINE"
doctor 0 'stopped' "$ENGINE" "${nothing[@]}"
says 'stopped: says so' warn state CONT
says 'stopped: it makes no calls' ok 'system calls' ' 0 a second'
kill -CONT "$ENGINE"

# In a folder where no file can be created, and in one where none is needed.
if mount -t tmpfs -o ro tmpfs "$TMP/empty"; then
	under=(env -C "$TMP/empty")
	agrees 'read-only folder' "$ENGINE"
	says 'read-only folder: says so' no files 'Read-only file system'
	agrees 'read-only folder, no files' "$ENGINE" "${nothing[@]}"
	agrees 'read-only folder, files elsewhere' "$ENGINE" --dir "$TMP"
	umount "$TMP/empty"
fi

# Users and namespaces. Any user may open these files, so that only capabilities are tested.
cp "$FBT" "$TMP/tool"
chmod 755 "$TMP"
program=$TMP/tool
stranger=(setpriv --reuid 65534 --regid 65534 --clear-groups)
under=("${stranger[@]}")
agrees 'nobody' "$ENGINE" "${nothing[@]}"
says 'nobody: what is missing' no tracing 'CAP_BPF, CAP_PERFMON'
three=+bpf,+perfmon,+sys_ptrace
under=("${stranger[@]}" --inh-caps "$three" --ambient-caps "$three")
agrees 'three capabilities' "$ENGINE" --step "$(basename "$FBT_ENGINE"):engine_step" "${nothing[@]}"
two=+bpf,+sys_ptrace
under=("${stranger[@]}" --inh-caps "$two" --ambient-caps "$two")
agrees 'without CAP_PERFMON' "$ENGINE" "${nothing[@]}"
says 'without CAP_PERFMON: says so' no tracing CAP_PERFMON
two=+bpf,+perfmon
under=("${stranger[@]}" --inh-caps "$two" --ambient-caps "$two")
agrees 'without CAP_SYS_PTRACE' "$ENGINE" "${nothing[@]}"
says 'without CAP_SYS_PTRACE: says so' warn 'other users' CAP_SYS_PTRACE
under=(setpriv "--bounding-set=-bpf,-perfmon,-sys_admin")
doctor 1 'withheld capabilities' "${nothing[@]}"
says 'withheld capabilities: sudo would not help' no tracing --cap-add
under=()
program=$FBT
if unshare -Ur true 2>/dev/null; then
	under=(unshare -Ur)
	agrees 'user namespace' "$ENGINE" "${nothing[@]}"
	says 'user namespace: says so' no 'user namespace' host
fi
under=(unshare -fp --mount-proc)
agrees 'PID namespace' 1 "${nothing[@]}"
says 'PID namespace: says so' no 'PID namespace' hostPID
# shellcheck disable=SC2016
under=(unshare -m sh -c 'mount -t tmpfs none /sys/kernel/btf && exec "$0" "$@"')
agrees 'no BTF' "$ENGINE" "${nothing[@]}"
says 'no BTF: says so' no BTF CONFIG_DEBUG_INFO_BTF
if [ -d /sys/kernel/security ]; then
	# shellcheck disable=SC2016
	under=(unshare -m sh -c 'mount -t tmpfs none /sys/kernel/security &&
		echo "none integrity [confidentiality]" >/sys/kernel/security/lockdown && exec "$0" "$@"')
	doctor 1 'lockdown' "${nothing[@]}"
	says 'lockdown: says so' no lockdown confidentiality
fi
if [ "$(uname -m)" = x86_64 ]; then
	under=("$FBT_BUILD/tests/live_inject_seccomp" docker --)
	agrees "docker's seccomp filter" "$ENGINE" "${nothing[@]}"
	says "docker's seccomp filter: says so" no 'bpf(2)' 'seccomp'
fi
under=()

# Probes have been tried many times by now, but never in the engine: its code is unchanged.
for _ in 1 2 3; do
	doctor 0 'again' "$ENGINE" --step engine_step "${nothing[@]}"
done
kill "$ENGINE"
wait "$ENGINE"
start_engine --steps 0 --sleep-us 2000
go
doctor 0 'fresh' "$ENGINE" --step engine_step "${nothing[@]}"
touched=$(awk -v file="$FBT_ENGINE" '/^[0-9a-f]+-/ { code = $2 ~ /x/ && $6 == file }
	/^(Anonymous|Private_Dirty):/ && code { kb += $2 } END { print kb + 0 }' "/proc/$ENGINE/smaps")
is 'its code is untouched' "$touched" 0
is 'it is traced by nobody' "$(awk '/^TracerPid/ { print $2 }' "/proc/$ENGINE/status")" 0
kill "$ENGINE"
wait "$ENGINE"

# Without symbols.
strip -o "$TMP/stripped" "$FBT_ENGINE"
FBT_ENGINE=$TMP/stripped start_engine --steps 0 --sleep-us 2000
go
agrees 'stripped' "$ENGINE" "${nothing[@]}"
# What a busy machine makes of its stacks may be a step, too: then that is named.
want=--symbols
grep -q "use --step '$TMP/stripped+0x" "$TMP/doctor" && want=stacks
says 'stripped: what to do' warn 'step function' $want
agrees 'stripped, with a step' "$ENGINE" --step engine_step "${nothing[@]}"
doctor 0 'stripped, with symbols' "$ENGINE" --step engine_step --symbols "$FBT_ENGINE" "${nothing[@]}"
says 'stripped, with symbols: found' ok 'step function' engine_step
kill "$ENGINE"
wait "$ENGINE"

# A function that the kernel refuses to probe. doctor knows without a probe in the engine.
if [ "$(uname -m)" = x86_64 ]; then
	"${CC:-gcc}" -shared -fPIC -o "$TMP/libllama.so" tests/fake/unprobeable_step.c
	start_waiting env LD_PRELOAD="$TMP/libllama.so" "$FBT_ENGINE" --wait --steps 0 --sleep-us 2000 \
		--truth "$TMP/truth.json"
	go
	agrees 'unprobeable, named' "$ENGINE" --step late_step "${nothing[@]}"
	says 'unprobeable, named: says so' no 'step probes' 'cannot be probed'
	agrees 'unprobeable, found' "$ENGINE" "${nothing[@]}"
	says 'unprobeable, found: says so' warn 'step probes' 'intervals'
	doctor 0 'engines'
	says 'engines: it is one' ok engine "-p $ENGINE"
	kill "$ENGINE"
	wait "$ENGINE"
fi

# Python, with the library and without it.
if [ "$(uname -m)" = x86_64 ]; then
	for preload in '' "$(realpath "$FBT_BUILD/libferrum_python.so")"; do
		start_waiting env LD_PRELOAD="$preload" /usr/bin/python3 -c 'import json, sys
print("ready", flush=True)
sys.stdin.read()'
		agrees "Python${preload:+ with its library}, required" "$ENGINE" --python require \
			--step py:json.decoder:JSONDecoder.decode "${nothing[@]}"
		exec 7>&-
		wait "$ENGINE"
	done
	sleep 600 &
	agrees 'no Python, required' $! --python require "${nothing[@]}"
	says 'no Python, required: says so' no Python 'does not run CPython'
	kill $!
fi

# CUDA, with the shim and without it.
gpu_env=(CUDA_INJECTION64_PATH=)
start_gpu --linger-ms 60000 --steps 30 --script k50,z20,s
go
wait_for 120 is_done
doctor 0 'no shim' "$ENGINE" "${nothing[@]}"
says 'no shim: what to do' warn 'GPU records' engine-env
if [ "$(uname -m)" = x86_64 ]; then
	has 'no shim: whether it can be injected' "$TMP/doctor" '^  (ok|-) +--gpu=inject +would '
fi
agrees 'no shim, required' "$ENGINE" --gpu require "${nothing[@]}"
end_gpu
gpu_env=()
start_gpu --linger-ms 60000 --steps 30 --script k50,z20,s
go
wait_for 120 is_done
doctor 0 'shim' "$ENGINE" "${nothing[@]}"
says 'shim: idle' ok 'GPU records' idle
agrees 'shim, required' "$ENGINE" --gpu require "${nothing[@]}"
sleep 600 &
agrees 'shim in one of two, required' "$!,$ENGINE" --gpu require "${nothing[@]}"
kill $!
rm -f "$TMP/calls"
doctor 0 'shim' "$ENGINE" "${nothing[@]}"
holds 'shim: nothing was asked of CUPTI' [ ! -s "$TMP/calls" ]
run_tool -p "$ENGINE" --step gpu_engine_step
wait_attached "$TOOL"
doctor 0 'another tracer' "$ENGINE" "${nothing[@]}"
says 'another tracer: which' warn 'GPU records' "process $TOOL"
says 'another tracer: on the tracepoints too' - 'other tracers' tracepoints
stop_tool
end_gpu
finish
