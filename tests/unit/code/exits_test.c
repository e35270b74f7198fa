/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "code/exits.h"

#define BODY 0x1000
#define COLD 0x2000

/* Two pieces of memory: the function's body and one other region. */
struct memory {
	const char *body;
	size_t body_size;
	const char *other;
	size_t other_size;
	enum region_kind kind; /* of other */
	bool is_arm64;
	bool follows;
};

static int read_memory(void *ctx, uint64_t address, void *data, size_t size)
{
	const struct memory *memory = ctx;

	if (address >= BODY && address + size <= BODY + memory->body_size)
		memcpy(data, memory->body + (address - BODY), size);
	else if (address >= COLD && address + size <= COLD + memory->other_size)
		memcpy(data, memory->other + (address - COLD), size);
	else
		return -ERANGE;
	return 0;
}

static enum region_kind find_region(void *ctx, uint64_t address, struct code_range *range)
{
	const struct memory *memory = ctx;

	if (address < COLD || address - COLD >= memory->other_size)
		return REGION_UNKNOWN;
	*range = (struct code_range){COLD, memory->other_size};
	return memory->kind;
}

static int find(struct memory *memory, struct exits *exits)
{
	struct exits_source source = {memory->is_arm64 ? FBT_ARCH_ARM64 : FBT_ARCH_X86_64,
				      read_memory, find_region, memory, memory->follows};
	struct code_range range = {BODY, memory->body_size};

	return exits_find(exits, &source, &range, 1);
}

#define CODE(text)	  .body = text, .body_size = sizeof(text) - 1
#define OTHER(text, what) .other = text, .other_size = sizeof(text) - 1, .kind = what

static void refuse(struct memory memory, const char *reason)
{
	struct exits exits;

	assert_int_equal(find(&memory, &exits), -ENOTSUP);
	assert_non_null(strstr(exits.reason, reason));
	exits_clear(&exits);
}

/* The only exit of the code; 0 if there are none or several. */
static uint64_t only_exit(struct memory memory)
{
	struct exits exits;
	uint64_t address;

	assert_int_equal(find(&memory, &exits), 0);
	address = exits.addresses.count == 1 ? exits.addresses.items[0] : 0;
	exits_clear(&exits);
	return address;
}

static uint64_t begin_of(struct memory memory)
{
	struct exits exits;

	assert_int_equal(find(&memory, &exits), 0);
	exits_clear(&exits);
	return exits.begin.address;
}

static void exits_refuse_code_that_cannot_be_decoded(void **state)
{
	refuse((struct memory){CODE("\x90\x06\xc3")}, "decoded at 0x1001");
}

static void exits_refuse_a_function_that_never_returns(void **state)
{
	refuse((struct memory){CODE("\xeb\xfe")}, "first instruction");
	refuse((struct memory){CODE("\x90\xeb\xfd\x90")}, "first instruction");
	refuse((struct memory){CODE("\x90\x90\xeb\xfd")}, "no return");
}

static void exits_refuse_a_conditional_tail_jump(void **state)
{
	/* je 0x3000; ret */
	refuse((struct memory){CODE("\x0f\x84\xfa\x1f\x00\x00\xc3")}, "conditional jump");
}

static void exits_that_are_followed_may_be_branches_and_loops(void **state)
{
	/* je 0x3000; ret */
	struct memory branch = {CODE("\x0f\x84\xfa\x1f\x00\x00\xc3"), .follows = true};
	/* je 0x1000; jmp *0x10(%rip) */
	struct memory loop = {CODE("\x74\xfe\xff\x25\x10\x00\x00\x00"), .follows = true};
	struct exits exits;

	assert_int_equal(find(&branch, &exits), 0);
	assert_int_equal(exits.addresses.count, 2);
	assert_int_equal(exits.targets.items[0], 0x3000);
	assert_int_equal(exits.kinds.items[0], INSN_BRANCH);
	assert_int_equal(exits.kinds.items[1], INSN_RETURN);
	exits_clear(&exits);
	assert_int_equal(find(&loop, &exits), 0);
	assert_int_equal(exits.addresses.count, 1);
	assert_int_equal(exits.slots.items[0], 0x1018);
	assert_int_equal(exits.targets.items[0], 0);
	exits_clear(&exits);
}

