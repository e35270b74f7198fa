/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* What can be told of a Python process from outside, before the library is in it. */
#ifndef FBT_PYTHON_OUTLOOK_H
#define FBT_PYTHON_OUTLOOK_H

#include <stddef.h>
#include <stdint.h>
#include "steps/spec.h"

#define PYTHON_OUTLOOK_MAX 512

/*
 * Which functions would be looked for: those that specs name; else those of the engine whose files
 * the process has mapped, or whose name is on its command line; else which engines are known.
 */
void python_outlook(uint32_t tgid, const struct step_spec *specs, size_t count,
		    char text[PYTHON_OUTLOOK_MAX]);

#endif
