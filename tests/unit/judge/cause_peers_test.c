/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Waits that spin, and waits for another process. */
#include "judged_fixture.h"

#include <errno.h>
#include "judge/cause.h"
#include "judge/peers.h"
#include "judge/text.h"
#include "model/spins.h"

struct fixture {
	struct window *window;
	struct step step; /* of 100 ms, of which 60 are a wait and the rest its own */
};

static int setup(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	assert_non_null(fixture);
	fixture->window = new_window();
	fixture->step = make_step(100 * MS);
	*state = fixture;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *fixture = *state;

	step_clear(&fixture->step);
	window__free(fixture->window);
	free(fixture);
	return 0;
}

/* 60 ms: a call, and 59,998 us in 20,000 others, of which 40 ms are in calls. */
static void spin(struct fixture *fixture)
{
	struct fbt_call *call;

	add_call(&fixture->step, "sched_yield", 2 * US);
	call = add_call(&fixture->step, "sched_yield", 60 * MS - 2 * US);
	call->header.flags = FBT_CALL_RUN;
	call->run = (struct fbt_run){20000, 90 * US, 40 * MS};
	call->delay_ns = 10 * MS;
	fixture->step.record.sums[FBT_OTHER].ns = 40 * MS + 2 * US;
	fixture->step.record.sums[FBT_OTHER].calls = 20001;
	fixture->step.record.call_delay_ns[FBT_OTHER] = 10 * MS;
	spins_find(fixture->window, &fixture->step);
}

/* Looked at from 5 ms of the step to 58 ms; the caller fills in what it did. */
static struct fbt_peer *add_peer(struct fixture *fixture, uint32_t tgid, enum fbt_peer_way way)
{
	uint64_t start_ns = fixture->step.record.start_ns;
	struct step_peer peer = {.record = {.header.type = FBT_EVENT_PEER,
					    .tgid = 7,
					    .tid = 7,
					    .step_start_ns = start_ns,
					    .first_ns = start_ns + 5 * MS,
					    .time_ns = start_ns + 58 * MS,
					    .peer = tgid,
					    .peer_tid = tgid,
					    .way = way,
					    .nr = FBT_PEER_NR_UNKNOWN,
					    .comm = "worker"}};

	assert_int_equal(vec_push(&fixture->step.peers, peer), 0);
	return &fixture->step.peers.items[fixture->step.peers.count - 1].record;
}

static struct cause_times split(struct fixture *fixture)
{
	struct cause_times times;
	uint64_t sum = 0;

	cause_split(fixture->window, &fixture->step, &times);
	for (int i = 0; i < CAUSE_COUNT; i++)
		sum += times.ns[i];
	assert_int_equal(sum, step_total_ns(&fixture->step));
	return times;
}

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

static void a_spin_is_one_wait(void **state)
{
	struct fixture *fixture = *state;
	struct cause_times times;

	spin(fixture);
	times = split(fixture);
	/* With the code between its calls, and its waits for a CPU: it would have waited on. */
	assert_int_equal(times.ns[CAUSE_SLEEP], 60 * MS);
	assert_int_equal(times.ns[CAUSE_RUN_QUEUE], 0);
	assert_int_equal(cause_work_ns(&times), 40 * MS);
	assert_int_equal(cause_of(fixture, "spun 60.0 ms (usually none) in 20,001 sched_yield"),
			 CAUSE_SLEEP);
}

static void after_its_last_call_a_thread_may_have_waited_for_a_cpu_only(void **state)
{
	struct fixture *fixture = *state;
	struct fbt_call *call;

	spin(fixture);
	call = add_call(&fixture->step, "sched_yield", 20 * MS);
	call->delay_ns = 20 * MS;
	fixture->step.record.call_delay_ns[FBT_OTHER] = 30 * MS;
	spins_find(fixture->window, &fixture->step);
	assert_int_equal(split(fixture).ns[CAUSE_RUN_QUEUE], 20 * MS);
}

