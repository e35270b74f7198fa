/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "kernel/senders.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "signals.skel.h"

struct senders {
	struct signals_bpf *skel;
	const volatile struct fbt_stop_note *notes; /* FBT_STOP_NOTES */
};

#define NOTES_SIZE (FBT_STOP_NOTES * sizeof(struct fbt_stop_note))
_Static_assert(sizeof(struct fbt_stop_note) % 8 == 0, "the kernel rounds up to 8 bytes");

static int load(struct senders *senders)
{
	void *address;

	senders->skel = signals_bpf__open_and_load();
	if (!senders->skel)
		return -errno;
	address = mmap(NULL, NOTES_SIZE, PROT_READ, MAP_SHARED,
		       bpf_map__fd(senders->skel->maps.stop_notes), 0);
	if (address == MAP_FAILED)
		return -errno;
	senders->notes = address;
	return 0;
}

int senders__new(struct senders **result)
{
	struct senders *senders = calloc(1, sizeof(*senders));
	int err;

	*result = NULL;
	if (!senders)
		return -ENOMEM;
	err = load(senders);
	if (err) {
		senders__free(senders);
		return err;
	}
	*result = senders;
	return 0;
}

void senders__free(struct senders *senders)
{
	if (!senders)
		return;
	if (senders->notes)
		munmap((void *)senders->notes, NOTES_SIZE);
	signals_bpf__destroy(senders->skel);
	free(senders);
}

int senders__attach(struct senders *senders)
{
	return senders ? signals_bpf__attach(senders->skel) : 0;
}

void senders__detach(struct senders *senders)
{
	if (senders)
		signals_bpf__detach(senders->skel);
}

/* False: it was written meanwhile. */
static bool read_note(const volatile struct fbt_stop_note *note, struct fbt_stop_note *copy)
{
	uint32_t changes = __atomic_load_n(&note->changes, __ATOMIC_ACQUIRE);

	*copy = *note;
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return !(changes & 1) && __atomic_load_n(&note->changes, __ATOMIC_RELAXED) == changes;
}

bool senders__find(const struct senders *senders, uint32_t tgid, uint64_t seen_ns,
		   struct fbt_stop_sender *sender)
{
	struct fbt_stop_note note;

	if (!senders || !read_note(&senders->notes[tgid % FBT_STOP_NOTES], &note))
		return false;
	if (note.sender.tgid != tgid || note.sender.time_ns > seen_ns ||
	    (note.ended_ns && note.ended_ns < seen_ns) || note.sender.origin >= FBT_SENDER_ORIGINS)
		return false;
	*sender = note.sender;
	return true;
}
