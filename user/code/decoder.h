/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Opens capstone for x86-64 code. */
#ifndef FBT_STEPS_DECODER_H
#define FBT_STEPS_DECODER_H

#include <capstone/capstone.h>

struct decoder {
	csh handle;
	cs_insn *insn; /* for cs_disasm_iter; its detail is filled in */
};

/* 0, or -ENOMEM: there is nothing to close. */
int decoder_open(struct decoder *decoder);
void decoder_close(struct decoder *decoder);

#endif
