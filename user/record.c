/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>
#include "record.h"

#define STRING_MAX 4096

void record_send(const struct record_output *output, void *record, size_t size,
		 enum fbt_event_type type)
{
	struct fbt_header *header = record;

	header->type = type;
	header->size = size;
	output->emit(output->ctx, record, size);
}

int record_send_strings(const struct record_output *output, void *record, size_t size,
			enum fbt_event_type type, const char *const *strings, size_t count)
{
	size_t total = size;
	char *copy;

	for (size_t i = 0; i < count; i++)
		total += strnlen(strings[i] ? strings[i] : "", STRING_MAX) + 1;
	total = (total + 7) & ~(size_t)7;
	copy = calloc(1, total);
	if (!copy)
		return -ENOMEM;
	memcpy(copy, record, size);
	for (size_t i = 0, at = size; i < count; i++) {
		const char *string = strings[i] ? strings[i] : "";
		size_t length = strnlen(string, STRING_MAX);

		memcpy(copy + at, string, length);
		at += length + 1;
	}
	record_send(output, copy, total, type);
	free(copy);
	return 0;
}

void record_send_manual(const struct record_output *output, uint64_t time_ns)
{
	struct fbt_manual manual = {.time_ns = time_ns};

	record_send(output, &manual, sizeof(manual), FBT_EVENT_MANUAL);
}

int record_send_window(const struct record_output *output, struct fbt_window *window,
		       const char *tag)
{
	struct utsname name;
	const char *strings[] = {tag, FBT_VERSION, name.release, name.nodename};

	if (uname(&name))
		memset(&name, 0, sizeof(name));
	return record_send_strings(output, window, sizeof(*window), FBT_EVENT_WINDOW, strings, 4);
}

/* Reads what is there, at most size - 1 bytes; a file of /proc may end early. */
static size_t read_proc(uint32_t tgid, const char *name, char *text, size_t size)
{
	char path[64];
	size_t length = 0;
	int fd;

	snprintf(path, sizeof(path), "/proc/%u/%s", tgid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	while (fd >= 0 && length < size - 1) {
		ssize_t got = read(fd, text + length, size - 1 - length);

		if (got <= 0)
			break;
		length += (size_t)got;
	}
	if (fd >= 0)
		close(fd);
	text[length] = '\0';
	return length;
}

int record_send_target(const struct record_output *output, uint32_t tgid, uint32_t parent_tgid,
		       uint64_t start_ns)
{
	struct fbt_target target = {.start_ns = start_ns, .tgid = tgid, .parent_tgid = parent_tgid};
	char comm[32], exe[STRING_MAX], cmdline[STRING_MAX], path[64];
	const char *strings[] = {comm, exe, cmdline};
	size_t length;
	ssize_t exe_length;

	read_proc(tgid, "comm", comm, sizeof(comm));
	comm[strcspn(comm, "\n")] = '\0';
	snprintf(path, sizeof(path), "/proc/%u/exe", tgid);
	exe_length = readlink(path, exe, sizeof(exe) - 1);
	exe[exe_length > 0 ? exe_length : 0] = '\0';
	length = read_proc(tgid, "cmdline", cmdline, sizeof(cmdline));
	for (size_t i = 0; i + 1 < length; i++) {
		if (!cmdline[i])
			cmdline[i] = ' ';
	}
	return record_send_strings(output, &target, sizeof(target), FBT_EVENT_TARGET, strings, 3);
}

void record_send_thread(const struct record_output *output, uint32_t tgid, uint32_t tid)
{
	struct fbt_thread_name name = {.tgid = tgid, .tid = tid};
	char path[32], comm[sizeof(name.comm)];
	size_t length;

	snprintf(path, sizeof(path), "task/%u/comm", tid);
	length = read_proc(tgid, path, comm, sizeof(comm));
	if (!length)
		return;
	memcpy(name.comm, comm, strcspn(comm, "\n"));
	record_send(output, &name, sizeof(name), FBT_EVENT_THREAD);
}
