/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "base/json_read.h"
#include "html/timeline.h"

#define MS UINT64_C(1000000)

static void add(struct timeline *timeline, uint64_t at_ms, uint64_t total_ns)
{
	struct step_parts parts = {.ns = {[STEP_OWN] = total_ns - 1, [STEP_AWAIT] = 1}};

	timeline__add(timeline, at_ms * MS, total_ns, total_ns, &parts, NULL);
}

/* What timeline__write writes, as one object; the caller puts it. */
static struct json_object *written(const struct timeline *timeline)
{
	char *text = NULL;
	size_t size;
	struct json json = {.out = open_memstream(&text, &size)};
	struct json_object *all;

	assert_non_null(json.out);
	json_object_begin(&json, NULL);
	timeline__write(timeline, &json, "timeline");
	json_object_end(&json);
	fclose(json.out);
	all = json_tokener_parse(text);
	assert_non_null(all);
	free(text);
	return all;
}

static struct json_object *member(struct json_object *object, const char *name)
{
	struct json_object *value = NULL;

	assert_true(json_object_object_get_ex(object, name, &value));
	return value;
}

static uint64_t item(struct json_object *array, size_t index)
{
	return json_object_get_uint64(json_object_array_get_idx(array, index));
}

static void bins_are_an_eighth_of_an_octave(void **state)
{
	assert_int_equal(timeline_bin_ns(0), 0);
	assert_int_equal(timeline_bin_ns(1), 1000);
	assert_int_equal(timeline_bin_ns(9), 2000);
	assert_int_equal(timeline_bin_ns(13), 3000);
	for (uint32_t bin = 1; bin + 1 < TIMELINE_BINS; bin++) {
		double ratio = (double)timeline_bin_ns(bin + 1) / (double)timeline_bin_ns(bin);

		assert_true(ratio > 1.06 && ratio < 1.126);
	}
	/* A step of half an hour is not in the last one. */
	assert_true(timeline_bin_ns(TIMELINE_BINS - 1) > 1800 * 1000 * MS);
}

static void a_step_is_in_the_slot_of_its_begin_and_the_bin_of_its_length(void **state)
{
	struct timeline *timeline = timeline__new();
	struct json_object *all, *slots, *slot, *bin;

	assert_non_null(timeline);
	add(timeline, 0, 2000);
	add(timeline, 3, 2000);
	add(timeline, 3, 2249);
	add(timeline, 3, 2250);
	all = written(timeline);
	assert_int_equal(json_object_get_uint64(member(member(all, "timeline"), "width")), MS);
	slots = member(member(all, "timeline"), "slots");
	assert_int_equal(json_object_array_length(slots), 4);
	assert_int_equal(
		json_object_array_length(member(json_object_array_get_idx(slots, 1), "bins")), 0);
	slot = json_object_array_get_idx(slots, 3);
	assert_int_equal(item(member(slot, "parts"), STEP_OWN), 2000 + 2249 + 2250 - 3);
	assert_int_equal(item(member(slot, "parts"), STEP_AWAIT), 3);
	bin = json_object_array_get_idx(member(slot, "bins"), 0);
	assert_int_equal(item(bin, 0), 9);
	assert_int_equal(item(bin, 1), 2);
	bin = json_object_array_get_idx(member(slot, "bins"), 1);
	assert_int_equal(item(bin, 0), 10);
	assert_int_equal(item(bin, 1), 1);
	json_object_put(all);
	timeline__free(timeline);
}

/* An hour of steps, 7 ms apart. Nothing is lost when slots are merged. */
static void sums_stay_exact_in_a_long_window(void **state)
{
	struct timeline *timeline = timeline__new();
	struct json_object *all, *slots;
	uint64_t steps = 0, own_ns = 0, width;
	size_t count;

	assert_non_null(timeline);
	for (uint64_t at = 0; at < 3600 * 1000; at += 7)
		add(timeline, at, 1000 + at);
	all = written(timeline);
	slots = member(member(all, "timeline"), "slots");
	width = json_object_get_uint64(member(member(all, "timeline"), "width"));
	count = json_object_array_length(slots);
	assert_true(count <= TIMELINE_SLOTS && count > TIMELINE_SLOTS / 2);
	assert_true(width * count >= 3600 * 1000 * MS && width * (count - 1) < 3600 * 1000 * MS);
	for (size_t i = 0; i < count; i++) {
		struct json_object *slot = json_object_array_get_idx(slots, i);
		struct json_object *bins = member(slot, "bins");

		own_ns += item(member(slot, "parts"), STEP_OWN);
		for (size_t j = 0; j < json_object_array_length(bins); j++)
			steps += item(json_object_array_get_idx(bins, j), 1);
	}
	assert_int_equal(steps, 514286);
	assert_int_equal(own_ns, steps * 999 + 7 * (steps * (steps - 1) / 2));
	json_object_put(all);
	timeline__free(timeline);
}

