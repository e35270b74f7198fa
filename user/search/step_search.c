/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "search/step_search.h"

#include <asm/perf_regs.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "inject/python_use.h"
#include "kernel/uprobes.h"
#include "stream/thread_samples.h"
#include "model/syscalls.h"
#include "proc/process.h"
#include "stacks/chains.h"
#include "stacks/shares.h"
#include "steps/engines.h"
#include "steps/find.h"
#include "steps/image.h"
#include "steps/patched.h"
#include "search/candidates.h"
#include "search/step_choice.h"

#define CHOOSE_US 300000
#define SAMPLE_NS (2 * NS_PER_S)
#define WATCH_NS  (2 * NS_PER_S)
/* For functions that may be steps, but were called a few times only. */
#define LONGER_NS (8 * NS_PER_S)
#define TURN_US	  20000
/* At first: a function that is called a million times a second is let go after 2 ms. */
#define FIRST_NS (60 * NS_PER_MS)
#define FIRST_US 2000
/* If nothing was called until then, the functions are outer ones. */
#define SILENT_NS (500 * NS_PER_MS)

/* A thread that uses, or waits for, less than this part of a CPU is idle. */
#define BUSY_PART 20

/* Functions that are probed together. rates.bpf.c times calls that are eight deep. */
#define BATCH	    7
#define BATCHES_MAX 4

/* Threads whose CPU time is read while functions are measured. */
#define WATCHED_MAX 256

/* Calls that wait for what clients send. */
static const char *const event_calls[] = {
	"libc.so.6:epoll_wait", "libc.so.6:epoll_pwait", "libc.so.6:poll",   "libc.so.6:ppoll",
	"libc.so.6:select",	"libc.so.6:pselect",	 "libc.so.6:accept", "libc.so.6:accept4",
};

/* So many waits, and one for so many calls, are too many for a thread that makes steps. */
#define WAITS_MIN      2
#define CALLS_FOR_WAIT 200

#define EVENT_CALLS (sizeof(event_calls) / sizeof(*event_calls))

#ifdef __aarch64__
#define REGISTERS ((1ull << PERF_REG_ARM64_MAX) - 1)
#else
/* In the order of a record. */
#define REGISTERS                                                                                  \
	(0x1ffull | 1ull << PERF_REG_X86_R8 | 1ull << PERF_REG_X86_R9 | 1ull << PERF_REG_X86_R10 | \
	 1ull << PERF_REG_X86_R11 | 1ull << PERF_REG_X86_R12 | 1ull << PERF_REG_X86_R13 |          \
	 1ull << PERF_REG_X86_R14 | 1ull << PERF_REG_X86_R15)
/* The number in DWARF of each: ax bx cx dx si di bp sp ip r8 … r15. */
static const uint8_t dwarf_numbers[] = {0, 3, 2, 1, 4, 5, 6, 7, 16, 8, 9, 10, 11, 12, 13, 14, 15};
#endif

/*
 * llama.cpp's step is 43 KiB above its leaves. In a ring are three records; they are read every
 * 20 ms, in which two come.
 */
static const struct sampling sampling = {
	.registers = REGISTERS, .stack_bytes = 61440, .ring_bytes = 256u << 10};

struct busy_thread {
	uint32_t tid;
	struct thread_samples *samples;
	bool done; /* its functions were measured, or it has none */
	share_vec shares;
};

/* A function that was measured. */
struct measured {
	struct step_function *function; /* NULL: given away */
	struct rate rate;
	struct choice choice;
	struct share share;
};

struct hunt {
	uint32_t tgid;
	uint32_t thread; /* a living one: mappings and files are shown under its number */
	const struct options *options;
	struct step_search *result;
	uint64_t cpu_end_ns; /* of our CPU time */
	bool starved;	     /* its threads are short of CPUs */
	struct chains *chains;
	struct busy_thread threads[SHARE_THREADS_MAX];
	size_t thread_count;
	function_vec event_functions;
	VEC(struct measured) measured; /* of the present thread, the outermost first */
};

