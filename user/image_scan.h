/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* The step functions in one mapped file. */
#ifndef FBT_IMAGE_SCAN_H
#define FBT_IMAGE_SCAN_H

#include "image.h"
#include "step_function.h"
#include "target_options.h"

/*
 * Appends to functions what options ask for in image. 0 (also if that is nothing) or -errno,
 * logged, or -ETIMEDOUT, not logged: the options' deadline is over. What was appended before a
 * failure stays.
 */
int image_scan(struct image *image, uint32_t tgid, const struct target_options *options,
	       function_vec *functions);

/* Whether spec may mean this file: it names no path, or this one. */
bool image_scan_wants(const struct step_spec *spec, uint32_t tgid, const char *mapped_path,
		      uint64_t inode);

#endif
