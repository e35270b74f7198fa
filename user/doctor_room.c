/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "doctor_room.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "curl_library.h"
#include "disk_room.h"
#include "report_format.h"

#define CLOCK_SOURCE   "/sys/devices/system/clocksource/clocksource0/current_clocksource"
#define CLOCK_READINGS 100
/* The best of so many: others may have the CPU meanwhile. */
#define CLOCK_CHUNKS 20
/* Twice in each call of the engine. */
#define CLOCK_SLOW_PS 300000

static void read_clock(struct doctor_room *room)
{
	FILE *file = fopen(CLOCK_SOURCE, "re");
	room->clock_ps = UINT64_MAX;
	for (int chunk = 0; chunk < CLOCK_CHUNKS; chunk++) {
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
	for (size_t i = 0; i < room->folder_count; i++) {
		if (!strcmp(room->folders[i].path, path))
			return true;
	}
	return false;
}

/* Of folders that are not there, the one that they would be made in. */
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

static void read_disk(struct doctor_folder *folder, uint64_t keep_bytes)
{
	int fd = open(folder->path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct disk_room disk = disk_room_of(fd, keep_bytes);

	folder->free_bytes = disk.free_bytes;
	folder->keep_bytes = disk.keep_bytes;
	if (fd >= 0)
		close(fd);
}

static void look_at_folder(struct doctor_room *room, const struct options *options,
			   const char *path, size_t length)
{
	struct doctor_folder *folder = &room->folders[room->folder_count];

	if (room->folder_count == DOCTOR_FOLDERS_MAX || length >= sizeof(folder->path))
		return;
	*folder = (struct doctor_folder){.free_bytes = UINT64_MAX};
	memcpy(folder->path, path, length);
	climb(folder->path);
	if (is_known(room, folder->path))
		return;
	if (faccessat(AT_FDCWD, folder->path, W_OK | X_OK, AT_EACCESS))
		folder->err = -errno;
	else
		read_disk(folder, options->windows.keep_free);
	room->folder_count++;
}

/* Nothing is made in /dev. */
static void look_at_file(struct doctor_room *room, const struct options *options, const char *path)
{
	const char *slash = path ? strrchr(path, '/') : NULL;

	if (!path || !strcmp(path, "none") || !strncmp(path, "/dev/", strlen("/dev/")))
		return;
	if (!slash)
		look_at_folder(room, options, ".", 1);
	else
		look_at_folder(room, options, path, slash == path ? 1 : (size_t)(slash - path));
}

static void look_at_folders(struct doctor_room *room, const struct options *options)
{
	const char *dir = options->windows.dir ? options->windows.dir : ".";

	if (!options->trace || !options->profile)
		look_at_folder(room, options, dir, strlen(dir));
	look_at_file(room, options, options->trace);
	look_at_file(room, options, options->profile);
	look_at_file(room, options, options->record);
}

static void look_for_curl(struct doctor_room *room)
{
	struct curl_library curl;
	struct doctor_words words;

	doctor_listen(&words);
	if (curl_library_load(&curl))
		snprintf(room->curl, sizeof(room->curl), "%s", words.text);
	doctor_listen_end();
}

void doctor_room_read(struct doctor_room *room, const struct options *options)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	*room = (struct doctor_room){.cpu_count = cpus > 0 ? (uint32_t)cpus : 1};
	read_clock(room);
	room->memory_bytes = read_memory();
	room->tracers = count_tracers();
	look_at_folders(room, options);
	look_for_curl(room);
}

static bool is_fast(const char *source)
{
	return !strcmp(source, "tsc") || !strcmp(source, "arch_sys_counter") ||
	       !strcmp(source, "kvm-clock") || !strcmp(source, "hyperv_clocksource_tsc_page");
}

static void judge_clock(const struct doctor_room *room, struct doctor_checks *checks)
{
	const char *source = *room->clock_source ? room->clock_source : "not known";
	char time[FORMAT_MAX];

	format_time(time, (double)room->clock_ps / 1e3);
	if (is_fast(source) || room->clock_ps < CLOCK_SLOW_PS) {
		doctor_say(checks, DOCTOR_OK, "clock", "%s, %s a reading", source, time);
		return;
	}
	doctor_say(checks, DOCTOR_WARN, "clock",
		   "%s, %s a reading, of which each call of the engine takes two", source, time);
	doctor_advise(checks, "the kernel's log says why it does not use the tsc (dmesg | grep -i "
			      "-e tsc -e clocksource)");
}

static void judge_memory(const struct doctor_room *room, struct doctor_checks *checks)
{
	char bytes[FORMAT_MAX];

	format_bytes(bytes, room->memory_bytes);
	if (room->memory_bytes >= DOCTOR_MEMORY_MIN) {
		doctor_say(checks, DOCTOR_OK, "memory", "%s available, %" PRIu32 " CPUs",
			   room->memory_bytes == UINT64_MAX ? "not known how much" : bytes,
			   room->cpu_count);
		return;
	}
	doctor_say(checks, DOCTOR_WARN, "memory", "only %s available, %" PRIu32 " CPUs", bytes,
		   room->cpu_count);
	doctor_advise(checks, "a lower --ring-records (131072) makes the rings smaller");
}

static void judge_folder(const struct doctor_folder *folder, struct doctor_checks *checks)
{
	const char *path = !strcmp(folder->path, ".") ? "this folder" : folder->path;
	char bytes[FORMAT_MAX], kept[FORMAT_MAX];

	format_bytes(bytes, folder->free_bytes);
	if (folder->free_bytes < folder->keep_bytes) {
		doctor_say(checks, DOCTOR_NO, "files",
			   "%s has only %s free, and %s stay free for "
			   "others",
			   path, bytes, format_bytes(kept, folder->keep_bytes));
		doctor_advise(checks, "free some space, use --dir FOLDER, lower --keep-free, or "
				      "--trace none --profile none");
	} else if (folder->err) {
		doctor_say(checks, DOCTOR_NO, "files", "%s: %s", path, strerror(-folder->err));
		doctor_advise(checks, "cd to a folder that can be written to, or use --dir FOLDER, "
				      "or --trace none --profile none");
	} else if (folder->free_bytes == UINT64_MAX) {
		doctor_say(checks, DOCTOR_OK, "files", "%s can be written to", path);
	} else if (folder->free_bytes >= DOCTOR_DISK_MIN) {
		doctor_say(checks, DOCTOR_OK, "files", "%s can be written to, %s free", path,
			   bytes);
	} else {
		doctor_say(checks, DOCTOR_WARN, "files", "%s has only %s free", path, bytes);
		doctor_advise(checks, "free some space, or use --dir FOLDER, --detail steps, or "
				      "--trace none");
	}
}

static void judge_tracers(const struct doctor_room *room, struct doctor_checks *checks)
{
	if (room->tracers < 0)
		doctor_say(checks, DOCTOR_NOTE, "other tracers",
			   "not known: needs CAP_SYS_ADMIN to be asked");
	else if (!room->tracers)
		doctor_say(checks, DOCTOR_OK, "other tracers", "none on raw syscall tracepoints");
	else
		doctor_say(checks, DOCTOR_NOTE, "other tracers",
			   "%d BPF program%s on raw syscall tracepoints: their cost comes on top "
			   "(bpftool link shows them)",
			   room->tracers, room->tracers == 1 ? "" : "s");
}

void doctor_room_judge(const struct doctor_room *room, struct doctor_checks *checks)
{
	judge_clock(room, checks);
	judge_memory(room, checks);
	for (size_t i = 0; i < room->folder_count; i++)
		judge_folder(&room->folders[i], checks);
	judge_tracers(room, checks);
	if (*room->curl)
		doctor_say(checks, DOCTOR_NOTE, "--otlp", "%s", room->curl);
	else
		doctor_say(checks, DOCTOR_OK, "--otlp", "libcurl can be loaded");
}
