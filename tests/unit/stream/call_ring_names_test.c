/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <linux/magic.h>

#include "stream/call_ring.h"
#include "record_keeper.h"

#define EXT4	0xef53
#define PID_FS	0x50494446
#define SOCK_FS 0x534f434b
#define NS_FS	0x6e736673

struct fixture {
	struct record_keeper keeper;
	struct record_output output;
	struct file_names *names;
	struct fbt_ring_file file;
};

static int setup(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	assert_non_null(fixture);
	fixture->output = keeper_output(&fixture->keeper);
	fixture->names = file_names__new();
	assert_non_null(fixture->names);
	fixture->file.magic = EXT4;
	fixture->file.file = (struct fbt_file){.id = 1, .tgid = 7, .fd = 3, .ino = 42};
	*state = fixture;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *fixture = *state;

	file_names__free(fixture->names);
	free(fixture);
	return 0;
}

static void set_size(struct fbt_ring_file *file)
{
	file->file.header.type = FBT_EVENT_FILE;
	file->file.header.size =
		(offsetof(struct fbt_ring_file, names) + file->length + 7) & ~(size_t)7;
}

static void add_name(struct fbt_ring_file *file, const char *name)
{
	size_t size = strlen(name) + 1;

	memcpy(file->names + file->length, name, size);
	file->length += size;
	set_size(file);
}

static const char *path_of(struct fixture *fixture)
{
	static char path[FILE_PATH_BYTES];

	set_size(&fixture->file);
	file_path_write(&fixture->file, path);
	return path;
}

static void names_come_from_the_leaf(void **state)
{
	struct fixture *fixture = *state;

	add_name(&fixture->file, "null");
	assert_string_equal(path_of(fixture), "/null");
	add_name(&fixture->file, "dev");
	assert_string_equal(path_of(fixture), "/dev/null");
	add_name(&fixture->file, "x");
	assert_string_equal(path_of(fixture), "/x/dev/null");
}

static void the_root_has_no_name(void **state)
{
	assert_string_equal(path_of(*state), "/");
}

static void bytes_of_a_name_stay_as_they_are(void **state)
{
	struct fixture *fixture = *state;

	add_name(&fixture->file, "a\nb\"\x1b[31m\xff");
	add_name(&fixture->file, " ");
	assert_string_equal(path_of(fixture), "/ /a\nb\"\x1b[31m\xff");
}

static void a_deleted_file_says_so(void **state)
{
	struct fixture *fixture = *state;

	fixture->file.flags = FBT_PATH_DELETED;
	add_name(&fixture->file, "x");
	add_name(&fixture->file, "tmp");
	assert_string_equal(path_of(fixture), "/tmp/x (deleted)");
}

static void a_path_that_is_cut_off_says_so(void **state)
{
	struct fixture *fixture = *state;

	fixture->file.flags = FBT_PATH_CUT;
	add_name(&fixture->file, "x");
	add_name(&fixture->file, "deep");
	assert_string_equal(path_of(fixture), "…/deep/x");
}

static void what_is_in_no_folder_is_named_as_proc_does(void **state)
{
	static const struct {
		uint32_t magic;
		const char *name;
		const char *path;
	} rows[] = {
		{SOCK_FS, "", "socket:[42]"},
		{SOCK_FS, "TCP", "socket:[42]"},
		{PIPEFS_MAGIC, "", "pipe:[42]"},
		{ANON_INODE_FS_MAGIC, "[eventfd]", "anon_inode:[eventfd]"},
		{ANON_INODE_FS_MAGIC, "dmabuf", "anon_inode:dmabuf"},
		{PID_FS, "", "anon_inode:[pidfd]"},
		{NS_FS, "net", "ns:[42]"},
		{TMPFS_MAGIC, "memfd:weights", "/memfd:weights"},
		{EXT4, "", ""},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct fixture *fixture = *state;

		fixture->file.magic = rows[i].magic;
		fixture->file.flags = FBT_PATH_FLOATING;
		fixture->file.length = 0;
		add_name(&fixture->file, rows[i].name);
		assert_string_equal(path_of(fixture), rows[i].path);
	}
}

/* A FIFO in a file system has a folder, an anonymous pipe has none. */
static void only_what_is_in_no_folder_is_named_by_its_kind(void **state)
{
	struct fixture *fixture = *state;

	fixture->file.magic = PIPEFS_MAGIC;
	add_name(&fixture->file, "fifo");
	assert_string_equal(path_of(fixture), "/fifo");
}

