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
#include "steps/follow.h"

/* No test calls these functions: the code under test only reads them. */
extern const char follow_test_two_returns[], follow_test_first_return[],
	follow_test_second_return[], follow_test_stub[], follow_test_by_jump[],
	follow_test_by_stub[], follow_test_by_slot[], follow_test_in_a_row[],
	follow_test_by_branch[], follow_test_round_a[], follow_test_round_b[],
	follow_test_own_return[], follow_test_by_pointer[], follow_test_pointer[],
	follow_test_by_vtable[], follow_test_vtable[], follow_test_vtable_return[],
	follow_test_to_hole[], follow_test_hole[], follow_test_hole_jump[],
	follow_test_to_hole_branch[], follow_test_to_unknown[], follow_test_unknown_jump[],
	follow_test_unknown_end[], follow_test_never[], follow_test_plain[],
	follow_test_unbound_stub[], follow_test_by_unbound[], follow_test_unbound_jump[],
	follow_test_end[];

#ifdef __x86_64__
/* Each function has its own entry in the unwind table. */
__asm__(".pushsection .text\n"
	".macro mark name\n"
	".globl follow_test_\\name\n"
	"follow_test_\\name:\n"
	".endm\n"
	".macro begin name\n"
	".type follow_test_\\name, %function\n"
	"mark \\name\n"
	".cfi_startproc\n"
	".endm\n"
	".macro finish name\n"
	".cfi_endproc\n"
	".size follow_test_\\name, . - follow_test_\\name\n"
	".endm\n"
	/* The branch jumps to the second of two returns. */
	"begin two_returns\n"
	"test %edi, %edi\nje 1f\nmark first_return\nret\n1: nop\nmark second_return\nret\n"
	"finish two_returns\n"
	/* A PLT entry with endbr64. */
	"begin stub\n"
	"endbr64\nbnd jmp *follow_test_entry(%rip)\n"
	"finish stub\n"
	"begin by_jump\n"
	"nop\njmp follow_test_two_returns\n"
	"finish by_jump\n"
	"begin by_stub\n"
	"nop\njmp follow_test_stub\n"
	"finish by_stub\n"
	"begin by_slot\n"
	"nop\njmp *follow_test_entry(%rip)\n"
	"finish by_slot\n"
	"begin in_a_row\n"
	"nop\njmp follow_test_by_stub\n"
	"finish in_a_row\n"
	"begin by_branch\n"
	"test %edi, %edi\njne follow_test_by_jump\njmp follow_test_in_a_row\n"
	"finish by_branch\n"
	/* The two functions jump to each other; the first one also returns. */
	"begin round_a\n"
	"test %edi, %edi\nje 1f\njmp follow_test_round_b\n1: nop\nmark own_return\nret\n"
	"finish round_a\n"
	"begin round_b\n"
	"nop\njmp follow_test_round_a\n"
	"finish round_b\n"
	"begin by_pointer\n"
	"nop\nmark pointer\njmp *%rax\n"
	"finish by_pointer\n"
	"begin by_vtable\n"
	"test %edi, %edi\nje 1f\nmov (%rdi), %rax\nmark vtable\njmp *0x18(%rax)\n1: nop\nmark "
	"vtable_return\nret\n"
	"finish by_vtable\n"
	"begin to_hole\n"
	"test %edi, %edi\nje 1f\nmark hole_jump\njmp follow_test_hole\n1: jmp follow_test_by_jump\n"
	"finish to_hole\n"
	"begin to_hole_branch\n"
	"test %edi, %edi\njne follow_test_hole\nret\n"
	"finish to_hole_branch\n"
	/* Bytes that do not decode as an instruction. */
	"begin hole\n"
	"push %rax\n.byte 0x06, 0x06\nret\n"
	"finish hole\n"
	/* A jump to code that belongs to no function. */
	"begin to_unknown\n"
	"nop\nmark unknown_jump\njmp 1f\n"
	"finish to_unknown\n"
	"mark unknown_end\nud2\nud2\n1: nop\nret\nud2\n"
	"begin never\n"
	"nop\njmp .\n"
	"finish never\n"
	"begin plain\n"
	"nop\nret\n"
	"finish plain\n"
	/* A GOT entry that is not bound yet points back into its PLT entry. */
	"begin unbound_stub\n"
	"jmp *follow_test_lazy(%rip)\nfollow_test_push: .byte 0x68, 3, 0, 0, 0, 0x90\n"
	"finish unbound_stub\n"
	"begin by_unbound\n"
	"nop\nmark unbound_jump\njmp follow_test_unbound_stub\n"
	"finish by_unbound\n"
	"begin end\n"
	"ret\n"
	"finish end\n"
	".purgem mark\n"
	".purgem begin\n"
	".purgem finish\n"
	".popsection\n"
	".pushsection .data.rel.ro,\"aw\",%progbits\n"
	".balign 8\n"
	"follow_test_entry: .quad follow_test_two_returns\n"
	"follow_test_lazy: .quad follow_test_push\n"
	".popsection\n");
