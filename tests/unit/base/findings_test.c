/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "base/findings.h"

static void findings_keep_their_order_process_and_remedy(void **state)
{
	struct findings findings = {.tgid = 0};
	const struct finding *items;

	(void)state;
	findings_advise(&findings, "of nothing");
	findings_add(&findings, FINDING_WARN, "BTF", "%d bytes", 4);
	findings_advise(&findings, "grow %s", "it");
	findings.tgid = 42;
	findings_add(&findings, FINDING_OK, "libc", "2.36");
	assert_int_equal(findings.items.count, 2);
	items = findings.items.items;
	assert_int_equal(items[0].tgid, 0);
	assert_string_equal(items[0].subject, "BTF");
	assert_string_equal(items[0].text, "4 bytes");
	assert_string_equal(items[0].remedy, "grow it");
	assert_int_equal(items[1].tgid, 42);
	assert_string_equal(items[1].remedy, "");
	findings_free(&findings);
}

static void one_failure_fails_the_list(void **state)
{
	struct findings findings = {.tgid = 0};

	(void)state;
	findings_add(&findings, FINDING_OK, "a", "1");
	findings_add(&findings, FINDING_WARN, "b", "2");
	assert_false(findings_failed(&findings));
	assert_null(findings_first(&findings, FINDING_FAIL));
	findings_add(&findings, FINDING_FAIL, "c", "3");
	findings_add(&findings, FINDING_FAIL, "d", "4");
	assert_true(findings_failed(&findings));
	assert_string_equal(findings_first(&findings, FINDING_FAIL)->subject, "c");
	assert_int_equal(findings_count(&findings, FINDING_FAIL), 2);
	assert_int_equal(findings_count(&findings, FINDING_NOTE), 0);
	findings_free(&findings);
	assert_false(findings_failed(&findings));
	assert_int_equal(findings.items.count, 0);
}

/* A capacity that is too large to be doubled plays a machine without memory. */
static void a_list_that_lacks_findings_has_failed(void **state)
{
	struct findings findings = {.items = {.count = SIZE_MAX / 2, .capacity = SIZE_MAX / 2}};

	(void)state;
	findings_add(&findings, FINDING_OK, "a", "1");
	assert_true(findings.incomplete);
	assert_int_equal(findings.items.count, SIZE_MAX / 2);
	findings.items.count = 0;
	assert_true(findings_failed(&findings));
	findings_free(&findings);
}

static void a_long_text_is_cut(void **state)
{
	struct findings findings = {.tgid = 0};
	char text[2 * FINDING_TEXT_MAX];

	(void)state;
	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	findings_add(&findings, FINDING_OK, "a", "%s", text);
	findings_advise(&findings, "%s", text);
	assert_int_equal(strlen(findings.items.items[0].text), FINDING_TEXT_MAX - 1);
	assert_int_equal(strlen(findings.items.items[0].remedy), FINDING_TEXT_MAX - 1);
	findings_free(&findings);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(findings_keep_their_order_process_and_remedy),
		cmocka_unit_test(one_failure_fails_the_list),
		cmocka_unit_test(a_list_that_lacks_findings_has_failed),
		cmocka_unit_test(a_long_text_is_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
