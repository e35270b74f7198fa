/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <elf.h>

#include "child_fixture.h"
#include "elf_fixture.h"
#include "inject/place.h"

/* Placeholders: these tests do not call the functions. */
static const uint64_t functions[FBT_INJECT_FUNCTION_COUNT] = {11, 12, 13, 14, 15, 16, 17, 18};

struct fixture {
	struct elf_fixture *elf;
	pid_t child;
	mapping_vec maps;
	struct inject_place place;
};

static int setup(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	if (!fixture)
		return -1;
	*state = fixture;
	return elf_fixture_set_up((void **)&fixture->elf);
}

static int teardown(void **state)
{
	struct fixture *fixture = *state;

	if (fixture->child > 0) {
		kill(fixture->child, SIGKILL);
		waitpid(fixture->child, NULL, 0);
	}
	maps_free(&fixture->maps);
	elf_fixture_tear_down((void **)&fixture->elf);
	free(fixture);
	return 0;
}

static struct proc_ref process_of(const struct fixture *fixture)
{
	return (struct proc_ref){(uint32_t)fixture->child, (uint32_t)fixture->child};
}

/* Starts a child that has loaded this file of the fixture's folder (NULL: none) and waits. */
static void start(struct fixture *fixture, const char *library)
{
	char path[128], byte;
	int ends[2];

	snprintf(path, sizeof(path), "%s/%s", fixture->elf->folder, library ? library : "");
	assert_int_equal(pipe(ends), 0);
	fixture->child = child_fork();
	if (!fixture->child) {
		if (library && !dlopen(path, RTLD_NOW))
			_exit(1);
		if (write(ends[1], "x", 1) == 1)
			pause();
		_exit(1);
	}
	close(ends[1]);
	assert_int_equal(read(ends[0], &byte, 1), 1);
	close(ends[0]);
	assert_int_equal(maps_read_all(process_of(fixture), &fixture->maps), 0);
}

/* Keeps only the mappings of files of that name. */
static void keep_only(struct fixture *fixture, const char *name)
{
	mapping_vec kept = {0};

	vec_for_each (mapping, &fixture->maps) {
		if (strcmp(mapping_name(mapping), name) != 0)
			free(mapping->path);
		else
			assert_int_equal(vec_push(&kept, *mapping), 0);
	}
	vec_free(&fixture->maps);
	fixture->maps.items = kept.items;
	fixture->maps.count = kept.count;
	fixture->maps.capacity = kept.capacity;
}

static int find_with(struct fixture *fixture, const uint64_t table[FBT_INJECT_FUNCTION_COUNT])
{
	return inject_place_find(&fixture->place, process_of(fixture), &fixture->maps, table);
}

static int find(struct fixture *fixture)
{
	return find_with(fixture, functions);
}

static int put(struct fixture *fixture, const struct inject_hook *hook)
{
	return inject_place_write(&fixture->place, process_of(fixture), hook);
}

static int open_memory(const struct fixture *fixture)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/mem", fixture->child);
	fd = open(path, O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	return fd;
}

static void poke(const struct fixture *fixture, uint64_t address, const void *bytes, size_t size)
{
	int memory = open_memory(fixture);

	assert_int_equal(pwrite(memory, bytes, size, (off_t)address), size);
	close(memory);
}

static void peek(const struct fixture *fixture, uint64_t address, void *bytes, size_t size)
{
	int memory = open_memory(fixture);

	assert_int_equal(pread(memory, bytes, size, (off_t)address), size);
	close(memory);
}

/* Builds a library from this source with these options. Its code is a few bytes long. */
static void build(struct fixture *fixture, const char *name, const char *options, const char *text)
{
	elf_fixture_need(fixture->elf, "gcc");
	elf_fixture_write(fixture->elf, "library.c", text);
	assert_true(elf_fixture_run(fixture->elf, "gcc -shared -fPIC -nostdlib %s -o %s library.c",
				    options, name));
}

