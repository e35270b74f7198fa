/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>
#include <unistd.h>
#include "watch/selector.h"

#define ID "3f4e8c0d1b2a9f8e7d6c5b4a39281706f5e4d3c2b1a0998877665544332211ff"

static void a_cgroup_holds_those_below_it(void **state)
{
	const char *lines = "0::/system.slice/llm.service/worker\n";

	assert_true(cgroups_have_path(lines, "/system.slice/llm.service"));
	assert_true(cgroups_have_path(lines, "system.slice/llm.service/"));
	assert_true(cgroups_have_path(lines, "/system.slice/llm.service/worker"));
	assert_true(cgroups_have_path(lines, "/"));
	assert_false(cgroups_have_path(lines, "/system.slice/llm"));
	assert_false(cgroups_have_path(lines, "/llm.service"));
	assert_false(cgroups_have_path(lines, "/system.slice/llm.service/worker/1"));
	assert_false(cgroups_have_path("", "/"));
}

static void each_hierarchy_of_v1_counts(void **state)
{
	const char *lines = "12:pids:/user.slice\n11:cpu,cpuacct:/docker/" ID "\n0::/init.scope";

	assert_true(cgroups_have_path(lines, "/user.slice"));
	assert_true(cgroups_have_path(lines, "/init.scope"));
	assert_true(cgroups_have_container(lines, ID));
	assert_false(cgroups_have_path(lines, "/init"));
}

static void containers_are_known_by_their_runtimes_names(void **state)
{
	static const char *const lines[] = {
		"0::/docker/" ID "\n",
		"0::/system.slice/docker-" ID ".scope\n",
		"0::/kubepods.slice/kubepods-pod1.slice/cri-containerd-" ID ".scope\n",
		"0::/kubepods/burstable/pod0a1b/" ID "\n",
		"0::/machine.slice/libpod-" ID ".scope/container\n",
		"0::/system.slice/crio-" ID ".scope",
	};

	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
		if (!cgroups_have_container(lines[i], ID) ||
		    !cgroups_have_container(lines[i], "3f4e8c0d1b2a"))
			fail_msg("not found in %s", lines[i]);
		assert_false(cgroups_have_container(lines[i], "4f4e8c0d1b2a"));
		/* Too short to be one, as docker shows it. */
		assert_false(cgroups_have_container(lines[i], "3f4e8c"));
		assert_false(cgroups_have_container(lines[i], ""));
	}
	/* The monitor of a container is its parent. */
	assert_false(cgroups_have_container("0::/machine.slice/libpod-conmon-" ID ".scope\n", ID));
	assert_false(cgroups_have_container("0::/kubepods.slice/x/crio-conmon-" ID ".scope", ID));
	assert_true(cgroups_have_container("0::/lxc.payload.llm\n", "lxc.payload.llm"));
}

static void units_are_whole_names(void **state)
{
	const char *lines =
		"0::/system.slice/system-1000.slice/user@1000.service/app.slice/llm.service\n";

	assert_true(cgroups_have_unit(lines, "llm.service"));
	assert_true(cgroups_have_unit(lines, "llm"));
	assert_true(cgroups_have_unit(lines, "app.slice"));
	assert_true(cgroups_have_unit(lines, "user@1000"));
	assert_false(cgroups_have_unit(lines, "lm.service"));
	assert_false(cgroups_have_unit(lines, "ll"));
	assert_false(cgroups_have_unit(lines, "app"));
	assert_false(cgroups_have_unit(lines, ""));
	lines = "0::/system.slice/vllm@llama3.1.service\n";
	assert_true(cgroups_have_unit(lines, "vllm@llama3.1"));
	assert_true(cgroups_have_unit(lines, "vllm@llama3.1.service"));
	assert_false(cgroups_have_unit(lines, "vllm@llama3"));
}

static void users_cannot_make_units(void **state)
{
	const char *lines =
		"0::/user.slice/user-1000.slice/user@1000.service/app.slice/llm.service\n";

	assert_false(cgroups_have_unit(lines, "llm.service"));
	assert_false(cgroups_have_unit(lines, "llm"));
	assert_true(cgroups_have_unit(lines, "user.slice"));
	assert_false(cgroups_have_unit("0::/a/user.slice/llm.service\n", "llm"));
	assert_true(cgroups_have_unit("0::/xuser.slice/user.slices/llm.service\n", "llm"));
	assert_true(cgroups_have_unit("0::/llm.slice/llm.service\n", "llm"));
}

static void odd_lines_match_nothing(void **state)
{
	static const char *const lines[] = {"\n", "::", "0", "0:", "0::", "0::\n\n", ":::::\n"};

	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
		assert_false(cgroups_have_container(lines[i], ID));
		assert_false(cgroups_have_unit(lines[i], "llm"));
		assert_false(cgroups_have_path(lines[i], "/a"));
	}
}

