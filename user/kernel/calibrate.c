/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "kernel/calibrate.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/arith.h"
#include "base/clock.h"
#include "base/log.h"
#include "kernel/faults.h"
#include "kernel/traced.h"
#include "kernel/uprobes.h"

#define CALL_CHUNKS	24
#define CALLS_PER_CHUNK 200
#define STEP_ROUNDS	16
#define STEP_TRIES	4
#define STEP_PAUSE_US	200
/* More than the caches of one core. */
#define CACHES_BYTES (4 << 20)
#define LINE_BYTES   64
#define OWN_KIND     (FBT_KIND_COUNT - 1)
#define FAULT_ROUNDS 7
#define FAULT_PAGES  256

/*
 * The smallest function whose entry and return can be probed separately. At both places the kernel
 * must single-step a copy of the instruction, which takes longest; it emulates some others.
 */
void calibrate_probe_site(void);
extern const char calibrate_probe_exit[];

/* The same at places that the kernel emulates where it can, with the end after a push. */
void calibrate_emulated(void);
extern const char calibrate_emulated_end[];
#ifdef __x86_64__
#define EMULATED_SP UINT64_C(-8)
#else
#define EMULATED_SP UINT64_C(0)
#endif

__asm__(".pushsection .text\n"
	".globl calibrate_probe_site\n"
	".type calibrate_probe_site, %function\n"
	"calibrate_probe_site:\n"
#ifdef __x86_64__
	"sub $8, %rsp\n"
	"add $8, %rsp\n"
#else
	"add x9, x9, #0\n"
#endif
	".globl calibrate_probe_exit\n"
	"calibrate_probe_exit:\n"
	"ret\n"
	".size calibrate_probe_site, . - calibrate_probe_site\n"
	".globl calibrate_emulated\n"
	".type calibrate_emulated, %function\n"
	"calibrate_emulated:\n"
#ifdef __x86_64__
	"push %rax\n"
	".globl calibrate_emulated_end\n"
	"calibrate_emulated_end:\n"
	"jmp 1f\n"
	"1: add $8, %rsp\n"
#else
	"add x9, x9, #0\n"
	".globl calibrate_emulated_end\n"
	"calibrate_emulated_end:\n"
#endif
	"ret\n"
	".size calibrate_emulated, . - calibrate_emulated\n"
	".popsection\n");

/* The duration of a call in the fastest chunk, because disturbances only make a chunk longer. */
static uint64_t measure_calls_ps(const volatile struct fbt_sum *row, uint64_t *row_ns)
{
	uint64_t best = UINT64_MAX;

	for (int chunk = 0; chunk < CALL_CHUNKS; chunk++) {
		uint64_t before_ns = row ? row->ns : 0;
		uint64_t start = clock_ns(CLOCK_MONOTONIC);

		for (int i = 0; i < CALLS_PER_CHUNK; i++)
			syscall(SYS_getppid);
		start = clock_ns(CLOCK_MONOTONIC) - start;
		if (start >= best)
			continue;
		best = start;
		if (row)
			*row_ns = (row->ns - before_ns) / CALLS_PER_CHUNK;
	}
	return best * 1000 / CALLS_PER_CHUNK;
}

uint64_t calibrate_bare_ps(void)
{
	return measure_calls_ps(NULL, NULL);
}

/* New pages, one fault each. A kernel without huge pages refuses MADV_NOHUGEPAGE: ignored. */
static char *map_pages(void)
{
	size_t size = (size_t)sysconf(_SC_PAGESIZE) * FAULT_PAGES;
	char *pages = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (pages == MAP_FAILED)
		return NULL;
	madvise(pages, size, MADV_NOHUGEPAGE);
	return pages;
}

static void unmap_pages(char *pages)
{
	munmap(pages, (size_t)sysconf(_SC_PAGESIZE) * FAULT_PAGES);
}