#if !defined(__x86_64__)
static void there_is_none_for_this_processor(void **state)
{
	struct fixture *fixture = *state;

	start(fixture, NULL);
	assert_int_equal(find(fixture), -ENOEXEC);
}
#else

static void the_table_is_filled_in(void **state)
{
	uint8_t bytes[INJECT_STUB_MAX];
	struct fbt_inject_stub head;
	uint32_t size = inject_stub_build(bytes, functions);

	(void)state;
	memcpy(&head, bytes, sizeof(head));
	assert_true(size > sizeof(head));
	assert_true(head.magic == FBT_INJECT_MAGIC);
	assert_int_equal(head.version, FBT_INJECT_VERSION);
	assert_int_equal(head.size, size);
	assert_memory_equal(head.functions, functions, sizeof(functions));
}

static void what_was_written_is_found_again(void **state)
{
	struct fixture *fixture = *state;
	uint8_t found[INJECT_STUB_MAX];
	uint64_t stub;

	start(fixture, NULL);
	assert_int_equal(find(fixture), 0);
	assert_false(fixture->place.written);
	assert_true(fixture->place.stub && fixture->place.stub % 16 == 0);
	assert_true(*fixture->place.file);
	assert_int_equal(put(fixture, NULL), 0);
	assert_true(fixture->place.written);
	peek(fixture, fixture->place.stub, found, fixture->place.size);
	assert_memory_equal(found, fixture->place.bytes, fixture->place.size);

	stub = fixture->place.stub;
	assert_int_equal(find(fixture), 0);
	assert_true(fixture->place.written);
	assert_true(fixture->place.stub == stub);
	assert_int_equal(put(fixture, NULL), 0);
}

static void finding_writes_nothing(void **state)
{
	struct fixture *fixture = *state;
	uint8_t found[INJECT_STUB_MAX], nothing[INJECT_STUB_MAX] = {0};

	start(fixture, NULL);
	assert_int_equal(find(fixture), 0);
	peek(fixture, fixture->place.stub, found, fixture->place.size);
	assert_memory_equal(found, nothing, fixture->place.size);
}

static void one_with_other_functions_is_left_alone(void **state)
{
	static const uint64_t others[FBT_INJECT_FUNCTION_COUNT] = {1};
	struct fixture *fixture = *state;

	start(fixture, NULL);
	assert_int_equal(find(fixture), 0);
	assert_int_equal(put(fixture, NULL), 0);
	assert_int_equal(find_with(fixture, others), -EEXIST);
	assert_int_equal(find(fixture), 0);
}

static void one_of_another_version_is_left_alone(void **state)
{
	uint32_t version = FBT_INJECT_VERSION + 1;
	struct fixture *fixture = *state;

	start(fixture, NULL);
	assert_int_equal(find(fixture), 0);
	assert_int_equal(put(fixture, NULL), 0);
	poke(fixture, fixture->place.stub + offsetof(struct fbt_inject_stub, version), &version,
	     sizeof(version));
	assert_int_equal(find(fixture), -EEXIST);
}

static void die(void *ctx, enum inject_point point)
{
	_exit(ctx == NULL && point == INJECT_AT_STUB_PART ? 3 : 4);
}

/* Starts a writer that dies after it has written half of the stub. */
static void write_half(struct fixture *fixture)
{
	struct inject_hook hook = {.at = die, .ctx = NULL};
	pid_t writer = fork();
	int status;

	if (!writer) {
		put(fixture, &hook);
		_exit(5);
	}
	assert_true(writer > 0);
	assert_int_equal(waitpid(writer, &status, 0), writer);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 3);
}

static bool is_zero(const uint8_t *bytes, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		if (bytes[i])
			return false;
	}
	return true;
}