static void any_selector_selects(void **state)
{
	struct candidate candidate = {.tgid = 7, .comm = "llama-server"};
	struct options options;

	options_init(&options);
	assert_int_equal(selector_match(&options, &candidate), SELECTED_NOT);
	assert_false(selector_needs_cgroups(&options));
	assert_int_equal(vec_push(&options.watch.comms, "llama"), 0);
	assert_int_equal(selector_match(&options, &candidate), SELECTED_NOT);
	assert_int_equal(vec_push(&options.watch.comms, "llama-server"), 0);
	assert_int_equal(selector_match(&options, &candidate), SELECTED_PROCESS);
	strcpy(candidate.comm, "VLLM::EngineCor");
	assert_int_equal(vec_push(&options.watch.comms, "VLLM::EngineCore_DP0"), 0);
	assert_int_equal(selector_match(&options, &candidate), SELECTED_PROCESS);
	strcpy(candidate.comm, "python3");
	assert_int_equal(selector_match(&options, &candidate), SELECTED_NOT);
	assert_int_equal(vec_push(&options.pids, 7u), 0);
	assert_int_equal(selector_match(&options, &candidate), SELECTED_PROCESS);
	candidate.tgid = 8;
	assert_int_equal(vec_push(&options.watch.units, "llm"), 0);
	assert_true(selector_needs_cgroups(&options));
	assert_int_equal(selector_match(&options, &candidate), SELECTED_NOT);
	strcpy(candidate.cgroups, "0::/system.slice/llm.service\n");
	assert_int_equal(selector_match(&options, &candidate), SELECTED_GROUP);
	options_clear(&options);
}

static void a_process_is_read(void **state)
{
	struct candidate candidate = {.tgid = (uint32_t)getpid()};

	assert_true(candidate_read(&candidate, true));
	assert_true(*candidate.comm);
	assert_true(*candidate.cgroups);
	assert_true(candidate_read(&candidate, false));
	assert_string_equal(candidate.cgroups, "");
	candidate.tgid = 0x7fffffff;
	assert_false(candidate_read(&candidate, true));
}

/* 1 is above 10 and 30, 10 above 11, 11 above 12; 40 and 41 are each other's parent. */
static struct process_entry family[] = {{1, 0},	 {10, 1},  {11, 10}, {12, 11},
					{30, 1}, {40, 41}, {41, 40}};
static const process_vec processes = {.items = family, .count = sizeof(family) / sizeof(*family)};

static selected_vec select_some(const uint32_t *tgids, size_t count)
{
	selected_vec found = {0};

	for (size_t i = 0; i < count; i++)
		assert_int_equal(vec_push(&found, (struct selected_process){.tgid = tgids[i]}), 0);
	selected_mark(&found, &processes);
	return found;
}

/* Not only of a child: of a grandchild, too, whose parent is not selected. */
static void who_descends_from_another_is_below_it(void **state)
{
	selected_vec found = select_some((uint32_t[]){10, 12, 30}, 3);

	assert_true(found.items[0].is_above && !found.items[0].is_below);
	assert_true(!found.items[1].is_above && found.items[1].is_below);
	assert_true(!found.items[2].is_above && !found.items[2].is_below);
	assert_ptr_equal(selected_find(&found, 12), &found.items[1]);
	assert_null(selected_find(&found, 11));
	vec_free(&found);
}

static void who_is_in_the_middle_is_both(void **state)
{
	selected_vec found = select_some((uint32_t[]){1, 11, 12}, 3);

	assert_true(found.items[1].is_above && found.items[1].is_below);
	assert_true(found.items[2].is_below);
	assert_int_equal(found.items[0].top_tgid, 0);
	assert_int_equal(found.items[1].top_tgid, 1);
	assert_int_equal(found.items[2].top_tgid, 1);
	vec_free(&found);
}

static void a_circle_ends_and_nobody_is_below_itself(void **state)
{
	selected_vec found = select_some((uint32_t[]){40}, 1);

	assert_true(!found.items[0].is_above && !found.items[0].is_below);
	vec_free(&found);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_cgroup_holds_those_below_it),
		cmocka_unit_test(each_hierarchy_of_v1_counts),
		cmocka_unit_test(containers_are_known_by_their_runtimes_names),
		cmocka_unit_test(units_are_whole_names),
		cmocka_unit_test(users_cannot_make_units),
		cmocka_unit_test(odd_lines_match_nothing),
		cmocka_unit_test(any_selector_selects),
		cmocka_unit_test(a_process_is_read),
		cmocka_unit_test(who_descends_from_another_is_below_it),
		cmocka_unit_test(who_is_in_the_middle_is_both),
		cmocka_unit_test(a_circle_ends_and_nobody_is_below_itself),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
