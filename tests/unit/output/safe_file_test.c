/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "output/file.h"
#include "output/safe_file.h"
#include "output_fixture.h"

/* --- the file --------------------------------------------------------------------------------- */

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

/* --- the folders on the way to it ------------------------------------------------------------- */

#define STRANGER 12345

/* dir/NAME; the caller frees it. */
static char *below(const struct fixture *fixture, const char *name)
{
	char *path = NULL;

	assert_true(asprintf(&path, "%s/%s", fixture->dir, name) > 0);
	return path;
}

/* The result of opening an output of that name. The file stays. */
static int try_output(const char *path)
{
	struct output *output = NULL;
	int err = output__create(&output, path);

	if (!err)
		assert_int_equal(output__commit(output), 0);
	output__free(output);
	return err;
}

static void make_folder(const char *path, mode_t mode, uid_t owner)
{
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(chmod(path, mode), 0);
	assert_int_equal(chown(path, owner, owner), 0);
}

static void the_folder_and_the_name_are_told_apart(void **state)
{
	struct fixture *fixture = *state;
	char *path = below(fixture, "a/.//b/c");
	char link[64], at[PATH_MAX] = "";
	struct safe_file file;

	assert_int_equal(safe_file_open(&file, path), 0);
	assert_string_equal(messages(fixture), "");
	assert_false(file.is_foreign);
	assert_string_equal(file.name, "c");
	snprintf(link, sizeof(link), "/proc/self/fd/%d", file.dir);
	assert_true(readlink(link, at, sizeof(at) - 1) > 0);
	assert_string_equal(at + strlen(fixture->dir), "/a/b");
	safe_file_clear(&file);
	free(path);
}

static void our_links_are_followed(void **state)
{
	struct fixture *fixture = *state;
	char *real = below(fixture, "real"), *file = below(fixture, "chain/t.json");
	char *there = below(fixture, "real/t.json"), *link = below(fixture, "link");
	char *chain = below(fixture, "chain");

	make_folder(real, 0755, geteuid());
	assert_int_equal(symlink("./real", link), 0);
	assert_int_equal(symlink(link, chain), 0);
	assert_int_equal(try_output(file), 0);
	assert_true(exists(there));
	free(real);
	free(file);
	free(there);
	free(link);
	free(chain);
}

static void a_loop_of_links_ends(void **state)
{
	struct fixture *fixture = *state;
	char *link = below(fixture, "link"), *file = below(fixture, "link/t.json");

	assert_int_equal(symlink("link", link), 0);
	assert_int_equal(try_output(file), -ELOOP);
	free(link);
	free(file);
}

static void a_strangers_link_is_not_followed(void **state)
{
	struct fixture *fixture = *state;
	char *real = below(fixture, "real"), *file = below(fixture, "link/t.json");
	char *there = below(fixture, "real/t.json.partial"), *link = below(fixture, "link");

	if (geteuid())
		skip();
	assert_int_equal(chmod(fixture->dir, 01777), 0);
	make_folder(real, 0755, 0);
	assert_int_equal(symlink(real, link), 0);
	assert_int_equal(lchown(link, STRANGER, STRANGER), 0);
	assert_int_equal(try_output(file), -ELOOP);
	assert_one_message(fixture, "link is a symbolic link of another user (uid 12345)");
	assert_false(exists(there));
	free(real);
	free(file);
	free(there);
	free(link);
}

/* Without fs.protected_hardlinks, anyone can give root's symbolic link a second name. */
static void a_link_with_two_names_is_not_followed(void **state)
{
	struct fixture *fixture = *state;
	char *file = below(fixture, "second/t.json");
	char *first = below(fixture, "first"), *second = below(fixture, "second");

	assert_int_equal(symlink("/etc", first), 0);
	assert_int_equal(linkat(AT_FDCWD, first, AT_FDCWD, second, 0), 0);
	assert_int_equal(try_output(file), -ELOOP);
	assert_false(exists("/etc/t.json"));
	free(file);
	free(first);
	free(second);
}

