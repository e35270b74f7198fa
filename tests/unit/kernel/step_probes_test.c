/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "fbt_shared.h"
#include "kernel/step_probes.h"

#define ATTACHED_MAX 8
#define PLACES_MAX   8

struct attached {
	int fd;
	const char *name;
	uint32_t tgid;
	bool at_return;
	size_t count;
	struct uprobe_place places[PLACES_MAX];
};

/* A double of uprobes.c that records the requests. */
struct uprobes {
	int fail_at; /* number of the call that fails, from 1; 0: none */
	size_t count;
	struct attached attached[ATTACHED_MAX];
	uint64_t detached; /* kinds, as a bit mask */
};

int uprobes__attach(struct uprobes *uprobes, const struct bpf_program *program, int fd,
		    const char *name, const struct uprobe_place *places, size_t count,
		    uint32_t tgid, bool at_return)
{
	struct attached *attached = &uprobes->attached[uprobes->count++];

	assert_true(uprobes->count <= ATTACHED_MAX && count <= PLACES_MAX);
	*attached = (struct attached){
		.fd = fd, .name = name, .tgid = tgid, .at_return = at_return, .count = count};
	memcpy(attached->places, places, count * sizeof(*places));
	return uprobes->fail_at == (int)uprobes->count ? -EINVAL : 0;
}

void uprobes__detach(struct uprobes *uprobes, uint64_t mask, uint64_t value)
{
	assert_int_equal(mask, FBT_PROBE_KIND);
	uprobes->detached |= UINT64_C(1) << value;
}

void uprobes__detach_later(struct uprobes *uprobes, uint64_t mask, uint64_t value)
{
	fail_msg("no test detaches exits");
}

/* A function in the file with that inode. Its exit is 8 bytes after its begin. */
static struct step_function *new_function(uint64_t inode, uint64_t begin)
{
	struct step_function *function = step_function_new();

	assert_non_null(function);
	function->device = 1;
	function->inode = inode;
	function->path = strdup("/lib/engine.so");
	function->begin_offset = begin;
	assert_int_equal(vec_push(&function->exit_offsets, begin + 8), 0);
	return function;
}

/* Attaches functions[i] as kind first_kind + i. */
static int attach_as(struct uprobes *uprobes, const struct bpf_program *program,
		     struct step_function *const *functions, size_t count, uint32_t first_kind,
		     uint32_t tgid)
{
	struct step_probe probes[8] = {0};

	for (size_t i = 0; i < count; i++)
		probes[i] = (struct step_probe){functions[i], first_kind + (uint32_t)i};
	return step_probes_attach(uprobes, program, probes, count, tgid);
}

static void free_functions(struct step_function **functions, size_t count)
{
	for (size_t i = 0; i < count; i++)
		step_function_free(functions[i]);
}

static void assert_place(const struct uprobe_place *place, uint64_t offset, uint64_t ref_ctr,
			 uint64_t cookie)
{
	assert_int_equal(place->offset, offset);
	assert_int_equal(place->ref_ctr, ref_ctr);
	assert_int_equal(place->cookie, cookie);
}

static void a_file_that_fails_ends_the_attaching(void **state)
{
	struct step_function *functions[] = {new_function(1, 100), new_function(2, 200)};
	struct uprobes uprobes = {.fail_at = 1};

	assert_int_equal(attach_as(&uprobes, NULL, functions, 2, 1, 7), -EINVAL);
	assert_int_equal(uprobes.count, 1);
	assert_int_equal(uprobes.detached, 1u << 1 | 1u << 2);
	free_functions(functions, 2);
}

static void returns_that_fail_leave_the_begins_unprobed(void **state)
{
	struct step_function *functions[] = {new_function(1, 100)};
	struct uprobes uprobes = {.fail_at = 1};

	functions[0]->uretprobe = true;
	vec_free(&functions[0]->exit_offsets);
	assert_int_equal(attach_as(&uprobes, NULL, functions, 1, 1, 7), -EINVAL);
	assert_int_equal(uprobes.count, 1);
	assert_true(uprobes.attached[0].at_return);
	free_functions(functions, 1);
}

static void no_functions_are_no_links(void **state)
{
	struct uprobes uprobes = {0};

	assert_int_equal(attach_as(&uprobes, NULL, NULL, 0, 1, 7), 0);
	assert_int_equal(uprobes.count, 0);
}

