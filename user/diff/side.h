/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * One side of a comparison: the steps of a capture or profile, and what is known of how they were
 * measured. Memory is bounded: SIDE_STEPS_MAX steps of 32 bytes, and sums by size.
 *
 * Only whole steps that returned count, as in the percentiles of the report; the others are
 * counted by why they do not.
 */
#ifndef FBT_DIFF_SIDE_H
#define FBT_DIFF_SIDE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/vec.h"
#include "judge/cause.h"
#include "model/step.h"

/* Later steps are counted and left out: the steps of a side take at most 256 MiB while it grows. */
#define SIDE_STEPS_MAX (1u << 22)
/* Step functions; those of further ones are left out. */
#define SIDE_KINDS_MAX 64
#define SIDE_NAME_MAX  4096

/*
 * Sizes are counted in bins: each value below 16 has its own, then 16 an octave, so that a bin is
 * at most 6 % wide.
 */
#define SIZE_BINS 976

uint32_t size_bin(uint64_t size);
uint64_t size_bin_low(uint32_t bin); /* the smallest size of a bin; UINT64_MAX of SIZE_BINS */

/* What the size of a step is. */
enum size_by {
	SIZE_BY_WORK =
		0, /* ns of its own code on a CPU, or of the GPU's busy time if that is more */
	SIZE_BY_ARGUMENT, /* what its function was asked to do; 0 if that is negative */
	SIZE_BY_COUNT,
};

struct side_step {
	uint64_t ns;
	uint64_t size[SIZE_BY_COUNT];
	uint8_t kind; /* index in kinds */
	bool has_argument;
};

/* Sums of the steps of a size. */
struct size_sums {
	uint64_t steps;
	uint64_t low, high; /* sizes that were seen */
	uint64_t ns;
	uint64_t known; /* steps whose parts are known */
	uint64_t part_ns[STEP_PARTS];
	struct {
		uint32_t steps;	   /* escalated for it */
		uint64_t extra_ns; /* beyond what is usual */
	} causes[CAUSE_COUNT];
};

/* Why a step does not count. */
enum left_out {
	LEFT_INCOMPLETE, /* some of its records were lost, or it was open at an end of the window */
	LEFT_UNWOUND,	 /* it did not return */
	LEFT_PROFILED,	 /* PyTorch's profiler was on */
	LEFT_TOO_MANY,	 /* beyond SIDE_STEPS_MAX */
	LEFT_COUNT,
};

struct side_kind {
	char *name;
	char *argument; /* name of the one that is the size; NULL: none is recorded */
	bool is_interval;
	bool is_pooled; /* in a window, several functions have the name */
	uint64_t steps; /* that count */
	uint64_t ns;
	uint64_t with_argument;
	uint64_t without_calls; /* of them, their calls were not traced */
	uint64_t left_out[LEFT_COUNT];
	struct size_sums *sums[SIZE_BY_COUNT][SIZE_BINS]; /* NULL: no step */
};

/* Facts in words; NULL: not known. */
enum side_fact {
	FACT_HOST,
	FACT_ARCH,
	FACT_KERNEL,
	FACT_TOOL,
	FACT_DETAIL,
	FACT_GPU, /* GPU records: "on", "strict" (on with --gpu-strict), "off" */
	FACT_MODEL,
	FACT_CONCURRENCY,
	FACT_COMMIT,
	FACT_ENV_HASH,
	FACT_COUNT,
};

struct side {
	const char *path;     /* borrowed */
	bool is_capture;      /* else a profile */
	const char *class_by; /* name of the argument that is the size, borrowed; NULL: chosen */
	VEC(struct side_step) steps; /* in the order in which they ended */
	VEC(struct side_kind *) kinds;
	uint64_t kinds_left_out; /* steps of further kinds */
	char *facts[FACT_COUNT];
	bool facts_vary;  /* of its windows: the facts are those of the first */
	uint64_t windows; /* whose end is there */
	uint64_t windows_ns;
	uint64_t lost;	  /* records */
	uint64_t cut_off; /* windows */
	uint64_t bad_lines;
	bool has_open_end;	/* steps after the last window's end: their losses are not known */
	double sampled_percent; /* of the step function that was watched least; 0: none was sampled
				 */
	bool has_gpu;		/* steps of the window at hand have GPU records */
	bool has_last;		/* the step that was added last, for side__add_cause */
};

struct side *side__new(const char *path); /* NULL: -ENOMEM */
void side__free(struct side *side);

/*
 * Index of a step function, which is added if it is not there. arguments are the names of what is
 * recorded of it, NULL where there is none: the size is class_by, else n_waited, n_tokens, or the
 * first by name. -ENOSPC: there are too many; or -ENOMEM.
 */
int side__kind(struct side *side, const char *name, const char *const arguments[FBT_ARG_COUNT],
	       bool is_interval);

/*
 * Which of the arguments is the size of a kind's steps, as its first step had them: another window
 * may have recorded others. -1 if none.
 */
int side_kind_argument(const struct side_kind *kind, const char *const arguments[FBT_ARG_COUNT]);

/* parts: NULL if they are not known. 0 or -ENOMEM. */
int side__add(struct side *side, const struct side_step *step, const uint64_t *parts);
void side__leave_out(struct side *side, uint8_t kind, enum left_out why);

/* The step that was added last was escalated. */
void side__add_cause(struct side *side, enum cause_kind cause, uint64_t extra_ns);

/* Of a window. value NULL is not known. 0 or -ENOMEM. */
int side__set_fact(struct side *side, enum side_fact fact, const char *value);

/* FACT_GPU of the window at hand. */
const char *side_gpu_fact(const struct side *side, bool is_strict);

uint64_t side_ns(const struct side *side); /* of all steps that count */

#endif
