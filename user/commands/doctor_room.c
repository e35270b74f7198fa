/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "commands/doctor_room.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/format.h"
#include "kernel/explain_programs.h"
#include "kernel/step_probes.h"
#include "otlp/otlp_tls.h"
#include "proc/machine_load.h"
#include "trace/loading.h"

#define CLOCK_SOURCE "/sys/devices/system/clocksource/clocksource0/current_clocksource"
/* Takes the best of this many rounds, because the CPU may be taken away during some. */
#define CLOCK_ROUNDS   20
#define CLOCK_READINGS 100
/* Each system call of the engine costs two readings. */
#define CLOCK_SLOW_PS 300000

/* Most pages of code that are mapped to try probes on. */
#define PAGES_MAX 4096

static void read_clock(struct doctor_room *room)
{
	FILE *file = fopen(CLOCK_SOURCE, "re");

	room->clock_ps = UINT64_MAX;
	for (int round = 0; round < CLOCK_ROUNDS; round++) {
		uint64_t start_ns = clock_ns(CLOCK_MONOTONIC), ps;

		for (int i = 0; i < CLOCK_READINGS; i++)
			clock_ns(CLOCK_MONOTONIC);
		ps = (clock_ns(CLOCK_MONOTONIC) - start_ns) * 1000 / CLOCK_READINGS;
		if (ps < room->clock_ps)
			room->clock_ps = ps;
	}
	if (!file)
		return;
	if (fscanf(file, "%31s", room->clock_source) != 1)
		*room->clock_source = '\0';
	fclose(file);
}

static uint64_t read_memory(void)
{
	FILE *file = fopen("/proc/meminfo", "re");
	uint64_t kib = 0, bytes = UINT64_MAX;
	char line[128];

	while (file && bytes == UINT64_MAX && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "MemAvailable: %" SCNu64, &kib) == 1)
			bytes = kib << 10;
	}
	if (file)
		fclose(file);
	return bytes;
}

static bool is_on_syscalls(uint32_t id)
{
	struct bpf_link_info info = {0};
	char name[64] = "";
	uint32_t size = sizeof(info);
	int fd = bpf_link_get_fd_by_id(id);
	bool found;

	if (fd < 0)
		return false;
	info.raw_tracepoint.tp_name = (uintptr_t)name;
	info.raw_tracepoint.tp_name_len = sizeof(name);
	found = !bpf_obj_get_info_by_fd(fd, &info, &size) &&
		info.type == BPF_LINK_TYPE_RAW_TRACEPOINT &&
		(!strcmp(name, "sys_enter") || !strcmp(name, "sys_exit"));
	close(fd);
	return found;
}

static int count_tracers(void)
{
	uint32_t id = 0;
	int count = 0;

	while (!bpf_link_get_next_id(id, &id))
		count += is_on_syscalls(id);
	return errno == ENOENT ? count : -1;
}

static bool is_known(const struct doctor_room *room, const char *path)
{
	for (size_t i = 0; i < room->dir_count; i++) {
		if (!strcmp(room->dirs[i].path, path))
			return true;
	}
	return false;
}

/* Goes up from a directory that does not exist to the one that it would be created in. */
static void climb(char *path)
{
	char *slash;

	while (faccessat(AT_FDCWD, path, F_OK, AT_EACCESS) && errno == ENOENT) {
		slash = strrchr(path, '/');
		if (!slash) {
			path[0] = '.';
			path[1] = '\0';
			return;
		}
		slash[slash == path] = '\0';
	}
}

