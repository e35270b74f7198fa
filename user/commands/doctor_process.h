/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * A process as a target: whether it can be inspected, which limits its cgroups have, and where its
 * steps would begin and end.
 * Without a process to check: those of this machine that look like an engine. The _judge functions
 * are pure.
 */
#ifndef FBT_COMMANDS_DOCTOR_PROCESS_H
#define FBT_COMMANDS_DOCTOR_PROCESS_H

#include "commands/doctor_check.h"
#include "commands/doctor_room.h"
#include "options.h"
#include "proc/cgroup.h"
#include "steps/resolve.h"
#include "search/descendant.h"
#include "search/step_search.h"

#define DOCTOR_COMM_MAX 64

struct doctor_process {
	uint32_t tgid;
	bool may_trace;	  /* we have CAP_SYS_PTRACE */
	int ptrace_scope; /* of Yama; -1: there is no Yama */
	int err;	  /* of reading its memory map: 0, or -errno, explained by words */
	struct doctor_words words;
	int look_err; /* of opening its memory for reading: 0, or -errno */
	char comm[DOCTOR_COMM_MAX];
	char exe[512];
	bool replaced; /* exe no longer names the file that runs */
	uint32_t uid;
	uint32_t own_uid;
	uint32_t threads;
	char state;	 /* of its first living thread, as in /proc/PID/stat */
	uint32_t tracer; /* of that thread; 0: none */
	char tracer_comm[DOCTOR_COMM_MAX];
	uint32_t inner_pid; /* in its own PID namespace; 0: it has none */
};

/* Reads /proc only. */
void doctor_process_read(struct doctor_process *process, uint32_t tgid);
void doctor_process_judge(const struct doctor_process *process, struct findings *checks);

/* The limits of its cgroups: no line where there is no limit. */
void doctor_process_judge_limits(const struct cgroup_limits *limits, struct findings *checks);

/* Most candidates that are named if no step function is known. */
#define DOCTOR_CANDIDATES_MAX 4

struct doctor_steps {
	/* Requested. */
	bool named;	   /* by --step */
	bool waits;	   /* --wait-step */
	bool follows;	   /* -f */
	bool alone;	   /* --detail probes: without steps nothing is measured */
	bool wants_python; /* all of --step are Python functions, or there is none */
	uint64_t interval_ns;
	/* Found. */
	int found; /* number of functions, or -errno, explained by words */
	struct doctor_words words;
	function_vec functions; /* that -p would probe */
	/* If there are no functions: those that look like a step and that busy threads are in. */
	function_vec candidates;
	bool is_python;		      /* its steps are not among its native functions */
	bool python_ready;	      /* its Python functions would be looked for */
	bool idle;		      /* no thread was busy */
	bool stripped;		      /* the program has no symbols of its own functions */
	struct descendant descendant; /* that has such a function, if the process has none */
	char options[384];	      /* " --step NAME" for its command line, to be pasted: twice */
	int probe_err;		      /* the kernel refuses to probe functions: -errno and words */
	/* If no name looks like a step: what the stacks of busy threads say. */
	bool searched;
	enum step_search_end search_end;
	char best[2048];     /* for --step; "": none */
	char best_name[256]; /* of that function; "": not known */
	double best_per_s;
	double best_mean_ms;
	double best_share;
};

/*
 * Reads the files of the process, and tries probes in this one (doctor_trial_probe). If there is no
 * step function, samples the stacks of its threads. If none of the functions on them has a name
 * that looks like a step, measures some by probes (step_search).
 */
void doctor_steps_read(struct doctor_steps *steps, uint32_t tgid, const struct options *options,
		       struct doctor_trial *trial);
void doctor_steps_judge(const struct doctor_steps *steps, struct findings *checks);

/*
 * Whether a trace would not fail for want of a step function where other processes have none:
 * has_python is of doctor_needs.
 */
bool doctor_steps_suffice(const struct doctor_steps *steps, bool has_python);
void doctor_steps_clear(struct doctor_steps *steps);

#define DOCTOR_ENGINES_MAX 8

struct doctor_engine {
	uint32_t tgid;
	char comm[DOCTOR_COMM_MAX];
	char steps[256]; /* known step functions in it; "": none */
	bool cuda;	 /* it has libcuda */
};

struct doctor_engines {
	struct doctor_engine items[DOCTOR_ENGINES_MAX];
	size_t count;
	size_t more;	   /* found, and not listed */
	size_t not_looked; /* processes that budget_ns did not suffice for */
};

/* Reads /proc and the files of processes for at most about budget_ns of CPU time. */
void doctor_engines_find(struct doctor_engines *engines, uint64_t budget_ns);
void doctor_engines_judge(const struct doctor_engines *engines, struct findings *checks);

#endif
