/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* The merger in the pipeline: what is meant for the next step that ends. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "merge_fixture.h"
#include "output/pipeline.h"
#include "stream_fixture.h"

struct note_sink {
	struct sink sink;
	char text[256];
};

static int note_step(struct sink *sink, const struct window *window, const struct step *step)
{
	struct note_sink *self = (struct note_sink *)sink;

	add_text(self->text, sizeof(self->text), "", step->number, step->manual ? "!" : "");
	return 0;
}

static int note_gpu(struct sink *sink, const struct window *window, const struct gpu_batch *batch)
{
	struct note_sink *self = (struct note_sink *)sink;

	add_text(self->text, sizeof(self->text), "b", batch->step, "");
	return 0;
}

static void note_free(struct sink *sink)
{
}

/* The user means the next step that ends, not the next whose GPU records are complete. */
static void a_manual_escalation_is_of_the_next_step_that_ends(void **state)
{
	static const char *const none[] = {"", ""};
	struct note_sink sink = {
		.sink = {.write_step = note_step, .write_gpu = note_gpu, .free = note_free},
		.text = ""};
	static struct stream stream;
	struct pipeline *pipeline = pipeline__new(
		&(struct pipeline_options){.classify = classify_default_options(), .context = 1});
	struct fbt_gpu_state *armed;
	struct fbt_gpu_flush *flush;

	assert_int_equal(pipeline__add_sink(pipeline, &sink.sink), 0);
	add_window(&stream, FBT_DETAIL_STEPS);
	armed = stream_add(&stream, FBT_EVENT_GPU_STATE, sizeof(*armed), none, 2);
	armed->tgid = 7;
	armed->status = FBT_GPU_ARMED;
	armed->time_ns = 1;
	add_step(&stream, 7, 1, 1000, 2000);
	stream_add(&stream, FBT_EVENT_MANUAL, sizeof(struct fbt_manual), NULL, 0);
	add_step(&stream, 7, 1, 2000, 3000);
	add_step(&stream, 7, 1, 3000, 4000);
	flush = stream_add(&stream, FBT_EVENT_GPU_FLUSH, sizeof(*flush), NULL, 0);
	flush->tgid = 7;
	flush->time_ns = 5000;
	pipeline__push(pipeline, stream.bytes, stream.size);
	assert_string_equal(sink.text, "1 2! 3");
	pipeline__free(pipeline);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_manual_escalation_is_of_the_next_step_that_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
