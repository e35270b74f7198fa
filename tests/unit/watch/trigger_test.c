/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>
#include "watch/trigger.h"

static const struct trigger_limits limits = {.after_ns = 5, .cooldown_ns = 100};

static enum trigger_answer pull(struct trigger *trigger, uint32_t reason, uint64_t now_ns)
{
	return trigger_pull(trigger, &limits, reason, "decode 9 ms", now_ns);
}

static void a_dump_comes_some_time_after(void **state)
{
	struct trigger trigger = {0};

	assert_int_equal(pull(&trigger, FLIGHT_HANG, 1000), TRIGGER_NEW);
	assert_string_equal(trigger.text, "decode 9 ms");
	assert_int_equal(trigger.reason, FLIGHT_HANG);
	assert_false(trigger_is_due(&trigger, 1004));
	assert_true(trigger_is_due(&trigger, 1005));
	assert_false(trigger_is_due(&trigger, 1006));
	trigger_end(&trigger);
	assert_false(trigger_is_due(&trigger, 2000));
}

static void what_follows_soon_is_in_the_same_dump(void **state)
{
	struct trigger trigger = {0};

	pull(&trigger, FLIGHT_ESCALATION, 1000);
	assert_int_equal(pull(&trigger, FLIGHT_ESCALATION, 1002), TRIGGER_JOINED);
	assert_true(trigger_is_due(&trigger, 1005));
	/* It is being written. */
	assert_int_equal(pull(&trigger, FLIGHT_ESCALATION, 1006), TRIGGER_COOLING);
	assert_int_equal(trigger.ignored, 1);
}

/* Who has sent SIGUSR1 waits for the dump of that name. */
static void a_request_by_hand_names_the_dump_that_is_due(void **state)
{
	struct trigger trigger = {0};

	pull(&trigger, FLIGHT_HANG, 1000);
	assert_int_equal(trigger_pull(&trigger, &limits, FLIGHT_MANUAL, "by hand", 1003),
			 TRIGGER_RAISED);
	assert_int_equal(trigger.reason, FLIGHT_MANUAL);
	assert_string_equal(trigger.text, "by hand");
	assert_int_equal(pull(&trigger, FLIGHT_HANG, 1004), TRIGGER_JOINED);
	assert_int_equal(pull(&trigger, FLIGHT_MANUAL, 1004), TRIGGER_JOINED);
	assert_int_equal(trigger.reason, FLIGHT_MANUAL);
	/* What follows it is in it. */
	assert_false(trigger_is_due(&trigger, 1007));
	assert_true(trigger_is_due(&trigger, 1008));
	assert_false(trigger_end(&trigger));
}

static void no_slow_step_hides_a_hang_soon_after(void **state)
{
	struct trigger trigger = {0};

	pull(&trigger, FLIGHT_ESCALATION, 1000);
	assert_int_equal(trigger_pull(&trigger, &limits, FLIGHT_HANG, "hangs", 1003),
			 TRIGGER_RAISED);
	assert_int_equal(trigger.reason, FLIGHT_HANG);
	assert_string_equal(trigger.text, "hangs");
	assert_int_equal(pull(&trigger, FLIGHT_ESCALATION, 1004), TRIGGER_JOINED);
	assert_string_equal(trigger.text, "hangs");
	assert_true(trigger_is_due(&trigger, 1008));
	trigger_end(&trigger);
	/* It has had its dump. */
	assert_int_equal(pull(&trigger, FLIGHT_HANG, 1102), TRIGGER_COOLING);
	assert_int_equal(pull(&trigger, FLIGHT_ESCALATION, 1102), TRIGGER_COOLING);
	assert_int_equal(pull(&trigger, FLIGHT_HANG, 1103), TRIGGER_NEW);
}

static void a_hang_in_a_dump_by_hand_has_had_its_dump(void **state)
{
	struct trigger trigger = {0};

	pull(&trigger, FLIGHT_MANUAL, 1000);
	assert_int_equal(pull(&trigger, FLIGHT_HANG, 1003), TRIGGER_JOINED);
	assert_true(trigger_is_due(&trigger, 1005));
	trigger_end(&trigger);
	assert_int_equal(pull(&trigger, FLIGHT_HANG, 1102), TRIGGER_COOLING);
	assert_int_equal(pull(&trigger, FLIGHT_HANG, 1103), TRIGGER_NEW);
}

