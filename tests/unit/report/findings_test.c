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

/* A step that was escalated for a cause, of which inferred_ns are inferred. */
static void escalate(struct fixture *fixture, const struct step *step, enum cause_kind kind,
		     uint64_t time_ns, uint64_t inferred_ns)
{
	struct escalation escalation = make_escalation();

	escalation.cause = (struct cause){.kind = kind,
					  .usual_known = kind != CAUSE_GPU_TRANSFER,
					  .time_ns = time_ns,
					  .inferred_ns = inferred_ns,
					  .total_ns = step_total_ns(step)};
	write_step(fixture, step);
	assert_int_equal(
		fixture->sink->write_escalation(fixture->sink, fixture->window, step, &escalation),
		0);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_is_the_same_in_all_steps_is_a_finding),
		TEST(escalations_of_one_function_do_not_hide_what_another_one_waits_for),
		TEST(what_was_inferred_hides_no_wait_that_was_measured),
		TEST(the_time_of_copies_is_told_as_all_of_it),
		TEST(of_several_processes_the_one_with_the_steps_has_its_cpus_told),
		TEST(of_several_processes_with_steps_the_one_that_waited_longest_is_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
