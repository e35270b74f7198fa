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
#include "base/vec.h"
#include "fbt_shared.h"
#include "kernel/rate_order.h"
#include "kernel/step_probes.h"
#include "proc/process.h"
#include "rates.skel.h"
#include "steps/site.h"

/*
 * A function with more calls per second is detached. In a guest a probed return may take 20 us, so
 * the probes take at most 4 % of a thread's time.
 */
#define CALLS_PER_S_MAX 2000
#define CALLS_MIN	100

struct known_site {
	uint64_t address;
	uint32_t kind; /* the one for which it is probed */
	bool on;
};

/*
 * The call sites in process tgid where the calls of candidates end that have no exits to probe. The
 * kernel side puts each new one into map; it is probed here by program, which is attached for
 * link_tgid (uprobes__attach).
 */
struct call_sites {
	int map;
	const struct bpf_program *program;
	uint32_t tgid;
	uint32_t link_tgid;
	struct uprobes *uprobes;
	VEC(struct known_site) known;
};

struct watched {
	struct rate rate;
	struct uprobes *uprobes; /* NULL: detached */
	uint64_t start_ns;
};

/* A mapped array. */
struct mapped {
	void *items; /* NULL: not mapped */
	size_t size;
};

struct rates {
	struct rates_bpf *skel;
	struct mapped counts; /* struct fbt_rate by kind, which is the index in watched + 1 */
	struct mapped insides;
	struct call_sites sites;
	struct watched *watched;
	size_t count;
};

static int open_sites(struct call_sites *sites, bool multi)
{
	sites->uprobes = uprobes__new(multi);
	if (!sites->uprobes)
		return -ENOMEM;
	uprobes__set_quiet(sites->uprobes, log_level() < LOG_DEBUG);
	return 0;
}

static void close_sites(struct call_sites *sites)
{
	uprobes__free(sites->uprobes);
	vec_free(&sites->known);
}

static void set_site_state(const struct call_sites *sites, uint64_t address,
			   enum fbt_site_state state)
{
	struct fbt_site site;

	if (bpf_map_lookup_elem(sites->map, &address, &site))
		return;
	site.state = state;
	/* A kind that is added meanwhile is added again by its next call. */
	(void)bpf_map_update_elem(sites->map, &address, &site, BPF_EXIST);
}

static int probe_site(const struct call_sites *sites, const struct known_site *known)
{
	struct step_site place;
	int err = step_site_find(&place, sites->tgid, known->address, false);

	if (err)
		return err;
	err = step_probes_attach_site(sites->uprobes, sites->program, &place, known->kind,
				      sites->link_tgid);
	step_site_clear(&place);
	return err;
}

static void add_site(struct call_sites *sites, uint64_t address, const struct fbt_site *site)
{
	struct known_site known = {
		.address = address,
		.kind = (uint32_t)__builtin_ctzll(site->kinds),
	};
	int err = vec_push(&sites->known, known);

	if (!err)
		err = probe_site(sites, &known);
	if (err)
		log_debug("call site 0x%llx: not probed: %s", (unsigned long long)address,
			  strerror(-err));
	else
		sites->known.items[sites->known.count - 1].on = true;
	set_site_state(sites, address, err ? FBT_SITE_REFUSED : FBT_SITE_PROBED);
}

/* Its sites are called too often: no more of them are probed. */
static bool is_given_up(const struct rates *rates, uint64_t kinds)
{
	const struct rate *rate = &rates->watched[__builtin_ctzll(kinds) - 1].rate;

	return rate->too_often || rate->shared_site;
}

static void probe_new_sites(struct rates *rates)
{
	struct call_sites *sites = &rates->sites;
	uint64_t address, *last = NULL;
	struct fbt_site site;

	/* Only the kernel side adds entries, and none is removed: no key is met twice. */
	while (!bpf_map_get_next_key(sites->map, last, &address)) {
		last = &address;
		if (bpf_map_lookup_elem(sites->map, &address, &site) ||
		    site.state != FBT_SITE_TOLD || !site.kinds)
			continue;
		if (is_given_up(rates, site.kinds))
			set_site_state(sites, address, FBT_SITE_REFUSED);
		else
			add_site(sites, address, &site);
	}
}

/*
 * Gives up the sites that were first seen with a kind: they cost too much. Calls of other kinds
 * from there have no end from then on.
 */
static void drop_sites(struct call_sites *sites, uint32_t kind)
{
	vec_for_each (known, &sites->known) {
		if (known->kind != kind || !known->on)
			continue;
		known->on = false;
		set_site_state(sites, known->address, FBT_SITE_REFUSED);
	}
	step_probes_detach_sites(sites->uprobes, kind);
}