static void a_hang_that_waits_for_its_cooldown_changes_no_dump(void **state)
{
	const struct trigger_limits soon = {.after_ns = 5, .cooldown_ns = 50};
	struct trigger trigger = {0};

	trigger_pull(&trigger, &limits, FLIGHT_ESCALATION, "slow", 1000);
	trigger_pull(&trigger, &limits, FLIGHT_HANG, "hangs", 1003);
	assert_true(trigger_is_due(&trigger, 1008));
	trigger_end(&trigger);
	assert_int_equal(trigger_pull(&trigger, &soon, FLIGHT_ESCALATION, "slow", 1060),
			 TRIGGER_NEW);
	assert_int_equal(pull(&trigger, FLIGHT_HANG, 1061), TRIGGER_JOINED);
	assert_int_equal(trigger.reason, FLIGHT_ESCALATION);
	assert_int_equal(trigger.cooldown.hang_ns, 1003);
}

static void the_next_dump_is_about_what_is_worth_most(void **state)
{
	struct trigger trigger = {0};

	pull(&trigger, FLIGHT_ESCALATION, 1000);
	assert_true(trigger_is_due(&trigger, 1005));
	assert_int_equal(trigger_pull(&trigger, &limits, FLIGHT_HANG, "hangs", 1006), TRIGGER_NEXT);
	assert_int_equal(trigger_pull(&trigger, &limits, FLIGHT_MANUAL, "by hand", 1007),
			 TRIGGER_JOINED);
	assert_int_equal(trigger.reason, FLIGHT_ESCALATION);
	assert_true(trigger_end(&trigger));
	assert_int_equal(trigger.reason, FLIGHT_MANUAL);
	assert_string_equal(trigger.text, "by hand");
	assert_true(trigger_is_due(&trigger, 1012));
}

static void the_cooldown_counts_from_the_first(void **state)
{
	struct trigger trigger = {0};

	pull(&trigger, FLIGHT_ESCALATION, 1000);
	assert_true(trigger_is_due(&trigger, 1010));
	trigger_end(&trigger);
	assert_int_equal(pull(&trigger, FLIGHT_ESCALATION, 1098), TRIGGER_COOLING);
	assert_int_equal(pull(&trigger, FLIGHT_ESCALATION, 1099), TRIGGER_COOLING);
	assert_int_equal(trigger.ignored, 2);
	assert_int_equal(pull(&trigger, FLIGHT_ESCALATION, 1100), TRIGGER_NEW);
	assert_int_equal(trigger.ignored, 0);
}

static void make(struct trigger *trigger, uint32_t reason, uint64_t now_ns)
{
	assert_int_equal(pull(trigger, reason, now_ns), TRIGGER_NEW);
	assert_true(trigger_is_due(trigger, now_ns + limits.after_ns));
	trigger_end(trigger);
}

static void a_hang_waits_for_no_escalation(void **state)
{
	struct trigger trigger = {0};

	make(&trigger, FLIGHT_ESCALATION, 1000);
	make(&trigger, FLIGHT_HANG, 1030);
	/* Only for another hang. */
	assert_int_equal(pull(&trigger, FLIGHT_HANG, 1129), TRIGGER_COOLING);
	make(&trigger, FLIGHT_MANUAL, 1129);
	make(&trigger, FLIGHT_HANG, 1130);
}

static void an_escalation_waits_for_all(void **state)
{
	struct trigger trigger = {0};

	make(&trigger, FLIGHT_HANG, 1000);
	assert_int_equal(pull(&trigger, FLIGHT_ESCALATION, 1099), TRIGGER_COOLING);
	make(&trigger, FLIGHT_MANUAL, 1099);
	assert_int_equal(pull(&trigger, FLIGHT_ESCALATION, 1198), TRIGGER_COOLING);
	make(&trigger, FLIGHT_ESCALATION, 1199);
}

static void a_hang_while_a_dump_is_made_has_its_own(void **state)
{
	struct trigger trigger = {0};

	pull(&trigger, FLIGHT_ESCALATION, 1000);
	assert_true(trigger_is_due(&trigger, 1005));
	assert_int_equal(pull(&trigger, FLIGHT_HANG, 1006), TRIGGER_NEXT);
	assert_true(trigger_end(&trigger));
	assert_int_equal(trigger.reason, FLIGHT_HANG);
	assert_true(trigger_is_due(&trigger, 1011));
	trigger_end(&trigger);
	assert_int_equal(pull(&trigger, FLIGHT_HANG, 1105), TRIGGER_COOLING);
}

static void who_asks_by_hand_does_not_wait(void **state)
{
	struct trigger trigger = {0};

	pull(&trigger, FLIGHT_ESCALATION, 1000);
	assert_true(trigger_is_due(&trigger, 1005));
	trigger_end(&trigger);
	assert_int_equal(pull(&trigger, FLIGHT_MANUAL, 1010), TRIGGER_NEW);
	assert_int_equal(trigger.reason, FLIGHT_MANUAL);
}

