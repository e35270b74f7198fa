/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Waits for a thread of the process. If that thread works, the wait is work; else the cause is what
 * the thread did.
 */
#include "judged_fixture.h"

#include <errno.h>
#include "judge/cause.h"
#include "judge/text.h"

struct fixture {
	struct window *window;
	struct step step;
};

static void name_thread(struct window *window, uint32_t tid, const char *comm)
{
	struct fbt_thread_name thread = {.tgid = 7, .tid = tid};

	strcpy(thread.comm, comm);
	assert_int_equal(window__add_thread(window, &thread), 0);
}

static int setup(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	assert_non_null(fixture);
	fixture->window = new_window();
	name_thread(fixture->window, 8, "worker");
	fixture->step = make_step(100 * MS);
	*state = fixture;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *fixture = *state;

	vec_free(&fixture->step.wakes);
	free_step(&fixture->step);
	window__free(fixture->window);
	free(fixture);
	return 0;
}

/*
 * Adds a wait of 60 ms. The caller fills in what the waker did. The result is valid until the next
 * call.
 */
static struct fbt_wake *add_wait(struct fixture *fixture, uint32_t waker)
{
	struct fbt_call *call = add_call(&fixture->step, "futex", 60 * MS);
	struct fbt_wake wake = {.tgid = 7,
				.tid = 7,
				.start_ns = call->start_ns,
				.wake_ns = call->start_ns + 59 * MS,
				.nr = nr_of("clock_nanosleep"),
				.waker_tid = waker};

	call->header.flags |= FBT_CALL_BLOCKED;
	call->args[0] = 0x1000;
	assert_int_equal(vec_push(&fixture->step.wakes, wake), 0);
	return &fixture->step.wakes.items[fixture->step.wakes.count - 1];
}

static struct cause_times split(struct fixture *fixture)
{
	struct cause_times times;
	uint64_t sum = 0;

	cause_split(fixture->window, &fixture->step, &times);
	for (int i = 0; i < CAUSE_COUNT; i++)
		sum += times.ns[i];
	assert_int_equal(sum, step_total_ns(&fixture->step));
	assert_true(times.worker_ns <= times.ns[CAUSE_COMPUTE]);
	assert_int_equal(times.covered_ns, 0);
	return times;
}

/*
 * The cause for a step that usually computes for 40 ms and does nothing else. Compares the evidence
 * with said.
 */
static enum cause_kind cause_of(struct fixture *fixture, const char *said)
{
	struct cause_times times = split(fixture);
	struct cause_times usual = {.ns = {[CAUSE_COMPUTE] = 40 * MS}};
	char text[EVIDENCE_SIZE];
	struct cause cause;

	cause_find(fixture->window, &fixture->step, &times, &usual, &cause);
	cause_describe(&cause, fixture->window, text, sizeof(text));
	assert_string_equal(text, said);
	return cause.kind;
}

static void find_cause(struct fixture *fixture, struct cause *cause)
{
	struct cause_times times = split(fixture);
	struct cause_times usual = {.ns = {[CAUSE_COMPUTE] = 40 * MS}};

	cause_find(fixture->window, &fixture->step, &times, &usual, cause);
}

static void a_wait_for_a_thread_that_computes_is_work(void **state)
{
	struct fixture *fixture = *state;
	struct cause_times times;
	struct fbt_wake *wake = add_wait(fixture, 8);

	wake->cpu_ns = 58 * MS;
	wake->call_ns = MS;
	times = split(fixture);
	assert_int_equal(cause_work_ns(&times), 98 * MS);
	assert_int_equal(times.worker_ns, 58 * MS);
	assert_int_equal(times.ns[CAUSE_LOCK_CONTENTION], 2 * MS);
	assert_int_equal(cause_of(fixture, "work 98.0 ms (usually 40.0 ms), 58.0 ms of it by "
					   "thread 8 \"worker\", for which the step waited"),
			 CAUSE_COMPUTE);
}

