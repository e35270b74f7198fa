/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <sys/mman.h>
#include "elf/elf_file.h"
#include "elf_fixture.h"

static int make_file(const void *data, size_t size)
{
	int fd = memfd_create("elf", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, data, size), size);
	return fd;
}

static void refuse(const void *data, size_t size, int wanted)
{
	struct elf_file *file = NULL;
	int fd = make_file(data, size);

	assert_int_equal(elf_file__open(&file, fd), wanted);
	close(fd);
}

static Elf64_Ehdr make_header(void)
{
	Elf64_Ehdr header = {
		.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
		.e_type = ET_DYN,
		.e_machine = EM_X86_64,
		.e_version = EV_CURRENT,
		.e_ehsize = sizeof(header),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_shentsize = sizeof(Elf64_Shdr),
	};

	return header;
}

static void elf_refuses_what_is_no_elf_file(void **state)
{
	refuse("", 0, -ENOEXEC);
	refuse("#!/bin/sh\necho a script\n", 24, -ENOEXEC);
}

static void elf_refuses_a_header_that_is_cut_off(void **state)
{
	Elf64_Ehdr header = make_header();

	refuse(&header, sizeof(header) - 1, -ENOEXEC);
}

static void elf_refuses_32_bit_and_big_endian(void **state)
{
	Elf64_Ehdr header = make_header();

	header.e_ident[EI_CLASS] = ELFCLASS32;
	refuse(&header, sizeof(header), -EAFNOSUPPORT);
	header = make_header();
	header.e_ident[EI_DATA] = ELFDATA2MSB;
	refuse(&header, sizeof(header), -EAFNOSUPPORT);
}

static void elf_refuses_another_processor(void **state)
{
	Elf64_Ehdr header = make_header();

	header.e_machine = EM_RISCV;
	refuse(&header, sizeof(header), -ENOSYS);
}

static void elf_refuses_an_object_file(void **state)
{
	Elf64_Ehdr header = make_header();

	header.e_type = ET_REL;
	refuse(&header, sizeof(header), -ENOEXEC);
}

static void elf_passes_over_a_segment_outside_of_the_file(void **state)
{
	struct {
		Elf64_Ehdr header;
		Elf64_Phdr segments[2];
	} data = {.header = make_header()};
	struct elf_file *file = NULL;
	uint64_t offset;
	int fd;

	data.header.e_phoff = sizeof(data.header);
	data.header.e_phnum = 2;
	data.segments[0] = (Elf64_Phdr){.p_type = PT_LOAD,
					.p_flags = PF_X,
					.p_offset = 8,
					.p_vaddr = 0x1000,
					.p_filesz = UINT64_MAX - 4};
	data.segments[1] = (Elf64_Phdr){.p_type = PT_LOAD,
					.p_flags = PF_X,
					.p_offset = 16,
					.p_vaddr = 0x2000,
					.p_filesz = 32};
	fd = make_file(&data, sizeof(data));
	assert_int_equal(elf_file__open(&file, fd), 0);
	assert_int_equal(elf_file__offset(file, 0x1000, true, &offset), -ERANGE);
	assert_int_equal(elf_file__offset(file, 0x2004, true, &offset), 0);
	assert_int_equal(offset, 20);
	assert_int_equal(elf_file__offset(file, 0x2020, true, &offset), -ERANGE);
	assert_int_equal(elf_file__available(file, 0x201f), 1);
	elf_file__free(file);
	close(fd);
}

