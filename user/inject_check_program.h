/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Whether a program and its libraries are of a kind that can be injected into. */
#ifndef FBT_INJECT_CHECK_PROGRAM_H
#define FBT_INJECT_CHECK_PROGRAM_H

#include "inject_maps.h"
#include "inject_verdict.h"

/* That of this machine: x86-64, and what it keeps registers with. */
void inject_check_processor(struct inject_verdict *verdict);

/* 32-bit, static, Go, musl, sanitizers, runtimes that stop threads by signals. */
void inject_check_program(struct inject_verdict *verdict, uint32_t tgid, uint32_t thread,
			  const inject_mapping_vec *maps);

/* The name of a mapped library that forbids it, with what it is in *what (static); or NULL. */
const char *inject_find_runtime(const inject_mapping_vec *maps, const char **what);

#endif
