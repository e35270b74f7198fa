/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include "judge/explained.h"

#define MS 1000000ull

static struct fbt_taken waited(uint64_t ms)
{
	return (struct fbt_taken){.header.type = FBT_EVENT_TAKEN, .waited_ns = ms * MS};
}

static void add(struct fbt_taken *taken, uint32_t tgid, uint32_t tid, const char *comm, uint64_t ms)
{
	struct fbt_taker *taker = &taken->takers[taken->count++];

	taker->tgid = tgid;
	taker->tid = tid;
	taker->ns = ms * MS;
	taken->own_ns += tid ? taker->ns : 0;
	snprintf(taker->comm, sizeof(taker->comm), "%s", comm);
}

static void says(const struct fbt_taken *taken, const char *wanted)
{
	char text[512] = "";
	struct line line = {text, sizeof(text), 0};

	taken_describe(&line, taken);
	assert_string_equal(text, wanted);
}

static void what_was_not_looked_at_is_not_told(void **state)
{
	struct fbt_taken taken = {.waited_ns = 300 * MS};

	add(&taken, 9, 0, "hog", 300);
	says(&taken, "");
}

static void one_process_is_named(void **state)
{
	struct fbt_taken taken = waited(300);

	add(&taken, 9, 0, "hog", 299);
	says(&taken, ", taken by hog (pid 9) 299 ms");
}

static void its_cgroup_is_named_with_the_first_only(void **state)
{
	struct fbt_taken taken = waited(300);

	add(&taken, 9, 0, "hog", 200);
	add(&taken, 8, 0, "pig", 90);
	snprintf(taken.takers[0].cgroup, sizeof(taken.takers[0].cgroup), "/a.slice");
	snprintf(taken.takers[1].cgroup, sizeof(taken.takers[1].cgroup), "/b.slice");
	says(&taken, ", taken by hog (pid 9, cgroup /a.slice) 200 ms, pig (pid 8) 90.0 ms");
}

static void the_root_is_no_cgroup_worth_a_name(void **state)
{
	struct fbt_taken taken = waited(300);

	add(&taken, 9, 0, "hog", 200);
	snprintf(taken.takers[0].cgroup, sizeof(taken.takers[0].cgroup), "/");
	says(&taken, ", taken by hog (pid 9) 200 ms");
}

static void own_threads_are_one_and_come_first_where_they_took_most(void **state)
{
	struct fbt_taken taken = waited(300);

	add(&taken, 9, 0, "hog", 100);
	add(&taken, 7, 71, "w1", 90);
	add(&taken, 7, 72, "w2", 80);
	says(&taken, ", taken by its own threads 170 ms, hog (pid 9) 100 ms");
}

static void own_threads_come_last_where_they_took_least(void **state)
{
	struct fbt_taken taken = waited(300);

	add(&taken, 9, 0, "hog", 200);
	add(&taken, 7, 71, "w1", 90);
	says(&taken, ", taken by hog (pid 9) 200 ms, its own thread 71 \"w1\" 90.0 ms");
}

static void own_threads_count_beyond_those_that_have_a_place(void **state)
{
	struct fbt_taken taken = waited(300);

	add(&taken, 9, 0, "hog", 100);
	add(&taken, 7, 71, "w1", 20);
	taken.own_ns = 190 * MS;
	says(&taken, ", taken by its own threads 190 ms, hog (pid 9) 100 ms");
}

static void many_that_took_little_are_told_together(void **state)
{
	struct fbt_taken taken = waited(300);

	for (uint32_t pid = 9; pid < 9 + FBT_TAKERS; pid++)
		add(&taken, pid, 0, "cc1", 12);
	taken.other_ns = 200 * MS;
	says(&taken, ", taken by many other processes 272 ms");
	taken.own_ns = 20 * MS;
	says(&taken, ", taken by many other processes 272 ms, its own threads 20.0 ms");
}

