/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "python/markers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "elf/elf_file.h"
#include "proc/maps.h"
#include "proc/process.h"

/* In the path of its file, or in the name of the memfd from which it was injected. */
#define LIBRARY "libferrum"

#define MARKERS	   3 /* of a slot: begin, end, raised */
#define NOTE_BYTES (FBT_PYTHON_SLOTS * MARKERS * sizeof(int32_t))

/* The nop of five bytes that each marker is. */
static const uint8_t marker_code[] = {0x0f, 0x1f, 0x44, 0x00, 0x00};

/* For maps_search. */
struct search {
	uint64_t addresses[MARKERS];
	struct mapping mapping; /* its path is owned */
};

static bool holds(const struct mapping *mapping, const void *ctx)
{
	struct search *search = *(struct search *const *)ctx;

	if (!mapping->executable || !mapping->path)
		return false;
	for (size_t i = 0; i < MARKERS; i++) {
		uint64_t address = search->addresses[i];

		if (address < mapping->start || address >= mapping->end ||
		    mapping->end - address < sizeof(marker_code))
			return false;
	}
	search->mapping = *mapping;
	/* Without the right to follow map_files, the file is found by its path. */
	search->mapping.path = strdup(mapping->path);
	return true;
}

/* The library's note: where its markers are. NULL: it has none, or no memory. */
static const uint8_t *find_note(const struct elf_section *section)
{
	const uint8_t *notes = section->data;
	size_t size = notes ? section->size : 0;
	struct elf_note note;

	while (elf_note_next(&notes, &size, &note) > 0) {
		if (note.type == FBT_PYTHON_NOTE_MARKERS && note.size == NOTE_BYTES &&
		    note.name_size == sizeof(FBT_PYTHON_NOTE_NAME) &&
		    !memcmp(note.name, FBT_PYTHON_NOTE_NAME, sizeof(FBT_PYTHON_NOTE_NAME)))
			return note.contents;
	}
	return NULL;
}

/* Sets the file offsets of a slot's markers to those that the file itself tells. */
static int read_offsets(struct elf_file *file, unsigned int slot, uint64_t offsets[MARKERS])
{
	struct elf_section section;
	const uint8_t *words;
	int err = elf_file__section(file, FBT_PYTHON_NOTE_SECTION, &section);

	if (err)
		return err == -ENOMEM ? err : -EBADMSG;
	words = find_note(&section);
	if (!words || slot >= FBT_PYTHON_SLOTS)
		return -EBADMSG;
	for (size_t i = 0; i < MARKERS; i++) {
		const uint8_t *word = words + (slot * MARKERS + i) * sizeof(int32_t);
		uint64_t address = section.header.sh_addr + (uint64_t)(word - section.data);
		int32_t distance;

		memcpy(&distance, word, sizeof(distance));
		if (elf_file__offset(file, address + (uint64_t)(int64_t)distance, true,
				     &offsets[i]))
			return -EBADMSG;
	}
	return 0;
}

static bool is_marker(int fd, uint64_t offset)
{
	uint8_t code[sizeof(marker_code)];

	return pread(fd, code, sizeof(code), (off_t)offset) == sizeof(code) &&
	       !memcmp(code, marker_code, sizeof(code));
}

/*
 * The bytes of a marker alone prove nothing: other files have them too, also as the end of a longer
 * nop. Only this library has the note. In a file that somebody makes up with it, the probes reach
 * the processes that map that file, and no other.
 */
static int check_file(int fd, unsigned int slot, const uint64_t offsets[MARKERS])
{
	uint64_t own[MARKERS];
	struct elf_file *file;
	int err = elf_file__open(&file, fd);

	if (err)
		return err == -ENOMEM ? err : -EBADMSG;
	err = read_offsets(file, slot, own);
	for (size_t i = 0; i < MARKERS && !err; i++) {
		if (own[i] != offsets[i] || !is_marker(fd, own[i]))
			err = -EBADMSG;
	}
	elf_file__free(file);
	return err;
}

int python_markers_open(uint32_t tgid, unsigned int slot, const struct fbt_python_slot *page,
			struct marker_offsets *result)
{
	struct search search = {{page->begin, page->end, page->raised}, {.path = NULL}};
	struct search *ctx = &search;
	uint64_t offsets[MARKERS];
	int fd, err;

	/* The first thread may have ended: it has no maps then. */
	tgid = processes_live_thread(tgid);
	if (!maps_search(tgid, LIBRARY, holds, &ctx))
		return -ENOENT;
	fd = search.mapping.path ? mapping_open(tgid, &search.mapping) : -ENOMEM;
	free(search.mapping.path);
	if (fd < 0)
		return fd;
	for (size_t i = 0; i < MARKERS; i++)
		offsets[i] = search.addresses[i] - search.mapping.start + search.mapping.offset;
	err = check_file(fd, slot, offsets);
	if (err) {
		close(fd);
		return err;
	}
	*result = (struct marker_offsets){offsets[0], offsets[1], offsets[2]};
	return fd;
}

const char *python_markers_text(int err)
{
	switch (err) {
	case -ENOENT:
		return "the addresses of its markers are not in one mapping of "
		       "libferrum_python.so";
	case -EBADMSG:
		return "what it has mapped is not libferrum_python.so, or has its markers "
		       "elsewhere";
	case -EPERM:
	case -EACCES:
		return "its libferrum_python.so cannot be opened: a library that was injected, or "
		       "whose file was deleted, needs CAP_CHECKPOINT_RESTORE";
	default:
		return strerror(-err);
	}
}