/* Registers of a record to those of DWARF. Returns which are known. */
static uint64_t translate(const struct thread_sample *sample, uint64_t values[FBT_REGISTERS])
{
	uint64_t known = 0;

	memset(values, 0, FBT_REGISTERS * sizeof(*values));
	for (uint32_t i = 0; i < sample->register_count; i++) {
#ifdef __aarch64__
		uint32_t number = i;
#else
		uint32_t number = dwarf_numbers[i];
#endif
		values[number] = sample->registers[i];
		known |= 1ull << number;
	}
	return known;
}

static int take_sample(void *ctx, const struct thread_sample *sample)
{
	struct hunt *hunt = ctx;
	uint64_t values[FBT_REGISTERS];
	uint64_t known = translate(sample, values);

	if (!known || !sample->size)
		return 0;
	return chains__add(hunt->chains, sample->tid, syscalls_arch(), values, known, sample->stack,
			   sample->size);
}

static bool is_spent(const struct hunt *hunt)
{
	return clock_ns(CLOCK_PROCESS_CPUTIME_ID) > hunt->cpu_end_ns;
}

/* -ECANCELED, with the reason kept. */
static int end_with(struct hunt *hunt, enum step_search_end end)
{
	hunt->result->end = end;
	return -ECANCELED;
}

static int open_thread(struct hunt *hunt, const struct thread_use *use, uint64_t period_ns)
{
	struct busy_thread *thread = &hunt->threads[hunt->thread_count];
	int err = thread_samples__open(&thread->samples, use->tid, &sampling,
				       thread_samples_hz(use, period_ns));

	if (!err) {
		thread->tid = use->tid;
		hunt->thread_count++;
	}
	/* It has ended, or no more rings may be locked: the busiest ones suffice. */
	return err == -ESRCH || (err == -EPERM && hunt->thread_count) ? 0 : err;
}

static int choose_threads(struct hunt *hunt, bool yields)
{
	thread_use_vec before = {0}, threads = {0};
	uint64_t start_ns = clock_ns(CLOCK_MONOTONIC), period_ns = 0;
	int err = thread_use_read(&before, hunt->tgid);

	if (!err) {
		usleep(CHOOSE_US);
		err = thread_use_read(&threads, hunt->tgid);
		period_ns = clock_ns(CLOCK_MONOTONIC) - start_ns;
		thread_use_since(&threads, &before);
	}
	hunt->starved = !err && thread_use_is_short(&threads, period_ns);
	if (hunt->starved && yields)
		err = end_with(hunt, STEP_SEARCH_STARVED);
	for (size_t i = 0; i < threads.count && !err; i++) {
		if (hunt->thread_count == SHARE_THREADS_MAX ||
		    threads.items[i].cpu_ns + threads.items[i].wait_ns < period_ns / BUSY_PART)
			break;
		err = open_thread(hunt, &threads.items[i], period_ns);
	}
	vec_free(&before);
	vec_free(&threads);
	if (!err && !hunt->thread_count)
		err = end_with(hunt, STEP_SEARCH_IDLE);
	return err;
}

static int sample_threads(struct hunt *hunt)
{
	uint64_t end_ns = clock_ns(CLOCK_MONOTONIC) + SAMPLE_NS;
	int err = 0;

	while (!err && clock_ns(CLOCK_MONOTONIC) < end_ns) {
		usleep(TURN_US);
		for (size_t i = 0; i < hunt->thread_count && !err; i++)
			err = thread_samples__read(hunt->threads[i].samples, take_sample, hunt);
		if (is_spent(hunt))
			err = end_with(hunt, STEP_SEARCH_COSTLY);
	}
	for (size_t i = 0; i < hunt->thread_count; i++) {
		thread_samples__free(hunt->threads[i].samples);
		hunt->threads[i].samples = NULL;
	}
	return err;
}

/* The runtime has no steps, and neither has code of no file. */
static bool is_of_engine(const struct hunt *hunt, const struct share *share)
{
	struct chain_function function = chains__function(hunt->chains, share->function);
	const char *path = chains__path(hunt->chains, function.module);

	return path && *path == '/' && !engines_is_runtime(path);
}

