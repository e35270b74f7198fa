/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include "code/straight.h"

#define AT 0x1000

static struct straight find(const char *code, size_t size, unsigned int flags)
{
	struct straight straight;

	assert_int_equal(
		straight_find(FBT_ARCH_X86_64, (const uint8_t *)code, size, AT, flags, &straight),
		0);
	return straight;
}

#define SITE(code)  find(code, sizeof(code) - 1, 0)
#define ENTRY(code) find(code, sizeof(code) - 1, STRAIGHT_KEEPS_ARGUMENTS)

static void expect(struct straight straight, uint64_t offset, int32_t sp, bool emulated)
{
	assert_int_equal(straight.address, AT + offset);
	assert_int_equal(straight.sp, sp);
	assert_int_equal(straight.emulated, emulated);
}

static void a_push_is_emulated(void **state)
{
	expect(ENTRY("\x55\x48\x89\xe5"), 0, 0, true);	   /* push %rbp */
	expect(ENTRY("\x41\x57\x48\x89\xe5"), 0, 0, true); /* push %r15 */
}

static void a_push_with_a_prefix_is_not(void **state)
{
	expect(SITE("\x48\x55\xc3"), 0, 0, false);
	expect(SITE("\x66\x55\xc3"), 0, 0, false);
}

static void branches_and_calls_are_emulated(void **state)
{
	expect(SITE("\x85\xc0\x74\x02"), 2, 0, true);		      /* test; je */
	expect(SITE("\x85\xc0\x0f\x85\x00\x01\x00\x00"), 2, 0, true); /* test; jne */
	expect(SITE("\x89\xc7\xe8\x00\x00\x00\x00"), 2, 0, true);     /* mov; call */
	expect(SITE("\x89\xc7\xeb\x00"), 2, 0, true);		      /* mov; jmp */
	expect(SITE("\x89\xc7\xe9\x00\x00\x00\x00"), 2, 0, true);     /* mov; jmp */
	expect(SITE("\x89\xc7\x90"), 2, 0, true);		      /* mov; nop */
}

static void the_search_ends_where_the_code_may_go_elsewhere(void **state)
{
	expect(SITE("\x89\xc7\xff\xd0\x55"), 0, 0, false); /* mov; call *%rax; push */
	expect(SITE("\x89\xc7\xff\xe0\x55"), 0, 0, false); /* mov; jmp *%rax; push */
	expect(SITE("\x89\xc7\xc3\x55"), 0, 0, false);	   /* mov; ret; push */
	expect(SITE("\x89\xc7\xe2\x00\x55"), 0, 0, false); /* mov; loop; push */
	expect(SITE("\x89\xc7\x0f\x05\x55"), 0, 0, false); /* mov; syscall; push */
	expect(SITE("\x89\xc7\x0f\x0b\x55"), 0, 0, false); /* mov; ud2; push */
	expect(SITE("\x89\xc7\xcc\x55"), 0, 0, false);	   /* mov; int3; push */
	expect(SITE("\x89\xc7\xe3\x00\x55"), 0, 0, false); /* mov; jrcxz; push */
}

static void the_stack_pointer_is_known(void **state)
{
	expect(SITE("\x48\x83\xc4\x18\x74\x00"), 4, 0x18, true);     /* add $0x18,%rsp; je */
	expect(SITE("\x48\x83\xec\x28\x74\x00"), 4, -0x28, true);    /* sub $0x28,%rsp; je */
	expect(SITE("\x5a\x59\x74\x00"), 2, 16, true);		     /* pop; pop; je */
	expect(SITE("\x48\x8d\x64\x24\x10\x74\x00"), 5, 0x10, true); /* lea 0x10(%rsp),%rsp */
	/* sub $0x80,%rsp as add of a negative number */
	expect(SITE("\x48\x83\xc4\x80\x74\x00"), 4, -0x80, true);
}

static void an_unknown_stack_pointer_ends_the_search(void **state)
{
	expect(SITE("\x48\x89\xec\x74\x00"), 0, 0, false);     /* mov %rbp,%rsp */
	expect(SITE("\xc9\x74\x00"), 0, 0, false);	       /* leave */
	expect(SITE("\x48\x83\xe4\xf0\x74\x00"), 0, 0, false); /* and $-16,%rsp */
	expect(SITE("\x5c\x74\x00"), 0, 0, false);	       /* pop %rsp */
	expect(SITE("\x6a\x01\x74\x00"), 0, 0, false);	       /* push $1 */
}

