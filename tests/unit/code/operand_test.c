/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include "fbt_shared.h"
#include "code/operand.h"

#define OPERAND(code) jump_operand((const uint8_t *)(code), sizeof(code) - 1)
#define NONE	      16

/* Register numbers as encoded in instructions. */
enum { RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI, R8, R11 = 11, R12, R13 };

static uint32_t base_is(uint32_t base)
{
	return base == NONE ? 0 : FBT_JUMP_HAS_BASE | base << FBT_JUMP_BASE_SHIFT;
}

static uint32_t in_register(uint32_t base)
{
	return FBT_JUMP_KNOWN | base_is(base);
}

static uint32_t in_memory(uint32_t base, uint32_t index, uint32_t scale, int32_t displacement)
{
	return FBT_JUMP_KNOWN | FBT_JUMP_MEMORY | base_is(base) |
	       (index == NONE ? 0 : FBT_JUMP_HAS_INDEX | index << FBT_JUMP_INDEX_SHIFT) |
	       scale << FBT_JUMP_SCALE_SHIFT |
	       (uint32_t)displacement << FBT_JUMP_DISPLACEMENT_SHIFT;
}

static void a_register_is_the_target(void **state)
{
	assert_int_equal(OPERAND("\xff\xe0"), in_register(RAX));
	assert_int_equal(OPERAND("\xff\xe4"), in_register(RSP));
	assert_int_equal(OPERAND("\x41\xff\xe3"), in_register(R11));
	assert_int_equal(OPERAND("\xf2\xff\xe1"), in_register(RCX));	 /* bnd */
	assert_int_equal(OPERAND("\x3e\x41\xff\xe5"), in_register(R13)); /* notrack */
}

static void memory_has_a_base_and_a_displacement(void **state)
{
	assert_int_equal(OPERAND("\xff\x20"), in_memory(RAX, NONE, 0, 0));
	assert_int_equal(OPERAND("\xff\x67\x08"), in_memory(RDI, NONE, 0, 8));
	assert_int_equal(OPERAND("\xff\x65\xf8"), in_memory(RBP, NONE, 0, -8));
	assert_int_equal(OPERAND("\xff\xa0\x90\x01\x00\x00"), in_memory(RAX, NONE, 0, 0x190));
	assert_int_equal(OPERAND("\x41\xff\x60\x10"), in_memory(R8, NONE, 0, 16));
}

static void memory_may_have_an_index(void **state)
{
	assert_int_equal(OPERAND("\xff\x24\xc8"), in_memory(RAX, RCX, 3, 0));
	assert_int_equal(OPERAND("\xff\x64\x24\x08"), in_memory(RSP, NONE, 0, 8));
	assert_int_equal(OPERAND("\x41\xff\x24\x24"), in_memory(R12, NONE, 0, 0));
	assert_int_equal(OPERAND("\x43\xff\x64\xe5\x00"), in_memory(R13, R12, 3, 0));
	/* jmp *0x1000(,%rdx,8), which has no base register */
	assert_int_equal(OPERAND("\xff\x24\xd5\x00\x10\x00\x00"), in_memory(NONE, RDX, 3, 0x1000));
}

static void what_does_not_fit_is_not_known(void **state)
{
	assert_int_equal(OPERAND("\xff\xa0\xff\xff\x01\x00"), in_memory(RAX, NONE, 0, 0x1ffff));
	assert_int_equal(OPERAND("\xff\xa0\x00\x00\x02\x00"), 0);
	assert_int_equal(OPERAND("\xff\xa0\x00\x00\xfe\xff"), in_memory(RAX, NONE, 0, -0x20000));
	assert_int_equal(OPERAND("\xff\xa0\xff\xff\xfd\xff"), 0);
}

static void only_near_jumps_have_one(void **state)
{
	assert_int_equal(OPERAND("\xff\x25\x00\x10\x00\x00"), 0); /* relative to rip */
	assert_int_equal(OPERAND("\xff\xd0"), 0);		  /* a call */
	assert_int_equal(OPERAND("\xff\x28"), 0);		  /* a far jump */
	assert_int_equal(OPERAND("\x64\xff\x20"), 0);		  /* %fs adds a segment base */
	assert_int_equal(OPERAND("\xe9\x00\x00\x00\x00"), 0);
	assert_int_equal(OPERAND("\xc3"), 0);
}

static void code_that_is_cut_off_has_none(void **state)
{
	assert_int_equal(OPERAND(""), 0);
	assert_int_equal(OPERAND("\xff"), 0);
	assert_int_equal(OPERAND("\x41"), 0);
	assert_int_equal(OPERAND("\xff\x67"), 0);
	assert_int_equal(OPERAND("\xff\x64"), 0);
	assert_int_equal(OPERAND("\xff\x64\x24"), 0);
	assert_int_equal(OPERAND("\xff\xa0\x90\x01\x00"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_register_is_the_target),
		cmocka_unit_test(memory_has_a_base_and_a_displacement),
		cmocka_unit_test(memory_may_have_an_index),
		cmocka_unit_test(what_does_not_fit_is_not_known),
		cmocka_unit_test(only_near_jumps_have_one),
		cmocka_unit_test(code_that_is_cut_off_has_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
