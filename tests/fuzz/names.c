/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Names from the target, such as symbols, as people see them in outputs and on the terminal. */
#include "base/demangle.h"
#include "fuzz.h"
#include "base/json.h"
#include "base/json_read.h"
#include "base/text.h"
#include "base/log.h"
#include "base/format.h"
#include "steps/spec.h"
#include "steps/engines.h"

#define ERROR_SIZE 256

static struct step_spec specs[3];

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	fuzz_check(!step_spec_parse(&specs[0], "*st?p*"));
	fuzz_check(!step_spec_parse(&specs[1], "/(step|decode)+$/"));
	fuzz_check(!step_spec_parse(&specs[2], "llama_context::decode"));
	return 0;
}

/* Checks that a terminal would interpret none of it as control characters. */
static void check_shown(const char *text, size_t length)
{
	fuzz_check(strlen(text) == length);
	for (size_t i = 0; i < length; i++)
		fuzz_check((unsigned char)text[i] >= 0x20 && text[i] != 0x7f);
}

static void check_escape(const char *text)
{
	char shown[128], line[40];

	check_shown(shown, log_escape(shown, sizeof(shown), text));
	shorten_text(line, sizeof(line), text, 24);
	check_shown(line, strlen(line));
	shorten_name(line, sizeof(line), text, 24);
	check_shown(line, strlen(line));
}

/* A string in an output must be one JSON string, and must be read back unchanged. */
static void check_json(const char *text)
{
	char *written = NULL, error[ERROR_SIZE];
	struct json_object *value = NULL;
	size_t size;
	struct json json = {.out = open_memstream(&written, &size)};

	fuzz_check(json.out);
	json_string(&json, NULL, text);
	fuzz_check(!fclose(json.out));
	fuzz_check(!json_read(written, size, &value, error, sizeof(error)));
	json_object_put(value);
	free(written);
}

static void check_symbol(const char *symbol)
{
	char *name = demangle_symbol(symbol), *call = demangle_with_arguments(symbol);
	struct step_arg arg;

	fuzz_check(!name || strlen(name) < DEMANGLE_NAME_MAX);
	fuzz_check(!call || strlen(call) < DEMANGLE_NAME_MAX);
	if (name)
		check_escape(name);
	if (call)
		check_json(call);
	free(name);
	free(call);
	symbol_is_cold(symbol);
	symbol_is_part(symbol);
	engines_know(symbol, "/usr/lib/libllama.so", false);
	engines_may_be_in(symbol, true);
	engines_is_runtime(symbol);
	engines_rank(symbol);
	engines_find_arg(symbol, FBT_ARCH_X86_64, &arg);
	for (size_t i = 0; i < sizeof(specs) / sizeof(specs[0]); i++)
		step_spec_matches_symbol(&specs[i], symbol);
	step_spec_matches_path(symbol, "/usr/lib/libllama.so");
	step_spec_matches_path("libllama.so", symbol);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz_text(data, size);
	const char *trimmed = text;
	size_t length = size;

	check_symbol(text);
	check_escape(text);
	check_json(text);
	whitespace_only(text, size);
	whitespace_trim(&trimmed, &length);
	fuzz_check(trimmed >= text && trimmed + length <= text + size);
	free(text);
	return 0;
}
