/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "search/text_rates.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "kernel/rates.h"
#include "proc/thread_use.h"
#include "search/candidates.h"

#define WATCH_NS NS_PER_S
#define CHECK_US 20000

/* A function that takes less than this part of the CPU time of the busiest thread is no step. */
#define BUSY_PART 4

/* What the threads of a process have used since before was read, the busiest first. */
static void read_use(thread_use_vec *threads, uint32_t tgid, const thread_use_vec *before)
{
	if (thread_use_read(threads, tgid))
		vec_free(threads);
	thread_use_since(threads, before);
}

bool text_rates_is_busy(const struct rate *rate, const thread_use_vec *threads)
{
	uint64_t most_ns = threads->count ? threads->items[0].cpu_ns : 0;

	return rate->busiest_ns && rate->busiest_ns >= most_ns / BUSY_PART &&
	       rate_is_on_busy_thread(rate, threads);
}

static struct function_rate judge(const struct rate *rate, const thread_use_vec *threads)
{
	return (struct function_rate){
		.calls = rate->calls,
		.mean_ns = rate->mean_ns,
		.calls_per_s =
			(double)rate->calls * 1e9 / (double)(rate->since_ns ? rate->since_ns : 1),
		.too_often = rate->too_often,
		.is_busy = text_rates_is_busy(rate, threads),
	};
}

int text_rates_measure(uint32_t tgid, struct step_function *const *functions, size_t count,
		       struct function_rate *result)
{
	uint64_t end_ns;
	struct rate *measured = calloc(count, sizeof(*measured));
	thread_use_vec before = {0}, threads = {0};
	struct rates *rates = NULL;
	int err = measured ? rates__open(&rates, functions, count, tgid, false) : -ENOMEM;

	if (err)
		goto out;
	(void)thread_use_read(&before, tgid);
	end_ns = clock_ns(CLOCK_MONOTONIC) + WATCH_NS;
	while (clock_ns(CLOCK_MONOTONIC) < end_ns) {
		usleep(CHECK_US);
		rates__check(rates);
	}
	read_use(&threads, tgid, &before);
	rates__finish(rates, measured);
	for (size_t i = 0; i < count; i++)
		for (size_t at = 0; at < count; at++)
			if (measured[i].function == functions[at])
				result[at] = judge(&measured[i], &threads);
out:
	vec_free(&before);
	vec_free(&threads);
	rates__free(rates);
	free(measured);
	return err;
}