/* The probe reads the arguments, so it must come before code that overwrites them. */
static void an_entry_is_probed_before_arguments_are_lost(void **state)
{
	expect(ENTRY("\x89\xf8\x55"), 2, 0, true);			/* mov %edi,%eax; push */
	expect(ENTRY("\x89\xc7\x55"), 0, 0, false);			/* mov %eax,%edi; push */
	expect(ENTRY("\x31\xf6\x55"), 0, 0, false);			/* xor %esi,%esi; push */
	expect(ENTRY("\x48\x89\x44\x24\x08\x55"), 0, 0, false);		/* mov %rax,8(%rsp); push */
	expect(ENTRY("\x48\x83\xec\x08\x85\xff\x74\x00"), 6, -8, true); /* sub; test; je */
}

/* With a shadow stack, an emulated call would kill the thread when the callee returns. */
static void calls_can_be_avoided(void **state)
{
	const char *code = "\x89\xc7\xe8\x00\x00\x00\x00\x55"; /* mov; call; push */
	struct straight straight;

	expect(find(code, 8, STRAIGHT_AVOIDS_CALLS), 0, 0, false);
	expect(find("\x89\xc7\x74\x00", 4, STRAIGHT_AVOIDS_CALLS), 2, 0, true);
	assert_int_equal(straight_find(FBT_ARCH_X86_64, (const uint8_t *)code + 2, 6, AT,
				       STRAIGHT_AVOIDS_CALLS, &straight),
			 -ENOTSUP);
	assert_int_equal(straight_find(FBT_ARCH_X86_64, (const uint8_t *)"\xff\xd0\x55", 3, AT,
				       STRAIGHT_AVOIDS_CALLS, &straight),
			 -ENOTSUP);
}

static void memory_can_be_kept(void **state)
{
	/* mov %rdi,(%rax); test; je */
	const char stores[] = "\x48\x89\x38\x85\xc0\x74\x02";
	/* mov (%rax),%rdi; test; je */
	const char loads[] = "\x48\x8b\x38\x85\xc0\x74\x02";

	expect(find(stores, 7, 0), 5, 0, true);
	expect(find(stores, 7, STRAIGHT_KEEPS_MEMORY), 0, 0, false);
	expect(find(loads, 7, STRAIGHT_KEEPS_MEMORY), 5, 0, true);
}

static void code_that_ends_is_no_error(void **state)
{
	expect(SITE("\x89\xc7"), 0, 0, false);
	expect(SITE("\x89\xc7\x48"), 0, 0, false);
}

static void what_is_no_code_is_an_error(void **state)
{
	struct straight straight;

	assert_int_equal(
		straight_find(FBT_ARCH_X86_64, (const uint8_t *)"\x06", 1, AT, 0, &straight),
		-EBADMSG);
	assert_int_equal(straight_find(FBT_ARCH_X86_64, NULL, 0, AT, 0, &straight), -EBADMSG);
}

static void on_arm64_it_is_the_first_instruction(void **state)
{
	struct straight straight = {.sp = 1, .emulated = true};

	assert_int_equal(straight_find(FBT_ARCH_ARM64, (const uint8_t *)"\xe0\x03\x01\xaa", 4, AT,
				       0, &straight),
			 0);
	assert_int_equal(straight.address, AT);
	assert_int_equal(straight.sp, 0);
	assert_false(straight.emulated);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_push_is_emulated),
		cmocka_unit_test(a_push_with_a_prefix_is_not),
		cmocka_unit_test(branches_and_calls_are_emulated),
		cmocka_unit_test(the_search_ends_where_the_code_may_go_elsewhere),
		cmocka_unit_test(the_stack_pointer_is_known),
		cmocka_unit_test(an_unknown_stack_pointer_ends_the_search),
		cmocka_unit_test(an_entry_is_probed_before_arguments_are_lost),
		cmocka_unit_test(calls_can_be_avoided),
		cmocka_unit_test(memory_can_be_kept),
		cmocka_unit_test(code_that_ends_is_no_error),
		cmocka_unit_test(what_is_no_code_is_an_error),
		cmocka_unit_test(on_arm64_it_is_the_first_instruction),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
