/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Where CPython keeps what a stack is made of: offsets in its structures. Those of 3.9 to 3.12 do
 * not change within a version and are known here. From 3.13 the interpreter itself says them, at
 * the begin of _PyRuntime.
 */
#ifndef FBT_PYTHON_LAYOUT_H
#define FBT_PYTHON_LAYOUT_H

#include "python/memory.h"

/* Largest part of a structure that is read. */
#define PYTHON_PART_MAX 512

enum python_lines {
	PYTHON_LINES_LNOTAB = 0, /* 3.9: pairs of deltas */
	PYTHON_LINES_RANGES,	 /* 3.10: pairs of deltas, and instructions without a line */
	PYTHON_LINES_LOCATIONS,	 /* 3.11: entries with columns */
};

/* Offsets in bytes. */
struct python_layout {
	uint32_t minor; /* of 3.minor */

	uint32_t runtime_interpreters; /* the first interpreter */
	uint32_t interpreter_next;
	uint32_t interpreter_threads; /* its first thread */

	/* The GIL, in _PyRuntime (3.9 to 3.11) or where the interpreter points to. */
	bool has_own_gil;
	uint32_t gil; /* in _PyRuntime or of the pointer in the interpreter */
	uint32_t gil_holder;
	uint32_t gil_locked;

	uint32_t thread_next;
	uint32_t thread_interpreter;
	uint32_t thread_id;	/* a pthread_t */
	uint32_t thread_native; /* the kernel's; 0: there is none */
	uint32_t thread_frame;	/* the innermost frame, or a record that points to it */
	bool has_record;
	uint32_t record_frame;
	uint32_t thread_size; /* bytes of it that have all these */

	bool is_object; /* a frame is an object with a type (3.9, 3.10), and each has a C call */
	uint32_t frame_running; /* of an object, a byte */
	uint8_t running;	/* what that is while it runs or has called another */
	uint32_t frame_previous;
	uint32_t frame_code;
	uint64_t code_mask;   /* bits of that word that are its address */
	uint32_t frame_instr; /* its address, or its index */
	uint32_t frame_owner; /* a byte; of 3.11 whether it was entered from C */
	uint32_t frame_size;
	uint32_t index_bytes; /* of frame_instr, if that is an index: bytes of one */

	uint32_t code_filename;
	uint32_t code_name; /* the qualified one from 3.11 */
	uint32_t code_lines;
	uint32_t code_first_line;
	uint32_t code_bytes; /* the first instruction; 0: indexes need none */
	uint32_t code_size;
	enum python_lines lines;

	uint32_t ascii_text; /* where the characters begin: of ASCII, of others */
	uint32_t other_text;
};

/* frame_owner from 3.12: the frame is no function, it marks where C entered the interpreter. */
#define PYTHON_OWNER_ENTRY 3

/* Of every version, without free threading. */
#define PYTHON_OBJECT_TYPE  8
#define PYTHON_VAR_SIZE	    16
#define PYTHON_BYTES_DATA   32
#define PYTHON_TEXT_LENGTH  16
#define PYTHON_TEXT_STATE   32
#define PYTHON_OBJECT_BYTES 40 /* enough for these */

/*
 * 0; -ENOTSUP: this version is not known, it is free-threaded, or what it says of itself is not
 * understood; -EIO: it could not be read.
 */
int python_layout_find(struct python_layout *layout, const struct python_memory *memory,
		       uint32_t minor, uint64_t runtime);

#endif