static int find_shares(struct hunt *hunt)
{
	uint32_t tids[SHARE_THREADS_MAX];
	int err = 0;

	for (size_t i = 0; i < hunt->thread_count; i++)
		tids[i] = hunt->threads[i].tid;
	for (size_t i = 0; i < hunt->thread_count && !err; i++) {
		share_vec *shares = &hunt->threads[i].shares;
		size_t kept = 0;

		err = shares_find(shares, chains__set(hunt->chains), tids, hunt->thread_count, i);
		for (size_t at = 0; at < shares->count; at++)
			if (is_of_engine(hunt, &shares->items[at]))
				shares->items[kept++] = shares->items[at];
		shares->count = kept;
	}
	return err;
}

/* What --step takes; its name, where it has one, is only shown. */
static int name_function(struct hunt *hunt, struct step_function *function, uint32_t index)
{
	const char *name = chains__name(hunt->chains, index);

	if (asprintf(&function->alone, "%s+0x%" PRIx64, function->path, function->address) < 0)
		function->alone = NULL;
	if (!name)
		return function->alone ? 0 : -ENOMEM;
	free(function->name);
	function->name = strdup(name);
	function->symbol = strdup(name);
	return function->alone && function->name && function->symbol ? 0 : -ENOMEM;
}

static const struct mapping *find_mapping(const mapping_vec *maps, const char *path)
{
	vec_for_each (mapping, maps)
		if (!strcmp(mapping->path, path))
			return mapping;
	return NULL;
}

/* NULL in *function if it cannot be probed: that is no error. Reads no symbols. */
static int resolve(struct hunt *hunt, const mapping_vec *maps, uint32_t index,
		   struct step_function **function)
{
	struct chain_function place = chains__function(hunt->chains, index);
	const struct mapping *mapping =
		find_mapping(maps, chains__path(hunt->chains, place.module));
	char reason[RESOLVE_REASON_BYTES];
	struct image image;
	int err;

	*function = NULL;
	if (!mapping)
		return 0;
	err = image_open(&image, hunt->thread, mapping);
	if (!err)
		err = image_read_extents(&image);
	if (!err)
		err = resolve_function_in(function, hunt->thread, &image, mapping, NULL,
					  place.start, false, reason);
	image_close(&image);
	if (err == -ENOMEM || err == -EMFILE)
		return err;
	return *function ? name_function(hunt, *function, index) : 0;
}

static void clear_measured(struct hunt *hunt)
{
	vec_for_each (measured, &hunt->measured)
		step_function_free(measured->function);
	hunt->measured.count = 0;
}

/* The waits for events in libc, as far as they can be probed. */
static void find_event_calls(struct hunt *hunt)
{
	for (size_t i = 0; i < EVENT_CALLS; i++) {
		struct target_seen *seen = target_seen__new();
		struct step_spec spec = {.form = STEP_SPEC_SYMBOL};
		struct target_options options = {
			.specs = &spec, .spec_count = 1, .tells = TARGET_TELLS_NOTHING};

		if (seen && !step_spec_parse(&spec, event_calls[i]))
			(void)target_find(hunt->thread, &options, seen, &hunt->event_functions);
		step_spec_clear(&spec);
		target_seen__free(seen);
	}
}

/* What was read while functions were measured: at the begin of each slice and at the end. */
struct record {
	/* The sampled threads, and others, on which the same functions may run. */
	uint32_t tids[WATCHED_MAX];
	size_t tid_count;
	size_t count;
	uint64_t calls[CHOICE_SLICES + 1][BATCH];
	uint64_t cpu_ns[CHOICE_SLICES + 1][WATCHED_MAX]; /* of the threads, so far */
};

static bool is_sampled(const struct hunt *hunt, uint32_t tid)
{
	for (size_t i = 0; i < hunt->thread_count; i++)
		if (hunt->threads[i].tid == tid)
			return true;
	return false;
}