/* Adds a directory that outputs go to, unless it is there. path need not end after length. */
static void read_dir(struct doctor_room *room, const struct options *options, const char *path,
		     size_t length)
{
	struct doctor_dir *dir = &room->dirs[room->dir_count];
	int fd;

	if (room->dir_count == DOCTOR_DIRS_MAX || length >= sizeof(dir->path))
		return;
	*dir = (struct doctor_dir){.disk = {.free_bytes = UINT64_MAX}};
	memcpy(dir->path, path, length);
	climb(dir->path);
	if (is_known(room, dir->path))
		return;
	room->dir_count++;
	if (faccessat(AT_FDCWD, dir->path, W_OK | X_OK, AT_EACCESS)) {
		dir->err = -errno;
		return;
	}
	fd = open(dir->path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	dir->disk = disk_room_of(fd, options->windows.keep_free);
	if (fd >= 0)
		close(fd);
}

/* The directory of an output file. Files in /dev are never created. */
static void read_dir_of(struct doctor_room *room, const struct options *options, const char *path)
{
	const char *slash = path ? strrchr(path, '/') : NULL;

	if (!path || !strcmp(path, "none") || !strncmp(path, "/dev/", strlen("/dev/")))
		return;
	if (!slash)
		read_dir(room, options, ".", 1);
	else
		read_dir(room, options, path, slash == path ? 1 : (size_t)(slash - path));
}

static void read_dirs(struct doctor_room *room, const struct options *options)
{
	const char *dir = options->windows.dir ? options->windows.dir : ".";

	if (!options->trace || !options->profile)
		read_dir(room, options, dir, strlen(dir));
	read_dir_of(room, options, options->trace);
	read_dir_of(room, options, options->profile);
	read_dir_of(room, options, options->record);
	read_dir_of(room, options, options->html);
	read_dir_of(room, options, options->folded);
	read_dir_of(room, options, options->metrics);
}

void doctor_room_read(struct doctor_room *room, const struct options *options)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	*room = (struct doctor_room){.cpu_count = cpus > 0 ? (uint32_t)cpus : 1};
	read_clock(room);
	room->memory_bytes = read_memory();
	room->tracers = count_tracers();
	read_dirs(room, options);
	room->authorities = otlp_tls_authorities();
}

/* Clock sources that are read without a system call. */
static bool is_fast(const char *source)
{
	return !strcmp(source, "tsc") || !strcmp(source, "arch_sys_counter") ||
	       !strcmp(source, "kvm-clock") || !strcmp(source, "hyperv_clocksource_tsc_page");
}

static void judge_clock(const struct doctor_room *room, struct findings *checks)
{
	const char *source = *room->clock_source ? room->clock_source : "unknown";
	bool slow = !is_fast(source) && room->clock_ps >= CLOCK_SLOW_PS;

	findings_add(checks, slow ? FINDING_WARN : FINDING_OK, "clock", "%s, %s a reading%s",
		     source, FORMAT_TIME((double)room->clock_ps / 1e3),
		     slow ? "; each call of the engine takes two readings" : "");
	if (slow)
		findings_advise(checks,
				"see the kernel's log for why it does not use the tsc (dmesg "
				"| grep -i -e tsc -e clocksource)");
}

static void judge_memory(const struct doctor_room *room, struct findings *checks)
{
	bool low = room->memory_bytes < DOCTOR_MEMORY_MIN;
	char bytes[FORMAT_MAX] = "an unknown amount";

	if (room->memory_bytes != UINT64_MAX)
		format_bytes(bytes, room->memory_bytes);
	findings_add(checks, low ? FINDING_WARN : FINDING_OK, "memory",
		     "%s%s available, %" PRIu32 " CPUs", low ? "only " : "", bytes,
		     room->cpu_count);
	if (low)
		findings_advise(
			checks,
			"use a lower --ring-records (default: 131072, less with over 16 CPUs)");
}

static void judge_dir(const struct doctor_dir *dir, struct findings *checks)
{
	const char *path = !strcmp(dir->path, ".") ? "the current directory" : dir->path;
	char bytes[FORMAT_MAX];

	format_bytes(bytes, dir->disk.free_bytes);
	if (disk_room_is_low(&dir->disk)) {
		findings_add(checks, FINDING_FAIL, "files",
			     "%s has only %s free; --keep-free is %s", path, bytes,
			     FORMAT_BYTES(dir->disk.keep_bytes));
		findings_advise(checks, "free some space, use --dir DIR, lower --keep-free, or use "
					"--trace none --profile none");
	} else if (dir->err) {
		findings_add(checks, FINDING_FAIL, "files", "%s: %s", path, strerror(-dir->err));
		findings_advise(checks, "use --dir DIR with a writable directory, or "
					"--trace none --profile none");
	} else if (dir->disk.free_bytes == UINT64_MAX) {
		findings_add(checks, FINDING_OK, "files", "%s is writable", path);
	} else if (dir->disk.free_bytes >= DOCTOR_DISK_MIN) {
		findings_add(checks, FINDING_OK, "files", "%s is writable, %s free", path, bytes);
	} else {
		findings_add(checks, FINDING_WARN, "files", "%s has only %s free", path, bytes);
		findings_advise(checks, "free some space, or use --dir DIR, --detail steps or "
					"--trace none");
	}
}

