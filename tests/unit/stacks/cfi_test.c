/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>

#include "elf_fixture.h"
#include "stacks/cfi.h"
#include "elf/symbols.h"

static struct registers x86_at(uint64_t sp)
{
	struct registers registers = {.arch = FBT_ARCH_X86_64};

	for (unsigned int i = 0; i <= X86_PC; i++)
		register_set(&registers, i, i);
	register_set(&registers, X86_SP, sp);
	return registers;
}

static int compute(const uint8_t *code, size_t size, uint64_t *result)
{
	static const uint64_t words[] = {11, 22, 33};
	struct stack_copy copy = {1000, (const uint8_t *)words, sizeof(words)};
	struct registers registers = x86_at(1000);
	struct cfi_expression expression = {.size = (uint8_t)size};
	uint64_t first = 7;

	memcpy(expression.code, code, size);
	return cfi_compute(&expression, &registers, &copy, &first, result);
}

#define assert_computes(value, ...)                                                                \
	do {                                                                                       \
		const uint8_t code[] = {__VA_ARGS__};                                              \
		uint64_t result = 0;                                                               \
		assert_int_equal(compute(code, sizeof(code), &result), 0);                         \
		assert_int_equal(result, value);                                                   \
	} while (0)

#define assert_fails(err, ...)                                                                     \
	do {                                                                                       \
		const uint8_t code[] = {__VA_ARGS__};                                              \
		uint64_t result;                                                                   \
		assert_int_equal(compute(code, sizeof(code), &result), err);                       \
	} while (0)

static void expressions_compute(void **state)
{
	(void)state;
	assert_computes(7 + 3, 0x33, 0x22);	   /* lit3 plus */
	assert_computes(22, 0x77, 8, 0x06);	   /* breg7 +8, deref */
	assert_computes((uint64_t)-5, 0x09, 0xfb); /* const1s */
	assert_computes(0xfffb, 0x0a, 0xfb, 0xff); /* const2u */
	assert_computes(300, 0x10, 0xac, 0x02);	   /* constu */
	assert_computes((uint64_t)-2, 0x11, 0x7e); /* consts */
	assert_computes(49, 0x12, 0x1e);	   /* dup, mul */
	assert_computes(7 << 3, 0x33, 0x24);	   /* shl */
	assert_computes(1, 0x32, 0x2a);		   /* ge */
	assert_computes(7 & 5, 0x35, 0x1a);	   /* and */
	assert_computes(2, 0x35, 0x1c);		   /* minus */
	assert_computes(107, 0x23, 100);	   /* plus_uconst */
	/* What the PLT of ld has: (rip & 15) >= 11, * 8, + rsp + 8. rip is 16, or 16 + 12. */
	assert_computes(1000 + 8, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22);
	assert_computes(1000 + 16, 0x77, 8, 0x80, 12, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22);
}

static void bad_expressions_are_refused(void **state)
{
	(void)state;
	assert_fails(-EBADMSG, 0x13, 0x13);  /* drop of nothing */
	assert_fails(-EBADMSG, 0x22);	     /* plus of one value */
	assert_fails(-EBADMSG, 0xff);	     /* no operation */
	assert_fails(-EBADMSG, 0x0c, 1, 2);  /* cut off */
	assert_fails(-EBADMSG, 0x13);	     /* leaves nothing */
	assert_fails(-EBADMSG, 0x92, 60, 0); /* no such register */
	assert_fails(-EFAULT, 0x30, 0x06);   /* memory at 0 */
}

/*
 * Functions of arm64 whose rows can be told by heart: leaf has no frame, keeper saves x19, x29 and
 * x30 in a frame of 32 bytes.
 */
static const char arm64_code[] = ".globl leaf, keeper\n"
				 ".type leaf, @function\n"
				 ".type keeper, @function\n"
				 "leaf: .cfi_startproc\n"
				 "nop\n"
				 "ret\n"
				 ".cfi_endproc\n"
				 ".size leaf, . - leaf\n"
				 "keeper: .cfi_startproc\n"
				 "hint 25\n"
				 ".cfi_negate_ra_state\n"
				 "stp x29, x30, [sp, -32]!\n"
				 ".cfi_def_cfa_offset 32\n"
				 ".cfi_offset 29, -32\n"
				 ".cfi_offset 30, -24\n"
				 "str x19, [sp, 16]\n"
				 ".cfi_offset 19, -16\n"
				 "bl leaf\n"
				 "ldp x29, x30, [sp], 32\n"
				 ".cfi_restore 29\n"
				 ".cfi_restore 30\n"
				 ".cfi_def_cfa_offset 0\n"
				 "ret\n"
				 ".cfi_endproc\n"
				 ".size keeper, . - keeper\n";

/*
 * More instructions than are read, each of one byte, and then the only ones that change the row; it
 * is wanted for the code after them.
 */
static const char long_code[] = ".globl many\n"
				".type many, %function\n"
				"many: .cfi_startproc\n"
				".rept 30000\n"
				"nop\n"
				".cfi_remember_state\n"
				".cfi_restore_state\n"
				".endr\n"
				".cfi_def_cfa_offset 80\n"
				"last: nop\n"
				"nop\n"
				".cfi_endproc\n"
				".size many, . - many\n"
				".globl last\n"
				".type last, %function\n"
				".size last, . - last\n"
				/* Fewer, but each pair copies all that is known. */
				".globl pairs\n"
				".type pairs, %function\n"
				"pairs: .cfi_startproc\n"
				".rept 5000\n"
				"nop\n"
				".cfi_remember_state\n"
				".cfi_restore_state\n"
				".endr\n"
				"end: nop\n"
				"nop\n"
				".cfi_endproc\n"
				".size pairs, . - pairs\n"
				".globl end\n"
				".type end, %function\n"
				".size end, . - end\n";

