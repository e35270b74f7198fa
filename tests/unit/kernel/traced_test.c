/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "record_keeper.h"
#include "shared_fixture.h"
#include "kernel/traced.h"
#include "proc/status.h"
#include "proc/cpus.h"

#define SLOTS  16
#define NOBODY (1u << 22)

struct fixture {
	struct shared *shared;
	struct record_keeper keeper;
	struct record_output output;
	struct traced_set *set;
	struct process_sums sums;
};

static int setup(void **state)
{
	struct fixture *fixture = shared_alloc(1, sizeof(*fixture));

	/* The tests use real thread ids, which go up to the kernel's maximum. */
	fixture->shared = shared_new(SLOTS, 1, 4);
	free(fixture->shared->ids);
	fixture->shared->id_chunks = (1u << 22) / FBT_IDS;
	fixture->shared->ids = calloc(fixture->shared->id_chunks, sizeof(struct fbt_ids));
	assert_non_null(fixture->shared->ids);
	slots_init(fixture->shared);
	fixture->output = keeper_output(&fixture->keeper);
	fixture->set = traced_set__new(fixture->shared, &fixture->output);
	assert_non_null(fixture->set);
	*state = fixture;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *fixture = *state;

	traced_set__free(fixture->set);
	shared_free(fixture->shared);
	free(fixture);
	return 0;
}

/* Adds a thread that is traced since 0. It made one call of number nr at 10, which took ns. */
static uint32_t add_worker(struct fixture *fixture, uint32_t tgid, uint32_t tid, uint32_t nr,
			   uint64_t ns)
{
	int index = slots_take(fixture->shared, tgid, tid, 0);

	assert_true(index > 0);
	play_enter(fixture->shared, (uint32_t)index, nr, 10);
	play_exit(fixture->shared, (uint32_t)index, 0, 10 + ns);
	return (uint32_t)index;
}

static void collect(struct fixture *fixture)
{
	traced_set__mark_ended(fixture->set);
	traced_set__collect(fixture->set, NULL, NULL);
}

static void free_accepts_null(void **state)
{
	traced_set__free(NULL);
}

static void take_threads_of_a_process_that_is_gone_is_esrch(void **state)
{
	struct fixture *fixture = *state;

	assert_int_equal(traced_set__take_threads(fixture->set, NOBODY, 1), -ESRCH);
	assert_int_equal(traced_set__lost_threads(fixture->set), 0);
	assert_int_equal(fixture->shared->control->free_head, 0);
}

struct sleeper {
	pthread_t thread;
	int pipe[2];
	uint32_t tid;
};

static void *sleep_in_read(void *arg)
{
	struct sleeper *sleeper = arg;
	char byte;

	__atomic_store_n(&sleeper->tid, (uint32_t)gettid(), __ATOMIC_RELEASE);
	return read(sleeper->pipe[0], &byte, 1) < 0 ? sleeper : NULL;
}

/* ' ': it is gone. */
static char state_of(uint32_t tid)
{
	struct thread_stat stat;

	return thread_stat_read(&stat, (struct proc_ref){(uint32_t)getpid(), tid}) ? ' '
										   : stat.state;
}

/* Returns when it waits in read(). */
static void start_sleeper(struct sleeper *sleeper)
{
	sleeper->tid = 0;
	assert_int_equal(pipe2(sleeper->pipe, O_CLOEXEC), 0);
	assert_int_equal(pthread_create(&sleeper->thread, NULL, sleep_in_read, sleeper), 0);
	while (!__atomic_load_n(&sleeper->tid, __ATOMIC_ACQUIRE) || state_of(sleeper->tid) != 'S')
		usleep(100);
}

static void stop_sleeper(struct sleeper *sleeper)
{
	close(sleeper->pipe[1]);
	pthread_join(sleeper->thread, NULL);
	/* It is in /proc for a moment longer. */
	while (state_of(sleeper->tid) != ' ')
		usleep(100);
	close(sleeper->pipe[0]);
}

