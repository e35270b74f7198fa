/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Which file and which places of it are taken for those of the Python library. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include "markers_fixture.h"
#include "python/markers.h"

static int open_markers(const struct fbt_python_slot *slot, unsigned int index)
{
	struct marker_offsets offsets;
	int fd = python_markers_open((uint32_t)getpid(), index, slot, &offsets);

	if (fd >= 0)
		close(fd);
	return fd;
}

static void the_markers_that_the_file_tells_are_found_in_it(void **state)
{
	void *library = markers_load(*state, "own", "-DNOTE");
	struct fbt_python_slot slot = markers_slot(library);
	struct marker_offsets offsets;
	uint8_t code[10];
	int fd = python_markers_open((uint32_t)getpid(), 0, &slot, &offsets);

	assert_true(fd >= 0);
	assert_int_equal(offsets.end - offsets.begin, slot.end - slot.begin);
	assert_int_equal(offsets.raised - offsets.begin, slot.raised - slot.begin);
	assert_int_equal(pread(fd, code, sizeof(code), (off_t)offsets.begin), sizeof(code));
	assert_memory_equal(code, (const void *)(uintptr_t)slot.begin, sizeof(code));
	close(fd);
	dlclose(library);
}

static void the_end_of_a_longer_nop_is_no_marker(void **state)
{
	void *library = markers_load(*state, "own", "-DNOTE");
	struct fbt_python_slot slot = markers_slot(library);

	slot.begin = markers_address(library, "code_padding") + 1;
	assert_int_equal(open_markers(&slot, 0), -EBADMSG);
	dlclose(library);
}

static void a_marker_has_one_role(void **state)
{
	void *library = markers_load(*state, "own", "-DNOTE");
	struct fbt_python_slot slot = markers_slot(library);
	uint64_t begin = slot.begin;

	slot.begin = slot.end;
	slot.end = begin;
	assert_int_equal(open_markers(&slot, 0), -EBADMSG);
	dlclose(library);
}

static void a_marker_belongs_to_one_slot(void **state)
{
	void *library = markers_load(*state, "own", "-DNOTE");
	struct fbt_python_slot slot = markers_slot(library);

	assert_int_equal(open_markers(&slot, 1), -EBADMSG);
	assert_int_equal(open_markers(&slot, FBT_PYTHON_SLOTS), -EBADMSG);
	dlclose(library);
}

static void nops_of_a_file_without_the_note_are_no_markers(void **state)
{
	void *library = markers_load(*state, "foreign", "");
	struct fbt_python_slot slot = markers_slot(library);

	assert_int_equal(open_markers(&slot, 0), -EBADMSG);
	dlclose(library);
}

static void a_place_that_is_no_nop_is_no_marker_whatever_the_note_tells(void **state)
{
	void *library = markers_load(*state, "wrong", "-DNOTE -DWRONG");
	struct fbt_python_slot slot = markers_slot(library);

	assert_int_equal(open_markers(&slot, 0), -EBADMSG);
	dlclose(library);
}

static void markers_of_two_files_are_refused(void **state)
{
	void *library = markers_load(*state, "own", "-DNOTE");
	void *other = markers_load(*state, "other", "-DNOTE");
	struct fbt_python_slot slot = markers_slot(library);

	slot.raised = markers_slot(other).raised;
	assert_int_equal(open_markers(&slot, 0), -ENOENT);
	dlclose(library);
	dlclose(other);
}

static void addresses_that_are_no_code_are_refused(void **state)
{
	struct fbt_python_slot slot = {0};

	(void)state;
	assert_int_equal(open_markers(&slot, 0), -ENOENT);
	slot = (struct fbt_python_slot){
		.begin = UINT64_MAX, .end = UINT64_MAX, .raised = UINT64_MAX};
	assert_int_equal(open_markers(&slot, 0), -ENOENT);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, elf_fixture_set_up, elf_fixture_tear_down)
	const struct CMUnitTest tests[] = {
		CASE(the_markers_that_the_file_tells_are_found_in_it),
		CASE(the_end_of_a_longer_nop_is_no_marker),
		CASE(a_marker_has_one_role),
		CASE(a_marker_belongs_to_one_slot),
		CASE(nops_of_a_file_without_the_note_are_no_markers),
		CASE(a_place_that_is_no_nop_is_no_marker_whatever_the_note_tells),
		CASE(markers_of_two_files_are_refused),
		cmocka_unit_test(addresses_that_are_no_code_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