static void exits_refuse_a_jump_into_an_instruction(void **state)
{
	/* jmp +1; mov $0,%eax; ret */
	refuse((struct memory){CODE("\xeb\x01\xb8\x00\x00\x00\x00\xc3")}, "middle");
}

static void exits_refuse_code_that_runs_on(void **state)
{
	refuse((struct memory){CODE("\x74\x01\xc3\x55")}, "runs on");
	refuse((struct memory){CODE("\x90\xc3\x74\xfd")}, "runs on");
}

static void exits_refuse_a_jump_that_may_stay(void **state)
{
	/* jmp *(%rax); then code that only such a jump reaches */
	refuse((struct memory){CODE("\xff\x20\x31\xc0\xc3")}, "indirect jump");
}

static void exits_refuse_a_far_return(void **state)
{
	refuse((struct memory){CODE("\xcb")}, "far");
}

static void exits_pass_on_a_failed_read(void **state)
{
	struct memory memory = {CODE("\xc3")};
	struct exits_source source = {FBT_ARCH_X86_64, read_memory, find_region, &memory};
	struct code_range range = {0x9000, 4};
	struct exits exits;

	assert_int_equal(exits_find(&exits, &source, &range, 1), -ERANGE);
}

static void exits_find_every_return(void **state)
{
	/* je +1; ret; xor %eax,%eax; ret */
	struct memory memory = {CODE("\x74\x01\xc3\x31\xc0\xc3")};
	struct exits exits;

	assert_int_equal(find(&memory, &exits), 0);
	assert_int_equal(exits.addresses.count, 2);
	assert_int_equal(exits.addresses.items[0], BODY + 2);
	assert_int_equal(exits.addresses.items[1], BODY + 5);
	exits_clear(&exits);
}

static void exits_allow_a_call_that_does_not_return_at_the_end(void **state)
{
	assert_int_equal(only_exit((struct memory){CODE("\x74\x01\xc3\xe8\x00\x00\x00\x00\x90")}),
			 BODY + 2);
}

static void exits_take_a_jump_to_a_function_for_a_tail_call(void **state)
{
	/* jmp COLD */
	assert_int_equal(only_exit((struct memory){CODE("\xe9\xfb\x0f\x00\x00"),
						   OTHER("\xc3", REGION_FUNCTION)}),
			 BODY);
	assert_int_equal(only_exit((struct memory){CODE("\xe9\xfb\x0f\x00\x00"),
						   OTHER("\xc3", REGION_NAMELESS)}),
			 BODY);
}

static void exits_tell_returns_and_where_tail_calls_lead_to(void **state)
{
	/* je 1f; ret; 1: jmp COLD; jmp COLD; jmp *0x100(%rip); pop %rax; jmp *%rax */
	struct memory memory = {
		CODE("\x74\x01\xc3\xe9\xf8\x0f\x00\x00\xe9\xf3\x0f\x00\x00\xff\x25\x00\x01\x00\x00"
		     "\x58\xff\xe0"),
		OTHER("\xc3", REGION_FUNCTION)};
	struct exits exits;

	assert_int_equal(find(&memory, &exits), 0);
	assert_int_equal(exits.returns, 1);
	assert_int_equal(exits.tail_calls, 4);
	assert_int_equal(exits.pointers, 1);
	assert_int_equal(exits.tails.count, 2);
	assert_int_equal(exits.tails.items[0].address, COLD);
	assert_false(exits.tails.items[0].is_slot);
	assert_int_equal(exits.tails.items[1].address, BODY + 19 + 0x100);
	assert_true(exits.tails.items[1].is_slot);
	exits_clear(&exits);
}

static void exits_take_a_jump_through_memory_for_a_tail_call_if_all_else_is_reached(void **state)
{
	/* mov (%rdi),%rax; jmp *0x18(%rax) */
	assert_int_equal(only_exit((struct memory){CODE("\x48\x8b\x07\xff\x60\x18")}), BODY + 3);
}

static void exits_follow_a_conditional_jump_to_a_cold_part(void **state)
{
	/* body: je COLD; ret — cold: ret */
	struct memory memory = {CODE("\x0f\x84\xfa\x0f\x00\x00\xc3"), OTHER("\xc3", REGION_PART)};
	struct exits exits;

	assert_int_equal(find(&memory, &exits), 0);
	assert_int_equal(exits.addresses.count, 2);
	assert_int_equal(exits.addresses.items[1], COLD);
	exits_clear(&exits);
}

