/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "report_fixture.h"

static int setup(void **state)
{
	*state = new_fixture(REPORT_TEXT);
	return 0;
}

static int teardown(void **state)
{
	free_fixture(*state);
	return 0;
}

/* A step of which wait_ns were waits for a CPU; the rest is own code. */
static struct step waiting_step(struct fixture *fixture, uint32_t kind, uint64_t length_ns,
				uint64_t wait_ns)
{
	struct step step = make_step(fixture, length_ns);

	step.record.kind = kind;
	memset(step.record.sums, 0, sizeof(step.record.sums));
	step.record.header.flags |= FBT_STEP_CPU_KNOWN;
	step.record.run_delay_ns = wait_ns;
	step.record.cpu_ns = length_ns - wait_ns;
	return step;
}

static void write_steps(struct fixture *fixture, uint32_t kind, int count, uint64_t length_ns,
			uint64_t wait_ns)
{
	for (int i = 0; i < count; i++) {
		struct step step = waiting_step(fixture, kind, length_ns, wait_ns);

		write_step(fixture, &step);
	}
}

static void escalate_for(struct fixture *fixture, const struct step *step,
			 const struct cause *cause)
{
	struct escalation escalation = make_escalation();

	escalation.cause = *cause;
	write_step(fixture, step);
	assert_int_equal(
		fixture->sink->write_escalation(fixture->sink, fixture->window, step, &escalation),
		0);
}

/* A step that was escalated for a cause, of which inferred_ns are inferred. */
static void escalate(struct fixture *fixture, const struct step *step, enum cause_kind kind,
		     uint64_t time_ns, uint64_t inferred_ns)
{
	const struct cause cause = {.kind = kind,
				    .usual_known = kind != CAUSE_GPU_TRANSFER,
				    .time_ns = time_ns,
				    .inferred_ns = inferred_ns,
				    .total_ns = step_total_ns(step)};

	escalate_for(fixture, step, &cause);
}

#define DECODE_WAITS "of the time of llama_decode (1.00 s) was spent waiting for a CPU"

static void what_is_the_same_in_all_steps_is_a_finding(void **state)
{
	struct fixture *fixture = *state;

	write_steps(fixture, 1, 100, 40 * MS, 10 * MS);
	finish(fixture);
	assert_says(fixture->text, DECODE_WAITS);
}

static void escalations_of_one_function_do_not_hide_what_another_one_waits_for(void **state)
{
	struct fixture *fixture = *state;
	struct step slow;

	add_kind(fixture, 2, "llama_encode", "/opt/libllama.so");
	write_steps(fixture, 1, 100, 40 * MS, 10 * MS);
	slow = waiting_step(fixture, 2, 1000 * MS, 900 * MS);
	escalate(fixture, &slow, CAUSE_RUN_QUEUE, 900 * MS, 0);
	finish(fixture);
	assert_says(fixture->text, DECODE_WAITS);
	assert_says(fixture->text,
		    "! run queue: 900 ms more than usual in 1 escalated step (#101)");
	/* That of the escalated function is its escalation's. */
	assert_has_not(fixture->text, "of the time of llama_encode");
}

/* A step that spins for a thread without a CPU does so in its own code. */
static void what_was_inferred_hides_no_wait_that_was_measured(void **state)
{
	struct fixture *fixture = *state;
	struct step slow;

	write_steps(fixture, 1, 100, 40 * MS, 10 * MS);
	slow = waiting_step(fixture, 1, 1000 * MS, 0);
	escalate(fixture, &slow, CAUSE_RUN_QUEUE, 900 * MS, 900 * MS);
	finish(fixture);
	assert_says(fixture->text, DECODE_WAITS);
}

/* The step waited in futex for a thread that had no CPU. */
static void what_a_worker_waited_for_hides_only_the_wait_for_it(void **state)
{
	struct fixture *fixture = *state;
	struct step slow;

	write_steps(fixture, 1, 100, 40 * MS, 10 * MS);
	slow = waiting_step(fixture, 1, 1000 * MS, 0);
	slow.record.sums[FBT_FUTEX] = (struct fbt_sum){.ns = 900 * MS, .calls = 1};
	slow.record.cpu_ns = 100 * MS;
	escalate_for(fixture, &slow,
		     &(struct cause){.kind = CAUSE_RUN_QUEUE,
				     .usual_known = true,
				     .time_ns = 900 * MS,
				     .waker = {.tid = 9, .ns = 900 * MS}});
	finish(fixture);
	assert_says(fixture->text, DECODE_WAITS);
	assert_has_not(fixture->text, "was spent in futex calls");
}

