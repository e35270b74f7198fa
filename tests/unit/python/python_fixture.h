/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Made-up memory of a process with CPython 3.11 in it. Each test file uses a part of this. */
#ifndef FBT_TEST_PYTHON_FIXTURE_H
#define FBT_TEST_PYTHON_FIXTURE_H

#include <stdlib.h>
#include <string.h>

#include "python/frames.h"

#define FAKE_BASE  0x10000
#define FAKE_BYTES (128u << 10)

enum { CODE_TYPE = 0x100, TEXT_TYPE = 0x200, BYTES_TYPE = 0x300, FRAME_TYPE = 0x400 };

struct fake_memory {
	uint8_t bytes[FAKE_BYTES];
	size_t used;
	uint64_t reads;
	void (*on_read)(struct fake_memory *fake, uint64_t address); /* or NULL */
	struct python_memory memory;
	struct python_layout layout;
	struct python_types types;
};

static inline bool fake_read(void *ctx, uint64_t address, void *to, size_t size)
{
	struct fake_memory *fake = ctx;

	fake->reads++;
	if (fake->on_read)
		fake->on_read(fake, address);
	if (address < FAKE_BASE || address - FAKE_BASE > FAKE_BYTES - size)
		return false;
	memcpy(to, fake->bytes + (address - FAKE_BASE), size);
	return true;
}

static inline struct fake_memory *fake_new(uint32_t minor)
{
	struct fake_memory *fake = calloc(1, sizeof(*fake));

	fake->memory = (struct python_memory){fake_read, fake};
	fake->types = (struct python_types){CODE_TYPE, TEXT_TYPE, BYTES_TYPE, FRAME_TYPE};
	python_layout_find(&fake->layout, &fake->memory, minor, FAKE_BASE);
	return fake;
}

static inline uint64_t fake_take(struct fake_memory *fake, size_t size)
{
	uint64_t address = FAKE_BASE + fake->used;

	fake->used += (size + 63) / 64 * 64;
	return address;
}

static inline void fake_put(struct fake_memory *fake, uint64_t address, const void *from,
			    size_t size)
{
	memcpy(fake->bytes + (address - FAKE_BASE), from, size);
}

static inline void fake_word(struct fake_memory *fake, uint64_t address, uint64_t word)
{
	fake_put(fake, address, &word, sizeof(word));
}

static inline void fake_byte(struct fake_memory *fake, uint64_t address, uint8_t byte)
{
	fake_put(fake, address, &byte, 1);
}

/* A compact text of characters of width bytes. */
static inline uint64_t fake_text(struct fake_memory *fake, const void *characters, size_t length,
				 uint32_t width, bool is_ascii)
{
	uint32_t at = is_ascii ? fake->layout.ascii_text : fake->layout.other_text;
	uint64_t object = fake_take(fake, at + length * width);

	fake_word(fake, object + PYTHON_OBJECT_TYPE, TEXT_TYPE);
	fake_word(fake, object + PYTHON_TEXT_LENGTH, length);
	fake_byte(fake, object + PYTHON_TEXT_STATE,
		  (uint8_t)(width << 2 | 1 << 5 | (is_ascii ? 1 << 6 : 0)));
	fake_put(fake, object + at, characters, length * width);
	return object;
}

static inline uint64_t fake_ascii(struct fake_memory *fake, const char *text)
{
	return fake_text(fake, text, strlen(text), 1, true);
}

static inline uint64_t fake_bytes(struct fake_memory *fake, const void *bytes, size_t size)
{
	uint64_t object = fake_take(fake, PYTHON_BYTES_DATA + size);

	fake_word(fake, object + PYTHON_OBJECT_TYPE, BYTES_TYPE);
	fake_word(fake, object + PYTHON_VAR_SIZE, size);
	fake_put(fake, object + PYTHON_BYTES_DATA, bytes, size);
	return object;
}

#endif
