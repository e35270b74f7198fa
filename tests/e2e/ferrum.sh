#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# Attaches to ferrum without --step: today's release and an older one, as cargo builds them, and
# stripped as they are published. Compares the steps with bpftrace's count and with the tokens that
# the engine has written, one sequence at a time. Then --list-steps, with the text gone by which the
# tool knows a stripped ferrum: the stacks of its threads give no other function. ferrum/install.sh
# builds the releases.
. "$(dirname "$0")/../live/lib.sh"

HERE=tests/e2e/ferrum
TRACING=/sys/kernel/tracing
REQUESTS=4 TOKENS=30
HASH=sha256:$(printf 'fbt' | sha256sum | cut -d ' ' -f 1)

ask()
{
	python3 "$HERE/load.py" "$PORT" "$@"
}

# shellcheck disable=SC2317,SC2329 # called by name
writes_token()
{
	ask 1 1 >"$TMP/after" 2>&1
}

# start_server PROGRAM ARGUMENT…: sets PID and PORT
start_server()
{
	PORT=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
	rm -f "$TMP/own.jsonl"
	HOME=$TMP env -C "$TMP" "$1" serve --model "$TMP/model" --backend cpu --host 127.0.0.1 --port "$PORT" \
		--profile-jsonl "$TMP/own.jsonl" "${@:2}" >"$TMP/server" 2>&1 </dev/null 7>&- &
	PID=$!
	wait_for 120 answers && return
	sed 's/^/# /' "$TMP/server"
	not_ok "$name starts"
	return 1
}

# shellcheck disable=SC2317,SC2329 # called by name
answers()
{
	ask get /health >"$TMP/health" 2>/dev/null
}

# file_offset PROGRAM ADDRESS: the address's offset in the file
file_offset()
{
	local type offset address size

	while read -r type offset address _ size _; do
		[ "$type" = LOAD ] && (($2 >= address && $2 < address + size)) &&
			printf '0x%x\n' $(($2 - address + offset))
	done < <(readelf -lW "$1")
}

# start_bpftrace PROGRAM ADDRESS: sets COUNTER to a bpftrace that counts the calls of the function
# at ADDRESS
start_bpftrace()
{
	cat >"$TMP/count.bt" <<-PROGRAM
		uprobe:$1:$2 /pid == $PID/ { @steps = count(); }
		interval:ms:200 { if (@armed == 0) { @armed = 1; printf("armed\n"); } }
		$(counter_ends "$(counter_code 0)")
		END { clear(@armed); }
	PROGRAM
	rm -f "$TMP/count"
	bpftrace -B line "$TMP/count.bt" >"$TMP/count" 2>"$TMP/count.err" &
	COUNTER=$!
	wait_for 120 is_armed && grep -q armed "$TMP/count" && return
	sed 's/^/# /' "$TMP/count.err"
	return 1
}

# shellcheck disable=SC2317,SC2329 # called by name
is_armed()
{
	grep -qs armed "$TMP/count" || ! kill -0 "$COUNTER" 2>/dev/null
}

end_bpftrace()
{
	end_counter "$(counter_code 0)" "$COUNTER"
	COUNT=$(sed -n 's/^@steps: //p' "$TMP/count")
}

# start_kernel PROGRAM ADDRESS: counts by a kernel uprobe alone, because bpftrace resolves an
# address by the symbols of the file
start_kernel()
{
	remove_probe
	ln -sf "$1" "$TMP/counted"
	echo "p:fbt_$$/step $TMP/counted:$(file_offset "$1" "$2")" >>"$TRACING/uprobe_events" &&
		echo 1 >"$TRACING/events/fbt_$$/enable"
}

end_kernel()
{
	COUNT=$(awk -v file="$TMP/counted" '$1 == file && $2 == "step" { print $3 }' "$TRACING/uprobe_profile")
	remove_probe
}

start_count()
{
	case $1 in
	bpftrace) start_bpftrace "$2" "$3" ;;
	kernel) start_kernel "$2" "$3" ;;
	esac
}

end_count()
{
	case $1 in
	bpftrace) end_bpftrace ;;
	kernel) end_kernel ;;
	esac
}

remove_probe()
{
	[ -d "$TRACING/events/fbt_$$" ] || return 0
	echo 0 >"$TRACING/events/fbt_$$/enable"
	echo "-:fbt_$$/step" >>"$TRACING/uprobe_events"
}

