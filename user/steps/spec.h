/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Parses --step and --step-arg, and tells what a --step matches. Reads no file. */
#ifndef FBT_STEPS_SPEC_H
#define FBT_STEPS_SPEC_H

#include <regex.h>
#include <stdbool.h>
#include <stdint.h>
#include "fbt_event.h"
#include "steps/python_spec.h"

enum step_spec_form {
	STEP_SPEC_SYMBOL,  /* exact mangled or demangled name, or a glob if it has * ? [ */
	STEP_SPEC_REGEX,   /* /REGEX/ (POSIX extended) on the demangled name */
	STEP_SPEC_ADDRESS, /* PATH+0xADDR, an ELF virtual address */
	STEP_SPEC_USDT,	   /* usdt:PROVIDER:BEGIN,END */
	STEP_SPEC_TEXT,	   /* string:TEXT: the function that refers to a constant text */
	STEP_SPEC_PYTHON,  /* py:MODULE:QUALNAME: a Python function, see steps/python_spec.h */
};

struct step_spec {
	enum step_spec_form form;
	char *text;    /* as given, for messages */
	char *path;    /* of PATH:SYMBOL, PATH:string:TEXT and PATH+0xADDR (step_spec_matches_path);
			  else NULL */
	char *pattern; /* symbol, glob, regex source or text */
	regex_t regex;
	bool has_regex;
	uint64_t address;
	char *provider;
	char *begin_name;
	char *end_name;
};

/* 0, -EINVAL with one line logged, or -ENOMEM. */
int step_spec_parse(struct step_spec *spec, const char *text);
void step_spec_clear(struct step_spec *spec);

/* The register that an argument is based on. */
enum step_arg_base {
	STEP_ARG_REG0 = 0, /* arg0 … arg5: the ABI's integer argument registers, in order */
	STEP_ARG_SP = 6,
};

enum step_arg_width { STEP_ARG_S32 = 0, STEP_ARG_U32 = 1, STEP_ARG_S64 = 2, STEP_ARG_U64 = 3 };

/*
 * NAME=EXPR, where EXPR is argN, WIDTH(argN+OFF), WIDTH(sp+OFF) or WIDTH(u64(…+OFF)+OFF): a
 * register, or one or two reads of the target's memory. WIDTH is s32, u32, s64 or u64. "+OFF" is
 * decimal or 0x hex, and may be left out or be "-OFF". Example: n_tokens=s32(sp+8).
 */
struct step_arg {
	char name[32];
	uint32_t base;	/* enum step_arg_base */
	uint32_t reads; /* 0, 1 or 2 */
	int32_t offset[2];
	uint32_t width[2]; /* enum step_arg_width of each read */
	/*
	 * If not 0, the value is a number of elements of so many bytes, those between the pointers
	 * at offset[0] and offset[1] (a std::vector). It is left out unless it is whole and at most
	 * the u64 at limit_offset. Only for built-in functions.
	 */
	uint32_t element;
	int32_t limit_offset;
	bool optional; /* the value FBT_PYTHON_ABSENT (fbt_python.h) means that there is none */
	/* Only of Python functions: */
	enum step_arg_source source;
	uint32_t source_name; /* STEP_ARG_TIME: python_name_hash() of that one */
	uint32_t source_arg;  /* STEP_ARG_BEFORE: index of the other number */
};

/* 0, or -EINVAL with one line logged. */
int step_arg_parse(struct step_arg *arg, const char *text);

/*
 * Whether --step matches a symbol: by its mangled name, with or without clone suffix, or by its
 * demangled name. Pieces of functions (.cold, .part) never match. Only for STEP_SPEC_SYMBOL and
 * STEP_SPEC_REGEX.
 */
bool step_spec_matches_symbol(const struct step_spec *spec, const char *symbol);

/* Whether path is mapped or its last components: "bin/engine" matches "/opt/bin/engine". */
bool step_spec_matches_path(const char *path, const char *mapped);

#endif
