/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Where spans go: the URL of --otlp, and the headers of OTEL_EXPORTER_OTLP_HEADERS. */
#ifndef FBT_OTLP_ENDPOINT_H
#define FBT_OTLP_ENDPOINT_H

#include <stdbool.h>
#include <stdint.h>
#include "base/vec.h"

/* All zero: no endpoint. */
struct otlp_endpoint {
	char *url;	      /* with the path of traces */
	char *label;	      /* for messages; without the query, which may hold a key */
	VEC(char *) headers;  /* "Name: value"; often keys, so never shown */
	long timeout_ms;      /* limit of all waits for it; 0: the defaults */
	bool has_port_of_rpc; /* 4317, the usual port of OTLP/gRPC */
};

/*
 * Parses http:// or https://, a host, a path. The default path is /v1/traces, as in the OTLP
 * specification; a given path is used as it is. No user or password, no fragment. 0; -EINVAL,
 * logged; -ENOMEM.
 */
int otlp_endpoint_parse(struct otlp_endpoint *endpoint, const char *url);

/*
 * Where metrics go, if traces go to the other one: the same, with /v1/metrics in place of
 * /v1/traces. given: OTEL_EXPORTER_OTLP_METRICS_ENDPOINT, used as it is; or NULL. 0; -EINVAL,
 * logged: the path of traces is another one, and nothing is given; -ENOMEM. Add the headers after.
 */
int otlp_endpoint_for_metrics(struct otlp_endpoint *endpoint, const struct otlp_endpoint *traces,
			      const char *given);

/*
 * Adds NAME=VALUE,NAME=VALUE, with values percent-encoded as in the OpenTelemetry specification of
 * exporters. Invalid entries, and headers that we write ourselves, are left out with a warning that
 * does not show them. 0 or -ENOMEM.
 */
int otlp_endpoint_add_headers(struct otlp_endpoint *endpoint, const char *text);

/*
 * OTEL_EXPORTER_OTLP_TIMEOUT: milliseconds, as in the OpenTelemetry specification of exporters. An
 * invalid value is ignored with a warning.
 */
void otlp_endpoint_set_timeout(struct otlp_endpoint *endpoint, const char *text);

void otlp_endpoint_clear(struct otlp_endpoint *endpoint);

#endif