static int build(void **state)
{
	if (elf_fixture_set_up(state))
		return -1;
	elf_fixture_write(*state, "long.S", long_code);
	elf_fixture_run(*state, "gcc -shared -nostdlib long.S -o long");
	elf_fixture_write(*state, "a.S", arm64_code);
	elf_fixture_run(*state, "aarch64-linux-gnu-gcc -shared -nostdlib a.S -o a");
	return 0;
}

static uint64_t address_of(struct elf_file *file, const char *name)
{
	struct elf_symbols symbols;
	uint64_t address = 0;

	assert_int_equal(elf_symbols_read(&symbols, file), 0);
	for (size_t i = 0; i < symbols.count; i++)
		if (!strcmp(symbols.items[i].name, name))
			address = symbols.items[i].address;
	assert_true(address);
	elf_symbols_clear(&symbols);
	return address;
}

static void arm64_frames_are_left(void **state)
{
	/* A signature in the upper bits of the return address. */
	const uint64_t words[] = {0x2222, 0x7f00000000004444, 19, 0};
	struct stack_copy copy = {1000, (const uint8_t *)words, sizeof(words)};
	struct registers registers = {.arch = FBT_ARCH_ARM64}, caller, outer;
	struct cfi_reader *reader = cfi_reader__new();
	struct cfi_row row, again;
	struct elf_file *file;
	uint64_t frame, keeper;
	int fd;

	elf_fixture_need(*state, "aarch64-linux-gnu-gcc");
	fd = elf_fixture_open(*state, "a");
	assert_int_equal(elf_file__open(&file, fd), 0);
	keeper = address_of(file, "keeper");
	for (unsigned int i = 0; i < ARM64_SP; i++)
		register_set(&registers, i, i);
	register_set(&registers, ARM64_SP, 1000);
	register_set(&registers, ARM64_LR, keeper + 16);
	assert_int_equal(cfi_reader__find(reader, file, address_of(file, "leaf"), &row), 0);
	assert_int_equal(cfi_apply(&row, &registers, &copy, &caller, &frame), 0);
	assert_int_equal(frame, 1000);
	assert_int_equal(caller.value[ARM64_PC], keeper + 16);
	assert_int_equal(cfi_reader__find(reader, file, keeper + 12, &row), 0);
	assert_int_equal(cfi_apply(&row, &caller, &copy, &outer, &frame), 0);
	assert_int_equal(frame, 1032);
	assert_int_equal(outer.value[ARM64_PC], 0x4444);
	assert_int_equal(outer.value[ARM64_FP], 0x2222);
	assert_int_equal(outer.value[19], 19);
	/* A register that the call may have changed is not known any more. */
	assert_false(outer.known >> 3 & 1);
	/* After the frame is left: that of its caller again. */
	assert_int_equal(cfi_reader__find(reader, file, keeper + 20, &row), 0);
	assert_int_equal(row.frame_rule.offset, 0);
	assert_int_equal(row.rules[ARM64_LR].how, CFI_SAME);
	assert_int_equal(row.rules[19].how, CFI_AT);
	/* A row that was found before is the same again. */
	assert_int_equal(cfi_reader__find(reader, file, keeper + 12, &again), 0);
	assert_int_equal(again.frame_rule.offset, 32);
	assert_int_equal(again.rules[ARM64_LR].how, CFI_AT);
	cfi_reader__free(reader);
	elf_file__free(file);
	close(fd);
}

static void an_address_outside_has_no_row(void **state)
{
	struct cfi_reader *reader = cfi_reader__new();
	struct cfi_row row;
	struct elf_file *file;
	int fd;

	elf_fixture_need(*state, "aarch64-linux-gnu-gcc");
	fd = elf_fixture_open(*state, "a");
	assert_int_equal(elf_file__open(&file, fd), 0);
	assert_int_equal(cfi_reader__find(reader, file, 1, &row), -ENOENT);
	assert_int_equal(cfi_reader__find(reader, file, address_of(file, "keeper") + 24, &row),
			 -ENOENT);
	cfi_reader__free(reader);
	elf_file__free(file);
	close(fd);
}

static void a_row_behind_what_is_read_is_not_known(void **state)
{
	struct cfi_reader *reader = cfi_reader__new();
	struct cfi_row row;
	struct elf_file *file;
	int fd;

	elf_fixture_need(*state, "gcc");
	fd = elf_fixture_open(*state, "long");
	assert_int_equal(elf_file__open(&file, fd), 0);
	assert_int_equal(cfi_reader__find(reader, file, address_of(file, "many"), &row), 0);
	assert_int_equal(cfi_reader__find(reader, file, address_of(file, "last"), &row), -EBADMSG);
	assert_int_equal(cfi_reader__find(reader, file, address_of(file, "pairs"), &row), 0);
	assert_int_equal(cfi_reader__find(reader, file, address_of(file, "end"), &row), -EBADMSG);
	cfi_reader__free(reader);
	elf_file__free(file);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(expressions_compute),
		cmocka_unit_test(bad_expressions_are_refused),
		cmocka_unit_test(arm64_frames_are_left),
		cmocka_unit_test(an_address_outside_has_no_row),
		cmocka_unit_test(a_row_behind_what_is_read_is_not_known),
	};

	return cmocka_run_group_tests(tests, build, elf_fixture_tear_down);
}
