/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Steps that another tracer has armed: the page of the library is one of this process, and so are
 * its markers.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "markers_fixture.h"
#include "base/clock.h"
#include "python/steps.h"

#define HOLDER 4711

struct fixture {
	struct elf_fixture *elf;
	int fd;
	struct fbt_python_page *page;
	void *library;
	struct python_steps *steps;
	function_vec functions;
	struct step_spec specs[2];
};

static int setup(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	*state = fixture;
	fixture->fd = memfd_create(FBT_PYTHON_MEMFD, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fixture->fd < 0 || ftruncate(fixture->fd, FBT_PYTHON_PAGE_BYTES) ||
	    fcntl(fixture->fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		return -1;
	fixture->page = mmap(NULL, FBT_PYTHON_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED,
			     fixture->fd, 0);
	fixture->page->magic = FBT_PYTHON_MAGIC;
	fixture->page->version = FBT_PYTHON_VERSION;
	fixture->page->phase = FBT_PYTHON_READY;
	fixture->page->pid = (uint32_t)getpid();
	fixture->page->tool = HOLDER;
	return elf_fixture_set_up((void **)&fixture->elf);
}

static int teardown(void **state)
{
	struct fixture *fixture = *state;

	python_steps__free(fixture->steps);
	for (int i = 0; i < 2; i++)
		step_spec_clear(&fixture->specs[i]);
	step_functions_free(&fixture->functions);
	munmap(fixture->page, FBT_PYTHON_PAGE_BYTES);
	close(fixture->fd);
	if (fixture->library)
		dlclose(fixture->library);
	elf_fixture_tear_down((void **)&fixture->elf);
	free(fixture);
	return 0;
}

/* The other tracer has m:armed in the first slot. */
static void arm(struct fixture *fixture)
{
	struct fbt_python_slot *slot = &fixture->page->slots[0];

	fixture->library = markers_load(fixture->elf, "own", "-DNOTE");
	*slot = markers_slot(fixture->library);
	strcpy(slot->function, "m:armed");
	slot->found = FBT_PYTHON_ARMED;
}

/* Shares these functions; the second may be NULL. Returns how many were found. */
static int share(struct fixture *fixture, const char *first, const char *second)
{
	const struct python_search search = {.tgid = (uint32_t)getpid(), .is_named = true};

	assert_int_equal(step_spec_parse(&fixture->specs[0], first), 0);
	assert_int_equal(second ? step_spec_parse(&fixture->specs[1], second) : 0, 0);
	fixture->steps = python_steps__new(fixture->specs, second ? 2 : 1);
	assert_non_null(fixture->steps);
	python_steps__share(fixture->steps);
	return python_steps__search(fixture->steps, &search, &fixture->functions);
}

static void only_of_what_is_not_armed_it_is_said(void **state)
{
	struct fixture *fixture = *state;

	arm(fixture);
	assert_int_equal(share(fixture, "py:m:armed", "py:m:other"), 1);
	elf_fixture_catch_log(fixture->elf);
	python_steps__explain(fixture->steps);
	elf_fixture_check_log(fixture->elf, "py:m:other: not armed by the other tracer");
}

static void where_nothing_is_armed_that_is_said_too(void **state)
{
	struct fixture *fixture = *state;

	assert_int_equal(share(fixture, "py:m:other", NULL), 0);
	assert_false(python_steps__is_told(fixture->steps, (uint32_t)getpid()));
	elf_fixture_catch_log(fixture->elf);
	python_steps__explain(fixture->steps);
	elf_fixture_check_log(fixture->elf, "py:m:other: not armed by the other tracer");
	assert_true(python_steps__is_told(fixture->steps, (uint32_t)getpid()));
}

/* Beats twice, as it is said once. */
static void check_that_steps_are_missed(struct fixture *fixture)
{
	uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);

	elf_fixture_catch_log(fixture->elf);
	python_steps__beat(fixture->steps, now_ns + NS_PER_S);
	python_steps__beat(fixture->steps, now_ns + 2 * NS_PER_S);
	elf_fixture_check_log(fixture->elf, "steps are missing from now on");
}

static void that_the_other_tracer_has_ended_is_said_once(void **state)
{
	struct fixture *fixture = *state;

	arm(fixture);
	assert_int_equal(share(fixture, "py:m:armed", NULL), 1);
	/* Its library has not disarmed yet. */
	fixture->page->tool = 0;
	check_that_steps_are_missed(fixture);
}

static void that_the_other_tracer_has_disarmed_is_said_once(void **state)
{
	struct fixture *fixture = *state;

	arm(fixture);
	assert_int_equal(share(fixture, "py:m:armed", NULL), 1);
	python_steps__beat(fixture->steps, clock_ns(CLOCK_MONOTONIC));
	fixture->page->slots[0].found = FBT_PYTHON_UNKNOWN;
	check_that_steps_are_missed(fixture);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(only_of_what_is_not_armed_it_is_said),
		CASE(where_nothing_is_armed_that_is_said_too),
		CASE(that_the_other_tracer_has_ended_is_said_once),
		CASE(that_the_other_tracer_has_disarmed_is_said_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
