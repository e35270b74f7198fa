/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Looks at a real process that shares memory with this one, while a step of ours is late. */
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "record_keeper.h"
#include "shared_fixture.h"
#include "base/clock.h"
#include "stream/peers.h"

#define MS NS_PER_MS

enum { SLOTS = 128, LOOKS = 400 };

struct fixture {
	struct shared *shared;
	struct record_keeper keeper; /* all records but the links */
	struct fbt_peer_link link;   /* the latest */
	size_t links;
	struct record_output output;
	struct peers *peers;
	volatile char *memory; /* what the child does */
	struct fbt_slot *slot;
	int pipe; /* to which only the child may write */
	pid_t child;
};

/* With this policy a thread that wakes up has a CPU at once, whatever else runs. */
static void hurry(bool really)
{
	const struct sched_param param = {.sched_priority = really ? 1 : 0};

	(void)sched_setscheduler(0, really ? SCHED_FIFO : SCHED_OTHER, &param);
}

/*
 * Returns when the child has its name: before that it has this program's. On a busy machine too the
 * child sleeps for most of the time, and is looked at often.
 */
static pid_t start_child(volatile char *what)
{
	volatile char *named = what + 1;
	pid_t child;

	setpriority(PRIO_PROCESS, 0, -20);
	child = fork();
	assert_true(child >= 0);
	if (child) {
		while (!*named)
			nanosleep(&(struct timespec){0, (long)MS}, NULL);
		return child;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_NAME, "the-child");
	/* What it spins must not keep the tests beside this one from their CPUs. */
	setpriority(PRIO_PROCESS, 0, 0);
	*named = true;
	for (;;) {
		hurry(true);
		while (*what == 's')
			nanosleep(&(struct timespec){0, 20 * (long)MS}, NULL);
		hurry(false);
		while (*what != 's')
			;
	}
}

static void keep(void *ctx, const void *data, size_t size)
{
	struct fixture *fixture = ctx;

	if (((const struct fbt_header *)data)->type != FBT_EVENT_PEER_LINK) {
		keep_record(&fixture->keeper, data, size);
		return;
	}
	assert_int_equal(size, sizeof(fixture->link));
	memcpy(&fixture->link, data, size);
	fixture->links++;
}

static int setup(void **state)
{
	struct fixture *fixture = shared_alloc(1, sizeof(*fixture));
	int fds[2];

	fixture->shared = shared_new(SLOTS, 1, 10);
	fixture->output = (struct record_output){keep, fixture};
	fixture->peers = peers__new(fixture->shared, &fixture->output, NULL, true);
	assert_non_null(fixture->peers);
	fixture->memory =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(fixture->memory != MAP_FAILED);
	*fixture->memory = 's';
	assert_int_equal(pipe(fds), 0);
	fixture->pipe = fds[0];
	fixture->child = start_child(fixture->memory);
	close(fds[1]);
	fixture->shared->control->free_head = 1;
	fixture->slot = &fixture->shared->slots[1];
	fixture->slot->state = FBT_SLOT_LIVE;
	fixture->slot->tgid = fixture->slot->tid = (uint32_t)getpid();
	fixture->slot->nr = SYS_sched_yield;
	*state = fixture;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *fixture = *state;

	kill(fixture->child, SIGKILL);
	waitpid(fixture->child, NULL, 0);
	close(fixture->pipe);
	peers__free(fixture->peers);
	munmap((void *)fixture->memory, 4096);
	shared_free(fixture->shared);
	free(fixture);
	return 0;
}

/* A step of usual_ns that began late_ns ago. */
static void begin_step(struct fixture *fixture, uint64_t usual_ns, uint64_t late_ns)
{
	fixture->slot->step_usual_ns = usual_ns;
	fixture->slot->step_start_ns = clock_ns(CLOCK_MONOTONIC) - late_ns;
}

/* The latest record about the child; NULL: none. */
static const struct fbt_peer *latest(const struct fixture *fixture)
{
	for (size_t i = fixture->keeper.count; i-- > 0;) {
		const struct fbt_peer *peer = kept(&fixture->keeper, i, FBT_EVENT_PEER);

		if (peer->peer == (uint32_t)fixture->child)
			return peer;
	}
	return NULL;
}

/* Looks until the child was looked at for so long. */
static const struct fbt_peer *look_for(struct fixture *fixture, uint64_t ns)
{
	const struct fbt_peer *peer = NULL;

	for (int i = 0; i < LOOKS && (!peer || peer->time_ns - peer->first_ns < ns); i++) {
		peers__look(fixture->peers, clock_ns(CLOCK_MONOTONIC));
		nanosleep(&(struct timespec){0, 5 * (long)MS}, NULL);
		peer = latest(fixture);
		if (peer && peer->step_start_ns != fixture->slot->step_start_ns)
			peer = NULL;
	}
	return peer;
}

