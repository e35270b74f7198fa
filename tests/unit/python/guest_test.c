/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * The tool's side of the Python library's page, with a page in this process that does not keep the
 * contract.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/clock.h"
#include "python/engines.h"
#include "python/guest.h"

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

struct fixture {
	int fd;
	struct fbt_python_page *page;
	struct python_guest *guest;
	uint32_t holder;
};

static int setup(void **state)
{
	static struct fixture fixture;

	fixture = (struct fixture){
		.fd = memfd_create(FBT_PYTHON_MEMFD, MFD_CLOEXEC | MFD_ALLOW_SEALING)};
	if (fixture.fd < 0 || ftruncate(fixture.fd, FBT_PYTHON_PAGE_BYTES))
		return -1;
	fixture.page = mmap(NULL, FBT_PYTHON_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED,
			    fixture.fd, 0);
	fixture.page->magic = FBT_PYTHON_MAGIC;
	fixture.page->version = FBT_PYTHON_VERSION;
	fixture.page->phase = FBT_PYTHON_READY;
	fixture.page->pid = (uint32_t)getpid();
	*state = &fixture;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *fixture = *state;

	python_guest__free(fixture->guest);
	munmap(fixture->page, FBT_PYTHON_PAGE_BYTES);
	close(fixture->fd);
	return 0;
}

static int open_sealed(struct fixture *fixture)
{
	fcntl(fixture->fd, F_ADD_SEALS, SEALS);
	return python_guest__open(&fixture->guest, (uint32_t)getpid(), &fixture->holder);
}

static uint64_t in_ms(uint64_t ms)
{
	return clock_ns(CLOCK_MONOTONIC) + ms * NS_PER_MS;
}

static void a_page_that_can_shrink_is_not_mapped(void **state)
{
	struct fixture *fixture = *state;

	assert_int_equal(python_guest__open(&fixture->guest, (uint32_t)getpid(), &fixture->holder),
			 -ENOENT);
}

static void a_page_of_another_size_is_refused(void **state)
{
	struct fixture *fixture = *state;

	assert_int_equal(ftruncate(fixture->fd, 4096), 0);
	assert_int_equal(open_sealed(fixture), -EBADMSG);
}

static void a_page_without_its_mark_is_refused(void **state)
{
	struct fixture *fixture = *state;

	fixture->page->magic = 1;
	assert_int_equal(open_sealed(fixture), -EBADMSG);
}

static void another_version_is_refused(void **state)
{
	struct fixture *fixture = *state;

	fixture->page->version++;
	assert_int_equal(open_sealed(fixture), -EPROTONOSUPPORT);
}

static void a_page_that_a_child_has_inherited_is_none(void **state)
{
	struct fixture *fixture = *state;

	fixture->page->pid++;
	assert_int_equal(open_sealed(fixture), -ENOENT);
}

static void a_page_whose_tool_is_alive_is_busy(void **state)
{
	struct fixture *fixture = *state;

	fixture->page->tool = 4711;
	fixture->page->lease_ns = in_ms(5000);
	assert_int_equal(open_sealed(fixture), -EBUSY);
	assert_int_equal(fixture->holder, 4711);
}

static void a_page_whose_tool_is_gone_is_taken(void **state)
{
	struct fixture *fixture = *state;

	fixture->page->tool = 4711;
	fixture->page->lease_ns = 1;
	assert_int_equal(open_sealed(fixture), 0);
	assert_int_equal(fixture->page->tool, getpid());
	assert_true(fixture->page->lease_ns > in_ms(4000));
	python_guest__free(fixture->guest);
	fixture->guest = NULL;
	assert_int_equal(fixture->page->tool, 0);
}

/* PyTorch's profiler would start with the first function that is armed. */
static void what_a_tool_that_is_gone_wished_for_is_not_wished_for(void **state)
{
	struct fixture *fixture = *state;

	fixture->page->tool = 4711;
	fixture->page->lease_ns = 1;
	fixture->page->torch.window = 7;
	strcpy(fixture->page->slots[0].function, "a:b");
	assert_int_equal(open_sealed(fixture), 0);
	assert_int_equal(fixture->page->torch.window, 0);
	assert_string_equal(fixture->page->slots[0].function, "");
}

static int open_shared(struct fixture *fixture)
{
	fcntl(fixture->fd, F_ADD_SEALS, SEALS);
	return python_guest__open_shared(&fixture->guest, (uint32_t)getpid());
}