static void list_threads(struct record *record, const struct hunt *hunt)
{
	thread_use_vec threads = {0};

	for (size_t i = 0; i < hunt->thread_count; i++)
		record->tids[record->tid_count++] = hunt->threads[i].tid;
	(void)thread_use_read(&threads, hunt->tgid);
	vec_for_each (thread, &threads)
		if (record->tid_count < WATCHED_MAX && !is_sampled(hunt, thread->tid))
			record->tids[record->tid_count++] = thread->tid;
	vec_free(&threads);
}

static void read_moment(struct record *record, const struct hunt *hunt, const struct rates *rates,
			size_t count)
{
	size_t at = record->count++;

	for (size_t i = 0; i < record->tid_count; i++) {
		struct thread_use use = {0};

		(void)thread_use_read_one(&use, (struct proc_ref){hunt->tgid, record->tids[i]});
		record->cpu_ns[at][i] = use.cpu_ns;
	}
	for (size_t i = 0; i < count; i++)
		record->calls[at][i] = rates__calls(rates, i);
}

/*
 * The part of its CPU time that a thread spends in a function. One that was not sampled, and has
 * made calls of it, is taken for one like the thread that is looked at: a pool has many.
 */
static double part_of(const struct measured *measured, const struct hunt *hunt,
		      const struct rates *rates, size_t index, const struct record *record,
		      size_t thread)
{
	if (thread < hunt->thread_count)
		return measured->share.parts[thread];
	return rates__ended_on(rates, index, record->tids[thread]) ? measured->share.part : 0;
}

/* A thread that has ended has used nothing. */
static uint64_t since(uint64_t from, uint64_t to)
{
	return to > from ? to - from : 0;
}

static void fill_slices(struct measured *measured, const struct hunt *hunt,
			const struct rates *rates, size_t index, const struct record *record)
{
	struct choice *choice = &measured->choice;

	*choice = (struct choice){.calls = 0};
	for (size_t at = 0; at < record->tid_count; at++) {
		double part = part_of(measured, hunt, rates, index, record, at);

		for (size_t slice = 0; part > 0 && slice + 1 < record->count; slice++)
			choice->slice_cpu_ns[slice] +=
				(uint64_t)(part * (double)since(record->cpu_ns[slice][at],
								record->cpu_ns[slice + 1][at]));
	}
	for (size_t slice = 0; slice + 1 < record->count; slice++)
		choice->slice_calls[slice] =
			record->calls[slice + 1][index] - record->calls[slice][index];
}

static bool is_silent(const struct rates *rates, size_t count)
{
	uint64_t calls = 0;

	for (size_t i = 0; i < count; i++)
		calls += rates__calls(rates, i);
	return !calls;
}

static void watch(const struct hunt *hunt, struct rates *rates, size_t count, uint64_t watch_ns,
		  struct record *record)
{
	uint64_t start_ns = clock_ns(CLOCK_MONOTONIC), now_ns = start_ns;

	read_moment(record, hunt, rates, count);
	for (size_t slice = 0; slice < CHOICE_SLICES; slice++) {
		while (now_ns < start_ns + (slice + 1) * watch_ns / CHOICE_SLICES) {
			usleep(now_ns < start_ns + FIRST_NS ? FIRST_US : TURN_US);
			rates__check(rates);
			now_ns = clock_ns(CLOCK_MONOTONIC);
		}
		read_moment(record, hunt, rates, count);
		if (now_ns > start_ns + SILENT_NS && is_silent(rates, count))
			break;
	}
}

/*
 * What was called by a function of the batch was called by the outer ones, too. While it is not
 * called too often itself, all its calls are known.
 */
static bool calls_waits(const struct rates *rates, size_t index, size_t count, size_t events)
{
	uint64_t waits = 0;

	for (size_t outer = index; outer < count; outer++)
		for (size_t i = 0; i < events; i++)
			waits += rates__inside(rates, outer, count + i);
	return waits && waits >= rates__calls(rates, index) / 2;
}

