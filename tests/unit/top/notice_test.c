/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/clock.h"
#include "top/notice.h"

#define START (1000 * NS_PER_S)

static void __attribute__((format(printf, 3, 4)))
answer(struct notice *notice, uint64_t now_ns, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	notice_answer(notice, now_ns, format, args);
	va_end(args);
}

static void a_message_does_not_replace_an_answer_but_an_error_does(void **state)
{
	struct notice notice = {0};

	answer(&notice, START, "wrote %s", "x.trace.json");
	assert_false(notice_message(&notice, START + 1, LOG_WARN, "3 steps were lost"));
	assert_string_equal(notice.text, "wrote x.trace.json");
	assert_true(notice_message(&notice, START + 2, LOG_ERR, "x.fbt: no space"));
	assert_string_equal(notice.text, "x.fbt: no space");
	assert_true(notice_message(&notice, START + 3, LOG_INFO, "the window goes on"));
	assert_string_equal(notice.text, "the window goes on");
}

static void an_answer_replaces_all(void **state)
{
	struct notice notice = {0};

	assert_true(notice_message(&notice, START, LOG_ERR, "no space"));
	answer(&notice, START + 1, "writing ...");
	answer(&notice, START + 2, "wrote x");
	assert_string_equal(notice.text, "wrote x");
}

static void it_goes_by_itself_and_then_messages_are_shown(void **state)
{
	struct notice notice = {0};
	uint64_t end = START + 8 * NS_PER_S;

	assert_false(notice_turn(&notice, START));
	answer(&notice, START, "wrote x");
	assert_false(notice_turn(&notice, end - 1));
	assert_true(notice_turn(&notice, end));
	assert_string_equal(notice.text, "");
	assert_false(notice_turn(&notice, end));
	assert_true(notice_message(&notice, end, LOG_WARN, "3 steps were lost"));
	assert_false(notice_turn(&notice, end + 1));
	assert_string_equal(notice.text, "3 steps were lost");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_message_does_not_replace_an_answer_but_an_error_does),
		cmocka_unit_test(an_answer_replaces_all),
		cmocka_unit_test(it_goes_by_itself_and_then_messages_are_shown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
