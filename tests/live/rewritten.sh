#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# A library that is written anew in place, between two runs of the engine: the kernel keeps probes
# by inode and offset, and would put those of the old code into the new one.
. "$(dirname "$0")/lib.sh"

# The engine loads the library and makes steps once the probes are in its code: at the function's
# first byte and at its return, and nowhere else. Each step returns a number that it must have.
cat >"$TMP/run.c" <<-'END'
	#define _GNU_SOURCE
	#include <dlfcn.h>
	#include <fcntl.h>
	#include <link.h>
	#include <stdio.h>
	#include <stdlib.h>
	#include <unistd.h>
	static int is_probed(const volatile unsigned char *code, const unsigned char *file,
			     size_t size)
	{
		for (size_t i = 0; i < size; i++)
			if (code[i] != (i && i < size - 1 ? file[i] : 0xcc))
				return 0;
		return 1;
	}
	int main(int argc, char **argv)
	{
		static unsigned char file[1 << 14];
		long (*step)(long) = dlsym(dlopen(argv[1], RTLD_NOW), "rewritten_step");
		int fd = open(argv[1], O_RDONLY), tries = 6000;
		const ElfW(Sym) *symbol;
		Dl_info info;

		if (!dladdr1((void *)step, &info, (void **)&symbol, RTLD_DL_SYMENT) ||
		    symbol->st_size > sizeof(file) ||
		    pread(fd, file, symbol->st_size, (char *)step - (char *)info.dli_fbase) !=
			    (ssize_t)symbol->st_size ||
		    file[symbol->st_size - 1] != 0xc3)
			return 2;
		while (!is_probed((unsigned char *)step, file, symbol->st_size)) {
			if (!tries--)
				return 3;
			usleep(10000);
		}
		for (long i = 0; i < 100; i++)
			if (step(i) != i + 0x0102030405060708)
				abort();
		return argc == 2 ? EXIT_SUCCESS : EXIT_FAILURE;
	}
END
# The code of the second one goes on for longer, in numbers that count: where the first one returns
# is amid of one.
for blocks in 0 60; do
	cat >"$TMP/step.c" <<-END
		#include <unistd.h>
		__attribute__((noinline)) long rewritten_step(long x)
		{
			long sum = 0;
			usleep(1000);
			asm volatile(".rept $blocks\nmovabs \$0x0101010101010101, %%rax\nadd %%rax, %0\n.endr"
				     : "+r"(sum)::"rax");
			return x + 0x0102030405060708 + sum - $blocks * 0x0101010101010101;
		}
	END
	"${CC:-gcc}" -shared -fPIC -O2 -fwrapv -o "$TMP/lib$blocks.so" "$TMP/step.c" || not_ok 'a library'
done
"${CC:-gcc}" -O2 -o "$TMP/run" "$TMP/run.c" -ldl || not_ok 'an engine'
cp "$TMP/lib0.so" "$TMP/lib.so"
cat >"$TMP/twice" <<-END
	#!/bin/sh
	$TMP/run $TMP/lib.so; echo first \$? >>$TMP/status
	head -c 1000 $TMP/lib60.so >$TMP/lib.so
	sleep 0.1
	tail -c +1001 $TMP/lib60.so >>$TMP/lib.so
	sleep 0.2
	$TMP/run $TMP/lib.so; echo second \$? >>$TMP/status
	$TMP/run $TMP/lib.so; echo third \$? >>$TMP/status
END
chmod +x "$TMP/twice"
[ "$(uname -m)" = x86_64 ] || { echo 'SKIP the code of the engine is for x86-64' && finish; }
run_tool -f --step rewritten_step -- "$TMP/twice"
wait "$TOOL"
is 'each run ends well' "$(tr '\n' ' ' <"$TMP/status")" 'first 0 second 0 third 0 '
is 'that is said once' "$(grep -c 'lib.so was written anew in place' "$OUT.err")" 1
# Before the first library is found there may be intervals.
seen='[s for s in S if s["kind"] == "rewritten_step"]'
fact 'and the steps of all runs are seen' \
	"len($seen) == 300 and all(s['end'] == 'return' for s in $seen) and len({s['pid'] for s in $seen}) == 3"
finish