static void the_longest_path_fits(void **state)
{
	struct fixture *fixture = *state;
	struct fbt_ring_file *file = &fixture->file;

	file->flags = FBT_PATH_CUT | FBT_PATH_DELETED;
	memset(file->names, 'n', sizeof(file->names));
	for (size_t at = FBT_NAME_BYTES; at <= sizeof(file->names); at += FBT_NAME_BYTES)
		file->names[at - 1] = '\0';
	file->length = sizeof(file->names);
	assert_int_equal(strlen(path_of(fixture)),
			 sizeof(file->names) + strlen("…") + strlen(" (deleted)"));
	/* The largest possible number of names. */
	for (size_t at = 0; at < sizeof(file->names); at++)
		file->names[at] = at % 2 ? '\0' : 'n';
	assert_int_equal(strlen(path_of(fixture)),
			 sizeof(file->names) + strlen("…") + strlen(" (deleted)"));
}

static void a_file_is_sent_with_its_path(void **state)
{
	struct fixture *fixture = *state;
	const struct fbt_file *sent;

	fixture->file.file.mode = 0100600;
	fixture->file.file.device = 8 << 20 | 1;
	fixture->file.file.node_device = 0;
	add_name(&fixture->file, "x");
	assert_int_equal(
		file_names__send(fixture->names, &fixture->file.file.header, &fixture->output), 0);
	sent = kept(&fixture->keeper, 0, FBT_EVENT_FILE);
	assert_int_equal(sent->header.size, sizeof(*sent) + 8);
	assert_int_equal(sent->id, 1);
	assert_int_equal(sent->tgid, 7);
	assert_int_equal(sent->fd, 3);
	assert_int_equal(sent->mode, 0100600);
	assert_int_equal(sent->ino, 42);
	assert_int_equal(sent->device, 8 << 20 | 1);
	assert_string_equal(kept_string(sent, sizeof(*sent), 0), "/x");
}

static void has_knows_what_was_sent(void **state)
{
	static const uint32_t ids[] = {1, 64, 63, 1000, 127};
	struct fixture *fixture = *state;

	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
		assert_false(file_names__has(fixture->names, ids[i]));
		fixture->file.file.id = ids[i];
		set_size(&fixture->file);
		assert_int_equal(file_names__send(fixture->names, &fixture->file.file.header,
						  &fixture->output),
				 0);
		for (size_t j = 0; j <= i; j++)
			assert_true(file_names__has(fixture->names, ids[j]));
	}
	assert_false(file_names__has(fixture->names, 0));
	assert_false(file_names__has(fixture->names, 2));
	assert_false(file_names__has(fixture->names, UINT32_MAX));
}

static void expect_refused(struct fixture *fixture, uint32_t size)
{
	fixture->file.file.header.size = size;
	assert_int_equal(
		file_names__send(fixture->names, &fixture->file.file.header, &fixture->output),
		-EBADMSG);
	assert_false(file_names__has(fixture->names, 1));
}

static void a_damaged_record_is_refused(void **state)
{
	struct fixture *fixture = *state;
	struct fbt_ring_file *file = &fixture->file;
	uint32_t size;

	add_name(file, "x");
	size = file->file.header.size;
	expect_refused(fixture, sizeof(struct fbt_header));
	expect_refused(fixture, sizeof(struct fbt_file));
	file->names[1] = 'y';
	expect_refused(fixture, size);
	file->names[1] = '\0';
	file->length = 100;
	expect_refused(fixture, size);
	file->length = sizeof(file->names) + 8;
	expect_refused(fixture, 1 << 16);
	file->length = 0;
	file->flags = FBT_PATH_FLOATING;
	expect_refused(fixture, size);
	file->flags = 0;
	file->file.id = 0;
	expect_refused(fixture, size);
	assert_int_equal(fixture->keeper.count, 0);
}

static void free_accepts_null(void **state)
{
	file_names__free(NULL);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(names_come_from_the_leaf),
		TEST(the_root_has_no_name),
		TEST(bytes_of_a_name_stay_as_they_are),
		TEST(a_deleted_file_says_so),
		TEST(a_path_that_is_cut_off_says_so),
		TEST(what_is_in_no_folder_is_named_as_proc_does),
		TEST(only_what_is_in_no_folder_is_named_by_its_kind),
		TEST(the_longest_path_fits),
		TEST(a_file_is_sent_with_its_path),
		TEST(has_knows_what_was_sent),
		TEST(a_damaged_record_is_refused),
		cmocka_unit_test(free_accepts_null),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
