/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "code/decoder.h"

#include <errno.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/*
 * Set for this thread while cs_open runs, where capstone 4 and 5 use what malloc returned even if
 * it is NULL. An allocator gets only a size, so this cannot be passed to it.
 */
static _Thread_local jmp_buf *no_memory;

static void *checked(void *memory, size_t size)
{
	if (!memory && size && no_memory)
		longjmp(*no_memory, 1);
	return memory;
}

static void *get_memory(size_t size)
{
	return checked(malloc(size), size);
}

static void *get_zeroed(size_t count, size_t size)
{
	return checked(calloc(count, size), size);
}

static void *get_larger(void *memory, size_t size)
{
	return checked(realloc(memory, size), size);
}

static int open_and_decode(struct decoder *decoder)
{
	static const uint8_t nop = 0x90;
	const uint8_t *code = &nop;
	size_t size = sizeof(nop);
	uint64_t address = 0;

	if (cs_open(CS_ARCH_X86, CS_MODE_64, &decoder->handle))
		return -ENOMEM;
	if (!cs_option(decoder->handle, CS_OPT_DETAIL, CS_OPT_ON))
		decoder->insn = cs_malloc(decoder->handle);
	/* Its tables are made for the first instruction. */
	if (decoder->insn && cs_disasm_iter(decoder->handle, &code, &size, &address, decoder->insn))
		return 0;
	decoder_close(decoder);
	return -ENOMEM;
}

/* What capstone had allocated when there was no more memory is lost: some kilobytes. */
int decoder_open(struct decoder *decoder)
{
	cs_opt_mem memory = {.malloc = get_memory,
			     .calloc = get_zeroed,
			     .realloc = get_larger,
			     .free = free,
			     .vsnprintf = vsnprintf};
	jmp_buf place;
	int err;

	cs_option(0, CS_OPT_MEM, (size_t)&memory);
	*decoder = (struct decoder){0};
	if (setjmp(place)) {
		no_memory = NULL;
		return -ENOMEM;
	}
	no_memory = &place;
	err = open_and_decode(decoder);
	no_memory = NULL;
	return err;
}

void decoder_close(struct decoder *decoder)
{
	if (decoder->insn)
		cs_free(decoder->insn, 1);
	cs_close(&decoder->handle);
}
