/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "kernel/explain_programs.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/log.h"
#include "explain.skel.h"
#include "kernel/switch_cost.h"
#include "model/syscalls.h"

/* Programs of one kind at most. */
#define PROGRAMS 2
#define TABLES	 2

struct table {
	void *address;
	size_t size;
};

struct explain_programs {
	/* Descriptors; -1: none. */
	int programs[FBT_EXPLAIN_COUNT][PROGRAMS];
	int links[FBT_EXPLAIN_COUNT][PROGRAMS];
	int sample;		     /* the program of a thread's CPU clock */
	int faults[2];		     /* those of its minor and major page faults */
	struct table tables[TABLES]; /* who waits: emptied before each use */
};

/* Maps that the trace has too are the same. All others are its own. */
static int share_maps(struct bpf_object *object, const struct loader *loader)
{
	struct bpf_map *map;
	int err = 0;

	bpf_object__for_each_map(map, object)
	{
		int fd = loader__map(loader, bpf_map__name(map));

		if (fd >= 0 && !err)
			err = bpf_map__reuse_fd(map, fd);
	}
	return err;
}

static int set_up(struct explain_bpf *skel, struct loader *loader)
{
	const struct shared *shared = loader__shared(loader);
	int err = bpf_map__set_max_entries(skel->maps.cpu_waits, shared->cpu_count);

	for (uint32_t nr = 0; nr < FBT_NR_COUNT; nr++)
		skel->rodata->traits[nr] = syscall_traits(syscalls_arch(), nr);

	return err ? err : bpf_map__set_max_entries(skel->maps.taken_by, shared->slot_count);
}

static int map_table(struct table *table, const struct bpf_map *map)
{
	size_t element = (bpf_map__value_size(map) + 7) & ~7u;
	size_t size = element * bpf_map__max_entries(map);
	void *address = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, bpf_map__fd(map), 0);

	if (address == MAP_FAILED)
		return -errno;
	*table = (struct table){address, size};
	return 0;
}

/* The skeleton has a descriptor for each map, shared ones too: only those of programs are kept. */
static int keep(int *fd, const struct bpf_program *program)
{
	*fd = fcntl(bpf_program__fd(program), F_DUPFD_CLOEXEC, 0);
	return *fd < 0 ? -errno : 0;
}

static int keep_all(struct explain_programs *programs, const struct explain_bpf *skel)
{
	int *switches = programs->programs[FBT_EXPLAIN_SWITCHES];
	int err = keep(&switches[0], skel->progs.explain_switch);

	if (!err)
		err = keep(&switches[1], skel->progs.explain_wakeup);
	if (!err)
		err = keep(&programs->programs[FBT_EXPLAIN_WAKES][0], skel->progs.explain_waking);
	if (!err)
		err = keep(&programs->sample, skel->progs.explain_sample);
	if (!err)
		err = keep(&programs->faults[0], skel->progs.explain_minor_fault);
	if (!err)
		err = keep(&programs->faults[1], skel->progs.explain_major_fault);
	if (!err)
		err = map_table(&programs->tables[0], skel->maps.cpu_waits);
	if (!err)
		err = map_table(&programs->tables[1], skel->maps.taken_by);
	return err;
}

static int load(struct explain_programs *programs, struct loader *loader)
{
	struct explain_bpf *skel = explain_bpf__open();
	int err = skel ? 0 : -errno;

	if (!err)
		err = set_up(skel, loader);
	if (!err)
		err = share_maps(skel->obj, loader);
	if (!err)
		err = explain_bpf__load(skel);
	if (!err)
		err = keep_all(programs, skel);
	explain_bpf__destroy(skel);
	return err;
}

int explain_programs__load(struct explain_programs **result, struct loader *loader)
{
	struct explain_programs *programs = calloc(1, sizeof(*programs));
	int err;

	*result = NULL;
	if (!programs)
		return -ENOMEM;
	memset(programs->programs, -1, sizeof(programs->programs));
	memset(programs->links, -1, sizeof(programs->links));
	programs->sample = programs->faults[0] = programs->faults[1] = -1;
	err = load(programs, loader);
	if (err) {
		explain_programs__free(programs);
		return err;
	}
	*result = programs;
	return 0;
}

void explain_programs__free(struct explain_programs *programs)
{
	if (!programs)
		return;
	for (int kind = 0; kind < FBT_EXPLAIN_COUNT; kind++) {
		explain_programs__detach(programs, (enum fbt_explain)kind);
		for (int i = 0; i < PROGRAMS; i++)
			if (programs->programs[kind][i] >= 0)
				close(programs->programs[kind][i]);
	}
	if (programs->sample >= 0)
		close(programs->sample);
	for (int i = 0; i < 2; i++)
		if (programs->faults[i] >= 0)
			close(programs->faults[i]);
	for (int i = 0; i < TABLES; i++)
		if (programs->tables[i].address)
			munmap(programs->tables[i].address, programs->tables[i].size);
	free(programs);
}

int explain_programs__attach(struct explain_programs *programs, enum fbt_explain kind)
{
	int err = 0;

	for (int i = 0; kind == FBT_EXPLAIN_SWITCHES && i < TABLES; i++)
		memset(programs->tables[i].address, 0, programs->tables[i].size);
	for (int i = 0; i < PROGRAMS && !err; i++) {
		int program = programs->programs[kind][i];

		if (program < 0)
			continue;
		programs->links[kind][i] = bpf_link_create(program, 0, BPF_TRACE_RAW_TP, NULL);
		err = programs->links[kind][i] < 0 ? -errno : 0;
	}
	if (err)
		explain_programs__detach(programs, kind);
	return err;
}

void explain_programs__detach(struct explain_programs *programs, enum fbt_explain kind)
{
	for (int i = 0; i < PROGRAMS; i++) {
		int *link = &programs->links[kind][i];

		if (*link >= 0)
			close(*link);
		*link = -1;
	}
}

uint64_t explain_programs__measure_ps(struct explain_programs *programs, enum fbt_explain kind)
{
	uint64_t bare_ps = switch_cost_ps(), with_ps;

	if (!bare_ps || explain_programs__attach(programs, kind))
		return 0;
	with_ps = switch_cost_ps();
	explain_programs__detach(programs, kind);
	if (with_ps <= bare_ps)
		return 0;
	log_debug("a context switch: %llu ns, and %llu ns more while it is looked at",
		  (unsigned long long)bare_ps / 1000,
		  (unsigned long long)(with_ps - bare_ps) / 1000);
	return with_ps - bare_ps;
}

int explain_programs__sample(const struct explain_programs *programs)
{
	return programs->sample;
}

void explain_programs__faults(const struct explain_programs *programs, int descriptors[2])
{
	descriptors[0] = programs->faults[0];
	descriptors[1] = programs->faults[1];
}