/* The CPU time of their faults: the clock stands still while others have the CPU. */
static uint64_t touch_pages_ns(char *pages)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), size = page * FAULT_PAGES;
	uint64_t start_ns;

	madvise(pages, size, MADV_DONTNEED);
	start_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	for (size_t at = 0; at < size; at += page)
		*(volatile char *)(pages + at) = 1;
	return clock_ns(CLOCK_THREAD_CPUTIME_ID) - start_ns;
}

static void sort_in(uint64_t sorted[], int count, uint64_t value)
{
	for (; count && sorted[count - 1] > value; count--)
		sorted[count] = sorted[count - 1];
	sorted[count] = value;
}

/* The median: the pages of the first round are cold, those of the last are warm. */
uint64_t calibrate_fault_ps(void)
{
	uint64_t sorted[FAULT_ROUNDS];
	char *pages = map_pages();

	if (!pages)
		return 0;
	for (int round = 0; round < FAULT_ROUNDS; round++)
		sort_in(sorted, round, touch_pages_ns(pages));
	unmap_pages(pages);
	return sorted[FAULT_ROUNDS / 2] * 1000 / FAULT_PAGES;
}

/* Starts tracing the tool's own thread, as tgid 0, for the duration of a measurement. */
static int take_own_slot(struct shared *shared)
{
	int slot = slots_take(shared, 0, (uint32_t)gettid(), clock_ns(CLOCK_MONOTONIC));

	slots_forget_stacks(shared);
	return slot;
}

static void give_own_slot_back(struct shared *shared, int slot)
{
	slots_end(shared, (uint32_t)gettid(), clock_ns(CLOCK_MONOTONIC));
	slots_give_back(shared, (uint32_t)slot);
}

/*
 * Per round over all pages: the time that timing adds, and the time of faults that its programs do
 * not see.
 */
struct timed_faults {
	uint64_t added_ns;
	uint64_t unseen_ns;
};

/*
 * Touches the pages with and without events, in several rounds. added_ns is the median. unseen_ns,
 * which is added to each fault, is one of the least, because no time may be made up. It is not the
 * least: where the host of a virtual machine takes the CPU, a round or two seem to have hardly any.
 */
static bool time_faults(const int fds[FAULT_EVENTS], struct fbt_slot *slot, char *pages,
			struct timed_faults *faults)
{
	uint64_t added[FAULT_ROUNDS], unseen[FAULT_ROUNDS];

	for (int round = 0; round < FAULT_ROUNDS; round++) {
		uint64_t seen_ns = slot->lately_ns, count = slot->faults_timed;
		uint64_t bare_ns = touch_pages_ns(pages), timed_ns;

		if (fault_events_switch(fds, true))
			return false;
		slot->step_start_ns = 1;
		timed_ns = touch_pages_ns(pages);
		slot->step_start_ns = 0;
		if (fault_events_switch(fds, false) || slot->faults_timed - count < FAULT_PAGES)
			return false;
		seen_ns = slot->lately_ns - seen_ns;
		sort_in(added, round, sub_saturating(timed_ns, bare_ns));
		sort_in(unseen, round, sub_saturating(timed_ns, seen_ns));
	}
	faults->added_ns = added[FAULT_ROUNDS / 2];
	faults->unseen_ns = unseen[FAULT_ROUNDS / 3];
	log_debug("timing adds %llu ns to a page fault and does not see %llu ns of it",
		  (unsigned long long)faults->added_ns / FAULT_PAGES,
		  (unsigned long long)faults->unseen_ns / FAULT_PAGES);
	return true;
}

