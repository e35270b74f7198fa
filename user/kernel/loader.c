/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "kernel/loader.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "kernel/senders.h"
#include "kernel/task_list.h"
#include "kernel/traced.h"
#include "kernel/uprobes.h"
#include "model/syscalls.h"
#include "trace.skel.h"

/* Call records per CPU: enough for 50 ms of the fastest caller, less on machines with many CPUs. */
#define RING_RECORDS	 (1u << 17)
#define RING_RECORDS_MIN (1u << 12)
#define RING_BYTES_MAX	 (128ull << 20)

#define SLOTS_MIN   1024u
#define SLOTS_SPARE 512u

#define MAPPINGS_MAX 12

/* Events that are read between two looks at the clock. */
#define EVENTS_PER_CLOCK 64

/* Files whose ids are kept, about 1 MiB. Without call records no file is looked up. */
#define KNOWN_FILES	8192
#define KNOWN_FILES_MIN 64

/* Sizes of the maps. */

static uint32_t round_up_pow2(uint32_t value)
{
	uint32_t power = 1;

	while (power < value && power < (1u << 31))
		power <<= 1;
	return power;
}

static uint32_t read_pid_max(void)
{
	unsigned int pid_max;
	FILE *file = fopen("/proc/sys/kernel/pid_max", "re");

	if (!file || fscanf(file, "%u", &pid_max) != 1)
		pid_max = 4194304; /* the kernel's own limit */
	if (file)
		fclose(file);
	return pid_max;
}

/* Whether the kernel side sends records of calls. */
static bool sends_calls(enum fbt_detail detail)
{
	return detail == FBT_DETAIL_ESCALATED || detail == FBT_DETAIL_ALL;
}

static uint32_t choose_ring_records(enum fbt_detail detail, uint32_t wanted, uint32_t cpu_count)
{
	uint32_t records = wanted ? round_up_pow2(wanted) : RING_RECORDS;

	if (!sends_calls(detail))
		return FBT_RING_MARGIN * 2;
	while (!wanted && records > RING_RECORDS_MIN &&
	       (uint64_t)records * cpu_count * sizeof(struct fbt_ring_call) > RING_BYTES_MAX)
		records /= 2;
	return records < FBT_RING_MARGIN * 2 ? FBT_RING_MARGIN * 2 : records;
}

void sizing_choose(struct shared *shared, enum fbt_detail detail, uint32_t ring_records,
		   uint32_t thread_count)
{
	uint32_t wanted = thread_count * 2 + SLOTS_SPARE;
	uint32_t records;

	shared->cpu_count = libbpf_num_possible_cpus();
	shared->id_chunks = read_pid_max() / FBT_IDS + 1;
	shared->slot_count = round_up_pow2(wanted < SLOTS_MIN ? SLOTS_MIN : wanted);
	if (shared->slot_count > FBT_SLOTS_MAX)
		shared->slot_count = FBT_SLOTS_MAX;
	records = choose_ring_records(detail, ring_records, shared->cpu_count);
	while ((1u << shared->ring_shift) < records)
		shared->ring_shift++;
}

/* The loader. */

struct mapping {
	void *address;
	size_t size;
};

struct loader {
	struct loader_options options;
	struct trace_bpf *skel;
	struct ring_buffer *events;
	struct uprobes *uprobes;
	struct task_list *tasks;
	struct senders *senders;
	bool multi;
	struct shared shared;
	struct mapping mappings[MAPPINGS_MAX];
	size_t mapping_count;
	void (*on_event)(void *ctx, const struct fbt_header *event);
	void *on_event_ctx;
	/*
	 * Up to where the event ring has been read and written, as the kernel keeps it: libbpf
	 * before 1.3 does not tell.
	 */
	struct mapping event_ends;
	const uint64_t *events_read;
	const uint64_t *events_written;
	uint64_t read_until_ns; /* 0: until the ring is empty */
	uint32_t read;
};

#define LIBBPF_LINE 1000 /* of a message, which is cut behind about as much */

__attribute__((format(printf, 2, 0))) static int print_libbpf(enum libbpf_print_level level,
							      const char *format, va_list args)
{
	char *text;
	size_t length;

	/* The debug messages of libbpf are a thousand lines. */
	if (log_level() < (level == LIBBPF_DEBUG ? LOG_LIBBPF : LOG_DEBUG))
		return 0;
	if (vasprintf(&text, format, args) < 0)
		return 0;
	length = strlen(text);
	if (length && text[length - 1] == '\n')
		text[--length] = '\0';
	log_debug("%s", text);
	/* Why the kernel refuses a program stands at the end of what it says. */
	if (length > LIBBPF_LINE)
		log_debug("... %s", text + length - LIBBPF_LINE / 2);
	free(text);
	return 0;
}