static void a_lock_of_a_thread_that_computes_is_a_lock(void **state)
{
	struct fixture *fixture = *state;
	struct cause_times times;
	struct fbt_wake *wake = add_wait(fixture, 8);

	wake->cpu_ns = 58 * MS;
	wake->flags = FBT_WAKE_LOCK;
	times = split(fixture);
	assert_int_equal(cause_work_ns(&times), 40 * MS);
	assert_int_equal(times.ns[CAUSE_LOCK_CONTENTION], 60 * MS);
	assert_int_equal(
		cause_of(fixture,
			 "futex 60.0 ms (usually none), 1 of 1 call blocked, lock at "
			 "0x1000, held by thread 8 \"worker\", which computed for 58.0 ms"),
		CAUSE_LOCK_CONTENTION);
}

/* A wait of 40 ms for another lock. */
static struct fbt_wake *add_other_wait(struct fixture *fixture, uint32_t waker)
{
	struct fbt_wake *wake = add_wait(fixture, waker);
	struct fbt_call *call = &fixture->step.calls.items[fixture->step.calls.count - 1];

	call->args[0] = 0x2000;
	call->duration_ns = 40 * MS;
	fixture->step.record.sums[FBT_FUTEX].ns -= 20 * MS;
	wake->wake_ns = call->start_ns + 39 * MS;
	wake->cpu_ns = 38 * MS;
	wake->flags = FBT_WAKE_LOCK;
	return wake;
}

/* Of the last call. */
static void add_stack(struct step *step, uint32_t code)
{
	const struct fbt_call *call = &step->calls.items[step->calls.count - 1];
	const struct fbt_stack stack = {.start_ns = call->start_ns,
					.tgid = 7,
					.tid = 7,
					.owner = 7,
					.nr = call->nr,
					.count = 1,
					.codes = {code}};

	assert_int_equal(vec_push(&step->stacks, stack), 0);
}

/* The longest single wait was for another lock than the one that took most. */
static void who_held_another_lock_explains_nothing(void **state)
{
	struct fixture *fixture = *state;
	const struct fbt_look_thread holder = {
		.tgid = 7, .tid = 7, .start_ns = 0, .time_ns = 20 * MS, .owner = 8, .depth = 1};
	char text[EVIDENCE_SIZE];
	struct fbt_wake *wake;
	struct cause cause;

	fixture->step = make_step(200 * MS);
	wake = add_wait(fixture, 8);
	add_stack(&fixture->step, 5);
	wake->cpu_ns = 58 * MS;
	wake->flags = FBT_WAKE_LOCK;
	assert_int_equal(vec_push(&fixture->step.looks, holder), 0);
	fixture->step.looks.items[0].start_ns = fixture->step.calls.items[0].start_ns;
	fixture->step.looks.items[0].time_ns += fixture->step.looks.items[0].start_ns;
	add_other_wait(fixture, 9);
	add_stack(&fixture->step, 6);
	add_other_wait(fixture, 9);
	add_stack(&fixture->step, 7);
	find_cause(fixture, &cause);
	cause_describe(&cause, fixture->window, text, sizeof(text));
	assert_string_equal(text, "futex 140 ms (usually none), 3 of 3 calls blocked, lock at "
				  "0x2000, held by thread 9, which computed for 76.0 ms");
	assert_int_equal(cause.stack.codes[0], 6);
	vec_free(&fixture->step.stacks);
	vec_free(&fixture->step.looks);
}

/* The thread lacked a CPU before the step waited for it too. */
static void who_took_the_cpu_did_so_for_no_longer_than_the_wait(void **state)
{
	struct fixture *fixture = *state;
	struct fbt_wake *wake = add_wait(fixture, 8);
	const struct fbt_taken taken = {.header.type = FBT_EVENT_TAKEN,
					.tid = 8,
					.waited_ns = 80 * MS,
					.count = 1,
					.takers = {{.tgid = 9, .ns = 78 * MS, .comm = "hog"}}};
	struct cause cause;

	wake->delay_ns = 40 * MS;
	assert_int_equal(vec_push(&fixture->step.takens, taken), 0);
	find_cause(fixture, &cause);
	assert_int_equal(cause.kind, CAUSE_RUN_QUEUE);
	assert_int_equal(cause.taken.waited_ns, 40 * MS);
	assert_int_equal(cause.taken.takers[0].ns, 39 * MS);
	vec_free(&fixture->step.takens);
}