/* What copies usually take is not known: their time is not an excess. */
static void the_time_of_copies_is_told_as_all_of_it(void **state)
{
	struct fixture *fixture = *state;
	struct step slow = waiting_step(fixture, 1, 1000 * MS, 0);

	escalate(fixture, &slow, CAUSE_GPU_TRANSFER, 800 * MS, 0);
	finish(fixture);
	assert_says(fixture->text, "! gpu transfer: 800 ms of copies in 1 escalated step (#1)");
	assert_has_not(fixture->text, "more than usual");
}

/* A step of which wait_ns were waits for a disk, at a memory limit that was reached hits times. */
static struct step faulting_step(struct fixture *fixture, uint64_t wait_ns, uint32_t hits)
{
	struct step step = waiting_step(fixture, 1, 40 * MS, 0);

	step.record.cpu_ns -= wait_ns;
	step.record.asleep_ns = step.record.fault_wait_ns = wait_ns;
	step.record.major_faults = 1280;
	step.record.limits.memory_hits = hits;
	return step;
}

static void write_faulting(struct fixture *fixture, int count, uint64_t wait_ns, uint32_t hits)
{
	for (int i = 0; i < count; i++) {
		struct step step = faulting_step(fixture, wait_ns, hits);

		write_step(fixture, &step);
	}
}

#define PAGES_WAIT "of the time of llama_decode (1.00 s) was spent waiting for pages from a disk"

static void what_a_memory_limit_costs_all_steps_is_found_as_such(void **state)
{
	struct fixture *fixture = *state;

	write_faulting(fixture, 100, 10 * MS, 10);
	finish(fixture);
	assert_says(fixture->text, PAGES_WAIT " (its cgroup was at its memory limit 1,000 times): "
					      "raise the memory limit of its cgroup");
}

/* All of them see the counter of one cgroup. */
static void what_several_threads_count_of_one_limit_is_counted_once(void **state)
{
	struct fixture *fixture = *state;

	for (uint32_t i = 0; i < 80; i++) {
		struct step step = faulting_step(fixture, 10 * MS, 10);

		step.record.tid = 50 + i % 8;
		write_step(fixture, &step);
	}
	finish(fixture);
	assert_says(fixture->text, "(its cgroup was at its memory limit at least 100 times): "
				   "raise the memory limit of its cgroup");
}

/* A limit that is reached too seldom for as many page faults, or in few of the steps. */
static void a_memory_limit_that_explains_little_is_not_told(void **state)
{
	struct fixture *fixture = *state;

	write_faulting(fixture, 60, 10 * MS, 9);
	write_faulting(fixture, 40, 10 * MS, 500);
	finish(fixture);
	assert_says(fixture->text, PAGES_WAIT ": touch memory before the step and keep it");
	assert_has_not(fixture->text, "memory limit");
}

/* 10 ms of each step are off the CPU; the host took so much of its CPU meanwhile. */
static void write_stolen(struct fixture *fixture, int count, uint32_t steal_us)
{
	for (int i = 0; i < count; i++) {
		struct step step = waiting_step(fixture, 1, 40 * MS, 0);

		step.record.cpu_ns -= 10 * MS;
		step.record.asleep_ns = 10 * MS;
		step.record.steal_us = steal_us;
		write_step(fixture, &step);
	}
}

#define OFF_CPU "of the time of llama_decode (1.00 s) was spent off the CPU"

static void what_the_host_takes_of_all_steps_is_found_as_such(void **state)
{
	struct fixture *fixture = *state;

	/* What is above the time off the CPU was taken from others. */
	write_stolen(fixture, 51, 50000);
	write_stolen(fixture, 49, 0);
	finish(fixture);
	assert_says(fixture->text,
		    OFF_CPU " (the host of this virtual machine took its CPU for 510 ms): "
			    "ask for CPUs of its own");
}

static void a_host_that_took_half_of_it_is_not_told(void **state)
{
	struct fixture *fixture = *state;

	write_stolen(fixture, 100, 5000);
	finish(fixture);
	assert_says(fixture->text, OFF_CPU ": look for a host that takes the CPU of its guest");
}

