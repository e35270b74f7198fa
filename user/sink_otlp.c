/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "sink_otlp.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include "clock.h"
#include "log.h"
#include "otlp_client.h"
#include "otlp_span.h"

struct otlp_sink {
	struct sink sink;
	const struct otlp_endpoint *endpoint;
	const char *service;
	struct otlp_client *client;
};

static struct otlp_sink *to_otlp(struct sink *sink)
{
	return (struct otlp_sink *)sink;
}

static int poll_client(struct sink *sink)
{
	return otlp_client__poll(to_otlp(sink)->client, clock_ns(CLOCK_MONOTONIC));
}

static int write_escalation(struct sink *sink, const struct window *window, const struct step *step,
			    const struct escalation *escalation)
{
	struct otlp_sink *otlp = to_otlp(sink);
	struct otlp_span_ids ids;
	char *text = NULL;
	size_t size = 0;
	struct json json = {0};
	uint32_t spans;
	bool failed;
	int err;

	if (!escalation_is_shown(escalation))
		return 0;
	if (getrandom(&ids, sizeof(ids), 0) != sizeof(ids))
		return -EIO;
	json.out = open_memstream(&text, &size);
	if (!json.out)
		return -ENOMEM;
	spans = otlp_span_write(&json, window, step, escalation, otlp->service, &ids);
	failed = ferror(json.out);
	if (fclose(json.out) || failed) {
		free(text);
		return -ENOMEM;
	}
	err = otlp_client__queue(otlp->client, text, size, spans);
	return err ? err : poll_client(sink);
}

static void wait_for_collector(struct sink *sink)
{
	struct otlp_sink *otlp = to_otlp(sink);
	const struct otlp_counts *counts = otlp_client__counts(otlp->client);
	const char *label = otlp->endpoint->label;

	otlp_client__finish(otlp->client);
	if (counts->rejected_spans)
		log_warn("otlp: %s rejected %llu spans", label,
			 (unsigned long long)counts->rejected_spans);
	if (counts->sent < counts->queued)
		log_warn("otlp: %llu of %llu escalations were not sent: %s: %s",
			 (unsigned long long)(counts->queued - counts->sent),
			 (unsigned long long)counts->queued, label,
			 otlp_client__reason(otlp->client));
	else if (counts->sent)
		log_info("otlp: %llu of %llu escalations were sent to %s",
			 (unsigned long long)counts->sent, (unsigned long long)counts->queued,
			 label);
}

static void free_sink(struct sink *sink)
{
	if (!sink)
		return;
	otlp_client__free(to_otlp(sink)->client);
	free(sink);
}

struct sink *sink_otlp__new(const struct otlp_endpoint *endpoint, const char *service, bool hurry)
{
	struct otlp_sink *otlp = calloc(1, sizeof(*otlp));
	struct otlp_limits limits = otlp_default_limits();

	if (!otlp)
		return NULL;
	if (hurry)
		limits.finish_ns = limits.finish_failed_ns;
	otlp->sink = (struct sink){
		.name = "otlp",
		.write_escalation = write_escalation,
		.poll = poll_client,
		.wait = wait_for_collector,
		.free = free_sink,
	};
	otlp->endpoint = endpoint;
	otlp->service = service;
	otlp->client = otlp_client__new(endpoint, &limits);
	if (!otlp->client) {
		free(otlp);
		return NULL;
	}
	return &otlp->sink;
}
