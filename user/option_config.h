/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * The configuration file of watch. A line is "NAME = VALUE", or "NAME" of an option that has no
 * value; NAME is that of a long option without its dashes. # begins a comment at the start of a
 * line or after white space.
 */
#ifndef FBT_OPTION_CONFIG_H
#define FBT_OPTION_CONFIG_H

#include <stdbool.h>
#include "options.h"

#define OPTION_CONFIG_DEFAULT "/etc/ferrum-bpftrace.conf"

/*
 * Reads path into options, which keep its text. /dev/null is no file; if path does not exist and
 * need not, nothing happens.
 * 0; -EINVAL after one line, "FILE:LINE: reason"; or -ENOMEM.
 */
int option_config_read(struct options *options, const char *path, bool must_exist);

/*
 * Notes an option that was taken, so that tracers are started with it too. Those of watch itself
 * are not noted. 0 or -ENOMEM.
 */
int option_config_note(struct options *options, const char *name, const char *value);

#endif