/* Between two polls it had no CPU; its own code before that is work. */
static void a_gap_without_a_cpu_is_taken_from_the_step_once(void **state)
{
	struct fixture *fixture = *state;
	uint64_t polls_ns = 11 * 2 * US, gaps_ns = 10 * 800 * US;
	struct cause_times times;

	fixture->step = make_step(8 * MS + polls_ns + gaps_ns);
	for (int i = 0; i < 11; i++) {
		struct fbt_call *call = add_call(&fixture->step, "epoll_wait", 2 * US);

		call->start_ns += i ? 800 * US : 8 * MS;
	}
	fixture->step.record.run_delay_ns = gaps_ns;
	spins_find(fixture->window, &fixture->step);
	assert_int_equal(fixture->step.spins.longest.delay_ns, gaps_ns);
	times = split(fixture);
	assert_int_equal(times.ns[CAUSE_SLEEP], polls_ns + gaps_ns);
	assert_int_equal(times.ns[CAUSE_RUN_QUEUE], 0);
	assert_int_equal(cause_work_ns(&times), 8 * MS);
}

/* What the host of a virtual machine takes is in no wait for a CPU, and may be in every gap. */
static void what_the_host_took_is_part_of_the_wait(void **state)
{
	struct fixture *fixture = *state;
	struct fbt_step *record = &fixture->step.record;
	uint64_t polls_ns = 211 * 2 * US, long_ns = 10 * 800 * US, short_ns = 200 * 9 * US;
	struct cause_times times;

	fixture->step = make_step(polls_ns + long_ns + short_ns);
	for (int i = 0; i < 211; i++)
		add_call(&fixture->step, "epoll_wait", 2 * US)->start_ns += !i	     ? 0
									    : i % 20 ? 9 * US
										     : 800 * US;
	record->header.flags |= FBT_STEP_CPU_KNOWN;
	record->cpu_ns = (int64_t)polls_ns;
	spins_find(fixture->window, &fixture->step);
	assert_int_equal(fixture->step.spins.longest.delay_ns, long_ns);
	times = split(fixture);
	assert_int_equal(times.ns[CAUSE_SLEEP], polls_ns + long_ns + short_ns);
	assert_int_equal(times.ns[CAUSE_OFF_CPU], 0);
	assert_int_equal(cause_work_ns(&times), 0);
}

/* As long as half of a nap it is code, wherever the step waited for a CPU. */
static void code_of_a_row_is_no_wait_for_a_cpu(void **state)
{
	struct fixture *fixture = *state;
	struct cause_times times;

	for (int i = 0; i < 40; i++)
		add_call(&fixture->step, "nanosleep", MS)->start_ns += i ? 400 * US : 0;
	fixture->step.record.run_delay_ns = 30 * MS;
	spins_find(fixture->window, &fixture->step);
	times = split(fixture);
	assert_int_equal(times.ns[CAUSE_SLEEP], 40 * MS + 39 * 400 * US);
	assert_int_equal(times.ns[CAUSE_RUN_QUEUE], 30 * MS);
}

/* Some records in the row were lost, and what lies there is less than code may take. */
static void a_short_gap_of_lost_calls_is_taken_from_the_step_once(void **state)
{
	struct fixture *fixture = *state;
	struct fbt_step *record = &fixture->step.record;

	for (int i = 0; i < 100; i++)
		add_call(&fixture->step, "sched_yield", 2 * US)->start_ns += i == 50 ? 500 * US : 0;
	record->lost_calls = 100;
	record->sums[FBT_OTHER].calls += 100;
	record->sums[FBT_OTHER].ns += 400 * US;
	spins_find(fixture->window, &fixture->step);
	assert_int_equal(fixture->step.spins.ns, 600 * US);
	assert_int_equal(split(fixture).ns[CAUSE_SLEEP], 600 * US);
}

/* 48 ms in 20,000 calls, between two parts of a row of 100 that have records. */
static void spin_and_lose(struct fixture *fixture)
{
	struct fbt_step *record = &fixture->step.record;

	for (int i = 0; i < 100; i++) {
		uint64_t between_ns = i == 50 ? 50 * MS : US;
		struct fbt_call *call = add_call(&fixture->step, "sched_yield", 2 * US);

		call->start_ns += i ? between_ns : 0;
	}
	record->lost_calls = 20000;
	record->sums[FBT_OTHER].calls += 20000;
	record->sums[FBT_OTHER].ns += 48 * MS;
	spins_find(fixture->window, &fixture->step);
}