/* How often a thread has waited for events. */
static uint64_t count_waits(const struct rates *rates, size_t count, size_t events, uint32_t tid)
{
	uint64_t waits = 0;

	for (size_t i = count; i < count + events; i++) {
		uint64_t ended = rates__ended_on(rates, i, tid);

		if (ended && rates__is_too_often(rates, i))
			return UINT64_MAX;
		waits += ended;
	}
	return waits;
}

/* A thread that waits for events now and then calls what handles them: that is no step. */
static void find_waits(const struct rates *rates, struct measured *measured, size_t count,
		       size_t events, uint32_t tid)
{
	uint64_t waits = count_waits(rates, count, events, tid);

	for (size_t i = 0; i < count; i++) {
		uint64_t calls = rates__calls(rates, i);

		measured[i].choice.waits_for_events =
			calls && (calls_waits(rates, i, count, events) ||
				  (waits >= WAITS_MIN && waits >= calls / CALLS_FOR_WAIT));
	}
}

/* Takes over what rates__finish() has put in an order of its own. */
static void take_rates(struct measured *measured, size_t count, const struct rate *rates,
		       size_t rate_count)
{
	for (size_t i = 0; i < count; i++) {
		struct choice *choice = &measured[i].choice;
		const struct rate *rate = rates;

		while (rate < rates + rate_count && rate->function != measured[i].function)
			rate++;
		if (rate == rates + rate_count)
			continue;
		measured[i].rate = *rate;
		choice->calls = rate->calls;
		choice->ended = rate->ended;
		choice->total_ns = rate_total_ns(rate);
		choice->delay_ns = rate->delay_ns;
		choice->too_often = rate->too_often;
		memcpy(choice->lasted, rate->lasted, sizeof(choice->lasted));
	}
}

static void tell_measured(const struct measured *measured)
{
	const struct choice *choice = &measured->choice;
	uint64_t cpu_ns = 0;

	for (size_t i = 0; i < CHOICE_SLICES; i++)
		cpu_ns += choice->slice_cpu_ns[i];
	log_debug("%s: in %.0f %% of samples, %" PRIu64 " calls, %" PRIu64
		  " ended, %.1f ms in them, "
		  "%.1f ms of CPU: %s",
		  step_function_alone(measured->function), measured->share.part * 100,
		  choice->calls, choice->ended, (double)choice->total_ns / 1e6,
		  (double)cpu_ns / 1e6, choice_doubt_text(choice_doubt(choice)));
}

static int measure(struct hunt *hunt, struct measured *measured, size_t count, uint32_t tid,
		   uint64_t watch_ns)
{
	struct step_function *functions[BATCH + EVENT_CALLS];
	struct rate found[BATCH + EVENT_CALLS];
	struct record *record = calloc(1, sizeof(*record));
	struct rates *rates = NULL;
	size_t events = hunt->event_functions.count;
	int err;

	if (!record)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		functions[i] = measured[i].function;
	events = events < EVENT_CALLS ? events : EVENT_CALLS;
	for (size_t i = 0; i < events; i++)
		functions[count + i] = hunt->event_functions.items[i];
	/* libc's functions are called everywhere: other processes must not pay for their probes. */
	err = rates__open(&rates, functions, count + events, hunt->tgid,
			  hunt->options->perf_uprobes || !uprobes_multi_can_filter());
	if (err)
		goto out;
	list_threads(record, hunt);
	watch(hunt, rates, count, watch_ns, record);
	for (size_t i = 0; i < count; i++)
		fill_slices(&measured[i], hunt, rates, i, record);
	find_waits(rates, measured, count, events, tid);
	rates__finish(rates, found);
	take_rates(measured, count, found, count + events);
	rates__free(rates);
	for (size_t i = 0; i < count; i++)
		tell_measured(&measured[i]);
out:
	free(record);
	return err;
}

