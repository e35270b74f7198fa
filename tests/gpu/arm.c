/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * The least that can read a shim, for what it costs by itself and where BPF is not allowed.
 *
 * gpu_arm PID FILE arms the shim of PID, prints "armed" once it collects, counts its records until
 * SIGTERM, SIGINT or the end of PID, and writes the counts as JSON.
 *
 * gpu_arm --wait PID SECONDS waits until another tracer has armed that shim and has read the
 * answer. In vain, the exit status is 1.
 *
 * Exit status 0, 1 with a line on stderr, or 2.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "base/clock.h"
#include "model/event.h"
#include "shim/ring.h"
#include "model/gpu.h"
#include "base/json.h"
#include "base/vec.h"

#define POLL_US	    5000
#define ARM_NS	    30000000000ull
#define DORMANT_NS  5000000000ull
#define RECORDS_MAX 16000000 /* number of records whose join is checked: 256 MiB */

struct launch {
	uint32_t correlation;
	bool driver; /* inside of a runtime call with the same number, if there is one */
	uint64_t start_ns;
};

struct work {
	uint32_t correlation;
	uint64_t start_ns;
};

struct counts {
	struct gpu_table table;
	uint32_t tgid;
	VEC(struct launch) launches;
	VEC(struct work) works;
	uint64_t records;
	uint64_t kernels, memcpys, memsets, apis, syncs, overheads;
	uint64_t unmeasured;
	uint64_t joined, unjoined, violations;
	uint64_t not_checked; /* records beyond RECORDS_MAX */
	bool armed;
	bool ended;
};

static volatile sig_atomic_t stop;

static void on_signal(int number)
{
	stop = 1;
}

static void add_work(struct counts *counts, const struct fbt_gpu_work *record)
{
	struct work work = {record->correlation, record->start_ns};

	counts->kernels += record->kind == FBT_GPU_KERNEL;
	counts->memcpys += record->kind == FBT_GPU_MEMCPY;
	counts->memsets += record->kind == FBT_GPU_MEMSET;
	if (!record->end_ns)
		counts->unmeasured++;
	if (counts->works.count >= RECORDS_MAX || vec_push(&counts->works, work))
		counts->not_checked++;
}

static void add_api(struct counts *counts, const struct fbt_gpu_api *record)
{
	struct launch launch = {record->correlation,
				(record->header.flags & FBT_GPU_API_DRIVER) != 0, record->start_ns};

	counts->apis++;
	if (counts->launches.count >= RECORDS_MAX || vec_push(&counts->launches, launch))
		counts->not_checked++;
}

static void add_state(struct counts *counts, const struct fbt_gpu_state *record)
{
	gpu_table_set_state(&counts->table, record, decode_string(&record->header, 0),
			    decode_string(&record->header, 1));
	counts->armed |= record->status == FBT_GPU_ARMED;
	counts->ended |= record->status != FBT_GPU_ARMED;
}

static void on_record(void *ctx, struct fbt_header *record)
{
	struct counts *counts = ctx;

	counts->records++;
	switch (record->type) {
	case FBT_EVENT_GPU_STATE:
		((struct fbt_gpu_state *)record)->tgid = counts->tgid;
		add_state(counts, (struct fbt_gpu_state *)record);
		break;
	case FBT_EVENT_GPU_DEVICE:
		((struct fbt_gpu_device *)record)->tgid = counts->tgid;
		gpu_table_add_device(&counts->table, (struct fbt_gpu_device *)record,
				     decode_string(record, 0));
		break;
	case FBT_EVENT_GPU_FLUSH:
		((struct fbt_gpu_flush *)record)->tgid = counts->tgid;
		gpu_table_set_flush(&counts->table, (struct fbt_gpu_flush *)record);
		break;
	case FBT_EVENT_GPU_WORK:
		add_work(counts, (struct fbt_gpu_work *)record);
		break;
	case FBT_EVENT_GPU_API:
		add_api(counts, (struct fbt_gpu_api *)record);
		break;
	case FBT_EVENT_GPU_SYNC:
		counts->syncs++;
		break;
	case FBT_EVENT_GPU_OVERHEAD:
		counts->overheads++;
		break;
	}
}

/*
 * Ordered by correlation id. Of two calls with the same id the runtime call, which is the outer
 * one, comes first.
 */
