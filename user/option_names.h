/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Finds options by their names, and what a mistyped name may mean. */
#ifndef FBT_OPTION_NAMES_H
#define FBT_OPTION_NAMES_H

struct option_row;

/* By its long name without dashes; NULL: there is none of that name. */
const struct option_row *option_find(const char *name);

/*
 * Returns name if word is closer to it than to best (NULL: none), and at most a third of the
 * letters differ. Otherwise best.
 */
const char *option_choose_nearer(const char *word, const char *best, const char *name);

/* The long option, without its dashes, of which word may be a typo. NULL: none. */
const char *option_similar(const char *word);

#endif
