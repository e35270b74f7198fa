/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* doctor [PID]: what works here, what does not, and how to fix it. */
#ifndef FBT_COMMANDS_DOCTOR_H
#define FBT_COMMANDS_DOCTOR_H

#include <stdbool.h>
#include <stdio.h>
#include "options.h"

/*
 * Checks the machine and the processes of options->pids for a trace with these options, and prints
 * the checks to out as options->report says. Leaves nothing behind and disturbs no process
 * (doctor_room.h). True if -p would work; false also if printing failed, which is logged.
 */
bool doctor(const struct options *options, FILE *out);

#endif
