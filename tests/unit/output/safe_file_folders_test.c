/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Which folders and links on the way to a file are entered. */
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
#include <unistd.h>

#include "output/file.h"
#include "output/safe_file.h"
#include "output_fixture.h"

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

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

int main(void)
{
	const struct CMUnitTest tests[] = {
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
