/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "proc/status.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MOUNTED "/sys/fs/cgroup"

int thread_stat_read(struct thread_stat *stat, struct proc_ref ref)
{
	int fd = proc_open(ref, "stat", O_RDONLY);
	const char *end;
	char line[1024];
	ssize_t length;

	if (fd < 0)
		return fd;
	length = read(fd, line, sizeof(line) - 1);
	close(fd);
	line[length > 0 ? length : 0] = '\0';
	/* The name in field 2 may contain anything, also a newline, but ends at the last
	 * parenthesis. */
	end = strrchr(line, ')');
	if (end &&
	    sscanf(end + 1,
		   " %c %u %*d %*d %*d %*d %u %*u %*u %*u %*u %*u %*u %*d %*d %*d %d %*d %*d "
		   "%" SCNu64 " %*u %*d %*u %" SCNu64 " %*u %" SCNu64
		   " %*u %*u %*u %*u %*u %*u %*u %*u %*u %*d %u %*u %u",
		   &stat->state, &stat->parent_tgid, &stat->flags, &stat->nice, &stat->start_ticks,
		   &stat->start_code, &stat->start_stack, &stat->cpu, &stat->policy) == 9)
		return 0;
	return -ESRCH;
}

#define FIELD(key, member, base)                                                                   \
	{                                                                                          \
		key, base, offsetof(struct thread_status, member),                                 \
			sizeof(((struct thread_status *)0)->member)                                \
	}

/* Lines whose first value is a number. */
static const struct status_field {
	const char *key;
	int base;
	size_t offset;
	size_t bytes; /* size of a bool, uint32_t or uint64_t */
} number_fields[] = {
	FIELD("Tgid:", tgid, 10),
	FIELD("TracerPid:", tracer, 10),
	FIELD("Uid:", uid, 10),
	FIELD("VmSize:", size_kib, 10),
	FIELD("VmData:", data_kib, 10),
	FIELD("VmExe:", exe_kib, 10),
	FIELD("VmLib:", lib_kib, 10),
	FIELD("Threads:", threads, 10),
	FIELD("SigCgt:", caught, 16),
	FIELD("NoNewPrivs:", no_new_privs, 10),
	FIELD("Seccomp:", seccomp, 10),
	FIELD("Seccomp_filters:", seccomp_filters, 10),
	FIELD("voluntary_ctxt_switches:", voluntary_switches, 10),
};

/* The rest of the line after the key, or NULL. */
static const char *find_value(const char *line, const char *key)
{
	size_t length = strlen(key);

	return strncmp(line, key, length) ? NULL : line + length;
}

static void set_number(struct thread_status *status, const struct status_field *field,
		       uint64_t number)
{
	char *to = (char *)status + field->offset;

	if (field->bytes == sizeof(bool))
		*(bool *)to = number != 0;
	else if (field->bytes == sizeof(uint32_t))
		*(uint32_t *)to = (uint32_t)number;
	else
		*(uint64_t *)to = number;
}

/* NSpid has the thread ID in each namespace, from that of /proc to the innermost one. */
static void set_namespaces(struct thread_status *status, const char *value)
{
	bool known = true;
	uint32_t number;
	int length;

	for (status->ns_depth = 0; sscanf(value, "%" SCNu32 "%n", &number, &length) == 1;
	     value += length) {
		status->ns_depth++;
		status->ns_tid = number;
		known = known && number;
	}
	if (!known)
		status->ns_depth = 0;
}

void thread_status_add(struct thread_status *status, const char *line)
{
	const char *value;

	for (size_t i = 0; i < sizeof(number_fields) / sizeof(*number_fields); i++) {
		value = find_value(line, number_fields[i].key);
		if (value) {
			set_number(status, &number_fields[i],
				   strtoull(value, NULL, number_fields[i].base));
			return;
		}
	}
	if ((value = find_value(line, "State:")))
		(void)sscanf(value, " %c", &status->state);
	else if ((value = find_value(line, "NSpid:")))
		set_namespaces(status, value);
	else if ((value = find_value(line, "x86_Thread_features:")))
		status->shadow_stack = strstr(value, "shstk");
}