int calibrate_faults(struct loader *loader, struct fbt_cost *cost)
{
	struct shared *shared = loader__shared(loader);
	struct timed_faults faults;
	char *pages = map_pages();
	int fds[FAULT_EVENTS], slot, err;

	cost->fault_ps = 0;
	if (!pages)
		return 0;
	err = fault_events_open(loader, (uint32_t)gettid(), fds);
	if (!err) {
		slot = take_own_slot(shared);
		if (slot > 0 && time_faults(fds, &shared->slots[slot], pages, &faults)) {
			cost->fault_ps = max_u64(faults.added_ns, 1) * 1000 / FAULT_PAGES;
			/* A quarter less: in a long run it is less, and own code must not vanish.
			 */
			shared->control->fault_entry_ns =
				(uint32_t)(faults.unseen_ns / FAULT_PAGES / 4 * 3);
		}
		if (slot > 0)
			give_own_slot_back(shared, slot);
		fault_events_close(fds);
	}
	unmap_pages(pages);
	return err;
}

void calibrate_calls(struct loader *loader, uint64_t bare_ps, struct fbt_cost *cost)
{
	struct shared *shared = loader__shared(loader);
	uint64_t row_ns = 0;
	int slot;

	cost->neighbor_ps = sub_saturating(measure_calls_ps(NULL, NULL), bare_ps);
	slot = take_own_slot(shared);
	if (slot <= 0)
		return;
	cost->call_ps = sub_saturating(
		measure_calls_ps(&shared->rows[(uint32_t)slot * FBT_NR_COUNT + SYS_getppid],
				 &row_ns),
		bare_ps);
	cost->floor_ns = row_ns;
	give_own_slot_back(shared, slot);
}

/* Finds the file offset of an address in the tool's own program. */
static int find_own_offset(uintptr_t address, uint64_t *offset)
{
	char line[512];
	FILE *maps = fopen("/proc/self/maps", "re");
	int err = -ENOENT;

	if (!maps)
		return -errno;
	while (err && fgets(line, sizeof(line), maps)) {
		unsigned long start, end, at;

		if (sscanf(line, "%lx-%lx %*s %lx", &start, &end, &at) != 3 || address < start ||
		    address >= end)
			continue;
		*offset = address - start + at;
		err = 0;
	}
	fclose(maps);
	return err;
}

/* How often this thread was preempted. */
static long times_displaced(void)
{
	struct rusage usage = {0};

	getrusage(RUSAGE_THREAD, &usage);
	return usage.ru_nivcsw;
}

static uint64_t measure_step_once_ns(void (*step)(void), char *caches)
{
	uint64_t start;

	usleep(STEP_PAUSE_US);
	for (size_t at = 0; caches && at < CACHES_BYTES; at += LINE_BYTES)
		*(volatile char *)(caches + at) += 1;
	start = clock_ns(CLOCK_MONOTONIC);
	step();
	return clock_ns(CLOCK_MONOTONIC) - start;
}

/* Measures again after a preemption, which is not a cost of the step. */
static uint64_t measure_step_ns(void (*step)(void), char *caches)
{
	uint64_t least_ns = UINT64_MAX;

	for (int i = 0; i < STEP_TRIES; i++) {
		long before = times_displaced();
		uint64_t step_ns = measure_step_once_ns(step, caches);

		if (step_ns < least_ns)
			least_ns = step_ns;
		if (times_displaced() == before)
			return step_ns;
	}
	return least_ns;
}

/* The upper quartile, so that the cost is overstated rather than understated. */
static uint64_t measure_steps_ns(void (*step)(void))
{
	char *caches = mmap(NULL, CACHES_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			    -1, 0);
	uint64_t sorted[STEP_ROUNDS];

	/* Without memory the caches stay warm, and the result is too low but better than none. */
	if (caches == MAP_FAILED)
		caches = NULL;
	for (int i = 0; i < STEP_ROUNDS; i++) {
		uint64_t step_ns = measure_step_ns(step, caches);
		int place = i;

		for (; place && sorted[place - 1] > step_ns; place--)
			sorted[place] = sorted[place - 1];
		sorted[place] = step_ns;
	}
	if (caches)
		munmap(caches, CACHES_BYTES);
	return sorted[STEP_ROUNDS * 3 / 4];
}

