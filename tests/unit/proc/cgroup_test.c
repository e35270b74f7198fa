/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Limits in a tree of cgroups that the test creates and presents as mounted. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proc/cgroup.h"

struct tree {
	char folder[64];
	struct cgroup_limits limits;
};

static int make_tree(void **state)
{
	struct tree *tree = calloc(1, sizeof(*tree));

	assert_non_null(tree);
	strcpy(tree->folder, "/tmp/fbt_cgroup_XXXXXX");
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

static void make_folder(const struct tree *tree, const char *name)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", tree->folder, name);
	assert_int_equal(mkdir(path, 0700), 0);
}

static void write_file(const struct tree *tree, const char *name, const char *text)
{
	char path[256];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", tree->folder, name);
	file = fopen(path, "w");
	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	fclose(file);
}

static FILE *open_text(const char *text)
{
	FILE *file = tmpfile();

	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	rewind(file);
	return file;
}

/* In mounts, %s stands for the folder of the tree. */
static const struct cgroup_limits *find(struct tree *tree, const char *cgroups, const char *mounts)
{
	FILE *cgroup_file = open_text(cgroups), *mount_file;
	char text[1024] = "22 1 254:1 / / rw - ext4 /dev/root rw\n";
	const char *at;

	while ((at = strstr(mounts, "%s"))) {
		strncat(text, mounts, (size_t)(at - mounts));
		strcat(text, tree->folder);
		mounts = at + 2;
	}
	strcat(text, mounts);
	mount_file = open_text(text);
	cgroup_limits_find(&tree->limits, cgroup_file, mount_file);
	fclose(cgroup_file);
	fclose(mount_file);
	return &tree->limits;
}

static void make_pod(const struct tree *tree)
{
	make_folder(tree, "pod");
	make_folder(tree, "pod/box");
	write_file(tree, "pod/cpu.max", "200000 100000\n");
	write_file(tree, "pod/cpu.stat",
		   "usage_usec 9\nnr_periods 400\nnr_throttled 12\nthrottled_usec 7\n");
	write_file(tree, "pod/memory.max", "max\n");
	write_file(tree, "pod/box/cpu.max", "max 100000\n");
	write_file(tree, "pod/box/memory.max", "1048576\n");
	write_file(tree, "pod/box/memory.events", "low 0\nhigh 5\nmax 33\noom 0\n");
}

#define UNIFIED "40 22 0:38 / %s rw,nosuid shared:9 - cgroup2 cgroup2 rw\n"

static void limits_above_a_cgroup_hold_for_it(void **state)
{
	struct tree *tree = *state;
	const struct cgroup_limits *limits;

	make_pod(tree);
	limits = find(tree, "0::/pod/box\n", UNIFIED);
	assert_int_equal(limits->quota_us, 200000);
	assert_int_equal(limits->period_us, 100000);
	assert_int_equal(limits->periods, 400);
	assert_int_equal(limits->throttled, 12);
	assert_int_equal(limits->memory_bytes, 1048576);
	assert_int_equal(limits->memory_hits, 33);
}

static void the_smallest_of_several_limits_counts(void **state)
{
	struct tree *tree = *state;

	make_pod(tree);
	write_file(tree, "pod/memory.max", "4096\n");
	write_file(tree, "pod/box/cpu.max", "30000 10000\n");
	assert_int_equal(find(tree, "0::/pod/box\n", UNIFIED)->quota_us, 200000);
	assert_int_equal(tree->limits.memory_bytes, 4096);
	assert_int_equal(tree->limits.memory_hits, 0);
	write_file(tree, "pod/box/cpu.max", "15000 10000\n");
	assert_int_equal(find(tree, "0::/pod/box\n", UNIFIED)->quota_us, 15000);
}