static int compare_launches(const void *a, const void *b)
{
	const struct launch *left = a, *right = b;

	if (left->correlation != right->correlation)
		return left->correlation < right->correlation ? -1 : 1;
	return (int)left->driver - (int)right->driver;
}

static const struct launch *find_launch(const struct counts *counts, uint32_t correlation)
{
	size_t low = 0, high = counts->launches.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (counts->launches.items[middle].correlation < correlation)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == counts->launches.count || counts->launches.items[low].correlation != correlation)
		return NULL;
	return &counts->launches.items[low];
}

static void join(struct counts *counts)
{
	const struct launch *launch;

	if (counts->launches.count)
		qsort(counts->launches.items, counts->launches.count,
		      sizeof(*counts->launches.items), compare_launches);
	vec_for_each (work, &counts->works) {
		launch = work->correlation ? find_launch(counts, work->correlation) : NULL;
		counts->joined += launch != NULL;
		counts->unjoined += launch == NULL;
		counts->violations += launch && work->start_ns && work->start_ns < launch->start_ns;
	}
}

static void write_process(struct json *json, const struct gpu_process *process)
{
	char version[32];

	if (!process)
		return;
	json_string(json, "status", gpu_status_name(process->state.status));
	json_string(json, "detail", process->detail);
	json_string(json, "library", process->library);
	json_string(json, "cupti", gpu_cupti_version_name(process->state.cupti_version, version));
	json_uint(json, "driver_version", process->state.driver_version);
	json_string(json, "clock", gpu_clock_name(process->state.clock_method));
	json_uint(json, "arm_ns", process->arm_ns);
	json_uint(json, "cupti_dropped", process->flush.cupti_dropped);
	json_uint(json, "ring_lost", process->flush.ring_lost);
	json_uint(json, "no_buffer", process->flush.no_buffer);
	json_uint(json, "unknown", process->flush.unknown);
	json_uint(json, "shim_ns", process->flush.shim_ns);
	json_uint(json, "clock_error_ns", process->flush.clock_error_ns);
	json_uint(json, "clock_steps", process->flush.clock_steps);
	json_string(json, "device", process->devices.count ? process->devices.items[0].name : "");
}

static int write_counts(const struct counts *counts, const char *path, uint64_t wall_ns,
			uint64_t skipped)
{
	struct json json = {.out = fopen(path, "w")};

	if (!json.out)
		return -errno;
	json_object_begin(&json, NULL);
	json_bool(&json, "armed", counts->armed);
	json_uint(&json, "wall_ns", wall_ns);
	json_uint(&json, "records", counts->records);
	json_uint(&json, "kernels", counts->kernels);
	json_uint(&json, "memcpys", counts->memcpys);
	json_uint(&json, "memsets", counts->memsets);
	json_uint(&json, "apis", counts->apis);
	json_uint(&json, "syncs", counts->syncs);
	json_uint(&json, "overheads", counts->overheads);
	json_uint(&json, "unmeasured", counts->unmeasured);
	json_uint(&json, "joined", counts->joined);
	json_uint(&json, "unjoined", counts->unjoined);
	json_uint(&json, "violations", counts->violations);
	json_uint(&json, "not_checked", counts->not_checked);
	json_uint(&json, "skipped", skipped);
	write_process(&json, gpu_table_find(&counts->table, counts->tgid));
	json_object_end(&json);
	fputc('\n', json.out);
	return fclose(json.out) ? -errno : 0;
}

/* Beats and reads until told to stop. *wall_ns is the time from the wish to the answer. */
static int collect(struct gpu_ring *ring, struct counts *counts, uint64_t *wall_ns)
{
	uint64_t begin = clock_ns(CLOCK_MONOTONIC);
	bool said = false;
	int err = 0;

	gpu_ring__arm(ring);
	while (!stop && !counts->ended && !err && !kill((pid_t)counts->tgid, 0)) {
		gpu_ring__beat(ring);
		err = gpu_ring__read(ring, on_record, counts);
		if (counts->armed && !said) {
			*wall_ns = clock_ns(CLOCK_MONOTONIC) - begin;
			puts("armed");
			fflush(stdout);
			said = true;
		}
		if (!counts->armed && clock_ns(CLOCK_MONOTONIC) - begin > ARM_NS)
			return -ETIMEDOUT;
		usleep(counts->armed ? POLL_US : 200);
	}
	return err;
}