static void half_of_one_is_completed(void **state)
{
	struct fixture *fixture = *state;
	uint8_t found[INJECT_STUB_MAX];
	struct inject_place first;

	start(fixture, NULL);
	assert_int_equal(find(fixture), 0);
	write_half(fixture);
	first = fixture->place;
	peek(fixture, first.stub, found, first.size);
	assert_true(is_zero(found, offsetof(struct fbt_inject_stub, version)));
	assert_false(is_zero(found, first.size / 2));
	assert_true(is_zero(found + first.size / 2, first.size - first.size / 2));

	assert_int_equal(find(fixture), 0);
	assert_false(fixture->place.written);
	assert_true(fixture->place.stub == first.stub);
	assert_int_equal(put(fixture, NULL), 0);
	peek(fixture, first.stub, found, first.size);
	assert_memory_equal(found, first.bytes, first.size);
}

static void bytes_of_another_are_no_half_of_one(void **state)
{
	struct fixture *fixture = *state;
	uint8_t other;
	uint64_t first;

	start(fixture, NULL);
	assert_int_equal(find(fixture), 0);
	first = fixture->place.stub;
	other = (uint8_t)(fixture->place.bytes[100] ^ 0x55);
	poke(fixture, first + 100, &other, 1);
	assert_int_equal(put(fixture, NULL), -EAGAIN);
	peek(fixture, first + 100, &other, 1);
	assert_int_equal(other, fixture->place.bytes[100] ^ 0x55);
	assert_true(find(fixture) == -ENOSPC || fixture->place.stub != first);
}

/*
 * A second injection must find the first one's stub, even if there is free space at a lower address
 * by then.
 */
static void a_stub_counts_more_than_room_before_it(void **state)
{
	struct fixture *fixture = *state;
	uint8_t other = 0xcc, nothing = 0;
	uint64_t first, second;

	start(fixture, NULL);
	assert_int_equal(find(fixture), 0);
	first = fixture->place.stub;
	poke(fixture, first + fixture->place.size - 1, &other, 1);
	if (find(fixture)) {
		print_message("SKIP there is only one place in this program\n");
		skip();
	}
	second = fixture->place.stub;
	assert_true(second != first);
	assert_int_equal(put(fixture, NULL), 0);
	poke(fixture, first + fixture->place.size - 1, &nothing, 1);
	assert_int_equal(find(fixture), 0);
	assert_true(fixture->place.written);
	assert_true(fixture->place.stub == second);
}

static void room_after_code_is_found(void **state)
{
	struct fixture *fixture = *state;

	build(fixture, "room.so", "-Wl,-z,separate-code", "int f(void) { return 7; }");
	start(fixture, "room.so");
	keep_only(fixture, "room.so");
	assert_int_equal(find(fixture), 0);
	assert_string_equal(fixture->place.file, "room.so");
	assert_int_equal(put(fixture, NULL), 0);
}

static void a_full_page_has_no_room(void **state)
{
	struct fixture *fixture = *state;

	build(fixture, "full.so", "-Wl,-z,separate-code",
	      "__asm__(\".text; .globl f; f: .fill 3000, 1, 0x90\");");
	start(fixture, "full.so");
	keep_only(fixture, "full.so");
	assert_int_equal(find(fixture), -ENOSPC);
}

/* Zeros within the segment are code, not free space. */
static void zeros_of_the_code_are_no_room(void **state)
{
	struct fixture *fixture = *state;

	build(fixture, "zeros.so", "-Wl,-z,separate-code",
	      "__asm__(\".text; .globl f; f: .fill 3000, 1, 0\");");
	start(fixture, "zeros.so");
	keep_only(fixture, "zeros.so");
	assert_int_equal(find(fixture), -ENOSPC);
}

/* Reads the header of the executable segment of a built file. Returns the header's offset. */
static off_t find_code(int fd, Elf64_Phdr *segment)
{
	Elf64_Ehdr header;

	assert_int_equal(pread(fd, &header, sizeof(header), 0), sizeof(header));
	for (int i = 0; i < header.e_phnum; i++) {
		off_t at = (off_t)(header.e_phoff + (size_t)i * sizeof(*segment));

		assert_int_equal(pread(fd, segment, sizeof(*segment), at), sizeof(*segment));
		if (segment->p_type == PT_LOAD && segment->p_flags & PF_X)
			return at;
	}
	fail();
	return 0;
}

