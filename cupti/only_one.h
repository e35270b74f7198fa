/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * A process may load two copies of a library: one is injected while it runs, the other is loaded
 * because of CUDA_INJECTION64_PATH or LD_PRELOAD. Each has its own variables, but the process must
 * have only one shared memory file of each kind.
 */
#ifndef FERRUM_ONLY_ONE_H
#define FERRUM_ONLY_ONE_H

/*
 * Calls make(ctx), which maps a memfd of that name, unless this process has mapped one already.
 * Returns what make returns, or 0. Meanwhile no other copy can make one. make must not load
 * libraries.
 */
int only_one__make(const char *memfd, int (*make)(void *ctx), void *ctx);

#endif
