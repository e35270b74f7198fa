/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * The entries of .eh_frame, and how values are written in it. All bytes are those of an untrusted
 * file.
 */
#ifndef FBT_ELF_EH_FRAME_H
#define FBT_ELF_EH_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "elf/elf_file.h"

/*
 * Pointer encodings of the Linux Standard Base: the low four bits are the format, the next three
 * the base.
 */
#define PE_ABSPTR  0x00
#define PE_UDATA2  0x02
#define PE_UDATA4  0x03
#define PE_UDATA8  0x04
#define PE_SDATA2  0x0a
#define PE_SDATA4  0x0b
#define PE_SDATA8  0x0c
#define PE_PCREL   0x10
#define PE_DATAREL 0x30
#define PE_OMIT	   0xff

/* Bytes that are left to read. */
struct eh_reader {
	const uint8_t *data;
	size_t left;
	uint64_t address; /* virtual address of data */
};

/* Each takes a value from the front; false if it is cut off. */
bool eh_take(struct eh_reader *reader, void *value, size_t size);
bool eh_take_unsigned(struct eh_reader *reader, uint64_t *value); /* ULEB128 */
bool eh_take_signed(struct eh_reader *reader, int64_t *value);	  /* SLEB128 */

/* A value in a format of fixed size. The caller adds any base other than pc. */
bool eh_take_encoded(struct eh_reader *reader, uint8_t encoding, uint64_t *value);

/* Reads up to size bytes at an address to data, those of its segment. 0 or -EBADMSG. */
int eh_open(struct eh_reader *reader, const struct elf_file *file, uint64_t address, uint8_t *data,
	    size_t size);

/* Room for a CIE. Real ones take 20 to 40 bytes. */
#define EH_CIE_BYTES_MAX 256

struct eh_cie {
	uint8_t encoding;      /* how its FDEs write code addresses */
	bool has_augmentation; /* in its FDEs augmentation data, with its size, follows */
	bool is_signal;	       /* its functions are returned to, but did not call */
	uint64_t code_alignment;
	int64_t data_alignment;
	uint64_t return_register;
	struct eh_reader instructions; /* for the state at a function's entry */
	uint8_t data[EH_CIE_BYTES_MAX];
};

struct eh_fde {
	uint64_t start;
	uint64_t size;
	struct eh_reader instructions; /* in the caller's data */
	bool is_cut;		       /* there are more: the data is too small */
};

/*
 * Reads the FDE at an address, with its CIE, to size bytes of data. 0, or -EBADMSG for one that is
 * damaged, of another version, or with an augmentation that is not known.
 */
int eh_fde_read(struct eh_fde *fde, struct eh_cie *cie, const struct elf_file *file,
		uint64_t address, uint8_t *data, size_t size);

#endif