static void exits_do_not_count_jumps_between_the_pieces(void **state)
{
	/* body: je COLD; ret — cold: jmp back to the ret */
	assert_int_equal(only_exit((struct memory){CODE("\x0f\x84\xfa\x0f\x00\x00\xc3"),
						   OTHER("\xe9\x01\xf0\xff\xff", REGION_PART)}),
			 BODY + 6);
}

static void exits_adopt_nameless_code_that_jumps_back(void **state)
{
	assert_int_equal(only_exit((struct memory){CODE("\x0f\x84\xfa\x0f\x00\x00\xc3"),
						   OTHER("\xe9\x01\xf0\xff\xff", REGION_NAMELESS)}),
			 BODY + 6);
}

static void exits_adopt_nameless_code_that_never_returns(void **state)
{
	assert_int_equal(
		only_exit((struct memory){CODE("\x0f\x84\xfa\x0f\x00\x00\xc3"),
					  OTHER("\xe8\x00\x00\x00\x00\x0f\x0b", REGION_NAMELESS)}),
		BODY + 6);
}

static void exits_adopt_nameless_code_that_is_entered_with_a_frame(void **state)
{
	/* jmp COLD — pop %rbx; ret */
	assert_int_equal(only_exit((struct memory){CODE("\xe9\xfb\x0f\x00\x00"),
						   OTHER("\x5b\xc3", REGION_FRAMED)}),
			 COLD + 1);
}

static void exits_do_not_adopt_the_plt(void **state)
{
	assert_int_equal(
		only_exit((struct memory){CODE("\xe9\xfb\x0f\x00\x00"),
					  OTHER("\xff\x25\x00\x00\x00\x00", REGION_FRAMED)}),
		BODY);
}

static void exits_tell_a_switch_by_its_table(void **state)
{
	/* lea COLD(%rip),%rdx; movslq (%rdx,%rax,4),%rax; add %rdx,%rax; jmp *%rax; ret */
	struct memory memory = {CODE("\x48\x8d\x15\xf9\x0f\x00\x00\x48\x63\x04\x82\x48\x01\xd0"
				     "\xff\xe0\xc3"),
				OTHER("\x10\xf0\xff\xff", REGION_FUNCTION)};

	assert_int_equal(only_exit(memory), BODY + 16);
	memory.other = "\x00\x10\x00\x00";
	refuse(memory, "indirect jump");
}

static void exits_of_arm64_cannot_authenticate(void **state)
{
	/* paciasp; nop; ret or retaa */
	struct memory memory = {CODE("\x3f\x23\x03\xd5\x1f\x20\x03\xd5\xc0\x03\x5f\xd6"),
				.is_arm64 = true};

	assert_int_equal(only_exit(memory), BODY + 8);
	memory.body = "\x3f\x23\x03\xd5\x1f\x20\x03\xd5\xff\x0b\x5f\xd6";
	refuse(memory, "retaa");
}

static void exits_of_arm64_tell_of_a_frame_record(void **state)
{
	/* stp x29, x30, [sp, #-16]!; mov x29, sp; ldp x29, x30, [sp], #16; ret */
	struct memory memory = {CODE("\xfd\x7b\xbf\xa9\xfd\x03\x00\x91\xfd\x7b\xc1\xa8"
				     "\xc0\x03\x5f\xd6"),
				.is_arm64 = true};
	struct exits exits;

	assert_int_equal(find(&memory, &exits), 0);
	assert_true(exits.keeps_frame);
	exits_clear(&exits);
}

static void exits_begin_after_a_branch_target_marker(void **state)
{
	assert_int_equal(begin_of((struct memory){CODE("\xf3\x0f\x1e\xfa\xc3")}), BODY + 4);
	assert_int_equal(begin_of((struct memory){CODE("\x90\xc3")}), BODY);
}

static void exits_begin_on_the_marker_if_a_loop_goes_after_it(void **state)
{
	/* endbr64; dec %edi; jne .-4; ret */
	assert_int_equal(begin_of((struct memory){CODE("\xf3\x0f\x1e\xfa\xff\xcf\x75\xfc\xc3")}),
			 BODY);
}