static void controllers_of_version_1_are_found_wherever_they_are_mounted(void **state)
{
	struct tree *tree = *state;
	const struct cgroup_limits *limits;

	make_folder(tree, "c d");
	make_folder(tree, "c d/x");
	make_folder(tree, "m");
	write_file(tree, "c d/x/cpu.cfs_quota_us", "50000\n");
	write_file(tree, "c d/x/cpu.cfs_period_us", "100000\n");
	write_file(tree, "c d/x/cpu.stat", "nr_periods 10\nnr_throttled 5\nthrottled_time 1\n");
	write_file(tree, "m/memory.limit_in_bytes", "65536\n");
	write_file(tree, "m/memory.failcnt", "7\n");
	limits = find(tree, "3:memory:/\n2:cpuset:/x\n1:cpu,cpuacct:/x\n0::/\n",
		      "32 31 0:29 / %s/c\\040d rw - cgroup cgroup rw,cpu,cpuacct\n"
		      "33 31 0:30 / %s/m rw - cgroup cgroup rw,memory\n");
	assert_int_equal(limits->quota_us, 50000);
	assert_int_equal(limits->period_us, 100000);
	assert_int_equal(limits->throttled, 5);
	assert_int_equal(limits->memory_bytes, 65536);
	assert_int_equal(limits->memory_hits, 7);
	write_file(tree, "c d/x/cpu.cfs_quota_us", "-1\n");
	write_file(tree, "m/memory.limit_in_bytes", "9223372036854771712\n");
	find(tree, "3:memory:/\n1:cpu,cpuacct:/x\n",
	     "32 31 0:29 / %s/c\\040d rw - cgroup cgroup rw,cpu,cpuacct\n"
	     "33 31 0:30 / %s/m rw - cgroup cgroup rw,memory\n");
	assert_int_equal(tree->limits.period_us, 0);
	assert_true(tree->limits.memory_bytes == UINT64_MAX);
}

static void a_part_of_the_tree_may_be_mounted(void **state)
{
	struct tree *tree = *state;

	make_pod(tree);
	/* A container sees its own cgroup at the mount point. */
	assert_int_equal(
		find(tree, "0::/kube/pod/box\n", "40 22 0:38 /kube %s rw - cgroup2 cgroup2 rw\n")
			->quota_us,
		200000);
	assert_int_equal(
		find(tree, "0::/kubelet/pod/box\n", "40 22 0:38 /kube %s rw - cgroup2 cgroup2 rw\n")
			->period_us,
		0);
}

static void what_is_outside_of_the_cgroup_namespace_has_no_limit(void **state)
{
	struct tree *tree = *state;

	make_pod(tree);
	assert_int_equal(find(tree, "0::/../pod/box\n", UNIFIED)->period_us, 0);
	assert_true(tree->limits.hidden);
	assert_false(find(tree, "0::/..pod\n", UNIFIED)->hidden);
	assert_false(find(tree, "0::/pod/box\n", UNIFIED)->hidden);
	assert_int_equal(find(tree, "0::/gone\n", UNIFIED)->period_us, 0);
	assert_int_equal(find(tree, "", UNIFIED)->period_us, 0);
	assert_int_equal(find(tree, "nonsense\n0:\n", "x - cgroup2\n\n")->period_us, 0);
	assert_true(tree->limits.memory_bytes == UINT64_MAX);
}

static void this_process_has_readable_limits(void **state)
{
	struct cgroup_limits limits;

	(void)state;
	cgroup_limits_read(&limits, (struct proc_ref){.tgid = (uint32_t)getpid()});
	assert_true(!limits.period_us || limits.quota_us);
	cgroup_limits_read(&limits, (struct proc_ref){.tgid = 0x7ffffff0});
	assert_int_equal(limits.period_us, 0);
	assert_true(limits.memory_bytes == UINT64_MAX);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_tree, remove_tree)
	const struct CMUnitTest tests[] = {
		TEST(limits_above_a_cgroup_hold_for_it),
		TEST(the_smallest_of_several_limits_counts),
		TEST(controllers_of_version_1_are_found_wherever_they_are_mounted),
		TEST(a_part_of_the_tree_may_be_mounted),
		TEST(what_is_outside_of_the_cgroup_namespace_has_no_limit),
		TEST(this_process_has_readable_limits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
