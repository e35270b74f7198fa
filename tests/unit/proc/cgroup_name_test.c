/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Names of folders in a tree that the test creates and presents as mounted. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proc/cgroup_name.h"

#define FOLDER "/tmp/fbt_cgroup_name_XXXXXX"

struct tree {
	char folder[64];
	char name[40];
};

static int make_tree(void **state)
{
	struct tree *tree = calloc(1, sizeof(*tree));

	assert_non_null(tree);
	strcpy(tree->folder, FOLDER);
	assert_non_null(mkdtemp(tree->folder));
	*state = tree;
	return 0;
}

static int remove_tree(void **state)
{
	struct tree *tree = *state;
	char command[128];

	snprintf(command, sizeof(command), "rm -r '%s'", tree->folder);
	assert_int_equal(system(command), 0);
	free(tree);
	return 0;
}

/* Returns its id. */
static uint64_t make_folder(const struct tree *tree, const char *name)
{
	char path[512];
	struct stat of;

	snprintf(path, sizeof(path), "%s/%s", tree->folder, name);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(stat(path, &of), 0);
	return of.st_ino;
}

/* The name of an id, with the folder as a mounted file system of that type. */
static const char *name_of(struct tree *tree, const char *type, uint64_t id)
{
	char mounts[256];
	FILE *file;

	snprintf(mounts, sizeof(mounts),
		 "30 23 0:27 / /proc rw - proc proc rw\n"
		 "31 23 0:28 / %s rw - %s %s rw\n",
		 tree->folder, type, type);
	file = fmemopen(mounts, strlen(mounts), "r");
	assert_non_null(file);
	strcpy(tree->name, "?");
	cgroup_name_find(file, id, tree->name, sizeof(tree->name));
	fclose(file);
	return tree->name;
}

static void a_folder_is_found_at_any_depth(void **state)
{
	struct tree *tree = *state;
	uint64_t top = make_folder(tree, "system.slice"), deep;

	make_folder(tree, "user.slice");
	make_folder(tree, "user.slice/a");
	deep = make_folder(tree, "user.slice/a/b");
	make_folder(tree, "user.slice/c");
	assert_string_equal(name_of(tree, "cgroup2", top), "/system.slice");
	assert_string_equal(name_of(tree, "cgroup2", deep), "/user.slice/a/b");
}

static void of_a_long_path_the_end_is_told(void **state)
{
	struct tree *tree = *state;
	uint64_t id;

	make_folder(tree, "kubepods-burstable-pod0123456789.slice");
	id = make_folder(tree, "kubepods-burstable-pod0123456789.slice/cri-0123456789abcdef.scope");
	assert_string_equal(name_of(tree, "cgroup2", id), "/cri-0123456789abcdef.scope");
}

static void what_is_not_there_has_no_name(void **state)
{
	struct tree *tree = *state;
	uint64_t id = make_folder(tree, "a");

	assert_string_equal(name_of(tree, "cgroup2", UINT64_MAX), "");
	assert_string_equal(name_of(tree, "cgroup", id), "");
	assert_string_equal(name_of(tree, "cgroup2", id), "/a");
}

/* Paths end where there is no room for more of them. */
static void a_path_may_be_longer_than_any(void **state)
{
	struct tree *tree = *state;
	int folder = open(tree->folder, O_RDONLY | O_CLOEXEC), inner;
	char name[201];
	uint64_t last;

	memset(name, 'x', 200);
	name[200] = '\0';
	for (int i = 0; i < 30; i++) {
		assert_int_equal(mkdirat(folder, name, 0700), 0);
		inner = openat(folder, name, O_RDONLY | O_CLOEXEC);
		assert_true(inner >= 0);
		close(folder);
		folder = inner;
	}
	close(folder);
	assert_string_equal(name_of(tree, "cgroup2", UINT64_MAX), "");
	last = make_folder(tree, "z");
	assert_string_equal(name_of(tree, "cgroup2", last), "/z");
}

static void a_process_has_the_name_that_it_says_itself(void **state)
{
	char name[256], command[512];

	cgroup_name_of_process((uint32_t)getpid(), name, sizeof(name));
	assert_true(*name == '/');
	snprintf(command, sizeof(command), "grep -qF ':%s' /proc/self/cgroup", name);
	assert_int_equal(system(command), 0);
	cgroup_name_of_process(4194303, name, sizeof(name));
	assert_string_equal(name, "");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_tree, remove_tree)
	const struct CMUnitTest tests[] = {
		TEST(a_folder_is_found_at_any_depth),
		TEST(of_a_long_path_the_end_is_told),
		TEST(what_is_not_there_has_no_name),
		TEST(a_path_may_be_longer_than_any),
		cmocka_unit_test(a_process_has_the_name_that_it_says_itself),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