static void threads_without_a_slot_are_lost_once(void **state)
{
	struct fixture *fixture = *state;
	struct sleeper sleeper, later;
	struct traced *traced;

	fixture->shared->control->free_tail = 1;
	traced = traced_set__add(fixture->set, (uint32_t)getpid());
	start_sleeper(&sleeper);
	assert_int_equal(traced_set__take_threads(fixture->set, (uint32_t)getpid(), 1), 1);
	assert_int_equal(traced_set__take_threads(fixture->set, (uint32_t)getpid(), 1), 1);
	traced_set__count_missing(fixture->set, traced, 0);
	assert_int_equal(traced_set__lost_threads(fixture->set), 1);
	/* The kernel side has counted a thread that began in the window. */
	start_sleeper(&later);
	assert_int_equal(traced_set__take_threads(fixture->set, (uint32_t)getpid(), 1), 1);
	assert_int_equal(traced->missing, 2);
	assert_int_equal(traced_set__lost_threads(fixture->set), 1);
	fixture->shared->control->free_tail = 3;
	assert_int_equal(traced_set__take_threads(fixture->set, (uint32_t)getpid(), 1), 3);
	assert_int_equal(traced->missing, 0);
	stop_sleeper(&later);
	stop_sleeper(&sleeper);
	/* Calls that it made without a slot stay lost. */
	assert_int_equal(traced_set__lost_threads(fixture->set), 1);
}

/* What begins while the list is read is in it, and the kernel side has counted it. */
static void a_thread_that_begins_while_threads_are_listed_is_lost_once(void **state)
{
	struct fixture *fixture = *state;
	__u64 *counted = &fixture->shared->control->lost[FBT_LOST_THREADS];
	const uint64_t before = 7;
	struct sleeper sleeper, later;
	struct traced *traced;

	*counted = before;
	assert_int_equal(traced_set__counted(fixture->set), before);
	fixture->shared->control->free_tail = 1;
	traced = traced_set__add(fixture->set, (uint32_t)getpid());
	start_sleeper(&sleeper);
	start_sleeper(&later);
	*counted += 1;
	assert_int_equal(traced_set__take_threads(fixture->set, (uint32_t)getpid(), 1), 1);
	*counted += 2;
	traced_set__count_missing(fixture->set, traced, before);
	assert_int_equal(traced_set__lost_threads(fixture->set), 1);
	stop_sleeper(&later);
	stop_sleeper(&sleeper);
}

static void take_threads_gives_each_thread_a_slot_once(void **state)
{
	struct fixture *fixture = *state;
	uint32_t tgid = (uint32_t)getpid(), slot;
	struct sleeper sleeper;

	start_sleeper(&sleeper);
	assert_int_equal(traced_set__take_threads(fixture->set, tgid, 5), 2);
	assert_int_equal(traced_set__take_threads(fixture->set, tgid, 9), 2);
	slot = slots_find(fixture->shared, sleeper.tid);
	stop_sleeper(&sleeper);
	assert_int_not_equal(slot, 0);
	assert_int_not_equal(slots_find(fixture->shared, tgid), 0);
	assert_int_equal(fixture->shared->control->free_head, 2);
	assert_int_equal(fixture->shared->slots[slot].tgid, tgid);
	/*
	 * The thread is within a call that began before its slot, so none of its time counts yet.
	 */
	assert_int_equal(fixture->shared->slots[slot].born_ns, UINT64_MAX);
	assert_int_equal(fixture->shared->slots[slot].state, FBT_SLOT_LIVE);
}

/* The thread exited before it got a slot, so no program will report its end. */
static void take_threads_ends_a_thread_that_has_begun_to_end(void **state)
{
	struct fixture *fixture = *state;
	pid_t pid = fork();
	siginfo_t info;

	assert_true(pid >= 0);
	if (!pid)
		_exit(0);
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	assert_int_equal(traced_set__take_threads(fixture->set, (uint32_t)pid, 5), 0);
	waitpid(pid, NULL, 0);
	assert_int_equal(slots_find(fixture->shared, (uint32_t)pid), 0);
	assert_int_equal(fixture->shared->slots[1].state, FBT_SLOT_DEAD);
	assert_int_equal(fixture->shared->slots[1].died_ns, 5);
}

