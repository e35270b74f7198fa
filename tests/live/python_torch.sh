#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# PyTorch's own profiler in the windows of a flag (--torch-trace), on a double of it that writes down what
# it was asked for: what is called, on which thread, and when; what is exported; and that nothing of it
# reaches the engine when it fails.
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/live/python/lib.sh
. tests/live/python/lib.sh
# shellcheck source=tests/live/flag/lib.sh
. tests/live/flag/lib.sh

python=/usr/bin/python3
LOG=$TMP/log

# start MODE [VARIABLE=VALUE…]: the engine, and the tool, which waits for the flag
start()
{
	local mode=$1

	shift
	rm -f "$LOG" "$LOG.child" "$TMP/end" "$TMP/idle" "$TMP/hang"
	: >"$LOG"
	start_waiting "$python" tests/live/python/torch_engine.py "$LOG" "$mode" "$TMP"
	run_waiting -p "$ENGINE" --python=inject --torch-trace --step 'py:__main__:Engine.step' \
		--step 'py:__main__:Engine.forward' "${MORE[@]}"
	go
}

# called NAME [COUNT]: the engine's double was asked for that, so many times
# shellcheck disable=SC2317,SC2329 # called by name
called()
{
	[ "$(grep -c "\"call\": \"$1\"" "$LOG")" -ge "${2:-1}" ]
}

await()
{
	wait_for 30 called "$@" || { not_ok "the engine's $1 is called" && finish; }
}

# end NAME [LINE]: the tool and the engine; the engine ends as ever, and the tool says LINE
end()
{
	kill -INT "$TOOL" 2>/dev/null
	wait "$TOOL"
	rm -f "$FLAG"
	touch "$TMP/end"
	wait "$ENGINE"
	is "$1: the engine ends as ever" $? 0
	fact "$1: its exceptions are its own" "T['raised'] == T['kept'] > 0"
	[ -z "${2:-}" ] || has "$1: the tool says so" "$OUT.err" "$2"
	is "$1: nothing is left in the engine's folders" "$(find /dev/shm /tmp -maxdepth 1 -name 'ferrum-??????' | wc -l)" 0
}

calls()
{
	grep -vE '"(step|hang|idle)"' "$LOG" | python3 -c 'import json, sys
print(*[json.loads(line)["call"] for line in sys.stdin])'
}

# shellcheck disable=SC2317,SC2329 # called by name
# files FACT: Python over K, ET and P: Kineto's trace, the execution trace and the profile of the window
files()
{
	python3 - "$DIR" "$LOG" "$TMP/truth.json" "$1" <<'EOF'
import glob, json, os, sys
folder, log, truth, fact = sys.argv[1:]
def last(name):
    return sorted(glob.glob(folder + '/' + name))[-1]
K = json.load(open(last('kineto_*.json')))
ET = json.load(open(last('pytorch_et_*.json')))
P = [json.loads(line) for line in open(last('ferrum_profile_*.jsonl'))]
L = [json.loads(line) for line in open(log)]
T = json.load(open(truth))
W = P[-1]['shape']
S = [e['shape'] for e in P if e['event'] == 'step_prof']
E = K['traceEvents']
steps = [e for e in E if e['name'].startswith('ProfilerStep') and e['args']['ferrum.step'] == 'Engine.step']
ops = [e for e in E if e.get('cat') == 'cpu_op']
named = [os.path.basename(last(n)).split('pid', 1)[1].split('.')[0]
         for n in ('kineto_*', 'pytorch_et_*', 'ferrum_profile_*', 'ferrum_trace_*')]
modes = [os.stat(p).st_mode & 0o777 for p in glob.glob(folder + '/*')]
def inside(e):
    return any(s['ts'] <= e['ts'] and e['ts'] + e['dur'] <= s['ts'] + s['dur'] and s['tid'] == e['tid'] for s in steps)
at = max(n for n, l in enumerate(L) if l['call'] == 'enable') if any(l['call'] == 'enable' for l in L) else 0
seen = sum(l['call'] == 'step' for l in L[at:])
sys.exit(not eval('(' + fact + ')', globals()))
EOF
}

MORE=()
export SUDO_UID=65534 SUDO_GID=65534
start new
unset SUDO_UID SUDO_GID
has 'it is said before that steps take longer' "$OUT.err" '5 times as long'
has 'and what GPU records and the profiler do to each other' "$OUT.err" 'gpu off avoids both'
open_window 1
await step 40
close_window 1
await disable
# The first window may have had more.
steps=$(grep -c '"call": "step"' "$LOG")
open_window 2
await enable 2
await step $((steps + 40))
close_window 2
end new
names='add prepare enable metadata enable_observer disable_observer remove disable save'
is 'once a window, in the order of torch.profiler' "$(calls)" "$names $names"
holds 'started on the thread of the steps, without an exception pending' files \
	"all(l['thread'] == T['thread'] for l in L if l['call'] in ('add', 'enable')) and
	all(l['pending'] == 'None' for l in L if 'pending' in l)"