static void set_knobs(struct loader *loader)
{
	struct trace_bpf *skel = loader->skel;
	const struct shared *shared = &loader->shared;

	skel->rodata->call_detail = loader->options.detail;
	skel->rodata->trace_all = loader->options.trace_all;
	skel->rodata->follow = loader->options.follow;
	skel->rodata->self_tgid = getpid();
	skel->rodata->free_mask = shared->slot_count - 1;
	skel->rodata->ring_shift = shared->ring_shift;
	skel->rodata->ring_mask = (1u << shared->ring_shift) - 1;
	for (uint32_t nr = 0; nr < FBT_NR_COUNT; nr++)
		skel->rodata->traits[nr] = syscall_traits(syscalls_arch(), nr);
	if (!loader__traces_calls(loader)) {
		bpf_program__set_autoload(skel->progs.handle_sys_enter, false);
		bpf_program__set_autoload(skel->progs.handle_sys_exit, false);
		bpf_program__set_autoload(skel->progs.handle_signal, false);
	}
	if (loader->multi)
		bpf_program__set_expected_attach_type(skel->progs.handle_step,
						      UPROBES_MULTI_ATTACH_TYPE);
}

static int set_map_sizes(struct loader *loader)
{
	struct trace_bpf *skel = loader->skel;
	const struct shared *shared = &loader->shared;
	bool with_calls = sends_calls(loader->options.detail);
	uint32_t known_files = with_calls ? KNOWN_FILES : KNOWN_FILES_MIN;
	const struct {
		struct bpf_map *map;
		uint32_t entries;
	} sizes[] = {
		{skel->maps.thread_ids, shared->id_chunks},
		{skel->maps.slots, shared->slot_count},
		{skel->maps.rows, shared->slot_count * FBT_NR_COUNT},
		{skel->maps.free_slots, shared->slot_count},
		{skel->maps.step_hits, shared->cpu_count},
		{skel->maps.ring_heads, shared->cpu_count},
		{skel->maps.ring_calls, shared->cpu_count << shared->ring_shift},
		{skel->maps.known_files, known_files},
		{skel->maps.waits, with_calls ? FBT_WAITS : 1},
		{skel->maps.pasts, with_calls ? shared->slot_count : 1},
		{skel->maps.stack_places, with_calls ? FBT_STACK_PLACES : 1},
	};

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		int err = bpf_map__set_max_entries(sizes[i].map, sizes[i].entries);

		if (err)
			return err;
	}
	return 0;
}

static void *map_memory(struct loader *loader, const struct bpf_map *map)
{
	size_t element = (bpf_map__value_size(map) + 7) & ~7u;
	size_t size = element * bpf_map__max_entries(map);
	void *address = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, bpf_map__fd(map), 0);

	if (address == MAP_FAILED)
		return NULL;
	loader->mappings[loader->mapping_count++] = (struct mapping){address, size};
	return address;
}

static int map_shared(struct loader *loader)
{
	struct trace_bpf *skel = loader->skel;
	struct shared *shared = &loader->shared;

	shared->ids = map_memory(loader, skel->maps.thread_ids);
	shared->slots = map_memory(loader, skel->maps.slots);
	shared->rows = map_memory(loader, skel->maps.rows);
	shared->tgids = map_memory(loader, skel->maps.slot_tgids);
	shared->thread_stacks = map_memory(loader, skel->maps.thread_stacks);
	shared->free_slots = map_memory(loader, skel->maps.free_slots);
	shared->control = map_memory(loader, skel->maps.control);
	shared->hits = map_memory(loader, skel->maps.step_hits);
	shared->heads = map_memory(loader, skel->maps.ring_heads);
	shared->calls = map_memory(loader, skel->maps.ring_calls);
	shared->stacks = map_memory(loader, skel->maps.stack_places);
	shared->stack_count = bpf_map__max_entries(skel->maps.stack_places);
	shared->call_limits = map_memory(loader, skel->maps.call_limits);
	if (loader->mapping_count == MAPPINGS_MAX)
		return 0;
	log_err("maps: %s: free some memory or lower --ring-records", strerror(errno));
	return -ENOMEM;
}