static void a_page_that_is_shared_stays_as_it_is(void **state)
{
	struct fixture *fixture = *state;
	struct fbt_python_page before;

	fixture->page->tool = 4711;
	fixture->page->lease_ns = in_ms(5000);
	strcpy(fixture->page->slots[0].function, "a:b");
	before = *fixture->page;
	assert_int_equal(open_shared(fixture), 0);
	assert_int_equal(python_guest__armed(fixture->guest, "a:b", NULL, 0), -1);
	assert_int_equal(python_guest__keep(fixture->guest), 0);
	python_guest__free(fixture->guest);
	fixture->guest = NULL;
	assert_memory_equal(fixture->page, &before, sizeof(before));
}

static void that_another_tool_shares_it_now_is_told_once(void **state)
{
	struct fixture *fixture = *state;

	fixture->page->tool = 4711;
	assert_int_equal(open_shared(fixture), 0);
	fixture->page->tool = 0;
	assert_int_equal(python_guest__keep(fixture->guest), -ENOTCONN);
	fixture->page->tool = 4711;
	assert_int_equal(python_guest__keep(fixture->guest), 0);
	fixture->page->tool = 4712;
	assert_int_equal(python_guest__keep(fixture->guest), -EBUSY);
	assert_int_equal(python_guest__keep(fixture->guest), -EPIPE);
}

static void a_page_that_no_tool_has_is_not_shared(void **state)
{
	struct fixture *fixture = *state;

	assert_int_equal(open_shared(fixture), -ENOTCONN);
	fixture->page->tool = 4711;
	fixture->page->pid++;
	assert_int_equal(open_shared(fixture), -ENOENT);
}

static void only_the_same_function_is_shared(void **state)
{
	static const char *const attributes[] = {"x.y", "len(z)"};
	struct fixture *fixture = *state;
	struct fbt_python_slot *slot = &fixture->page->slots[3], answer;

	fixture->page->tool = 4711;
	strcpy(slot->function, "a:b");
	strcpy(slot->attributes[0], "x.y");
	strcpy(slot->attributes[1], "len(z)");
	slot->found = FBT_PYTHON_FOUND;
	assert_int_equal(open_shared(fixture), 0);
	assert_int_equal(python_guest__armed(fixture->guest, "a:b", attributes, 2), -1);
	slot->found = FBT_PYTHON_ARMED;
	assert_int_equal(python_guest__armed(fixture->guest, "a:b", attributes, 2), 3);
	/* Its numbers would be other ones. */
	assert_int_equal(python_guest__armed(fixture->guest, "a:b", attributes, 1), -1);
	assert_int_equal(python_guest__armed(fixture->guest, "a:c", attributes, 2), -1);
	python_guest__answer(fixture->guest, FBT_PYTHON_SLOTS, &answer);
	assert_int_equal(answer.found, FBT_PYTHON_UNKNOWN);
}

/* Needs rights that not everybody who runs the unit tests has. */
static void a_page_whose_descriptor_is_closed_is_found_where_it_is_mapped(void **state)
{
	struct fixture *fixture = *state;
	int err;

	fcntl(fixture->fd, F_ADD_SEALS, SEALS);
	close(fixture->fd);
	fixture->fd = -1;
	err = python_guest__open(&fixture->guest, (uint32_t)getpid(), &fixture->holder);
	if (err == -EACCES)
		skip();
	assert_int_equal(err, 0);
	assert_int_equal(fixture->page->tool, getpid());
}

static void a_mapped_page_that_can_shrink_is_not_taken(void **state)
{
	struct fixture *fixture = *state;
	int err;

	close(fixture->fd);
	fixture->fd = -1;
	err = python_guest__open(&fixture->guest, (uint32_t)getpid(), &fixture->holder);
	if (err == -EACCES)
		skip();
	assert_int_equal(err, -ENOENT);
}

static void a_lease_that_has_ended_is_taken_again(void **state)
{
	struct fixture *fixture = *state;

	assert_int_equal(open_sealed(fixture), 0);
	assert_int_equal(python_guest__keep(fixture->guest), 0);
	fixture->page->lease_ns = 1;
	fixture->page->lapses++;
	fixture->page->tool = 0;
	assert_int_equal(python_guest__keep(fixture->guest), -ESTALE);
	assert_int_equal(fixture->page->tool, getpid());
	assert_true(fixture->page->lease_ns > in_ms(4000));
	assert_int_equal(python_guest__keep(fixture->guest), 0);
}

