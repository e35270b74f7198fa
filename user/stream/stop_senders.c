/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "stream/stop_senders.h"

#include <stdlib.h>

struct stop_senders {
	const struct senders *from;
	const struct record_output *output;
	/* When the signal that was told last was sent, at the place of the note. */
	uint64_t told_ns[FBT_STOP_NOTES];
};

struct stop_senders *stop_senders__new(const struct senders *from,
				       const struct record_output *output)
{
	struct stop_senders *senders = calloc(1, sizeof(*senders));

	if (!senders)
		return NULL;
	senders->from = from;
	senders->output = output;
	return senders;
}

void stop_senders__free(struct stop_senders *senders)
{
	free(senders);
}

void stop_senders__tell(struct stop_senders *senders, uint32_t tgid, uint64_t seen_ns)
{
	struct fbt_stop_sender record;
	uint64_t *told_ns;

	if (!senders || !senders__find(senders->from, tgid, seen_ns, &record))
		return;
	told_ns = &senders->told_ns[tgid % FBT_STOP_NOTES];
	if (*told_ns == record.time_ns)
		return;
	*told_ns = record.time_ns;
	record_send(senders->output, &record, sizeof(record), FBT_EVENT_STOP_SENDER);
}