/* An error ends the read; what was read so far does not come again. */
static int handle_event(void *ctx, void *data, size_t size)
{
	struct loader *loader = ctx;
	const struct fbt_header *event = data;

	if (size >= sizeof(*event))
		loader->on_event(loader->on_event_ctx, event);
	if (!loader->read_until_ns || ++loader->read % EVENTS_PER_CLOCK)
		return 0;
	return clock_ns(CLOCK_MONOTONIC) < loader->read_until_ns ? 0 : -EAGAIN;
}

/* The first two pages of the ring hold a position each. */
static int map_event_ends(struct loader *loader)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *address = mmap(NULL, 2 * page, PROT_READ, MAP_SHARED,
			     bpf_map__fd(loader->skel->maps.events), 0);

	if (address == MAP_FAILED)
		return -errno;
	loader->event_ends = (struct mapping){address, 2 * page};
	loader->events_read = address;
	loader->events_written = (const uint64_t *)((const char *)address + page);
	return 0;
}

static int open_events(struct loader *loader)
{
	int err = map_event_ends(loader);

	loader->events = err ? NULL
			     : ring_buffer__new(bpf_map__fd(loader->skel->maps.events),
						handle_event, loader, NULL);
	if (!err && !loader->events)
		err = -errno;
	if (err)
		log_err("event ring: %s", strerror(-err));
	return err;
}

/* On failure nobody is named who holds a lock. */
static void load_task_list(struct loader *loader)
{
	int err = task_list__new(&loader->tasks);

	if (err)
		log_debug("load: the list of threads: %s", strerror(-err));
}

/* On failure nobody is named who stops a process. */
static void load_senders(struct loader *loader)
{
	int err = loader->options.find_senders ? senders__new(&loader->senders) : 0;

	if (err)
		log_debug("load: who sends signals: %s", strerror(-err));
}

static int load(struct loader *loader)
{
	int err = set_map_sizes(loader);

	if (!err)
		err = trace_bpf__load(loader->skel);
	if (!err)
		return 0;
	if (err == -EPERM)
		log_err("load: the kernel refuses BPF: needs CAP_BPF and CAP_PERFMON, and no "
			"lockdown=confidentiality (run with sudo; ferrum-bpftrace doctor shows "
			"what is missing, -v shows the kernel's messages)");
	else if (err == -ENOMEM)
		log_err("load: no memory for the rings, which count towards the memory limit of "
			"a unit or container: raise the limit, or use --ring-records 4096");
	else
		log_err("load: %s (ferrum-bpftrace doctor shows more, -v shows the kernel's "
			"messages)",
			strerror(-err));
	return err;
}

int loader__open(struct loader **result, const struct loader_options *options)
{
	struct loader *loader = calloc(1, sizeof(*loader));
	int err = -ENOMEM;

	if (!loader)
		return err;
	libbpf_set_print(print_libbpf);
	loader->options = *options;
	loader->multi = !options->perf_uprobes && uprobes_have_multi();
	sizing_choose(&loader->shared, options->detail, options->ring_records,
		      options->thread_count);
	loader->uprobes = uprobes__new(loader->multi);
	loader->skel = trace_bpf__open();
	if (!loader->uprobes || !loader->skel)
		goto out;
	set_knobs(loader);
	err = load(loader);
	if (err)
		goto out;
	err = map_shared(loader);
	if (err)
		goto out;
	slots_init(&loader->shared);
	load_task_list(loader);
	load_senders(loader);
	err = open_events(loader);
out:
	if (err) {
		loader__free(loader);
		loader = NULL;
	}
	*result = loader;
	return err;
}

void loader__free(struct loader *loader)
{
	if (!loader)
		return;
	uprobes__free(loader->uprobes);
	task_list__free(loader->tasks);
	senders__free(loader->senders);
	ring_buffer__free(loader->events);
	if (loader->event_ends.address)
		munmap(loader->event_ends.address, loader->event_ends.size);
	for (size_t i = 0; i < loader->mapping_count; i++)
		munmap(loader->mappings[i].address, loader->mappings[i].size);
	trace_bpf__destroy(loader->skel);
	free(loader);
}

bool loader__traces_calls(const struct loader *loader)
{
	return loader->options.detail != FBT_DETAIL_PROBES;
}

struct shared *loader__shared(struct loader *loader)
{
	return &loader->shared;
}