static int open_built(const struct fixture *fixture, const char *name)
{
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", fixture->elf->folder, name);
	fd = open(path, O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	return fd;
}

/* A linker may place the next segment in the last page of the code. */
static void a_page_with_other_bytes_has_no_room(void **state)
{
	struct fixture *fixture = *state;
	Elf64_Phdr code;
	int fd;

	build(fixture, "mixed.so", "-Wl,-z,separate-code", "int f(void) { return 7; }");
	fd = open_built(fixture, "mixed.so");
	find_code(fd, &code);
	assert_int_equal(pwrite(fd, "x", 1, (off_t)(code.p_offset + code.p_filesz + 1000)), 1);
	close(fd);
	start(fixture, "mixed.so");
	keep_only(fixture, "mixed.so");
	assert_true(fixture->maps.count > 0);
	assert_int_equal(find(fixture), -ENOSPC);
}

/* The part of a segment beyond the file's size is the program's own zeroed memory. */
static void a_segment_that_goes_on_beyond_its_file_has_no_room(void **state)
{
	struct fixture *fixture = *state;
	Elf64_Phdr code;
	off_t at;
	int fd;

	build(fixture, "bss.so", "-Wl,-z,separate-code", "int f(void) { return 7; }");
	fd = open_built(fixture, "bss.so");
	at = find_code(fd, &code);
	code.p_memsz += 64;
	assert_int_equal(pwrite(fd, &code, sizeof(code), at), sizeof(code));
	close(fd);
	start(fixture, "bss.so");
	keep_only(fixture, "bss.so");
	assert_true(fixture->maps.count > 0);
	assert_int_equal(find(fixture), -ENOSPC);
}

static void a_file_that_is_no_elf_file_has_none(void **state)
{
	struct fixture *fixture = *state;

	start(fixture, NULL);
	vec_for_each (mapping, &fixture->maps)
		mapping->executable = strstr(mapping->path, "locale") != NULL;
	assert_int_equal(find(fixture), -ENOSPC);
}

static void a_process_that_is_gone_has_none(void **state)
{
	struct fixture *fixture = *state;

	start(fixture, NULL);
	assert_int_equal(find(fixture), 0);
	kill(fixture->child, SIGKILL);
	waitpid(fixture->child, NULL, 0);
	assert_int_equal(put(fixture, NULL), -ESRCH);
	assert_int_equal(find(fixture), -ESRCH);
	fixture->child = 0;
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
#if !defined(__x86_64__)
		cmocka_unit_test_setup_teardown(there_is_none_for_this_processor, setup, teardown),
#else
		cmocka_unit_test(the_table_is_filled_in),
		cmocka_unit_test_setup_teardown(what_was_written_is_found_again, setup, teardown),
		cmocka_unit_test_setup_teardown(finding_writes_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(one_with_other_functions_is_left_alone, setup,
						teardown),
		cmocka_unit_test_setup_teardown(one_of_another_version_is_left_alone, setup,
						teardown),
		cmocka_unit_test_setup_teardown(half_of_one_is_completed, setup, teardown),
		cmocka_unit_test_setup_teardown(bytes_of_another_are_no_half_of_one, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_stub_counts_more_than_room_before_it, setup,
						teardown),
		cmocka_unit_test_setup_teardown(room_after_code_is_found, setup, teardown),
		cmocka_unit_test_setup_teardown(a_full_page_has_no_room, setup, teardown),
		cmocka_unit_test_setup_teardown(zeros_of_the_code_are_no_room, setup, teardown),
		cmocka_unit_test_setup_teardown(a_page_with_other_bytes_has_no_room, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_segment_that_goes_on_beyond_its_file_has_no_room,
						setup, teardown),
		cmocka_unit_test_setup_teardown(a_file_that_is_no_elf_file_has_none, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_process_that_is_gone_has_none, setup, teardown),
#endif
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
