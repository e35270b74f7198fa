/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "kernel/rates.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "base/log.h"
#include "fbt_shared.h"
#include "kernel/step_probes.h"
#include "rates.skel.h"

/*
 * A function with more calls per second is detached. In a guest a probed return may take 20 us, so
 * the probes take at most 4 % of a thread's time.
 */
#define CALLS_PER_S_MAX 2000
#define CALLS_MIN	100

struct watched {
	struct rate rate;
	struct uprobes *uprobes; /* NULL: detached */
	uint64_t start_ns;
};

struct rates {
	struct rates_bpf *skel;
	volatile struct fbt_rate *counts; /* FBT_KIND_COUNT entries, by index in watched + 1 */
	struct watched *watched;
	size_t count;
};

static int load(struct rates *rates, uint32_t tgid, bool multi)
{
	size_t size = FBT_KIND_COUNT * sizeof(struct fbt_rate);
	int err;

	rates->skel = rates_bpf__open();
	if (!rates->skel)
		return -ENOMEM;
	rates->skel->rodata->target_tgid = tgid;
	if (multi)
		bpf_program__set_expected_attach_type(rates->skel->progs.handle_rate,
						      UPROBES_MULTI_ATTACH_TYPE);
	err = rates_bpf__load(rates->skel);
	if (err)
		return err;
	rates->counts =
		mmap(NULL, size, PROT_READ, MAP_SHARED, bpf_map__fd(rates->skel->maps.rates), 0);
	if (rates->counts != MAP_FAILED)
		return 0;
	rates->counts = NULL;
	return -errno;
}

static int watch(struct rates *rates, size_t index, const struct step_function *function,
		 uint32_t tgid, bool multi)
{
	struct step_probe probe = {function, (uint32_t)index + 1};
	struct watched *watched = &rates->watched[index];

	watched->rate.function = function;
	watched->start_ns = clock_ns(CLOCK_MONOTONIC);
	watched->uprobes = uprobes__new(multi);
	if (!watched->uprobes)
		return -ENOMEM;
	return step_probes_attach(watched->uprobes, rates->skel->progs.handle_rate, &probe, 1,
				  multi && !uprobes_multi_can_filter() ? 0 : tgid);
}

int rates__open(struct rates **result, struct step_function *const *functions, size_t count,
		uint32_t tgid, bool perf_uprobes)
{
	bool multi = !perf_uprobes && uprobes_have_multi();
	struct rates *rates = calloc(1, sizeof(*rates));
	int err = -ENOMEM;

	*result = NULL;
	if (!rates)
		return err;
	rates->count = count < FBT_KIND_COUNT - 1 ? count : FBT_KIND_COUNT - 1;
	rates->watched = calloc(rates->count + 1, sizeof(*rates->watched));
	if (rates->watched)
		err = load(rates, tgid, multi);
	if (err)
		log_err("rates: load: %s (-v shows the kernel's messages)", strerror(-err));
	for (size_t i = 0; i < rates->count && !err; i++)
		err = watch(rates, i, functions[i], tgid, multi);
	if (err) {
		rates__free(rates);
		return err;
	}
	*result = rates;
	return 0;
}

static void read_rate(struct rates *rates, size_t index)
{
	struct watched *watched = &rates->watched[index];
	const volatile struct fbt_rate *count = &rates->counts[index + 1];

	watched->rate.calls = count->begun;
	watched->rate.mean_ns = count->ended ? count->total_ns / count->ended : 0;
	watched->rate.since_ns = clock_ns(CLOCK_MONOTONIC) - watched->start_ns;
}

static void let_go(struct watched *watched)
{
	uprobes__free(watched->uprobes);
	watched->uprobes = NULL;
}

void rates__check(struct rates *rates)
{
	for (size_t i = 0; i < rates->count; i++) {
		struct watched *watched = &rates->watched[i];

		if (!watched->uprobes)
			continue;
		read_rate(rates, i);
		if (watched->rate.calls < CALLS_MIN ||
		    watched->rate.calls * NS_PER_S < watched->rate.since_ns * CALLS_PER_S_MAX)
			continue;
		watched->rate.too_often = true;
		let_go(watched);
	}
}

static int compare_rates(const void *left, const void *right)
{
	const struct rate *a = left, *b = right;
	uint64_t a_ns = a->calls * a->mean_ns, b_ns = b->calls * b->mean_ns;
	bool a_known = a->function->builtin && a->calls, b_known = b->function->builtin && b->calls;

	if (a->too_often != b->too_often)
		return a->too_often ? 1 : -1;
	if (a_known != b_known)
		return a_known ? -1 : 1;
	if (a_ns != b_ns)
		return a_ns > b_ns ? -1 : 1;
	return a->calls == b->calls ? 0 : a->calls > b->calls ? -1 : 1;
}

void rates__finish(struct rates *rates, struct rate *result)
{
	for (size_t i = 0; i < rates->count; i++) {
		if (rates->watched[i].uprobes)
			read_rate(rates, i);
		let_go(&rates->watched[i]);
		result[i] = rates->watched[i].rate;
	}
	qsort(result, rates->count, sizeof(*result), compare_rates);
}

void rates__free(struct rates *rates)
{
	if (!rates)
		return;
	for (size_t i = 0; rates->watched && i < rates->count; i++)
		let_go(&rates->watched[i]);
	free(rates->watched);
	if (rates->counts)
		munmap((void *)rates->counts, FBT_KIND_COUNT * sizeof(struct fbt_rate));
	rates_bpf__destroy(rates->skel);
	free(rates);
}