#else
__asm__(".pushsection .text\n"
	".irp name, two_returns, first_return, second_return, stub, by_jump, by_stub, by_slot, "
	"in_a_row, by_branch, round_a, round_b, own_return, by_pointer, pointer, by_vtable, "
	"vtable, vtable_return, to_hole, hole, hole_jump, to_hole_branch, to_unknown, "
	"unknown_jump, unknown_end, never, plain, unbound_stub, by_unbound, unbound_jump, end\n"
	".globl follow_test_\\name\n"
	"follow_test_\\name:\n"
	".endr\n"
	"ret\n"
	".popsection\n");
#endif

static int take_bias(struct dl_phdr_info *info, size_t size, void *bias)
{
	*(uint64_t *)bias = info->dlpi_addr;
	return 1;
}

/* Follows a function of this program. Its end is the begin of the next function. */
static int follow_it(struct follow *follow, const char *entry, const char *end)
{
	struct step_function function = {.fd = -1, .size = (uint64_t)(end - entry)};
	uint64_t bias = 0;
	struct stat status;

	/* dl_iterate_phdr() reports the program itself first. */
	dl_iterate_phdr(take_bias, &bias);
	assert_int_equal(stat("/proc/self/exe", &status), 0);
	function.device = status.st_dev;
	function.inode = status.st_ino;
	function.address = (uintptr_t)entry - bias;
	return follow_exits(follow, (uint32_t)getpid(), &function);
}

#define FOLLOW(follow, name, next) follow_it(follow, follow_test_##name, follow_test_##next)

/* True if there is a place of that kind at the address, in this program's own code. */
static bool has(const struct follow *follow, const char *address, enum follow_kind kind)
{
	vec_for_each (place, &follow->places) {
		uint8_t byte;
		int fd = follow->files.items[place->file].fd;

		if (place->address != (uintptr_t)address || place->kind != kind)
			continue;
		assert_int_equal(pread(fd, &byte, 1, (off_t)place->offset), 1);
		return byte == *(const uint8_t *)address;
	}
	return false;
}

static int skip_elsewhere(void **state)
{
#ifndef __x86_64__
	print_message("SKIP jumps are followed on x86-64\n");
	skip();
#endif
	return 0;
}

static void expect_both_returns(const char *entry, const char *end, uint32_t functions)
{
	struct follow follow;

	assert_int_equal(follow_it(&follow, entry, end), 0);
	assert_int_equal(follow.places.count, 2);
	assert_true(has(&follow, follow_test_first_return, FOLLOW_RETURN));
	assert_true(has(&follow, follow_test_second_return, FOLLOW_RETURN));
	assert_int_equal(follow.functions, functions);
	assert_int_equal(follow.jumps, 0);
	follow_clear(&follow);
}

static void jumps_are_followed_to_all_returns(void **state)
{
	expect_both_returns(follow_test_by_jump, follow_test_by_stub, 1);
	expect_both_returns(follow_test_by_stub, follow_test_by_slot, 1);
	expect_both_returns(follow_test_by_slot, follow_test_in_a_row, 1);
	expect_both_returns(follow_test_in_a_row, follow_test_by_branch, 2);
	expect_both_returns(follow_test_by_branch, follow_test_round_a, 4);
}

static void the_own_returns_are_told_from_those_of_others(void **state)
{
	struct follow follow;

	assert_int_equal(FOLLOW(&follow, round_a, round_b), 0);
	assert_int_equal(follow.places.count, 1);
	assert_true(has(&follow, follow_test_own_return, FOLLOW_OWN));
	follow_clear(&follow);
	assert_int_equal(FOLLOW(&follow, round_b, by_pointer), 0);
	assert_int_equal(follow.places.count, 1);
	assert_true(has(&follow, follow_test_own_return, FOLLOW_RETURN));
	follow_clear(&follow);
}

static void a_pointer_is_read_when_it_is_passed(void **state)
{
	struct follow follow;

	assert_int_equal(FOLLOW(&follow, by_pointer, by_vtable), 0);
	assert_int_equal(follow.places.count, 1);
	assert_true(has(&follow, follow_test_pointer, FOLLOW_JUMP));
	assert_true(follow.places.items[0].operand);
	assert_non_null(strstr(follow.reason, "a jump through a pointer"));
	follow_clear(&follow);
	assert_int_equal(FOLLOW(&follow, by_vtable, to_hole), 0);
	assert_int_equal(follow.places.count, 2);
	assert_true(has(&follow, follow_test_vtable, FOLLOW_JUMP));
	assert_true(has(&follow, follow_test_vtable_return, FOLLOW_OWN));
	follow_clear(&follow);
}