static void one_that_took_more_does_not_hide_many(void **state)
{
	struct fbt_taken taken = waited(300);

	add(&taken, 9, 0, "hog", 30);
	for (uint32_t pid = 10; pid < 9 + FBT_TAKERS; pid++)
		add(&taken, pid, 0, "cc1", 12);
	taken.other_ns = 200 * MS;
	says(&taken, ", taken by many other processes 260 ms, hog (pid 9) 30.0 ms");
}

static void many_of_one_cgroup_are_told_with_it(void **state)
{
	struct fbt_taken taken = waited(300);

	add(&taken, 0, 0, "", 250);
	snprintf(taken.takers[0].cgroup, sizeof(taken.takers[0].cgroup), "/ci\x1b.slice");
	add(&taken, 9, 0, "hog", 40);
	says(&taken,
	     ", taken by many processes of cgroup /ci\\x1b.slice 250 ms, hog (pid 9) 40.0 ms");
}

static void little_is_left_out(void **state)
{
	struct fbt_taken taken = waited(300);

	add(&taken, 9, 0, "hog", 280);
	add(&taken, 8, 0, "fly", 14);
	add(&taken, 7, 71, "w1", 1);
	says(&taken, ", taken by hog (pid 9) 280 ms");
}

static void a_cpu_that_ran_nothing_is_told(void **state)
{
	struct fbt_taken taken = waited(300);

	taken.idle_ns = 290 * MS;
	says(&taken, ", while the CPU ran nothing for 290 ms");
}

static void names_are_not_trusted(void **state)
{
	struct fbt_taken taken = waited(300);

	add(&taken, 9, 0, "\x1b[2J", 300);
	says(&taken, ", taken by \\x1b[2J (pid 9) 300 ms");
}

static void only_a_wait_for_a_cpu_needs_switches(void **state)
{
	struct cause cause = {.kind = CAUSE_RUN_QUEUE};
	enum fbt_explain kind = FBT_EXPLAIN_COUNT;
	bool known = true;

	assert_true(cause_explained_by(&cause, &kind, &known));
	assert_int_equal(kind, FBT_EXPLAIN_SWITCHES);
	assert_false(known);
	cause.taken = waited(300);
	assert_true(cause_explained_by(&cause, &kind, &known));
	assert_true(known);
	/* Also of another thread. */
	cause.time_ns = cause.waker.ns = 300 * MS;
	cause.waker.tid = 5;
	assert_true(cause_explained_by(&cause, &kind, &known));
	cause = (struct cause){.kind = CAUSE_CPU_LIMIT};
	assert_false(cause_explained_by(&cause, &kind, &known));
}

static void work_of_the_gpu_and_of_others_needs_no_samples(void **state)
{
	struct cause cause = {.kind = CAUSE_COMPUTE, .time_ns = 100 * MS};
	enum fbt_explain kind = FBT_EXPLAIN_COUNT;
	bool known = true;

	cause.covered_ns = 20 * MS;
	assert_true(cause_explained_by(&cause, &kind, &known));
	assert_int_equal(kind, FBT_EXPLAIN_SAMPLES);
	cause.waker.tid = 5;
	cause.waker.ns = 30 * MS;
	assert_false(cause_explained_by(&cause, &kind, &known));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_not_looked_at_is_not_told),
		cmocka_unit_test(one_process_is_named),
		cmocka_unit_test(its_cgroup_is_named_with_the_first_only),
		cmocka_unit_test(the_root_is_no_cgroup_worth_a_name),
		cmocka_unit_test(own_threads_are_one_and_come_first_where_they_took_most),
		cmocka_unit_test(own_threads_come_last_where_they_took_least),
		cmocka_unit_test(many_that_took_little_are_told_together),
		cmocka_unit_test(own_threads_count_beyond_those_that_have_a_place),
		cmocka_unit_test(one_that_took_more_does_not_hide_many),
		cmocka_unit_test(many_of_one_cgroup_are_told_with_it),
		cmocka_unit_test(little_is_left_out),
		cmocka_unit_test(a_cpu_that_ran_nothing_is_told),
		cmocka_unit_test(names_are_not_trusted),
		cmocka_unit_test(only_a_wait_for_a_cpu_needs_switches),
		cmocka_unit_test(work_of_the_gpu_and_of_others_needs_no_samples),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
