/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "gpu_owner.h"

#include <stdlib.h>

#include "gpu_timeline.h"
#include "vec.h"

struct span {
	uint64_t number;
	uint64_t start_ns;
	uint64_t end_ns;
	uint32_t tid;
	bool whole; /* an interval: of all threads */
	bool sealed;
};

struct thread_end {
	uint32_t tid;
	uint64_t end_ns; /* of its last step */
};

struct gpu_owner {
	bool strict;
	struct gpu_timeline *spans; /* of struct span: many, where one thread's steps are rare */
	VEC(struct thread_end) threads;
	uint64_t latest_ns; /* end of any step */
	uint64_t sealed_ns; /* … that is sealed */
	struct span selected;
	struct span *own;	 /* the same, as it is kept; NULL: it is not any more */
	VEC(struct span) rivals; /* that overlap the selected one */
};

struct gpu_owner *gpu_owner__new(bool strict)
{
	struct gpu_owner *owner = calloc(1, sizeof(*owner));

	if (!owner)
		return NULL;
	owner->strict = strict;
	owner->spans = gpu_timeline__new();
	if (owner->spans)
		return owner;
	free(owner);
	return NULL;
}

static void drop_first(struct gpu_owner *owner)
{
	struct span *span = gpu_timeline__first(owner->spans)->record;

	gpu_timeline__drop_first(owner->spans);
	if (span == owner->own)
		owner->own = NULL;
	free(span);
}

void gpu_owner__free(struct gpu_owner *owner)
{
	if (!owner)
		return;
	while (gpu_timeline__count(owner->spans))
		drop_first(owner);
	gpu_timeline__free(owner->spans);
	vec_free(&owner->threads);
	vec_free(&owner->rivals);
	free(owner);
}

static struct span span_of(const struct step *step)
{
	const struct fbt_step *record = &step->record;

	return (struct span){.number = step->number,
			     .start_ns = record->start_ns,
			     .end_ns = record->end_ns,
			     .tid = record->tid,
			     .whole = record->kind == 0};
}

static bool is_idle(const struct gpu_owner *owner, const struct thread_end *thread)
{
	return owner->latest_ns - thread->end_ns > OWNER_IDLE_NS;
}

static const struct thread_end *find_thread(const struct gpu_owner *owner, uint32_t tid)
{
	vec_for_each (thread, &owner->threads) {
		if (thread->tid == tid)
			return thread;
	}
	return NULL;
}

/* Threads come and go: one that is idle gives its place away. */
static int note_end(struct gpu_owner *owner, uint32_t tid, uint64_t end_ns)
{
	struct thread_end *place = NULL;

	if (end_ns > owner->latest_ns)
		owner->latest_ns = end_ns;
	vec_for_each (thread, &owner->threads) {
		if (thread->tid == tid) {
			place = thread;
			break;
		}
		if (is_idle(owner, thread))
			place = thread;
	}
	if (!place)
		return vec_push(&owner->threads, ((struct thread_end){tid, end_ns}));
	if (place->tid != tid || end_ns > place->end_ns)
		*place = (struct thread_end){tid, end_ns};
	return 0;
}

int gpu_owner__add(struct gpu_owner *owner, const struct step *step)
{
	struct span *span = malloc(sizeof(*span));

	if (!span)
		return -ENOMEM;
	*span = span_of(step);
	if (note_end(owner, span->tid, span->end_ns) ||
	    gpu_timeline__insert(owner->spans, span->start_ns, span->end_ns, span)) {
		free(span);
		return -ENOMEM;
	}
	return 0;
}

int gpu_owner__select(struct gpu_owner *owner, const struct step *step)
{
	struct gpu_timeline_cursor cursor =
		gpu_timeline__overlapping(owner->spans, step->record.start_ns, step->record.end_ns);
	const struct gpu_timeline_entry *entry;
	int err = 0;

	owner->selected = span_of(step);
	owner->own = NULL;
	owner->rivals.count = 0;
	while (!err && (entry = gpu_timeline__next(&cursor))) {
		struct span *span = entry->record;

		if (span->number == owner->selected.number)
			owner->own = span;
		else
			err = vec_push(&owner->rivals, *span);
	}
	return err;
}

static bool holds(const struct span *span, uint64_t time_ns)
{
	return time_ns >= span->start_ns && time_ns < span->end_ns;
}

void gpu_owner__seal(struct gpu_owner *owner)
{
	if (owner->own)
		owner->own->sealed = true;
	if (owner->selected.end_ns > owner->sealed_ns)
		owner->sealed_ns = owner->selected.end_ns;
}

bool gpu_owner__is_late(const struct gpu_owner *owner, uint32_t tid, uint64_t time_ns)
{
	struct gpu_timeline_cursor cursor;
	const struct gpu_timeline_entry *entry;

	if (time_ns >= owner->sealed_ns)
		return false;
	cursor = gpu_timeline__overlapping(owner->spans, time_ns, time_ns + 1);
	while ((entry = gpu_timeline__next(&cursor))) {
		const struct span *span = entry->record;

		if (span->sealed && (span->whole || span->tid == tid) && holds(span, time_ns))
			return true;
	}
	return false;
}

/* It belongs to another step of its own thread, or to one that has not ended. */
static bool is_of_other_step(const struct gpu_owner *owner, uint32_t tid, uint64_t time_ns)
{
	const struct thread_end *thread = find_thread(owner, tid);

	if (!thread || is_idle(owner, thread))
		return false;
	if (time_ns >= thread->end_ns)
		return true;
	vec_for_each (rival, &owner->rivals) {
		if (rival->tid == tid && holds(rival, time_ns))
			return true;
	}
	return false;
}

bool gpu_owner__has_alone(const struct gpu_owner *owner, uint32_t tid, uint64_t time_ns)
{
	return holds(&owner->selected, time_ns) &&
	       (owner->selected.whole || (tid && tid == owner->selected.tid));
}

bool gpu_owner__has(const struct gpu_owner *owner, uint32_t tid, uint64_t time_ns)
{
	const struct span *selected = &owner->selected;

	if (!holds(selected, time_ns))
		return false;
	if (gpu_owner__has_alone(owner, tid, time_ns))
		return true;
	if (owner->strict || (tid && is_of_other_step(owner, tid, time_ns)))
		return false;
	vec_for_each (rival, &owner->rivals) {
		if (holds(rival, time_ns) &&
		    (rival->start_ns > selected->start_ns ||
		     (rival->start_ns == selected->start_ns && rival->number > selected->number)))
			return false;
	}
	return true;
}

uint64_t gpu_owner__next_start(const struct gpu_owner *owner)
{
	uint64_t earliest_ns = owner->latest_ns;

	vec_for_each (thread, &owner->threads) {
		if (!is_idle(owner, thread) && thread->end_ns < earliest_ns)
			earliest_ns = thread->end_ns;
	}
	return earliest_ns;
}

void gpu_owner__forget(struct gpu_owner *owner, uint64_t until_ns)
{
	const struct gpu_timeline_entry *first;

	while ((first = gpu_timeline__first(owner->spans)) && first->end_ns <= until_ns)
		drop_first(owner);
}