static void a_step_in_time_waits_for_nobody(void **state)
{
	struct fixture *fixture = *state;

	for (int i = 0; i < 10; i++) {
		begin_step(fixture, 10 * MS, 15 * MS);
		peers__look(fixture->peers, clock_ns(CLOCK_MONOTONIC));
		nanosleep(&(struct timespec){0, 5 * (long)MS}, NULL);
	}
	fixture->slot->step_start_ns = 0;
	peers__look(fixture->peers, clock_ns(CLOCK_MONOTONIC));
	assert_int_equal(fixture->keeper.count, 0);
}

static void a_process_that_sleeps_is_seen_asleep(void **state)
{
	struct fixture *fixture = *state;
	const struct fbt_peer *peer;

	begin_step(fixture, MS, 6 * MS);
	peer = look_for(fixture, 100 * MS);
	assert_non_null(peer);
	assert_true(peer->asleep_ns > (peer->time_ns - peer->first_ns) / 2);
	assert_int_equal(peer->stopped_ns, 0);
	assert_true(peer->nr == SYS_nanosleep || peer->nr == SYS_clock_nanosleep);
	assert_string_equal(peer->comm, "the-child");
	assert_int_equal(peer->way, FBT_PEER_MEMORY);
	assert_int_equal(peer->tid, getpid());
}

static void a_process_that_computes_is_seen_running_or_ready(void **state)
{
	struct fixture *fixture = *state;
	const struct fbt_peer *peer;

	*fixture->memory = 'c';
	begin_step(fixture, MS, 6 * MS);
	peer = look_for(fixture, 200 * MS);
	assert_non_null(peer);
	/* On a machine that has other things to do it may not have run. */
	assert_true(peer->cpu_ns + peer->delay_ns > (peer->time_ns - peer->first_ns) / 2);
}

static void a_process_that_is_stopped_is_seen_so(void **state)
{
	struct fixture *fixture = *state;
	const struct fbt_peer *peer;
	int status;

	assert_int_equal(kill(fixture->child, SIGSTOP), 0);
	assert_int_equal(waitpid(fixture->child, &status, WUNTRACED), fixture->child);
	begin_step(fixture, MS, 6 * MS);
	peer = look_for(fixture, 50 * MS);
	assert_non_null(peer);
	assert_int_equal(peer->stopped_ns, peer->time_ns - peer->first_ns);
	assert_int_equal(peer->stop_reason, FBT_STOP_SIGNAL);
}

static void a_process_that_has_done_nothing_since_the_last_wait_is_idle(void **state)
{
	struct fixture *fixture = *state;
	size_t count;
	int status;

	assert_int_equal(kill(fixture->child, SIGSTOP), 0);
	assert_int_equal(waitpid(fixture->child, &status, WUNTRACED), fixture->child);
	begin_step(fixture, MS, 6 * MS);
	assert_non_null(look_for(fixture, 20 * MS));
	count = fixture->keeper.count;
	nanosleep(&(struct timespec){0, 20 * (long)MS}, NULL);
	begin_step(fixture, MS, 6 * MS);
	for (int i = 0; i < 10; i++) {
		peers__look(fixture->peers, clock_ns(CLOCK_MONOTONIC));
		nanosleep(&(struct timespec){0, 10 * (long)MS}, NULL);
	}
	assert_int_equal(fixture->keeper.count, count);
	/* Nor does it count when peers are searched again. */
	begin_step(fixture, MS, 6 * MS);
	for (uint64_t i = 0; i < 10; i++) {
		peers__look(fixture->peers,
			    clock_ns(CLOCK_MONOTONIC) + 40 * NS_PER_S + i * NS_PER_S);
		nanosleep(&(struct timespec){0, 10 * (long)MS}, NULL);
	}
	assert_int_equal(fixture->keeper.count, count);
}