/* piece, repeated count times, followed by tail. */
static char *repeat(const char *piece, size_t size, size_t count, const char *tail)
{
	char *code = malloc(size * count + strlen(tail) + 1);

	assert_non_null(code);
	for (size_t i = 0; i < count; i++)
		memcpy(code + i * size, piece, size);
	strcpy(code + size * count, tail);
	return code;
}

/* One scan of the code serves all indirect jumps. */
static void exits_judge_all_indirect_jumps_at_once(void **state)
{
	const size_t count = 4000;
	/* je .+4; jmp *%rax */
	char *code = repeat("\x74\x02\xff\xe0", 4, count, "\xc3");
	struct memory memory = {.body = code, .body_size = 4 * count + 1};
	struct exits exits;

	assert_int_equal(find(&memory, &exits), 0);
	assert_int_equal(exits.addresses.count, count + 1);
	exits_clear(&exits);
	free(code);
}

/* Each would be probed. To judge all of them took an hour once. */
static void exits_refuse_a_hundred_thousand_indirect_jumps(void **state)
{
	const size_t count = 100000;
	char *code = repeat("\x74\x02\xff\xe0", 4, count, "\xc3");

	refuse((struct memory){.body = code, .body_size = 4 * count + 1}, "too many exits");
	free(code);
}

/* jmp to each piece of what lies at other, step bytes long. */
static char *jump_to_each(uint64_t other, size_t step, size_t count)
{
	char *code = malloc(5 * count);

	assert_non_null(code);
	for (size_t i = 0; i < count; i++) {
		int32_t distance = (int32_t)(other + step * i - (BODY + 5 * i + 5));

		code[5 * i] = '\xe9';
		memcpy(code + 5 * i + 1, &distance, sizeof(distance));
	}
	return code;
}

static void exits_refuse_to_look_at_code_again_and_again(void **state)
{
	char *body = jump_to_each(COLD, 1, 800);
	char *other = repeat("\x90", 1, 100000, "\xc3");
	struct memory memory = {body, 4000, other, 100001, REGION_NAMELESS, false};

	refuse(memory, "too much code");
	free(body);
	free(other);
}

static void exits_look_at_a_large_plt_once(void **state)
{
	char *body = jump_to_each(COLD, 6, 800);
	char *other = repeat("\xff\x25\x00\x00\x00\x00", 6, 20000, "");
	struct memory memory = {body, 4000, other, 120000, REGION_FRAMED, false};
	struct exits exits;

	assert_int_equal(find(&memory, &exits), 0);
	assert_int_equal(exits.addresses.count, 800);
	assert_int_equal(exits.tail_calls, 800);
	assert_int_equal(exits.tails.count, EXITS_TAILS_MAX);
	exits_clear(&exits);
	free(body);
	free(other);
}

static void exits_refuse_a_function_of_five_mebibytes(void **state)
{
	char *code = repeat("\x90", 1, 5 << 20, "\xc3");

	refuse((struct memory){.body = code, .body_size = (5 << 20) + 1}, "too much code");
	free(code);
}

static bool is_all_reached(const insn_vec *first, const insn_vec *second)
{
	const insn_vec *pieces[] = {first, second};
	bool all = false;

	assert_int_equal(exits_reach(pieces, second ? 2 : 1, &all), 0);
	return all;
}

#define INSNS(list)                                                                                \
	{                                                                                          \
		.items = list, .count = sizeof(list) / sizeof(*list)                               \
	}

static void reach_misses_code_after_a_jump(void **state)
{
	struct insn list[] = {{.address = 0, .target = 4, .size = 2, .kind = INSN_JUMP},
			      {.address = 2, .size = 2, .kind = INSN_NEXT},
			      {.address = 4, .size = 1, .kind = INSN_RETURN}};
	insn_vec insns = INSNS(list);

	assert_false(is_all_reached(&insns, NULL));
}

static void reach_does_not_ask_for_padding(void **state)
{
	struct insn list[] = {{.address = 0, .size = 1, .kind = INSN_RETURN},
			      {.address = 1, .size = 2, .kind = INSN_NOP}};
	insn_vec insns = INSNS(list);

	assert_true(is_all_reached(&insns, NULL));
}

