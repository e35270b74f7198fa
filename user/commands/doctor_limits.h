/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* The limits of a process's cgroups, as lines of doctor: none where there is no limit. Pure. */
#ifndef FBT_COMMANDS_DOCTOR_LIMITS_H
#define FBT_COMMANDS_DOCTOR_LIMITS_H

#include "base/findings.h"
#include "proc/cgroup.h"

void doctor_limits_judge(const struct cgroup_limits *limits, struct findings *checks);

#endif