/* It queued before the step, and had the lock for a moment only: another one held it. */
static void who_waited_for_a_lock_itself_is_not_its_holder(void **state)
{
	struct fixture *fixture = *state;

	fixture->step = make_step(160 * MS);
	for (int i = 0; i < 2; i++) {
		struct fbt_wake *wake = add_wait(fixture, 8);

		wake->cpu_ns = 24 * MS;
		wake->call_ns = wake->nr_ns = 35 * MS;
		wake->nr = nr_of("futex");
		wake->flags = FBT_WAKE_LOCK;
	}
	assert_int_equal(
		cause_of(fixture,
			 "futex 120 ms (usually none), 2 of 2 calls blocked, lock at 0x1000, "
			 "released by thread 8 \"worker\", which was in futex itself for 70.0 ms"),
		CAUSE_LOCK_CONTENTION);
	/* It had the lock for most of the time. */
	fixture->step.wakes.items[0].nr_ns = 10 * MS;
	assert_int_equal(
		cause_of(fixture,
			 "futex 120 ms (usually none), 2 of 2 calls blocked, lock at 0x1000, "
			 "held by thread 8 \"worker\", which computed for 48.0 ms"),
		CAUSE_LOCK_CONTENTION);
}

/* Its CPU time is that of all waits, so its calls must be too. */
static void what_a_holder_did_is_summed_up_over_all_waits(void **state)
{
	struct fixture *fixture = *state;

	fixture->step = make_step(220 * MS);
	for (int i = 0; i < 3; i++) {
		struct fbt_wake *wake = add_wait(fixture, 8);

		wake->cpu_ns = 15 * MS;
		wake->call_ns = wake->nr_ns = 40 * MS;
		wake->nr = nr_of("read");
		wake->flags = FBT_WAKE_LOCK;
	}
	assert_int_equal(
		cause_of(fixture,
			 "futex 180 ms (usually none), 3 of 3 calls blocked, lock at 0x1000, "
			 "held by thread 8 \"worker\", which was in read for 120 ms"),
		CAUSE_LOCK_CONTENTION);
	/* In the longest wait it was in another call, but not for as long as in all others. */
	fixture->step.wakes.items[2].nr = nr_of("clock_nanosleep");
	fixture->step.wakes.items[2].nr_ns = 50 * MS;
	assert_int_equal(
		cause_of(fixture,
			 "futex 180 ms (usually none), 3 of 3 calls blocked, lock at 0x1000, "
			 "held by thread 8 \"worker\", which was in read for 80.0 ms"),
		CAUSE_LOCK_CONTENTION);
}

/* Who ended it, and then a wait that timed out after so long. */
static uint32_t waker_beside_a_timeout(struct fixture *fixture, uint64_t timeout_ns)
{
	struct fbt_call *call;
	struct cause cause;

	free_step(&fixture->step);
	vec_free(&fixture->step.wakes);
	fixture->step = make_step(100 * MS + timeout_ns);
	add_wait(fixture, 8)->flags = FBT_WAKE_LOCK;
	call = add_call(&fixture->step, "futex", timeout_ns);
	call->header.flags |= FBT_CALL_BLOCKED;
	call->args[0] = 0x2000;
	call->ret = -ETIMEDOUT;
	find_cause(fixture, &cause);
	assert_int_equal(cause.kind, CAUSE_LOCK_CONTENTION);
	return cause.waker.tid;
}

