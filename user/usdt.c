/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "usdt.h"

#include <errno.h>
#include <string.h>

#define STAPSDT_TYPE 3

/* A note's contents: three addresses, then provider, name and arguments as strings. */
struct note {
	uint64_t location;
	uint64_t base; /* of .stapsdt.base when it was linked: prelink moves code, not notes */
	uint64_t semaphore;
	const char *provider;
	const char *name;
};

static int parse_note(struct note *note, const uint8_t *data, size_t size)
{
	uint64_t addresses[3];
	const char *end;

	if (size < sizeof(addresses))
		return -EBADMSG;
	memcpy(addresses, data, sizeof(addresses));
	note->location = addresses[0];
	note->base = addresses[1];
	note->semaphore = addresses[2];
	data += sizeof(addresses);
	size -= sizeof(addresses);
	note->provider = (const char *)data;
	end = memchr(data, 0, size);
	if (!end)
		return -EBADMSG;
	note->name = end + 1;
	size -= note->name - note->provider;
	return memchr(note->name, 0, size) ? 0 : -EBADMSG;
}

static int add_note(struct elf_file *file, const struct note *note, uint64_t shift,
		    struct usdt_probe *probe)
{
	uint64_t offset;

	if (elf_file__offset(file, note->location + shift, true, &offset))
		return -EBADMSG;
	if (!probe->offsets.count)
		probe->address = note->location + shift;
	if (note->semaphore && !probe->semaphore &&
	    elf_file__offset(file, note->semaphore + shift, false, &probe->semaphore))
		return -EBADMSG;
	return vec_push(&probe->offsets, offset);
}

static size_t align4(size_t size)
{
	return (size + 3) & ~(size_t)3;
}

int usdt_find(struct elf_file *file, const char *provider, const char *name,
	      struct usdt_probe *probe)
{
	struct elf_section notes, base;
	uint64_t base_address = 0;
	Elf64_Nhdr header;
	struct note note;
	int err;

	memset(probe, 0, sizeof(*probe));
	err = elf_file__section(file, ".note.stapsdt", &notes);
	if (err)
		return err == -ENOENT ? 0 : err == -EFBIG ? -EBADMSG : err;
	if (!elf_file__section(file, ".stapsdt.base", &base))
		base_address = base.header.sh_addr;
	while (notes.size >= sizeof(header)) {
		size_t name_bytes, desc_bytes;

		memcpy(&header, notes.data, sizeof(header));
		notes.data += sizeof(header);
		notes.size -= sizeof(header);
		name_bytes = align4(header.n_namesz);
		desc_bytes = align4(header.n_descsz);
		if (name_bytes > notes.size || desc_bytes > notes.size - name_bytes)
			return -EBADMSG;
		if (header.n_type == STAPSDT_TYPE && header.n_namesz == sizeof("stapsdt") &&
		    !memcmp(notes.data, "stapsdt", sizeof("stapsdt"))) {
			err = parse_note(&note, notes.data + name_bytes, header.n_descsz);
			if (!err && !strcmp(note.provider, provider) && !strcmp(note.name, name))
				err = add_note(file, &note,
					       base_address ? base_address - note.base : 0, probe);
			if (err)
				return err;
		}
		notes.data += name_bytes + desc_bytes;
		notes.size -= name_bytes + desc_bytes;
	}
	return 0;
}

void usdt_clear(struct usdt_probe *probe)
{
	vec_free(&probe->offsets);
}
