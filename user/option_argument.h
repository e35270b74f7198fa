/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* What the program is to do, and the words of the command line that say so. */
#ifndef FBT_OPTION_ARGUMENT_H
#define FBT_OPTION_ARGUMENT_H

#include <stdbool.h>

enum options_mode {
	MODE_TRACE,
	MODE_LIST_STEPS,
	MODE_REPLAY,
	MODE_VALIDATE,
	MODE_ENV_HASH,
	MODE_GPU_ENV,
	MODE_DRY_RUN,
	MODE_DOCTOR,
};

/* Whether arg, the first word that is no option, is a command; *mode is set only then. */
bool option_argument_is_command(const char *arg, enum options_mode *mode);

#endif