/* Nobody woke the longer one: who ended the other had no part in it. */
static void who_ended_a_short_wait_is_not_named_for_a_long_one(void **state)
{
	assert_int_equal(waker_beside_a_timeout(*state, 50 * MS), 8);
	assert_int_equal(waker_beside_a_timeout(*state, 300 * MS), 0);
}

/* It took 0.1 ms of the wait for a CPU: the step's own thread had none. */
static void a_short_wait_for_another_thread_does_not_hide_who_took_the_cpu(void **state)
{
	struct fixture *fixture = *state;
	struct fbt_wake *wake;
	struct cause cause;

	fixture->step = make_step(400 * MS);
	wake = add_wait(fixture, 8);
	wake->cpu_ns = 58 * MS;
	wake->delay_ns = MS / 10;
	fixture->step.record.run_delay_ns = 200 * MS;
	fixture->step.taken = (struct fbt_taken){
		.header.type = FBT_EVENT_TAKEN,
		.waited_ns = 200 * MS,
		.count = 1,
		.takers = {{.tgid = 99, .ns = 199 * MS, .comm = "stress-ng"}},
	};
	find_cause(fixture, &cause);
	assert_int_equal(cause.kind, CAUSE_RUN_QUEUE);
	assert_int_equal(cause.taken.takers[0].tgid, 99);
}

static void a_wait_for_a_thread_without_a_cpu_is_one_for_a_cpu(void **state)
{
	struct fixture *fixture = *state;
	struct fbt_wake *wake = add_wait(fixture, 8);

	wake->cpu_ns = 9 * MS;
	wake->delay_ns = 50 * MS;
	assert_int_equal(split(fixture).ns[CAUSE_RUN_QUEUE], 50 * MS);
	assert_int_equal(cause_of(fixture,
				  "waited 50.0 ms for a CPU (usually none), 50.0 ms of it by "
				  "thread 8 \"worker\", for which the step waited"),
			 CAUSE_RUN_QUEUE);
	/* The step's own wait for a CPU is added. */
	fixture->step.record.run_delay_ns = 3 * MS;
	assert_int_equal(cause_of(fixture,
				  "waited 53.0 ms for a CPU (usually none), 50.0 ms of it by "
				  "thread 8 \"worker\", for which the step waited"),
			 CAUSE_RUN_QUEUE);
}

static void the_call_is_named_in_which_a_thread_was_that_did_not_run(void **state)
{
	struct fixture *fixture = *state;
	struct fbt_wake *wake = add_wait(fixture, 9);

	wake->call_ns = 59 * MS;
	wake->nr_ns = 58 * MS;
	assert_int_equal(cause_of(fixture,
				  "futex 60.0 ms (usually none), 1 of 1 call blocked, lock at "
				  "0x1000, woken by thread 9, which was in clock_nanosleep for "
				  "58.0 ms"),
			 CAUSE_LOCK_CONTENTION);
}

static void a_barrier_has_no_holder(void **state)
{
	struct fixture *fixture = *state;
	struct fbt_wake *wake = add_wait(fixture, 8);

	wake->call_ns = wake->nr_ns = 59 * MS;
	wake->flags = FBT_WAKE_ALL;
	assert_int_equal(split(fixture).ns[CAUSE_LOCK_CONTENTION], 0);
	assert_int_equal(cause_of(fixture,
				  "futex 60.0 ms (usually none), 1 of 1 call blocked, for thread 8 "
				  "\"worker\", which was in clock_nanosleep for 59.0 ms"),
			 CAUSE_LATE_THREAD);
	/* A thread that computes until it arrives is not late. */
	wake->call_ns = wake->nr_ns = 0;
	wake->cpu_ns = 59 * MS;
	assert_int_equal(split(fixture).ns[CAUSE_COMPUTE], 99 * MS);
}