/* Linux 7 may leave out the program that ends slots. */
static void threads_that_ended_unseen_are_ended(void **state)
{
	struct fixture *fixture = *state;
	struct traced *traced = traced_set__add(fixture->set, (uint32_t)getpid());
	pid_t pid = fork();
	struct sleeper gone, stays;
	uint32_t slot;
	siginfo_t info;

	assert_true(pid >= 0);
	if (!pid)
		_exit(0);
	start_sleeper(&gone);
	start_sleeper(&stays);
	assert_int_equal(traced_set__take_threads(fixture->set, (uint32_t)getpid(), 1), 3);
	slot = slots_find(fixture->shared, gone.tid);
	stop_sleeper(&gone);
	traced_set__end_gone(fixture->set, traced, 9);
	assert_int_equal(fixture->shared->slots[slot].state, FBT_SLOT_DEAD);
	assert_int_equal(fixture->shared->slots[slot].died_ns, 9);
	assert_int_equal(slots_find(fixture->shared, gone.tid), 0);
	slot = slots_find(fixture->shared, stays.tid);
	assert_int_equal(fixture->shared->slots[slot].state, FBT_SLOT_LIVE);
	stop_sleeper(&stays);

	/* Nobody has waited for this one. */
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	traced = traced_set__add(fixture->set, (uint32_t)pid);
	slot = (uint32_t)slots_take(fixture->shared, (uint32_t)pid, (uint32_t)pid, 1);
	traced_set__end_gone(fixture->set, traced, 9);
	assert_int_equal(fixture->shared->slots[slot].state, FBT_SLOT_DEAD);
	waitpid(pid, NULL, 0);
}

static void a_thread_that_cannot_be_read_has_not_ended(void **state)
{
	struct fixture *fixture = *state;
	struct traced *traced = traced_set__add(fixture->set, (uint32_t)getpid());
	uint32_t pid = (uint32_t)getpid(), slot;
	struct rlimit before, none;

	slot = (uint32_t)slots_take(fixture->shared, pid, pid, 1);
	getrlimit(RLIMIT_NOFILE, &before);
	none = (struct rlimit){0, before.rlim_max};
	setrlimit(RLIMIT_NOFILE, &none);
	traced_set__end_gone(fixture->set, traced, 9);
	setrlimit(RLIMIT_NOFILE, &before);
	assert_int_equal(fixture->shared->slots[slot].state, FBT_SLOT_LIVE);
}

static void find_knows_no_untraced_thread(void **state)
{
	struct fixture *fixture = *state;

	traced_set__add(fixture->set, 7);
	assert_null(traced_set__find(fixture->set, 8));
	assert_null(traced_set__at(fixture->set, 1));
}

static void add_finds_what_is_there(void **state)
{
	struct fixture *fixture = *state;
	struct traced *traced = traced_set__add(fixture->set, 7);

	assert_int_equal(traced->tgid, 7);
	assert_true(traced->rescan);
	assert_ptr_equal(traced_set__add(fixture->set, 7), traced);
	assert_ptr_equal(traced_set__find(fixture->set, 7), traced);
	assert_null(traced_set__at(fixture->set, 1));
}

/* Between windows nothing says that a process has ended, and another one may get its number. */
static void another_process_of_that_number_is_not_it(void **state)
{
	struct fixture *fixture = *state;
	struct traced *traced = traced_set__add(fixture->set, (uint32_t)getpid());

	assert_true(traced->start_ticks);
	assert_true(traced_is_there(traced));
	traced->start_ticks--;
	assert_false(traced_is_there(traced));
	assert_false(traced_is_there(traced_set__add(fixture->set, NOBODY)));
}