static uint64_t bytes_of(const struct bpf_map *map)
{
	return (uint64_t)bpf_map__value_size(map) * bpf_map__max_entries(map);
}

uint64_t loader__ring_bytes(const struct loader *loader, uint64_t *mapped_bytes)
{
	uint64_t event_bytes = bpf_map__max_entries(loader->skel->maps.events);
	uint64_t bytes = 0;

	for (size_t i = 0; i < loader->mapping_count; i++)
		bytes += loader->mappings[i].size;
	/* libbpf maps the event ring twice in a row, so that no record is split at its end. */
	*mapped_bytes = bytes + 2 * event_bytes;
	return bytes + event_bytes + bytes_of(loader->skel->maps.waits) +
	       bytes_of(loader->skel->maps.pasts);
}

void loader__set_command(struct loader *loader, uint32_t tgid)
{
	__atomic_store_n(&loader->shared.control->command_tgid, tgid, __ATOMIC_RELEASE);
	__atomic_store_n(&loader->shared.control->pending_tgid, tgid, __ATOMIC_RELEASE);
}

void loader__release_command(struct loader *loader)
{
	__atomic_store_n(&loader->shared.control->command_tgid, 0, __ATOMIC_RELEASE);
}

bool loader__awaits_command(const struct loader *loader)
{
	return __atomic_load_n(&loader->shared.control->pending_tgid, __ATOMIC_ACQUIRE) != 0;
}

static int attach_program(const struct bpf_program *program, struct bpf_link **link)
{
	int err;

	*link = bpf_program__attach(program);
	if (*link)
		return 0;
	err = -errno;
	log_err("attach: %s: %s", bpf_program__name(program), strerror(-err));
	return err;
}

static void attach_senders(struct loader *loader)
{
	int err = senders__attach(loader->senders);

	if (err)
		log_debug("attach: who sends signals: %s", strerror(-err));
}

int loader__attach_threads(struct loader *loader)
{
	struct trace_bpf *skel = loader->skel;
	int err = attach_program(skel->progs.handle_fork, &skel->links.handle_fork);

	if (!err)
		err = attach_program(skel->progs.handle_exit, &skel->links.handle_exit);
	if (!err)
		err = attach_program(skel->progs.handle_exec, &skel->links.handle_exec);
	if (!err)
		attach_senders(loader);
	return err;
}

/* On failure only the time of signal handlers is not known. */
static void attach_signals(struct loader *loader)
{
	struct trace_bpf *skel = loader->skel;

	skel->links.handle_signal = bpf_program__attach(skel->progs.handle_signal);
	if (!skel->links.handle_signal) {
		log_debug("attach: handle_signal: %s", strerror(errno));
		return;
	}
	__atomic_store_n(&loader->shared.control->handlers_timed, 1, __ATOMIC_RELEASE);
}

int loader__attach_syscalls(struct loader *loader)
{
	struct trace_bpf *skel = loader->skel;
	int err;

	if (!loader__traces_calls(loader))
		return 0;
	err = attach_program(skel->progs.handle_sys_enter, &skel->links.handle_sys_enter);
	if (!err)
		err = attach_program(skel->progs.handle_sys_exit, &skel->links.handle_sys_exit);
	if (!err)
		attach_signals(loader);
	return err;
}

static uint64_t misses_of(const struct bpf_program *program)
{
	struct bpf_prog_info info = {0};
	__u32 size = sizeof(info);

	if (bpf_obj_get_info_by_fd(bpf_program__fd(program), &info, &size))
		return 0;
	return info.recursion_misses;
}

uint64_t loader__missed_calls(const struct loader *loader)
{
	const struct trace_bpf *skel = loader->skel;

	if (!loader__traces_calls(loader))
		return 0;
	return misses_of(skel->progs.handle_sys_enter) + misses_of(skel->progs.handle_sys_exit);
}

uint64_t loader__missed_forks(const struct loader *loader)
{
	return misses_of(loader->skel->progs.handle_fork);
}

uint64_t loader__missed_exits(const struct loader *loader)
{
	return misses_of(loader->skel->progs.handle_exit);
}

int loader__add_target(struct loader *loader, uint32_t tgid)
{
	struct fbt_target_state fresh = {0};
	int fd = bpf_map__fd(loader->skel->maps.targets);
	int err = bpf_map_update_elem(fd, &tgid, &fresh, BPF_NOEXIST);

	return err == -EEXIST ? 0 : err;
}