static void the_step_of_a_traced_peer_is_known(void **state)
{
	struct fixture *fixture = *state;
	struct fbt_slot *slot = &fixture->shared->slots[2];
	const struct fbt_peer *peer;

	fixture->shared->control->free_head = 2;
	slot->tgid = slot->tid = (uint32_t)fixture->child;
	slot->state = FBT_SLOT_LIVE;
	slot->step_kind = 3;
	slot->step_start_ns = clock_ns(CLOCK_MONOTONIC);
	slot->step_usual_ns = NS_PER_S * 100;
	begin_step(fixture, MS, 6 * MS);
	peer = look_for(fixture, 20 * MS);
	assert_non_null(peer);
	assert_int_equal(peer->kind, 3);
	assert_int_equal(peer->kind_start_ns, slot->step_start_ns);
	assert_int_equal(peer->peer_tid, fixture->child);
}

/* Its own steps tell what it did in waits that are too short to be looked at. */
static void who_shares_memory_is_told_before_a_step_is_late(void **state)
{
	struct fixture *fixture = *state;

	begin_step(fixture, 10 * MS, 0);
	fixture->slot->start_ns = fixture->slot->step_start_ns;
	for (int i = 0; i < LOOKS && !fixture->links; i++) {
		peers__look(fixture->peers, clock_ns(CLOCK_MONOTONIC));
		nanosleep(&(struct timespec){0, 5 * (long)MS}, NULL);
		begin_step(fixture, 10 * MS, 0);
		fixture->slot->start_ns = fixture->slot->step_start_ns;
	}
	assert_int_equal(fixture->links, 1);
	assert_int_equal(fixture->link.tgid, getpid());
	assert_int_equal(fixture->link.peer, fixture->child);
	assert_int_equal(fixture->keeper.count, 0);
}

static void other_calls_wait_for_no_process(void **state)
{
	struct fixture *fixture = *state;

	fixture->slot->nr = SYS_mmap;
	begin_step(fixture, MS, 6 * MS);
	for (int i = 0; i < 5; i++)
		peers__look(fixture->peers, clock_ns(CLOCK_MONOTONIC) + (uint64_t)i * 100 * MS);
	/* A lock of threads of one process. */
	fixture->slot->nr = SYS_futex;
	fixture->slot->call_args[0] = (uint64_t)(uintptr_t)fixture->memory;
	fixture->slot->call_args[1] = 128;
	peers__look(fixture->peers, clock_ns(CLOCK_MONOTONIC) + NS_PER_S);
	assert_int_equal(fixture->keeper.count, 0);
	fixture->slot->call_args[1] = 0;
	assert_non_null(look_for(fixture, 20 * MS));
	assert_int_equal(latest(fixture)->way, FBT_PEER_FUTEX);
}

/* A thread of this process, which holds the lock that the step waits for, reads from the child. */
static struct peer_wait read_in_holder(struct fixture *fixture, int fd)
{
	struct fbt_slot *holder = &fixture->shared->slots[2];

	fixture->slot->nr = SYS_futex;
	fixture->slot->call_args[0] = (uint64_t)(uintptr_t)fixture->memory;
	fixture->slot->call_args[1] = 128; /* FUTEX_PRIVATE_FLAG */
	fixture->slot->start_ns = clock_ns(CLOCK_MONOTONIC);
	fixture->shared->control->free_head = 2;
	holder->state = FBT_SLOT_LIVE;
	holder->tgid = (uint32_t)getpid();
	holder->start_ns = clock_ns(CLOCK_MONOTONIC);
	/* Numbers for which the fixture has a place. */
	fixture->slot->tid = 101;
	holder->tid = 102;
	fixture->shared->ids[0].slot[101] = 1;
	fixture->shared->ids[0].slot[102] = 2;
	return (struct peer_wait){.tgid = holder->tgid,
				  .tid = holder->tid,
				  .nr = SYS_read,
				  .call_ns = holder->start_ns,
				  .args = {(uint64_t)fd}};
}

/* For long enough that records would come, however long the step has been watched. */
static void count_looks(struct fixture *fixture, size_t wanted)
{
	for (int i = 0; i < 40; i++) {
		peers__look(fixture->peers, clock_ns(CLOCK_MONOTONIC));
		nanosleep(&(struct timespec){0, 5 * (long)MS}, NULL);
	}
	assert_int_equal(fixture->keeper.count, wanted);
}

static void a_step_waits_for_whom_the_holder_of_its_lock_waits_for(void **state)
{
	struct fixture *fixture = *state;
	struct peer_wait holder = read_in_holder(fixture, fixture->pipe);
	const struct fbt_peer *peer;
	size_t count;

	begin_step(fixture, MS, 6 * MS);
	count_looks(fixture, 0);
	peers__know_holder(fixture->peers, fixture->slot->tid, &holder);
	peer = look_for(fixture, 20 * MS);
	assert_non_null(peer);
	assert_int_equal(peer->way, FBT_PEER_PIPE);
	assert_int_equal(peer->via, holder.tid);
	assert_true(peer->asleep_ns > (peer->time_ns - peer->first_ns) / 2);
	/* A pipe is no memory that both look at. */
	assert_int_equal(fixture->links, 0);
	/* The holder goes on: this is another call. */
	count = fixture->keeper.count;
	fixture->shared->slots[2].start_ns++;
	count_looks(fixture, count);
	/* And so does the step. */
	fixture->shared->slots[2].start_ns--;
	fixture->slot->start_ns++;
	count_looks(fixture, count);
}

