/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <string.h>
#include "code/insn.h"

#define START 0x1000

/* The instruction at index in the code. */
static struct insn decode_at(enum fbt_arch arch, const char *code, size_t size, size_t index)
{
	insn_vec insns = {0};
	struct insn insn;
	uint64_t bad;

	assert_int_equal(insn_decode(arch, (const uint8_t *)code, size, START, &insns, &bad), 0);
	assert_true(index < insns.count);
	insn = insns.items[index];
	vec_free(&insns);
	return insn;
}

#define X86(code, index)   decode_at(FBT_ARCH_X86_64, code, sizeof(code) - 1, index)
#define ARM64(code, index) decode_at(FBT_ARCH_ARM64, code, sizeof(code) - 1, index)

static void refuse(enum fbt_arch arch, const char *code, size_t size, uint64_t where)
{
	insn_vec insns = {0};
	uint64_t bad = 0;

	assert_int_equal(insn_decode(arch, (const uint8_t *)code, size, START, &insns, &bad),
			 -EBADMSG);
	assert_int_equal(bad, where);
	vec_free(&insns);
}

static void insn_refuses_bytes_that_are_no_instruction(void **state)
{
	refuse(FBT_ARCH_X86_64, "\x90\x06", 2, START + 1);
}

static void insn_refuses_an_instruction_that_is_cut_off(void **state)
{
	refuse(FBT_ARCH_X86_64, "\xe9\x00\x00", 3, START);
	refuse(FBT_ARCH_X86_64, "\xc4\xe2\x71\x50", 4, START);
	refuse(FBT_ARCH_ARM64, "\xc0\x03\x5f\xd6\xc0\x03", 6, START + 4);
}

static void insn_knows_every_near_return(void **state)
{
	assert_int_equal(X86("\xc3", 0).kind, INSN_RETURN);
	assert_int_equal(X86("\xf3\xc3", 0).kind, INSN_RETURN);
	assert_int_equal(X86("\xf2\xc3", 0).kind, INSN_RETURN);
	assert_int_equal(X86("\xc2\x08\x00", 0).kind, INSN_RETURN);
}

static void insn_sees_no_return_inside_another_instruction(void **state)
{
	/* mov $0xc3c3c3c3,%eax; ret */
	assert_int_equal(X86("\xb8\xc3\xc3\xc3\xc3\xc3", 0).kind, INSN_NEXT);
	assert_int_equal(X86("\xb8\xc3\xc3\xc3\xc3\xc3", 1).kind, INSN_RETURN);
}

static void insn_takes_a_far_return_for_something_else(void **state)
{
	assert_int_equal(X86("\xcb", 0).kind, INSN_FAR);
	assert_int_equal(X86("\x48\xcf", 0).kind, INSN_FAR);
	assert_int_equal(X86("\xff\x28", 0).kind, INSN_FAR);
}

static void insn_follows_direct_jumps(void **state)
{
	struct insn insn = X86("\xe9\x00\x01\x00\x00", 0);

	assert_int_equal(insn.kind, INSN_JUMP);
	assert_int_equal(insn.target, START + 5 + 0x100);
	insn = X86("\xf2\xe9\x00\x01\x00\x00", 0);
	assert_int_equal(insn.kind, INSN_JUMP);
	insn = X86("\x74\xfe", 0);
	assert_int_equal(insn.kind, INSN_BRANCH);
	assert_int_equal(insn.target, START);
}

static void insn_takes_loop_and_jrcxz_for_branches(void **state)
{
	assert_int_equal(X86("\xe2\x05", 0).kind, INSN_BRANCH);
	assert_int_equal(X86("\xe2\x05", 0).target, START + 7);
	assert_int_equal(X86("\xe3\x05", 0).kind, INSN_BRANCH);
}

static void insn_refuses_to_read_a_16_bit_jump(void **state)
{
	/* capstone 4 decodes a displacement of two bytes, capstone 5 one of four. */
	assert_int_equal(X86("\x66\xe9\x00\x01\x00\x00", 0).kind, INSN_FAR);
}