static void a_request_by_hand_while_a_dump_is_made_has_its_own(void **state)
{
	struct trigger trigger = {0};

	pull(&trigger, FLIGHT_ESCALATION, 1000);
	assert_true(trigger_is_due(&trigger, 1005));
	assert_int_equal(trigger_pull(&trigger, &limits, FLIGHT_MANUAL, "by hand", 1006),
			 TRIGGER_NEXT);
	assert_int_equal(pull(&trigger, FLIGHT_ESCALATION, 1007), TRIGGER_JOINED);
	/* The first one is what the answer is about. */
	assert_string_equal(trigger.text, "decode 9 ms");
	assert_false(trigger_is_due(&trigger, 1100));
	assert_true(trigger_end(&trigger));
	assert_int_equal(trigger.reason, FLIGHT_MANUAL);
	assert_string_equal(trigger.text, "by hand");
	assert_int_equal(trigger.cooldown.since_ns, 1006);
	assert_int_equal(trigger.ignored, 0);
	assert_false(trigger_is_due(&trigger, 1010));
	assert_true(trigger_is_due(&trigger, 1011));
	assert_false(trigger_end(&trigger));
	assert_false(trigger_is_due(&trigger, 2000));
}

static void without_a_cooldown_nothing_is_left_out(void **state)
{
	const struct trigger_limits at_once = {.after_ns = 5};
	struct trigger trigger = {0};

	trigger_pull(&trigger, &at_once, FLIGHT_ESCALATION, "x", 1000);
	assert_true(trigger_is_due(&trigger, 1005));
	assert_int_equal(trigger_pull(&trigger, &at_once, FLIGHT_HANG, "y", 1006), TRIGGER_NEXT);
	assert_true(trigger_end(&trigger));
	assert_int_equal(trigger.reason, FLIGHT_HANG);
	assert_int_equal(trigger.ignored, 0);
}

static void times_do_not_wrap_around(void **state)
{
	const struct trigger_limits endless = {UINT64_MAX, UINT64_MAX};
	struct trigger trigger = {0};

	assert_int_equal(trigger_pull(&trigger, &endless, FLIGHT_ESCALATION, "x", 1000),
			 TRIGGER_NEW);
	assert_false(trigger_is_due(&trigger, UINT64_MAX - 1));
	trigger_end(&trigger);
	assert_int_equal(trigger_pull(&trigger, &endless, FLIGHT_ESCALATION, "x", 1 << 30),
			 TRIGGER_COOLING);
}

static void an_answer_that_does_not_come_is_late(void **state)
{
	struct trigger trigger = {0};

	assert_false(trigger_is_late(&trigger, 50, UINT64_MAX));
	pull(&trigger, FLIGHT_ESCALATION, 1000);
	assert_false(trigger_is_late(&trigger, 50, UINT64_MAX));
	assert_true(trigger_is_due(&trigger, 1010));
	assert_false(trigger_is_late(&trigger, 50, 1060));
	assert_true(trigger_is_late(&trigger, 50, 1061));
	trigger_end(&trigger);
	assert_false(trigger_is_late(&trigger, 50, 1061));
}

static void a_request_that_was_not_taken_is_made_again(void **state)
{
	struct trigger trigger = {0};

	pull(&trigger, FLIGHT_ESCALATION, 1000);
	assert_true(trigger_is_due(&trigger, 1010));
	assert_false(trigger_is_due(&trigger, 1011));
	trigger_ask_again(&trigger);
	assert_false(trigger_is_late(&trigger, 50, 2000));
	assert_true(trigger_is_due(&trigger, 1012));
	assert_false(trigger_is_late(&trigger, 50, 1062));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_dump_comes_some_time_after),
		cmocka_unit_test(what_follows_soon_is_in_the_same_dump),
		cmocka_unit_test(a_request_by_hand_names_the_dump_that_is_due),
		cmocka_unit_test(no_slow_step_hides_a_hang_soon_after),
		cmocka_unit_test(a_hang_in_a_dump_by_hand_has_had_its_dump),
		cmocka_unit_test(a_hang_that_waits_for_its_cooldown_changes_no_dump),
		cmocka_unit_test(the_next_dump_is_about_what_is_worth_most),
		cmocka_unit_test(the_cooldown_counts_from_the_first),
		cmocka_unit_test(a_hang_waits_for_no_escalation),
		cmocka_unit_test(an_escalation_waits_for_all),
		cmocka_unit_test(a_hang_while_a_dump_is_made_has_its_own),
		cmocka_unit_test(who_asks_by_hand_does_not_wait),
		cmocka_unit_test(a_request_by_hand_while_a_dump_is_made_has_its_own),
		cmocka_unit_test(without_a_cooldown_nothing_is_left_out),
		cmocka_unit_test(times_do_not_wrap_around),
		cmocka_unit_test(an_answer_that_does_not_come_is_late),
		cmocka_unit_test(a_request_that_was_not_taken_is_made_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