/* Probes both functions. The end of the second is that of a call site. */
static int probe_steps(struct loader *loader)
{
	struct uprobe_place places[] = {
		{.cookie = OWN_KIND},
		{.cookie = OWN_KIND | FBT_PROBE_END},
		{.cookie = OWN_KIND},
		{.cookie = OWN_KIND | FBT_PROBE_END | FBT_PROBE_SITE |
			   EMULATED_SP << FBT_PROBE_SP_SHIFT},
	};
	const uintptr_t addresses[] = {
		(uintptr_t)calibrate_probe_site,
		(uintptr_t)calibrate_probe_exit,
		(uintptr_t)calibrate_emulated,
		(uintptr_t)calibrate_emulated_end,
	};
	size_t count = sizeof(places) / sizeof(places[0]);
	int fd = -1, err = 0;

	for (size_t i = 0; i < count && !err; i++)
		err = find_own_offset(addresses[i], &places[i].offset);
	if (!err && (fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC)) < 0)
		err = -errno;
	if (err) {
		log_err("/proc/self: %s", strerror(-err));
		return err;
	}
	err = uprobes__attach(loader__uprobes(loader), loader__step_program(loader), fd,
			      "/proc/self/exe", places, count, (uint32_t)getpid(), false);
	close(fd);
	return err;
}

int calibrate_step(struct loader *loader, struct fbt_cost *cost)
{
	struct shared *shared = loader__shared(loader);
	int slot, err = probe_steps(loader);

	if (err)
		return err;
	slot = take_own_slot(shared);
	if (slot <= 0)
		return 0;
	cost->step_ns = measure_steps_ns(calibrate_probe_site);
	/* Includes looking up the call site, as in a step that ends there. */
	shared->control->learn_kinds |= UINT64_C(1) << OWN_KIND;
	cost->site_ns = measure_steps_ns(calibrate_emulated);
	shared->control->learn_kinds &= ~(UINT64_C(1) << OWN_KIND);
	give_own_slot_back(shared, slot);
	return 0;
}

static uint64_t read_rss_bytes(void)
{
	unsigned long pages = 0;
	FILE *file = fopen("/proc/self/statm", "re");

	if (!file || fscanf(file, "%*u %lu", &pages) != 1)
		pages = 0;
	if (file)
		fclose(file);
	return (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* The cost of all probe hits of a kind, including nested calls and steps that were not recorded. */
static double sum_hits_ns(const struct shared *shared, const struct fbt_cost *cost, uint32_t kind)
{
	uint64_t hits = 0, emulated = 0;

	for (uint32_t cpu = 0; cpu < shared->cpu_count; cpu++) {
		hits += shared->hits[cpu].begins[kind] + shared->hits[cpu].ends[kind];
		emulated += shared->hits[cpu].emulated[kind];
	}
	return ((double)(hits - emulated) * (double)cost->step_ns +
		(double)emulated * (double)cost->site_ns) /
	       2;
}

uint64_t calibrate_kind_ns(const struct fbt_cost *cost, struct loader *loader, uint32_t kind)
{
	const struct shared *shared = loader__shared(loader);
	double ns = sum_hits_ns(shared, cost, kind);

	for (uint32_t cpu = 0; cpu < shared->cpu_count; cpu++)
		ns += (double)shared->hits[cpu].walk_ns[kind];
	return (uint64_t)ns;
}

void calibrate_finish(struct fbt_cost *cost, struct loader *loader, uint64_t cpu_ns, uint64_t steps)
{
	const struct shared *shared = loader__shared(loader);
	uint64_t mapped_bytes, rss_bytes = read_rss_bytes();
	double all_ns = (double)shared->control->walk_ns;

	cost->ring_bytes = loader__ring_bytes(loader, &mapped_bytes);
	cost->rss_bytes = sub_saturating(rss_bytes, mapped_bytes);
	cost->cpu_ns = cpu_ns;
	for (uint32_t kind = 1; kind < OWN_KIND; kind++)
		all_ns += sum_hits_ns(shared, cost, kind);
	if (steps)
		cost->step_ns = (uint64_t)(all_ns / (double)steps);
}