static void reach_follows_both_ways_of_a_branch(void **state)
{
	struct insn list[] = {{.address = 0, .target = 3, .size = 2, .kind = INSN_BRANCH},
			      {.address = 2, .size = 1, .kind = INSN_RETURN},
			      {.address = 3, .size = 1, .kind = INSN_INDIRECT}};
	insn_vec insns = INSNS(list);

	assert_true(is_all_reached(&insns, NULL));
}

static void reach_goes_on_in_another_piece(void **state)
{
	struct insn list[] = {{.address = 0, .target = 100, .size = 2, .kind = INSN_BRANCH},
			      {.address = 2, .size = 1, .kind = INSN_RETURN}};
	struct insn other[] = {{.address = 100, .size = 5, .kind = INSN_CALL},
			       {.address = 105, .size = 2, .kind = INSN_STOP}};
	insn_vec insns = INSNS(list), cold = INSNS(other);

	assert_true(is_all_reached(&insns, &cold));
	list[0].target = 2;
	assert_false(is_all_reached(&insns, &cold));
}

static void reach_does_not_know_where_a_switch_goes(void **state)
{
	struct insn list[] = {{.address = 0, .size = 2, .kind = INSN_SWITCH},
			      {.address = 2, .size = 1, .kind = INSN_RETURN}};
	insn_vec insns = INSNS(list);

	assert_false(is_all_reached(&insns, NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exits_refuse_code_that_cannot_be_decoded),
		cmocka_unit_test(exits_refuse_a_function_that_never_returns),
		cmocka_unit_test(exits_refuse_a_conditional_tail_jump),
		cmocka_unit_test(exits_that_are_followed_may_be_branches_and_loops),
		cmocka_unit_test(exits_refuse_a_jump_into_an_instruction),
		cmocka_unit_test(exits_refuse_code_that_runs_on),
		cmocka_unit_test(exits_refuse_a_jump_that_may_stay),
		cmocka_unit_test(exits_refuse_a_far_return),
		cmocka_unit_test(exits_pass_on_a_failed_read),
		cmocka_unit_test(exits_find_every_return),
		cmocka_unit_test(exits_allow_a_call_that_does_not_return_at_the_end),
		cmocka_unit_test(exits_take_a_jump_to_a_function_for_a_tail_call),
		cmocka_unit_test(exits_tell_returns_and_where_tail_calls_lead_to),
		cmocka_unit_test(
			exits_take_a_jump_through_memory_for_a_tail_call_if_all_else_is_reached),
		cmocka_unit_test(exits_follow_a_conditional_jump_to_a_cold_part),
		cmocka_unit_test(exits_do_not_count_jumps_between_the_pieces),
		cmocka_unit_test(exits_adopt_nameless_code_that_jumps_back),
		cmocka_unit_test(exits_adopt_nameless_code_that_never_returns),
		cmocka_unit_test(exits_adopt_nameless_code_that_is_entered_with_a_frame),
		cmocka_unit_test(exits_do_not_adopt_the_plt),
		cmocka_unit_test(exits_judge_all_indirect_jumps_at_once),
		cmocka_unit_test(exits_refuse_a_hundred_thousand_indirect_jumps),
		cmocka_unit_test(exits_refuse_to_look_at_code_again_and_again),
		cmocka_unit_test(exits_look_at_a_large_plt_once),
		cmocka_unit_test(exits_refuse_a_function_of_five_mebibytes),
		cmocka_unit_test(exits_tell_a_switch_by_its_table),
		cmocka_unit_test(exits_of_arm64_cannot_authenticate),
		cmocka_unit_test(exits_of_arm64_tell_of_a_frame_record),
		cmocka_unit_test(exits_begin_after_a_branch_target_marker),
		cmocka_unit_test(exits_begin_on_the_marker_if_a_loop_goes_after_it),
		cmocka_unit_test(reach_misses_code_after_a_jump),
		cmocka_unit_test(reach_does_not_ask_for_padding),
		cmocka_unit_test(reach_follows_both_ways_of_a_branch),
		cmocka_unit_test(reach_goes_on_in_another_piece),
		cmocka_unit_test(reach_does_not_know_where_a_switch_goes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