/* How many sites of a kind are probed. */
static unsigned int count_sites(const struct call_sites *sites, uint32_t kind)
{
	unsigned int count = 0;
	struct fbt_site site;

	vec_for_each (known, &sites->known) {
		if (known->on && !bpf_map_lookup_elem(sites->map, &known->address, &site))
			count += site.kinds >> kind & 1;
	}
	return count;
}

static int map_array(struct mapped *mapped, const struct bpf_map *map, size_t size)
{
	void *items = mmap(NULL, size, PROT_READ, MAP_SHARED, bpf_map__fd(map), 0);

	if (items == MAP_FAILED)
		return -errno;
	*mapped = (struct mapped){items, size};
	return 0;
}

static void unmap(struct mapped *mapped)
{
	if (mapped->items)
		munmap(mapped->items, mapped->size);
	mapped->items = NULL;
}

static int load(struct rates *rates, uint32_t tgid, uint32_t link_tgid, bool multi)
{
	int err;

	rates->skel = rates_bpf__open();
	if (!rates->skel)
		return -ENOMEM;
	rates->skel->rodata->target_tgid = tgid;
	if (multi)
		bpf_program__set_expected_attach_type(rates->skel->progs.handle_rate,
						      UPROBES_MULTI_ATTACH_TYPE);
	err = rates_bpf__load(rates->skel);
	if (!err)
		err = map_array(&rates->counts, rates->skel->maps.rates,
				FBT_KIND_COUNT * sizeof(struct fbt_rate));
	if (!err)
		err = map_array(&rates->insides, rates->skel->maps.insides,
				FBT_INSIDES * sizeof(struct fbt_rate_inside));
	if (err)
		return err;
	rates->sites = (struct call_sites){
		.map = bpf_map__fd(rates->skel->maps.rate_sites),
		.program = rates->skel->progs.handle_rate,
		.tgid = tgid,
		.link_tgid = link_tgid,
	};
	return open_sites(&rates->sites, multi);
}

static int watch(struct rates *rates, size_t index, const struct step_function *function,
		 uint32_t link_tgid, bool multi)
{
	struct step_probe probe = {function, (uint32_t)index + 1};
	struct watched *watched = &rates->watched[index];

	int err;

	watched->rate.function = function;
	watched->uprobes = uprobes__new(multi);
	if (!watched->uprobes)
		return -ENOMEM;
	err = step_probes_attach(watched->uprobes, rates->skel->progs.handle_rate, &probe, 1,
				 link_tgid);
	/* On a busy machine attaching takes a part of a second, in which no call is seen. */
	watched->start_ns = clock_ns(CLOCK_MONOTONIC);
	return err;
}

int rates__open(struct rates **result, struct step_function *const *functions, size_t count,
		uint32_t tgid, bool perf_uprobes)
{
	bool multi = !perf_uprobes && uprobes_have_multi();
	/* Links by process need its first thread; the kernel side counts only this process. */
	bool is_filtered =
		(!multi || uprobes_multi_can_filter()) && processes_live_thread(tgid) == tgid;
	uint32_t link_tgid = is_filtered ? tgid : 0;
	struct rates *rates = calloc(1, sizeof(*rates));
	int err = -ENOMEM;

	*result = NULL;
	if (!rates)
		return err;
	rates->count = count < FBT_KIND_COUNT - 1 ? count : FBT_KIND_COUNT - 1;
	rates->watched = calloc(rates->count + 1, sizeof(*rates->watched));
	if (rates->watched)
		err = load(rates, tgid, link_tgid, multi);
	if (err)
		log_err("rates: load: %s (-v shows the kernel's messages)", strerror(-err));
	for (size_t i = 0; i < rates->count && !err; i++)
		err = watch(rates, i, functions[i], link_tgid, multi);
	if (err) {
		rates__free(rates);
		return err;
	}
	log_debug("rates: %zu functions are probed", rates->count);
	*result = rates;
	return 0;
}

static void read_rate(struct rates *rates, size_t index)
{
	struct watched *watched = &rates->watched[index];
	const volatile struct fbt_rate *count =
		(const volatile struct fbt_rate *)rates->counts.items + index + 1;

	watched->rate.calls = watched->rate.too_often ? count->hits : count->begun;
	watched->rate.ended = count->ended;
	watched->rate.mean_ns = watched->rate.ended ? count->total_ns / watched->rate.ended : 0;
	watched->rate.since_ns = clock_ns(CLOCK_MONOTONIC) - watched->start_ns;
	watched->rate.delay_ns = count->delay_ns;
	for (size_t i = 0; i < FBT_RATE_SPANS; i++)
		watched->rate.lasted[i] = count->lasted[i];
}