static void what_a_pointer_led_to_is_followed_from_there(void **state)
{
	struct follow follow;

	assert_int_equal(follow_entry(&follow, (uint32_t)getpid(), (uintptr_t)follow_test_in_a_row),
			 0);
	assert_int_equal(follow.places.count, 2);
	assert_true(has(&follow, follow_test_second_return, FOLLOW_RETURN));
	follow_clear(&follow);
	assert_int_equal(follow_entry(&follow, (uint32_t)getpid(), (uintptr_t)follow_test_stub), 0);
	assert_true(has(&follow, follow_test_first_return, FOLLOW_RETURN));
	follow_clear(&follow);
	assert_int_equal(follow_entry(&follow, (uint32_t)getpid(), (uintptr_t)&follow), -ENOENT);
	follow_clear(&follow);
}

static void the_middle_of_a_function_is_no_entry(void **state)
{
	struct follow follow;

	assert_int_equal(
		follow_entry(&follow, (uint32_t)getpid(), (uintptr_t)follow_test_first_return),
		-ENOTSUP);
	follow_clear(&follow);
}

/* The function's other exits are still followed. */
static void a_jump_that_cannot_be_followed_is_a_place(void **state)
{
	struct follow follow;

	assert_int_equal(FOLLOW(&follow, to_hole, to_hole_branch), 0);
	assert_true(has(&follow, follow_test_hole_jump, FOLLOW_JUMP));
	assert_true(has(&follow, follow_test_first_return, FOLLOW_RETURN));
	assert_int_equal(follow.jumps, 1);
	assert_non_null(strstr(follow.reason, "decoded"));
	follow_clear(&follow);
}

static void a_branch_that_cannot_be_followed_is_a_reason(void **state)
{
	struct follow follow;

	assert_int_equal(FOLLOW(&follow, to_hole_branch, hole), -ENOTSUP);
	assert_non_null(strstr(follow.reason, "decoded"));
	follow_clear(&follow);
}

static void a_function_whose_end_is_not_known_is_a_reason(void **state)
{
	struct follow follow;

	assert_int_equal(FOLLOW(&follow, to_unknown, unknown_end), -ENOTSUP);
	assert_non_null(strstr(follow.reason, "where its code ends is not known"));
	follow_clear(&follow);
}

static void what_the_linker_has_not_bound_is_not_followed(void **state)
{
	struct follow follow;

	assert_int_equal(FOLLOW(&follow, by_unbound, end), -ENOTSUP);
	assert_true(has(&follow, follow_test_unbound_jump, FOLLOW_JUMP));
	assert_non_null(strstr(follow.reason, "has not called it yet"));
	follow_clear(&follow);
}

static void a_function_that_never_returns_is_a_reason(void **state)
{
	struct follow follow;

	assert_int_equal(FOLLOW(&follow, never, plain), -ENOTSUP);
	assert_non_null(strstr(follow.reason, "nothing that it leads to returns"));
	follow_clear(&follow);
}

static void a_function_of_a_file_that_is_not_mapped_has_no_exits(void **state)
{
	struct step_function nowhere = {.fd = -1, .inode = 1, .device = 1, .address = 4096};
	struct follow follow;

	assert_int_equal(follow_exits(&follow, (uint32_t)getpid(), &nowhere), -ENOENT);
	follow_clear(&follow);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(jumps_are_followed_to_all_returns, skip_elsewhere),
		cmocka_unit_test_setup(the_own_returns_are_told_from_those_of_others,
				       skip_elsewhere),
		cmocka_unit_test_setup(a_pointer_is_read_when_it_is_passed, skip_elsewhere),
		cmocka_unit_test_setup(what_a_pointer_led_to_is_followed_from_there,
				       skip_elsewhere),
		cmocka_unit_test_setup(the_middle_of_a_function_is_no_entry, skip_elsewhere),
		cmocka_unit_test_setup(a_jump_that_cannot_be_followed_is_a_place, skip_elsewhere),
		cmocka_unit_test_setup(a_branch_that_cannot_be_followed_is_a_reason,
				       skip_elsewhere),
		cmocka_unit_test_setup(a_function_whose_end_is_not_known_is_a_reason,
				       skip_elsewhere),
		cmocka_unit_test_setup(what_the_linker_has_not_bound_is_not_followed,
				       skip_elsewhere),
		cmocka_unit_test_setup(a_function_that_never_returns_is_a_reason, skip_elsewhere),
		cmocka_unit_test(a_function_of_a_file_that_is_not_mapped_has_no_exits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
