/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "inject/verdict.h"

static const struct inject_words words = {"--gpu=inject", "the shim"};

/* The printed verdict. The caller frees it. */
static char *print(const struct inject_verdict *verdict)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	inject_verdict_print(verdict, &words, 42, out);
	assert_int_equal(fclose(out), 0);
	return text;
}

static void check_print(struct inject_verdict *verdict, const char *wanted)
{
	char *text = print(verdict);

	assert_string_equal(text, wanted);
	free(text);
	findings_free(&verdict->findings);
}

static void without_a_refusal_it_would_be_done(void **state)
{
	struct inject_verdict verdict = {0};
	char reason[INJECT_TEXT_MAX];

	(void)state;
	inject_fine(&verdict, "libc", "glibc %s (%s)", "2.36", "/lib/libc");
	inject_warn(&verdict, "CUPTI", "may be busy");
	assert_false(inject_refused(&verdict));
	inject_verdict_reason(&verdict, reason);
	assert_string_equal(reason, "");
	check_print(&verdict, "process 42:\n"
			      "  ok       libc           glibc 2.36 (/lib/libc)\n"
			      "  warning  CUPTI          may be busy\n"
			      "--gpu=inject would load the shim\n");
}

static void the_first_refusal_is_the_reason(void **state)
{
	struct inject_verdict verdict = {0};
	char reason[INJECT_TEXT_MAX];

	(void)state;
	inject_fine(&verdict, "stub", "there");
	inject_refuse(&verdict, "state", "stopped");
	inject_refuse(&verdict, "libc", "none");
	assert_true(inject_refused(&verdict));
	inject_verdict_reason(&verdict, reason);
	assert_string_equal(reason, "state: stopped");
	check_print(&verdict, "process 42:\n"
			      "  ok       stub           there\n"
			      "  refused  state          stopped\n"
			      "  refused  libc           none\n"
			      "--gpu=inject would do nothing: state: stopped\n");
}

static void a_shim_that_is_there_is_no_refusal(void **state)
{
	struct inject_verdict verdict = {.present = true};

	(void)state;
	inject_fine(&verdict, "shim", "is there already");
	check_print(&verdict, "process 42:\n"
			      "  ok       shim           is there already\n"
			      "--gpu=inject would inject nothing: it would arm the shim that "
			      "is there\n");
}

/* A target may choose any file name. */
static void text_of_the_target_is_escaped(void **state)
{
	struct inject_verdict verdict = {0};

	(void)state;
	inject_refuse(&verdict, "program", "%s is static", "/x\033[2J\n\xff");
	check_print(&verdict, "process 42:\n"
			      "  refused  program        /x\\x1b[2J\\n\\xff is static\n"
			      "--gpu=inject would do nothing: program: /x\\x1b[2J\\n\\xff is "
			      "static\n");
}

static void a_long_text_is_cut(void **state)
{
	char path[2 * INJECT_TEXT_MAX], reason[INJECT_TEXT_MAX];
	struct inject_verdict verdict = {0};

	(void)state;
	memset(path, '\n', sizeof(path));
	path[sizeof(path) - 1] = '\0';
	inject_refuse(&verdict, "program", "%s", path);
	inject_verdict_reason(&verdict, reason);
	assert_int_equal(strlen(reason), INJECT_TEXT_MAX - 1);
	free(print(&verdict));
	findings_free(&verdict.findings);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_a_refusal_it_would_be_done),
		cmocka_unit_test(the_first_refusal_is_the_reason),
		cmocka_unit_test(a_shim_that_is_there_is_no_refusal),
		cmocka_unit_test(text_of_the_target_is_escaped),
		cmocka_unit_test(a_long_text_is_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
