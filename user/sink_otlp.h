/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Sends each escalation that is shown to a collector. What the collector does wrong never is an
 * error of this sink: it is said, counted, and told again at the end.
 */
#ifndef FBT_SINK_OTLP_H
#define FBT_SINK_OTLP_H

#include "otlp_endpoint.h"
#include "sink.h"

/*
 * endpoint and service (as for otlp_span_write) are borrowed. hurry: finish waits for a second
 * instead of five, because another window may begin meanwhile. NULL: -ENOMEM.
 */
struct sink *sink_otlp__new(const struct otlp_endpoint *endpoint, const char *service, bool hurry);

#endif