static void a_strangers_folder_in_a_shared_one_is_not_entered(void **state)
{
	struct fixture *fixture = *state;
	char *theirs = below(fixture, "theirs"), *file = below(fixture, "theirs/t.json");
	char *deep = below(fixture, "theirs/more/t.json"), *more = below(fixture, "theirs/more");

	if (geteuid())
		skip();
	assert_int_equal(chmod(fixture->dir, 01777), 0);
	make_folder(theirs, 0755, STRANGER);
	assert_int_equal(try_output(file), -EPERM);
	assert_one_message(fixture, "theirs is a directory of another user (uid 12345)");
	assert_int_equal(try_output(deep), -EPERM);
	assert_false(exists(more));
	setenv("SUDO_UID", "12345", 1);
	setenv("SUDO_GID", "12345", 1);
	assert_int_equal(try_output(file), 0);
	free(theirs);
	free(file);
	free(deep);
	free(more);
}

/*
 * Any member of the group may have created the folder. New files may be created in it, existing
 * ones must stay.
 */
static void in_a_folder_of_a_group_members_folders_are_entered_and_no_more(void **state)
{
	struct fixture *fixture = *state;
	char *team = below(fixture, "team"), *theirs = below(fixture, "team/theirs");
	char *more = below(fixture, "team/theirs/more"), *new = below(fixture, "team/theirs/new");
	char *old = below(fixture, "team/theirs/old"),
	     *deep = below(fixture, "team/theirs/more/old");
	struct output *output = NULL;

	if (geteuid())
		skip();
	make_folder(team, 03775, 0);
	make_folder(theirs, 0755, STRANGER);
	make_folder(more, 0755, STRANGER);
	write_text(old, "theirs");
	write_text(deep, "theirs");
	assert_int_equal(chown(old, STRANGER, STRANGER), 0);
	assert_int_equal(chown(deep, STRANGER, STRANGER), 0);
	assert_int_equal(try_output(new), 0);
	assert_int_equal(try_output(old), -EPERM);
	assert_one_message(fixture, "theirs/old: belongs to another user (uid 12345)");
	assert_int_equal(try_output(deep), -EPERM);
	assert_int_equal(output__append(&output, old), -EPERM);
	assert_text(old, "theirs");
	/*
	 * If the folder's group is the owner's own, or nobody else may write there, the file may be
	 * replaced.
	 */
	assert_int_equal(chown(team, STRANGER, STRANGER), 0);
	assert_int_equal(try_output(old), 0);
	assert_int_equal(chown(team, 0, 0), 0);
	assert_int_equal(chmod(team, 0755), 0);
	assert_int_equal(try_output(deep), 0);
	free(team);
	free(theirs);
	free(more);
	free(new);
	free(old);
	free(deep);
}

/* A symbolic link within another process's root could lead out of that root. */
static void below_a_link_of_proc_no_link_is_followed(void **state)
{
	struct fixture *fixture = *state;
	char *link = below(fixture, "link"), *path = NULL, *plain = NULL;
	char *there = below(fixture, "t.json");

	assert_int_equal(symlink("/etc", link), 0);
	assert_true(asprintf(&path, "/proc/%d/root%s/t.json", getpid(), link) > 0);
	assert_true(asprintf(&plain, "/proc/self/root%s", there) > 0);
	assert_int_equal(try_output(path), -ELOOP);
	assert_false(exists("/etc/t.json"));
	assert_int_equal(try_output(plain), 0);
	assert_true(exists(there));
	free(link);
	free(path);
	free(plain);
	free(there);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

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
		TEST(the_folder_and_the_name_are_told_apart),
		TEST(our_links_are_followed),
		TEST(a_loop_of_links_ends),
		TEST(a_strangers_link_is_not_followed),
		TEST(a_link_with_two_names_is_not_followed),
		TEST(a_strangers_folder_in_a_shared_one_is_not_entered),
		TEST(in_a_folder_of_a_group_members_folders_are_entered_and_no_more),
		TEST(below_a_link_of_proc_no_link_is_followed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