/* The library disarms what an earlier tool has left, just while this one takes the page. */
static void a_lease_that_ended_while_the_page_was_taken_is_no_other_tools(void **state)
{
	struct fixture *fixture = *state;

	assert_int_equal(open_sealed(fixture), 0);
	fixture->page->lapses++;
	assert_int_equal(python_guest__keep(fixture->guest), -ESTALE);
	assert_int_equal(fixture->page->tool, getpid());
	assert_int_equal(python_guest__keep(fixture->guest), 0);
}

static void the_lease_of_another_tool_is_left_alone(void **state)
{
	struct fixture *fixture = *state;

	assert_int_equal(open_sealed(fixture), 0);
	fixture->page->lapses++;
	fixture->page->tool = 4711;
	fixture->page->lease_ns = in_ms(1000);
	assert_int_equal(python_guest__keep(fixture->guest), -EBUSY);
	assert_int_equal(python_guest__keep(fixture->guest), -EPIPE);
	assert_int_equal(python_guest__ask(fixture->guest, FBT_PYTHON_ARM), -EPIPE);
	assert_int_equal(fixture->page->order & 3, 0);
	assert_true(fixture->page->lease_ns < in_ms(2000));
	python_guest__free(fixture->guest);
	fixture->guest = NULL;
	assert_int_equal(fixture->page->tool, 4711);
}

static void an_order_that_nobody_takes_is_withdrawn(void **state)
{
	struct fixture *fixture = *state;

	assert_int_equal(open_sealed(fixture), 0);
	assert_int_equal(python_guest__order(fixture->guest, FBT_PYTHON_ARM, in_ms(30)),
			 -ETIMEDOUT);
	assert_int_equal(fixture->page->order & 3, FBT_PYTHON_DONE);
}

static void a_dead_library_takes_no_order(void **state)
{
	struct fixture *fixture = *state;
	char text[8];

	assert_int_equal(open_sealed(fixture), 0);
	fixture->page->phase = FBT_PYTHON_DEAD;
	memset(fixture->page->text, 'x', sizeof(fixture->page->text));
	assert_int_equal(python_guest__order(fixture->guest, FBT_PYTHON_ARM, in_ms(5000)), -EPIPE);
	python_guest__text(fixture->guest, text, sizeof(text));
	assert_string_equal(text, "xxxxxxx");
}

static void *answer(void *arg)
{
	struct fbt_python_page *page = arg;
	uint32_t order;

	do {
		order = __atomic_load_n(&page->order, __ATOMIC_ACQUIRE);
	} while ((order & 3) != FBT_PYTHON_ASKED);
	__atomic_store_n(&page->order, order & ~3u, __ATOMIC_RELEASE);
	return NULL;
}

static void an_order_is_answered(void **state)
{
	struct fixture *fixture = *state;
	pthread_t thread;

	assert_int_equal(open_sealed(fixture), 0);
	assert_int_equal(pthread_create(&thread, NULL, answer, fixture->page), 0);
	assert_int_equal(python_guest__order(fixture->guest, FBT_PYTHON_COUNT, in_ms(20000)), 0);
	pthread_join(thread, NULL);
}

static void an_answer_without_ends_is_cut(void **state)
{
	struct fixture *fixture = *state;
	struct fbt_python_slot slot;

	assert_int_equal(open_sealed(fixture), 0);
	memset(&fixture->page->slots[0], 'x', sizeof(fixture->page->slots[0]));
	python_guest__answer(fixture->guest, 0, &slot);
	assert_int_equal(strlen(slot.text), sizeof(slot.text) - 1);
	assert_int_equal(strlen(slot.file), sizeof(slot.file) - 1);
	assert_int_equal(slot.found, FBT_PYTHON_FAILED);
}

static void every_engine_of_the_table_is_sound(void **state)
{
	struct python_spec spec;
	size_t count = 0;

	for (const char *row; (row = python_engines_row(count)); count++)
		assert_int_equal(python_spec_parse(&spec, row), 0);
	assert_in_range(count, 1, FBT_PYTHON_SLOTS);
}

