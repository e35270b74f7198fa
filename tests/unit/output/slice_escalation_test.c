/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "judge/text.h"
#include "output/slice.h"
#include "escalation_fixture.h"

struct fixture {
	struct window *window;
	struct escalation escalation;
	struct escalation_fields fields;
};

static int set_up(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	assert_non_null(fixture);
	fixture->window = window__new();
	assert_non_null(fixture->window);
	fixture->window->record.arch = FBT_ARCH_X86_64;
	fixture->escalation = make_escalation();
	*state = fixture;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;

	window__free(fixture->window);
	free(fixture);
	return 0;
}

static const struct json_field *find(struct fixture *fixture, const char *key)
{
	escalation_fields_fill(&fixture->fields, fixture->window, &fixture->escalation);
	for (uint32_t i = 0; i < fixture->fields.fields.count; i++)
		if (!strcmp(fixture->fields.fields.items[i].key, key))
			return &fixture->fields.fields.items[i];
	return NULL;
}

static void assert_field(struct fixture *fixture, const char *key, const char *value)
{
	const struct json_field *field = find(fixture, key);

	if (!field)
		fail_msg("no %s", key);
	assert_int_equal(field->type, JSON_FIELD_STRING);
	assert_string_equal(field->s, value);
}

static void the_seeds_attributes_are_strings(void **state)
{
	assert_field(*state, "brick.name", "llama_decode");
	assert_field(*state, "brick.budget_us", "21000");
	assert_field(*state, "brick.actual_us", "312400");
	assert_field(*state, "brick.efficiency", "6.7");
	assert_field(*state, "brick.over_budget", "true");
	assert_field(*state, "escalation.reason", "efficiency_low");
	assert_field(*state, "syscall.overhead_percent", "93.3");
	assert_field(*state, "syscall.dominant", "futex");
}

static void the_cause_comes_with_its_evidence(void **state)
{
	struct fixture *fixture = *state;
	char evidence[EVIDENCE_SIZE];

	cause_describe(&fixture->escalation.cause, fixture->window, evidence, sizeof(evidence));
	assert_field(fixture, "cause", "lock_contention");
	assert_field(fixture, "cause_evidence", evidence);
	assert_non_null(strstr(evidence, "futex"));
}

static void all_that_fired_is_listed(void **state)
{
	struct fixture *fixture = *state;

	assert_field(fixture, "fired", "efficiency_low");
	fixture->escalation.fired = FIRED(CV_EXCEEDED) | FIRED(EFFICIENCY_LOW) | FIRED(MANUAL);
	assert_field(fixture, "fired", "cv_exceeded,efficiency_low,manual");
	fixture->escalation.fired = 0;
	assert_field(fixture, "fired", "");
}

static void there_is_room_for_all_reasons(void **state)
{
	char text[FIRED_SIZE];

	escalation_fired_text(UINT32_MAX, text);
	assert_true(strlen(text) < FIRED_SIZE - 1);
	assert_non_null(strstr(text, ",manual"));
}

static void a_share_has_two_decimals(void **state)
{
	const struct json_field *field = find(*state, "cv_percent");

	assert_non_null(field);
	assert_int_equal(field->type, JSON_FIELD_DOUBLE);
	assert_true(field->d == 12.35);
}

static void a_share_that_is_not_known_is_left_out(void **state)
{
	struct fixture *fixture = *state;

	fixture->escalation.cv_percent = NAN;
	assert_null(find(fixture, "cv_percent"));
	fixture->escalation.cv_percent = INFINITY;
	assert_null(find(fixture, "cv_percent"));
	fixture->escalation.cv_percent = DBL_MAX;
	assert_true(find(fixture, "cv_percent")->d == DBL_MAX);
}

static void who_ended_the_wait_is_named_with_the_time(void **state)
{
	struct fixture *fixture = *state;
	const struct fbt_thread_name thread = {.tgid = 7, .tid = 8, .comm = "evict"};

	assert_int_equal(window__add_thread(fixture->window, &thread), 0);
	fixture->escalation.cause.waker.tid = 8;
	assert_null(find(fixture, "waker_tid"));
	assert_null(find(fixture, "waker_name"));
	fixture->escalation.cause.waker.after_ns = 299700999;
	assert_int_equal(find(fixture, "waker_tid")->u, 8);
	assert_int_equal(find(fixture, "waker_after_us")->u, 299700);
	assert_field(fixture, "waker_name", "evict");
}

static void every_cause_has_words_without_underscores(void **state)
{
	char words[CAUSE_WORDS_SIZE];

	for (int i = 0; i < CAUSE_COUNT; i++) {
		cause_words((enum cause_kind)i, words);
		assert_true(strlen(words) > 0 && strlen(words) < CAUSE_WORDS_SIZE - 1);
		assert_null(strchr(words, '_'));
	}
	assert_string_equal(cause_words(CAUSE_LOCK_CONTENTION, words), "lock contention");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_seeds_attributes_are_strings),
		TEST(the_cause_comes_with_its_evidence),
		TEST(all_that_fired_is_listed),
		TEST(there_is_room_for_all_reasons),
		TEST(a_share_has_two_decimals),
		TEST(a_share_that_is_not_known_is_left_out),
		TEST(who_ended_the_wait_is_named_with_the_time),
		TEST(every_cause_has_words_without_underscores),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