static void insn_takes_a_jump_through_the_got_for_a_tail_call(void **state)
{
	assert_int_equal(X86("\xff\x25\x00\x01\x00\x00", 0).kind, INSN_LEAVE);
	assert_int_equal(X86("\xf2\xff\x25\x00\x01\x00\x00", 0).kind, INSN_LEAVE);
}

static void insn_takes_notrack_for_a_switch(void **state)
{
	assert_int_equal(X86("\x3e\xff\xe0", 0).kind, INSN_SWITCH);
}

static void insn_finds_the_table_of_a_switch(void **state)
{
	/* lea 0x100(%rip),%rdx; movslq (%rdx,%rax,4),%rax; add %rdx,%rax; jmp *%rax */
	struct insn insn =
		X86("\x48\x8d\x15\x00\x01\x00\x00\x48\x63\x04\x82\x48\x01\xd0\xff\xe0", 3);

	assert_int_equal(insn.kind, INSN_TABLE32);
	assert_int_equal(insn.target, START + 7 + 0x100);
}

static void insn_finds_a_table_of_addresses(void **state)
{
	/* jmp *0x401000(,%rax,8) */
	struct insn insn = X86("\xff\x24\xc5\x00\x10\x40\x00", 0);

	assert_int_equal(insn.kind, INSN_TABLE64);
	assert_int_equal(insn.target, 0x401000);
}

static void insn_forgets_a_table_entry_that_is_overwritten(void **state)
{
	/* as above, then mov (%rdi),%rax; jmp *%rax */
	struct insn insn = X86("\x48\x8d\x15\x00\x01\x00\x00\x48\x63\x04\x82\x48\x01\xd0"
			       "\x48\x8b\x07\xff\xe0",
			       4);

	assert_int_equal(insn.kind, INSN_INDIRECT);
	assert_false(insn.restored);
}

static void insn_sees_the_frame_taken_down_before_a_tail_call(void **state)
{
	/* add $8,%rsp; pop %rbx; jmp *%rax */
	struct insn insn = X86("\x48\x83\xc4\x08\x5b\xff\xe0", 2);

	assert_int_equal(insn.kind, INSN_INDIRECT);
	assert_true(insn.restored);
}

static void insn_sees_a_frame_set_up_again(void **state)
{
	/* pop %rbx; sub $8,%rsp; jmp *%rax */
	assert_false(X86("\x5b\x48\x83\xec\x08\xff\xe0", 2).restored);
	/* pop %rbx; call; jmp *%rax */
	assert_false(X86("\x5b\xe8\x00\x00\x00\x00\xff\xe0", 2).restored);
}

static void insn_measures_vector_instructions_of_newer_processors(void **state)
{
	/* vpdpbusd zmm, zmm, [rax+rcx*4+0x40]; vpdpbusd xmm; tileloadd; vaddph; ret */
	static const char code[] = "\x62\xf2\x75\x48\x50\x44\x88\x01"
				   "\xc4\xe2\x71\x50\xc2"
				   "\xc4\xe2\x7b\x4b\x04\x08"
				   "\x62\xf5\x74\x48\x58\xc2"
				   "\xc3";

	assert_int_equal(X86(code, 0).size, 8);
	assert_int_equal(X86(code, 1).size, 5);
	assert_int_equal(X86(code, 2).size, 6);
	assert_int_equal(X86(code, 3).size, 6);
	assert_int_equal(X86(code, 4).kind, INSN_RETURN);
}

static void insn_tells_traps_calls_and_padding(void **state)
{
	assert_int_equal(X86("\x0f\x0b", 0).kind, INSN_STOP);
	assert_int_equal(X86("\xcc", 0).kind, INSN_STOP);
	assert_int_equal(X86("\xe8\x00\x00\x00\x00", 0).kind, INSN_CALL);
	assert_int_equal(X86("\x66\x66\x2e\x0f\x1f\x84\x00\x00\x00\x00\x00", 0).kind, INSN_NOP);
}

