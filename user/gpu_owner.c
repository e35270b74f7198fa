/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "gpu_owner.h"

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
	VEC(struct span) spans; /* in the order they came: by end, nearly */
	VEC(struct thread_end) threads;
	uint64_t latest_ns; /* end of any step */
	uint64_t sealed_ns; /* … that is sealed */
	struct span selected;
	VEC(struct span) rivals; /* that overlap the selected one */
};

struct gpu_owner *gpu_owner__new(bool strict)
{
	struct gpu_owner *owner = calloc(1, sizeof(*owner));

	if (owner)
		owner->strict = strict;
	return owner;
}

void gpu_owner__free(struct gpu_owner *owner)
{
	if (!owner)
		return;
	vec_free(&owner->spans);
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
	int err = vec_push(&owner->spans, span_of(step));

	if (err)
		return err;
	err = note_end(owner, step->record.tid, step->record.end_ns);
	if (err)
		owner->spans.count--;
	return err;
}

int gpu_owner__select(struct gpu_owner *owner, const struct step *step)
{
	int err;

	owner->selected = span_of(step);
	owner->rivals.count = 0;
	vec_for_each (span, &owner->spans) {
		if (span->number == owner->selected.number ||
		    span->start_ns >= owner->selected.end_ns ||
		    span->end_ns <= owner->selected.start_ns)
			continue;
		err = vec_push(&owner->rivals, *span);
		if (err)
			return err;
	}
	return 0;
}

static bool holds(const struct span *span, uint64_t time_ns)
{
	return time_ns >= span->start_ns && time_ns < span->end_ns;
}

void gpu_owner__seal(struct gpu_owner *owner)
{
	vec_for_each (span, &owner->spans) {
		if (span->number == owner->selected.number)
			span->sealed = true;
	}
	if (owner->selected.end_ns > owner->sealed_ns)
		owner->sealed_ns = owner->selected.end_ns;
}

bool gpu_owner__is_late(const struct gpu_owner *owner, uint32_t tid, uint64_t time_ns)
{
	if (time_ns >= owner->sealed_ns)
		return false;
	vec_for_each (span, &owner->spans) {
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
	size_t kept = 0;

	vec_for_each (span, &owner->spans) {
		if (span->end_ns > until_ns)
			owner->spans.items[kept++] = *span;
	}
	owner->spans.count = kept;
}
