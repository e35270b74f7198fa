/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * judge TRUTH MODE STEPS FILE [CGROUP]: an engine in which one step in a fixed number is slow in
 * one way, or that is healthy but unsteady (see the headers in judge/). Its log has a row for each
 * step: when the step began and ended, how long its thread was on a CPU, whether it was due to be
 * slow, and how long its CPU limit kept it off the CPU.
 */
#include "judge/healthy.h"
#include "judge/limits.h"

static const struct mode modes[] = {
	{.name = "lock",
	 .causes = "lock_contention",
	 .set_up = start_helper,
	 .before = ask_helper,
	 .in_step = take_lock,
	 .help = hold_lock,
	 .work_us = 3000,
	 .due_work_us = 3900,
	 .every = 20},
	{.name = "lock_more",
	 .causes = "lock_contention",
	 .set_up = start_helper,
	 .before = ask_helper,
	 .in_step = take_lock,
	 .help = hold_lock,
	 .work_us = 3000,
	 .due_work_us = 4600,
	 .every = 20},
	{.name = "lock_less",
	 .causes = "lock_contention",
	 .set_up = start_helper,
	 .before = ask_helper,
	 .in_step = take_lock,
	 .help = hold_lock,
	 .work_us = 3000,
	 .due_work_us = 1500,
	 .every = 20},
	{.name = "lock_computed",
	 .causes = "lock_contention",
	 .set_up = start_helper,
	 .before = ask_helper,
	 .in_step = take_lock,
	 .help = compute_in_lock,
	 .work_us = 3000,
	 .every = 20},
	{.name = "lock_beside",
	 .causes = "lock_contention",
	 .set_up = start_helper_and_stranger,
	 .before = ask_helper,
	 .in_step = take_lock,
	 .help = hold_lock,
	 .work_us = 3000,
	 .every = 20},
	{.name = "late",
	 .causes = "late_thread",
	 .set_up = make_crew,
	 .in_step = meet_crew,
	 .help = come_late,
	 .work_us = 3000,
	 .every = 20},
	{.name = "sleep",
	 .causes = "sleep",
	 .in_step = sleep_if_due,
	 .work_us = 3000,
	 .due_work_us = 4600,
	 .every = 20},
	{.name = "stop",
	 .causes = "stopped",
	 .set_up = start_stopper,
	 .before = ask_stopper,
	 .hold = hold_by_signal,
	 .work_us = 3000,
	 .every = 100},
	{.name = "traced",
	 .causes = "stopped",
	 .set_up = start_stopper,
	 .before = ask_stopper,
	 .hold = hold_by_tracing,
	 .work_us = 3000,
	 .every = 100},
	{.name = "frozen",
	 .causes = "stopped",
	 .set_up = start_stopper,
	 .before = ask_stopper,
	 .hold = hold_by_freezing,
	 .work_us = 3000,
	 .every = 100},
	{.name = "worker_traced",
	 .causes = "stopped",
	 .set_up = start_worker_and_stopper,
	 .before = ask_stopper,
	 .in_step = wait_for_helper,
	 .help = compute_and_be_held,
	 .hold = hold_by_tracing,
	 .work_us = 1000,
	 .every = 100},
	{.name = "worker_cold",
	 .causes = "page_faults",
	 .set_up = map_weights_of_worker,
	 .before = cool_weights,
	 .in_step = wait_for_helper,
	 .help = read_weights_for_step,
	 .work_us = 3000,
	 .every = 20},
	{.name = "late_read",
	 .causes = "late_thread",
	 .set_up = make_pipes,
	 .in_step = read_answer,
	 .help = answer_late,
	 .work_us = 3000,
	 .every = 20},
	{.name = "late_polled",
	 .causes = "late_thread",
	 .set_up = make_eventfds,
	 .in_step = poll_answer,
	 .help = answer_late,
	 .work_us = 3000,
	 .every = 20},
	{.name = "late_epolled",
	 .causes = "late_thread",
	 .set_up = make_pipes_and_epoll,
	 .in_step = epoll_answer,
	 .help = answer_late,
	 .work_us = 3000,
	 .every = 20},
	{.name = "pinned",
	 .causes = "run_queue",
	 .set_up = find_team,
	 .before = pin_team,
	 .after = free_team,
	 .in_step = lead_team,
	 .help = work_in_team,
	 .every = 20},
	{.name = "team_traced",
	 .causes = "stopped",
	 .set_up = find_team_and_stopper,
	 .before = ask_stopper,
	 .in_step = lead_team,
	 .help = work_in_team,
	 .is_team = true,
	 .hold = hold_by_tracing,
	 .every = 100},
	{.name = "team_call",
	 .causes = "late_thread",
	 .set_up = find_team,
	 .in_step = lead_team_to_call,
	 .help = call_in_team,
	 .every = 20},
	{.name = "team_lock",
	 .causes = "late_thread",
	 .set_up = find_team_and_holder,
	 .in_step = lead_team_to_call,
	 .help = lock_in_team,
	 .every = 20},
	{.name = "hog",
	 .causes = "run_queue",
	 .set_up = share_cpu,
	 .before = ask_helper,
	 .help = hog_cpu,
	 .work_us = 3000,
	 .every = 20},
	{.name = "starved",
	 .causes = "run_queue",
	 .set_up = give_worker_to_hog,
	 .before = ask_helper,
	 .in_step = ask_worker,
	 .help = hog_cpu,
	 .work_us = 3000,
	 .every = 20},
	{.name = "cold",
	 .causes = "page_faults",
	 .set_up = map_weights,
	 .before = cool_weights,
	 .in_step = read_weights,
	 .work_us = 3000,
	 .every = 20},
	{.name = "faults",
	 .causes = "page_faults",
	 .set_up = reserve_memory,
	 .before = give_memory_back,
	 .in_step = touch_memory,
	 .work_us = 3000,
	 .every = 20},
	{.name = "signals",
	 .causes = "signal_storm",
	 .set_up = make_timer,
	 .before = start_storm,
	 .after = end_storm,
	 .work_us = 3000,
	 .every = 20},
	{.name = "threads",
	 .causes = "thread_churn",
	 .in_step = churn_threads,
	 .work_us = 3000,
	 .every = 20},
	{.name = "mmap",
	 .causes = "allocation_churn",
	 .in_step = map_and_unmap,
	 .work_us = 3000,
	 .every = 20},
	{.name = "writes",
	 .causes = "tiny_writes",
	 .set_up = make_small_file,
	 .in_step = write_often,
	 .work_us = 3000,
	 .every = 20},
	{.name = "reads",
	 .causes = "file_io",
	 .set_up = make_small_file,
	 .in_step = read_much,
	 .work_us = 3000,
	 .every = 20},
	{.name = "ioctl",
	 .causes = "driver_calls",
	 .set_up = open_random,
	 .in_step = ask_driver,
	 .work_us = 3000,
	 .every = 20},
	{.name = "quota",
	 .causes = "cpu_limit",
	 .set_up = open_cpu_limit,
	 .before = limit_cpu,
	 .after = free_cpu,
	 .counter = throttled_ns,
	 .throttles = true,
	 .work_us = 8000,
	 .every = 20},
	{.name = "memory",
	 .causes = "memory_limit",
	 .set_up = open_memory_limit,
	 .before = limit_memory,
	 .in_step = read_weights,
	 .after = free_memory,
	 .counter = memory_hits,
	 .work_us = 3000,
	 .every = 20},
	{.name = "worker_memory",
	 .causes = "memory_limit",
	 .set_up = open_memory_limit_of_worker,
	 .before = limit_memory,
	 .in_step = wait_for_helper,
	 .help = read_weights_for_step,
	 .after = free_memory,
	 .counter = memory_hits,
	 .work_us = 3000,
	 .every = 20},

	/* Healthy ones. */
	{.name = "steady", .causes = "", .work_us = 3000},
	{.name = "prefill",
	 .causes = "",
	 .set_up = make_small_file,
	 .in_step = do_chores,
	 .work_us = 3000,
	 .due_work_us = 48000,
	 .every = 20},
	{.name = "device",
	 .causes = "",
	 .in_step = wait_for_device,
	 .work_us = 1000,
	 .due_work_us = 12000,
	 .every = 20},
	{.name = "mixed", .causes = "", .work_of = mixed_work},
	{.name = "growing", .causes = "", .work_of = growing_work},
	{.name = "bursts", .causes = "", .work_of = bursts_of_work},
	{.name = "two", .causes = "", .work_of = two_works},
	{.name = "busy_lock",
	 .causes = "",
	 .set_up = start_helper,
	 .in_step = take_lock,
	 .help = hold_lock_often,
	 .work_us = 3000},
	{.name = "workers",
	 .causes = "",
	 .set_up = start_helper,
	 .in_step = wait_for_worker,
	 .help = compute_prefills,
	 .work_us = 3000,
	 .every = 20},
	{.name = "pool",
	 .causes = "",
	 .set_up = make_pool,
	 .in_step = use_pool,
	 .help = compute_parts,
	 .work_us = 3000,
	 .every = 20},
	{.name = "crew",
	 .causes = "",
	 .set_up = make_crew,
	 .in_step = meet_crew,
	 .help = compute_as_long,
	 .work_us = 3000,
	 .every = 20},
	{.name = "sleepers",
	 .causes = "",
	 .set_up = find_sleepers,
	 .in_step = lead_sleepers,
	 .help = spin_and_sleep,
	 .every = 20},
	{.name = "faulting",
	 .causes = "",
	 .set_up = reserve_memory,
	 .in_step = touch_some,
	 .work_us = 3000},
	{.name = "answer_read",
	 .causes = "",
	 .set_up = make_eventfds,
	 .in_step = read_answer,
	 .help = answer_when_done,
	 .work_us = 3000,
	 .every = 20},
	{.name = "answer_polled",
	 .causes = "",
	 .set_up = make_sockets,
	 .in_step = poll_answer,
	 .help = answer_when_done,
	 .work_us = 3000,
	 .every = 20},
	{.name = "answer_epolled",
	 .causes = "",
	 .set_up = make_pipes_and_epoll,
	 .in_step = epoll_answer,
	 .help = answer_when_done,
	 .work_us = 3000,
	 .every = 20},
	{.name = "warm_up",
	 .causes = "",
	 .set_up = reserve_memory,
	 .in_step = touch_once,
	 .work_us = 3000},
};