static void a_function_is_probed_at_its_begin_and_exits(void **state)
{
	struct step_function *functions[] = {new_function(1, 100)};
	struct uprobes uprobes = {0};
	const struct attached *attached = &uprobes.attached[0];

	vec_push(&functions[0]->exit_offsets, 140);
	functions[0]->fd = 55;
	assert_int_equal(attach_as(&uprobes, NULL, functions, 1, 3, 7), 0);
	functions[0]->fd = -1;
	assert_int_equal(uprobes.count, 1);
	assert_int_equal(attached->fd, 55);
	assert_string_equal(attached->name, "/lib/engine.so");
	assert_int_equal(attached->tgid, 7);
	assert_false(attached->at_return);
	assert_int_equal(attached->count, 3);
	assert_place(&attached->places[0], 100, 0, 3);
	assert_place(&attached->places[1], 108, 0, 3 | FBT_PROBE_END);
	assert_place(&attached->places[2], 140, 0, 3 | FBT_PROBE_END);
	free_functions(functions, 1);
}

static void a_frame_record_is_known_where_the_function_begins(void **state)
{
	struct step_function *function = new_function(1, 100);
	struct uprobes uprobes = {0};

	(void)state;
	function->keeps_frame = true;
	assert_int_equal(attach_as(&uprobes, NULL, &function, 1, 0, 7), 0);
	assert_place(&uprobes.attached[0].places[0], 100, 0, FBT_PROBE_FRAME);
	assert_place(&uprobes.attached[0].places[1], 108, 0, FBT_PROBE_END);
	step_function_free(function);
}

static void each_function_has_a_link(void **state)
{
	struct step_function *functions[] = {new_function(1, 100), new_function(2, 200),
					     new_function(1, 300)};
	struct uprobes uprobes = {0};

	assert_int_equal(attach_as(&uprobes, NULL, functions, 3, 5, 0), 0);
	assert_int_equal(uprobes.count, 3);
	assert_int_equal(uprobes.detached, 0);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(uprobes.attached[i].count, 2);
		assert_place(&uprobes.attached[i].places[0], 100u * ((unsigned)i + 1), 0,
			     5u + (unsigned)i);
	}
	free_functions(functions, 3);
}

static void a_uretprobe_is_a_link_of_its_own_and_comes_first(void **state)
{
	struct step_function *functions[] = {new_function(1, 100)};
	struct uprobes uprobes = {0};

	functions[0]->uretprobe = true;
	vec_free(&functions[0]->exit_offsets);
	assert_int_equal(attach_as(&uprobes, NULL, functions, 1, 1, 7), 0);
	assert_int_equal(uprobes.count, 2);
	assert_true(uprobes.attached[0].at_return);
	assert_int_equal(uprobes.attached[0].count, 1);
	assert_place(&uprobes.attached[0].places[0], 100, 0, 1 | FBT_PROBE_END | FBT_PROBE_RETURN);
	assert_false(uprobes.attached[1].at_return);
	assert_int_equal(uprobes.attached[1].count, 1);
	assert_place(&uprobes.attached[1].places[0], 100, 0, 1 | FBT_PROBE_RETURN);
	free_functions(functions, 1);
}

static void a_kind_is_let_go_alone(void **state)
{
	struct uprobes uprobes = {0};

	step_probes_detach(&uprobes, 5);
	assert_int_equal(uprobes.detached, 1u << 5);
}

static void usdt_places_have_semaphores_and_no_stack_pointers(void **state)
{
	struct step_function *functions[] = {new_function(1, 0)};
	struct uprobes uprobes = {0};
	const struct attached *attached = &uprobes.attached[0];

	functions[0]->usdt = true;
	functions[0]->begin_ref_ctr = 900;
	functions[0]->end_ref_ctr = 902;
	vec_push(&functions[0]->usdt_begins, 100);
	vec_push(&functions[0]->usdt_begins, 120);
	assert_int_equal(attach_as(&uprobes, NULL, functions, 1, 1, 7), 0);
	assert_int_equal(attached->count, 3);
	assert_place(&attached->places[0], 100, 900, 1 | FBT_PROBE_NO_SP);
	assert_place(&attached->places[1], 120, 900, 1 | FBT_PROBE_NO_SP);
	assert_place(&attached->places[2], 8, 902, 1 | FBT_PROBE_NO_SP | FBT_PROBE_END);
	free_functions(functions, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file_that_fails_ends_the_attaching),
		cmocka_unit_test(returns_that_fail_leave_the_begins_unprobed),
		cmocka_unit_test(no_functions_are_no_links),
		cmocka_unit_test(a_function_is_probed_at_its_begin_and_exits),
		cmocka_unit_test(a_frame_record_is_known_where_the_function_begins),
		cmocka_unit_test(each_function_has_a_link),
		cmocka_unit_test(a_kind_is_let_go_alone),
		cmocka_unit_test(a_uretprobe_is_a_link_of_its_own_and_comes_first),
		cmocka_unit_test(usdt_places_have_semaphores_and_no_stack_pointers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
