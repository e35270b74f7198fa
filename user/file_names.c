/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/magic.h>
#include "file_names.h"
#include "vec.h"

/* Not in linux/magic.h of every kernel that the tool is built with. */
#define PID_FS_MAGIC_6_9 0x50494446
#ifndef NSFS_MAGIC
#define NSFS_MAGIC 0x6e736673
#endif
#ifndef SOCKFS_MAGIC
#define SOCKFS_MAGIC 0x534f434b
#endif

#define IDS_PER_WORD 64

struct file_names {
	VEC(uint64_t) sent; /* a bit for each id */
};

struct file_names *file_names__new(void)
{
	return calloc(1, sizeof(struct file_names));
}

void file_names__free(struct file_names *names)
{
	if (!names)
		return;
	vec_free(&names->sent);
	free(names);
}

bool file_names__has(const struct file_names *names, uint32_t id)
{
	size_t word = id / IDS_PER_WORD;

	return word < names->sent.count && (names->sent.items[word] >> (id % IDS_PER_WORD) & 1);
}

/* Names of file systems whose files have no place in any folder: the kernel makes them up too. */
static bool write_made_up(const struct fbt_ring_file *file, const char *name,
			  char path[FILE_PATH_BYTES])
{
	const char *kind = NULL;

	switch (file->magic) {
	case SOCKFS_MAGIC:
		kind = "socket";
		break;
	case PIPEFS_MAGIC:
		kind = "pipe";
		break;
	case NSFS_MAGIC:
		/* Which kind of namespace it is of is known to the kernel alone. */
		kind = "ns";
		break;
	case ANON_INODE_FS_MAGIC:
		snprintf(path, FILE_PATH_BYTES, "anon_inode:%s", name);
		return true;
	case PID_FS_MAGIC_6_9:
		snprintf(path, FILE_PATH_BYTES, "anon_inode:[pidfd]");
		return true;
	default:
		return false;
	}
	snprintf(path, FILE_PATH_BYTES, "%s:[%llu]", kind, file->file.ino);
	return true;
}

/* Turns "leaf\0folder\0" around. Returns the end of what was written. */
static char *write_names(const struct fbt_ring_file *file, char *path)
{
	size_t end = file->length;

	while (end) {
		size_t start = end - 1;

		while (start && file->names[start - 1])
			start--;
		*path++ = '/';
		memcpy(path, file->names + start, end - 1 - start);
		path += end - 1 - start;
		end = start;
	}
	*path = '\0';
	return path;
}

void file_path_write(const struct fbt_ring_file *file, char path[FILE_PATH_BYTES])
{
	bool floating = file->flags & FBT_PATH_FLOATING;
	char *end = path;

	path[0] = '\0';
	if (floating && write_made_up(file, file->names, path))
		return;
	if (floating && !file->names[0])
		return;
	if (file->flags & FBT_PATH_CUT)
		end = stpcpy(path, "…");
	end = write_names(file, end);
	if (!file->length)
		end = stpcpy(end, "/");
	if (file->flags & FBT_PATH_DELETED)
		stpcpy(end, " (deleted)");
}

static int remember(struct file_names *names, uint32_t id)
{
	size_t word = id / IDS_PER_WORD;

	while (names->sent.count <= word) {
		if (vec_push(&names->sent, 0))
			return -ENOMEM;
	}
	names->sent.items[word] |= 1ull << (id % IDS_PER_WORD);
	return 0;
}

/* Names that fill their length, each with its NUL. */
static bool is_sound(const struct fbt_ring_file *file)
{
	size_t size = file->file.header.size;

	if (size < offsetof(struct fbt_ring_file, names) || !file->file.id)
		return false;
	if (file->length > size - offsetof(struct fbt_ring_file, names))
		return false;
	if (file->length > sizeof(file->names))
		return false;
	return file->length ? !file->names[file->length - 1] : !(file->flags & FBT_PATH_FLOATING);
}

int file_names__send(struct file_names *names, const struct fbt_header *event,
		     const struct record_output *output)
{
	const struct fbt_ring_file *from = (const struct fbt_ring_file *)event;
	struct fbt_file file;
	char path[FILE_PATH_BYTES];
	const char *const strings[] = {path};
	int err;

	if (event->size < sizeof(file) || !is_sound(from))
		return -EBADMSG;
	file = from->file;
	file_path_write(from, path);
	err = record_send_strings(output, &file, sizeof(file), FBT_EVENT_FILE, strings, 1);
	return err ? err : remember(names, file.id);
}