static void insn_knows_the_returns_of_arm64(void **state)
{
	assert_int_equal(ARM64("\xc0\x03\x5f\xd6", 0).kind, INSN_RETURN);
}

static void insn_follows_the_jumps_of_arm64(void **state)
{
	assert_int_equal(ARM64("\x40\x00\x00\x14", 0).kind, INSN_JUMP);
	assert_int_equal(ARM64("\x40\x00\x00\x14", 0).target, START + 0x100);
	assert_int_equal(ARM64("\xff\xff\xff\x17", 0).target, START - 4);
	assert_int_equal(ARM64("\x40\x00\x00\x54", 0).kind, INSN_BRANCH); /* b.eq */
	assert_int_equal(ARM64("\x40\x00\x00\xb4", 0).kind, INSN_BRANCH); /* cbz x0 */
	assert_int_equal(ARM64("\x40\x00\x00\xb4", 0).target, START + 8);
	assert_int_equal(ARM64("\xe0\xff\x07\x37", 0).kind, INSN_BRANCH); /* tbnz w0, #0 */
	assert_int_equal(ARM64("\xe0\xff\x07\x37", 0).target, START - 4);
	assert_int_equal(ARM64("\x40\x00\x00\x94", 0).kind, INSN_CALL);
	assert_int_equal(ARM64("\x00\x00\x3f\xd6", 0).kind, INSN_CALL);
}

static void insn_tells_switch_and_tail_call_of_arm64(void **state)
{
	/* adr x1, .; add x0, x1, w0, sxtb #2; br x0 */
	assert_int_equal(ARM64("\x01\x00\x00\x10\x20\x88\x20\x8b\x00\x00\x1f\xd6", 2).kind,
			 INSN_SWITCH);
	/* ldp x29, x30, [sp], #16; br x16 */
	assert_int_equal(ARM64("\xfd\x7b\xc1\xa8\x00\x02\x1f\xd6", 1).kind, INSN_INDIRECT);
	assert_true(ARM64("\xfd\x7b\xc1\xa8\x00\x02\x1f\xd6", 1).restored);
	assert_false(ARM64("\x00\x02\x1f\xd6", 0).restored);
}

static void insn_sees_a_jump_through_the_got_of_arm64(void **state)
{
#define LOADS  "\x10\x00\x00\x90\x11\x0e\x40\xf9" /* adrp x16, .; ldr x17, [x16, #24] */
#define LEAVES "\x20\x02\x1f\xd6"		  /* br x17 */
	struct insn jump = ARM64(LOADS "\x10\x62\x00\x91" LEAVES, 3); /* add x16, x16, #24 */

	assert_int_equal(jump.kind, INSN_LEAVE);
	assert_int_equal(jump.target, (START & ~0xfffull) + 24);
	/* adrp x16, .+0x3000 */
	jump = ARM64("\x10\x00\x00\xf0\x11\x0e\x40\xf9" LEAVES, 2);
	assert_int_equal(jump.target, (START & ~0xfffull) + 0x3018);
	/* adrp x16, .-0x1000 */
	jump = ARM64("\xf0\xff\xff\xf0\x11\x0e\x40\xf9" LEAVES, 2);
	assert_int_equal(jump.target, (START & ~0xfffull) - 0x1000 + 24);
	/* mov x17, x0; mov x16, x0, before it is loaded from; br x16 */
	assert_int_equal(ARM64(LOADS "\xf1\x03\x00\xaa" LEAVES, 3).kind, INSN_INDIRECT);
	assert_int_equal(ARM64("\x10\x00\x00\x90\xf0\x03\x00\xaa\x11\x0e\x40\xf9" LEAVES, 3).kind,
			 INSN_INDIRECT);
	assert_int_equal(ARM64(LOADS "\x00\x02\x1f\xd6", 2).kind, INSN_INDIRECT);
	/* blr x0 in between */
	assert_int_equal(ARM64(LOADS "\x00\x00\x3f\xd6" LEAVES, 3).kind, INSN_INDIRECT);
}