/* Resolves the next few functions of a thread, from *at on, to the end of hunt->measured. */
static int add_batch(struct hunt *hunt, const struct busy_thread *thread, const mapping_vec *maps,
		     size_t *at)
{
	size_t first = hunt->measured.count;
	int err = 0;

	while (*at < thread->shares.count && hunt->measured.count < first + BATCH && !err) {
		struct measured measured = {.share = thread->shares.items[(*at)++]};

		err = resolve(hunt, maps, measured.share.function, &measured.function);
		if (!err && measured.function)
			err = vec_push(&hunt->measured, measured);
		if (err)
			step_function_free(measured.function);
		if (!err && is_spent(hunt))
			err = end_with(hunt, STEP_SEARCH_COSTLY);
	}
	return err;
}

static struct choice *copy_choices(const struct hunt *hunt)
{
	struct choice *choices = calloc(hunt->measured.count + 1, sizeof(*choices));

	for (size_t i = 0; choices && i < hunt->measured.count; i++)
		choices[i] = hunt->measured.items[i].choice;
	return choices;
}

/*
 * Sets *best to the index of the step in hunt->measured, or to the number of these. *longer: a
 * longer look would tell.
 */
static int choose(const struct hunt *hunt, size_t *best, bool *longer)
{
	struct choice *choices = copy_choices(hunt);

	if (!choices)
		return -ENOMEM;
	*best = choice_find(choices, hunt->measured.count);
	*longer = choice_needs_time(choices, hunt->measured.count);
	free(choices);
	return 0;
}

/* Measures those from first on, once more and for longer if that is needed. */
static int measure_batch(struct hunt *hunt, const struct busy_thread *thread, size_t first,
			 size_t *best)
{
	struct measured *measured = hunt->measured.items + first;
	size_t count = hunt->measured.count - first;
	bool longer = false;
	int err = measure(hunt, measured, count, thread->tid, WATCH_NS);

	if (!err)
		err = choose(hunt, best, &longer);
	if (err || !longer)
		return err;
	if (is_spent(hunt))
		return end_with(hunt, STEP_SEARCH_COSTLY);
	err = measure(hunt, measured, count, thread->tid, LONGER_NS);
	return err ? err : choose(hunt, best, &longer);
}

/* Within what waits for events there are no steps: nothing else has to be probed. */
static bool handles_events(const struct hunt *hunt)
{
	vec_for_each (measured, &hunt->measured)
		if (measured->choice.waits_for_events)
			return true;
	return false;
}

/* Measures the functions of a thread, from the outermost on, until one is the step. */
static int measure_thread(struct hunt *hunt, struct busy_thread *thread, const mapping_vec *maps,
			  size_t *best)
{
	size_t at = 0;
	int err = 0;

	thread->done = true;
	clear_measured(hunt);
	*best = 0;
	for (int i = 0;
	     i < BATCHES_MAX && !err && *best == hunt->measured.count && !handles_events(hunt);
	     i++) {
		size_t first = hunt->measured.count;

		err = add_batch(hunt, thread, maps, &at);
		*best = hunt->measured.count;
		if (err || hunt->measured.count == first)
			break;
		err = measure_batch(hunt, thread, first, best);
	}
	return err;
}

/* Makes the step of a thread the result, and keeps a few of those within it that are as sure. */
static int take_over(struct hunt *hunt, const struct busy_thread *thread, size_t best)
{
	struct step_search *result = hunt->result;
	int err = 0;

	step_functions_free(&result->functions);
	result->end = STEP_SEARCH_FOUND;
	result->tid = thread->tid;
	result->share = hunt->measured.items[best].share.part;
	for (size_t i = best; i < hunt->measured.count && !err; i++) {
		struct measured *measured = &hunt->measured.items[i];

		if (result->functions.count == STEP_SEARCH_MAX || choice_doubt(&measured->choice))
			continue;
		result->rates[result->functions.count] = measured->rate;
		err = vec_push(&result->functions, measured->function);
		if (!err)
			measured->function = NULL;
	}
	return err;
}

static bool is_on(const struct busy_thread *thread, uint32_t function)
{
	vec_for_each (share, &thread->shares)
		if (share->function == function)
			return true;
	return false;
}

