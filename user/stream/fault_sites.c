/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "stream/fault_sites.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/*
 * Names of places that are kept, those that were used last. So does the kernel side, which copies
 * the stack of a place again once it has forgotten it (fault_paths).
 */
#define NAMES_MAX 1024

/* Among the registers, in the order of DWARF. */
#ifdef __x86_64__
#define SP 7
#define PC 16
#else
#define SP 31
#define PC 32
#endif

struct name {
	uint32_t tid; /* 0: none */
	uint64_t ip;
	uint64_t sp;
	uint64_t used; /* the greater, the later */
	uint32_t codes[FBT_FAULT_CALLERS];
};

struct fault_sites {
	const struct record_output *output;
	int map;
	uint64_t uses;
	bool any; /* a thread was counted */
	struct name names[NAMES_MAX];
	struct fbt_fault_thread thread; /* for a look-up */
};

static int open_event(int program, uint32_t tid, uint64_t config)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = config,
		.sample_period = 1,
		.sample_type = PERF_SAMPLE_ADDR,
		.disabled = 1,
		.exclude_hv = 1,
	};
	int fd = (int)syscall(SYS_perf_event_open, &attr, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);
	int err;

	if (fd < 0)
		return -errno;
	if (!ioctl(fd, PERF_EVENT_IOC_SET_BPF, program) && !ioctl(fd, PERF_EVENT_IOC_ENABLE, 0))
		return fd;
	err = -errno;
	close(fd);
	return err;
}

int fault_events_add(struct fault_events *events, int map, const int programs[2], uint32_t tid)
{
	static const struct fbt_fault_thread empty;
	int *fds = events->fds[events->count % FBT_FAULT_THREADS], err;

	for (uint32_t i = 0; i < events->count; i++)
		if (events->tids[i] == tid)
			return 0;
	if (events->count == FBT_FAULT_THREADS)
		return -ENOSPC;
	err = bpf_map_update_elem(map, &tid, &empty, BPF_ANY);
	if (err)
		return err;
	fds[0] = open_event(programs[0], tid, PERF_COUNT_SW_PAGE_FAULTS_MIN);
	if (fds[0] < 0) {
		bpf_map_delete_elem(map, &tid);
		return fds[0];
	}
	fds[1] = open_event(programs[1], tid, PERF_COUNT_SW_PAGE_FAULTS_MAJ);
	if (fds[1] < 0) {
		close(fds[0]);
		bpf_map_delete_elem(map, &tid);
		return fds[1];
	}
	events->tids[events->count++] = tid;
	return 0;
}

static void close_events(struct fault_events *events, int map, uint32_t at)
{
	close(events->fds[at][0]);
	close(events->fds[at][1]);
	bpf_map_delete_elem(map, &events->tids[at]);
}

void fault_events_remove(struct fault_events *events, int map, uint32_t tid)
{
	uint32_t at = 0;

	while (at < events->count && events->tids[at] != tid)
		at++;
	if (at == events->count)
		return;
	close_events(events, map, at);
	events->count--;
	events->tids[at] = events->tids[events->count];
	memcpy(events->fds[at], events->fds[events->count], sizeof(events->fds[at]));
}

void fault_events_clear(struct fault_events *events, int map)
{
	while (events->count)
		close_events(events, map, --events->count);
}

struct fault_sites *fault_sites__new(int map, const struct record_output *output)
{
	struct fault_sites *sites = calloc(1, sizeof(*sites));

	if (!sites)
		return NULL;
	sites->map = map;
	sites->output = output;
	return sites;
}

void fault_sites__free(struct fault_sites *sites)
{
	free(sites);
}

static struct name *find_name(struct fault_sites *sites, uint32_t tid, uint64_t ip, uint64_t sp)
{
	for (uint32_t i = 0; i < NAMES_MAX && sites->names[i].tid; i++) {
		struct name *name = &sites->names[i];

		if (name->tid != tid || name->ip != ip || name->sp != sp)
			continue;
		name->used = ++sites->uses;
		return name;
	}
	return NULL;
}

static struct name *oldest_name(struct fault_sites *sites)
{
	struct name *oldest = sites->names;

	for (uint32_t i = 0; i < NAMES_MAX; i++)
		if (sites->names[i].used < oldest->used)
			oldest = &sites->names[i];
	return oldest;
}

void fault_sites__name(struct fault_sites *sites, const struct fbt_stack_place *place,
		       const uint32_t codes[FBT_FAULT_CALLERS])
{
	uint64_t ip = place->registers[PC], sp = place->registers[SP];
	struct name *name = find_name(sites, place->tid, ip, sp);

	sites->any = true;
	if (!name)
		name = oldest_name(sites);
	*name = (struct name){.tid = place->tid, .ip = ip, .sp = sp, .used = ++sites->uses};
	memcpy(name->codes, codes, sizeof(name->codes));
}

static bool is_same(const struct fbt_fault_site *site, const struct fbt_fault_place *place,
		    const struct name *name)
{
	/* Functions that are not known may be different ones. */
	return site->mapping == place->mapping && site->file == place->file && name &&
	       name->codes[0] && !memcmp(site->codes, name->codes, sizeof(site->codes));
}

/* Places of one function that were called in the same way are one site. */
static void add_place(struct fbt_fault_sites *record, const struct fbt_fault_place *place,
		      const struct name *name)
{
	struct fbt_fault_site *site;
	uint32_t i = 0;

	while (i < record->count && !is_same(&record->sites[i], place, name))
		i++;
	site = &record->sites[i];
	if (i == record->count) {
		record->count++;
		site->mapping = place->mapping;
		site->file = place->file;
		if (name)
			memcpy(site->codes, name->codes, sizeof(site->codes));
	}
	site->faults += place->faults;
	site->majors += place->majors;
}

static int compare(const void *left, const void *right)
{
	const struct fbt_fault_site *a = left, *b = right;

	return (a->faults < b->faults) - (a->faults > b->faults);
}

static void send_sum(struct fault_sites *sites, const struct fbt_step *step,
		     const struct fbt_fault_sum *sum)
{
	struct fbt_fault_sites record = {.tgid = step->tgid,
					 .tid = step->tid,
					 .start_ns = step->start_ns,
					 .faults = sum->faults,
					 .in_calls = sum->in_calls};

	_Static_assert(FBT_FAULT_PLACES <= FBT_FAULT_SITES, "each place may be a site of its own");
	for (uint32_t i = 0; i < FBT_FAULT_PLACES && sum->places[i].faults; i++) {
		const struct fbt_fault_place *place = &sum->places[i];

		if (place->mapping < FBT_MAPPING_COUNT)
			add_place(&record, place,
				  find_name(sites, step->tid, place->ip, place->sp));
	}
	qsort(record.sites, record.count, sizeof(record.sites[0]), compare);
	record_send(sites->output, &record, sizeof(record), FBT_EVENT_FAULT_SITES);
}

void fault_sites__send(struct fault_sites *sites, const struct fbt_step *step)
{
	if (!sites->any || sites->map < 0 || !(step->minor_faults + step->major_faults) ||
	    bpf_map_lookup_elem(sites->map, &step->tid, &sites->thread))
		return;
	for (uint32_t i = 0; i < FBT_FAULT_STEPS; i++) {
		if (sites->thread.sums[i].step_ns == step->start_ns) {
			send_sum(sites, step, &sites->thread.sums[i]);
			return;
		}
	}
}