static void elf_reads_only_what_a_segment_holds(void **state)
{
	struct {
		Elf64_Ehdr header;
		Elf64_Phdr segment;
	} data = {.header = make_header()};
	struct elf_file *file = NULL;
	uint8_t bytes[4];
	int fd;

	data.header.e_phoff = sizeof(data.header);
	data.header.e_phnum = 1;
	data.segment = (Elf64_Phdr){.p_type = PT_LOAD, .p_vaddr = 0x1000, .p_filesz = 6};
	fd = make_file(&data, sizeof(data));
	assert_int_equal(elf_file__open(&file, fd), 0);
	assert_int_equal(elf_file__read(file, 0x1000, bytes, 4), 0);
	assert_memory_equal(bytes, ELFMAG, 4);
	assert_int_equal(elf_file__read(file, 0x1003, bytes, 4), -ERANGE);
	assert_int_equal(elf_file__read(file, UINT64_MAX - 1, bytes, 4), -ERANGE);
	elf_file__free(file);
	close(fd);
}

static void elf_refuses_a_section_outside_of_the_file(void **state)
{
	struct {
		Elf64_Ehdr header;
		char names[16];
		Elf64_Shdr sections[3];
	} data = {.header = make_header(), .names = "\0.symtab\0.names"};
	struct elf_section section;
	struct elf_file *file = NULL;
	int fd;

	data.header.e_shoff = offsetof(typeof(data), sections);
	data.header.e_shnum = 3;
	data.header.e_shstrndx = 2;
	data.sections[1] = (Elf64_Shdr){.sh_name = 1,
					.sh_type = SHT_SYMTAB,
					.sh_offset = 64,
					.sh_size = 1ull << 40,
					.sh_entsize = sizeof(Elf64_Sym)};
	data.sections[2] = (Elf64_Shdr){.sh_name = 9,
					.sh_type = SHT_STRTAB,
					.sh_offset = offsetof(typeof(data), names),
					.sh_size = sizeof(data.names)};
	fd = make_file(&data, sizeof(data));
	assert_int_equal(elf_file__open(&file, fd), 0);
	assert_int_equal(elf_file__section(file, ".symtab", &section), -EBADMSG);
	assert_int_equal(elf_file__section_of_type(file, SHT_SYMTAB, &section), -EBADMSG);
	assert_int_equal(elf_file__section(file, ".dynsym", &section), -ENOENT);
	assert_int_equal(elf_file__section_at(file, 0, &section), -ENOENT);
	assert_int_equal(elf_file__section_at(file, 99, &section), -ENOENT);
	elf_file__free(file);
	close(fd);
}

static void elf_survives_notes_that_lie_about_their_size(void **state)
{
	struct {
		Elf64_Ehdr header;
		Elf64_Phdr segment;
		Elf64_Nhdr note;
		char name[4];
	} data = {.header = make_header(), .name = "GNU"};
	uint8_t id[ELF_BUILD_ID_MAX];
	struct elf_file *file = NULL;
	int fd;

	data.header.e_phoff = sizeof(data.header);
	data.header.e_phnum = 1;
	data.segment = (Elf64_Phdr){.p_type = PT_NOTE,
				    .p_offset = offsetof(typeof(data), note),
				    .p_filesz = sizeof(data.note) + sizeof(data.name)};
	data.note = (Elf64_Nhdr){.n_namesz = 4, .n_descsz = UINT32_MAX, .n_type = NT_GNU_BUILD_ID};
	fd = make_file(&data, sizeof(data));
	assert_int_equal(elf_file__open(&file, fd), 0);
	assert_int_equal(elf_file__build_id(file, id), 0);
	elf_file__free(file);
	close(fd);
}

static void elf_knows_its_build_id(void **state)
{
	struct elf_fixture *fixture = *state;
	uint8_t id[ELF_BUILD_ID_MAX];
	struct elf_file *file = NULL;
	int fd;

	elf_fixture_need(fixture, "gcc");
	elf_fixture_write(fixture, "a.c", "int main(void) { return 0; }");
	assert_true(elf_fixture_run(fixture, "gcc a.c -Wl,--build-id=0x0102030405 -o a"));
	fd = elf_fixture_open(fixture, "a");
	assert_int_equal(elf_file__open(&file, fd), 0);
	assert_int_equal(elf_file__build_id(file, id), 5);
	assert_memory_equal(id, "\x01\x02\x03\x04\x05", 5);
	assert_true(elf_file__is_executable(file));
	assert_true(elf_file__has_interpreter(file));
	assert_false(elf_file__is_go(file));
	elf_file__free(file);
	close(fd);
}