static void lost_calls_of_a_spin_are_part_of_the_wait(void **state)
{
	struct fixture *fixture = *state;
	uint64_t spun_ns = 48 * MS + 100 * 2 * US + 98 * US;
	struct cause_times times;

	spin_and_lose(fixture);
	assert_int_equal(fixture->step.spins.ns, spun_ns);
	times = split(fixture);
	assert_int_equal(times.ns[CAUSE_SLEEP], spun_ns);
	assert_int_equal(times.ns[CAUSE_OTHER_CALLS], 0);
	/* With their waits for a CPU, but not with those of the step outside of calls. */
	fixture->step.record.call_delay_ns[FBT_OTHER] = 30 * MS;
	fixture->step.record.run_delay_ns = 5 * MS;
	times = split(fixture);
	assert_int_equal(times.ns[CAUSE_SLEEP], spun_ns);
	assert_int_equal(times.ns[CAUSE_RUN_QUEUE], 5 * MS);
	add_peer(fixture, 8, FBT_PEER_MEMORY)->stopped_ns = 53 * MS;
	assert_int_equal(cause_of(fixture, "waited 48.3 ms (usually none) for worker (pid 8), "
					   "which was stopped by a signal (SIGSTOP or alike); spun "
					   "in at least 100 sched_yield"),
			 CAUSE_PEER_PROCESS);
}

static void other_lost_calls_are_not_part_of_the_wait(void **state)
{
	struct fixture *fixture = *state;

	spin_and_lose(fixture);
	/* More than lies between the two parts. */
	fixture->step.record.sums[FBT_OTHER].ns += 20 * MS;
	spins_find(fixture->window, &fixture->step);
	assert_int_equal(split(fixture).ns[CAUSE_SLEEP], 50 * MS + 100 * 2 * US + 98 * US);
	assert_int_equal(split(fixture).ns[CAUSE_OTHER_CALLS], 18 * MS);
}

static void the_peer_that_explains_the_wait_is_the_cause(void **state)
{
	struct fixture *fixture = *state;
	struct fbt_peer *peer;

	spin(fixture);
	peer = add_peer(fixture, 29118, FBT_PEER_MEMORY);
	peer->stopped_ns = 53 * MS;
	peer->stop_reason = FBT_STOP_TRACER;
	peer->tracer = 4711;
	strcpy(peer->tracer_comm, "gdb");
	assert_int_equal(cause_of(fixture, "waited 60.0 ms (usually none) for worker (pid 29118), "
					   "which was stopped by a tracer: gdb (pid 4711); spun in "
					   "20,001 sched_yield"),
			 CAUSE_PEER_PROCESS);
	peer->stopped_ns = 0;
	peer->delay_ns = 53 * MS;
	assert_int_equal(cause_of(fixture, "waited 60.0 ms (usually none) for worker (pid 29118), "
					   "which had no CPU; spun in 20,001 sched_yield"),
			 CAUSE_PEER_PROCESS);
	peer->throttled_periods = 3;
	assert_int_equal(cause_of(fixture,
				  "waited 60.0 ms (usually none) for worker (pid 29118), "
				  "which had no CPU: the CPU limit of its cgroup was reached 3 "
				  "times; spun in 20,001 sched_yield"),
			 CAUSE_PEER_PROCESS);
	peer->delay_ns = 0;
	peer->cpu_ns = 53 * MS;
	peer->kind = 2;
	assert_int_equal(cause_of(fixture, "waited 60.0 ms (usually none) for worker (pid 29118, "
					   "in prefill), which computed; spun in 20,001 "
					   "sched_yield"),
			 CAUSE_PEER_PROCESS);
	peer->cpu_ns = 0;
	peer->kind = 0;
	peer->asleep_ns = 53 * MS;
	peer->nr = nr_of("clock_nanosleep");
	assert_int_equal(cause_of(fixture,
				  "waited 60.0 ms (usually none) for worker (pid 29118), "
				  "which was in clock_nanosleep; spun in 20,001 sched_yield"),
			 CAUSE_PEER_PROCESS);
}

