/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Metrics as an ExportMetricsServiceRequest of OTLP/JSON (opentelemetry-proto 1.x): cumulative sums
 * since the start of the tool, gauges, and exponential histograms. Names have no unit and no
 * _total, which a collector's Prometheus exporter adds. Pure.
 */
#ifndef FBT_METRICS_OTLP_H
#define FBT_METRICS_OTLP_H

#include "base/json.h"
#include "metrics/catalog.h"

/* Whose values they are. */
struct otlp_metrics_source {
	const char *service; /* service.name; NULL or "": ferrum-bpftrace */
	const char *host;
	/*
	 * service.instance.id: what is sent under one of them counts as one stream, so no other
	 * tool that runs has it.
	 */
	const char *instance;
};

void otlp_metrics_write(struct json *json, const struct metrics_tally *tally,
			const struct metrics_run *run, const struct otlp_metrics_source *source);

#endif
