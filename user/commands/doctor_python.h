/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* A process that runs Python, from outside: its interpreter, the library, what would be looked for.
 */
#ifndef FBT_COMMANDS_DOCTOR_PYTHON_H
#define FBT_COMMANDS_DOCTOR_PYTHON_H

#include "base/findings.h"
#include "inject/verdict.h"
#include "options.h"
#include "python/outlook.h"

struct doctor_python {
	bool is_python; /* otherwise only mode is set */
	enum python_mode mode;
	unsigned int minor; /* 3.minor */
	bool is_supported;
	bool has_library;
	bool is_inherited;	       /* it was forked from a process with the library */
	char refused[INJECT_TEXT_MAX]; /* why the library could not be injected; "": it could */
	size_t others;		       /* other processes of its engine that run Python */
	char outlook[PYTHON_OUTLOOK_MAX];
};

/* Reads /proc and the files of the process; nothing is stopped. */
void doctor_python_read(struct doctor_python *python, uint32_t tgid, const struct options *options);

/*
 * Pure. No line for another process, unless Python is required, and with --python off. It is
 * required of a process only if none of the trace has it: doctor_needs_ease.
 */
void doctor_python_judge(const struct doctor_python *python, struct findings *checks);

#endif
