/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* What the assembler and the C part of the stub share; helper.c checks it against fbt_inject.h. */
#ifndef FERRUM_STUB_H
#define FERRUM_STUB_H

#define STUB_MAGIC     0x4a4e4954424d5246
#define STUB_VERSION   2
#define STUB_FUNCTIONS 8

/* Offsets in struct stub_frame. */
#define FRAME_MASK	  0
#define FRAME_INTERRUPTED 8
#define FRAME_RAX	  16
#define FRAME_RCX	  24
#define FRAME_TOKEN	  32
#define FRAME_RDX	  40
#define FRAME_RSI	  48
#define FRAME_RDI	  56
#define FRAME_R8	  64
#define FRAME_R9	  72
#define FRAME_R10	  80
#define FRAME_RBX	  88
#define FRAME_RBP	  96
#define FRAME_R12	  104
#define FRAME_R13	  112
#define FRAME_FLAGS	  120

#endif
