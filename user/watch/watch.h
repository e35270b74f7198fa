/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* The command watch: a flight recorder that runs for weeks. */
#ifndef FBT_WATCH_WATCH_H
#define FBT_WATCH_WATCH_H

#include "options.h"

/*
 * Watches until SIGINT, SIGTERM or SIGHUP. options are those that argc and argv gave; SIGUSR2 has
 * them, and the configuration file, read again. Takes options over, and leaves them empty. 0, or
 * -errno, logged.
 */
int watch_run(struct options *options, int argc, char **argv);

#endif
