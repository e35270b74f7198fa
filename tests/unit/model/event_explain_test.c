/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "model/event.h"

static struct fbt_taken sound_taken(void)
{
	struct fbt_taken taken = {.header = {FBT_EVENT_TAKEN, 0, sizeof(taken)},
				  .tgid = 7,
				  .waited_ns = 100,
				  .idle_ns = 20,
				  .other_ns = 30,
				  .count = 2};

	taken.takers[0] = (struct fbt_taker){.tgid = 8, .ns = 40, .comm = "hog"};
	taken.takers[1] = (struct fbt_taker){.tgid = 9, .ns = 10, .comm = "pig"};
	return taken;
}

static long decode_taken(const struct fbt_taken *taken)
{
	const struct fbt_header *event;

	return decode_event(taken, sizeof(*taken), &event);
}

static void the_takers_of_a_cpu_have_no_more_than_the_wait(void **state)
{
	struct fbt_taken taken = sound_taken();

	assert_int_equal(decode_taken(&taken), sizeof(taken));
	taken.takers[1].ns++;
	assert_int_equal(decode_taken(&taken), -EBADMSG);
	taken = sound_taken();
	taken.idle_ns = UINT64_MAX;
	assert_int_equal(decode_taken(&taken), -EBADMSG);
	taken = sound_taken();
	taken.other_ns = UINT64_MAX - 19;
	assert_int_equal(decode_taken(&taken), -EBADMSG);
}

static void own_threads_have_no_more_than_all_of_them(void **state)
{
	struct fbt_taken taken = sound_taken();

	taken.takers[0].tid = 11;
	assert_int_equal(decode_taken(&taken), -EBADMSG);
	taken.own_ns = 40;
	assert_int_equal(decode_taken(&taken), sizeof(taken));
	taken.own_ns = 41;
	assert_int_equal(decode_taken(&taken), -EBADMSG);
	taken.own_ns = 0;
	taken.takers[0].tid = 0;
	taken.own_ns = 1;
	assert_int_equal(decode_taken(&taken), -EBADMSG);
}

static void the_takers_of_a_cpu_are_counted_and_named(void **state)
{
	struct fbt_taken taken = sound_taken();

	taken.count = FBT_TAKERS + 1;
	assert_int_equal(decode_taken(&taken), -EBADMSG);
	taken = sound_taken();
	memset(taken.takers[1].comm, 'x', sizeof(taken.takers[1].comm));
	assert_int_equal(decode_taken(&taken), -EBADMSG);
	taken = sound_taken();
	memset(taken.takers[0].cgroup, 'x', sizeof(taken.takers[0].cgroup));
	assert_int_equal(decode_taken(&taken), -EBADMSG);
	/* Many processes of a cgroup, which then has a name. */
	taken = sound_taken();
	taken.takers[0].tgid = 0;
	assert_int_equal(decode_taken(&taken), -EBADMSG);
	strcpy(taken.takers[0].cgroup, "/build");
	assert_int_equal(decode_taken(&taken), sizeof(taken));
}

static void a_wake_has_a_known_context_and_call(void **state)
{
	struct fbt_woken woken = {.header = {FBT_EVENT_WOKEN, 0, sizeof(woken)},
				  .tgid = 7,
				  .start_ns = 5,
				  .wake_ns = 6,
				  .nr = FBT_NR_UNKNOWN};
	const struct fbt_woken sound = woken;
	const struct fbt_header *event;

	assert_int_equal(decode_event(&woken, sizeof(woken), &event), sizeof(woken));
	woken.context = FBT_WOKEN_CONTEXTS;
	assert_int_equal(decode_event(&woken, sizeof(woken), &event), -EBADMSG);
	woken = sound;
	woken.nr = FBT_NR_COUNT;
	assert_int_equal(decode_event(&woken, sizeof(woken), &event), -EBADMSG);
	woken = sound;
	woken.wake_ns = 4;
	assert_int_equal(decode_event(&woken, sizeof(woken), &event), -EBADMSG);
	woken = sound;
	memset(woken.comm, 'x', sizeof(woken.comm));
	assert_int_equal(decode_event(&woken, sizeof(woken), &event), -EBADMSG);
}

