/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include "elf_fixture.h"
#include "elf/symbols.h"

struct loaded {
	int fd;
	struct elf_file *file;
	struct elf_symbols symbols;
};

static struct loaded load(struct elf_fixture *fixture, const char *name)
{
	struct loaded loaded = {0};

	loaded.fd = elf_fixture_open(fixture, name);
	assert_int_equal(elf_file__open(&loaded.file, loaded.fd), 0);
	assert_int_equal(elf_symbols_read(&loaded.symbols, loaded.file), 0);
	return loaded;
}

static void unload(struct loaded *loaded)
{
	elf_symbols_clear(&loaded->symbols);
	elf_file__free(loaded->file);
	close(loaded->fd);
}

static const struct elf_symbol *find(const struct elf_symbols *symbols, const char *name)
{
	for (size_t i = 0; i < symbols->count; i++)
		if (!strcmp(symbols->items[i].name, name))
			return &symbols->items[i];
	return NULL;
}

static int build(void **state)
{
	struct elf_fixture *fixture;

	if (elf_fixture_set_up(state))
		return -1;
	fixture = *state;
	elf_fixture_write(
		fixture, "a.c",
		"#include <unistd.h>\n"
		"int data_item = 1;\n"
		"__attribute__((noinline)) static int local_step(int x) { return x * 3; }\n"
		"int global_step(int x) { return local_step(x) + getpid(); }\n"
		"int other_name(int) __attribute__((alias(\"global_step\")));\n"
		"static int real(int x) { return x; }\n"
		"static int (*pick(void))(int) { return real; }\n"
		"int chosen(int) __attribute__((ifunc(\"pick\")));\n"
		"int main(void) { return chosen(0) + global_step(1); }\n");
	elf_fixture_run(fixture, "gcc -O1 -rdynamic a.c -o a && strip -o stripped a");
	return 0;
}

static void symbols_leave_out_imports_data_and_ifuncs(void **state)
{
	struct loaded loaded;

	elf_fixture_need(*state, "gcc");
	loaded = load(*state, "a");
	assert_null(find(&loaded.symbols, "data_item"));
	assert_null(find(&loaded.symbols, "chosen"));
	assert_null(find(&loaded.symbols, "getpid"));
	assert_null(find(&loaded.symbols, "getpid@GLIBC_2.2.5"));
	unload(&loaded);
}

static void exported_variables_are_found_in_stripped_files_too(void **state)
{
	static const char *const names[] = {"a", "stripped"};

	elf_fixture_need(*state, "gcc");
	for (int i = 0; i < 2; i++) {
		struct loaded loaded = load(*state, names[i]);
		struct elf_symbol object;
		int value = 0;

		assert_int_equal(elf_object_find(loaded.file, "data_item", &object), 0);
		assert_int_equal(object.size, sizeof(value));
		assert_int_equal(elf_file__read(loaded.file, object.address, &value, sizeof(value)),
				 0);
		assert_int_equal(value, 1);
		assert_int_equal(elf_object_find(loaded.file, "data_ite", &object), -ENOENT);
		assert_int_equal(elf_object_find(loaded.file, "global_step", &object), -ENOENT);
		unload(&loaded);
	}
}

static void symbols_know_local_functions(void **state)
{
	struct loaded loaded;

	elf_fixture_need(*state, "gcc");
	loaded = load(*state, "a");
	assert_true(loaded.symbols.complete);
	assert_non_null(find(&loaded.symbols, "local_step"));
	unload(&loaded);
}

static void symbols_of_a_stripped_file_are_the_exported_ones(void **state)
{
	struct loaded loaded;

	elf_fixture_need(*state, "gcc");
	loaded = load(*state, "stripped");
	assert_false(loaded.symbols.complete);
	assert_null(find(&loaded.symbols, "local_step"));
	assert_non_null(find(&loaded.symbols, "global_step"));
	unload(&loaded);
}

static void symbols_are_found_by_address(void **state)
{
	const struct elf_symbol *step, *found;
	struct loaded loaded;

	elf_fixture_need(*state, "gcc");
	loaded = load(*state, "a");
	step = find(&loaded.symbols, "global_step");
	found = elf_symbols_at(&loaded.symbols, step->address);
	assert_string_equal(found->name, "global_step");
	assert_string_equal(found[1].name, "other_name");
	assert_null(elf_symbols_at(&loaded.symbols, step->address + 1));
	assert_int_equal(elf_symbols_around(&loaded.symbols, step->address + 1)->address,
			 step->address);
	assert_null(elf_symbols_around(&loaded.symbols, UINT64_MAX));
	assert_null(elf_symbols_before(&loaded.symbols, 0));
	unload(&loaded);
}

/* Names that point beyond the string table, and a string without a NUL. */
static void symbols_leave_out_names_out_of_bounds(void **state)
{
	struct {
		Elf64_Ehdr header;
		char names[8];
		Elf64_Sym symbols[4];
		Elf64_Shdr sections[3];
	} data = {.names = "\0ab\0cdef"};
	struct elf_fixture *fixture = *state;
	struct loaded loaded;
	char path[128];
	FILE *out;

	memcpy(data.header.e_ident, "\177ELF\2\1\1", 7);
	data.header.e_type = ET_DYN;
	data.header.e_machine = EM_X86_64;
	data.header.e_version = EV_CURRENT;
	data.header.e_ehsize = sizeof(data.header);
	data.header.e_shentsize = sizeof(Elf64_Shdr);
	data.header.e_shoff = offsetof(typeof(data), sections);
	data.header.e_shnum = 3;
	for (int i = 1; i < 4; i++)
		data.symbols[i] = (Elf64_Sym){.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
					      .st_shndx = 1,
					      .st_value = i};
	data.symbols[1].st_name = 1;
	data.symbols[2].st_name = 4;
	data.symbols[3].st_name = UINT32_MAX;
	data.sections[1] = (Elf64_Shdr){.sh_type = SHT_SYMTAB,
					.sh_offset = offsetof(typeof(data), symbols),
					.sh_size = sizeof(data.symbols),
					.sh_link = 2,
					.sh_entsize = sizeof(Elf64_Sym)};
	data.sections[2] = (Elf64_Shdr){.sh_type = SHT_STRTAB,
					.sh_offset = offsetof(typeof(data), names),
					.sh_size = sizeof(data.names)};
	snprintf(path, sizeof(path), "%s/bad", fixture->folder);
	out = fopen(path, "w");
	assert_int_equal(fwrite(&data, sizeof(data), 1, out), 1);
	fclose(out);
	loaded = load(fixture, "bad");
	assert_int_equal(loaded.symbols.count, 1);
	assert_string_equal(loaded.symbols.items[0].name, "ab");
	unload(&loaded);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(symbols_leave_out_imports_data_and_ifuncs),
		cmocka_unit_test(exported_variables_are_found_in_stripped_files_too),
		cmocka_unit_test(symbols_know_local_functions),
		cmocka_unit_test(symbols_of_a_stripped_file_are_the_exported_ones),
		cmocka_unit_test(symbols_are_found_by_address),
		cmocka_unit_test(symbols_leave_out_names_out_of_bounds),
	};

	return cmocka_run_group_tests(tests, build, elf_fixture_tear_down);
}
