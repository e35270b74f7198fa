/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Two copies of the shim may be in one process: one that was put into it while it ran, and one that
 * CUDA loads by CUDA_INJECTION64_PATH. They are two files, so each has variables of its own; there
 * is to be one ring.
 */
#ifndef FERRUM_OTHER_COPY_H
#define FERRUM_OTHER_COPY_H

/*
 * Calls make(ctx), unless this process has a ring already: 0, or what make returns. While it runs
 * no other copy makes one. It may not load libraries.
 */
int other_copy__make_first(int (*make)(void *ctx), void *ctx);

#endif
