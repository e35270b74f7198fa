/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* The GPU side in the report for programs. */
#ifndef FBT_REPORT_JSON_GPU_H
#define FBT_REPORT_JSON_GPU_H

#include "json.h"
#include "report_part.h"

/* A member "gpu" of a step kind: null if none of its steps has GPU figures. */
void report_json_gpu_kind(struct json *json, const struct report *report, uint32_t kind);

/* A member "gpu_processes": how things stand with each process. */
void report_json_gpu_processes(struct json *json, const struct window *window);

#endif
