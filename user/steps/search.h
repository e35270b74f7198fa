/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* A search for the step functions of one process, which find.c and find_text.c share. */
#ifndef FBT_STEPS_SEARCH_H
#define FBT_STEPS_SEARCH_H

#include "base/log.h"
#include "base/vec.h"
#include "steps/image.h"
#include "steps/resolve.h"
#include "steps/spec.h"
#include "steps/target_options.h"

#define tell_err(search, ...)                                                                      \
	do {                                                                                       \
		if ((search)->options->tells != TARGET_TELLS_NOTHING)                              \
			log_err(__VA_ARGS__);                                                      \
	} while (0)
#define tell_info(search, ...)                                                                     \
	do {                                                                                       \
		if ((search)->options->tells == TARGET_TELLS_ALL)                                  \
			log_info(__VA_ARGS__);                                                     \
	} while (0)
#define tell_warn(search, ...)                                                                     \
	do {                                                                                       \
		if ((search)->options->tells == TARGET_TELLS_ALL)                                  \
			log_warn(__VA_ARGS__);                                                     \
	} while (0)

struct target_seen {
	mapping_vec files;
	VEC(const struct step_spec *) texts; /* that were found, in some file */
	uint64_t spent_ns;		     /* time spent searching them */
	bool gave_up;			     /* the time was over: nothing more is searched */
	bool symbols_checked;		     /* check_symbol_files() has been done */
	bool *symbols_used; /* per --symbols file: it belongs to a mapped file; NULL at first */
};

/* A function that the text of a --step is in. */
struct text_match {
	const struct step_spec *spec;
	struct step_function *function; /* in the functions of the search */
};

struct search {
	uint32_t tgid;
	struct target_options *options;
	struct target_seen *seen;
	function_vec *functions;
	struct image *image;	       /* the current one */
	const struct mapping *mapping; /* of it */
	size_t first;		       /* index of the first function of this image */
	uint64_t exe_inode;	       /* inode of the program; 0: not known */
	size_t images;		       /* number of ELF files opened in this call */
	bool is_starting; /* the program has a loader, which may not have mapped libraries yet */
	VEC(struct text_match) texts;
};

/* Whether a function of the current image is in the result already. */
bool search_is_known(const struct search *search, uint64_t address);

/* Adds a function to the result; frees it on an error. spec NULL: from the built-in table. */
int search_add_function(struct search *search, struct step_function *function,
			const struct step_spec *spec);

/* -ENOTSUP, logged: a uretprobe would crash this program. */
int search_check_go(const struct search *search);

/*
 * Logs why a function cannot be probed. Returns an error only if a --step names it; without one the
 * function is skipped.
 */
int search_explain_resolve(const struct search *search, const struct step_spec *spec,
			   const char *name, int err, const char *reason);

/* --step string:TEXT in the current image. 0 or -errno, logged. */
int search_scan_text(struct search *search, const struct step_spec *spec);

/* Texts of a known engine, in a stripped image. */
int search_scan_known_texts(struct search *search);

/* After all images: whether a text was found in one file only. 0 or -errno, logged. */
int search_check_texts(struct search *search);

#endif
