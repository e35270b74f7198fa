/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * A process may load two copies of the shim: one is injected while it runs, the other is loaded by
 * CUDA because of CUDA_INJECTION64_PATH. Each has its own variables, but the process must have only
 * one ring.
 */
#ifndef FERRUM_ONLY_ONE_H
#define FERRUM_ONLY_ONE_H

/*
 * Calls make(ctx), unless this process has a ring already. Returns what make returns, or 0.
 * Meanwhile no other copy can make a ring. make must not load libraries.
 */
int only_one__make(int (*make)(void *ctx), void *ctx);

#endif
