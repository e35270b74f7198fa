/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "shared_fixture.h"
#include "kernel/step_probes.h"
#include "proc/process.h"
#include "targets/steps_found.h"

/* The processes, whose numbers are above those of the kernel. */
#define FIRST	  0x500001u
#define PROCESSES 3

/* What was asked for in a process. */
struct probed {
	int err; /* of the attempt to probe its exits */
	int exits;
	uint32_t off_tgid;  /* the process whose steps did not begin meanwhile, and … */
	uint64_t off_kinds; /* … the kinds that began nowhere */
	uint64_t mark;
};

/* Doubles of what steps_found.c calls. */
struct loader {
	struct shared *shared;
	struct probed processes[PROCESSES];
	struct uprobes *links[PROCESSES];
	uint32_t without_first; /* the process whose first thread has ended */
};

static struct loader *machine;

static struct probed *process_of(const struct uprobes *links)
{
	for (size_t i = 0; i < PROCESSES; i++) {
		if (links && machine->links[i] == links)
			return &machine->processes[i];
	}
	return NULL;
}

struct shared *loader__shared(struct loader *loader)
{
	return loader->shared;
}

struct uprobes *loader__uprobes(struct loader *loader)
{
	return NULL;
}

const struct bpf_program *loader__step_program(const struct loader *loader)
{
	return NULL;
}

int loader__set_kind_args(struct loader *loader, uint32_t kind, const struct fbt_kind_args *args)
{
	return 0;
}

bool loader__has_multi(const struct loader *loader)
{
	return true;
}

bool uprobes_multi_can_filter(void)
{
	return true;
}

void uprobes__set_mark(struct uprobes *uprobes, uint64_t mark)
{
	for (size_t i = 0; i < PROCESSES; i++) {
		if (!machine->links[i] || machine->links[i] == uprobes) {
			machine->links[i] = uprobes;
			machine->processes[i].mark = mark;
			return;
		}
	}
	fail_msg("there are more links than processes");
}

uint32_t processes_live_thread(uint32_t tgid)
{
	return tgid == machine->without_first ? tgid + 100 : tgid;
}

int target_find(uint32_t tgid, const struct target_options *options, struct target_seen *seen,
		function_vec *functions)
{
	struct step_function *function = step_function_new();

	assert_non_null(function);
	function->name = strdup("step");
	function->inode = 1;
	function->begin_offset = 100;
	function->has_sites = true;
	assert_int_equal(vec_push(&function->exit_offsets, 108), 0);
	assert_int_equal(vec_push(functions, function), 0);
	return 1;
}

int step_probes_attach(struct uprobes *uprobes, const struct bpf_program *program,
		       const struct step_probe *probes, size_t count, uint32_t tgid)
{
	struct probed *process = process_of(uprobes);

	assert_non_null(process);
	process->off_tgid = machine->shared->control->attaching_tgid;
	process->off_kinds = machine->shared->control->off_kinds;
	process->exits++;
	return 0;
}

int step_probes_attach_exits(struct uprobes *uprobes, const struct bpf_program *program,
			     const struct step_probe *probe, uint32_t tgid)
{
	struct probed *process = process_of(uprobes);

	assert_non_null(process);
	process->exits += !process->err;
	return process->err;
}

void step_probes_detach_exits(struct uprobes *uprobes, uint32_t kind)
{
	struct probed *process = process_of(uprobes);

	if (process)
		process->exits = 0;
}

void step_probes_detach_sites(struct uprobes *uprobes, uint32_t kind)
{
}

void step_probes_detach(struct uprobes *uprobes, uint32_t kind)
{
}

struct fixture {
	struct loader loader;
	struct options options;
	struct live live;
};

static int setup(void **state)
{
	struct fixture *fixture = shared_alloc(1, sizeof(*fixture));

	machine = &fixture->loader;
	fixture->loader.shared = shared_new(16, 1, 4);
	fixture->options.python = PYTHON_OFF;
	fixture->live = (struct live){
		.options = &fixture->options,
		.quiet = true,
		.loader = &fixture->loader,
		.traced = traced_set__new(fixture->loader.shared, NULL),
	};
	fixture->live.found = steps_found__new(&fixture->live);
	assert_true(fixture->live.traced && fixture->live.found);
	*state = fixture;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *fixture = *state;

	steps_found__free(fixture->live.found);
	traced_set__free(fixture->live.traced);
	shared_free(fixture->loader.shared);
	free(fixture);
	return 0;
}