# shellcheck disable=SC2317,SC2329 # called by name
undo()
{
	remove_probe
}

# attach_by_itself: while the engine computes, since the function of a stripped engine is known by
# its calls
attach_by_itself()
{
	local load status

	rm -f "$TMP/enough" "$OUT".*
	ask "$TOKENS" until "$TMP/enough" 2>"$TMP/load.err" &
	load=$!
	run_tool -p "$PID"
	wait_attached "$TOOL"
	status=$?
	touch "$TMP/enough"
	holds "$name answers while the tool attaches" wait "$load"
	[ $status = 0 ] && return
	sed 's/^/# /' "$OUT.err"
	not_ok "the tool attaches to $name"
	return 1
}

# trace_requests COUNTER PROGRAM ADDRESS: sets BEGIN, TOKEN_COUNT and COUNT. PANIC is the server's
# answer.
trace_requests()
{
	attach_by_itself || return
	if ! start_count "$@"; then
		not_ok "$name: $1 counts the calls of its step function"
		return 1
	fi
	read -r BEGIN TOKEN_COUNT < <(ask "$TOKENS" "$REQUESTS")
	is "$name answers while the tool watches" "$TOKEN_COUNT" $((REQUESTS * TOKENS))
	if [ -n "$CATCHES" ]; then
		PANIC=$(ask "$TOKENS" panic)
		holds "$name answers after a panic" writes_token
		TOKEN_COUNT=$((TOKEN_COUNT + 2)) # one that panics, and one after it
	fi
	end_count "$1"
	stop_tool
}

# check_steps NAME HOW COUNTER: HOW the function was found, and who has counted its calls
check_steps()
{
	local seen="[s for s in S if s['start_us'] + W['epoch_monotonic_us'] >= $BEGIN]"

	fact "$name: its step function is found, $2" \
		"[k['name'].endswith(\"$1\") for k in R['kinds'] if k['steps']] == [True]"
	is "$name: as many steps as $3 counts" "$(q "len($seen)")" "$COUNT"
	is "$name: a step for each token" "$COUNT" "$TOKEN_COUNT"
	fact "$name: each step has returned, and nothing was lost" \
		"all(s['end'] == 'return' and s['complete'] for s in S) and
		all(v == 0 for k, v in W.items() if k.startswith('lost_'))"
	holds "$name: the outputs are valid" "$FBT" validate \
		--require-events step_prof,syscall_prof,window_prof "$OUT.profile" "$OUT.trace"
}

# The engine catches a panic in a step, and the request fails.
check_panic()
{
	is "$name: a panic is caught in it" "$(grep -o '^500 .* panicked' <<<"$PANIC" | cut -c 1-4)" '500 '
	has "$name: the panic was in the step" "$TMP/server" 'panicked at .*ferrum'
}

# check_unwinding REGEX: a panic that leaves the probed function, which the engine calls once for
# each prompt. A uretprobe there would abort the engine.
check_unwinding()
{
	rm -f "$OUT".*
	run_tool -p "$PID" --step "/$1/"
	wait_attached "$TOOL" || { sed 's/^/# /' "$OUT.err" && not_ok "the tool attaches to /$1/" && return; }
	ask 2 1 >"$TMP/before"
	PANIC=$(ask 2 panic)
	holds "$name answers after a panic has left a probed function" writes_token
	stop_tool
	check_panic
	fact "$name: what the panic left is a step without a return" \
		"[len(S), [s['end'] for s in S].count('return')] == [3, 2]"
}