/* A thread of its own may write: then the child may only have inherited the other end. */
static void an_end_that_the_process_holds_itself_counts_as_one_more(void **state)
{
	struct fixture *fixture = *state;
	struct peer_wait holder = read_in_holder(fixture, fixture->pipe);
	const struct fbt_peer *peer;
	char path[32];
	int own;

	begin_step(fixture, MS, 6 * MS);
	peers__know_holder(fixture->peers, fixture->slot->tid, &holder);
	peer = look_for(fixture, 20 * MS);
	assert_non_null(peer);
	assert_int_equal(peer->others, 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fixture->pipe);
	own = open(path, O_WRONLY);
	assert_true(own >= 0);
	peers__free(fixture->peers);
	fixture->peers = peers__new(fixture->shared, &fixture->output, NULL, true);
	assert_non_null(fixture->peers);
	begin_step(fixture, MS, 6 * MS);
	peers__know_holder(fixture->peers, fixture->slot->tid, &holder);
	peer = look_for(fixture, 20 * MS);
	close(own);
	assert_non_null(peer);
	assert_int_equal(peer->others, 1);
}

static void a_holder_that_sleeps_waits_for_nobody(void **state)
{
	struct fixture *fixture = *state;
	struct peer_wait holder = read_in_holder(fixture, fixture->pipe);

	holder.nr = SYS_nanosleep;
	begin_step(fixture, MS, 6 * MS);
	peers__know_holder(fixture->peers, fixture->slot->tid, &holder);
	count_looks(fixture, 0);
}

/* Reads from the child while that is stopped, computes while it sleeps, and reads again. */
static void while_the_step_computes_it_waits_for_nobody(void **state)
{
	struct fixture *fixture = *state;
	const struct fbt_peer *peer;
	uint64_t stopped_ns, ended_ns;
	int status;

	assert_int_equal(kill(fixture->child, SIGSTOP), 0);
	assert_int_equal(waitpid(fixture->child, &status, WUNTRACED), fixture->child);
	fixture->slot->nr = SYS_read;
	fixture->slot->call_args[0] = (uint64_t)fixture->pipe;
	fixture->slot->start_ns = clock_ns(CLOCK_MONOTONIC);
	begin_step(fixture, MS, 6 * MS);
	peer = look_for(fixture, 50 * MS);
	assert_non_null(peer);
	assert_int_equal(peer->way, FBT_PEER_PIPE);
	stopped_ns = peer->stopped_ns;
	ended_ns = peer->time_ns;
	fixture->slot->start_ns = 0;
	kill(fixture->child, SIGCONT);
	count_looks(fixture, fixture->keeper.count);
	fixture->slot->start_ns = clock_ns(CLOCK_MONOTONIC);
	peer = look_for(fixture, fixture->slot->start_ns - latest(fixture)->first_ns + 30 * MS);
	assert_non_null(peer);
	assert_true(peer->stopped_ns >= stopped_ns);
	assert_true(peer->stopped_ns + peer->asleep_ns + peer->cpu_ns + peer->delay_ns <=
		    peer->time_ns - peer->first_ns - (fixture->slot->start_ns - ended_ns) +
			    20 * MS);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(a_step_in_time_waits_for_nobody),
		TEST(a_process_that_sleeps_is_seen_asleep),
		TEST(a_process_that_computes_is_seen_running_or_ready),
		TEST(a_process_that_is_stopped_is_seen_so),
		TEST(a_process_that_has_done_nothing_since_the_last_wait_is_idle),
		TEST(the_step_of_a_traced_peer_is_known),
		TEST(who_shares_memory_is_told_before_a_step_is_late),
		TEST(other_calls_wait_for_no_process),
		TEST(a_step_waits_for_whom_the_holder_of_its_lock_waits_for),
		TEST(an_end_that_the_process_holds_itself_counts_as_one_more),
		TEST(a_holder_that_sleeps_waits_for_nobody),
		TEST(while_the_step_computes_it_waits_for_nobody),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