struct row {
	uint64_t begin_ns, end_ns, cpu_ns, throttled_ns;
	bool due;
};

void judged_step(struct engine *e, long us, bool due);

STEP void judged_step(struct engine *e, long us, bool due)
{
	work(us);
	if (e->mode->in_step)
		e->mode->in_step(e, due);
	STAY();
}

static void set_up(struct engine *e)
{
	pthread_mutex_init(&e->lock, NULL);
	if (e->mode->set_up)
		e->mode->set_up(e);
}

static long work_of(struct engine *e, long number, bool due)
{
	const struct mode *mode = e->mode;

	if (mode->work_of)
		return mode->work_of(e, number);
	return due && mode->due_work_us ? mode->due_work_us : mode->work_us;
}

static void make_step(struct engine *e, long number, struct row *row)
{
	const struct mode *mode = e->mode;
	const bool due = mode->every && number % mode->every == 0;
	const long us = work_of(e, number, due);
	uint64_t cpu_ns, team_ns = 0, before = 0;

	if (due && mode->before)
		mode->before(e);
	if (mode->counter)
		before = mode->counter(e);
	if (mode->is_team)
		team_ns = clock_ns(e->worker_clock);
	cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	row->begin_ns = clock_ns(CLOCK_MONOTONIC);
	judged_step(e, us, due);
	row->end_ns = clock_ns(CLOCK_MONOTONIC);
	row->cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_ns;
	if (mode->is_team)
		team_ns = clock_ns(e->worker_clock) - team_ns;
	/* Whoever has no CPU holds up the other one, which spins. */
	if (mode->is_team && team_ns < row->cpu_ns)
		row->cpu_ns = team_ns;
	row->due = due && (!mode->counter || mode->counter(e) > before);
	row->throttled_ns = mode->throttles ? mode->counter(e) - before : 0;
	if (due && mode->after)
		mode->after(e);
	pause_us(200);
}