/* Whether a thread is in the function within another one that a thread of before is not in. */
static bool has_other_caller(const struct busy_thread *thread, const struct busy_thread *before,
			     uint32_t function)
{
	bool other = false;

	vec_for_each (share, &thread->shares) {
		if (share->function == function)
			return other;
		other |= !is_on(before, share->function);
	}
	return false;
}

static struct busy_thread *find_caller(struct hunt *hunt, const struct busy_thread *before,
				       uint32_t function)
{
	for (size_t i = 0; i < hunt->thread_count; i++)
		if (!hunt->threads[i].done && has_other_caller(&hunt->threads[i], before, function))
			return &hunt->threads[i];
	return NULL;
}

/*
 * A step of a worker of a pool is a part of that of the thread which gives it its work: of two
 * threads with the same function the one counts on which it is called by a step.
 */
static int search_callers(struct hunt *hunt, const mapping_vec *maps,
			  const struct busy_thread *before, uint32_t function)
{
	struct busy_thread *thread;
	size_t best;
	int err = 0;

	while (!err && (thread = find_caller(hunt, before, function))) {
		err = measure_thread(hunt, thread, maps, &best);
		if (err || best == hunt->measured.count ||
		    hunt->measured.items[best].share.function == function)
			continue;
		function = hunt->measured.items[best].share.function;
		before = thread;
		err = take_over(hunt, thread, best);
	}
	return err;
}

static int search_threads(struct hunt *hunt, const mapping_vec *maps)
{
	int err = 0;

	for (size_t i = 0; i < hunt->thread_count && !err; i++) {
		struct busy_thread *thread = &hunt->threads[i];
		uint32_t function;
		size_t best;

		err = measure_thread(hunt, thread, maps, &best);
		if (err || best == hunt->measured.count)
			continue;
		function = hunt->measured.items[best].share.function;
		err = take_over(hunt, thread, best);
		return err ? err : search_callers(hunt, maps, thread, function);
	}
	if (err)
		return err;
	return end_with(hunt, hunt->starved ? STEP_SEARCH_STARVED : STEP_SEARCH_NONE);
}

static int search_all(struct hunt *hunt, bool yields, bool nice_first)
{
	mapping_vec maps = {0};
	int err = choose_threads(hunt, yields);

	if (!err)
		err = sample_threads(hunt);
	if (!err)
		err = find_shares(hunt);
	if (!err)
		err = maps_read_quietly(hunt->thread, &maps);
	if (!err)
		find_event_calls(hunt);
	/* Attaching probes holds locks of the process, which must not wait for a CPU for long. */
	if (nice_first)
		(void)nice(-CANDIDATES_NICE);
	if (!err)
		err = search_threads(hunt, &maps);
	maps_free(&maps);
	return err;
}

int step_search(struct step_search *search, uint32_t tgid, const struct options *options,
		bool yields, bool nice_first)
{
	struct hunt hunt = {.tgid = tgid,
			    .thread = processes_live_thread(tgid),
			    .options = options,
			    .result = search};
	int err;

	*search = (struct step_search){.end = STEP_SEARCH_NONE};
	if (python_use_is_there(tgid)) {
		search->end = STEP_SEARCH_PYTHON;
		return 0;
	}
	hunt.cpu_end_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID) + STEP_SEARCH_CPU_MS * NS_PER_MS;
	hunt.chains = chains__new(hunt.thread);
	err = hunt.chains ? search_all(&hunt, yields, nice_first) : -ENOMEM;
	for (size_t i = 0; i < hunt.thread_count; i++) {
		thread_samples__free(hunt.threads[i].samples);
		vec_free(&hunt.threads[i].shares);
	}
	clear_measured(&hunt);
	vec_free(&hunt.measured);
	step_functions_free(&hunt.event_functions);
	chains__free(hunt.chains);
	return err == -ECANCELED ? 0 : err;
}

void step_search_clear(struct step_search *search)
{
	step_functions_free(&search->functions);
}
