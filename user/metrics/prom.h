/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Metrics in the text format of Prometheus, version 0.0.4, as node_exporter's textfile collector
 * reads it: HELP, TYPE and UNIT (a comment to 0.0.4), no timestamps, no exemplars, no EOF. Pure.
 */
#ifndef FBT_METRICS_PROM_H
#define FBT_METRICS_PROM_H

#include <stdio.h>
#include "metrics/catalog.h"

/* Errors show in ferror(out). */
void prom_write(FILE *out, const struct metrics_tally *tally, const struct metrics_run *run);

#endif
