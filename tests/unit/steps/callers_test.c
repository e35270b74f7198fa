/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <link.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "steps/callers.h"

/* No test calls these functions: the code under test only reads them. */
void callers_test_callee(void);
void callers_test_few(void);
void callers_test_many(void);
void callers_test_crowd(void);
extern const char callers_test_direct[], callers_test_second[], callers_test_slot[],
	callers_test_last[], callers_test_by_thunk[], callers_test_by_other[],
	callers_test_by_both[];

__asm__(".pushsection .text\n"
	".globl callers_test_callee, callers_test_few, callers_test_crowd, callers_test_many\n"
	".globl callers_test_direct, callers_test_second, callers_test_slot, callers_test_last\n"
	".type callers_test_callee, %function\n"
	".type callers_test_few, %function\n"
	".type callers_test_crowd, %function\n"
	".type callers_test_many, %function\n"
	"callers_test_callee: .cfi_startproc\n nop\n ret\n .cfi_endproc\n"
	".size callers_test_callee, . - callers_test_callee\n"
	"callers_test_crowd: .cfi_startproc\n nop\n"
#ifdef __x86_64__
	"call callers_test_crowd\n" /* recursion */
#endif
	" ret\n .cfi_endproc\n"
	".size callers_test_crowd, . - callers_test_crowd\n"
	"callers_test_few: .cfi_startproc\n"
#ifdef __x86_64__
	"call callers_test_callee\n"
	"callers_test_direct: nop\n"
	/* An immediate operand with the bytes of a call: mov $imm64, %rax. */
	".byte 0x48, 0xb8, 0x90, 0xe8\n"
	".long callers_test_callee - . - 4\n"
	".byte 0x90, 0x90\n"
	"call callers_test_callee\n"
	"callers_test_second: nop\n"
	"call *callers_test_pointer(%rip)\n"
	"callers_test_slot: nop\n"
	"jmp callers_test_callee\n"
#else
	"callers_test_direct: callers_test_second: callers_test_slot: ret\n"
#endif
	".cfi_endproc\n"
	".size callers_test_few, . - callers_test_few\n"
	".globl callers_test_by_thunk, callers_test_by_both, callers_test_by_other\n"
	/*
	 * thunk only jumps to the callee; both jumps to the callee or to thunk; other may also
	 * return by itself.
	 */
	".type callers_test_thunk, %function\n"
	".type callers_test_both, %function\n"
	".type callers_test_other, %function\n"
	".type callers_test_users, %function\n"
	"callers_test_thunk: .cfi_startproc\n"
#ifdef __x86_64__
	"sub $8, %rdi\n jmp callers_test_callee\n"
#endif
	".cfi_endproc\n"
	".size callers_test_thunk, . - callers_test_thunk\n"
	"callers_test_both: .cfi_startproc\n"
#ifdef __x86_64__
	"test %edi, %edi\n je 1f\n jmp callers_test_callee\n 1: jmp callers_test_thunk\n"
#endif
	".cfi_endproc\n"
	".size callers_test_both, . - callers_test_both\n"
	"callers_test_other: .cfi_startproc\n"
#ifdef __x86_64__
	"test %edi, %edi\n je 1f\n jmp callers_test_callee\n 1: ret\n"
#endif
	".cfi_endproc\n"
	".size callers_test_other, . - callers_test_other\n"
	"callers_test_users: .cfi_startproc\n"
#ifdef __x86_64__
	"call callers_test_thunk\n"
#endif
	"callers_test_by_thunk: nop\n"
#ifdef __x86_64__
	"call callers_test_both\n"
#endif
	"callers_test_by_both: nop\n"
#ifdef __x86_64__
	"call callers_test_other\n"
#endif
	"callers_test_by_other: nop\n ret\n .cfi_endproc\n"
	".size callers_test_users, . - callers_test_users\n"
	"callers_test_many: .cfi_startproc\n"
#ifdef __x86_64__
	".rept 20\n call callers_test_crowd\n .endr\n"
#endif
	"callers_test_last: ret\n"
	".cfi_endproc\n"
	".size callers_test_many, . - callers_test_many\n"
	".popsection\n"
	/* A GOT entry: a pointer in data that is read-only after relocation. */
	".pushsection .data.rel.ro,\"aw\",%progbits\n"
	".balign 8\n"
	"callers_test_pointer: .quad callers_test_callee\n"
	".popsection\n");

static int take_bias(struct dl_phdr_info *info, size_t size, void *bias)
{
	*(uint64_t *)bias = info->dlpi_addr;
	return 1;
}

/* dl_iterate_phdr() reports the program itself first. */
static uint64_t find_bias(void)
{
	uint64_t bias = 0;

	dl_iterate_phdr(take_bias, &bias);
	return bias;
}

static const struct callers_limits usual = {10, CALLERS_CPU_NS, CALLERS_BYTES_MAX};

struct search {
	caller_vec callers;
	uint64_t left_out;
	int err;
};

/*
 * Searches this process for the callers of callers_test_few (kind 0) and of callers_test_crowd
 * (kind 1).
 */
static struct search search(const struct callers_limits *limits)
{
	struct step_function few = {.fd = -1}, crowd = {.fd = -1};
	const struct step_function *functions[] = {&few, &crowd};
	struct search result = {.left_out = 0};
	struct stat status;

	assert_int_equal(stat("/proc/self/exe", &status), 0);
	few.device = crowd.device = status.st_dev;
	few.inode = crowd.inode = status.st_ino;
	few.address = (uintptr_t)callers_test_callee - find_bias();
	crowd.address = (uintptr_t)callers_test_crowd - find_bias();
	crowd.size = (uintptr_t)callers_test_few - (uintptr_t)callers_test_crowd;
	result.err = callers_find(&result.callers, (uint32_t)getpid(), functions, 2, limits,
				  &result.left_out);
	return result;
}

