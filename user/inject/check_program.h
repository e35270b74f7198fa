/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Whether a program and its libraries are of a kind that can be injected into. */
#ifndef FBT_INJECT_CHECK_PROGRAM_H
#define FBT_INJECT_CHECK_PROGRAM_H

#include "inject/verdict.h"
#include "proc/maps.h"

/* Whether this machine is an x86-64 with XSAVE. */
void inject_check_processor(struct inject_verdict *verdict);

/*
 * Refuses programs that are 32-bit, static or written in Go, and those with musl, a sanitizer or a
 * runtime that stops threads by signals.
 */
void inject_check_program(struct inject_verdict *verdict, struct proc_ref process,
			  const mapping_vec *maps);

/*
 * The name of a mapped library that forbids injection; *what is set to what that library is
 * (static). NULL: none.
 */
const char *inject_find_runtime(const mapping_vec *maps, const char **what);

/*
 * Checks that the process uses CUDA and that its CUPTI can be attached late. If the shim is already
 * there, sets verdict->present and checks nothing else.
 */
void inject_check_cuda(struct inject_verdict *verdict, struct proc_ref process,
		       const mapping_vec *maps);

enum inject_cupti { INJECT_CUPTI_UNKNOWN, INJECT_CUPTI_OLD, INJECT_CUPTI_NEW };

/*
 * Whether a libcupti is that of CUDA 12.6 or newer, by its file name. Toolkits name the file after
 * year and release ("libcupti.so.2024.3.0" belongs to 12.6), wheels after CUDA's major version.
 */
enum inject_cupti inject_cupti_age(const char *name);

/*
 * Whether ptrace's rules let us write to the process's memory (ptrace(2), "access mode checking").
 * 0, -EPERM: refused; or -ESRCH.
 */
int inject_check_access(struct inject_verdict *verdict, struct proc_ref process);

/*
 * What to do about a denied access. scope: kernel.yama.ptrace_scope, -1: there is none. capable: we
 * have CAP_SYS_PTRACE. The text is static.
 */
const char *inject_access_advice(int scope, bool capable);

/*
 * Reports which namespaces the process has of its own. Refuses a process whose root has no /proc,
 * which dlopen needs to open the library.
 */
void inject_check_namespaces(struct inject_verdict *verdict, struct proc_ref process);

#endif