static void the_functions_of_samples_have_no_more_than_there_are(void **state)
{
	struct fbt_samples samples = {
		.header = {FBT_EVENT_SAMPLES, 0, sizeof(samples)}, .samples = 10, .count = 2};
	const struct fbt_header *event;

	samples.functions[0].samples = 6;
	samples.functions[1].samples = 4;
	assert_int_equal(decode_event(&samples, sizeof(samples), &event), sizeof(samples));
	samples.functions[1].samples = 5;
	assert_int_equal(decode_event(&samples, sizeof(samples), &event), -EBADMSG);
	samples.functions[0].samples = UINT32_MAX;
	assert_int_equal(decode_event(&samples, sizeof(samples), &event), -EBADMSG);
	samples.functions[0].samples = 0;
	samples.count = FBT_SAMPLED_FUNCTIONS + 1;
	assert_int_equal(decode_event(&samples, sizeof(samples), &event), -EBADMSG);
}

static void the_sites_of_faults_have_no_more_than_there_are(void **state)
{
	struct fbt_fault_sites sites = {.header = {FBT_EVENT_FAULT_SITES, 0, sizeof(sites)},
					.tgid = 7,
					.faults = 10,
					.count = 2};
	const struct fbt_header *event;

	sites.sites[0] = (struct fbt_fault_site){.faults = 6, .majors = 6};
	sites.sites[1] = (struct fbt_fault_site){.faults = 4, .mapping = FBT_MAPPING_STACK};
	assert_int_equal(decode_event(&sites, sizeof(sites), &event), sizeof(sites));
	sites.sites[1].faults = 5;
	assert_int_equal(decode_event(&sites, sizeof(sites), &event), -EBADMSG);
	sites.sites[1].faults = 4;
	sites.sites[0].majors = 7;
	assert_int_equal(decode_event(&sites, sizeof(sites), &event), -EBADMSG);
	sites.sites[0].majors = 0;
	sites.sites[1].mapping = FBT_MAPPING_COUNT;
	assert_int_equal(decode_event(&sites, sizeof(sites), &event), -EBADMSG);
	sites.sites[1].mapping = 0;
	sites.count = FBT_FAULT_SITES + 1;
	assert_int_equal(decode_event(&sites, sizeof(sites), &event), -EBADMSG);
}

static void a_sender_has_a_known_origin_and_names_that_end(void **state)
{
	struct fbt_stop_sender sender = {.header = {FBT_EVENT_STOP_SENDER, 0, sizeof(sender)},
					 .tgid = 7,
					 .origin = FBT_SENDER_ORIGINS - 1};
	const struct fbt_header *event;

	assert_int_equal(decode_event(&sender, sizeof(sender), &event), sizeof(sender));
	sender.origin = FBT_SENDER_ORIGINS;
	assert_int_equal(decode_event(&sender, sizeof(sender), &event), -EBADMSG);
	sender.origin = 0;
	memset(sender.parent_comm, 'x', sizeof(sender.parent_comm));
	assert_int_equal(decode_event(&sender, sizeof(sender), &event), -EBADMSG);
	memset(sender.parent_comm, 0, sizeof(sender.parent_comm));
	memset(sender.comm, 'x', sizeof(sender.comm));
	assert_int_equal(decode_event(&sender, sizeof(sender), &event), -EBADMSG);
}

static void what_was_explained_is_of_a_known_kind(void **state)
{
	struct fbt_explained explained = {
		.header = {FBT_EVENT_EXPLAIN, 0, sizeof(explained)},
		.kind = FBT_EXPLAIN_COUNT - 1,
		.state = FBT_EXPLAIN_STATES - 1,
	};
	const struct fbt_header *event;

	assert_int_equal(decode_event(&explained, sizeof(explained), &event), sizeof(explained));
	explained.kind = FBT_EXPLAIN_COUNT;
	assert_int_equal(decode_event(&explained, sizeof(explained), &event), -EBADMSG);
	explained.kind = 0;
	explained.state = FBT_EXPLAIN_STATES;
	assert_int_equal(decode_event(&explained, sizeof(explained), &event), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_takers_of_a_cpu_have_no_more_than_the_wait),
		cmocka_unit_test(own_threads_have_no_more_than_all_of_them),
		cmocka_unit_test(the_takers_of_a_cpu_are_counted_and_named),
		cmocka_unit_test(a_wake_has_a_known_context_and_call),
		cmocka_unit_test(the_functions_of_samples_have_no_more_than_there_are),
		cmocka_unit_test(the_sites_of_faults_have_no_more_than_there_are),
		cmocka_unit_test(a_sender_has_a_known_origin_and_names_that_end),
		cmocka_unit_test(what_was_explained_is_of_a_known_kind),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
