/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include "elf/unwind.h"
#include "elf_fixture.h"
#include "elf/symbols.h"

static int build(void **state)
{
	struct elf_fixture *fixture;

	if (elf_fixture_set_up(state))
		return -1;
	fixture = *state;
	elf_fixture_write(
		fixture, "a.c",
		"#include <stdio.h>\n"
		"__attribute__((noinline)) int step(int x) { return printf(\"%d\", x); }\n"
		"int main(void) { return step(1); }\n");
	elf_fixture_run(fixture, "gcc -O1 -rdynamic a.c -o a && cp a cut");
	return 0;
}

static void open_file(struct elf_fixture *fixture, const char *name, int *fd,
		      struct elf_file **file)
{
	*fd = elf_fixture_open(fixture, name);
	assert_int_equal(elf_file__open(file, *fd), 0);
}

static void fdes_cover_every_function_as_symbols_do(void **state)
{
	struct elf_symbols symbols;
	struct elf_fdes fdes;
	struct elf_file *file;
	struct elf_fde fde;
	size_t compared = 0;
	int fd;

	elf_fixture_need(*state, "gcc");
	open_file(*state, "a", &fd, &file);
	assert_int_equal(elf_fdes_read(&fdes, file), 0);
	assert_int_equal(elf_symbols_read(&symbols, file), 0);
	for (size_t i = 0; i < symbols.count; i++) {
		const struct elf_symbol *symbol = &symbols.items[i];

		if (strcmp(symbol->name, "step") && strcmp(symbol->name, "main"))
			continue;
		assert_int_equal(elf_fdes_find(&fdes, file, symbol->address + 3, &fde), 0);
		assert_int_equal(fde.start, symbol->address);
		assert_int_equal(fde.size, symbol->size);
		assert_false(fde.has_frame);
		compared++;
	}
	assert_int_equal(compared, 2);
	elf_symbols_clear(&symbols);
	elf_fdes_clear(&fdes);
	elf_file__free(file);
	close(fd);
}

static void fdes_know_no_address_before_the_first(void **state)
{
	struct elf_fdes fdes;
	struct elf_file *file;
	struct elf_fde fde;
	int fd;

	elf_fixture_need(*state, "gcc");
	open_file(*state, "a", &fd, &file);
	assert_int_equal(elf_fdes_read(&fdes, file), 0);
	assert_int_equal(elf_fdes_find(&fdes, file, 1, &fde), -ENOENT);
	assert_int_equal(fde.start, 0);
	assert_int_equal(elf_fdes_find(&fdes, file, 1ull << 40, &fde), -ENOENT);
	assert_true(fde.start > 0);
	elf_fdes_clear(&fdes);
	elf_file__free(file);
	close(fd);
}

/*
 * Changes each byte of the unwind tables in turn. The result is an answer or an error, never a
 * crash.
 */
static void fdes_survive_damage(void **state)
{
	struct elf_fixture *fixture = *state;
	Elf64_Phdr segment;
	struct elf_fdes fdes;
	struct elf_file *file;
	struct elf_fde fde;
	char path[128];
	int fd, out;

	elf_fixture_need(fixture, "gcc");
	open_file(fixture, "cut", &fd, &file);
	assert_int_equal(elf_file__segment(file, PT_GNU_EH_FRAME, &segment), 0);
	snprintf(path, sizeof(path), "%s/cut", fixture->folder);
	out = open(path, O_RDWR);
	assert_true(out >= 0);
	for (uint64_t at = segment.p_offset; at < segment.p_offset + segment.p_filesz + 256; at++) {
		uint8_t byte, bad;

		assert_int_equal(pread(out, &byte, 1, at), 1);
		bad = byte ^ 0xff;
		assert_int_equal(pwrite(out, &bad, 1, at), 1);
		if (!elf_fdes_read(&fdes, file))
			for (uint64_t address = 0x1000; address < 0x1300; address += 16)
				elf_fdes_find(&fdes, file, address, &fde);
		elf_fdes_clear(&fdes);
		assert_int_equal(pwrite(out, &byte, 1, at), 1);
	}
	close(out);
	elf_file__free(file);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fdes_cover_every_function_as_symbols_do),
		cmocka_unit_test(fdes_know_no_address_before_the_first),
		cmocka_unit_test(fdes_survive_damage),
	};

	return cmocka_run_group_tests(tests, build, elf_fixture_tear_down);
}