/* Else a slot would have more time in steps than passed in it. */
static void a_long_step_is_spread_over_the_slots_that_it_lies_in(void **state)
{
	struct timeline *timeline = timeline__new();
	struct step_parts parts = {.ns = {[STEP_OWN] = 2 * MS + 1}};
	struct step_gpu gpu = {.complete = true, .all = {.busy_ns = MS}};
	const uint64_t own_ns[] = {500000, 1000000, 500001}, busy_ns[] = {250000, 500000, 250000};
	struct json_object *all, *slots;
	uint64_t known_ns = 0;

	assert_non_null(timeline);
	timeline__add(timeline, MS / 2, 2 * MS, 2 * MS, &parts, &gpu);
	gpu.complete = false;
	timeline__add(timeline, 5 * MS, 1000, 1000, &parts, &gpu);
	all = written(timeline);
	slots = member(member(all, "timeline"), "slots");
	assert_int_equal(json_object_array_length(slots), 6);
	for (size_t i = 0; i < 3; i++) {
		struct json_object *slot = json_object_array_get_idx(slots, i);

		assert_int_equal(item(member(slot, "parts"), STEP_OWN), own_ns[i]);
		assert_int_equal(item(member(slot, "gpu"), 0), busy_ns[i]);
		known_ns += item(member(slot, "gpu"), 1);
		assert_int_equal(json_object_array_length(member(slot, "bins")), i == 0);
	}
	assert_int_equal(known_ns, 2 * MS);
	assert_false(json_object_object_get_ex(json_object_array_get_idx(slots, 5), "gpu", NULL));
	json_object_put(all);
	timeline__free(timeline);
}

/* Its parts are sums of threads, so they are more than its time. */
static void an_interval_lies_where_the_clock_says(void **state)
{
	struct timeline *timeline = timeline__new();
	struct step_parts parts = {.ns = {[STEP_OWN] = 12 * MS}};
	struct json_object *all, *slots, *bin;

	(void)state;
	assert_non_null(timeline);
	timeline__add(timeline, MS, MS, 12 * MS, &parts, NULL);
	all = written(timeline);
	slots = member(member(all, "timeline"), "slots");
	assert_int_equal(json_object_array_length(slots), 2);
	assert_int_equal(item(member(json_object_array_get_idx(slots, 1), "parts"), STEP_OWN),
			 12 * MS);
	bin = json_object_array_get_idx(member(json_object_array_get_idx(slots, 1), "bins"), 0);
	assert_true(timeline_bin_ns((uint32_t)item(bin, 0)) > 10 * MS);
	json_object_put(all);
	timeline__free(timeline);
}

/* A capture may hold any figures. */
static void times_that_cannot_be_do_no_harm(void **state)
{
	struct timeline *timeline = timeline__new();
	struct step_parts parts = {.ns = {[STEP_OWN] = UINT64_MAX}};

	assert_non_null(timeline);
	timeline__add(timeline, UINT64_MAX, UINT64_MAX, UINT64_MAX, &parts, NULL);
	timeline__add(timeline, 0, 0, 0, &parts, NULL);
	json_object_put(written(timeline));
	timeline__free(timeline);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bins_are_an_eighth_of_an_octave),
		cmocka_unit_test(a_step_is_in_the_slot_of_its_begin_and_the_bin_of_its_length),
		cmocka_unit_test(sums_stay_exact_in_a_long_window),
		cmocka_unit_test(a_long_step_is_spread_over_the_slots_that_it_lies_in),
		cmocka_unit_test(an_interval_lies_where_the_clock_says),
		cmocka_unit_test(times_that_cannot_be_do_no_harm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