static void at_goes_in_the_order_of_coming(void **state)
{
	struct fixture *fixture = *state;

	for (uint32_t tgid = 20; tgid > 0; tgid--)
		traced_set__add(fixture->set, tgid);
	for (uint32_t i = 0; i < 20; i++)
		assert_int_equal(traced_set__at(fixture->set, i)->tgid, 20 - i);
}

static void collect_without_a_mark_gives_nothing_back(void **state)
{
	struct fixture *fixture = *state;
	uint32_t index = add_worker(fixture, 7, 7, 1, 5);

	traced_set__add(fixture->set, 7);
	traced_set__mark_ended(fixture->set);
	slots_end(fixture->shared, 7, 100);
	traced_set__collect(fixture->set, NULL, NULL);
	assert_int_equal(fixture->shared->slots[index].state, FBT_SLOT_DEAD);
	collect(fixture);
	assert_int_equal(fixture->shared->slots[index].state, FBT_SLOT_FREE);
}

static void collect_frees_the_slot_of_an_unknown_process_once(void **state)
{
	struct fixture *fixture = *state;
	uint32_t index = add_worker(fixture, 9, 9, 1, 5);
	uint64_t tail = fixture->shared->control->free_tail;

	slots_end(fixture->shared, 9, 100);
	collect(fixture);
	assert_int_equal(fixture->shared->slots[index].state, FBT_SLOT_FREE);
	traced_set__collect(fixture->set, NULL, NULL);
	assert_int_equal(fixture->shared->control->free_tail, tail + 1);
}

static void collect_keeps_what_an_ended_thread_counted(void **state)
{
	struct fixture *fixture = *state;
	struct traced *traced = traced_set__add(fixture->set, 7);

	add_worker(fixture, 7, 7, 1, 5);
	add_worker(fixture, 7, 8, 1, 6);
	slots_end(fixture->shared, 8, 100);
	collect(fixture);
	collect(fixture);
	traced_set__sum(fixture->set, traced, 200, &fixture->sums);
	assert_int_equal(fixture->sums.rows[1].calls, 2);
	assert_int_equal(fixture->sums.rows[1].ns, 11);
	assert_int_equal(fixture->sums.thread_ns, 300);
	assert_int_equal(fixture->sums.threads, 1);
}

static void collect_counts_the_threads_that_live(void **state)
{
	struct fixture *fixture = *state;
	struct traced *seven = traced_set__add(fixture->set, 7);
	struct traced *nine = traced_set__add(fixture->set, 9);

	for (uint32_t tid = 7; tid < 9; tid++)
		add_worker(fixture, 7, tid, 1, 5);
	for (uint32_t tid = 9; tid < 12; tid++)
		add_worker(fixture, 9, tid, 1, 5);
	slots_end(fixture->shared, 8, 100);
	slots_end(fixture->shared, 7, 100);
	collect(fixture);
	assert_int_equal(seven->live_threads, 0);
	assert_int_equal(nine->live_threads, 3);
}

static void sum_is_the_same_before_and_after_collect(void **state)
{
	struct fixture *fixture = *state;
	struct traced *traced = traced_set__add(fixture->set, 7);
	struct process_sums *before = shared_alloc(1, sizeof(*before));
	uint32_t index = add_worker(fixture, 7, 7, 1, 5);

	play_enter(fixture->shared, index, 231, 50);
	slots_end(fixture->shared, 7, 60);
	traced_set__sum(fixture->set, traced, 200, before);
	collect(fixture);
	traced_set__sum(fixture->set, traced, 200, &fixture->sums);
	assert_int_equal(before->rows[1].calls, 1);
	assert_int_equal(before->unfinished[231], 1);
	assert_int_equal(before->thread_ns, 60);
	assert_memory_equal(before, &fixture->sums, sizeof(*before));
	free(before);
}

