/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * How CUPTI is set while it collects for us: its attributes and the numbers it gives to threads.
 * Others in the process rely on what they were.
 */
#ifndef FERRUM_SETTINGS_H
#define FERRUM_SETTINGS_H

#include "shim.h"

/* Before any kind is enabled. What cannot be set stays as it is. */
void settings__change(struct shim *shim);

/* What was changed, but for what CUPTI takes only once. */
void settings__put_back(struct shim *shim);

#endif
