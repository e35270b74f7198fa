/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Values of options, and a collector's answers. The input is a byte that chooses one of them, and
 * the text.
 */
#include <errno.h>
#include "fuzz.h"
#include "base/log.h"
#include "option_value.h"
#include "otlp/otlp_http.h"
#include "otlp/otlp_endpoint.h"
#include "steps/spec.h"

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	log_set_level(LOG_DEBUG);
	return 0;
}

static void parse_spec(const char *text)
{
	struct step_spec spec;

	if (!step_spec_parse(&spec, text)) {
		if (spec.form == STEP_SPEC_SYMBOL || spec.form == STEP_SPEC_REGEX)
			step_spec_matches_symbol(&spec,
						 "_ZN13llama_context6decodeERK11llama_batch.cold");
		if (spec.path)
			step_spec_matches_path(spec.path, "/usr/lib/libllama.so");
		step_spec_clear(&spec);
	}
}

static void parse_arg(const char *text)
{
	struct step_arg arg;

	if (step_arg_parse(&arg, text))
		return;
	fuzz_check(memchr(arg.name, '\0', sizeof(arg.name)) && arg.name[0]);
	fuzz_check(arg.base <= STEP_ARG_SP && arg.reads <= 2);
	fuzz_check(arg.width[0] <= STEP_ARG_U64 && arg.width[1] <= STEP_ARG_U64);
}

static void parse_numbers(const char *text)
{
	uint64_t number;
	double percent;
	pid_vec pids = {0};

	if (!option_count("x", text, 5, 1000, &number))
		fuzz_check(number >= 5 && number <= 1000);
	option_number(text, UINT64_MAX, &number);
	if (!option_percent("x", text, 100, &percent))
		fuzz_check(percent >= 0 && percent <= 100);
	if (!option_time("x", text, 1000000000, 1000000, OPTION_TIME_MAX, &number))
		fuzz_check(number >= 1000000 && number <= OPTION_TIME_MAX);
	option_bytes("x", text, &number);
	option_pids("x", text, &pids);
	vec_free(&pids);
}

static void parse_endpoint(const char *text)
{
	struct otlp_endpoint endpoint = {.url = NULL};
	const char *space = strchr(text, ' ');
	char *url = space ? strndup(text, (size_t)(space - text)) : strdup(text);

	fuzz_check(url);
	if (!otlp_endpoint_parse(&endpoint, url)) {
		fuzz_check(endpoint.url && endpoint.label);
		otlp_endpoint_add_headers(&endpoint, space ? space + 1 : "");
		/* A header is one line. */
		vec_for_each (header, &endpoint.headers)
			fuzz_check(!strpbrk(*header, "\r\n"));
	}
	otlp_endpoint_clear(&endpoint);
	free(url);
}

static void read_answer(uint8_t kind, const char *text, size_t size)
{
	static const long statuses[] = {200, 202, 301, 400, 429, 503, 0, 99999};
	struct otlp_answer answer;

	otlp_answer_read(&answer, statuses[kind / 8 % 8], text, size);
	fuzz_check(memchr(answer.reason, '\0', sizeof(answer.reason)));
	fuzz_check(otlp_retry_ns(kind, (int64_t)answer.rejected_spans, kind) <= OTLP_RETRY_MAX_NS);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text;

	if (!size)
		return -1;
	text = fuzz_text(data + 1, size - 1);
	switch (data[0] % 8) {
	case 0:
		parse_spec(text);
		break;
	case 1:
		parse_arg(text);
		break;
	case 2:
		parse_numbers(text);
		break;
	case 3:
		parse_endpoint(text);
		break;
	default:
		read_answer(data[0], text, size - 1);
	}
	free(text);
	return 0;
}
