/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdlib.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fbt_shared.h"
#include "python/interpreter.h"

enum { RDI = 5, RSP = 7, R8 = 8, RBP = 6 }; /* DWARF register numbers */

static void is_at(const char *arguments, uint32_t number, bool in_memory, int32_t offset)
{
	struct python_generation found = python_generation_parse(arguments);

	assert_int_equal(found.where, FBT_GC_REGISTERS + number);
	assert_int_equal(found.in_memory, in_memory);
	assert_int_equal(found.offset, offset);
}

static void a_generation_may_be_in_a_register(void **state)
{
	is_at("-4@%edi", RDI, false, 0);
	is_at("-4@%r8d", R8, false, 0);
	is_at("4@%edi 8@%rax", RDI, false, 0);
}

static void a_generation_may_be_on_the_stack(void **state)
{
	is_at("-4@112(%rsp)", RSP, true, 112);
	is_at("-4@-20(%rbp) -4@%eax", RBP, true, -20);
	is_at("-4@(%rsp)", RSP, true, 0);
}

static void what_has_another_form_is_nowhere(void **state)
{
	static const char *const forms[] = {
		"",
		"-4@",
		"-4@$2",
		"-8@%rdi",
		"-1@%dil",
		"-4@%xmm0",
		"-4@4(%rip)",
		"-4@(%",
		"-4@4(rsp)",
		"-4@4(%rsp,%rax,4)",
		"-4@gen(%rip)",
		"-4@%",
		"@",
		"-4@9999999999(%rsp)",
	};

	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		struct python_generation found = python_generation_parse(forms[i]);

		assert_int_equal(found.where, FBT_GC_NOWHERE);
		assert_false(found.in_memory);
	}
}

static void the_runtime_lies_where_its_file_is_mapped(void **state)
{
	const struct mapping mapping = {.start = 0x7f0000100000, .offset = 0x1000};
	struct python_interpreter interpreter = {.shift = 0x400000};

	assert_int_equal(python_interpreter_runtime(&interpreter, &mapping), 0);
	/* Code at offset 0x1000 has the address 0x401000. */
	interpreter.address = 0x900000;
	interpreter.size = 64;
	assert_int_equal(python_interpreter_runtime(&interpreter, &mapping),
			 0x7f0000100000 - 0x401000 + 0x900000);
}

static void a_process_without_python_has_none(void **state)
{
	struct mapping mapping;

	assert_false(python_mapping_find((uint32_t)getpid(), &mapping));
}

/* A file of that name, mapped as code. */
static bool is_musl_with(const char *name)
{
	const size_t size = (size_t)sysconf(_SC_PAGESIZE);
	char folder[] = "/tmp/interpreter_test.XXXXXX", path[96];
	void *code;
	bool found;
	int fd;

	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0700);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)size), 0);
	code = mmap(NULL, size, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	assert_true(code != MAP_FAILED);
	found = python_is_musl((uint32_t)getpid());
	munmap(code, size);
	close(fd);
	unlink(path);
	rmdir(folder);
	return found;
}

static void musl_is_known_by_its_file(void **state)
{
	(void)state;
	assert_false(python_is_musl((uint32_t)getpid()));
	assert_true(is_musl_with("ld-musl-x86_64.so.1"));
	assert_true(is_musl_with("libc.musl-x86_64.so.1"));
	assert_false(is_musl_with("not-ld-musl-x86_64.so.1"));
}

static void a_collector_is_known_by_what_a_compiler_makes_of_its_name(void **state)
{
	(void)state;
	assert_true(python_is_collector("gc_collect_main", "gc_collect_main"));
	assert_true(python_is_collector("gc_collect_main.lto_priv.0", "gc_collect_main"));
	assert_true(python_is_collector("gc_collect_main.constprop.0", "gc_collect_main"));
	assert_true(python_is_collector("gc_collect_main.lto_priv.0.isra.12", "gc_collect_main"));
	assert_true(python_is_collector("collect.llvm.6612043901", "collect"));
	assert_false(python_is_collector("collect_with_callback", "collect"));
	assert_false(python_is_collector("collect.cold", "collect"));
	assert_false(python_is_collector("collect.constprop.0.cold", "collect"));
	assert_false(python_is_collector("collect.part.0", "collect"));
	assert_false(python_is_collector("collect.lto_priv.", "collect"));
	assert_false(python_is_collector("collec", "collect"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_generation_may_be_in_a_register),
		cmocka_unit_test(a_generation_may_be_on_the_stack),
		cmocka_unit_test(what_has_another_form_is_nowhere),
		cmocka_unit_test(the_runtime_lies_where_its_file_is_mapped),
		cmocka_unit_test(a_process_without_python_has_none),
		cmocka_unit_test(musl_is_known_by_its_file),
		cmocka_unit_test(a_collector_is_known_by_what_a_compiler_makes_of_its_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
