/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "judged_fixture.h"

#include "judge/evidence.h"
#include "model/gpu.h"

#define SHOWN_MAX 20000

struct fixture {
	struct window *window;
	struct evidence *evidence;
	uint64_t shown[SHOWN_MAX]; /* numbers of the steps, in the order in which they were shown */
	size_t calls[SHOWN_MAX];
	size_t count;
	uint64_t pushed;
	uint16_t flags;	     /* FBT_STEP_… of the next steps */
	bool fails;	     /* the receiver fails, with the step's number as error */
	struct step_gpu gpu; /* figures of the step that is pushed; only valid during the push */
};

static int keep_calls(void *ctx, const struct window *window, const struct step *step)
{
	struct fixture *fixture = ctx;

	assert_ptr_equal(window, fixture->window);
	assert_true(fixture->count < SHOWN_MAX);
	for (size_t i = 0; i < step->calls.count; i++)
		assert_int_equal(step->calls.items[i].nr, step->number);
	/* A step that was held back has no figures any more when it is shown. */
	assert_ptr_equal(step->gpu, step->number == fixture->pushed ? &fixture->gpu : NULL);
	fixture->calls[fixture->count] = step->calls.count;
	fixture->shown[fixture->count++] = step->number;
	return fixture->fails ? -(int)step->number : 0;
}

static void begin(struct fixture *fixture, uint32_t context)
{
	evidence__free(fixture->evidence);
	fixture->evidence = evidence__new(context, keep_calls, fixture);
	assert_non_null(fixture->evidence);
	fixture->count = 0;
	fixture->pushed = 0;
}

static int setup(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	assert_non_null(fixture);
	fixture->window = new_window();
	begin(fixture, 1);
	*state = fixture;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *fixture = *state;

	evidence__free(fixture->evidence);
	window__free(fixture->window);
	free(fixture);
	return 0;
}

/*
 * Pushes the next step. Each of its calls has the step's number as call number. The calls are freed
 * afterwards, as the assembler does.
 */
static int push_step(struct fixture *fixture, uint32_t tgid, uint32_t tid, uint64_t kind_number,
		     size_t calls, bool escalated)
{
	struct step step = {
		.number = ++fixture->pushed,
		.kind_number = kind_number,
		.record = {.header.flags = fixture->flags, .tgid = tgid, .tid = tid, .kind = 1},
		.gpu = &fixture->gpu};
	struct fbt_call call = {.nr = (uint32_t)step.number};
	int err;

	for (size_t i = 0; i < calls; i++)
		assert_int_equal(vec_push(&step.calls, call), 0);
	err = evidence__push(fixture->evidence, fixture->window, &step, escalated);
	vec_free(&step.calls);
	return err;
}

static void push(struct fixture *fixture, uint32_t tid, bool escalated)
{
	assert_int_equal(push_step(fixture, 7, tid, 100, 2, escalated), 0);
}

/* Pushes a step of thread 7 for each character. E: escalated. f: among the first of its kind. */
static void play(struct fixture *fixture, const char *steps)
{
	for (; *steps; steps++)
		assert_int_equal(push_step(fixture, 7, 7, *steps == 'f' ? EVIDENCE_FIRST : 100, 2,
					   *steps == 'E'),
				 0);
}

static void assert_shown(const struct fixture *fixture, size_t count, const uint64_t *numbers)
{
	assert_int_equal(fixture->count, count);
	for (size_t i = 0; i < count; i++) {
		assert_int_equal(fixture->shown[i], numbers[i]);
		assert_int_equal(fixture->calls[i], 2);
	}
}