static void sum_takes_no_thread_of_another_process(void **state)
{
	struct fixture *fixture = *state;
	struct traced *traced = traced_set__add(fixture->set, 7);

	add_worker(fixture, 8, 8, 1, 5);
	traced_set__sum(fixture->set, traced, 200, &fixture->sums);
	assert_int_equal(fixture->sums.rows[1].calls, 0);
	assert_int_equal(fixture->sums.threads, 0);
	assert_int_equal(fixture->sums.thread_ns, 0);
}

static void sum_reaches_the_last_slot(void **state)
{
	struct fixture *fixture = *state;
	struct traced *traced = traced_set__add(fixture->set, 7);

	for (uint32_t tid = 1; tid < SLOTS; tid++)
		add_worker(fixture, 7, tid, 1, 5);
	/* When slots are reused, the free list's head goes beyond the number of slots. */
	slots_end(fixture->shared, 3, 60);
	collect(fixture);
	add_worker(fixture, 7, 3, 1, 5);
	traced_set__sum(fixture->set, traced, 200, &fixture->sums);
	assert_int_equal(fixture->sums.rows[1].calls, SLOTS);
	assert_int_equal(fixture->sums.threads, SLOTS - 1);
}

static void table_has_a_row_for_each_number_that_was_called_or_is_open(void **state)
{
	struct fixture *fixture = *state;
	struct traced *traced = traced_set__add(fixture->set, 7);
	uint32_t index = add_worker(fixture, 7, 7, 3, 5);
	const struct fbt_table *row;

	play_enter(fixture->shared, index, 202, 40);
	traced_set__send_table(fixture->set, traced, 100);
	assert_true(fixture->keeper.count >= 3);
	row = kept(&fixture->keeper, 0, FBT_EVENT_TABLE);
	assert_int_equal(row->tgid, 7);
	assert_int_equal(row->nr, 3);
	assert_int_equal(row->sum.calls, 1);
	assert_int_equal(row->sum.ns, 5);
	assert_int_equal(row->sum.max_ns, 5);
	assert_int_equal(row->unfinished, 0);
	row = kept(&fixture->keeper, 1, FBT_EVENT_TABLE);
	assert_int_equal(row->nr, 202);
	assert_int_equal(row->sum.calls, 0);
	assert_int_equal(row->unfinished, 1);
}

static void remove_sends_the_table_and_then_the_exit(void **state)
{
	struct fixture *fixture = *state;
	struct traced *traced = traced_set__add(fixture->set, 7);
	const struct fbt_target_exit *gone;

	add_worker(fixture, 7, 7, 3, 5);
	slots_end(fixture->shared, 7, 60);
	collect(fixture);
	traced_set__remove(fixture->set, traced, 100);
	assert_int_equal(fixture->keeper.count, 3);
	kept(&fixture->keeper, 0, FBT_EVENT_THREAD_USE);
	kept(&fixture->keeper, 1, FBT_EVENT_TABLE);
	gone = kept(&fixture->keeper, 2, FBT_EVENT_TARGET_EXIT);
	assert_int_equal(gone->tgid, 7);
	assert_int_equal(gone->end_ns, 100);
	assert_null(traced_set__find(fixture->set, 7));
}

/* Stores what the BPF program stores when a thread exits. */
static void end_worker(struct fixture *fixture, uint32_t index, uint64_t cpu_ns, uint64_t delay_ns)
{
	struct fbt_slot *slot = &fixture->shared->slots[index];

	slots_end(fixture->shared, slot->tid, 100);
	slot->died_cpu_ns = cpu_ns;
	slot->died_delay_ns = delay_ns;
	memcpy(slot->died_comm, "worker", sizeof("worker"));
}