static void judge_tracers(const struct doctor_room *room, struct findings *checks)
{
	if (room->tracers < 0)
		findings_add(checks, FINDING_NOTE, "other tracers",
			     "unknown: listing them requires CAP_SYS_ADMIN");
	else if (!room->tracers)
		findings_add(checks, FINDING_OK, "other tracers",
			     "none on raw syscall tracepoints");
	else
		findings_add(
			checks, FINDING_NOTE, "other tracers",
			"%d BPF program%s on raw syscall tracepoints, which add their own cost "
			"(bpftool link lists them)",
			room->tracers, room->tracers == 1 ? "" : "s");
}

void doctor_room_judge(const struct doctor_room *room, struct findings *checks)
{
	judge_clock(room, checks);
	judge_memory(room, checks);
	for (size_t i = 0; i < room->dir_count; i++)
		judge_dir(&room->dirs[i], checks);
	judge_tracers(room, checks);
	if (room->authorities)
		findings_add(checks, FINDING_OK, "--otlp", "certificate authorities are in %s",
			     room->authorities);
	else
		findings_add(checks, FINDING_NOTE, "--otlp",
			     "no certificate authorities: https is not possible; install "
			     "ca-certificates");
}

static void try_explain(struct doctor_trial *trial)
{
	struct explain_programs *programs;

	trial->explain_err = explain_programs__load(&programs, trial->loader);
	if (!trial->explain_err)
		trial->switch_ps = explain_programs__measure_ps(programs, FBT_EXPLAIN_SWITCHES);
	explain_programs__free(programs);
}

void doctor_trial_run(struct doctor_trial *trial, const struct options *options)
{
	uint64_t start_ns = clock_ns(CLOCK_MONOTONIC), mapped_bytes, switches = 0;
	int err;

	(void)machine_switches(&switches);
	*trial = (struct doctor_trial){.no_calls = options->detail == FBT_DETAIL_PROBES};
	doctor_listen(&trial->words);
	loading_raise_files_limit();
	err = loading_open(&trial->loader, options);
	if (!err)
		err = loader__attach_threads(trial->loader);
	if (!err)
		err = loading_attach_syscalls(trial->loader, true, &trial->cost);
	doctor_listen_end();
	trial->err = err;
	if (err) {
		doctor_trial_clear(trial);
		return;
	}
	trial->no_looks = !loader__task_list(trial->loader);
	trial->no_senders = options->explain != EXPLAIN_OFF && !loader__senders(trial->loader);
	trial->ring_bytes = loader__ring_bytes(trial->loader, &mapped_bytes);
	loader__detach(trial->loader);
	try_explain(trial);
	if (!switches || machine_switches(&trial->switches))
		trial->switches = switches;
	trial->switches -= switches;
	trial->took_ns = clock_ns(CLOCK_MONOTONIC) - start_ns;
}

/* What looking at who takes the CPU would cost here, at the rate of the moment. */
static void judge_explain(const struct doctor_trial *trial, struct findings *checks)
{
	double spent_ns = (double)trial->switches * (double)trial->switch_ps / 1000;
	double all_ns = (double)trial->took_ns * machine_cpus();

	if (trial->explain_err)
		findings_add(checks, FINDING_NOTE, "explain",
			     "who takes the CPU of a slow step cannot be found out here: %s",
			     strerror(-trial->explain_err));
	else if (trial->switch_ps && trial->switches)
		findings_add(checks, FINDING_OK, "explain",
			     "looking who takes the CPU would cost %s per context switch: %.2g %% "
			     "of this machine's CPU time now (--explain)",
			     FORMAT_TIME((double)trial->switch_ps / 1e3),
			     percent_of(spent_ns, all_ns));
}

static void judge_failure(const struct doctor_trial *trial, struct findings *checks)
{
	findings_add(checks, FINDING_FAIL, "trial", "%s",
		     doctor_words_text(&trial->words, checks, strerror(-trial->err)));
	if (trial->err == -ENOMEM)
		findings_advise(checks,
				"free some memory, raise the memory limit of this cgroup, or "
				"lower --ring-records (default: 131072, less with over 16 CPUs)");
	else if (trial->err == -EMFILE || trial->err == -ENFILE)
		findings_advise(checks, "raise the limit of open files (ulimit -n)");
	else
		findings_advise(checks,
				"run ferrum-bpftrace -v doctor to see the kernel's messages");
}

