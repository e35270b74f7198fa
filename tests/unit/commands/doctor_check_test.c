/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Checks as text and as JSON, and the words of a check. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "commands/doctor_check.h"

static char *print_text(const struct findings *checks, const uint32_t *pids, size_t count,
			bool colors)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	doctor_print_text(checks, pids, count, colors, out);
	assert_int_equal(fclose(out), 0);
	return text;
}

static void check_text(struct findings *checks, const uint32_t *pids, size_t count,
		       const char *wanted)
{
	char *text = print_text(checks, pids, count, false);

	assert_string_equal(text, wanted);
	free(text);
	findings_free(checks);
}

static void a_machine_where_all_is_well_would_work(void **state)
{
	struct findings checks = {.tgid = 0};

	(void)state;
	findings_add(&checks, FINDING_OK, "kernel", "Linux %d", 6);
	findings_add(&checks, FINDING_NOTE, "GPU", "none");
	check_text(&checks, NULL, 0,
		   "This machine\n"
		   "  ok    kernel          Linux 6\n"
		   "  -     GPU             none\n"
		   "\n"
		   "-p PID would work.\n");
}

static void the_remedy_stands_below_what_it_is_for(void **state)
{
	struct findings checks = {.tgid = 0};
	uint32_t pids[] = {42, 43};

	(void)state;
	findings_add(&checks, FINDING_WARN, "BTF", "small");
	findings_advise(&checks, "grow it");
	checks.tgid = 42;
	findings_add(&checks, FINDING_OK, "process", "a");
	checks.tgid = 43;
	findings_add(&checks, FINDING_OK, "process", "b");
	check_text(&checks, pids, 2,
		   "This machine\n"
		   "  warn  BTF             small\n"
		   "                        -> grow it\n"
		   "\n"
		   "Process 42\n"
		   "  ok    process         a\n"
		   "\n"
		   "Process 43\n"
		   "  ok    process         b\n"
		   "\n"
		   "-p 42,43 would work, with 1 limit (warn).\n");
}

static void the_end_names_what_stands_in_the_way(void **state)
{
	struct findings checks = {.tgid = 0};
	uint32_t pid = 7;

	(void)state;
	findings_add(&checks, FINDING_WARN, "clock", "hpet");
	findings_add(&checks, FINDING_FAIL, "BTF", "none");
	findings_add(&checks, FINDING_FAIL, "tracing", "no");
	check_text(&checks, &pid, 1,
		   "This machine\n"
		   "  warn  clock           hpet\n"
		   "  no    BTF             none\n"
		   "  no    tracing         no\n"
		   "\n"
		   "-p 7 would not work: BTF, and 1 more (no).\n");
}

static void long_findings_are_broken_at_spaces(void **state)
{
	struct findings checks = {.tgid = 0};
	char word[121], *text, *line;

	(void)state;
	memset(word, 'w', sizeof(word) - 1);
	word[sizeof(word) - 1] = '\0';
	findings_add(&checks, FINDING_OK, "kernel",
		     "12345678 12345678 12345678 12345678 12345678 12345678 1 "
		     "last %s end",
		     word);
	text = print_text(&checks, NULL, 0, false);
	line = strstr(text, "12345678");
	assert_non_null(line);
	/* Columns 24 to 80. */
	assert_int_equal(strcspn(line, "\n"), 55);
	assert_non_null(strstr(text, " 1\n                        last\n"));
	assert_non_null(strstr(text, word));
	assert_non_null(strstr(text, "w\n                        end\n"));
	free(text);
	findings_free(&checks);
}

static void the_text_of_a_target_does_not_reach_the_terminal(void **state)
{
	struct findings checks = {.tgid = 5};
	char *text;

	(void)state;
	findings_add(&checks, FINDING_FAIL, "process", "\033[2Ja\nb\xff");
	findings_advise(&checks, "\033]0;x\a");
	text = print_text(&checks, NULL, 0, false);
	assert_null(strchr(text, '\033'));
	assert_null(strchr(text, '\a'));
	assert_non_null(strstr(text, "\\x1b[2Ja\\nb\\xff"));
	free(text);
	findings_free(&checks);
}

static void only_marks_are_coloured(void **state)
{
	struct findings checks = {.tgid = 0};
	char *text;

	(void)state;
	findings_add(&checks, FINDING_FAIL, "BTF", "none");
	findings_add(&checks, FINDING_NOTE, "GPU", "none");
	text = print_text(&checks, NULL, 0, true);
	assert_non_null(strstr(text, "  \033[1;31mno  \033[0m  BTF  "));
	assert_non_null(strstr(text, "\n  -     GPU"));
	free(text);
	findings_free(&checks);
}

static void json_has_the_same(void **state)
{
	struct findings checks = {.tgid = 0};
	struct json_object *root, *list, *check, *value;
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	(void)state;
	findings_add(&checks, FINDING_OK, "kernel", "Linux");
	checks.tgid = 9;
	findings_add(&checks, FINDING_FAIL, "process", "\"\n\xff");
	findings_advise(&checks, "go");
	doctor_print_json(&checks, out);
	assert_int_equal(fclose(out), 0);
	root = json_tokener_parse(text);
	assert_non_null(root);
	assert_true(json_object_object_get_ex(root, "works", &value));
	assert_false(json_object_get_boolean(value));
	assert_true(json_object_object_get_ex(root, "checks", &list));
	assert_int_equal(json_object_array_length(list), 2);
	check = json_object_array_get_idx(list, 0);
	assert_true(json_object_object_get_ex(check, "pid", &value));
	assert_null(value);
	assert_true(json_object_object_get_ex(check, "remedy", &value));
	assert_null(value);
	check = json_object_array_get_idx(list, 1);
	assert_true(json_object_object_get_ex(check, "pid", &value));
	assert_int_equal(json_object_get_int(value), 9);
	assert_true(json_object_object_get_ex(check, "status", &value));
	assert_string_equal(json_object_get_string(value), "no");
	assert_true(json_object_object_get_ex(check, "finding", &value));
	assert_string_equal(json_object_get_string(value), "\"\n\xef\xbf\xbd");
	assert_true(json_object_object_get_ex(check, "remedy", &value));
	assert_string_equal(json_object_get_string(value), "go");
	json_object_put(root);
	free(text);
	findings_free(&checks);
}

static void nothing_is_promised_of_checks_that_found_no_memory(void **state)
{
	struct findings checks = {.incomplete = true};

	(void)state;
	check_text(&checks, NULL, 0, "\n-p PID: unknown, out of memory\n");
}

static void what_is_heard_is_the_most_serious_line(void **state)
{
	struct doctor_words words;

	(void)state;
	doctor_listen(&words);
	log_info("said");
	log_err("first error");
	log_warn("a warning");
	log_err("second error");
	doctor_listen_end();
	assert_true(words.any);
	assert_string_equal(words.text, "first error");
	doctor_listen(&words);
	doctor_listen_end();
	assert_false(words.any);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_machine_where_all_is_well_would_work),
		cmocka_unit_test(the_remedy_stands_below_what_it_is_for),
		cmocka_unit_test(the_end_names_what_stands_in_the_way),
		cmocka_unit_test(long_findings_are_broken_at_spaces),
		cmocka_unit_test(the_text_of_a_target_does_not_reach_the_terminal),
		cmocka_unit_test(only_marks_are_coloured),
		cmocka_unit_test(json_has_the_same),
		cmocka_unit_test(nothing_is_promised_of_checks_that_found_no_memory),
		cmocka_unit_test(what_is_heard_is_the_most_serious_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