static void a_thread_that_was_off_its_cpu_did_not_work(void **state)
{
	struct fixture *fixture = *state;
	struct fbt_wake *wake = add_wait(fixture, 8);

	wake->cpu_ns = 9 * MS;
	wake->off_ns = 50 * MS;
	assert_int_equal(split(fixture).ns[CAUSE_OFF_CPU], 50 * MS);
	assert_int_equal(
		cause_of(fixture,
			 "off the CPU 50.0 ms (usually none): outside of syscalls, not waiting for "
			 "a CPU, 50.0 ms of it by thread 8 \"worker\", for which the step waited"),
		CAUSE_OFF_CPU);
	wake->off_ns = 0;
	wake->fault_wait_ns = 50 * MS;
	wake->faults = 12;
	assert_int_equal(split(fixture).ns[CAUSE_PAGE_FAULTS], 50 * MS);
	assert_int_equal(
		cause_of(fixture,
			 "waited 50.0 ms (usually none) for a disk in 12 page faults, "
			 "50.0 ms of it by thread 8 \"worker\", for which the step waited"),
		CAUSE_PAGE_FAULTS);
	wake->fault_wait_ns = 0;
	wake->stopped_ns = 50 * MS;
	fixture->step.stop = (struct fbt_stop){.header.type = FBT_EVENT_STOP,
					       .tid = 8,
					       .reason = FBT_STOP_TRACER,
					       .tracer = 4711,
					       .comm = "gdb"};
	assert_int_equal(split(fixture).ns[CAUSE_STOPPED], 50 * MS);
	assert_int_equal(
		cause_of(fixture,
			 "stopped 50.0 ms (usually none) by a tracer: gdb (pid 4711), "
			 "50.0 ms of it by thread 8 \"worker\", for which the step waited"),
		CAUSE_STOPPED);
}

/* The limit held up that thread, not the step's own. */
static void a_thread_that_a_limit_held_up_is_named(void **state)
{
	struct fixture *fixture = *state;
	struct fbt_wake *wake = add_wait(fixture, 8);

	wake->cpu_ns = 9 * MS;
	wake->delay_ns = 50 * MS;
	fixture->step.record.limits = (struct fbt_step_limits){.throttled_ns = 90 * MS,
							       .throttled_periods = 1,
							       .quota_ns = 200 * MS,
							       .period_ns = 100 * MS,
							       .memory_hits = 3};
	assert_int_equal(
		cause_of(fixture,
			 "waited 50.0 ms for a CPU (usually none), 50.0 ms of it by thread 8 "
			 "\"worker\", for which the step waited: the CPU limit of its cgroup, 2.00 "
			 "CPUs in each 100 ms, was reached once"),
		CAUSE_CPU_LIMIT);
	wake->delay_ns = 0;
	wake->fault_wait_ns = 50 * MS;
	wake->faults = 12;
	assert_int_equal(
		cause_of(
			fixture,
			"waited 50.0 ms (usually none) for a disk in 12 page faults, 50.0 ms of it "
			"by thread 8 \"worker\", for which the step waited: its cgroup was at its "
			"memory limit 3 times"),
		CAUSE_MEMORY_LIMIT);
}

/* Not those of the step, which only waited. */
static void a_memory_limit_explains_as_many_page_faults_of_a_worker(void **state)
{
	struct fixture *fixture = *state;
	struct fbt_wake *wake = add_wait(fixture, 8);
	struct fbt_step *record = &fixture->step.record;
	struct cause cause;

	wake->fault_wait_ns = 50 * MS;
	wake->faults = 84;
	wake->minor_faults = 300;
	record->limits.memory_hits = 3;
	find_cause(fixture, &cause);
	assert_int_equal(cause.kind, CAUSE_MEMORY_LIMIT);
	wake->minor_faults++;
	find_cause(fixture, &cause);
	assert_int_equal(cause.kind, CAUSE_PAGE_FAULTS);
	/* Nobody had a page fault. */
	wake->fault_wait_ns = 0;
	wake->off_ns = 50 * MS;
	find_cause(fixture, &cause);
	assert_int_equal(cause.kind, CAUSE_OFF_CPU);
}