int thread_status_read(struct thread_status *status, struct proc_ref ref)
{
	FILE *file = proc_fopen(ref, "status");
	char line[1024];

	memset(status, 0, sizeof(*status));
	if (!file)
		return errno == ENOENT ? -ESRCH : -errno;
	while (fgets(line, sizeof(line), file))
		thread_status_add(status, line);
	fclose(file);
	return status->state ? 0 : -ESRCH;
}

uint64_t limit_read(struct proc_ref ref, const char *name)
{
	FILE *file = proc_fopen(ref, "limits");
	uint64_t limit = LIMIT_NONE;
	char line[256];

	while (file && fgets(line, sizeof(line), file)) {
		const char *value = find_value(line, name);

		if (value && sscanf(value, " %" SCNu64, &limit) == 1)
			break;
	}
	if (file)
		fclose(file);
	return limit;
}

/*
 * The path of the cgroup in the hierarchy of a controller (version 1), or with "" in the hierarchy
 * of version 2. A line is "ID:CONTROLLERS:PATH" (cgroups(7)).
 */
static bool find_path(struct proc_ref ref, const char *controller, char path[PATH_MAX])
{
	FILE *file = proc_fopen(ref, "cgroup");
	char line[PATH_MAX + 64];
	bool found = false;

	while (file && !found && fgets(line, sizeof(line), file)) {
		char *controllers = strchr(line, ':');
		char *at = controllers ? strchr(controllers + 1, ':') : NULL;

		line[strcspn(line, "\n")] = '\0';
		if (!at)
			continue;
		*at++ = '\0';
		found = !strcmp(controllers + 1, controller);
		if (found)
			snprintf(path, PATH_MAX, "%s", at);
	}
	if (file)
		fclose(file);
	return found;
}

/* Reads the first line of a file of the cgroup, without newline. */
static bool read_line(const char *folder, const char *path, const char *name, char *line, int size)
{
	char whole[PATH_MAX + 128];
	bool got;
	FILE *file;

	snprintf(whole, sizeof(whole), "%s%s/%s", folder, path, name);
	file = fopen(whole, "re");
	if (!file)
		return false;
	got = fgets(line, size, file);
	fclose(file);
	if (got)
		line[strcspn(line, "\n")] = '\0';
	return got;
}

/* Whether cgroup.events has that line. */
static bool has_event(const char *folder, const char *path, const char *event)
{
	char whole[PATH_MAX + 128], line[64];
	bool found = false;
	FILE *file;

	snprintf(whole, sizeof(whole), "%s%s/cgroup.events", folder, path);
	file = fopen(whole, "re");
	while (file && !found && fgets(line, sizeof(line), file)) {
		line[strcspn(line, "\n")] = '\0';
		found = !strcmp(line, event);
	}
	if (file)
		fclose(file);
	return found;
}

bool cgroup_is_frozen(struct proc_ref ref)
{
	char path[PATH_MAX], state[32];

	if (find_path(ref, "freezer", path) &&
	    read_line(MOUNTED "/freezer", path, "freezer.state", state, sizeof(state)) &&
	    strcmp(state, "THAWED") != 0)
		return true;
	return find_path(ref, "", path) && (has_event(MOUNTED, path, "frozen 1") ||
					    has_event(MOUNTED "/unified", path, "frozen 1"));
}

static uint64_t threads_left(const char *folder, char *path)
{
	uint64_t left = UINT64_MAX, most, now;
	char line[32];

	/* From the cgroup up to the root, which has no such files. */
	for (;;) {
		char *slash = strrchr(path, '/');

		if (read_line(folder, path, "pids.max", line, sizeof(line)) &&
		    sscanf(line, "%" SCNu64, &most) == 1 &&
		    read_line(folder, path, "pids.current", line, sizeof(line)) &&
		    sscanf(line, "%" SCNu64, &now) == 1 && (now >= most || most - now < left))
			left = now >= most ? 0 : most - now;
		if (!slash)
			return left;
		*slash = '\0';
	}
}

uint64_t cgroup_threads_left(struct proc_ref ref)
{
	char path[PATH_MAX];

	if (find_path(ref, "pids", path))
		return threads_left(MOUNTED "/pids", path);
	return find_path(ref, "", path) ? threads_left(MOUNTED, path) : UINT64_MAX;
}