holds 'of CPU operators, with shapes, without stacks, on this thread alone' files \
	"[l['arguments'][0][:6] for l in L if l['call'] == 'enable'][0] == ['KINETO', True, False, False, False, False] and
	[l['arguments'][0][6] for l in L if l['call'] == 'enable'][0] == {} and
	[l['arguments'][1] for l in L if l['call'] == 'enable'][0] == ['CPU']"
holds 'stopped by that thread too, and the observer is removed a while after it was disabled' files \
	"all(l['thread'] == T['thread'] for l in L if l['call'] in ('remove', 'disable')) and
	all(b['at'] - a['at'] >= 0.1 for a, b in zip([l for l in L if l['call'] == 'disable_observer'],
		[l for l in L if l['call'] == 'remove'], strict=True))"
holds 'one tag for all files of a window, mode 0600' files "len(set(named)) == 1 and set(modes) == {0o600}"
is 'one pair of files for each window' "$(count 'kineto_*.json') $(count 'pytorch_et_*.json')" '2 2'
holds 'the execution trace is what the double wrote' files \
	"[n['id'] for n in ET['nodes']] == list(range(len(ET['nodes']))) and len(ET['nodes']) >= 40"
holds 'operators are in the steps of their thread, on one clock' files \
	"len(ops) >= 40 and all(inside(e) for e in ops[:-2]) and ops[0]['tid'] == T['thread']"
holds 'its lanes with names are there, behind the mark' files \
	"[e['name'] for e in E].index('ferrum.pytorch') < [e['pid'] for e in E].index('Spans')"
# In each step is an operator, and in that a getppid, which is in a lane of its own.
holds 'our calls are beside them, in each step' files \
	"all(any(e['name'] == 'getppid' and e['tid'] % 100000000 == o['tid'] and -500 < e['ts'] - o['ts'] < o['dur'] + 500
		for e in E) for o in ops[1:-2])"
holds 'its steps are marked, and not judged' files \
	"W['profiled_steps'] == sum(s.get('profiled', False) for s in S) and W['judged_steps'] == 0 and
	abs(W['profiled_steps'] - seen) <= 1 and seen >= 40"
is 'under sudo the traces are the user'"'"'s, as the other files are' \
	"$(stat -c %u:%g "$DIR"/kineto_* "$DIR"/pytorch_et_* "$DIR"/ferrum_* | sort -u)" 65534:65534
fact 'memory is given back' "T['files'] == []"
fact 'a child that is forked meanwhile goes on' "T['child'] == 0"
is 'and its first step ends the recording there' "$(LOG=$LOG.child calls)" 'disable_observer enable_record_function'
holds 'both are valid traces' "$FBT" validate -q "$DIR"/kineto_*.json "$DIR"/ferrum_*

# As many as the double itself counts: the profiler is stopped by the number of steps.
MORE=(--max-steps 200)
export FERRUM_BPFTRACE_WITH_STACK=1 FERRUM_BPFTRACE_RECORD_SHAPES=0 FERRUM_BPFTRACE_SYNC_CUDA=1
start new
unset FERRUM_BPFTRACE_WITH_STACK FERRUM_BPFTRACE_RECORD_SHAPES FERRUM_BPFTRACE_SYNC_CUDA
open_window 1
await save
end 'with variables'
holds 'with variables: stacks, and no shapes' files \
	"[l['arguments'][0][:4] for l in L if l['call'] == 'enable'][0] == ['KINETO', False, False, True]"
fact 'with variables: the GPU is waited for after each step' "T['cuda'] >= T['profiled'] > 50"
MORE=()

# An engine without requests makes no step that could end the window: the observer, which records all threads, is
# disabled meanwhile, and the next step exports.
start new
open_window 1
await step 20
touch "$TMP/idle"
await idle
rm "$FLAG"
await disable_observer
is 'idle: by another thread, and nothing else' "$(calls)" "${names% remove*}"
wait_for_line 'send an idle engine a request'
rm "$TMP/idle"
wait_for_line '^waiting for /' 2
is 'idle: exported with the next step' "$(count 'kineto_*.json')" 1
end idle
holds 'idle: by the thread that started it' files \
	"[l['thread'] == T['thread'] for l in L if l['call'] == 'disable'] == [True] and
	[l['thread'] != T['thread'] for l in L if l['call'] == 'disable_observer'] == [True]"

# hangs NAME WHAT: an engine that makes no more step (idle), or whose step does not end (hang). The first
# window ends by its flag alone, the second is no longer waited for once a signal comes, by the same tool.
hangs()
{
	local name=$1 what=$2 begin=$SECONDS waited

	start new
	open_window 1
	# The 20 before which its child is forked, and two more: the child does not hang.
	await step 22
	touch "$TMP/$what"
	await "$what"
	begin=$SECONDS
	close_window 1
	waited=$((SECONDS - begin))
	holds "$name: not waited for in vain for long" [ $waited -lt 30 ]
	has "$name: it is told" "$OUT.err" 'no step has ended since the window did'
	rm "$TMP/$what"
	await disable
	open_window 2
	await enable 2
	touch "$TMP/$what"
	await "$what" 2
	rm "$FLAG"
	# That line comes after a second of the wait.
	wait_for_line 'Ctrl-C ends the wait' 2
	begin=$SECONDS
	kill -INT "$TOOL"
	wait "$TOOL"
	is "$name: a signal ends the wait, and the tool" $? 0
	holds "$name: sooner than without one" [ $((SECONDS - begin)) -lt $((waited - 4)) ]
	is "$name: both windows have our own trace" "$(count 'ferrum_trace_*.json')" 2
	end "$name"
}