# The document that the engine hashes, and the hash that it gives.
check_env_hash()
{
	local own

	own=$(python3 -c '
import json, sys
config = json.load(sys.stdin)["auto_config"]
json.dump(config["entries"], open(sys.argv[1], "w"))
print(config["env_hash"])' "$TMP/entries" <"$TMP/health")
	is "$name: env-hash gives its environment the hash that it gives it" \
		"$("$FBT" env-hash "$TMP/entries")" "$own"
	# Without CUDA, 0.7 writes no hash there.
	[ -z "$CATCHES" ] || has "$name: and that it writes" "$TMP/own.jsonl" "\"env_hash\":\"$own\""
}

check_given_hash()
{
	[ -z "$CATCHES" ] ||
		has "$name: it writes the env_hash that it was given" "$TMP/own.jsonl" "\"env_hash\":\"$HASH\""
	fact "$name: the tool writes the env_hash that it was given" "{row['env_hash'] for row in E} == {'$HASH'}"
}

end_server()
{
	kill -INT "$PID"
	wait "$PID"
	is "$name ends well on SIGINT" $? 0
}

# find_step PROGRAM METHOD: the address of its step function, by the names in cargo's build
find_step()
{
	nm -C "$1" | awk -v end="ModelExecutor>::$2::{{closure}}" '
		/ <ferrum_models[^ ]*LlmExecutor as / && substr($0, length - length(end) + 1) == end {
			print "0x" $1
		}'
}

# list_while_busy: what --list-steps says of the server while it computes is in $TMP/list and $TMP/err
list_while_busy()
{
	local load status

	rm -f "$TMP/enough"
	ask "$TOKENS" until "$TMP/enough" 2>"$TMP/load.err" &
	load=$!
	env --default-signal=INT "$FBT" --list-steps -p "$PID" >"$TMP/list" 2>"$TMP/err" </dev/null
	status=$?
	touch "$TMP/enough"
	wait "$load"
	return "$status"
}

# check_unknown PROGRAM TEXT ADDRESS: without the text by which PROGRAM is known its stacks give the same
# function, or none: its steps are on threads of tokio that wait for events too, as a server's do
check_unknown()
{
	local status found

	python3 - "$1" "$2" <<-'END'
		import sys
		data = open(sys.argv[1], "rb").read()
		text = sys.argv[2].encode()
		assert text in data
		open(sys.argv[1], "wb").write(data.replace(text, b"x" * len(text)))
	END
	name="ferrum $(basename "${1%/*}"), without its text"
	start_server "$1" || return
	list_while_busy
	status=$?
	sed 's/^/# /' "$TMP/list" "$TMP/err"
	if [ $status = 0 ]; then
		found=$(grep -A 2 'found by the stacks' "$TMP/list" | sed -nE '3s/.*\+0x([0-9a-f]+) .*/0x\1/p')
		is "$name: the first is the function that the text gave" "$((found))" "$(($3))"
	else
		is "$name: no function is listed" "$(cat "$TMP/list")" ''
		has "$name: it says that there is none" "$TMP/err" 'no regular step found|its threads are idle'
	fi
	end_server
}

# test_release VERSION METHOD TEXT [INNER]: METHOD is the step function, TEXT identifies it in a
# stripped program, and INNER is a function for prompts that a panic leaves, if ferrum catches
# panics
test_release()
{
	local program why address

	CATCHES=$4
	read -r _ program why < <("$HERE/install.sh" "$1")
	[ "$program" != - ] || { echo "SKIP ferrum $1: $why" && return; }
	address=$(find_step "$program" "$2")
	is "ferrum $1 has one $2" "$(wc -w <<<"$address")" 1
	name="ferrum $1"
	if start_server "$program" && trace_requests bpftrace "$program" "$address"; then
		check_steps "ModelExecutor>::$2::{{closure}}" 'by its name' bpftrace
		[ -z "$CATCHES" ] || check_panic
		check_env_hash
		[ -z "$CATCHES" ] || check_unwinding "$CATCHES"
		end_server
	fi
	mkdir "$TMP/$1"
	strip -o "$TMP/$1/ferrum" "$program"
	program=$TMP/$1/ferrum
	name="ferrum $1, stripped"
	if start_server "$program" --profile-env-hash "$HASH" &&
		trace_requests kernel "$program" "$address"; then
		check_steps "$2 (by the text '$3')" 'by a text' 'the kernel'
		[ -z "$CATCHES" ] || check_panic
		check_given_hash
		end_server
	fi
	check_unknown "$program" "$3" "$address"
}

for command in bpftrace nm readelf strip; do
	command -v "$command" >"$TMP/tools" || { echo "SKIP $command is not installed" && exit 77; }
done
mountpoint -q "$TRACING" || mount -t tracefs tracefs "$TRACING" 2>/dev/null
python3 "$HERE/model.py" "$TMP/model"
test_release 0.18.4 execute_tokens 'synchronous model execution panicked: ' \
	'LlamaFamilyModel.*::prefill_in_frame$'
test_release 0.7.7 unified_decode 'unified_forward returned ' ''
finish
