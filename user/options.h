/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* What the program should do, from the command line and the tool's environment. */
#ifndef FBT_OPTIONS_H
#define FBT_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include "base/vec.h"
#include "fbt_event.h"
#include "model/metadata.h"
#include "otlp/otlp_endpoint.h"
#include "output/pipeline.h"
#include "proc/process.h"
#include "report/report.h"
#include "shim/peers.h"
#include "steps/find.h"
#include "elf/symbol_files.h"

enum options_mode {
	MODE_TRACE,
	MODE_LIST_STEPS,
	MODE_REPLAY,
	MODE_VALIDATE,
	MODE_ENV_HASH,
	MODE_ENGINE_ENV,
	MODE_DRY_RUN,
	MODE_DOCTOR,
	MODE_MERGE,
	MODE_WATCH,
	MODE_DIFF,
};

enum trace_format {
	TRACE_FERRUM,	/* ferrum's format: an array of slices */
	TRACE_KINETO,	/* the format of torch.profiler */
	TRACE_PERFETTO, /* Perfetto's protobuf */
	TRACE_OPEN,	/* not given: options_complete decides */
};

/*
 * Windows by flag file. The variables are those of ferrum's Chakra trace manager under our names. A
 * switch is on if its value, trimmed and in lower case, is 1, true, yes, y or on.
 *
 *	FERRUM_BPFTRACE            switch, on by default: off means that no flag opens a window
 *	FERRUM_BPFTRACE_FLAG       --flag
 *	FERRUM_BPFTRACE_DIR        --dir
 *	FERRUM_BPFTRACE_MAX_STEPS  --max-steps; an invalid number is 0
 *	FERRUM_BPFTRACE_DEBUG      switch: --verbose
 *
 * and of --torch-trace (struct option_torch): FERRUM_BPFTRACE_RECORD_SHAPES, on by default,
 * _WITH_STACK and _SYNC_CUDA.
 */
struct option_windows {
	const char *flag;	   /* the file that opens windows; NULL: there is one window */
	bool flag_by_environment;  /* the environment names the flag */
	bool disabled;		   /* there is a flag, but FERRUM_BPFTRACE is off */
	const char *dir;	   /* directory of files whose names have a tag */
	uint64_t max_steps;	   /* limit of a window by flag; 0: no limit */
	uint64_t keep_free;	   /* bytes, see disk_room_of; 0: none */
	double rate_guard_percent; /* see targets/rate_guard.h; 0: no limit */
};

/* --python */
enum python_mode {
	PYTHON_AUTO, /* steps of processes that have libferrum_python.so */
	PYTHON_OFF,
	PYTHON_REQUIRE, /* fail if no process has a Python step */
	PYTHON_INJECT,	/* it is loaded into processes that lack it */
	PYTHON_SHARE,	/* steps that another tracer has armed */
};

/* --explain: what is attached only once a step was slow for a reason that it would explain. */
enum explain_mode {
	EXPLAIN_AUTO,
	EXPLAIN_ALWAYS, /* attached all the time, whatever it costs */
	EXPLAIN_OFF,
};

/* GPU records, and the trace that torch users open. */
struct option_gpu {
	enum gpu_mode mode;
	bool rank_given; /* else the rank is that of the target's environment */
	uint32_t rank;	 /* of distributedInfo in a Kineto trace */
	/* Only with GPU_INJECT: */
	uint64_t inject_timeout_ns; /* to find a thread that can be taken */
	bool dry_run;		    /* only report what would be done */
};

/* --torch-trace: PyTorch's own profiler, in each window and process. */
struct option_torch {
	bool is_on;
	/* Switches of the environment: */
	bool shapes; /* of operators' inputs */
	bool stack;  /* the Python stack of operators */
	bool sync;   /* wait for the GPU at the end of each step */
};

/* One option as it was given. */
struct option_given {
	const char *name;  /* without dashes */
	const char *value; /* NULL: it has none */
};