static void a_peer_explains_nothing_that_was_not_seen(void **state)
{
	struct fixture *fixture = *state;
	struct fbt_peer *peer;
	const char *said = "spun 60.0 ms (usually none) in 20,001 sched_yield";

	spin(fixture);
	peer = add_peer(fixture, 8, FBT_PEER_MEMORY);
	/* It did several things, none of them for most of the time. */
	peer->stopped_ns = 20 * MS;
	peer->cpu_ns = 20 * MS;
	peer->asleep_ns = 13 * MS;
	assert_int_equal(cause_of(fixture, said), CAUSE_SLEEP);
	/* It was looked at for less than half of the wait. */
	peer->stopped_ns = 20 * MS;
	peer->cpu_ns = peer->asleep_ns = 0;
	peer->first_ns = peer->time_ns - 20 * MS;
	assert_int_equal(cause_of(fixture, said), CAUSE_SLEEP);
	/* It is one at the other end of a pipe that the step does not read. */
	peer->first_ns = peer->time_ns - 53 * MS;
	peer->stopped_ns = 53 * MS;
	peer->way = FBT_PEER_PIPE;
	assert_int_equal(cause_of(fixture, said), CAUSE_SLEEP);
}

/* Its own step is exact; what was sampled of the same process is not, unless it was held. */
static void what_a_step_measured_is_better_than_samples(void **state)
{
	struct fixture *fixture = *state;
	struct fbt_peer *seen, *measured;

	spin(fixture);
	add_peer(fixture, 8, FBT_PEER_MEMORY);
	measured = add_peer(fixture, 8, FBT_PEER_MEMORY);
	seen = &fixture->step.peers.items[0].record;
	seen->kind = measured->kind = 2;
	seen->cpu_ns = 53 * MS;
	measured->header.flags = FBT_PEER_OF_STEP;
	measured->asleep_ns = 53 * MS;
	assert_int_equal(cause_of(fixture, "waited 60.0 ms (usually none) for worker (pid 8, in "
					   "prefill), which was asleep; spun in 20,001 "
					   "sched_yield"),
			 CAUSE_PEER_PROCESS);
	seen->cpu_ns = 0;
	seen->delay_ns = 53 * MS;
	assert_int_equal(cause_of(fixture, "waited 60.0 ms (usually none) for worker (pid 8, in "
					   "prefill), which had no CPU; spun in 20,001 "
					   "sched_yield"),
			 CAUSE_PEER_PROCESS);
}

static void idle_processes_sleep_too(void **state)
{
	struct fixture *fixture = *state;
	struct fbt_peer *idle, *other;

	spin(fixture);
	idle = add_peer(fixture, 8, FBT_PEER_MEMORY);
	idle->asleep_ns = 53 * MS;
	idle->others = 1;
	assert_int_equal(cause_of(fixture, "spun 60.0 ms (usually none) in 20,001 sched_yield"),
			 CAUSE_SLEEP);
	other = add_peer(fixture, 9, FBT_PEER_MEMORY);
	other->delay_ns = 53 * MS;
	other->others = 1;
	assert_int_equal(cause_of(fixture,
				  "waited 60.0 ms (usually none) for worker (pid 9), which had no "
				  "CPU; one of 2 processes that share memory with it; spun in "
				  "20,001 sched_yield"),
			 CAUSE_PEER_PROCESS);
}

/* Then the step more likely spins for that thread. */
static void an_own_thread_that_was_held_explains_more_than_a_process_that_sleeps(void **state)
{
	static const char *const said = "spun 60.0 ms (usually none) in 20,001 sched_yield";
	struct fixture *fixture = *state;
	struct fbt_step *record = &fixture->step.record;
	struct fbt_peer *peer;

	spin(fixture);
	peer = add_peer(fixture, 8, FBT_PEER_MEMORY);
	peer->asleep_ns = 53 * MS;
	record->header.flags |= FBT_STEP_TEAM_KNOWN;
	record->starved_tid = 9;
	record->starved_ns = 30 * MS;
	assert_int_equal(cause_of(fixture, said), CAUSE_SLEEP);
	record->starved_ns = 0;
	record->late_tid = 9;
	record->late_nr = nr_of("read");
	record->late_ns = 30 * MS;
	assert_int_equal(cause_of(fixture, said), CAUSE_SLEEP);
	record->late_ns = 0;
	fixture->step.stop = (struct fbt_stop){.header.type = FBT_EVENT_STOP,
					       .tid = 9,
					       .reason = FBT_STOP_TRACER,
					       .stopped_ns = 30 * MS};
	assert_int_equal(cause_of(fixture, said), CAUSE_SLEEP);
	fixture->step.stop.stopped_ns = 0;
	/* Not for long enough; or the process was held itself. */
	record->late_ns = 29 * MS;
	assert_int_equal(cause_of(fixture, "waited 60.0 ms (usually none) for worker (pid 8), "
					   "which was asleep; spun in 20,001 sched_yield"),
			 CAUSE_PEER_PROCESS);
	record->late_ns = 30 * MS;
	peer->asleep_ns = 0;
	peer->stopped_ns = 53 * MS;
	assert_int_equal(cause_of(fixture, "waited 60.0 ms (usually none) for worker (pid 8), "
					   "which was stopped by a signal (SIGSTOP or alike); spun "
					   "in 20,001 sched_yield"),
			 CAUSE_PEER_PROCESS);
}

