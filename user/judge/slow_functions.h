/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * In which functions slow steps compute for longer than others, by samples of both. Pure.
 *
 * Steps with the same key are compared. The share of each function in the samples of the step (if
 * these are too few, of all steps that were slow for their own work), and in those of all steps
 * that were not escalated, is applied to the work of the step and to what is usual: so it does not
 * matter how many samples each of them has.
 */
#ifndef FBT_JUDGE_SLOW_FUNCTIONS_H
#define FBT_JUDGE_SLOW_FUNCTIONS_H

#include "judge/cause.h"
#include "model/step.h"

/* Fewer samples than this of slow or of other steps say nothing. */
#define SLOW_FUNCTIONS_LEAST 10

struct slow_functions;

struct slow_functions *slow_functions__new(void); /* NULL: no memory */
void slow_functions__free(struct slow_functions *profiles);

/*
 * A step was judged. cause: that of its escalation, which gets what grew; NULL: it is a normal one.
 * A step that is slow for another reason counts for neither. Without memory it does not count.
 */
void slow_functions__judge(struct slow_functions *profiles, const struct window *window,
			   uint64_t key, const struct step *step, struct cause *cause);

#endif
