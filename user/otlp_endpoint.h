/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Where spans go: the URL of --otlp, and the headers of OTEL_EXPORTER_OTLP_HEADERS. */
#ifndef FBT_OTLP_ENDPOINT_H
#define FBT_OTLP_ENDPOINT_H

#include <stdbool.h>
#include <stdint.h>
#include "vec.h"

/* What the clients of an endpoint tell each other of it. */
struct otlp_health {
	uint64_t gave_up_ns; /* when one last waited in vain; 0: something was taken since */
};

/* Zero-initialised is none. */
struct otlp_endpoint {
	char *url;	     /* with the path of traces */
	char *label;	     /* for messages: without the query, which may hold a key */
	VEC(char *) headers; /* "Name: value"; often a key: never shown */
	struct otlp_health *health;
	bool has_port_of_rpc; /* 4317: there usually listens OTLP/gRPC, which this is not */
};

/*
 * http:// or https://, a host, a path. Without a path it is /v1/traces, as the OTLP specification
 * has it; a path is taken as it is. No user or password, no fragment. 0; -EINVAL with one line
 * logged; -ENOMEM.
 */
int otlp_endpoint_parse(struct otlp_endpoint *endpoint, const char *url);

/*
 * NAME=VALUE,NAME=VALUE, values percent-encoded, as the OpenTelemetry specification of exporters
 * has it. Entries that are not sound, and headers that are ours to write, are left out with a
 * warning that shows nothing of them. 0 or -ENOMEM.
 */
int otlp_endpoint_add_headers(struct otlp_endpoint *endpoint, const char *text);

void otlp_endpoint_clear(struct otlp_endpoint *endpoint);

#endif
