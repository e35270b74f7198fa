/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* A classifier that is given one step after another. */
#ifndef FBT_CLASSIFY_FIXTURE_H
#define FBT_CLASSIFY_FIXTURE_H

#include "judged_fixture.h"

#include "judge/classify.h"

struct fixture {
	struct window *window;
	struct classifier *classifier;
	struct classify_options options;
	uint64_t now_ns;
	uint64_t steps;
	struct escalation last; /* the latest escalation */
};

static inline void begin(struct fixture *fixture)
{
	classifier__free(fixture->classifier);
	fixture->classifier = classifier__new(&fixture->options);
	assert_non_null(fixture->classifier);
	fixture->now_ns = 2 * S;
}

static inline int setup(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	assert_non_null(fixture);
	fixture->window = new_window();
	fixture->options = classify_default_options();
	begin(fixture);
	*state = fixture;
	return 0;
}

static inline int teardown(void **state)
{
	struct fixture *fixture = *state;

	classifier__free(fixture->classifier);
	window__free(fixture->window);
	free(fixture);
	return 0;
}

/* Judges a step that ends now, and frees it. Whether it was escalated, suppressed or not. */
static inline bool push(struct fixture *fixture, struct step step)
{
	const struct escalation *escalation = (const struct escalation *)fixture;

	step.number = ++fixture->steps;
	step.record.end_ns = fixture->now_ns;
	fixture->now_ns += MS;
	assert_int_equal(
		classifier__judge(fixture->classifier, fixture->window, &step, &escalation), 0);
	if (escalation)
		fixture->last = *escalation;
	vec_free(&step.calls);
	return escalation != NULL;
}

/* A step that works, and then waits. */
static inline struct step step_of(uint64_t work_ns, const char *name, uint64_t call_ns)
{
	struct step step = make_step(work_ns + call_ns);

	if (call_ns)
		add_call(&step, name, call_ns)->header.flags |= FBT_CALL_BLOCKED;
	return step;
}

static inline bool push_lock(struct fixture *fixture, uint64_t work_ns, uint64_t lock_ns)
{
	return push(fixture, step_of(work_ns, "futex", lock_ns));
}

/* So many steps of 20 ms of work and 0.1 ms on a lock: none of them is escalated. */
static inline void push_steady(struct fixture *fixture, int count)
{
	for (int i = 0; i < count; i++)
		assert_false(push_lock(fixture, 20 * MS, 100 * US));
}

static inline uint32_t bit(enum escalation_reason reason)
{
	return 1u << reason;
}

/* Waits of 0, 1, … 20 ms on 20 ms of work: CV 20 %. */
static inline void push_uneven(struct fixture *fixture, uint64_t count)
{
	for (uint64_t i = 0; i < count; i++)
		push_lock(fixture, 20 * MS, i * 13 % 21 * MS);
}

#endif
