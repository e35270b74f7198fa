/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Sparse files whose headers claim terabytes, and files that change while they are read. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "elf/elf_file.h"
#include "elf/symbols.h"

#define FILE_BYTES    (1ull << 42)
#define SECTIONS_AT   0x1000
#define NAMES_AT      0x8000
#define STRINGS_AT    0x10000
#define SYMBOLS_AT    (1ull << 32)
#define CODE_AT	      0x1000
#define SECTION_COUNT 4

static const char section_names[] = "\0.symtab\0.strtab\0.shstrtab";

struct hostile {
	int fd;
	Elf64_Ehdr header;
	Elf64_Shdr sections[SECTION_COUNT]; /* none, symbols, strings, names */
};

static void put(int fd, const void *data, size_t size, uint64_t offset)
{
	assert_int_equal(pwrite(fd, data, size, (off_t)offset), size);
}

/*
 * A program with one page of code and symbol_count symbols. write_hostile() writes it to a memfd.
 */
static struct hostile make_hostile(size_t symbol_count, size_t string_bytes)
{
	struct hostile file = {.fd = memfd_create("hostile", MFD_CLOEXEC)};

	assert_true(file.fd >= 0);
	assert_int_equal(ftruncate(file.fd, FILE_BYTES), 0);
	memcpy(file.header.e_ident, ELFMAG "\2\1\1", 7);
	file.header.e_type = ET_DYN;
	file.header.e_machine = EM_X86_64;
	file.header.e_version = EV_CURRENT;
	file.header.e_phoff = sizeof(file.header);
	file.header.e_shoff = SECTIONS_AT;
	file.header.e_ehsize = sizeof(file.header);
	file.header.e_phentsize = sizeof(Elf64_Phdr);
	file.header.e_shentsize = sizeof(Elf64_Shdr);
	file.header.e_shnum = SECTION_COUNT;
	file.header.e_shstrndx = SECTION_COUNT - 1;
	file.sections[1] = (Elf64_Shdr){.sh_name = 1,
					.sh_type = SHT_SYMTAB,
					.sh_offset = SYMBOLS_AT,
					.sh_size = symbol_count * sizeof(Elf64_Sym),
					.sh_link = 2};
	file.sections[2] = (Elf64_Shdr){.sh_name = 9,
					.sh_type = SHT_STRTAB,
					.sh_offset = STRINGS_AT,
					.sh_size = string_bytes};
	file.sections[3] = (Elf64_Shdr){.sh_name = 17,
					.sh_type = SHT_STRTAB,
					.sh_offset = NAMES_AT,
					.sh_size = sizeof(section_names)};
	return file;
}

static void write_hostile(const struct hostile *file)
{
	put(file->fd, &file->header, sizeof(file->header), 0);
	put(file->fd, file->sections, sizeof(file->sections), SECTIONS_AT);
	put(file->fd, section_names, sizeof(section_names), NAMES_AT);
}

/*
 * count symbols with the name at offset name: all at one address if crowded, else one after
 * another.
 */
static void write_symbols(const struct hostile *file, size_t count, uint32_t name, bool crowded)
{
	Elf64_Sym block[4096];

	for (size_t done = 0; done < count; done += 4096) {
		for (size_t i = 0; i < 4096; i++)
			block[i] = (Elf64_Sym){.st_name = name,
					       .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
					       .st_shndx = 1,
					       .st_value = CODE_AT + (crowded ? 0 : done + i),
					       .st_size = 1};
		put(file->fd, block, sizeof(block), SYMBOLS_AT + done * sizeof(*block));
	}
}

static long peak_mib(void)
{
	struct rusage usage;

	assert_int_equal(getrusage(RUSAGE_SELF, &usage), 0);
	return usage.ru_maxrss / 1024;
}

/* Returns what elf_symbols_read() returns; *count is the number of symbols. */
static int read_symbols(const struct hostile *file, size_t *count)
{
	struct elf_symbols symbols = {0};
	struct elf_file *elf = NULL;
	int err;

	assert_int_equal(elf_file__open(&elf, file->fd), 0);
	err = elf_symbols_read(&symbols, elf);
	*count = symbols.count;
	elf_symbols_clear(&symbols);
	elf_file__free(elf);
	return err;
}

static void a_plain_file_of_that_make_is_read(void **state)
{
	struct hostile file = make_hostile(4096, 64);
	size_t count;

	(void)state;
	write_hostile(&file);
	write_symbols(&file, 4096, 1, false);
	put(file.fd, "\0step", 6, STRINGS_AT);
	assert_int_equal(read_symbols(&file, &count), 0);
	assert_int_equal(count, 4096);
	close(file.fd);
}

static void more_sections_than_a_program_has_are_none(void **state)
{
	struct hostile file = make_hostile(4096, 64);
	struct elf_section section;
	struct elf_file *elf = NULL;
	long before = peak_mib();

	(void)state;
	file.header.e_shnum = 0;
	file.sections[0].sh_size = 60u << 20;
	write_hostile(&file);
	assert_int_equal(elf_file__open(&elf, file.fd), 0);
	assert_int_equal(elf_file__section(elf, ".symtab", &section), -ENOENT);
	elf_file__free(elf);
	assert_true(peak_mib() - before < 16);
	close(file.fd);
}