#define SHOWN(...)                                                                                 \
	sizeof((uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t), (const uint64_t[])                   \
	{                                                                                          \
		__VA_ARGS__                                                                        \
	}

static void steps_that_are_not_escalated_are_not_shown(void **state)
{
	struct fixture *fixture = *state;

	play(fixture, "----------");
	assert_int_equal(fixture->count, 0);
}

static void the_first_steps_of_a_kind_are_shown(void **state)
{
	struct fixture *fixture = *state;

	for (uint64_t i = 1; i < 10; i++)
		assert_int_equal(push_step(fixture, 7, 7, i, 2, false), 0);
	assert_shown(fixture, SHOWN(1, 2, 3));
}

static void steps_in_which_pytorch_was_profiled_are_shown(void **state)
{
	struct fixture *fixture = *state;

	fixture->flags = FBT_STEP_PROFILED;
	play(fixture, "--");
	fixture->flags = 0;
	play(fixture, "--");
	assert_shown(fixture, SHOWN(1, 2));
}

static void an_escalated_step_is_shown_between_its_neighbours(void **state)
{
	struct fixture *fixture = *state;

	play(fixture, "-----E-----");
	assert_shown(fixture, SHOWN(5, 6, 7));
}

static void without_context_the_step_alone_is_shown(void **state)
{
	struct fixture *fixture = *state;

	begin(fixture, 0);
	play(fixture, "-----E-----E");
	assert_shown(fixture, SHOWN(6, 12));
}

static void as_much_context_as_asked_for_is_shown(void **state)
{
	struct fixture *fixture = *state;

	begin(fixture, 3);
	play(fixture, "-E------E-----");
	assert_shown(fixture, SHOWN(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12));
	begin(fixture, 3);
	play(fixture, "-E-------E----------");
	assert_shown(fixture, SHOWN(1, 2, 3, 4, 5, 7, 8, 9, 10, 11, 12, 13));
}

static void escalated_steps_in_a_row_are_shown_once(void **state)
{
	struct fixture *fixture = *state;

	play(fixture, "--EEE--E-E--");
	assert_shown(fixture, SHOWN(2, 3, 4, 5, 6, 7, 8, 9, 10, 11));
}

/* Step 2 is the context of step 3 and was already shown. Step 1 is too far away. */
static void a_step_shown_in_between_is_context_too(void **state)
{
	struct fixture *fixture = *state;

	play(fixture, "-fE");
	assert_shown(fixture, SHOWN(2, 3));
	begin(fixture, 2);
	play(fixture, "--f-E");
	assert_shown(fixture, SHOWN(3, 4, 5));
	begin(fixture, 2);
	play(fixture, "-ff--E");
	assert_shown(fixture, SHOWN(2, 3, 4, 5, 6));
}

static void the_first_of_a_kind_may_be_context(void **state)
{
	struct fixture *fixture = *state;

	begin(fixture, 2);
	play(fixture, "-Ef---");
	assert_shown(fixture, SHOWN(1, 2, 3, 4));
}

static void context_is_of_the_same_thread(void **state)
{
	struct fixture *fixture = *state;

	push(fixture, 8, false);
	push(fixture, 9, false);
	push(fixture, 8, true);
	push(fixture, 9, false);
	push(fixture, 9, false);
	push(fixture, 8, false);
	push(fixture, 8, false);
	assert_shown(fixture, SHOWN(1, 3, 6));
}

static void a_thread_number_used_again_is_another_thread(void **state)
{
	struct fixture *fixture = *state;

	assert_int_equal(push_step(fixture, 7, 8, 100, 2, false), 0);
	assert_int_equal(push_step(fixture, 6, 8, 100, 2, true), 0);
	assert_int_equal(push_step(fixture, 7, 8, 100, 2, false), 0);
	assert_int_equal(push_step(fixture, 7, 8, 100, 2, false), 0);
	assert_shown(fixture, SHOWN(2));
}

static void with_detail_all_everything_is_shown(void **state)
{
	struct fixture *fixture = *state;

	fixture->window->record.detail = FBT_DETAIL_ALL;
	play(fixture, "--E--");
	assert_shown(fixture, SHOWN(1, 2, 3, 4, 5));
}

static void steps_keep_their_calls_unless_they_are_held(void **state)
{
	struct fixture *fixture = *state;
	struct step step = {.kind_number = 1, .gpu = &fixture->gpu};

	add_nr(&step, 0, 1);
	assert_int_equal(evidence__push(fixture->evidence, fixture->window, &step, false), 0);
	assert_int_equal(step.calls.count, 1);
	step.kind_number = 100;
	assert_int_equal(evidence__push(fixture->evidence, fixture->window, &step, false), 0);
	assert_null(step.calls.items);
	assert_int_equal(step.calls.count, 0);
}

static void the_first_error_of_the_receiver_is_passed_up(void **state)
{
	struct fixture *fixture = *state;

	begin(fixture, 2);
	play(fixture, "--");
	fixture->fails = true;
	/* Steps 1 and 2 are shown together with step 3, and the first error is that of step 1. */
	assert_int_equal(push_step(fixture, 7, 7, 100, 2, true), -1);
	assert_shown(fixture, SHOWN(1, 2, 3));
	assert_int_equal(push_step(fixture, 7, 7, 100, 2, false), -4);
	assert_int_equal(push_step(fixture, 7, 7, 100, 2, false), -5);
	assert_int_equal(push_step(fixture, 7, 7, 100, 2, false), 0);
	assert_shown(fixture, SHOWN(1, 2, 3, 4, 5));
}

/* Four steps of 65,536 calls fill the buffer. A fifth displaces the oldest. */
static void calls_that_are_held_are_bounded(void **state)
{
	struct fixture *fixture = *state;

	begin(fixture, 2);
	for (uint32_t tid = 1; tid <= 5; tid++)
		assert_int_equal(push_step(fixture, 7, tid, 100, 65536, false), 0);
	assert_int_equal(push_step(fixture, 7, 1, 100, 0, true), 0);
	assert_int_equal(fixture->count, 1);
	assert_int_equal(fixture->shown[0], 6);
	assert_int_equal(push_step(fixture, 7, 2, 100, 0, true), 0);
	assert_int_equal(fixture->count, 3);
	assert_int_equal(fixture->shown[1], 2);
	assert_int_equal(fixture->calls[1], 65536);
}

static void steps_without_calls_take_no_room(void **state)
{
	struct fixture *fixture = *state;

	for (uint32_t tid = 1; tid <= 4; tid++)
		assert_int_equal(push_step(fixture, 7, tid, 100, 65536, false), 0);
	for (uint32_t tid = 5; tid <= 500; tid++)
		assert_int_equal(push_step(fixture, 7, tid, 100, 0, false), 0);
	assert_int_equal(push_step(fixture, 7, 1, 100, 0, true), 0);
	assert_int_equal(fixture->shown[0], 1);
}

static void threads_that_come_and_go_are_bounded(void **state)
{
	struct fixture *fixture = *state;

	for (uint32_t tid = 1; tid <= 10000; tid++)
		push(fixture, tid, false);
	assert_int_equal(fixture->count, 0);
	push(fixture, 10000, true);
	assert_shown(fixture, SHOWN(10000, 10001));
	/* Thread 1 was displaced, so its next step has no context before it. */
	push(fixture, 1, true);
	push(fixture, 1, false);
	push(fixture, 1, false);
	assert_shown(fixture, SHOWN(10000, 10001, 10002, 10003));
}

#define STEPS 6000 /* that the plain way is asked about: it looks at all of them each time */

/* Whether the step at index must be shown, given all steps. */
static bool is_wanted(const uint32_t *tids, const bool *escalated, const bool *first, size_t index,
		      uint32_t context)
{
	uint32_t distance = 0;

	if (escalated[index] || first[index])
		return true;
	for (size_t i = index + 1; i < STEPS && distance < context; i++) {
		if (tids[i] != tids[index])
			continue;
		distance++;
		if (escalated[i])
			return true;
	}
	distance = 0;
	for (size_t i = index; i-- > 0 && distance < context;) {
		if (tids[i] != tids[index])
			continue;
		distance++;
		if (escalated[i])
			return true;
	}
	return false;
}

static void what_is_shown_is_what_the_plain_way_shows(void **state)
{
	static uint32_t tids[STEPS];
	static bool escalated[STEPS], first[STEPS];
	static const uint32_t contexts[] = {0, 1, 2, 5, EVIDENCE_CONTEXT_MAX};
	struct fixture *fixture = *state;
	uint64_t seed = 11;

	for (size_t c = 0; c < sizeof(contexts) / sizeof(contexts[0]); c++) {
		size_t wanted = 0;

		begin(fixture, contexts[c]);
		for (size_t i = 0; i < STEPS; i++) {
			tids[i] = (uint32_t)random_below(&seed, 7);
			escalated[i] = !random_below(&seed, 40);
			first[i] = !random_below(&seed, 30);
			assert_int_equal(push_step(fixture, 7, tids[i], first[i] ? 1 : 100,
						   random_below(&seed, 5), escalated[i]),
					 0);
		}
		for (size_t i = 0; i < STEPS; i++) {
			size_t times = 0;

			for (size_t j = 0; j < fixture->count; j++)
				times += fixture->shown[j] == i + 1;
			assert_int_equal(times,
					 is_wanted(tids, escalated, first, i, contexts[c]) ? 1 : 0);
			wanted += times;
		}
		assert_int_equal(wanted, fixture->count);
	}
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(steps_that_are_not_escalated_are_not_shown),
		TEST(the_first_steps_of_a_kind_are_shown),
		TEST(steps_in_which_pytorch_was_profiled_are_shown),
		TEST(an_escalated_step_is_shown_between_its_neighbours),
		TEST(without_context_the_step_alone_is_shown),
		TEST(as_much_context_as_asked_for_is_shown),
		TEST(escalated_steps_in_a_row_are_shown_once),
		TEST(a_step_shown_in_between_is_context_too),
		TEST(the_first_of_a_kind_may_be_context),
		TEST(context_is_of_the_same_thread),
		TEST(a_thread_number_used_again_is_another_thread),
		TEST(with_detail_all_everything_is_shown),
		TEST(steps_keep_their_calls_unless_they_are_held),
		TEST(the_first_error_of_the_receiver_is_passed_up),
		TEST(calls_that_are_held_are_bounded),
		TEST(steps_without_calls_take_no_room),
		TEST(threads_that_come_and_go_are_bounded),
		TEST(what_is_shown_is_what_the_plain_way_shows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