/* Attaches to the processes in turn. */
static void attach(struct fixture *fixture)
{
	for (uint32_t i = 0; i < PROCESSES; i++) {
		struct traced *traced = traced_set__add(fixture->live.traced, FIRST + i);

		assert_non_null(traced);
		assert_int_equal(steps_found__search(fixture->live.found, traced), 1);
		assert_int_equal(steps_found__attach(fixture->live.found, traced), 1);
		assert_int_equal(fixture->loader.processes[i].exits, 1);
	}
}

/* The kind's steps end at call sites. */
static void use_sites(struct fixture *fixture)
{
	attach(fixture);
	steps_found__end_at_sites(fixture->live.found, 1);
	steps_found__drop_exits(fixture->live.found, 1);
	assert_int_equal(fixture->loader.processes[PROCESSES - 1].exits, 0);
}

static void exits_are_probed_again_in_those_after_one_that_has_ended(void **state)
{
	struct fixture *fixture = *state;
	const struct probed *processes = fixture->loader.processes;

	use_sites(fixture);
	fixture->loader.processes[0].err = -ESRCH;
	assert_int_equal(steps_found__end_at_exits(fixture->live.found, 1), 0);
	assert_int_equal(processes[0].exits, 0);
	assert_int_equal(processes[1].exits, 1);
	assert_int_equal(processes[2].exits, 1);
	assert_int_equal(fixture->loader.shared->control->site_kinds, 0);
}

static void exits_that_cannot_be_probed_in_one_are_probed_in_none(void **state)
{
	struct fixture *fixture = *state;
	const struct probed *processes = fixture->loader.processes;

	use_sites(fixture);
	fixture->loader.processes[1].err = -EMFILE;
	assert_int_equal(steps_found__end_at_exits(fixture->live.found, 1), -EMFILE);
	assert_int_equal(processes[0].exits, 0);
	assert_int_equal(fixture->loader.shared->control->site_kinds, kind_bit(1));
	fixture->loader.processes[1].err = 0;
	assert_int_equal(steps_found__end_at_exits(fixture->live.found, 1), 0);
	for (size_t i = 0; i < PROCESSES; i++)
		assert_int_equal(processes[i].exits, 1);
}

/* So its links are for all processes. */
static void one_without_its_first_thread_has_probes_that_others_ignore(void **state)
{
	struct fixture *fixture = *state;
	const struct fbt_control *control = fixture->loader.shared->control;
	const struct probed *processes = fixture->loader.processes;

	fixture->loader.without_first = FIRST + 1;
	attach(fixture);
	assert_int_equal(processes[0].mark, 0);
	assert_int_equal(processes[1].mark, 1u << FBT_PROBE_ONLY_SHIFT);
	assert_int_equal(processes[2].mark, 0);
	assert_int_equal(control->only_tgids[1], FIRST + 1);
}

static void steps_of_others_go_on_while_one_is_attached(void **state)
{
	struct fixture *fixture = *state;

	fixture->loader.without_first = FIRST + 1;
	attach(fixture);
	for (uint32_t i = 0; i < PROCESSES; i++) {
		assert_int_equal(fixture->loader.processes[i].off_tgid, FIRST + i);
		assert_int_equal(fixture->loader.processes[i].off_kinds, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			exits_are_probed_again_in_those_after_one_that_has_ended, setup, teardown),
		cmocka_unit_test_setup_teardown(
			exits_that_cannot_be_probed_in_one_are_probed_in_none, setup, teardown),
		cmocka_unit_test_setup_teardown(
			one_without_its_first_thread_has_probes_that_others_ignore, setup,
			teardown),
		cmocka_unit_test_setup_teardown(steps_of_others_go_on_while_one_is_attached, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
