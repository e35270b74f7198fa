/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include "tally/explained_tally.h"

/*
 * Adds a step whose CPU a process of that name had; cgroup "": it had it for too short a time. With
 * comm "" the processes of the cgroup had it together.
 */
static void add(struct explained_tally *tally, const char *comm, const char *cgroup, uint64_t ns)
{
	struct cause *cause = calloc(1, sizeof(*cause));
	struct fbt_taker *taker = &cause->taken.takers[0];

	assert_non_null(cause);
	cause->kind = CAUSE_RUN_QUEUE;
	cause->taken.header.type = FBT_EVENT_TAKEN;
	cause->taken.waited_ns = ns;
	cause->taken.count = 1;
	taker->tgid = *comm ? 7 : 0;
	taker->ns = ns;
	snprintf(taker->comm, sizeof(taker->comm), "%s", comm);
	snprintf(taker->cgroup, sizeof(taker->cgroup), "%s", cgroup);
	explained_tally_add(tally, NULL, cause);
	free(cause);
}

static void a_cgroup_that_is_known_later_is_told(void **state)
{
	struct explained_tally tally = {0};

	(void)state;
	add(&tally, "hog", "", 10);
	add(&tally, "hog", "/load", 20);
	add(&tally, "hog", "", 30);
	add(&tally, "hog", "/load", 40);
	assert_int_equal(tally.count, 1);
	assert_int_equal(tally.takers[0].ns, 100);
	assert_string_equal(tally.takers[0].cgroup, "/load");
}

static void processes_of_several_cgroups_have_none(void **state)
{
	struct explained_tally tally = {0};

	(void)state;
	add(&tally, "hog", "/load", 20);
	add(&tally, "hog", "/other", 20);
	assert_string_equal(tally.takers[0].cgroup, "");
	add(&tally, "hog", "/load", 20);
	assert_string_equal(tally.takers[0].cgroup, "");
}

static void a_new_name_has_the_cgroup_of_its_own(void **state)
{
	struct explained_tally tally = {0};
	char comm[16];

	(void)state;
	add(&tally, "mixed", "/a", 1);
	add(&tally, "mixed", "/b", 1);
	for (int i = 1; i < EXPLAINED_TAKERS; i++) {
		snprintf(comm, sizeof(comm), "p%d", i);
		add(&tally, comm, "/a", 100);
	}
	/* In the place of the one that had least. */
	add(&tally, "new", "", 50);
	add(&tally, "new", "/c", 50);
	assert_string_equal(tally.takers[0].comm, "new");
	assert_string_equal(tally.takers[0].cgroup, "/c");
}

static void each_cgroup_of_many_processes_is_one(void **state)
{
	struct explained_tally tally = {0};

	(void)state;
	add(&tally, "", "/build", 20);
	add(&tally, "", "/backup", 5);
	add(&tally, "cc1", "/build", 1);
	add(&tally, "", "/build", 30);
	assert_int_equal(tally.count, 3);
	assert_int_equal(tally.takers[0].ns, 50);
	assert_string_equal(tally.takers[0].cgroup, "/build");
	assert_int_equal(tally.takers[1].ns, 5);
	assert_string_equal(tally.takers[1].cgroup, "/backup");
	assert_int_equal(tally.takers[2].tgid, 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_cgroup_that_is_known_later_is_told),
		cmocka_unit_test(processes_of_several_cgroups_have_none),
		cmocka_unit_test(a_new_name_has_the_cgroup_of_its_own),
		cmocka_unit_test(each_cgroup_of_many_processes_is_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
