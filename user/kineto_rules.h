/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * What HolisticTraceAnalysis and Chakra's loader rely on in a Kineto trace, and this program keeps:
 * events with the fields of their phase; one host event a correlation; work of devices, and nothing
 * else, with args.stream; work with a correlation only where its call is in the file; arrows with
 * both ends.
 */
#ifndef FBT_KINETO_RULES_H
#define FBT_KINETO_RULES_H

#include <stddef.h>
#include "json_read.h"

struct kineto_rules;

struct kineto_rules *kineto_rules__new(void); /* NULL: -ENOMEM */
void kineto_rules__free(struct kineto_rules *rules);

/* The next event. 0; -EBADMSG with error filled, cut to size; or -ENOMEM. */
int kineto_rules__check(struct kineto_rules *rules, struct json_object *event, char *error,
			size_t size);

/* All events were seen. 0, or -EBADMSG with error filled. */
int kineto_rules__finish(const struct kineto_rules *rules, char *error, size_t size);

#endif
