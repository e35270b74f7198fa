/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Texts of --step and --step-arg, parsed. Pure: no file is looked at. */
#ifndef FBT_STEP_SPEC_H
#define FBT_STEP_SPEC_H

#include <regex.h>
#include <stdbool.h>
#include <stdint.h>
#include "fbt_event.h"

enum step_spec_form {
	STEP_SPEC_SYMBOL,  /* exact mangled or demangled name, or a glob if it has * ? [ */
	STEP_SPEC_REGEX,   /* /REGEX/ (POSIX extended) on the demangled name */
	STEP_SPEC_ADDRESS, /* PATH+0xADDR, an ELF virtual address */
	STEP_SPEC_USDT,	   /* usdt:PROVIDER:BEGIN,END */
};

struct step_spec {
	enum step_spec_form form;
	char *text;    /* as given, for messages */
	char *path;    /* PATH:SYMBOL and PATH+0xADDR: suffix match on a mapped path; else NULL */
	char *pattern; /* symbol, glob or regex source */
	regex_t regex;
	bool has_regex;
	uint64_t address;
	char *provider;
	char *begin_name;
	char *end_name;
};

/* 0, or -EINVAL with one clear line logged, or -ENOMEM. */
int step_spec_parse(struct step_spec *spec, const char *text);
void step_spec_clear(struct step_spec *spec);

/* Register an argument is based on. */
enum step_arg_base {
	STEP_ARG_REG0 = 0, /* arg0 … arg5: the ABI's integer argument registers, in order */
	STEP_ARG_SP = 6,
};

enum step_arg_width { STEP_ARG_S32 = 0, STEP_ARG_U32 = 1, STEP_ARG_S64 = 2, STEP_ARG_U64 = 3 };

/*
 * NAME=EXPR, where EXPR is argN, or WIDTH(argN+OFF), WIDTH(sp+OFF), or WIDTH(u64(…+OFF)+OFF): a
 * register, or one or two reads of the target's memory with width s32, u32, s64 or u64; "+OFF" may
 * be left out or be
 * "-OFF", decimal or 0x hex. Example: n_tokens=s32(sp+8).
 */
struct step_arg {
	char name[32];
	uint32_t base;	/* enum step_arg_base */
	uint32_t reads; /* 0, 1 or 2 */
	int32_t offset[2];
	uint32_t width[2]; /* enum step_arg_width of each read */
};

/* 0, or -EINVAL with one clear line logged. */
int step_arg_parse(struct step_arg *arg, const char *text);

#endif