hangs 'a step that hangs' hang
hangs 'an idle engine' idle

# The window ends while PyTorch is just starting; no step of the engine comes afterwards.
SLOW=2 start new
open_window 1
await enable
touch "$TMP/idle"
close_window 1
is 'a slow start: stopped as soon as it was started' "$(calls)" "$names"
is 'a slow start: exported all the same' "$(count 'kineto_*.json')" 1
end 'a slow start'

# The tool is killed meanwhile, and the library gives the functions back before PyTorch has started. As another
# thread is in the step, the end of that call does not stop it.
SLOW=8 HOLDS=1 start new
open_window 1
await enable
touch "$TMP/idle"
kill -KILL "$TOOL"
wait "$TOOL" 2>/dev/null
await disable
end 'killed in a slow start'

# A worker that begins while the window is open.
rm -rf "$TMP/worker"
start new
open_window 1
mkdir "$TMP/worker"
wait_for_line 'has Python steps since the trace began'
LOG=$LOG.worker await step 20
close_window 1
touch "$TMP/worker/end"
end 'a worker that comes later'
fact 'a worker that comes later: it ends as ever too' "T['worker'] == 0"
is 'a worker that comes later: it is profiled too' "$(LOG=$LOG.worker calls)" "$names"
is 'a worker that comes later: it has files of its own' \
	"$(count 'kineto_*.json') $(count 'pytorch_et_*.json')" '2 2'
holds 'a worker that comes later: all files are valid' "$FBT" validate -q "$DIR"/kineto_*.json "$DIR"/ferrum_*
rm -r "$TMP/worker"

# refused MODE LINE CALLS: no trace, a line, and what was called
refused()
{
	start "$1"
	open_window 1
	wait_for 30 grep -q "${4:-.}" "$LOG"
	sleep 0.3
	close_window 1
	end "$1" "$2"
	is "$1: what was called" "$(calls)" "$3"
	is "$1: no files of it" "$(count 'kineto_*') $(count 'pytorch_et_*') $(count 'ferrum_trace_*.json')" '0 0 1'
}

refused taken 'profiler of the engine.s own is on' '' ''
refused none 'not loaded' '' ''
refused observed 'profiler of the engine.s own is on' add add
refused start 'already enabled on this thread' 'add prepare enable remove' remove
refused save 'no room for it' "$names" enable
refused stop 'cannot stop' "${names% save}" enable
refused lost 'something else has stopped' "${names% save}" enable

# The tool is killed in a window: the library stops the profiler, and exports for nobody.
start new
open_window 1
await step 20
kill -KILL "$TOOL"
wait "$TOOL" 2>/dev/null
await disable
sleep 0.5
end killed
is 'killed: stopped, and not saved' "$(calls)" "${names% save}"
fact 'killed: memory is given back' "T['files'] == []"

# The same while the engine makes no steps, so that no call stops the profiler: its function stays armed, and the next
# tool has the other one.
start new
open_window 1
await step 20
touch "$TMP/idle"
await idle
kill -KILL "$TOOL"
wait "$TOOL" 2>/dev/null
sleep 6
run_waiting -p "$ENGINE" --python=inject --step 'py:__main__:Engine.step' --step 'py:__main__:Engine.forward'
open_window 1
rm "$TMP/idle"
wait_for_step 20
close_window 1
lacks 'killed while idle: the next tool is not refused' "$OUT.err" 'steps of another tracer'
about '*' 'sorted({s["kind"] for s in S})' >"$TMP/kinds"
has 'killed while idle: it has the other function' "$TMP/kinds" 'Engine.forward'
end 'killed while idle'
is 'killed while idle: stopped by the next call, and not saved' "$(calls)" "${names% save}"

# The tool has no CPU for longer than its lease, in a window whose step hangs: the profiler's function stays armed
# until that step ends, and the other one is armed again.
start new
open_window 1
await step 22
touch "$TMP/hang"
await hang
kill -STOP "$TOOL"
sleep 8
kill -CONT "$TOOL"
wait_for_line 'Python steps are missing'
rm "$TMP/hang"
await disable
close_window 1
end 'the tool is stopped' 'no trace of PyTorch: the tool gave no sign of life'
is 'the tool is stopped: so is the profiler, and nothing is saved' "$(calls)" "${names% save}"

for wrong in '--torch-trace' '--torch-trace --python=inject' '--torch-trace --flag /x' \
	'--torch-trace --flag /x --python=require'; do
	# shellcheck disable=SC2086
	"$FBT" -p $$ $wrong >"$TMP/usage" 2>&1
	is "usage: $wrong" $? 2
done
finish