static void write_truth(FILE *truth, const struct engine *e, const struct row *rows)
{
	fprintf(truth, "{\"mode\":\"%s\",\"causes\":\"%s\",\"steps\":[", e->mode->name,
		e->mode->causes);
	for (long i = 0; i < e->steps; i++)
		fprintf(truth, "%s\n[%lu,%lu,%lu,%d,%lu]", i ? "," : "", rows[i].begin_ns,
			rows[i].end_ns, rows[i].cpu_ns, rows[i].due, rows[i].throttled_ns);
	fprintf(truth, "]}\n");
	fclose(truth);
}

int main(int argc, char **argv)
{
	struct engine e = {.random = 1};
	struct row *rows;
	FILE *truth;

	for (size_t i = 0; argc > 4 && i < sizeof(modes) / sizeof(modes[0]); i++)
		if (strcmp(modes[i].name, argv[2]) == 0)
			e.mode = &modes[i];
	if (!e.mode)
		return EXIT_FAILURE;
	truth = open_truth(argv);
	e.steps = number_at(argv, 3, 0);
	e.path = argv[4];
	e.cgroup = argc > 5 ? argv[5] : NULL;
	rows = calloc((size_t)e.steps + 1, sizeof(*rows));
	must(rows != NULL, "calloc");
	set_up(&e);
	wait_for_go();
	for (long i = 0; i < e.steps; i++)
		make_step(&e, i + 1, &rows[i]);
	write_truth(truth, &e, rows);
	return 0;
}
