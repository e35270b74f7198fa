/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Which files are opened, and whose the new ones are. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "output/file.h"
#include "output_fixture.h"

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

static void create_refuses_a_symbolic_link(void **state)
{
	struct fixture *fixture = *state;
	struct output *output = NULL;

	assert_int_equal(symlink("/tmp/elsewhere", fixture->path), 0);
	assert_int_equal(output__create(&output, fixture->path), -ELOOP);
	assert_null(output);
	assert_one_message(fixture, "symbolic links");
}

static void append_refuses_a_symbolic_link(void **state)
{
	struct fixture *fixture = *state;
	struct output *output = NULL;

	assert_int_equal(symlink("/tmp/elsewhere", fixture->path), 0);
	assert_int_equal(output__append(&output, fixture->path), -ELOOP);
	assert_one_message(fixture, "symbolic links");
}

static void create_refuses_a_temporary_name_that_is_a_symbolic_link(void **state)
{
	struct fixture *fixture = *state;
	struct output *output = NULL;

	assert_int_equal(symlink("/tmp/elsewhere", fixture->partial), 0);
	assert_int_equal(output__create(&output, fixture->path), -ELOOP);
	assert_one_message(fixture, fixture->partial);
}

static void create_refuses_a_folder(void **state)
{
	struct fixture *fixture = *state;
	struct output *output = NULL;

	assert_int_equal(output__create(&output, fixture->dir), -EISDIR);
	assert_one_message(fixture, "Is a directory");
}

static void create_refuses_a_path_without_a_name(void **state)
{
	struct fixture *fixture = *state;
	struct output *output = NULL;

	snprintf(fixture->path, sizeof(fixture->path), "%s/", fixture->dir);
	assert_int_equal(output__create(&output, fixture->path), -EISDIR);
	assert_int_equal(output__create(&output, ""), -EISDIR);
}

static void create_refuses_a_file_as_folder(void **state)
{
	struct fixture *fixture = *state;
	struct output *output = NULL;
	char path[160];

	write_text(fixture->path, "");
	snprintf(path, sizeof(path), "%s/below", fixture->path);
	assert_int_equal(output__create(&output, path), -ENOTDIR);
	assert_one_message(fixture, "Not a directory");
}

static void append_refuses_a_file_with_two_names(void **state)
{
	struct fixture *fixture = *state;
	struct output *output = NULL;

	write_text(fixture->partial, "secret\n");
	assert_int_equal(link(fixture->partial, fixture->path), 0);
	assert_int_equal(output__append(&output, fixture->path), -EPERM);
	assert_one_message(fixture, "has 2 hard links");
}

static void files_of_others_in_a_shared_folder_are_refused(void **state)
{
	struct fixture *fixture = *state;
	struct output *output = NULL;

	if (geteuid())
		skip();
	assert_int_equal(chmod(fixture->dir, 01777), 0);
	write_text(fixture->path, "theirs\n");
	assert_int_equal(chown(fixture->path, 12345, 12345), 0);
	assert_int_equal(output__append(&output, fixture->path), -EPERM);
	assert_one_message(fixture, "another user (uid 12345)");
	assert_int_equal(output__create(&output, fixture->path), -EPERM);
	assert_text(fixture->path, "theirs\n");
}

/* Creates dir/home, and in it a file that belongs to another user, who also owns dir/home. */
static void make_theirs(const struct fixture *fixture, char path[160], mode_t type)
{
	char dir[128];

	snprintf(dir, sizeof(dir), "%s/home", fixture->dir);
	snprintf(path, 160, "%s/profile", dir);
	assert_int_equal(mkdir(dir, 0755), 0);
	assert_int_equal(mknod(path, type | 0666, 0), 0);
	if (type == S_IFREG)
		write_text(path, "theirs\n");
	assert_int_equal(chown(path, 12345, 12345), 0);
	assert_int_equal(chown(dir, 12345, 12345), 0);
}

