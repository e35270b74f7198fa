/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Doctor's checks of what stacks can be followed through. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "commands/doctor_stacks.h"
#include "doctor_fixture.h"

static struct doctor_stacks good(void)
{
	return (struct doctor_stacks){.taken = true, .all = 5};
}

/* Asserts the finding of that index, of count. */
static void check(const struct doctor_stacks *stacks, size_t count, size_t index,
		  enum severity severity, const char *finding, const char *remedy)
{
	struct findings checks = {.tgid = 42}, one = {.tgid = 42};

	doctor_stacks_judge(stacks, &checks);
	assert_int_equal(checks.items.count, count);
	findings_add(&one, checks.items.items[index].severity, checks.items.items[index].subject,
		     "%s", checks.items.items[index].text);
	if (*checks.items.items[index].remedy)
		findings_advise(&one, "%s", checks.items.items[index].remedy);
	assert_check(&one, "stacks", severity, finding, remedy);
	end_checks(&one);
	end_checks(&checks);
}

static struct doctor_code code(size_t count)
{
	struct doctor_code code = {.count = count};

	strcpy(code.names, "liba.so, b");
	return code;
}

static void files_that_can_be_followed_are_counted(void **state)
{
	struct doctor_stacks stacks = good();

	check(&stacks, 1, 0, FINDING_OK, "can be followed through 5 of 5 files of code", NULL);
	stacks.generated = 2;
	check(&stacks, 1, 0, FINDING_OK, "; through generated code by frame pointers", NULL);
}

static void a_deleted_file_needs_a_right(void **state)
{
	struct doctor_stacks stacks = good();

	stacks.deleted = code(2);
	check(&stacks, 2, 0, FINDING_OK, "through 3 of 5 files", NULL);
	check(&stacks, 2, 1, FINDING_WARN,
	      "2 files (liba.so, b) cannot be read: deleted or replaced",
	      "grant CAP_CHECKPOINT_RESTORE (or CAP_SYS_ADMIN)");
	stacks.may_restore = true;
	check(&stacks, 2, 1, FINDING_WARN, "cannot be read: deleted or replaced",
	      "restart the process");
}

static void a_file_in_other_mounts_needs_rights(void **state)
{
	struct doctor_stacks stacks = good();

	stacks.hidden = code(1);
	check(&stacks, 2, 1, FINDING_WARN, "1 file (liba.so, b) cannot be read: their paths lead",
	      "CAP_CHECKPOINT_RESTORE");
	stacks.other_mounts = stacks.may_restore = true;
	check(&stacks, 2, 1, FINDING_WARN, "the process has other mounts (a container)",
	      "grant CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH");
}

static void what_has_no_table_goes_on_by_frame_pointers(void **state)
{
	struct doctor_stacks stacks = good();

	stacks.tableless = code(5);
	check(&stacks, 2, 1, FINDING_WARN, "5 files (liba.so, b, ...) without an unwind table",
	      "-fasynchronous-unwind-tables");
	stacks.no_elf = code(1);
	check(&stacks, 3, 2, FINDING_NOTE, "of no ELF format", NULL);
}

static void what_is_stripped_is_named_by_symbols(void **state)
{
	struct doctor_stacks stacks = good();

	stacks.nameless = code(1);
	check(&stacks, 2, 0, FINDING_OK, "5 of 5", NULL);
	check(&stacks, 2, 1, FINDING_NOTE, "1 file (liba.so, b) stripped", "--symbols");
}

static void without_calls_there_are_no_stacks(void **state)
{
	struct doctor_stacks stacks = good();

	stacks.taken = false;
	check(&stacks, 1, 0, FINDING_NOTE, "--detail steps and probes record no calls", NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(files_that_can_be_followed_are_counted),
		cmocka_unit_test(a_deleted_file_needs_a_right),
		cmocka_unit_test(a_file_in_other_mounts_needs_rights),
		cmocka_unit_test(what_has_no_table_goes_on_by_frame_pointers),
		cmocka_unit_test(what_is_stripped_is_named_by_symbols),
		cmocka_unit_test(without_calls_there_are_no_stacks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