/* Reading ahead takes CPU time, which a worker too spends for the disk, not for the step. */
static void a_worker_that_waited_for_a_disk_may_have_read_ahead(void **state)
{
	struct fixture *fixture = *state;
	struct fbt_wake *wake = add_wait(fixture, 8);
	struct cause_times times;

	wake->cpu_ns = 40 * MS;
	wake->fault_wait_ns = 20 * MS;
	wake->faults = 1;
	wake->minor_faults = 299;
	times = split(fixture);
	assert_int_equal(times.ns[CAUSE_PAGE_FAULTS], 20 * MS);
	assert_int_equal(times.ns[CAUSE_COMPUTE], 80 * MS);
	cause_blame(&fixture->step, 10 * MS, &times);
	assert_int_equal(times.ns[CAUSE_PAGE_FAULTS], 50 * MS);
	assert_int_equal(times.ns[CAUSE_COMPUTE], 50 * MS);
	assert_true(times.blamed);
	/* No disk was waited for: the number of faults says nothing of their length. */
	wake->cpu_ns = 60 * MS;
	wake->fault_wait_ns = 0;
	times = split(fixture);
	cause_blame(&fixture->step, 10 * MS, &times);
	assert_int_equal(times.ns[CAUSE_PAGE_FAULTS], 0);
	assert_false(times.blamed);
}

static void what_kept_the_holder_of_a_lock_off_its_cpu_is_evidence(void **state)
{
	struct fixture *fixture = *state;
	struct fbt_wake *wake = add_wait(fixture, 8);

	wake->cpu_ns = 9 * MS;
	wake->stopped_ns = 50 * MS;
	wake->flags = FBT_WAKE_LOCK;
	assert_int_equal(split(fixture).ns[CAUSE_LOCK_CONTENTION], 60 * MS);
	assert_int_equal(
		cause_of(fixture,
			 "futex 60.0 ms (usually none), 1 of 1 call blocked, lock at 0x1000, held "
			 "by thread 8 \"worker\", which was stopped for 50.0 ms"),
		CAUSE_LOCK_CONTENTION);
}

static void what_is_not_known_hides_nothing(void **state)
{
	struct fixture *fixture = *state;
	struct fbt_wake *wake = add_wait(fixture, 8);

	wake->unknown_ns = 59 * MS;
	assert_int_equal(split(fixture).ns[CAUSE_LOCK_CONTENTION], 60 * MS);
	assert_int_equal(cause_of(fixture,
				  "futex 60.0 ms (usually none), 1 of 1 call blocked, lock at "
				  "0x1000, woken by thread 8 \"worker\""),
			 CAUSE_LOCK_CONTENTION);
	/* The wake record belongs to another wait. */
	wake->unknown_ns = 0;
	wake->cpu_ns = 59 * MS;
	wake->start_ns++;
	assert_int_equal(split(fixture).ns[CAUSE_LOCK_CONTENTION], 60 * MS);
}

static void of_several_threads_the_one_is_named_that_was_waited_for_longest(void **state)
{
	struct fixture *fixture = *state;
	struct fbt_wake *wake;

	fixture->step = make_step(400 * MS);
	for (uint32_t i = 0; i < 5; i++) {
		wake = add_wait(fixture, i < 3 ? 8 : 9);
		wake->call_ns = 20 * MS;
		wake->nr_ns = 10 * MS;
		wake->cpu_ns = 10 * MS;
		wake->flags = FBT_WAKE_LOCK;
	}
	wake->nr_ns = wake->call_ns = 59 * MS;
	wake->cpu_ns = 0;
	assert_int_equal(cause_of(fixture,
				  "futex 300 ms (usually none), 5 of 5 calls blocked, lock "
				  "at 0x1000, held by thread 8 \"worker\", which computed "
				  "for 30.0 ms"),
			 CAUSE_LOCK_CONTENTION);
}