static int finish(struct gpu_ring *ring, struct counts *counts)
{
	uint64_t begin = clock_ns(CLOCK_MONOTONIC);
	int err = 0;

	gpu_ring__disarm(ring);
	while (!err && !gpu_ring__is_dormant(ring) && !kill((pid_t)counts->tgid, 0) &&
	       clock_ns(CLOCK_MONOTONIC) - begin < DORMANT_NS) {
		gpu_ring__beat(ring);
		err = gpu_ring__read(ring, on_record, counts);
		usleep(POLL_US);
	}
	/* Also reads the records that came before the answer. */
	return err ? err : gpu_ring__read(ring, on_record, counts);
}

static int fail(const char *what, int err)
{
	fprintf(stderr, "gpu_arm: %s: %s\n", what, strerror(-err));
	return EXIT_FAILURE;
}

static int arm(uint32_t tgid, const char *path)
{
	struct counts counts = {.tgid = tgid};
	struct gpu_ring *ring;
	uint32_t version = 0, holder = 0;
	uint64_t wall_ns = 0, skipped;
	int err = gpu_ring__open(&ring, tgid, &version, &holder);

	if (err)
		return fail("no shim can be read in that process", err);
	signal(SIGINT, on_signal);
	signal(SIGTERM, on_signal);
	err = collect(ring, &counts, &wall_ns);
	if (err)
		fail("the shim", err);
	err = finish(ring, &counts) ?: err;
	skipped = gpu_ring__skipped(ring);
	gpu_ring__free(ring);
	join(&counts);
	err = write_counts(&counts, path, wall_ns, skipped) ?: err;
	if (err)
		return fail(path, err);
	return counts.armed ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* Only looks: gpu_ring__open would take the ring from the tracer that is awaited. */
static const struct fbt_gpu_ring *look(const char *pid)
{
	char folder[64], path[400], name[64];
	const struct fbt_gpu_ring *ring = NULL;
	const struct dirent *entry;
	ssize_t length;
	void *map;
	DIR *dir;
	int fd;

	snprintf(folder, sizeof(folder), "/proc/%s/fd", pid);
	dir = opendir(folder);
	while (dir && !ring && (entry = readdir(dir))) {
		snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
		length = readlink(path, name, sizeof(name) - 1);
		name[length > 0 ? length : 0] = 0;
		if (strncmp(name, "/memfd:" FBT_GPU_MEMFD, strlen("/memfd:" FBT_GPU_MEMFD)))
			continue;
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			continue;
		map = mmap(NULL, FBT_GPU_HEADER_BYTES, PROT_READ, MAP_SHARED, fd, 0);
		close(fd);
		ring = map == MAP_FAILED ? NULL : map;
	}
	if (dir)
		closedir(dir);
	return ring;
}

static int wait_armed(const char *pid, const char *seconds)
{
	uint64_t until = clock_ns(CLOCK_MONOTONIC) + strtoull(seconds, NULL, 10) * 1000000000ull;
	const struct fbt_gpu_ring *ring = NULL;
	bool answered = false;
	uint64_t head = 0;
	uint32_t armed;

	while (clock_ns(CLOCK_MONOTONIC) < until) {
		ring = ring ? ring : look(pid);
		armed = ring ? __atomic_load_n(&ring->armed, __ATOMIC_ACQUIRE) : 0;
		if (!answered && armed & 1 &&
		    __atomic_load_n(&ring->served, __ATOMIC_ACQUIRE) == armed) {
			answered = true;
			head = __atomic_load_n(&ring->head, __ATOMIC_ACQUIRE);
		}
		/*
		 * Steps have GPU records from the moment at which the tracer knows that the shim is
		 * armed.
		 */
		if (answered && __atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE) >= head)
			return EXIT_SUCCESS;
		usleep(POLL_US);
	}
	return fail(ring ? "its shim was not armed" : "it has no shim", -ETIMEDOUT);
}

int main(int argc, char **argv)
{
	if (argc == 4 && !strcmp(argv[1], "--wait"))
		return wait_armed(argv[2], argv[3]);
	if (argc != 3 || argv[1][0] == '-') {
		fputs("usage: gpu_arm PID FILE | gpu_arm --wait PID SECONDS\n", stderr);
		return 2;
	}
	return arm((uint32_t)strtoul(argv[1], NULL, 10), argv[2]);
}
