/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * What the tool makes of the answers of libraries: here children of the test, which have a page and
 * answer what they are told to.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include "child_fixture.h"
#include "markers_fixture.h"
#include "base/clock.h"
#include "python/guest.h"
#include "python/steps.h"

#define CHILDREN   3
#define SEALS	   (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)
#define TOGETHER_S 4 /* CHILDREN that are waited for one after the other take 6 s */

#define WAIT_S 20

/* What the libraries share with the test. */
struct shared {
	uint32_t is_silent; /* no order is answered */
	uint32_t ignored;   /* the command that is not answered; 0: all are */
	uint32_t lapses;    /* how often leases are to have ended */
	uint32_t other;	    /* the tool that takes all pages; 0: none */
	uint32_t arm_us;    /* how long arming takes */
	uint32_t has_late;  /* the function of the second slot is there, too */
	struct {
		uint32_t answered; /* orders */
		uint32_t lapses;
		uint32_t is_armed;
		uint32_t is_late_armed; /* the second slot */
		uint32_t tool;
	} libraries[CHILDREN];
};

struct fixture {
	struct elf_fixture *elf;
	struct python_steps *steps;
	function_vec functions;
	pid_t children[CHILDREN];
	struct shared *shared;
};

static int setup(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	*state = fixture;
	fixture->steps = python_steps__new(NULL, 0);
	fixture->shared = mmap(NULL, sizeof(*fixture->shared), PROT_READ | PROT_WRITE,
			       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return fixture->steps ? elf_fixture_set_up((void **)&fixture->elf) : -1;
}

static int teardown(void **state)
{
	struct fixture *fixture = *state;

	python_steps__free(fixture->steps);
	step_functions_free(&fixture->functions);
	for (size_t i = 0; i < CHILDREN; i++) {
		if (fixture->children[i]) {
			kill(fixture->children[i], SIGKILL);
			waitpid(fixture->children[i], NULL, 0);
		}
	}
	munmap(fixture->shared, sizeof(*fixture->shared));
	elf_fixture_tear_down((void **)&fixture->elf);
	free(fixture);
	return 0;
}

static struct fbt_python_page *make_page(void)
{
	int fd = memfd_create(FBT_PYTHON_MEMFD, MFD_ALLOW_SEALING);
	struct fbt_python_page *page;

	if (fd < 0 || ftruncate(fd, FBT_PYTHON_PAGE_BYTES))
		_exit(1);
	page = mmap(NULL, FBT_PYTHON_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED || fcntl(fd, F_ADD_SEALS, SEALS))
		_exit(1);
	page->version = FBT_PYTHON_VERSION;
	page->phase = FBT_PYTHON_READY;
	page->pid = (uint32_t)getpid();
	page->magic = FBT_PYTHON_MAGIC;
	return page;
}

static uint32_t load(const uint32_t *word)
{
	return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

static void store(uint32_t *word, uint32_t value)
{
	__atomic_store_n(word, value, __ATOMIC_RELEASE);
}

/* Of one slot, whose function is there, with these markers. NULL: it is not. */
static void act(uint32_t command, struct fbt_python_slot *at, const struct fbt_python_slot *slot)
{
	if (command == FBT_PYTHON_DISARM) {
		at->found = FBT_PYTHON_UNKNOWN;
	} else if (command == FBT_PYTHON_ARM && at->found == FBT_PYTHON_FOUND) {
		at->found = FBT_PYTHON_ARMED;
	} else if (slot && at->function[0] &&
		   (command == FBT_PYTHON_RESOLVE ||
		    (command == FBT_PYTHON_LOOK && at->found != FBT_PYTHON_ARMED))) {
		at->begin = slot->begin;
		at->end = slot->end;
		at->raised = slot->raised;
		at->found = FBT_PYTHON_FOUND;
	}
}

/* false: it is no order, or another one by now. */
static bool answer(struct fbt_python_page *page, uint32_t order, const struct fbt_python_slot *slot,
		   const struct fbt_python_slot *late)
{
	if ((order & 3) != FBT_PYTHON_ASKED || load(&page->order) != order)
		return false;
	act(page->command, &page->slots[0], slot);
	act(page->command, &page->slots[1], late);
	return __atomic_compare_exchange_n(&page->order, &order, order & ~3u, false,
					   __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

static void end_lease(struct fbt_python_page *page)
{
	page->slots[0].found = FBT_PYTHON_UNKNOWN;
	page->lapses++;
	store(&page->tool, 0);
}

static _Noreturn void be_library(struct shared *shared, size_t i,
				 const struct fbt_python_slot *slot, int ready)
{
	struct fbt_python_page *page = make_page();

	if (write(ready, "r", 1) != 1)
		_exit(1);
	for (;;) {
		/* One order is looked at in each turn: another one may come at any time. */
		uint32_t order = load(&page->order), command = load(&page->command);

		if (page->lapses != load(&shared->lapses)) {
			end_lease(page);
			store(&shared->libraries[i].lapses, page->lapses);
		}
		if (load(&shared->other))
			store(&page->tool, load(&shared->other));
		store(&shared->libraries[i].tool, load(&page->tool));
		if (order & 3 && command == FBT_PYTHON_ARM)
			usleep(load(&shared->arm_us));
		if (!load(&shared->is_silent) && command != load(&shared->ignored) &&
		    answer(page, order, slot, load(&shared->has_late) ? slot : NULL)) {
			store(&shared->libraries[i].is_armed,
			      page->slots[0].found == FBT_PYTHON_ARMED);
			store(&shared->libraries[i].is_late_armed,
			      page->slots[1].found == FBT_PYTHON_ARMED);
			store(&shared->libraries[i].answered, shared->libraries[i].answered + 1);
		}
		usleep(500);
	}
}

/* Of another process. */
static void await(const uint32_t *word, uint32_t value)
{
	uint64_t end_ns = clock_ns(CLOCK_MONOTONIC) + WAIT_S * NS_PER_S;

	while (load(word) != value && clock_ns(CLOCK_MONOTONIC) < end_ns)
		usleep(500);
	assert_int_equal(load(word), value);
}

static uint32_t start(struct fixture *fixture, size_t i, const struct fbt_python_slot *slot)
{
	int ready[2];
	char byte;

	assert_int_equal(pipe(ready), 0);
	fixture->children[i] = child_fork();
	if (!fixture->children[i])
		be_library(fixture->shared, i, slot, ready[1]);
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	return (uint32_t)fixture->children[i];
}

static int search_as(struct fixture *fixture, uint32_t tgid, bool is_named)
{
	const struct python_search search = {.tgid = tgid, .is_named = is_named, .quiet = true};

	return python_steps__search(fixture->steps, &search, &fixture->functions);
}

static int search(struct fixture *fixture, uint32_t tgid)
{
	return search_as(fixture, tgid, false);
}

static void markers_of_the_library_are_a_step_function(void **state)
{
	struct fixture *fixture = *state;
	void *library = markers_load(fixture->elf, "own", "-DNOTE");
	struct fbt_python_slot slot = markers_slot(library);
	const struct step_function *function;

	assert_int_equal(search(fixture, start(fixture, 0, &slot)), 1);
	function = fixture->functions.items[0];
	assert_true(function->is_python);
	assert_int_equal(function->exit_offsets.items[0] - function->begin_offset,
			 slot.end - slot.begin);
	dlclose(library);
}

/* With the file of another library, all processes that map it would get the probes. */
static void markers_of_a_foreign_file_are_no_step_function(void **state)
{
	struct fixture *fixture = *state;
	void *library = markers_load(fixture->elf, "foreign", "");
	struct fbt_python_slot slot = markers_slot(library);
	uint32_t tgid = start(fixture, 0, &slot);
	int found;

	elf_fixture_catch_log(fixture->elf);
	assert_int_equal(search(fixture, tgid), 0);
	elf_fixture_check_log(fixture->elf, "has its markers elsewhere");
	assert_int_equal(fixture->functions.count, 0);
	/* Nor later, in a window. */
	while ((found = python_steps__look(fixture->steps, tgid)) == -EAGAIN)
		usleep(500);
	assert_int_equal(found, 0);
	dlclose(library);
}

/* A stopped process would be asked again and again, in each turn of a window. */
static void an_order_that_is_not_taken_is_withdrawn(void **state)
{
	struct fixture *fixture = *state;
	uint32_t tgid;
	int found;

	fixture->shared->is_silent = 1;
	tgid = start(fixture, 0, NULL);
	while ((found = python_steps__look(fixture->steps, tgid)) == -EAGAIN)
		usleep(500);
	assert_int_equal(found, -ETIMEDOUT);
	/* The next look gives it again. */
	assert_int_equal(python_steps__look(fixture->steps, tgid), -EAGAIN);
	store(&fixture->shared->is_silent, 0);
	while ((found = python_steps__look(fixture->steps, tgid)) == -EAGAIN)
		usleep(500);
	assert_int_equal(found, 0);
}

static void what_does_not_answer_is_waited_for_together(void **state)
{
	struct fixture *fixture = *state;
	uint32_t tgids[CHILDREN];
	uint64_t begin_ns;

	fixture->shared->is_silent = 1;
	for (size_t i = 0; i < CHILDREN; i++)
		tgids[i] = start(fixture, i, NULL);
	begin_ns = clock_ns(CLOCK_MONOTONIC);
	for (size_t i = 0; i < CHILDREN; i++)
		python_steps__ask(fixture->steps, tgids[i]);
	for (size_t i = 0; i < CHILDREN; i++)
		assert_int_equal(search(fixture, tgids[i]), 0);
	assert_true(clock_ns(CLOCK_MONOTONIC) - begin_ns < TOGETHER_S * NS_PER_S);
}

static void what_answers_meanwhile_is_found_all_the_same(void **state)
{
	struct fixture *fixture = *state;
	void *library = markers_load(fixture->elf, "own", "-DNOTE");
	struct fbt_python_slot slot = markers_slot(library);
	uint32_t silent, other;

	silent = start(fixture, 0, NULL);
	/* As C code that keeps the GIL. */
	kill((pid_t)silent, SIGSTOP);
	other = start(fixture, 1, &slot);
	python_steps__ask(fixture->steps, silent);
	python_steps__ask(fixture->steps, other);
	assert_int_equal(search(fixture, silent), 0);
	assert_int_equal(search(fixture, other), 1);
	dlclose(library);
}

/* While other processes were injected the lease has ended. */
static void an_answer_that_is_gone_is_asked_for_again(void **state)
{
	struct fixture *fixture = *state;
	void *library = markers_load(fixture->elf, "own", "-DNOTE");
	struct fbt_python_slot slot = markers_slot(library);
	uint32_t tgid = start(fixture, 0, &slot);

	python_steps__ask(fixture->steps, tgid);
	await(&fixture->shared->libraries[0].answered, 1);
	store(&fixture->shared->lapses, 1);
	await(&fixture->shared->libraries[0].lapses, 1);
	assert_int_equal(search(fixture, tgid), 1);
	assert_int_equal(python_steps__arm(fixture->steps, tgid), 0);
	python_steps__finish_arming(fixture->steps);
	await(&fixture->shared->libraries[0].is_armed, 1);
	dlclose(library);
}

/* All have the function, and are about to be armed: the order of the search was taken back. */
static void find_all(struct fixture *fixture, const struct fbt_python_slot *slot)
{
	for (size_t i = 0; i < CHILDREN; i++) {
		assert_int_equal(search(fixture, start(fixture, i, slot)), 1);
		await(&fixture->shared->libraries[i].answered, 2);
	}
}

static void arm_all(struct fixture *fixture)
{
	for (size_t i = 0; i < CHILDREN; i++)
		assert_int_equal(python_steps__arm(fixture->steps, (uint32_t)fixture->children[i]),
				 0);
	python_steps__finish_arming(fixture->steps);
}

static void what_is_not_armed_in_time_keeps_no_other_from_it(void **state)
{
	struct fixture *fixture = *state;
	void *library = markers_load(fixture->elf, "own", "-DNOTE");
	struct fbt_python_slot slot = markers_slot(library);

	find_all(fixture, &slot);
	kill(fixture->children[0], SIGSTOP);
	assert_int_equal(waitpid(fixture->children[0], NULL, WUNTRACED), fixture->children[0]);
	elf_fixture_catch_log(fixture->elf);
	arm_all(fixture);
	elf_fixture_check_log(fixture->elf, "Python steps are missing at first");
	for (size_t i = 0; i < CHILDREN; i++)
		await(&fixture->shared->libraries[i].is_armed, i != 0);
	/* It is armed as soon as it is seen to answer. */
	kill(fixture->children[0], SIGCONT);
	await(&fixture->shared->libraries[0].answered, 3);
	python_steps__beat(fixture->steps, clock_ns(CLOCK_MONOTONIC));
	await(&fixture->shared->libraries[0].is_armed, 1);
	dlclose(library);
}

/* The process that -p names leaves one order unanswered, and answers once the window is open. */
static void arm_named_late(struct fixture *fixture, enum fbt_python_command ignored)
{
	void *library = markers_load(fixture->elf, "own", "-DNOTE");
	struct fbt_python_slot slot = markers_slot(library);
	uint32_t tgid = start(fixture, 0, &slot), answered = 2 + (ignored == FBT_PYTHON_ARM);
	uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);

	assert_int_equal(search_as(fixture, tgid, true), 1);
	store(&fixture->shared->ignored, ignored);
	elf_fixture_catch_log(fixture->elf);
	assert_int_equal(python_steps__arm(fixture->steps, tgid), 0);
	python_steps__finish_arming(fixture->steps);
	elf_fixture_check_log(fixture->elf, "Python steps are missing at first");
	assert_int_equal(fixture->shared->libraries[0].answered, answered);
	store(&fixture->shared->ignored, 0);
	python_steps__beat(fixture->steps, now_ns);
	await(&fixture->shared->libraries[0].answered, answered + 1);
	python_steps__beat(fixture->steps, now_ns + NS_PER_S);
	await(&fixture->shared->libraries[0].is_armed, 1);
	dlclose(library);
}

static void a_named_process_that_is_not_looked_up_in_time_is_armed_later(void **state)
{
	arm_named_late(*state, FBT_PYTHON_RESOLVE);
}

static void a_named_process_that_is_not_armed_in_time_is_armed_later(void **state)
{
	arm_named_late(*state, FBT_PYTHON_ARM);
}

/* While this tool waited for its window, another one came, and has ended. */
static void a_page_that_another_tool_had_meanwhile_is_taken_before_it_is_armed(void **state)
{
	struct fixture *fixture = *state;
	void *library = markers_load(fixture->elf, "own", "-DNOTE");
	struct fbt_python_slot slot = markers_slot(library);
	uint32_t tgid = start(fixture, 0, &slot);

	assert_int_equal(search_as(fixture, tgid, true), 1);
	store(&fixture->shared->lapses, 1);
	await(&fixture->shared->libraries[0].tool, 0);
	elf_fixture_catch_log(fixture->elf);
	assert_int_equal(python_steps__arm(fixture->steps, tgid), 0);
	python_steps__beat(fixture->steps, clock_ns(CLOCK_MONOTONIC));
	/* Nothing else is said. */
	fputs("armed\n", stderr);
	elf_fixture_check_log(fixture->elf, "armed");
	await(&fixture->shared->libraries[0].is_armed, 1);
	dlclose(library);
}

/*
 * Its module was imported after the search: it has no probes yet when the others are armed. The
 * markers of this test are those of the first slot alone, so it is refused where it is found.
 */
static void arm_before_late(struct fixture *fixture, bool is_named)
{
	void *library = markers_load(fixture->elf, "own", "-DNOTE");
	struct fbt_python_slot slot = markers_slot(library);
	uint32_t tgid = start(fixture, 0, &slot);
	int found;

	assert_int_equal(search_as(fixture, tgid, is_named), 1);
	store(&fixture->shared->has_late, 1);
	assert_int_equal(python_steps__arm(fixture->steps, tgid), 0);
	python_steps__finish_arming(fixture->steps);
	await(&fixture->shared->libraries[0].is_armed, 1);
	assert_int_equal(fixture->shared->libraries[0].is_late_armed, 0);
	while ((found = python_steps__look(fixture->steps, tgid)) == -EAGAIN)
		usleep(500);
	assert_int_equal(found, 1);
	dlclose(library);
}

static void what_is_loaded_after_the_search_is_not_armed_without_probes(void **state)
{
	arm_before_late(*state, false);
}

static void nor_in_a_named_process(void **state)
{
	arm_before_late(*state, true);
}

static void refuse_to_arm(struct fixture *fixture, bool is_named)
{
	void *library = markers_load(fixture->elf, "own", "-DNOTE");
	struct fbt_python_slot slot = markers_slot(library);
	uint32_t tgid = start(fixture, 0, &slot);

	assert_int_equal(search_as(fixture, tgid, is_named), 1);
	store(&fixture->shared->other, 1);
	await(&fixture->shared->libraries[0].tool, 1);
	elf_fixture_catch_log(fixture->elf);
	assert_int_not_equal(python_steps__arm(fixture->steps, tgid), 0);
	elf_fixture_check_log(fixture->elf, "are steps of another tracer now");
	dlclose(library);
}

static void a_named_process_that_another_tool_has_by_now_is_not_armed(void **state)
{
	refuse_to_arm(*state, true);
}

static void another_process_that_another_tool_has_by_now_is_not_armed(void **state)
{
	refuse_to_arm(*state, false);
}

/* Probes may be attached in a process again and again, for functions that have nothing to do with
 * Python. */
static void what_is_armed_is_asked_no_more(void **state)
{
	struct fixture *fixture = *state;
	void *library = markers_load(fixture->elf, "own", "-DNOTE");
	struct fbt_python_slot slot = markers_slot(library);

	find_all(fixture, &slot);
	for (int i = 0; i < 3; i++)
		arm_all(fixture);
	for (size_t i = 0; i < CHILDREN; i++)
		await(&fixture->shared->libraries[i].answered, 4);
	dlclose(library);
}

static void take_time(void *ctx, const struct python_count *count)
{
	*(uint64_t *)ctx = count->armed_ns;
}

/* Others of the engine are still waited for then, so calls are counted for longer than that. */
static void calls_are_counted_since_the_process_was_armed(void **state)
{
	const uint32_t arm_us = 300000;
	struct fixture *fixture = *state;
	void *library = markers_load(fixture->elf, "own", "-DNOTE");
	struct fbt_python_slot slot = markers_slot(library);

	store(&fixture->shared->arm_us, arm_us);
	for (size_t i = 0; i < 2; i++) {
		uint32_t tgid = start(fixture, i, &slot);
		uint64_t begin_ns, armed_ns = 0, end_ns;

		assert_int_equal(search_as(fixture, tgid, !i), 1);
		begin_ns = clock_ns(CLOCK_MONOTONIC);
		assert_int_equal(python_steps__arm(fixture->steps, tgid), 0);
		python_steps__finish_arming(fixture->steps);
		end_ns = clock_ns(CLOCK_MONOTONIC);
		python_steps__count(fixture->steps, take_time, &armed_ns);
		assert_in_range(armed_ns, begin_ns + arm_us * 1000ull, end_ns);
		python_steps__forget(fixture->steps, tgid);
	}
	dlclose(library);
}

static void what_is_to_be_disarmed_is_waited_for_together(void **state)
{
	struct fixture *fixture = *state;
	void *library = markers_load(fixture->elf, "own", "-DNOTE");
	struct fbt_python_slot slot = markers_slot(library);
	uint64_t begin_ns;

	find_all(fixture, &slot);
	arm_all(fixture);
	store(&fixture->shared->is_silent, 1);
	begin_ns = clock_ns(CLOCK_MONOTONIC);
	python_steps__disarm(fixture->steps);
	assert_true(clock_ns(CLOCK_MONOTONIC) - begin_ns < TOGETHER_S * NS_PER_S);
	dlclose(library);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(markers_of_the_library_are_a_step_function),
		CASE(markers_of_a_foreign_file_are_no_step_function),
		CASE(an_order_that_is_not_taken_is_withdrawn),
		CASE(what_does_not_answer_is_waited_for_together),
		CASE(what_answers_meanwhile_is_found_all_the_same),
		CASE(an_answer_that_is_gone_is_asked_for_again),
		CASE(what_is_not_armed_in_time_keeps_no_other_from_it),
		CASE(a_named_process_that_is_not_looked_up_in_time_is_armed_later),
		CASE(a_named_process_that_is_not_armed_in_time_is_armed_later),
		CASE(what_is_loaded_after_the_search_is_not_armed_without_probes),
		CASE(nor_in_a_named_process),
		CASE(a_page_that_another_tool_had_meanwhile_is_taken_before_it_is_armed),
		CASE(a_named_process_that_another_tool_has_by_now_is_not_armed),
		CASE(another_process_that_another_tool_has_by_now_is_not_armed),
		CASE(what_is_armed_is_asked_no_more),
		CASE(calls_are_counted_since_the_process_was_armed),
		CASE(what_is_to_be_disarmed_is_waited_for_together),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