static void a_wait_that_ended_by_itself_was_ended_by_nobody(void **state)
{
	struct fixture *fixture = *state;

	add_wait(fixture, 8)->cpu_ns = 59 * MS;
	fixture->step.calls.items[0].ret = -ETIMEDOUT;
	assert_int_equal(split(fixture).ns[CAUSE_LOCK_CONTENTION], 60 * MS);
}

/* The latest wake is noted, though the step could have run before. Who did end it is not known. */
static void a_wake_while_the_step_waited_for_a_cpu_has_not_ended_its_wait(void **state)
{
	struct fixture *fixture = *state;
	struct fbt_wake *wake = add_wait(fixture, 8);
	struct fbt_call *call = &fixture->step.calls.items[0];

	wake->cpu_ns = 59 * MS;
	call->delay_ns = 5 * MS;
	assert_int_equal(split(fixture).worker_ns, 0);
	assert_int_equal(split(fixture).ns[CAUSE_LOCK_CONTENTION], 55 * MS);
	/* The clocks of both are not read at one instant. */
	wake->wake_ns = call->start_ns + 55 * MS + 100 * US;
	assert_int_equal(split(fixture).worker_ns, 55 * MS);
	wake->wake_ns = call->start_ns + 54 * MS;
	assert_int_equal(split(fixture).worker_ns, 55 * MS);
}

static void a_wake_long_before_the_end_has_not_ended_the_wait(void **state)
{
	struct fixture *fixture = *state;
	struct fbt_wake *wake = add_wait(fixture, 8);
	struct fbt_call *call = &fixture->step.calls.items[0];

	wake->cpu_ns = 30 * MS;
	wake->wake_ns = call->start_ns + 30 * MS;
	assert_int_equal(split(fixture).worker_ns, 0);
	/* It had no CPU for most of the time since then. */
	call->delay_ns = 28 * MS;
	assert_int_equal(split(fixture).worker_ns, 30 * MS);
	/* Or that is not known. */
	call->delay_ns = 0;
	fixture->step.record.header.flags |= FBT_STEP_SCHED_UNKNOWN;
	assert_int_equal(split(fixture).worker_ns, 30 * MS);
}

/* A worker that answers through a pipe, an eventfd or a socket. */
static void an_answer_is_waited_for_as_a_wake_is(void **state)
{
	static const char *const names[] = {"read", "recvmsg", "poll", "epoll_wait"};
	struct fixture *fixture = *state;
	struct fbt_wake *wake = add_wait(fixture, 8);
	struct fbt_call *call = &fixture->step.calls.items[0];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		call->nr = nr_of(names[i]);
		call->ret = 1;
		wake->cpu_ns = 58 * MS;
		wake->call_ns = MS;
		assert_int_equal(split(fixture).worker_ns, 58 * MS);
		assert_int_equal(split(fixture).ns[CAUSE_LATE_THREAD], 2 * MS);
		/* 0 means a time-out or the end of the file. */
		call->ret = 0;
		assert_int_equal(split(fixture).worker_ns, 0);
		assert_int_equal(split(fixture).ns[CAUSE_LATE_THREAD], 0);
	}
	call->ret = 1;
	wake->cpu_ns = 0;
	wake->call_ns = wake->nr_ns = 59 * MS;
	assert_int_equal(cause_of(fixture,
				  "epoll_wait 60.0 ms (usually none), 1 of 1 call blocked, for "
				  "thread 8 \"worker\", which was in clock_nanosleep for 59.0 ms"),
			 CAUSE_LATE_THREAD);
}

static void other_calls_wait_for_nobody(void **state)
{
	struct fixture *fixture = *state;
	struct fbt_wake *wake = add_wait(fixture, 8);

	wake->flags = FBT_WAKE_ALL;
	wake->cpu_ns = 59 * MS;
	fixture->step.calls.items[0].nr = nr_of("pread64");
	assert_int_equal(split(fixture).ns[CAUSE_FILE_IO], 60 * MS);
	/* The call returned no data. */
	fixture->step.calls.items[0].nr = nr_of("read");
	assert_int_equal(split(fixture).ns[CAUSE_FILE_IO], 60 * MS);
}