/* Number of callers of the function that return to the address, in this program's own code. */
static size_t count_at(const struct search *found, uint32_t function, const char *address)
{
	size_t count = 0;

	vec_for_each (caller, &found->callers) {
		char bytes[16] = {0};

		assert_int_equal(
			pread(caller->site.fd, bytes, sizeof(bytes), (off_t)caller->offset),
			sizeof(bytes));
		count += caller->function == function && !memcmp(bytes, address, sizeof(bytes));
	}
	return count;
}

static size_t count(const struct search *found, uint32_t function)
{
	size_t count = 0;

	vec_for_each (caller, &found->callers)
		count += caller->function == function;
	return count;
}

static int skip_elsewhere(void **state)
{
#ifndef __x86_64__
	print_message("SKIP call sites are used on x86-64\n");
	skip();
#endif
	return 0;
}

static void direct_calls_and_those_through_a_slot_are_found(void **state)
{
	struct search found = search(&usual);

	assert_int_equal(found.err, 0);
	assert_int_equal(count_at(&found, 0, callers_test_direct), 1);
	assert_int_equal(count_at(&found, 0, callers_test_second), 1);
	assert_int_equal(count_at(&found, 0, callers_test_slot), 1);
	assert_int_equal(found.left_out & 1, 0);
	callers_clear(&found.callers);
}

static void neither_jumps_nor_bytes_that_look_like_a_call_are_callers(void **state)
{
	struct search found = search(&usual);

	/* Three direct callers, and two callers of functions that only jump there. */
	assert_int_equal(count(&found, 0), 3 + 2);
	callers_clear(&found.callers);
}

static void calls_of_what_only_jumps_there_are_callers(void **state)
{
	struct search found = search(&usual);

	assert_int_equal(count_at(&found, 0, callers_test_by_thunk), 1);
	assert_int_equal(count_at(&found, 0, callers_test_by_both), 1);
	assert_int_equal(count_at(&found, 0, callers_test_by_other), 0);
	callers_clear(&found.callers);
}

/* With too many callers in all, only the direct ones are kept. */
static void those_of_what_jumps_there_are_left_out_if_they_are_too_many(void **state)
{
	struct callers_limits three = usual;
	struct search found;

	three.each = 3;
	found = search(&three);
	assert_int_equal(count(&found, 0), 3);
	assert_int_equal(count_at(&found, 0, callers_test_by_thunk), 0);
	assert_int_equal(found.left_out & 1, 0);
	callers_clear(&found.callers);
}

/* A new caller must not replace an earlier one that has the same function number. */
static void what_was_found_before_stays(void **state)
{
	struct search before = search(&usual);
	size_t first = before.callers.count;
	struct callers_limits none = usual;
	struct step_function nowhere = {.fd = -1, .inode = 1, .device = 1, .address = 4096};
	const struct step_function *functions[] = {&nowhere};
	uint64_t left_out;

	none.each = 0;
	assert_int_equal(
		callers_find(&before.callers, (uint32_t)getpid(), functions, 1, &none, &left_out),
		0);
	assert_int_equal(before.callers.count, first);
	callers_clear(&before.callers);
}

static void a_function_with_too_many_callers_has_none(void **state)
{
	struct callers_limits more = usual;
	struct search found = search(&usual);

	assert_int_equal(count(&found, 1), 0);
	assert_int_equal(found.left_out, 2);
	callers_clear(&found.callers);
	more.each = 20;
	found = search(&more);
	assert_int_equal(count(&found, 1), 20);
	assert_int_equal(count_at(&found, 1, callers_test_last), 1);
	assert_int_equal(found.left_out, 0);
	callers_clear(&found.callers);
}

static void a_search_that_takes_too_long_ends(void **state)
{
	struct callers_limits few = usual;
	struct search found;

	few.cpu_ns = 0;
	found = search(&few);
	assert_int_equal(found.err, -ETIMEDOUT);
	assert_int_equal(found.left_out, 3);
	callers_clear(&found.callers);
	few = usual;
	few.bytes_max = 1;
	found = search(&few);
	assert_int_equal(found.err, -ETIMEDOUT);
	callers_clear(&found.callers);
}

static void a_function_of_a_file_that_is_not_mapped_has_no_callers(void **state)
{
	struct step_function nowhere = {.fd = -1, .inode = 1, .device = 1, .address = 4096};
	const struct step_function *functions[] = {&nowhere};
	caller_vec callers = {0};
	uint64_t left_out;

	assert_int_equal(
		callers_find(&callers, (uint32_t)getpid(), functions, 1, &usual, &left_out), 0);
	assert_int_equal(callers.count, 0);
	callers_clear(&callers);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(direct_calls_and_those_through_a_slot_are_found,
				       skip_elsewhere),
		cmocka_unit_test_setup(neither_jumps_nor_bytes_that_look_like_a_call_are_callers,
				       skip_elsewhere),
		cmocka_unit_test_setup(calls_of_what_only_jumps_there_are_callers, skip_elsewhere),
		cmocka_unit_test_setup(those_of_what_jumps_there_are_left_out_if_they_are_too_many,
				       skip_elsewhere),
		cmocka_unit_test_setup(what_was_found_before_stays, skip_elsewhere),
		cmocka_unit_test_setup(a_function_with_too_many_callers_has_none, skip_elsewhere),
		cmocka_unit_test_setup(a_search_that_takes_too_long_ends, skip_elsewhere),
		cmocka_unit_test(a_function_of_a_file_that_is_not_mapped_has_no_callers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
