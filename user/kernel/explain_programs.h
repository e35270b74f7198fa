/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * The programs of bpf/explain.bpf.c: loaded before the window, attached only on demand. Only this
 * module uses their skeleton.
 */
#ifndef FBT_KERNEL_EXPLAIN_PROGRAMS_H
#define FBT_KERNEL_EXPLAIN_PROGRAMS_H

#include <stdbool.h>
#include "kernel/loader.h"

struct explain_programs;

/* loader is borrowed, and must be loaded. 0; -ENOMEM; or -errno: this kernel refuses them. */
int explain_programs__load(struct explain_programs **programs, struct loader *loader);
void explain_programs__free(struct explain_programs *programs);

/* Attaches the programs of a kind, and begins anew. 0 or -errno. */
int explain_programs__attach(struct explain_programs *programs, enum fbt_explain kind);

/* Nothing if they are not attached. */
void explain_programs__detach(struct explain_programs *programs, enum fbt_explain kind);

/* The program for the CPU clock of a thread (stream/sampler.h): a descriptor. */
int explain_programs__sample(const struct explain_programs *programs);

/*
 * What the programs of a kind add to a context switch of any task on this machine, its wake-up
 * included, in picoseconds. Measured with two threads of the tool that wake each other on one CPU:
 * takes some 10 ms. 0: it could not be measured.
 */
uint64_t explain_programs__measure_ps(struct explain_programs *programs, enum fbt_explain kind);

#endif
