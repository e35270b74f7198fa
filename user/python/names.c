/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "python/names.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"

/* Longer ones are not believed to be names. */
#define LENGTH_MAX	(1u << 20)
#define TABLE_MAX	(256u << 10)
#define CUT		"..."
#define REPLACEMENT	0xfffd
#define IS_SURROGATE(c) ((c) >= 0xd800 && (c) <= 0xdfff)

/* What all objects that are read begin with. */
struct object {
	uint8_t bytes[PYTHON_OBJECT_BYTES];
};

static uint64_t word_of(const struct object *object, size_t at)
{
	uint64_t word;

	memcpy(&word, object->bytes + at, sizeof(word));
	return word;
}

static bool read_object(const struct python_memory *memory, uint64_t address, uint64_t type,
			struct object *object)
{
	return address % 8 == 0 && memory_read(memory, address, object, sizeof(*object)) &&
	       word_of(object, PYTHON_OBJECT_TYPE) == type;
}

/* A text in memory: bytes of a character, where the first one is, and how many. */
struct text {
	uint32_t width;
	uint64_t address;
	uint64_t length;
};

static bool find_text(const struct python_layout *layout, const struct python_memory *memory,
		      const struct python_types *types, uint64_t address, struct text *text)
{
	struct object object;
	uint8_t state;
	bool is_ascii;

	if (!read_object(memory, address, types->text, &object))
		return false;
	/* Two bits say whether it is interned, three how wide it is, and then: compact, ASCII. */
	state = object.bytes[PYTHON_TEXT_STATE];
	is_ascii = state >> 6 & 1;
	text->width = state >> 2 & 7;
	text->length = word_of(&object, PYTHON_TEXT_LENGTH);
	text->address = address + (is_ascii ? layout->ascii_text : layout->other_text);
	return (state >> 5 & 1) && text->length <= LENGTH_MAX &&
	       (text->width == 1 || (!is_ascii && (text->width == 2 || text->width == 4)));
}

static uint32_t character(const uint8_t *data, uint32_t width)
{
	uint32_t point = 0;

	/* x86-64 is little-endian, and nothing else is read. */
	memcpy(&point, data, width);
	return IS_SURROGATE(point) || point > 0x10ffff ? REPLACEMENT : point;
}

/* A character as it is written; returns its bytes. */
static size_t write_character(uint32_t point, char to[12])
{
	if (utf8_steers_terminal(point) || !point || point == '\\')
		return (size_t)snprintf(to, 12, point > 0xffff ? "\\U%08x" : "\\u%04x", point);
	return utf8_put(to, point);
}

/* The last characters that fit. */
static void write_text(const uint8_t *data, uint32_t width, size_t count, bool is_cut, char *to,
		       size_t size)
{
	size_t room = size - sizeof(CUT), used = 0, begin = count;
	char piece[12];

	while (begin) {
		size_t bytes = write_character(character(data + (begin - 1) * width, width), piece);

		if (used + bytes > room)
			break;
		used += bytes;
		begin--;
	}
	used = 0;
	if (begin || is_cut) {
		memcpy(to, CUT, sizeof(CUT) - 1);
		used = sizeof(CUT) - 1;
	}
	for (size_t i = begin; i < count; i++) {
		size_t bytes = write_character(character(data + i * width, width), piece);

		memcpy(to + used, piece, bytes);
		used += bytes;
	}
	to[used] = '\0';
}

bool python_text_read(const struct python_layout *layout, const struct python_memory *memory,
		      const struct python_types *types, uint64_t object, char *to, size_t size)
{
	uint8_t data[PYTHON_TEXT_CHARS * 4];
	struct text text;
	size_t count;

	*to = '\0';
	if (!find_text(layout, memory, types, object, &text))
		return false;
	count = text.length < PYTHON_TEXT_CHARS ? text.length : PYTHON_TEXT_CHARS;
	if (!memory_read(memory, text.address + (text.length - count) * text.width, data,
			 count * text.width))
		return false;
	write_text(data, text.width, count, count < text.length, to, size);
	return true;
}

/* A table of lines, read piece by piece. */
struct table {
	const struct python_memory *memory;
	uint64_t address; /* of what has not been read yet, and how much that is */
	uint64_t left;
	uint8_t piece[4096];
	size_t at;
	size_t size;
};