static void elf_tells_a_go_program(void **state)
{
	struct elf_fixture *fixture = *state;
	struct elf_file *file = NULL;
	int fd;

	elf_fixture_need(fixture, "gcc");
	elf_fixture_write(fixture, "a.c",
			  "__attribute__((section(\".go.buildinfo\"))) int x = 1;"
			  "int main(void) { return 0; }");
	assert_true(elf_fixture_run(fixture, "gcc a.c -o a"));
	fd = elf_fixture_open(fixture, "a");
	assert_int_equal(elf_file__open(&file, fd), 0);
	assert_true(elf_file__is_go(file));
	elf_file__free(file);
	close(fd);
}

/* As GNU ld and LLD lay a file out: LLD begins the code inside of a page. */
static void elf_tells_where_a_mapping_of_code_begins(void **state)
{
	static const Elf64_Phdr gnu = {PT_LOAD, PF_R | PF_X, 0x1000, 0x1000,
				       0x1000,	0x800,	     0x800,  0x1000};
	static const Elf64_Phdr lld = {PT_LOAD, PF_R | PF_X, 0xf00, 0x1f00,
				       0x1f00,	0xa80,	     0xa80, 0x1000};
	struct {
		Elf64_Ehdr header;
		Elf64_Phdr segments[2];
		unsigned char rest[0x2000];
	} data = {.header = make_header()};
	struct elf_file *file;
	uint64_t address;
	int fd;

	data.header.e_phoff = sizeof(data.header);
	data.header.e_phnum = 2;
	data.segments[0] = (Elf64_Phdr){PT_LOAD, PF_R, 0, 0, 0, 0xf00, 0xf00, 0x1000};
	data.segments[1] = gnu;
	fd = make_file(&data, sizeof(data));
	assert_int_equal(elf_file__open(&file, fd), 0);
	assert_int_equal(elf_file__mapped_address(file, 0x1000, &address), 0);
	assert_int_equal(address, 0x1000);
	assert_int_equal(elf_file__mapped_address(file, 0, &address), -ERANGE);
	elf_file__free(file);
	close(fd);
	data.segments[1] = lld;
	fd = make_file(&data, sizeof(data));
	assert_int_equal(elf_file__open(&file, fd), 0);
	assert_int_equal(elf_file__code_address(file, 0, &address), -ERANGE);
	assert_int_equal(elf_file__mapped_address(file, 0, &address), 0);
	assert_int_equal(address, 0x1000);
	assert_int_equal(elf_file__mapped_address(file, 0x10, &address), -ERANGE);
	assert_int_equal(elf_file__mapped_address(file, 0x2000, &address), -ERANGE);
	elf_file__free(file);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(elf_refuses_what_is_no_elf_file),
		cmocka_unit_test(elf_refuses_a_header_that_is_cut_off),
		cmocka_unit_test(elf_refuses_32_bit_and_big_endian),
		cmocka_unit_test(elf_refuses_another_processor),
		cmocka_unit_test(elf_refuses_an_object_file),
		cmocka_unit_test(elf_tells_where_a_mapping_of_code_begins),
		cmocka_unit_test(elf_passes_over_a_segment_outside_of_the_file),
		cmocka_unit_test(elf_reads_only_what_a_segment_holds),
		cmocka_unit_test(elf_refuses_a_section_outside_of_the_file),
		cmocka_unit_test(elf_survives_notes_that_lie_about_their_size),
		cmocka_unit_test(elf_knows_its_build_id),
		cmocka_unit_test(elf_tells_a_go_program),
	};

	return cmocka_run_group_tests(tests, elf_fixture_set_up, elf_fixture_tear_down);
}
