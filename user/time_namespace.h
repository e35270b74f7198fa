/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* What CLOCK_MONOTONIC of a process in a time namespace differs by (time_namespaces(7)). */
#ifndef FBT_TIME_NAMESPACE_H
#define FBT_TIME_NAMESPACE_H

#include <stdbool.h>
#include <stdint.h>

/* Nanoseconds that the process's clock is ahead of ours; 0 also if that cannot be read. */
int64_t time_namespace_offset(uint32_t tgid);

/* The offset of a line of /proc/PID/timens_offsets; false if it is not of CLOCK_MONOTONIC. */
bool time_namespace_parse(const char *line, int64_t *offset_ns);

#endif
