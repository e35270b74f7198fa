/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "steps/patched.h"

/* push %rbp; mov %rsp,%rbp; nop5; sub $16,%rsp; ret */
static const uint8_t x86[] = {0x55, 0x48, 0x89, 0xe5, 0x0f, 0x1f, 0x44,
			      0x00, 0x00, 0x48, 0x83, 0xec, 0x10, 0xc3};
/* stp x29, x30, [sp, #-16]!; mov x29, sp; ret */
static const uint8_t arm64[] = {0xfd, 0x7b, 0xbf, 0xa9, 0xfd, 0x03,
				0x00, 0x91, 0xc0, 0x03, 0x5f, 0xd6};

static bool differs_with(size_t at, const char *bytes, size_t size)
{
	uint8_t memory[sizeof(x86)];

	memcpy(memory, x86, sizeof(memory));
	memcpy(memory + at, bytes, size);
	return code_differs(FBT_ARCH_X86_64, memory, x86, sizeof(memory));
}

static void a_jump_over_the_begin_is_seen(void **state)
{
	assert_false(differs_with(0, "", 0));
	/* jmp, by 5 and by 6 bytes */
	assert_true(differs_with(0, "\xe9\x10\x20\x30\x40", 5));
	assert_true(differs_with(0, "\xff\x25\x00\x00\x00\x00", 6));
	/* jmp -2 instead of the return */
	assert_true(differs_with(12, "\xeb\xfe", 2));
}

static void breakpoints_are_no_change(void **state)
{
	assert_false(differs_with(0, "\xcc", 1));
	assert_false(differs_with(13, "\xcc", 1));
	/* A call at the nop, as the kernel makes for a probe there; it may be cut off. */
	assert_false(differs_with(4, "\xe8\x10\x20\x30\x40", 5));
	assert_false(code_differs(FBT_ARCH_X86_64, (const uint8_t *)"\x55\xcc\x89", x86, 3));
	/* Where no more is compared; and while the kernel writes it, with a breakpoint before the
	 * rest. */
	assert_false(
		code_differs(FBT_ARCH_X86_64, (const uint8_t *)"\x55\x48\x89\xe5\xe8\x10", x86, 6));
	assert_false(differs_with(4, "\xcc\x10\x20\x30\x40", 5));
	/* Elsewhere a call is one. */
	assert_true(differs_with(9, "\xe8", 1));
}

static void words_of_arm64_are_compared(void **state)
{
	uint8_t memory[sizeof(arm64)];

	memcpy(memory, arm64, sizeof(memory));
	assert_false(code_differs(FBT_ARCH_ARM64, memory, arm64, sizeof(memory)));
	/* brk #4, as the kernel's */
	memcpy(memory, "\x80\x00\x20\xd4", 4);
	assert_false(code_differs(FBT_ARCH_ARM64, memory, arm64, sizeof(memory)));
	/* b +16 */
	memcpy(memory + 4, "\x04\x00\x00\x14", 4);
	assert_true(code_differs(FBT_ARCH_ARM64, memory, arm64, sizeof(memory)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_jump_over_the_begin_is_seen),
		cmocka_unit_test(breakpoints_are_no_change),
		cmocka_unit_test(words_of_arm64_are_compared),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
