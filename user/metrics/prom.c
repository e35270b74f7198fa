/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "metrics/prom.h"

#include <inttypes.h>

#include "base/clock.h"
#include "base/text.h"

struct prom {
	FILE *out;
	const struct metric *metric;
	char name[METRIC_NAME_SIZE];
};

/* A label. Readers refuse the whole file for one that is not UTF-8. */
static void write_value(FILE *out, const char *value)
{
	while (*value) {
		size_t bad = 1, length = utf8_length(value, &bad);

		if (!length)
			fputs("\xef\xbf\xbd", out);
		else if (*value == '\n')
			fputs("\\n", out);
		else
			fprintf(out, "%s%.*s", *value == '\\' || *value == '"' ? "\\" : "",
				(int)length, value);
		value += length ? length : bad;
	}
}

static void write_name(const struct prom *prom, const char *suffix,
		       const struct metric_point *point, const char *bound)
{
	fprintf(prom->out, "%s%s{", prom->name, suffix);
	for (size_t i = 0; i < point->label_count; i++) {
		fprintf(prom->out, "%s%s=\"", i ? "," : "", point->labels[i].name);
		write_value(prom->out, point->labels[i].value);
		fputc('"', prom->out);
	}
	fprintf(prom->out, "%s%s%s} ", bound ? ",le=\"" : "", bound ? bound : "",
		bound ? "\"" : "");
}

static void write_seconds(FILE *out, uint64_t ns)
{
	fprintf(out, "%" PRIu64 ".%09" PRIu64 "\n", ns / NS_PER_S, ns % NS_PER_S);
}

static void write_histogram(const struct prom *prom, const struct metric_point *point)
{
	char bound[32];

	for (int i = 0; i < CLASSIC_BUCKETS; i++) {
		snprintf(bound, sizeof(bound), "%.9g", classic_bound(i));
		write_name(prom, "_bucket", point, bound);
		fprintf(prom->out, "%" PRIu64 "\n", classic_count(point->times, i));
	}
	write_name(prom, "_bucket", point, "+Inf");
	fprintf(prom->out, "%" PRIu64 "\n", point->times->count);
	write_name(prom, "_sum", point, NULL);
	write_seconds(prom->out, point->times->sum_ns);
	write_name(prom, "_count", point, NULL);
	fprintf(prom->out, "%" PRIu64 "\n", point->times->count);
}

static void write_point(void *ctx, const struct metric_point *point)
{
	const struct prom *prom = ctx;

	if (prom->metric->type == METRIC_HISTOGRAM) {
		write_histogram(prom, point);
		return;
	}
	write_name(prom, "", point, NULL);
	if (prom->metric->unit[0] == 's')
		write_seconds(prom->out, point->ns);
	else
		fprintf(prom->out, "%" PRIu64 "\n", point->count);
}

void prom_write(FILE *out, const struct metrics_tally *tally, const struct metrics_run *run)
{
	for (size_t i = 0; i < metric_catalog_count; i++) {
		struct prom prom = {.out = out, .metric = &metric_catalog[i]};

		metric_full_name(prom.metric, prom.name);
		fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", prom.name, prom.metric->help,
			prom.name, metric_type_name(prom.metric->type));
		if (*prom.metric->unit)
			fprintf(out, "# UNIT %s %s\n", prom.name, prom.metric->unit);
		prom.metric->list(tally, run, write_point, &prom);
	}
}
