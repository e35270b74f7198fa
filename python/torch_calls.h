/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * The functions of PyTorch that torch.profiler is made of. All need the GIL. Calls stand between
 * torch_calls_begin and torch_calls_end.
 */
#ifndef FERRUM_PYTHON_TORCH_CALLS_H
#define FERRUM_PYTHON_TORCH_CALLS_H

#include "api.h"
#include "fbt_python.h"

/* The exception that was pending: calls with one pending would fail, or lose it. */
struct torch_pending {
	py_object *type, *value, *traceback;
};
void torch_calls_begin(const struct python *python, struct torch_pending *pending);
void torch_calls_end(const struct python *python, const struct torch_pending *pending);

/*
 * Starts both: Kineto for this thread, the observer for all. execution_fd: an empty file for the
 * execution trace, which PyTorch writes as it goes. FBT_TORCH_ON; or why not, and nothing has
 * changed.
 */
enum fbt_torch_state torch_calls_start(const struct python *python, uint32_t flags,
				       int execution_fd, char *text, size_t size);

/* The observer records no more. Any thread may call this; others may still be in the observer. */
void torch_calls_disable_observer(const struct python *python);

/*
 * Removes the observer, in which no thread may be, stops Kineto, and writes its trace to a file;
 * kineto_fd -1: to none. Only for the thread that started it. false: something has failed, and text
 * says what.
 */
bool torch_calls_stop(const struct python *python, uint32_t flags, int kineto_fd, char *text,
		      size_t size);

/* Kineto, if it is on in this thread, records no more: it stays on, and nothing of it is called. */
void torch_calls_mute(const struct python *python);

/* Waits for the GPU, if the process uses one. */
void torch_calls_sync(const struct python *python);

#endif
