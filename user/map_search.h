/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Whether a process has a certain file in its memory. */
#ifndef FBT_MAP_SEARCH_H
#define FBT_MAP_SEARCH_H

#include "maps.h"

/*
 * Whether is_wanted says so of a mapping, executable or not, whose line in /proc/PID/maps holds
 * part; its path may be NULL. false also if that file cannot be read; without a message.
 */
bool map_search(uint32_t tgid, const char *part,
		bool (*is_wanted)(const struct mapping *mapping, const void *ctx), const void *ctx);

#endif
