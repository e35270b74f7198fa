/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * The clock of one trace against that of another one, by the collectives that both have. Pure.
 *
 * A collective in which all ranks wait for all (all-reduce, all-gather, reduce-scatter, all-to-all,
 * barrier) ends on no rank before it has begun on every other one. So each that was found in both
 * traces is a lower and an upper bound of the difference of the clocks; all of them together leave
 * a range, which is the error that is stated. Within that range the estimate is the line on which
 * the ends are at the same time, since these ranks are released together.
 */
#ifndef FBT_MERGE_ALIGN_H
#define FBT_MERGE_ALIGN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/vec.h"

/* A collective, or a step. Times are of the trace's own clock. */
struct collective {
	int64_t begin_ns;
	int64_t end_ns;
	uint32_t name;	 /* equal for the same operation, or step function, in all traces */
	uint32_t number; /* of the collective's process group, or of the step; 0: not known */
	bool is_cut;	 /* of a step: when it ended is not known */
};

typedef VEC(struct collective) collective_vec;

/* What is added to the time of one trace to have that of the other: offset + drift * (t - from). */
struct clock_line {
	int64_t from_ns;
	int64_t offset_ns;
	double drift; /* seconds per second */
};

/* From the first event of a trace to the end of the last one, by its own clock. */
struct trace_span {
	int64_t first_ns;
	int64_t last_ns;
};

enum align_by { ALIGN_REFERENCE, ALIGN_COLLECTIVES, ALIGN_WALL_CLOCK, ALIGN_NOTHING };

/* Why the clock is not by the collectives. */
enum align_why {
	ALIGN_WHY_NONE, /* it is */
	ALIGN_WHY_FEW,
	ALIGN_WHY_PLACES, /* they fit in several places */
	ALIGN_WHY_GROUPS, /* they are of other process groups */
	ALIGN_WHY_SHARE,  /* too many have no counterpart: see matched, compared */
	ALIGN_WHY_DRIFT,  /* they fit only with a drift that no clock has */
};

struct alignment {
	enum align_by by;
	enum align_why why;
	struct clock_line line;
	uint64_t matched;	   /* collectives that were found in both */
	uint64_t compared;	   /* of one trace, in the time of both: of the one with more */
	uint64_t error_ns;	   /* of ALIGN_COLLECTIVES: no time is further off, see slack_ns */
	uint64_t matched_error_ns; /* the same from the first to the last that was found in both */
	double drift_error;	   /* the same of the drift */
	/*
	 * By how much bounds had to be widened so that any line is within them: what the traces'
	 * own times are off, or that the clock did not run evenly. It is in error_ns.
	 */
	uint64_t slack_ns;
	bool is_ambiguous; /* the collectives fit in several places; the wall clock chose */
	/*
	 * Bounds that are near each other in time contradict by more than times are off: these may
	 * be other collectives in the same rhythm, as of two stages of a pipeline.
	 */
	bool is_contradictory;
};

/* The drift of a clock that is set by NTP is below that; so is that of one which is not. */
#define ALIGN_DRIFT_MAX 500e-6

/*
 * Traces that share no collective may have the same rhythm: then many match by chance. Fewer than
 * that of those in the time of both traces, and they are not the same ones.
 */
#define ALIGN_MATCHED_PERCENT 95

/*
 * Both are sorted by end. span: of the trace of b, in all of which the stated error holds.
 * guess_ns: about the offset, by the wall clocks; has_guess: it is known. false: result->why; of
 * the rest, *result then only has is_ambiguous, matched and compared. Takes at most time
 * proportional to a + b, times a constant.
 */
bool align_collectives(const collective_vec *a, const collective_vec *b,
		       const struct trace_span *span, bool has_guess, int64_t guess_ns,
		       struct alignment *result);

/* Whether error_ns holds: a place may be the wrong one, or the collectives not the same ones. */
static inline bool alignment_error_known(const struct alignment *alignment)
{
	return alignment->by == ALIGN_COLLECTIVES && !alignment->is_ambiguous &&
	       !alignment->is_contradictory;
}

/* Whether two collectives may be the same one. */
static inline bool collectives_match(const struct collective *a, const struct collective *b)
{
	return a->name == b->name && (a->number == b->number || !a->number || !b->number);
}

/* The time of the other trace; no further from 0 than that, so that differences fit. */
#define CLOCK_TIME_MAX 4000000000000000000
int64_t clock_line_apply(const struct clock_line *line, int64_t ns);

/*
 * Whether an event is such a collective: a kernel of NCCL or RCCL, an operation of gloo, MPI or
 * UCC, or a step function with the name of one. *kind is which operation, 1, 2, …
 */
bool collective_is(const char *cat, const char *name, uint32_t *kind);

#endif
