/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/clock.h"
#include "watch/roster.h"

static const char *comm = "fbt-rostered";

/* A process that is no child of this one. It takes its name when it is told to. */
struct stranger {
	uint32_t tgid;
	int order, done; /* pipes */
};

static void stranger_main(int order, int done)
{
	const pid_t self = getpid();
	char byte;

	if (write(done, &self, sizeof(self)) != sizeof(self) || read(order, &byte, 1) != 1)
		_exit(1);
	prctl(PR_SET_NAME, comm);
	/* Until the other end is closed. */
	if (write(done, &byte, 1) == 1 && read(order, &byte, 1))
		_exit(1);
	_exit(0);
}

static struct stranger start_stranger(void)
{
	struct stranger stranger;
	int order[2], done[2], status;
	pid_t child, self;

	assert_int_equal(pipe(order) | pipe(done), 0);
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		close(order[1]);
		if (fork())
			_exit(0);
		stranger_main(order[0], done[1]);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	close(order[0]);
	close(done[1]);
	stranger.order = order[1];
	stranger.done = done[0];
	assert_int_equal(read(stranger.done, &self, sizeof(self)), sizeof(self));
	stranger.tgid = (uint32_t)self;
	return stranger;
}

static void name_stranger(const struct stranger *stranger)
{
	char byte = 0;

	assert_int_equal(write(stranger->order, &byte, 1), 1);
	assert_int_equal(read(stranger->done, &byte, 1), 1);
}

/* It is no child, so its end is not waited for but seen: its end of the pipe is closed. */
static void end_stranger(const struct stranger *stranger)
{
	char byte;

	close(stranger->order);
	assert_int_equal(read(stranger->done, &byte, 1), 0);
	close(stranger->done);
}

struct fixture {
	struct roster roster;
	struct options options;
	struct stranger stranger;
};

static int setup(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	assert_non_null(fixture);
	assert_int_equal(vec_push(&fixture->options.watch.comms, (char *)comm), 0);
	fixture->stranger = start_stranger();
	*state = fixture;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *fixture = *state;

	end_stranger(&fixture->stranger);
	roster_clear(&fixture->roster);
	vec_free(&fixture->options.watch.comms);
	free(fixture);
	return 0;
}

/* Whether the stranger is selected in that second. */
static bool finds(struct fixture *fixture, uint64_t second)
{
	selected_vec found = {0};
	const struct selected_process *selected;
	bool is_right;

	assert_int_equal(
		roster_look(&fixture->roster, &fixture->options, (100 + second) * NS_PER_S, &found),
		0);
	selected = selected_find(&found, fixture->stranger.tgid);
	is_right = selected && selected->how == SELECTED_PROCESS && !strcmp(selected->comm, comm);
	assert_int_equal(is_right, selected != NULL);
	vec_free(&found);
	return selected;
}

static const struct roster_entry *entry_of(const struct fixture *fixture, uint32_t tgid)
{
	vec_for_each (entry, &fixture->roster.entries) {
		if (entry->process.tgid == tgid)
			return entry;
	}
	return NULL;
}

static void a_young_process_is_read_each_time(void **state)
{
	struct fixture *fixture = *state;

	assert_false(finds(fixture, 0));
	assert_false(finds(fixture, 2));
	name_stranger(&fixture->stranger);
	assert_true(finds(fixture, 3));
}

static void an_old_one_is_read_now_and_then(void **state)
{
	struct fixture *fixture = *state;

	assert_false(finds(fixture, 0));
	assert_false(finds(fixture, 6));
	name_stranger(&fixture->stranger);
	assert_false(finds(fixture, 8));
	assert_false(finds(fixture, 15));
	assert_true(finds(fixture, 16));
	assert_true(finds(fixture, 18));
}

static void a_new_one_is_read_alone(void **state)
{
	struct fixture *fixture = *state;
	const struct roster_entry *entry;
	struct stranger other;

	assert_false(finds(fixture, 0));
	assert_false(finds(fixture, 6));
	other = start_stranger();
	assert_false(finds(fixture, 8));
	entry = entry_of(fixture, other.tgid);
	assert_non_null(entry);
	assert_int_equal(entry->first_ns, 108 * NS_PER_S);
	assert_int_equal(entry->read_ns, 108 * NS_PER_S);
	assert_int_equal(entry_of(fixture, fixture->stranger.tgid)->read_ns, 106 * NS_PER_S);
	/* Kernel threads and the like are not read each time either. */
	entry = entry_of(fixture, (uint32_t)getpid());
	assert_true(entry->is_left_out);
	assert_int_equal(entry->read_ns, 106 * NS_PER_S);
	end_stranger(&other);
}

/* A child, which nobody else has to wait for: of a stranger's end its new parent may take no note.
 */
static void one_that_has_ended_is_gone(void **state)
{
	struct fixture *fixture = *state;
	int block[2];
	pid_t child;

	assert_int_equal(pipe(block), 0);
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		close(block[1]);
		_exit(read(block[0], &child, 1) != 0);
	}
	assert_false(finds(fixture, 0));
	assert_non_null(entry_of(fixture, (uint32_t)child));
	close(block[0]);
	close(block[1]);
	assert_int_equal(waitpid(child, NULL, 0), child);
	assert_false(finds(fixture, 1));
	assert_null(entry_of(fixture, (uint32_t)child));
}

static void other_options_are_asked_of_all(void **state)
{
	struct fixture *fixture = *state;

	name_stranger(&fixture->stranger);
	fixture->options.watch.comms.count = 0;
	assert_false(finds(fixture, 0));
	assert_false(finds(fixture, 6));
	fixture->options.watch.comms.count = 1;
	assert_false(finds(fixture, 8));
	roster_clear(&fixture->roster);
	assert_true(finds(fixture, 8));
}

static void a_child_of_ours_is_not_selected(void **state)
{
	struct fixture *fixture = *state;
	selected_vec found = {0};
	int block[2];
	pid_t child;

	name_stranger(&fixture->stranger);
	assert_int_equal(pipe(block), 0);
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		close(block[1]);
		prctl(PR_SET_NAME, comm);
		_exit(read(block[0], &child, 1) != 0);
	}
	assert_int_equal(roster_look(&fixture->roster, &fixture->options, NS_PER_S, &found), 0);
	assert_non_null(selected_find(&found, fixture->stranger.tgid));
	assert_null(selected_find(&found, (uint32_t)child));
	assert_non_null(entry_of(fixture, (uint32_t)child));
	vec_free(&found);
	close(block[0]);
	close(block[1]);
	assert_int_equal(waitpid(child, NULL, 0), child);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_young_process_is_read_each_time), TEST(an_old_one_is_read_now_and_then),
		TEST(a_new_one_is_read_alone),		 TEST(one_that_has_ended_is_gone),
		TEST(other_options_are_asked_of_all),	 TEST(a_child_of_ours_is_not_selected),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
