/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * judge STEPS CALLS: nanoseconds that judging one step of CALLS calls takes, and keeping its calls
 * for evidence; the first figure is of a plain step, the second of one that is escalated. Decoding,
 * assembling and writing are not in it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "judge/classify.h"
#include "base/clock.h"
#include "judge/evidence.h"
#include "model/syscalls.h"

#define CLASSES 8
#define STEP_NS 2000000ull

struct bench {
	struct window *window;
	struct classifier *classifier;
	struct evidence *evidence;
	struct step step;
	uint64_t seed;
	uint64_t escalated;
};

static uint64_t random_below(struct bench *bench, uint64_t limit)
{
	bench->seed = bench->seed * 6364136223846793005ull + 1442695040888963407ull;
	return (bench->seed >> 33) % limit;
}

static int show_calls(void *ctx, const struct window *window, const struct step *step)
{
	return 0;
}

/* Work of one of CLASSES sizes, calls of a few microseconds, and a wait if it is to be escalated.
 */
static void make_step(struct bench *bench, uint64_t number, uint32_t calls, bool slow)
{
	static const uint32_t numbers[] = {202, 16, 0, 1, 9, 39}; /* of x86-64, a category each */
	struct step *step = &bench->step;
	struct fbt_step *record = &step->record;
	uint64_t at;

	memset(record, 0, sizeof(*record));
	record->tgid = 7;
	record->tid = 7;
	record->kind = 1;
	record->start_ns = number * 1000 * STEP_NS;
	at = record->start_ns;
	for (uint32_t i = 0; i < calls; i++) {
		struct fbt_call call = {
			.header.flags = FBT_CALL_ARGS,
			.tgid = 7,
			.tid = 7,
			.start_ns = at,
			.duration_ns = 1000 + random_below(bench, 500),
			.nr = numbers[i % 6],
		};
		struct fbt_sum *sum = &record->sums[syscall_category(FBT_ARCH_X86_64, call.nr)];

		if (slow && !i)
			call.duration_ns += 500 * STEP_NS;
		sum->ns += call.duration_ns;
		sum->calls++;
		at += call.duration_ns + 100;
		if (vec_push(&step->calls, call))
			exit(1);
	}
	record->end_ns = at + (STEP_NS << random_below(bench, CLASSES));
	record->thread_ns = record->end_ns - record->start_ns;
	step->number = number;
	step->kind_number = number;
	step->complete = true;
}

static double time_steps(struct bench *bench, uint64_t first, uint64_t steps, uint32_t calls,
			 bool slow)
{
	const struct escalation *escalation;
	uint64_t ns = 0, before;

	for (uint64_t i = 0; i < steps; i++) {
		make_step(bench, first + i, calls, slow);
		before = clock_ns(CLOCK_MONOTONIC);
		if (classifier__judge(bench->classifier, bench->window, &bench->step,
				      &escalation) ||
		    evidence__push(bench->evidence, bench->window, &bench->step,
				   escalation && !escalation->suppressed))
			exit(1);
		ns += clock_ns(CLOCK_MONOTONIC) - before;
		bench->escalated += escalation != NULL;
		vec_free(&bench->step.calls);
		bench->step.calls = (call_vec){0};
	}
	return (double)ns / (double)steps;
}

int main(int argc, char **argv)
{
	static const char *const strings[WINDOW_STRINGS] = {"", "", "", ""};
	struct classify_options options = classify_default_options();
	struct fbt_window record = {.detail = FBT_DETAIL_ESCALATED, .arch = FBT_ARCH_X86_64};
	struct bench bench = {.seed = 1};
	uint64_t steps = argc == 3 ? strtoull(argv[1], NULL, 10) : 0;
	uint32_t calls = argc == 3 ? (uint32_t)strtoul(argv[2], NULL, 10) : 0;
	double plain, slow;

	if (!steps)
		return 2;
	bench.window = window__new();
	bench.classifier = classifier__new(&options);
	bench.evidence = evidence__new(1, show_calls, NULL);
	if (!bench.window || !bench.classifier || !bench.evidence ||
	    window__open(bench.window, &record, strings))
		return 1;
	plain = time_steps(&bench, 10, steps, calls, false);
	if (bench.escalated)
		return 1;
	/* Few, so that what is usual stays usual. */
	slow = time_steps(&bench, 10 + steps, CLASSES, calls, true);
	printf("%.1f %.1f %llu\n", plain, slow, (unsigned long long)bench.escalated);
	evidence__free(bench.evidence);
	classifier__free(bench.classifier);
	window__free(bench.window);
	return 0;
}