static void a_process_that_was_held_explains_more_than_one_that_works(void **state)
{
	struct fixture *fixture = *state;
	uint64_t begin_ns = fixture->step.record.start_ns;
	struct fbt_peer *peer;

	peer = add_peer(fixture, 8, FBT_PEER_MEMORY);
	peer->cpu_ns = 53 * MS;
	peer->kind = 1;
	peer = add_peer(fixture, 9, FBT_PEER_MEMORY);
	peer->stopped_ns = 40 * MS;
	peer->cpu_ns = 13 * MS;
	assert_int_equal(
		peer_find(&fixture->step, true, true, begin_ns, begin_ns + 60 * MS)->record.peer,
		9);
	peer->stopped_ns = 0;
	peer->asleep_ns = 40 * MS;
	assert_int_equal(
		peer_find(&fixture->step, true, true, begin_ns, begin_ns + 60 * MS)->record.peer,
		8);
}

static void a_read_waits_for_the_other_end(void **state)
{
	struct fixture *fixture = *state;
	struct fbt_call *call;
	struct fbt_peer *peer;

	name_file(fixture->window, 3, S_IFIFO, "pipe:[7]");
	call = add_call(&fixture->step, "read", 60 * MS);
	call->file = 3;
	call->ret = 1;
	peer = add_peer(fixture, 8, FBT_PEER_PIPE);
	peer->stopped_ns = 53 * MS;
	assert_int_equal(cause_of(fixture,
				  "waited 60.0 ms (usually none) for worker (pid 8), which was "
				  "stopped by a signal (SIGSTOP or alike); in read of pipe:[7]"),
			 CAUSE_PEER_PROCESS);
	/* One thread of its own process has answered. */
	assert_int_equal(vec_push(&fixture->step.wakes,
				  ((struct fbt_wake){.tgid = 7,
						     .tid = 7,
						     .start_ns = call->start_ns,
						     .wake_ns = call->start_ns + 59 * MS,
						     .call_ns = 59 * MS,
						     .waker_tid = 8})),
			 0);
	assert_int_equal(split(fixture).ns[CAUSE_LATE_THREAD], 60 * MS);
}

static void a_futex_that_times_out_is_waited_for(void **state)
{
	struct fixture *fixture = *state;
	struct fbt_peer *peer;

	for (int i = 0; i < 12; i++) {
		struct fbt_call *call = add_call(&fixture->step, "futex", 5 * MS);

		call->ret = -ETIMEDOUT;
		call->args[0] = 0x1000;
	}
	spins_find(fixture->window, &fixture->step);
	assert_int_equal(cause_of(fixture, "waited 60.0 ms (usually none) in 12 futex that timed "
					   "out, lock at 0x1000"),
			 CAUSE_LOCK_CONTENTION);
	peer = add_peer(fixture, 8, FBT_PEER_FUTEX);
	peer->cpu_ns = 53 * MS;
	assert_int_equal(cause_of(fixture,
				  "waited 60.0 ms (usually none) for worker (pid 8), which "
				  "computed; waited in 12 futex"),
			 CAUSE_PEER_PROCESS);
}