static void write_steps_of(struct fixture *fixture, uint32_t tgid, uint64_t wait_ns)
{
	for (int i = 0; i < 10; i++) {
		struct step step = waiting_step(fixture, 1, 40 * MS, wait_ns);

		step.record.tgid = tgid;
		write_step(fixture, &step);
	}
}

static void may_use(struct fixture *fixture, uint32_t tgid, uint32_t cpus)
{
	struct process *process = window__touch_process(fixture->window, tgid);

	assert_non_null(process);
	process->cpus.cpus = cpus;
}

/* An engine has processes that make no steps. */
static void of_several_processes_the_one_with_the_steps_has_its_cpus_told(void **state)
{
	struct fixture *fixture = *state;

	add_process(fixture, 50, "worker");
	may_use(fixture, 42, 8);
	may_use(fixture, 50, 3);
	write_steps_of(fixture, 50, 20 * MS);
	finish(fixture);
	assert_says(fixture->text, "spent waiting for a CPU in process 50 (3 CPUs, ");
}

static void of_several_processes_with_steps_the_one_that_waited_longest_is_named(void **state)
{
	struct fixture *fixture = *state;

	add_process(fixture, 50, "worker");
	add_process(fixture, 51, "worker");
	may_use(fixture, 42, 8);
	may_use(fixture, 50, 3);
	may_use(fixture, 51, 4);
	write_steps_of(fixture, 42, 10 * MS);
	write_steps_of(fixture, 50, 20 * MS);
	write_steps_of(fixture, 51, 10 * MS);
	finish(fixture);
	assert_says(fixture->text, "spent waiting for a CPU, longest in process 50 (3 CPUs, ");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

/* A thread that waited 100 ms for a CPU while it ran for 200 ms. */
static void add_thread(struct fixture *fixture, uint32_t tid, uint16_t flags)
{
	struct process *process = window__touch_process(fixture->window, 42);
	const struct fbt_thread_use use = {.header.flags = FBT_USE_CPU_KNOWN | flags,
					   .tgid = 42,
					   .tid = tid,
					   .cpu_ns = 200 * MS,
					   .delay_ns = 100 * MS};

	assert_non_null(process);
	assert_int_equal(thread_table_add(&process->threads, &use), 0);
}

static void threads_that_run_steps_are_none_of_the_others(void **state)
{
	struct fixture *fixture = *state;

	write_steps(fixture, 1, 100, 40 * MS, 0);
	for (uint32_t i = 0; i < 20; i++)
		add_thread(fixture, 50 + i, 0);
	/* More than are kept. */
	for (uint32_t i = 0; i < 100; i++)
		add_thread(fixture, 100 + i, FBT_USE_STEPS);
	finish(fixture);
	assert_says(fixture->text, "the other threads of process 42 waited for a CPU for 2.00 s");
}

static void without_steps_all_threads_count(void **state)
{
	struct fixture *fixture = *state;

	for (uint32_t i = 0; i < 100; i++)
		add_thread(fixture, 100 + i, FBT_USE_STEPS);
	finish(fixture);
	assert_says(fixture->text, "the threads of process 42 waited for a CPU for 10.0 s");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_is_the_same_in_all_steps_is_a_finding),
		TEST(escalations_of_one_function_do_not_hide_what_another_one_waits_for),
		TEST(what_was_inferred_hides_no_wait_that_was_measured),
		TEST(what_a_worker_waited_for_hides_only_the_wait_for_it),
		TEST(the_time_of_copies_is_told_as_all_of_it),
		TEST(what_a_memory_limit_costs_all_steps_is_found_as_such),
		TEST(what_several_threads_count_of_one_limit_is_counted_once),
		TEST(a_memory_limit_that_explains_little_is_not_told),
		TEST(what_the_host_takes_of_all_steps_is_found_as_such),
		TEST(a_host_that_took_half_of_it_is_not_told),
		TEST(threads_that_run_steps_are_none_of_the_others),
		TEST(without_steps_all_threads_count),
		TEST(of_several_processes_the_one_with_the_steps_has_its_cpus_told),
		TEST(of_several_processes_with_steps_the_one_that_waited_longest_is_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
