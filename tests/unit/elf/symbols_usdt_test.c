/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include "elf_fixture.h"
#include "elf/symbols.h"

/* The note that sys/sdt.h would emit, with a semaphore. %s: size of the descriptor in bytes. */
static const char note_source[] =
	"#define NOTE(provider, name, semaphore, arguments) \\\n"
	"	__asm__ volatile(\"990: nop\\n\" \\\n"
	"		\".pushsection .note.stapsdt,\\\"\\\",@note\\n\" \\\n"
	"		\".balign 4\\n .4byte 992f-991f, 994f-993f, 3\\n\" \\\n"
	"		\"991: .asciz \\\"stapsdt\\\"\\n 992: .balign 4\\n\" \\\n"
	"		\"993: .8byte 990b, _.stapsdt.base, \" semaphore \"\\n\" \\\n"
	"		\".asciz \\\"\" provider \"\\\"\\n .asciz \\\"\" name \"\\\"\\n .asciz "
	"\\\"\" arguments \"\\\"\\n\" \\\n"
	"		\"994: .balign 4\\n .popsection\\n\" \\\n"
	"		\".ifndef _.stapsdt.base\\n\" \\\n"
	"		\".pushsection "
	".stapsdt.base,\\\"aG\\\",\\\"progbits\\\",.stapsdt.base,comdat\\n\" \\\n"
	"		\"_.stapsdt.base: .space 1\\n .popsection\\n .endif\\n\")\n"
	"short engine_semaphore = 1;\n"
	"void step(int n) { NOTE(\"engine\", \"begin\", \"engine_semaphore\", \"-4@%edi\");\n"
	"	if (n) NOTE(\"engine\", \"end\", \"0\", \"8@%rax\");\n"
	"	else NOTE(\"engine\", \"end\", \"0\", \"8@%rbx\"); }\n"
	"int main(void) { step(1); return 0; }\n";

static int build(void **state)
{
	struct elf_fixture *fixture;

	if (elf_fixture_set_up(state))
		return -1;
	fixture = *state;
	elf_fixture_write(fixture, "a.c", note_source);
	elf_fixture_run(fixture, "gcc -O1 -no-pie a.c -o a");
	return 0;
}

static void find(struct elf_fixture *fixture, const char *provider, const char *name,
		 struct usdt_probe *probe)
{
	int fd = elf_fixture_open(fixture, "a");
	struct elf_file *file;

	assert_int_equal(elf_file__open(&file, fd), 0);
	assert_int_equal(usdt_find(file, provider, name, probe), 0);
	elf_file__free(file);
	close(fd);
}

static void usdt_finds_nothing_of_another_name(void **state)
{
	struct usdt_probe probe;

	elf_fixture_need(*state, "gcc");
	find(*state, "engine", "begi", &probe);
	assert_int_equal(probe.offsets.count, 0);
	find(*state, "motor", "begin", &probe);
	assert_int_equal(probe.offsets.count, 0);
}

static void usdt_finds_a_place_and_its_semaphore(void **state)
{
	struct elf_fixture *fixture = *state;
	struct usdt_probe probe;
	uint8_t byte = 0;
	short count = 0;
	int fd;

	elf_fixture_need(fixture, "gcc");
	find(fixture, "engine", "begin", &probe);
	assert_int_equal(probe.offsets.count, 1);
	fd = elf_fixture_open(fixture, "a");
	assert_int_equal(pread(fd, &byte, 1, probe.offsets.items[0]), 1);
	assert_int_equal(byte, 0x90);
	assert_int_equal(pread(fd, &count, 2, probe.semaphore), 2);
	assert_int_equal(count, 1);
	close(fd);
	usdt_clear(&probe);
}

static void usdt_finds_every_place_of_a_name(void **state)
{
	struct usdt_probe probe;

	elf_fixture_need(*state, "gcc");
	find(*state, "engine", "end", &probe);
	assert_int_equal(probe.offsets.count, 2);
	assert_int_equal(probe.semaphore, 0);
	usdt_clear(&probe);
}

static void usdt_knows_the_arguments_where_all_places_agree(void **state)
{
	struct usdt_probe probe;

	elf_fixture_need(*state, "gcc");
	find(*state, "engine", "begin", &probe);
	assert_string_equal(probe.arguments, "-4@%edi");
	usdt_clear(&probe);
	find(*state, "engine", "end", &probe);
	assert_string_equal(probe.arguments, "");
	usdt_clear(&probe);
}

/* Changes each byte of the section in turn. */
static void usdt_survives_damage(void **state)
{
	struct elf_fixture *fixture = *state;
	struct elf_section section;
	struct usdt_probe probe;
	struct elf_file *file;
	uint64_t start, size;
	char path[128];
	int fd, out;

	elf_fixture_need(fixture, "gcc");
	assert_true(elf_fixture_run(fixture, "cp a damaged"));
	fd = elf_fixture_open(fixture, "damaged");
	assert_int_equal(elf_file__open(&file, fd), 0);
	assert_int_equal(elf_file__section(file, ".note.stapsdt", &section), 0);
	start = section.header.sh_offset;
	size = section.size;
	elf_file__free(file);
	snprintf(path, sizeof(path), "%s/damaged", fixture->folder);
	out = open(path, O_RDWR);
	assert_true(out >= 0);
	for (uint64_t at = start; at < start + size; at++) {
		uint8_t byte, bad;

		assert_int_equal(pread(out, &byte, 1, at), 1);
		bad = byte ^ 0xff;
		assert_int_equal(pwrite(out, &bad, 1, at), 1);
		assert_int_equal(elf_file__open(&file, fd), 0);
		usdt_find(file, "engine", "end", &probe);
		usdt_clear(&probe);
		elf_file__free(file);
		assert_int_equal(pwrite(out, &byte, 1, at), 1);
	}
	close(out);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(usdt_finds_nothing_of_another_name),
		cmocka_unit_test(usdt_finds_a_place_and_its_semaphore),
		cmocka_unit_test(usdt_finds_every_place_of_a_name),
		cmocka_unit_test(usdt_knows_the_arguments_where_all_places_agree),
		cmocka_unit_test(usdt_survives_damage),
	};

	return cmocka_run_group_tests(tests, build, elf_fixture_tear_down);
}
