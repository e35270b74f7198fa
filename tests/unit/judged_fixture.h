/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Steps made of named calls, and random numbers that are the same each time. */
#ifndef FBT_JUDGED_FIXTURE_H
#define FBT_JUDGED_FIXTURE_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "model/step.h"
#include "model/syscalls.h"
#include "model/window.h"

#define US UINT64_C(1000)
#define MS UINT64_C(1000000)
#define S  UINT64_C(1000000000)

/* splitmix64 */
static inline uint64_t next_random(uint64_t *seed)
{
	uint64_t z = *seed += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

static inline uint64_t random_below(uint64_t *seed, uint64_t limit)
{
	return next_random(seed) % limit;
}

static inline struct window *new_window(void)
{
	const char *strings[WINDOW_STRINGS] = {"pid7_1", "0.1.0", "6.1.0", "box"};
	const char *args[] = {"n_tokens", "n_seqs"};
	struct fbt_window record = {
		.start_ns = S, .arch = FBT_ARCH_X86_64, .detail = FBT_DETAIL_ESCALATED};
	struct fbt_kind kind = {.kind = 1, .arg_count = 2};
	struct window *window = window__new();

	assert_non_null(window);
	assert_int_equal(window__open(window, &record, strings), 0);
	assert_int_equal(window__add_kind(window, &kind, "llama_decode", "/libllama.so", args), 0);
	kind.kind = 2;
	kind.arg_count = 0;
	assert_int_equal(window__add_kind(window, &kind, "prefill", "/libllama.so", args), 0);
	return window;
}

static inline int setup_window(void **state)
{
	*state = new_window();
	return 0;
}

static inline int teardown_window(void **state)
{
	window__free(*state);
	return 0;
}

static inline void name_file(struct window *window, uint32_t id, uint32_t mode, const char *path)
{
	struct fbt_file record = {.id = id, .tgid = 7, .fd = (int32_t)id, .mode = mode};

	assert_int_equal(window__add_file(window, &record, path), 0);
}

static inline uint32_t find_nr(enum fbt_arch arch, const char *name)
{
	for (uint32_t nr = 0; nr < FBT_NR_COUNT; nr++) {
		const char *other = syscall_name(arch, nr);

		if (other && !strcmp(name, other))
			return nr;
	}
	return FBT_NR_COUNT;
}

static inline uint32_t nr_of(const char *name)
{
	uint32_t nr = find_nr(FBT_ARCH_X86_64, name);

	if (nr == FBT_NR_COUNT)
		fail_msg("no call is named %s", name);
	return nr;
}

/* A step of kind 1 that returned; without calls it is all work. */
static inline struct step make_step(uint64_t total_ns)
{
	return (struct step){.complete = true,
			     .record = {.tgid = 7,
					.tid = 7,
					.kind = 1,
					.start_ns = 2 * S,
					.end_ns = 2 * S + total_ns,
					.thread_ns = total_ns}};
}

static inline void free_step(struct step *step)
{
	vec_free(&step->calls);
}

/* Where the calls of a step end so far. */
static inline uint64_t end_of_calls(const struct step *step)
{
	const struct fbt_call *last;

	if (!step->calls.count)
		return step->record.start_ns;
	last = &step->calls.items[step->calls.count - 1];
	return last->start_ns + last->duration_ns;
}

/* Adds a call of ns at the end of the step's calls, and to its sums. Valid until the next one. */
static inline struct fbt_call *add_nr(struct step *step, uint32_t nr, uint64_t ns)
{
	struct fbt_sum *sum = &step->record.sums[syscall_category(FBT_ARCH_X86_64, nr)];
	struct fbt_call call = {.header.flags = FBT_CALL_ARGS,
				.tgid = step->record.tgid,
				.tid = step->record.tid,
				.start_ns = end_of_calls(step),
				.duration_ns = ns,
				.nr = nr};

	sum->ns += ns;
	sum->calls++;
	if (ns > sum->max_ns)
		sum->max_ns = ns;
	assert_int_equal(vec_push(&step->calls, call), 0);
	return &step->calls.items[step->calls.count - 1];
}

static inline struct fbt_call *add_call(struct step *step, const char *name, uint64_t ns)
{
	return add_nr(step, nr_of(name), ns);
}

#endif