void doctor_trial_judge(const struct doctor_trial *trial, struct findings *checks)
{
	if (trial->skipped) {
		findings_add(checks, FINDING_NOTE, "trial",
			     "not run: fix the failed checks above first");
		return;
	}
	if (trial->err) {
		judge_failure(trial, checks);
		return;
	}
	if (trial->no_looks)
		findings_add(checks, FINDING_NOTE, "looks",
			     "this kernel does not list threads with their registers: the thread "
			     "that has a lock is named only once it gives it back, and a hang has "
			     "no stacks");
	if (trial->no_senders)
		findings_add(checks, FINDING_NOTE, "signals",
			     "this kernel does not let signals be seen: who stopped a process is "
			     "not named");
	if (trial->no_calls)
		findings_add(checks, FINDING_OK, "trial",
			     "loaded, attached and run in %s; costs %s a step, rings %s",
			     FORMAT_TIME(trial->took_ns), FORMAT_TIME(trial->cost.step_ns),
			     FORMAT_BYTES(trial->ring_bytes));
	else
		findings_add(checks, FINDING_OK, "trial",
			     "loaded, attached and run in %s; costs %s a call, %s a step, rings %s",
			     FORMAT_TIME(trial->took_ns),
			     FORMAT_TIME((double)trial->cost.call_ps / 1e3),
			     FORMAT_TIME(trial->cost.step_ns), FORMAT_BYTES(trial->ring_bytes));
	judge_explain(trial, checks);
}

/* Code mapped into this process: the kernel checks a probe only where the code is mapped. */
struct code_pages {
	size_t size;
	VEC(void *) items;
	uint64_t last; /* file offset of the last one */
};

static bool map_page(struct code_pages *pages, int fd, uint64_t position)
{
	uint64_t offset = position & ~((uint64_t)pages->size - 1);
	void *page;

	if (pages->items.count && offset == pages->last)
		return true;
	if (pages->items.count == PAGES_MAX)
		return false;
	page = mmap(NULL, pages->size, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, (off_t)offset);
	if (page == MAP_FAILED)
		return false;
	if (vec_push(&pages->items, page)) {
		munmap(page, pages->size);
		return false;
	}
	pages->last = offset;
	return true;
}

static bool map_function(struct code_pages *pages, const struct step_function *function)
{
	bool mapped;

	pages->last = UINT64_MAX;
	mapped = function->usdt || map_page(pages, function->fd, function->begin_offset);
	vec_for_each (begin, &function->usdt_begins)
		mapped = mapped && map_page(pages, function->fd, *begin);
	vec_for_each (exit, &function->exit_offsets)
		mapped = mapped && map_page(pages, function->fd, *exit);
	return mapped;
}

static void unmap(struct code_pages *pages)
{
	vec_for_each (page, &pages->items)
		munmap(*page, pages->size);
	vec_free(&pages->items);
}

static int attach_here(struct doctor_trial *trial, const function_vec *functions)
{
	struct uprobes *links = uprobes__new(loader__has_multi(trial->loader));
	struct step_probe probes[FBT_KIND_COUNT];
	size_t count = 0;
	int err;

	if (!links)
		return -ENOMEM;
	for (; count < functions->count && count < FBT_KIND_COUNT - 2; count++)
		probes[count] = (struct step_probe){functions->items[count], (uint32_t)count + 1};
	err = step_probes_attach(links, loader__step_program(trial->loader), probes, count,
				 (uint32_t)getpid());
	uprobes__free(links);
	return err;
}

int doctor_trial_probe(struct doctor_trial *trial, const function_vec *functions,
		       struct doctor_words *words)
{
	struct code_pages pages = {.size = (size_t)sysconf(_SC_PAGESIZE)};
	bool mapped = true;
	int err = 0;

	if (!trial->loader || !functions->count)
		return 0;
	vec_for_each (function, functions)
		mapped = mapped && map_function(&pages, *function);
	if (mapped) {
		doctor_listen(words);
		err = attach_here(trial, functions);
		doctor_listen_end();
	}
	unmap(&pages);
	return err;
}

void doctor_trial_clear(struct doctor_trial *trial)
{
	loader__free(trial->loader);
	trial->loader = NULL;
}