/* A file of the library's name, mapped as code. */
static void *map_library(void)
{
	const size_t size = (size_t)sysconf(_SC_PAGESIZE);
	char folder[] = "/tmp/guest_test.XXXXXX", path[96];
	void *code;
	int fd;

	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/libferrum_python.so", folder);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0700);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)size), 0);
	code = mmap(NULL, size, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	assert_true(code != MAP_FAILED);
	close(fd);
	unlink(path);
	rmdir(folder);
	return code;
}

static void only_a_forked_process_has_inherited_the_library(void **state)
{
	void *code = map_library();
	bool own = python_guest_is_inherited((uint32_t)getpid()), childs;
	pid_t child = fork();

	if (!child) {
		pause();
		_exit(0);
	}
	childs = python_guest_is_inherited((uint32_t)child);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	munmap(code, (size_t)sysconf(_SC_PAGESIZE));
	/* It was loaded before the interpreter, or could not start. */
	assert_false(own);
	assert_true(childs);
}

static enum python_torch_wait torch_wait(struct fixture *fixture, uint32_t served, uint32_t state,
					 uint64_t begin_ns, uint64_t end_ns)
{
	struct fbt_python_torch *torch = &fixture->page->torch;

	torch->served = served;
	torch->state = state;
	torch->begin_ns = begin_ns;
	torch->end_ns = end_ns;
	return python_guest__torch_wait(fixture->guest, 7);
}

static void the_end_of_a_window_waits_for_a_step_or_for_pytorch(void **state)
{
	struct fixture *fixture = *state;

	assert_int_equal(open_sealed(fixture), 0);
	assert_int_equal(torch_wait(fixture, 0, FBT_TORCH_NONE, 0, 0), PYTHON_TORCH_NOTHING);
	assert_int_equal(torch_wait(fixture, 6, FBT_TORCH_DONE, 5, 9), PYTHON_TORCH_NOTHING);
	/* It is just being started. */
	assert_int_equal(torch_wait(fixture, 6, FBT_TORCH_DONE, 10, 0), PYTHON_TORCH_AT_IT);
	assert_int_equal(torch_wait(fixture, 7, FBT_TORCH_ON, 10, 0), PYTHON_TORCH_STEP);
	fixture->page->torch_stops = 1;
	assert_int_equal(torch_wait(fixture, 7, FBT_TORCH_ON, 10, 0), PYTHON_TORCH_AT_IT);
	assert_int_equal(torch_wait(fixture, 7, FBT_TORCH_DONE, 10, 20), PYTHON_TORCH_NOTHING);
}

static void a_profiler_that_an_earlier_window_left_on_is_not_waited_for(void **state)
{
	struct fixture *fixture = *state;

	assert_int_equal(open_sealed(fixture), 0);
	assert_int_equal(torch_wait(fixture, 6, FBT_TORCH_ON, 10, 0), PYTHON_TORCH_NOTHING);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(a_page_that_can_shrink_is_not_mapped),
		CASE(a_page_of_another_size_is_refused),
		CASE(a_page_without_its_mark_is_refused),
		CASE(another_version_is_refused),
		CASE(a_page_that_a_child_has_inherited_is_none),
		CASE(a_page_whose_tool_is_alive_is_busy),
		CASE(a_page_whose_tool_is_gone_is_taken),
		CASE(what_a_tool_that_is_gone_wished_for_is_not_wished_for),
		CASE(a_page_that_is_shared_stays_as_it_is),
		CASE(that_another_tool_shares_it_now_is_told_once),
		CASE(a_page_that_no_tool_has_is_not_shared),
		CASE(only_the_same_function_is_shared),
		CASE(a_page_whose_descriptor_is_closed_is_found_where_it_is_mapped),
		CASE(a_mapped_page_that_can_shrink_is_not_taken),
		cmocka_unit_test(only_a_forked_process_has_inherited_the_library),
		CASE(the_end_of_a_window_waits_for_a_step_or_for_pytorch),
		CASE(a_profiler_that_an_earlier_window_left_on_is_not_waited_for),
		CASE(a_lease_that_has_ended_is_taken_again),
		CASE(a_lease_that_ended_while_the_page_was_taken_is_no_other_tools),
		CASE(the_lease_of_another_tool_is_left_alone),
		CASE(an_order_that_nobody_takes_is_withdrawn),
		CASE(a_dead_library_takes_no_order),
		CASE(an_order_is_answered),
		CASE(an_answer_without_ends_is_cut),
		cmocka_unit_test(every_engine_of_the_table_is_sound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
