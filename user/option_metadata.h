/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Options of the metadata in a profile's envelope. */
#ifndef FBT_OPTION_METADATA_H
#define FBT_OPTION_METADATA_H

#include "metadata.h"

/* One --profile-* option: 0, or ARGP_ERR_UNKNOWN if key is another's. Strings are borrowed. */
int option_parse_metadata(struct metadata_options *metadata, int key, const char *arg);

#endif
