#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# A step function that the kernel refuses to probe: reported once, and the window continues without
# it.
. "$(dirname "$0")/lib.sh"

[ "$(uname -m)" = x86_64 ] || { echo 'SKIP the function is written for x86' && exit 77; }
"${CC:-gcc}" -shared -fPIC -o "$TMP/libllama.so" tests/fake/unprobeable_step.c

# The function is named by --step and mapped from the start.
start_waiting env LD_PRELOAD="$TMP/libllama.so" "$FBT_ENGINE" --wait --steps 0 --sleep-us 2000 \
	--truth "$TMP/truth.json"
rm -f "${OUT:?}".*
run_tool -p "$ENGINE" --step late_step -d 1
end_tool 1 'named: exit status 1'
is 'named: in one line' "$(grep -c . "$OUT.err")" 1
has 'named: that says what and why' "$OUT.err" 'libllama\.so.*cannot be probed'

# The same function, found by the tool. -q suppresses the hints after 5 s and the alerts that a busy
# machine causes.
rm -f "${OUT:?}".*
run_tool -q -p "$ENGINE" -n 16
go
end_tool 0 'found: the window goes on'
is 'found: one line' "$(grep -c . "$OUT.err")" 1
has 'found: that says what and why' "$OUT.err" 'libllama\.so.*cannot be probed'
fact 'found: steps are intervals' 'len(S) > 15 and {s["step_source"] for s in S} == {"interval"}'

kill "$ENGINE"
wait "$ENGINE"

# The function is loaded later.
rm -f "${OUT:?}".*
start_engine --late "$TMP/libllama.so" --late-ms 500 --steps 0 --sleep-us 30000
run_tool -q -p "$ENGINE" --step late_step --wait-step
wait_attached "$TOOL"
go
await_lines 1 'cannot be probed' "$OUT.err"
await_steps $(($(grep -c '"event":"step_prof"' "$OUT.profile") + 5))
kill -TERM "$ENGINE"
wait "$ENGINE"
end_tool 0 'late: the window goes on'
is 'late: one line' "$(grep -c . "$OUT.err")" 1
has 'late: that says what and why' "$OUT.err" 'libllama\.so.*cannot be probed'
fact 'late: steps are intervals to the end' \
	'len(S) >= 5 and {s["step_source"] for s in S} == {"interval"}'
fact 'late: the engine was not disturbed' 'T["steps"] > 0 and table["getppid"] > 0'

# A function that was hooked: a jump lies over its first instructions, and the kernel would put a probe amid of it. Its
# page is between others, so that the code of the file has several mappings; it stays writable, or not.
cat >"$TMP/hooked.c" <<-'END'
	#include <stdio.h>
	#include <stdlib.h>
	#include <string.h>
	#include <sys/mman.h>
	#include <unistd.h>
	#define FAR __attribute__((noinline, aligned(4096)))
	FAR long hook(long x) { return x + 2; }
	FAR void space(void) { asm volatile(".skip 4000, 0x90"); }
	FAR long hooked_step(long x)
	{
		asm volatile(".skip 200, 0x90");
		usleep(1000);
		return x + 1;
	}
	FAR void end(void) { asm volatile(".skip 4000, 0x90"); }
	long (*volatile step)(long) = hooked_step;
	int main(int argc, char **argv)
	{
		char *at = (char *)hooked_step;
		int by = (int)((char *)hook - at - 5);

		if (mprotect(at, 4096, PROT_READ | PROT_WRITE | PROT_EXEC))
			return 2;
		*at = (char)0xe9;
		memcpy(at + 1, &by, 4);
		if (atoi(argv[2]) && mprotect(at, 4096, PROT_READ | PROT_EXEC))
			return 2;
		puts("hooked");
		fflush(stdout);
		for (long i = 0; access(argv[1], F_OK); i++) {
			if (step(i) != i + 2)
				return 3;
			usleep(1000);
		}
		return argc == 3 ? 0 : 4;
	}
END
"${CC:-gcc}" -O2 -o "$TMP/hooked" "$TMP/hooked.c" || not_ok 'an engine'
for closed in 0 1; do
	rm -f "$TMP/end" "$TMP/hooked.out" "${OUT:?}".*
	: >"$TMP/hooked.out"
	"$TMP/hooked" "$TMP/end" $closed >"$TMP/hooked.out" &
	ENGINE=$!
	wait_for 30 grep -q hooked "$TMP/hooked.out"
	run_tool -p "$ENGINE" --step hooked_step -d 1
	end_tool 1 "hooked $closed: exit status 1"
	is "hooked $closed: in one line" "$(grep -c . "$OUT.err")" 1
	has "hooked $closed: that says what and why" "$OUT.err" 'hooked_step .*something has hooked it'
	"$FBT" --list-steps -p "$ENGINE" >"$OUT.list" 2>&1
	"$FBT" doctor "$ENGINE" >>"$OUT.list" 2>&1
	is "hooked $closed: nobody proposes it" "$(grep -c 'hooked_step' "$OUT.list")" 0
	touch "$TMP/end"
	wait "$ENGINE"
	is "hooked $closed: the engine was not disturbed" $? 0
done
finish