static void files_of_the_owner_of_a_shared_folder_are_refused_too(void **state)
{
	struct fixture *fixture = *state;
	struct output *output = NULL;
	char dir[128], path[160];

	if (geteuid())
		skip();
	make_theirs(fixture, path, S_IFREG);
	snprintf(dir, sizeof(dir), "%s/home", fixture->dir);
	assert_int_equal(chmod(dir, 0777), 0);
	assert_int_equal(output__append(&output, path), -EPERM);
	assert_one_message(fixture, "another user (uid 12345)");
}

static void files_of_the_owner_of_a_private_folder_are_the_users(void **state)
{
	struct fixture *fixture = *state;
	struct output *output = NULL;
	char path[160];

	if (geteuid())
		skip();
	make_theirs(fixture, path, S_IFREG);
	assert_int_equal(output__append(&output, path), 0);
	output__free(output);
}

/* Opening a pipe for writing would wait for a reader. */
static void a_pipe_of_the_owner_of_a_private_folder_is_refused(void **state)
{
	struct fixture *fixture = *state;
	struct output *output = NULL;
	char path[160];

	if (geteuid())
		skip();
	make_theirs(fixture, path, S_IFIFO);
	assert_int_equal(output__create(&output, path), -EPERM);
	assert_one_message(fixture, "another user (uid 12345)");
}

static void a_block_device_is_refused(void **state)
{
	struct fixture *fixture = *state;
	struct output *output = NULL;

	if (geteuid() || mknod(fixture->path, S_IFBLK | 0600, makedev(7, 250)))
		skip();
	assert_int_equal(output__create(&output, fixture->path), -EINVAL);
	assert_one_message(fixture, "nor a FIFO");
}

static void create_makes_missing_folders(void **state)
{
	struct fixture *fixture = *state;
	struct output *output = NULL;
	char path[128];

	snprintf(path, sizeof(path), "%s/a//b/c.json", fixture->dir);
	assert_int_equal(output__create(&output, path), 0);
	assert_int_equal(output__commit(output), 0);
	output__free(output);
	assert_true(exists(path));
}

static void files_are_for_their_owner_alone(void **state)
{
	struct fixture *fixture = *state;
	struct output *output = NULL;
	struct stat file;

	umask(0);
	assert_int_equal(output__append(&output, fixture->path), 0);
	umask(022);
	output__free(output);
	assert_int_equal(stat(fixture->path, &file), 0);
	assert_int_equal(file.st_mode & 07777, 0600);
}

static void files_and_folders_belong_to_the_user_behind_sudo(void **state)
{
	struct fixture *fixture = *state;
	struct output *output = NULL;
	struct stat file;
	char path[128];

	if (geteuid())
		skip();
	setenv("SUDO_UID", "12345", 1);
	setenv("SUDO_GID", "54321", 1);
	snprintf(path, sizeof(path), "%s/new/trace.json", fixture->dir);
	assert_int_equal(output__create(&output, path), 0);
	assert_int_equal(output__commit(output), 0);
	output__free(output);
	assert_int_equal(stat(path, &file), 0);
	assert_int_equal(file.st_uid, 12345);
	assert_int_equal(file.st_gid, 54321);
	*strrchr(path, '/') = '\0';
	assert_int_equal(stat(path, &file), 0);
	assert_int_equal(file.st_uid, 12345);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(create_refuses_a_symbolic_link),
		TEST(append_refuses_a_symbolic_link),
		TEST(create_refuses_a_temporary_name_that_is_a_symbolic_link),
		TEST(create_refuses_a_folder),
		TEST(create_refuses_a_path_without_a_name),
		TEST(create_refuses_a_file_as_folder),
		TEST(append_refuses_a_file_with_two_names),
		TEST(files_of_others_in_a_shared_folder_are_refused),
		TEST(files_of_the_owner_of_a_shared_folder_are_refused_too),
		TEST(a_pipe_of_the_owner_of_a_private_folder_is_refused),
		TEST(a_block_device_is_refused),
		TEST(files_of_the_owner_of_a_private_folder_are_the_users),
		TEST(create_makes_missing_folders),
		TEST(files_are_for_their_owner_alone),
		TEST(files_and_folders_belong_to_the_user_behind_sudo),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
