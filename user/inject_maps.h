/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * What of files a process has in its memory, with what maps.h leaves out: data too, every piece of
 * a file, and where in the file it begins.
 */
#ifndef FBT_INJECT_MAPS_H
#define FBT_INJECT_MAPS_H

#include "maps.h"

struct inject_mapping {
	struct mapping file; /* its path is never NULL */
	uint64_t offset;     /* in the file */
	bool readable;
	bool writable;
	bool shared;
};

typedef VEC(struct inject_mapping) inject_mapping_vec;

/*
 * Those of /proc/TGID/task/THREAD/maps, in the order of addresses; thread: a living one. The caller
 * frees, whatever is returned. 0; -ESRCH it has none (any more), -EACCES may not be read, -ENOMEM,
 * -errno; without a message.
 */
int inject_maps_read(inject_mapping_vec *maps, uint32_t tgid, uint32_t thread);

/* One line of it: 0, -EBADMSG if it is none, -ENOENT if no file is behind it, -ENOMEM. */
int inject_mapping_parse(struct inject_mapping *mapping, const char *line);

void inject_maps_free(inject_mapping_vec *maps);

/* What follows the last slash of its path. */
const char *inject_mapping_name(const struct inject_mapping *mapping);

#endif
