/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* argv to const struct options. */
#ifndef FBT_OPTIONS_H
#define FBT_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include "fbt_event.h"
#include "metadata.h"
#include "option_argument.h"
#include "option_gpu.h"
#include "option_value.h"
#include "option_windows.h"
#include "otlp_endpoint.h"
#include "pipeline.h"
#include "sink_report.h"
#include "step_spec.h"
#include "vec.h"

enum trace_format {
	TRACE_FERRUM, /* an array of slices, as the seed writes it */
	TRACE_KINETO, /* as torch.profiler writes it */
};

struct options {
	enum options_mode mode;
	pid_vec pids;
	bool all;
	bool follow;
	char **command;	      /* NULL, or COMMAND ARGS… NULL: inside argv */
	uint64_t duration_ns; /* 0: until stopped */
	uint64_t steps;	      /* 0: no limit */
	VEC(struct step_spec) specs;
	VEC(struct step_arg) args;
	VEC(const char *) symbol_files;
	bool uretprobe;
	bool wait_step;
	uint64_t interval_ns;
	enum fbt_detail detail;
	uint32_t ring_records;
	bool escalate_now;
	bool compute_env_hash;
	bool bpf_stats;
	bool perf_uprobes; /* FBT_UPROBES=perf: for tests on kernels that have better */
	const char *trace; /* path, "none", or NULL: the default */
	const char *profile;
	const char *record;
	const char *replay;
	enum report_format report;
	enum trace_format trace_format;
	struct pipeline_options judging;
	struct option_windows windows;
	struct option_gpu gpu;
	const char *otlp;		/* URL, or NULL */
	struct otlp_endpoint collector; /* what it says, if it was given */
	struct metadata_options metadata;
	const char *require_events;
	char **files; /* validate, env-hash; inside argv */
	size_t file_count;
};

/*
 * Parses the command line and the tool's environment. 0; -EINVAL: one line was logged; -ENOMEM.
 * --help, --version and unknown options end the program, as argp does. Strings are borrowed from
 * argv and the environment.
 */
int options_parse(struct options *options, int argc, char **argv);
void options_clear(struct options *options);

#endif