static void names_of_sections_that_are_too_long_are_not_read(void **state)
{
	struct hostile file = make_hostile(4096, 64);
	struct elf_section section;
	struct elf_file *elf = NULL;
	long before = peak_mib();

	(void)state;
	file.sections[3].sh_size = 64ull << 30;
	write_hostile(&file);
	assert_int_equal(elf_file__open(&elf, file.fd), 0);
	assert_int_equal(elf_file__section(elf, ".symtab", &section), -ENOENT);
	assert_int_equal(elf_file__section_of_type(elf, SHT_SYMTAB, &section), 0);
	elf_file__free(elf);
	assert_true(peak_mib() - before < 16);
	close(file.fd);
}

static void tables_that_are_too_large_are_not_read(void **state)
{
	struct hostile file = make_hostile(100u << 20, 64);
	long before = peak_mib();
	size_t count;

	(void)state;
	write_hostile(&file);
	assert_int_equal(read_symbols(&file, &count), -EFBIG);
	close(file.fd);
	file = make_hostile(4096, 1ull << 40);
	write_hostile(&file);
	assert_int_equal(read_symbols(&file, &count), -EFBIG);
	assert_true(peak_mib() - before < 16);
	close(file.fd);
}

/* The tool keeps symbols in its own format, and this table holds no valid ones. */
static void a_table_of_symbols_is_not_kept_in_memory(void **state)
{
	struct hostile file = make_hostile(8u << 20, 64);
	long before = peak_mib();
	size_t count;

	(void)state;
	write_hostile(&file);
	assert_int_equal(read_symbols(&file, &count), 0);
	assert_int_equal(count, 0);
	assert_true(peak_mib() - before < 16);
	close(file.fd);
}

static void of_all_sections_so_much_is_loaded(void **state)
{
	struct hostile file = make_hostile(2, 64);
	struct elf_sections sections;
	struct elf_section section;

	(void)state;
	write_hostile(&file);
	assert_int_equal(elf_sections_read(&sections, file.fd, FILE_BYTES, &file.header), 0);
	assert_int_equal(sections.room, ELF_LOADED_BYTES_MAX);
	sections.room = 100;
	assert_int_equal(elf_sections_get(&sections, 2, &section), 0);
	assert_int_equal(section.size, 64);
	assert_int_equal(elf_sections_get(&sections, 1, &section), -EFBIG);
	assert_string_equal(section.name, ".symtab");
	assert_null(section.data);
	assert_int_equal(section.size, 0);
	assert_int_equal(elf_sections_get(&sections, 2, &section), 0);
	assert_non_null(section.data);
	elf_sections_clear(&sections);
	close(file.fd);
}

/* Sorting and comparing such names would take hours. */
static void names_on_top_of_each_other_are_refused(void **state)
{
	static char name[60000];
	struct hostile file = make_hostile(64 * 4096, sizeof(name) + 1);
	size_t count;

	(void)state;
	memset(name, 'n', sizeof(name) - 1);
	write_hostile(&file);
	write_symbols(&file, 64 * 4096, 0, true);
	put(file.fd, name, sizeof(name), STRINGS_AT);
	assert_int_equal(read_symbols(&file, &count), -EBADMSG);
	assert_int_equal(count, 0);
	close(file.fd);
}

static void of_many_names_at_one_address_some_are_kept(void **state)
{
	struct hostile file = make_hostile(64 * 4096, 1 << 20);
	size_t count;

	(void)state;
	write_hostile(&file);
	write_symbols(&file, 64 * 4096, 1, true);
	put(file.fd, "\0step", 6, STRINGS_AT);
	assert_int_equal(read_symbols(&file, &count), 0);
	assert_int_equal(count, 256);
	close(file.fd);
}

static void a_file_that_shrinks_meanwhile_is_no_signal(void **state)
{
	struct hostile file = make_hostile(4096, 64);
	struct elf_section section;
	struct elf_file *elf = NULL;

	(void)state;
	write_hostile(&file);
	write_symbols(&file, 4096, 1, false);
	assert_int_equal(elf_file__open(&elf, file.fd), 0);
	assert_int_equal(ftruncate(file.fd, 0), 0);
	assert_int_equal(elf_file__section(elf, ".symtab", &section), -EBADMSG);
	assert_int_equal(ftruncate(file.fd, FILE_BYTES), 0);
	assert_int_equal(elf_file__section(elf, ".symtab", &section), 0);
	assert_int_equal(ftruncate(file.fd, 0), 0);
	assert_int_equal(section.data[section.size - 1], 0);
	elf_file__free(elf);
	close(file.fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_plain_file_of_that_make_is_read),
		cmocka_unit_test(more_sections_than_a_program_has_are_none),
		cmocka_unit_test(names_of_sections_that_are_too_long_are_not_read),
		cmocka_unit_test(tables_that_are_too_large_are_not_read),
		cmocka_unit_test(a_table_of_symbols_is_not_kept_in_memory),
		cmocka_unit_test(of_all_sections_so_much_is_loaded),
		cmocka_unit_test(names_on_top_of_each_other_are_refused),
		cmocka_unit_test(of_many_names_at_one_address_some_are_kept),
		cmocka_unit_test(a_file_that_shrinks_meanwhile_is_no_signal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