static void a_wake_covers_no_more_than_its_call(void **state)
{
	struct fixture *fixture = *state;
	struct fbt_wake *wake = add_wait(fixture, 8);

	wake->wake_ns = wake->start_ns + 4 * S;
	wake->cpu_ns = 2 * S;
	wake->delay_ns = 2 * S;
	assert_int_equal(split(fixture).ns[CAUSE_COMPUTE], 100 * MS);
}

static void the_longest_wait_tells_when_it_was_ended(void **state)
{
	struct fixture *fixture = *state;
	struct fbt_wake *wake = add_wait(fixture, 8);
	struct cause cause;

	wake->flags = FBT_WAKE_LOCK;
	find_cause(fixture, &cause);
	assert_int_equal(cause.waker.tid, 8);
	assert_int_equal(cause.waker.after_ns, 59 * MS);
	wake->wake_ns = wake->start_ns + 4 * S;
	find_cause(fixture, &cause);
	assert_int_equal(cause.waker.after_ns, 60 * MS);
	fixture->step.wakes.count = 0;
	find_cause(fixture, &cause);
	assert_int_equal(cause.waker.after_ns, 0);
}

static void the_time_is_told_of_the_stack_of_that_wait_only(void **state)
{
	struct fixture *fixture = *state;
	struct fbt_wake *wake = add_wait(fixture, 8);
	struct cause cause;

	wake->flags = FBT_WAKE_LOCK;
	find_cause(fixture, &cause);
	assert_int_equal(cause_ended_after_ns(&cause), 0);
	cause.waker_stack = (struct fbt_stack){.start_ns = wake->start_ns, .owner = 8, .count = 1};
	assert_int_equal(cause_ended_after_ns(&cause), 59 * MS);
	cause.waker_stack.owner = 9;
	assert_int_equal(cause_ended_after_ns(&cause), 0);
	cause.waker_stack.owner = 8;
	cause.waker_stack.start_ns++;
	assert_int_equal(cause_ended_after_ns(&cause), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(a_wait_for_a_thread_that_computes_is_work),
		TEST(a_lock_of_a_thread_that_computes_is_a_lock),
		TEST(who_held_another_lock_explains_nothing),
		TEST(who_took_the_cpu_did_so_for_no_longer_than_the_wait),
		TEST(who_waited_for_a_lock_itself_is_not_its_holder),
		TEST(what_a_holder_did_is_summed_up_over_all_waits),
		TEST(who_ended_a_short_wait_is_not_named_for_a_long_one),
		TEST(a_short_wait_for_another_thread_does_not_hide_who_took_the_cpu),
		TEST(a_wait_for_a_thread_without_a_cpu_is_one_for_a_cpu),
		TEST(the_call_is_named_in_which_a_thread_was_that_did_not_run),
		TEST(a_barrier_has_no_holder),
		TEST(a_thread_that_was_off_its_cpu_did_not_work),
		TEST(a_thread_that_a_limit_held_up_is_named),
		TEST(a_memory_limit_explains_as_many_page_faults_of_a_worker),
		TEST(a_worker_that_waited_for_a_disk_may_have_read_ahead),
		TEST(what_kept_the_holder_of_a_lock_off_its_cpu_is_evidence),
		TEST(what_is_not_known_hides_nothing),
		TEST(of_several_threads_the_one_is_named_that_was_waited_for_longest),
		TEST(a_wait_that_ended_by_itself_was_ended_by_nobody),
		TEST(a_wake_while_the_step_waited_for_a_cpu_has_not_ended_its_wait),
		TEST(a_wake_long_before_the_end_has_not_ended_the_wait),
		TEST(an_answer_is_waited_for_as_a_wake_is),
		TEST(other_calls_wait_for_nobody),
		TEST(a_wake_covers_no_more_than_its_call),
		TEST(the_longest_wait_tells_when_it_was_ended),
		TEST(the_time_is_told_of_the_stack_of_that_wait_only),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