static void insn_sees_a_frame_record_of_arm64(void **state)
{
	assert_true(ARM64("\xfd\x03\x00\x91", 0).frame);  /* mov x29, sp */
	assert_true(ARM64("\xfd\x43\x01\x91", 0).frame);  /* add x29, sp, #0x50 */
	assert_false(ARM64("\xe0\x43\x01\x91", 0).frame); /* add x0, sp, #0x50 */
	assert_false(ARM64("\xfd\x03\x00\xaa", 0).frame); /* mov x29, x0 */
}

static void insn_takes_authenticated_returns_and_jumps_for_something_else(void **state)
{
	assert_int_equal(ARM64("\xff\x0b\x5f\xd6", 0).kind, INSN_FAR);	/* retaa */
	assert_int_equal(ARM64("\xff\x0f\x5f\xd6", 0).kind, INSN_FAR);	/* retab */
	assert_int_equal(ARM64("\x1f\x08\x1f\xd6", 0).kind, INSN_FAR);	/* braaz x0 */
	assert_int_equal(ARM64("\x01\x08\x1f\xd7", 0).kind, INSN_FAR);	/* braa x0, x1 */
	assert_int_equal(ARM64("\x1f\x08\x3f\xd6", 0).kind, INSN_CALL); /* blraaz x0 */
}

static void insn_measures_branch_target_markers(void **state)
{
	const uint8_t endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};
	const uint8_t bti_c[] = {0x5f, 0x24, 0x03, 0xd5};
	const uint8_t paciasp[] = {0x3f, 0x23, 0x03, 0xd5};

	assert_int_equal(insn_marker_size(FBT_ARCH_X86_64, endbr64, 4), 4);
	assert_int_equal(insn_marker_size(FBT_ARCH_X86_64, endbr64, 3), 0);
	assert_int_equal(insn_marker_size(FBT_ARCH_X86_64, bti_c, 4), 0);
	assert_int_equal(insn_marker_size(FBT_ARCH_ARM64, bti_c, 4), 4);
	assert_int_equal(insn_marker_size(FBT_ARCH_ARM64, paciasp, 4), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(insn_refuses_bytes_that_are_no_instruction),
		cmocka_unit_test(insn_refuses_an_instruction_that_is_cut_off),
		cmocka_unit_test(insn_knows_every_near_return),
		cmocka_unit_test(insn_sees_no_return_inside_another_instruction),
		cmocka_unit_test(insn_takes_a_far_return_for_something_else),
		cmocka_unit_test(insn_follows_direct_jumps),
		cmocka_unit_test(insn_takes_loop_and_jrcxz_for_branches),
		cmocka_unit_test(insn_refuses_to_read_a_16_bit_jump),
		cmocka_unit_test(insn_takes_a_jump_through_the_got_for_a_tail_call),
		cmocka_unit_test(insn_takes_notrack_for_a_switch),
		cmocka_unit_test(insn_finds_the_table_of_a_switch),
		cmocka_unit_test(insn_finds_a_table_of_addresses),
		cmocka_unit_test(insn_forgets_a_table_entry_that_is_overwritten),
		cmocka_unit_test(insn_sees_the_frame_taken_down_before_a_tail_call),
		cmocka_unit_test(insn_sees_a_frame_set_up_again),
		cmocka_unit_test(insn_measures_vector_instructions_of_newer_processors),
		cmocka_unit_test(insn_tells_traps_calls_and_padding),
		cmocka_unit_test(insn_knows_the_returns_of_arm64),
		cmocka_unit_test(insn_follows_the_jumps_of_arm64),
		cmocka_unit_test(insn_tells_switch_and_tail_call_of_arm64),
		cmocka_unit_test(insn_sees_a_jump_through_the_got_of_arm64),
		cmocka_unit_test(insn_sees_a_frame_record_of_arm64),
		cmocka_unit_test(insn_takes_authenticated_returns_and_jumps_for_something_else),
		cmocka_unit_test(insn_measures_branch_target_markers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