uint64_t rates__calls(const struct rates *rates, size_t index)
{
	return ((const volatile struct fbt_rate *)rates->counts.items)[index + 1].begun;
}

uint64_t rates__inside(const struct rates *rates, size_t outer, size_t inner)
{
	size_t at = (outer + 1) * FBT_KIND_COUNT + inner + 1;

	return ((const volatile struct fbt_rate_inside *)rates->insides.items)[at].ended;
}

bool rates__is_too_often(const struct rates *rates, size_t index)
{
	return rates->watched[index].rate.too_often;
}

uint64_t rates__ended_on(const struct rates *rates, size_t index, uint32_t tid)
{
	uint64_t key = (uint64_t)(index + 1) << 32 | tid;
	struct fbt_thread_rate of_thread;

	if (bpf_map_lookup_elem(bpf_map__fd(rates->skel->maps.thread_rates), &key, &of_thread))
		return 0;
	return of_thread.ended;
}

static void let_go(struct watched *watched)
{
	uprobes__free(watched->uprobes);
	watched->uprobes = NULL;
}

static bool is_too_often(uint64_t hits, uint64_t since_ns)
{
	return hits >= CALLS_MIN && hits * NS_PER_S >= since_ns * CALLS_PER_S_MAX;
}

static void check(struct rates *rates, size_t index)
{
	struct watched *watched = &rates->watched[index];
	const volatile struct fbt_rate *count =
		(const volatile struct fbt_rate *)rates->counts.items + index + 1;
	uint32_t kind = (uint32_t)index + 1;
	uint64_t since_ns = clock_ns(CLOCK_MONOTONIC) - watched->start_ns;

	if (is_too_often(count->hits, since_ns)) {
		watched->rate.too_often = true;
		read_rate(rates, index);
		let_go(watched);
		drop_sites(&rates->sites, kind);
	} else if (!watched->rate.shared_site && is_too_often(count->strangers, since_ns)) {
		watched->rate.shared_site = true;
		drop_sites(&rates->sites, kind);
	}
}

void rates__check(struct rates *rates)
{
	probe_new_sites(rates);
	for (size_t i = 0; i < rates->count; i++)
		if (rates->watched[i].uprobes)
			check(rates, i);
}

static void sort(struct rates *rates, struct rate *result)
{
	struct rated *rated = calloc(rates->count + 1, sizeof(*rated));

	for (size_t i = 0; rated && i < rates->count; i++)
		rated[i] = (struct rated){rates->watched[i].rate, (uint32_t)i + 1};
	if (!rated || rate_order(rated, rates->count, rates->insides.items))
		log_warn("candidates are not sorted: %s", strerror(ENOMEM));
	for (size_t i = 0; i < rates->count; i++)
		result[i] = rated ? rated[i].rate : rates->watched[i].rate;
	free(rated);
}

/* Finds for each function the thread that spent most time in it. */
static void read_threads(struct rates *rates)
{
	int map = bpf_map__fd(rates->skel->maps.thread_rates);
	struct fbt_thread_rate of_thread;
	uint64_t key;

	for (int err = bpf_map_get_next_key(map, NULL, &key); !err;
	     err = bpf_map_get_next_key(map, &key, &key)) {
		uint32_t kind = (uint32_t)(key >> 32);
		struct rate *rate;

		if (!kind || kind > rates->count || bpf_map_lookup_elem(map, &key, &of_thread))
			continue;
		rate = &rates->watched[kind - 1].rate;
		if (of_thread.total_ns > rate->busiest_ns) {
			rate->busiest_ns = of_thread.total_ns;
			rate->busiest_tid = (uint32_t)key;
		}
	}
}

void rates__finish(struct rates *rates, struct rate *result)
{
	read_threads(rates);
	for (size_t i = 0; i < rates->count; i++) {
		struct watched *watched = &rates->watched[i];

		if (watched->uprobes)
			read_rate(rates, i);
		watched->rate.call_sites = count_sites(&rates->sites, (uint32_t)i + 1);
		log_debug("%s: %llu calls, %llu timed", step_function_alone(watched->rate.function),
			  (unsigned long long)watched->rate.calls,
			  (unsigned long long)watched->rate.ended);
	}
	for (size_t i = 0; i < rates->count; i++)
		let_go(&rates->watched[i]);
	sort(rates, result);
}

void rates__free(struct rates *rates)
{
	if (!rates)
		return;
	for (size_t i = 0; rates->watched && i < rates->count; i++)
		let_go(&rates->watched[i]);
	free(rates->watched);
	close_sites(&rates->sites);
	unmap(&rates->counts);
	unmap(&rates->insides);
	rates_bpf__destroy(rates->skel);
	free(rates);
}