/* watch. Times are in ns, sizes in bytes. */
struct option_watch {
	const char *config; /* NULL: the default, if that exists */
	/* Processes to watch, beside those of -p: */
	VEC(const char *) comms;
	VEC(const char *) cgroups;
	VEC(const char *) containers;
	VEC(const char *) units;
	uint64_t last_ns; /* what is kept in memory, and is in a dump */
	uint64_t memory;
	uint64_t after_ns;  /* from an escalation to its dump */
	uint64_t calls_ns;  /* system calls are traced for so long after an escalation; 0: not */
	uint64_t sample_ns; /* and for so long in each sample_every_ns; 0: not */
	uint64_t sample_every_ns;
	uint64_t cooldown_ns;
	uint32_t max_dumps;
	uint64_t max_disk;
	int flight_fd;			/* of a tracer: the socket to watch; 0: none */
	VEC(struct option_given) given; /* all others, which tracers are started with */
	char *text;			/* of the configuration file; options point into it */
};

/* diff A B */
struct option_diff {
	double margin_percent;	  /* within that A and B are the same */
	double threshold_percent; /* from that on what is worse is a regression */
};

struct options {
	enum options_mode mode;
	pid_vec pids;
	bool all;
	bool follow;
	bool top;	      /* a live view of the window */
	char **command;	      /* NULL, or COMMAND ARGS... NULL: inside argv */
	uint64_t duration_ns; /* 0: until stopped */
	uint64_t steps;	      /* 0: no limit */
	VEC(struct step_spec) specs;
	VEC(struct step_arg) args;
	VEC(const char *) symbol_files;
	bool uretprobe;
	bool wait_step;
	bool interval_given;
	bool escalate_now;
	bool compute_env_hash;
	bool perf_uprobes; /* for tests on kernels that have something better */
	bool inject;	   /* both libraries, where gpu.mode and python were left open */
	uint64_t interval_ns;
	uint64_t hang_ns; /* a step that is open for longer is a hang; 0: none is */
	enum fbt_detail detail;
	uint32_t ring_records;
	enum explain_mode explain;
	uint64_t explain_limit_ppm; /* of the machine's CPU time; not by an option: for tests */
	/* What one event of each kind costs, where it was measured for several windows; 0: not yet.
	 */
	uint64_t explain_ps[FBT_EXPLAIN_COUNT];
	uint64_t explain_idle_ns; /* so long after the last need it is detached; the same */
	const char *output;	  /* -o: the start of all file names, or NULL */
	char *named[5];		  /* the names made from it; with a flag, a directory */
	const char *trace;	  /* path, "none", or NULL: the default */
	const char *profile;
	const char *record;
	const char *html;
	const char *folded;
	const char *replay;
	enum report_format report;
	enum trace_format trace_format;
	struct pipeline_options judging;
	VEC(char *) judging_given; /* see option_judging.h; owned */
	struct option_windows windows;
	struct option_gpu gpu;
	enum python_mode python;
	/* A newline is written to it when the first window is attached, see trace.c; 0: none. */
	int ready_fd;
	struct option_torch torch;
	struct option_watch watch;
	const char *otlp;		/* URL, or NULL */
	struct otlp_endpoint collector; /* what otlp and the environment say, if otlp was given */
	bool otlp_metrics;
	struct otlp_endpoint metrics_collector; /* if otlp_metrics */
	const char *metrics;			/* path, or NULL */
	uint64_t metrics_interval_ns;
	struct metadata_options metadata;
	const char *require_events;
	struct option_diff diff;
	char **files; /* validate, diff, merge, env-hash; inside argv */
	size_t file_count;
};

/* Value of windows.max_steps: not given. */
#define OPTION_MAX_STEPS_OPEN UINT64_MAX

/* Sets the defaults. Call options_clear in any case. */
void options_init(struct options *options);

/*
 * Call after the command line was read. Fills in what it left open from the environment, and
 * refuses options that exclude each other. 0; -EINVAL: one line was logged; -ENOMEM. Borrows the
 * environment's strings.
 */
int options_complete(struct options *options);
void options_clear(struct options *options);

/* Whether stacks may be taken: they are of calls, which must be recorded. */
bool options_have_stacks(const struct options *options);

/* Whether a process is among those of -p. */
bool options_name_process(const struct options *options, uint32_t tgid);

/* What --symbols names. Borrows from options. */
struct symbol_files options_symbols(const struct options *options);

/* The step functions to search for. Borrows from options. */
struct target_options target_options_of(const struct options *options);

#endif