static void a_thread_that_has_ended_says_what_it_used_once(void **state)
{
	struct fixture *fixture = *state;
	struct traced *traced = traced_set__add(fixture->set, 7);
	uint32_t index = add_worker(fixture, 7, 8, 3, 5);
	const struct fbt_thread_use *use;

	fixture->shared->slots[index].born_cpu_ns = 1000;
	fixture->shared->slots[index].born_delay_ns = 200;
	end_worker(fixture, index, 1700, 250);
	collect(fixture);
	assert_int_equal(fixture->keeper.count, 1);
	use = kept(&fixture->keeper, 0, FBT_EVENT_THREAD_USE);
	assert_int_equal(use->tgid, 7);
	assert_int_equal(use->tid, 8);
	assert_int_equal(use->header.flags, FBT_USE_CPU_KNOWN | FBT_USE_ENDED);
	assert_int_equal(use->calls, 1);
	assert_int_equal(use->call_ns, 5);
	assert_int_equal(use->cpu_ns, 700);
	assert_int_equal(use->delay_ns, 50);
	assert_string_equal(use->comm, "worker");
	traced_set__send_table(fixture->set, traced, 100);
	assert_int_equal(fixture->keeper.count, 2);
}

static void what_a_thread_used_is_unknown_without_both_counters(void **state)
{
	struct fixture *fixture = *state;
	uint32_t first, second;
	const struct fbt_thread_use *use;

	traced_set__add(fixture->set, 7);
	first = add_worker(fixture, 7, 8, 3, 5);
	second = add_worker(fixture, 7, 9, 3, 5);
	fixture->shared->slots[second].born_cpu_ns = 1000;
	end_worker(fixture, first, 1700, 0);
	end_worker(fixture, second, FBT_USE_UNKNOWN, 0);
	collect(fixture);
	for (size_t i = 0; i < 2; i++) {
		use = kept(&fixture->keeper, i, FBT_EVENT_THREAD_USE);
		assert_int_equal(use->header.flags, FBT_USE_ENDED);
		assert_int_equal(use->calls, 1);
		assert_int_equal(use->cpu_ns, 0);
	}
}

static void a_thread_that_was_ending_when_it_got_a_slot_says_nothing(void **state)
{
	struct fixture *fixture = *state;

	traced_set__add(fixture->set, 7);
	assert_true(slots_take(fixture->shared, 7, 8, 5) > 0);
	slots_end(fixture->shared, 8, 5);
	collect(fixture);
	assert_int_equal(fixture->keeper.count, 0);
}

static uint32_t count_own_cpus(void)
{
	cpu_set_t own;

	assert_int_equal(sched_getaffinity(0, sizeof(own), &own), 0);
	return (uint32_t)CPU_COUNT(&own);
}

static void a_thread_that_lives_says_what_it_used_with_its_name(void **state)
{
	struct fixture *fixture = *state;
	uint32_t tgid = (uint32_t)getpid();
	struct traced *traced = traced_set__add(fixture->set, tgid);
	const struct fbt_thread_use *use;
	const struct fbt_cpus *cpus;
	struct sleeper sleeper;
	uint64_t end_ns;
	char name[16];

	start_sleeper(&sleeper);
	traced_set__take_threads(fixture->set, tgid, 5);
	end_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) + 60000000;
	while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < end_ns)
		;
	fixture->shared->slots[slots_find(fixture->shared, tgid)].step_end_ns = 1;
	traced_set__send_table(fixture->set, traced, 100);
	stop_sleeper(&sleeper);
	assert_int_equal(fixture->keeper.count, 3);
	use = kept(&fixture->keeper, 0, FBT_EVENT_THREAD_USE);
	assert_int_equal(use->tid, tgid);
	assert_int_equal(use->header.flags, FBT_USE_CPU_KNOWN | FBT_USE_STEPS);
	assert_in_range(use->cpu_ns, 40000000, 1000000000);
	prctl(PR_GET_NAME, name);
	assert_string_equal(use->comm, name);
	use = kept(&fixture->keeper, 1, FBT_EVENT_THREAD_USE);
	assert_int_equal(use->tid, sleeper.tid);
	assert_int_equal(use->header.flags, FBT_USE_CPU_KNOWN);
	assert_in_range(use->cpu_ns, 0, 30000000);
	assert_int_equal(use->traced_ns, 95);
	cpus = kept(&fixture->keeper, 2, FBT_EVENT_CPUS);
	assert_int_equal(cpus->tgid, tgid);
	assert_int_equal(cpus->cpus, count_own_cpus());
}