int loader__set_runtime(struct loader *loader, uint32_t tgid, uint64_t start, uint64_t end)
{
	struct fbt_runtime runtime = {.start = start, .end = end};
	int fd = bpf_map__fd(loader->skel->maps.runtimes);

	if (start == end)
		return bpf_map_delete_elem(fd, &tgid);
	loader->skel->bss->has_runtimes = 1;
	return bpf_map_update_elem(fd, &tgid, &runtime, BPF_ANY);
}

void loader__remove_target(struct loader *loader, uint32_t tgid)
{
	bpf_map_delete_elem(bpf_map__fd(loader->skel->maps.targets), &tgid);
}

int loader__map(const struct loader *loader, const char *name)
{
	const struct bpf_map *map = bpf_object__find_map_by_name(loader->skel->obj, name);

	return map && !bpf_map__is_internal(map) ? bpf_map__fd(map) : -ENOENT;
}

struct uprobes *loader__uprobes(struct loader *loader)
{
	return loader->uprobes;
}

bool loader__has_multi(const struct loader *loader)
{
	return loader->multi;
}

const struct bpf_program *loader__step_program(const struct loader *loader)
{
	return loader->skel->progs.handle_step;
}

bool loader__fault_programs(const struct loader *loader, struct fault_programs *programs)
{
	programs->begin = bpf_program__fd(loader->skel->progs.handle_fault_begin);
	programs->end = bpf_program__fd(loader->skel->progs.handle_fault_end);
	return programs->begin >= 0 && programs->end >= 0;
}

struct task_list *loader__task_list(const struct loader *loader)
{
	return loader->tasks;
}

const struct senders *loader__senders(const struct loader *loader)
{
	return loader->senders;
}

int loader__set_kind_args(struct loader *loader, uint32_t kind, const struct fbt_kind_args *args)
{
	return bpf_map_update_elem(bpf_map__fd(loader->skel->maps.kind_args), &kind, args, BPF_ANY);
}

void loader__set_site(struct loader *loader, const struct fbt_site_key *key,
		      enum fbt_site_state state)
{
	int fd = bpf_map__fd(loader->skel->maps.sites);
	struct fbt_site site = {0};

	bpf_map_lookup_elem(fd, key, &site);
	site.state = state;
	bpf_map_update_elem(fd, key, &site, BPF_ANY);
}

uint64_t loader__site_kinds(struct loader *loader, const struct fbt_site_key *key)
{
	struct fbt_site site = {0};

	bpf_map_lookup_elem(bpf_map__fd(loader->skel->maps.sites), key, &site);
	return site.kinds;
}

void loader__forget_site(struct loader *loader, const struct fbt_site_key *key)
{
	bpf_map_delete_elem(bpf_map__fd(loader->skel->maps.sites), key);
}

bool loader__drain_events(struct loader *loader, uint64_t most_ns,
			  void (*on_event)(void *ctx, const struct fbt_header *event), void *ctx)
{
	uint64_t written = __atomic_load_n(loader->events_written, __ATOMIC_ACQUIRE);
	int err;

	loader->read_until_ns = most_ns ? clock_ns(CLOCK_MONOTONIC) + most_ns : 0;
	loader->on_event = on_event;
	loader->on_event_ctx = ctx;
	err = ring_buffer__consume(loader->events);
	/* It stops at a record that is still being written, too. */
	return err != -EAGAIN && __atomic_load_n(loader->events_read, __ATOMIC_ACQUIRE) >= written;
}

uint64_t loader__unread_steps(const struct loader *loader)
{
	const uint64_t each = sizeof(struct fbt_ring_step) + BPF_RINGBUF_HDR_SZ;
	uint64_t written = __atomic_load_n(loader->events_written, __ATOMIC_ACQUIRE);
	uint64_t read = __atomic_load_n(loader->events_read, __ATOMIC_ACQUIRE);

	return (written - read + each - 1) / each;
}

void loader__detach(struct loader *loader)
{
	__u32 *closed = &loader->shared.control->closed;

	/* No step may begin: without the tracepoints it would seem to make no calls. */
	__atomic_store_n(closed, FBT_CLOSING, __ATOMIC_RELEASE);
	trace_bpf__detach(loader->skel);
	senders__detach(loader->senders);
	__atomic_store_n(closed, FBT_CLOSED, __ATOMIC_RELEASE);
}