/* By its own steps a process explains only waits that it may end. */
static void a_private_futex_is_for_no_process(void **state)
{
	struct fixture *fixture = *state;
	struct fbt_peer *peer;

	for (int i = 0; i < 12; i++) {
		struct fbt_call *call = add_call(&fixture->step, "futex", 5 * MS);

		call->ret = -ETIMEDOUT;
		call->header.flags |= FBT_CALL_ARGS;
		call->args[0] = 0x1000;
		call->args[1] = 0x80;
	}
	spins_find(fixture->window, &fixture->step);
	peer = add_peer(fixture, 8, FBT_PEER_MEMORY);
	peer->header.flags = FBT_PEER_OF_STEP;
	peer->kind = 2;
	peer->cpu_ns = 53 * MS;
	assert_int_equal(cause_of(fixture, "waited 60.0 ms (usually none) in 12 futex that timed "
					   "out, lock at 0x1000"),
			 CAUSE_LOCK_CONTENTION);
	vec_for_each (call, &fixture->step.calls)
		call->args[1] = 0;
	assert_int_equal(cause_of(fixture, "waited 60.0 ms (usually none) for worker (pid 8, in "
					   "prefill), which computed; waited in 12 futex"),
			 CAUSE_PEER_PROCESS);
}

static void one_long_sleep_waits_for_nobody(void **state)
{
	struct fixture *fixture = *state;

	add_call(&fixture->step, "clock_nanosleep", 60 * MS);
	spins_find(fixture->window, &fixture->step);
	add_peer(fixture, 8, FBT_PEER_MEMORY)->stopped_ns = 53 * MS;
	assert_int_equal(cause_of(fixture, "clock_nanosleep 60.0 ms (usually none), 1 call"),
			 CAUSE_SLEEP);
}

static void the_chain_goes_on(void **state)
{
	struct fixture *fixture = *state;
	struct step_peer *first;

	spin(fixture);
	add_peer(fixture, 8, FBT_PEER_MEMORY)->asleep_ns = 53 * MS;
	first = &fixture->step.peers.items[0];
	first->record.nr = nr_of("read");
	first->record.kind = 1;
	first->beyond = first->record;
	first->beyond.peer = 9;
	first->beyond.kind = 0;
	first->beyond.asleep_ns = 0;
	first->beyond.stopped_ns = 53 * MS;
	assert_int_equal(
		cause_of(fixture,
			 "waited 60.0 ms (usually none) for worker (pid 8, in "
			 "llama_decode), which was in read and waited for worker (pid 9), "
			 "which was stopped by a signal (SIGSTOP or alike); spun in 20,001 "
			 "sched_yield"),
		CAUSE_PEER_PROCESS);
	/* A process that sleeps waits for nobody, as far as is known. */
	first->record.nr = nr_of("clock_nanosleep");
	assert_int_equal(cause_of(fixture,
				  "waited 60.0 ms (usually none) for worker (pid 8, in "
				  "llama_decode), which was in clock_nanosleep; spun in 20,001 "
				  "sched_yield"),
			 CAUSE_PEER_PROCESS);
	/* Nor does one for another that sleeps as well, and shares memory with it. */
	first->record.nr = nr_of("read");
	first->beyond.stopped_ns = 0;
	first->beyond.asleep_ns = 53 * MS;
	assert_int_equal(cause_of(fixture,
				  "waited 60.0 ms (usually none) for worker (pid 8, in "
				  "llama_decode), which was in read; spun in 20,001 sched_yield"),
			 CAUSE_PEER_PROCESS);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(a_spin_is_one_wait),
		TEST(a_gap_without_a_cpu_is_taken_from_the_step_once),
		TEST(what_the_host_took_is_part_of_the_wait),
		TEST(code_of_a_row_is_no_wait_for_a_cpu),
		TEST(a_short_gap_of_lost_calls_is_taken_from_the_step_once),
		TEST(lost_calls_of_a_spin_are_part_of_the_wait),
		TEST(other_lost_calls_are_not_part_of_the_wait),
		TEST(after_its_last_call_a_thread_may_have_waited_for_a_cpu_only),
		TEST(the_peer_that_explains_the_wait_is_the_cause),
		TEST(a_peer_explains_nothing_that_was_not_seen),
		TEST(what_a_step_measured_is_better_than_samples),
		TEST(idle_processes_sleep_too),
		TEST(an_own_thread_that_was_held_explains_more_than_a_process_that_sleeps),
		TEST(a_process_that_was_held_explains_more_than_one_that_works),
		TEST(a_read_waits_for_the_other_end),
		TEST(a_futex_that_times_out_is_waited_for),
		TEST(a_private_futex_is_for_no_process),
		TEST(one_long_sleep_waits_for_nobody),
		TEST(the_chain_goes_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