static bool open_table(struct table *table, const struct python_memory *memory,
		       const struct python_types *types, uint64_t address)
{
	struct object object;

	if (!read_object(memory, address, types->bytes, &object))
		return false;
	table->memory = memory;
	table->address = address + PYTHON_BYTES_DATA;
	table->left = word_of(&object, PYTHON_VAR_SIZE);
	table->at = table->size = 0;
	return table->left <= TABLE_MAX;
}

/* The next byte stays. False at the end, and if it cannot be read. */
static bool peek(struct table *table, uint8_t *byte)
{
	if (table->at == table->size) {
		table->size =
			table->left < sizeof(table->piece) ? table->left : sizeof(table->piece);
		table->at = 0;
		if (!table->size ||
		    !memory_read(table->memory, table->address, table->piece, table->size)) {
			table->left = table->size = 0;
			return false;
		}
		table->address += table->size;
		table->left -= table->size;
	}
	*byte = table->piece[table->at];
	return true;
}

static bool next(struct table *table, uint8_t *byte)
{
	bool is_there = peek(table, byte);

	table->at += is_there;
	return is_there;
}

/* 3.9: by how much the instruction grows, then the line. */
static int64_t find_by_lnotab(struct table *table, int64_t line, int64_t instr)
{
	int64_t address = 0;
	uint8_t bytes, lines;

	while (next(table, &bytes) && next(table, &lines)) {
		address += bytes;
		if (address > instr)
			break;
		line += (int8_t)lines;
	}
	return line;
}

/* 3.10: ranges of instructions. One with the line delta -128 has no line. */
static int64_t find_by_ranges(struct table *table, int64_t line, int64_t instr)
{
	int64_t end = 0;
	uint8_t bytes, lines;

	while (next(table, &bytes) && next(table, &lines)) {
		bool has_line = (int8_t)lines != INT8_MIN;

		end += bytes;
		line += has_line ? (int8_t)lines : 0;
		if (instr < end)
			return has_line ? line : 0;
	}
	return 0;
}

/* Six bits in each byte, the lowest first, and one that says that another follows. */
static bool read_number(struct table *table, int64_t *number)
{
	uint64_t value = 0;
	uint8_t byte = 0;

	for (unsigned int shift = 0; shift < 36; shift += 6) {
		if (!next(table, &byte) || byte & 0x80)
			return false;
		value |= (uint64_t)(byte & 0x3f) << shift;
		if (!(byte & 0x40)) {
			*number = value & 1 ? -(int64_t)(value >> 1) : (int64_t)(value >> 1);
			return true;
		}
	}
	return false;
}

/* By how many lines an entry is further, by its kind, after its first byte. */
static bool read_delta(struct table *table, unsigned int kind, int64_t *delta)
{
	switch (kind) {
	case 10:
	case 11:
	case 12:
		*delta = kind - 10;
		return true;
	case 13:
	case 14:
		return read_number(table, delta);
	default:
		*delta = 0;
		return true;
	}
}

/* 3.11: an entry begins with a byte that has its top bit set; no other has. */
static int64_t find_by_locations(struct table *table, int64_t line, int64_t instr)
{
	int64_t end = 0, delta;
	uint8_t byte;

	while (next(table, &byte)) {
		unsigned int kind = byte >> 3 & 15;

		if (!(byte & 0x80) || !read_delta(table, kind, &delta))
			return 0;
		line += delta;
		/* In instructions of two bytes. */
		end += 2 * ((byte & 7) + 1);
		if (instr < end)
			return kind == 15 ? 0 : line;
		while (peek(table, &byte) && !(byte & 0x80))
			table->at++;
	}
	return 0;
}

uint32_t python_line_find(const struct python_layout *layout, const struct python_memory *memory,
			  const struct python_types *types, uint64_t address, uint32_t first_line,
			  int64_t instr)
{
	struct table table;
	int64_t line = 0;

	if (instr < 0)
		return first_line;
	if (!open_table(&table, memory, types, address))
		return 0;
	switch (layout->lines) {
	case PYTHON_LINES_LNOTAB:
		line = find_by_lnotab(&table, first_line, instr);
		break;
	case PYTHON_LINES_RANGES:
		line = find_by_ranges(&table, first_line, instr);
		break;
	case PYTHON_LINES_LOCATIONS:
		line = find_by_locations(&table, first_line, instr);
		break;
	}
	return line > 0 && line <= INT32_MAX ? (uint32_t)line : 0;
}