static void the_cpus_of_threads_are_counted_once(void **state)
{
	struct cpus cpus = {{0}};

	assert_int_equal(cpus_add(&cpus, (uint32_t)getpid()), 0);
	assert_int_equal(cpus_add(&cpus, (uint32_t)getpid()), 0);
	assert_int_equal(cpus_count(&cpus), count_own_cpus());
	assert_int_equal(cpus_add(&cpus, 0x7fffffff), -ESRCH);
}

static void forget_is_silent_and_leaves_the_others(void **state)
{
	struct fixture *fixture = *state;

	for (uint32_t tgid = 1; tgid <= 3; tgid++)
		traced_set__add(fixture->set, tgid);
	traced_set__forget(fixture->set, traced_set__find(fixture->set, 1));
	assert_int_equal(fixture->keeper.count, 0);
	assert_null(traced_set__find(fixture->set, 1));
	assert_non_null(traced_set__find(fixture->set, 2));
	assert_non_null(traced_set__find(fixture->set, 3));
	assert_null(traced_set__at(fixture->set, 2));
}

static void a_process_keeps_its_place_in_cookies(void **state)
{
	struct fixture *fixture = *state;
	const uint64_t one = 1ull << FBT_PROBE_ONLY_SHIFT;

	for (uint32_t tgid = 1; tgid < FBT_ONLY_COUNT; tgid++) {
		traced_set__add(fixture->set, tgid);
		assert_int_equal(traced_set__only(fixture->set, tgid), tgid * one);
	}
	assert_int_equal(traced_set__only(fixture->set, 5), 5 * one);
	assert_int_equal(traced_set__only(fixture->set, FBT_ONLY_COUNT), 0);
	traced_set__forget(fixture->set, traced_set__find(fixture->set, 7));
	assert_int_equal(traced_set__only(fixture->set, FBT_ONLY_COUNT), 7 * one);
	assert_int_equal(fixture->shared->control->only_tgids[7], FBT_ONLY_COUNT);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(free_accepts_null),
		TEST(take_threads_of_a_process_that_is_gone_is_esrch),
		TEST(threads_without_a_slot_are_lost_once),
		TEST(a_thread_that_begins_while_threads_are_listed_is_lost_once),
		TEST(take_threads_gives_each_thread_a_slot_once),
		TEST(take_threads_ends_a_thread_that_has_begun_to_end),
		TEST(threads_that_ended_unseen_are_ended),
		TEST(a_thread_that_cannot_be_read_has_not_ended),
		TEST(find_knows_no_untraced_thread),
		TEST(add_finds_what_is_there),
		TEST(another_process_of_that_number_is_not_it),
		TEST(at_goes_in_the_order_of_coming),
		TEST(collect_without_a_mark_gives_nothing_back),
		TEST(collect_frees_the_slot_of_an_unknown_process_once),
		TEST(collect_keeps_what_an_ended_thread_counted),
		TEST(collect_counts_the_threads_that_live),
		TEST(sum_is_the_same_before_and_after_collect),
		TEST(sum_takes_no_thread_of_another_process),
		TEST(sum_reaches_the_last_slot),
		TEST(table_has_a_row_for_each_number_that_was_called_or_is_open),
		TEST(remove_sends_the_table_and_then_the_exit),
		TEST(a_thread_that_has_ended_says_what_it_used_once),
		TEST(what_a_thread_used_is_unknown_without_both_counters),
		TEST(a_thread_that_was_ending_when_it_got_a_slot_says_nothing),
		TEST(a_thread_that_lives_says_what_it_used_with_its_name),
		TEST(the_cpus_of_threads_are_counted_once),
		TEST(forget_is_silent_and_leaves_the_others),
		TEST(a_process_keeps_its_place_in_cookies),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
