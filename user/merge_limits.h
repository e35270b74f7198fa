/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* How long merge waits, and how much it holds. */
#ifndef FBT_MERGE_LIMITS_H
#define FBT_MERGE_LIMITS_H

#define MERGE_TIMEOUT_NS 2000000000ull
/* Held at most: steps of all processes, and GPU records of each. */
#define MERGE_STEPS_MAX	  4096
#define MERGE_RECORDS_MAX 262144
/* … and calls of the steps that are held. */
#define MERGE_CALLS_MAX 1048576

#endif
