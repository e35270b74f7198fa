/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "sink_kineto.h"

#include <errno.h>
#include <stdlib.h>

#include "call_args.h"
#include "escalation_fields.h"
#include "kineto_file.h"
#include "kineto_gpu.h"
#include "step_args.h"
#include "syscalls.h"

struct kineto_sink {
	struct sink sink;
	struct kineto_file file;
	struct kineto_gpu *gpu;
	struct fbt_step step; /* the last one written; all 0 before */
};

static struct kineto_sink *to_kineto(struct sink *sink)
{
	return (struct kineto_sink *)sink;
}

/* Before each piece. */
static struct kineto_file *begin_piece(struct sink *sink, const struct window *window)
{
	struct kineto_sink *kineto = to_kineto(sink);

	errno = 0;
	kineto_file_begin(&kineto->file, window);
	return &kineto->file;
}

/* Behind it: err is that of the piece. */
static int end_piece(struct kineto_file *file, int err)
{
	return err ? err : trace_out_check(&file->out);
}

/* HTA takes what is called so for iterations. The step's own name is among its args. */
static int write_step(struct sink *sink, const struct window *window, const struct step *step)
{
	struct kineto_file *file = begin_piece(sink, window);
	const struct fbt_step *record = &step->record;
	struct kineto_slice slice =
		kineto_file_slice(file, window, record->start_ns, record->end_ns);
	struct step_args args;
	char name[48];
	int err = kineto_file_thread(file, window, record->tgid, record->kind ? record->tid : 0,
				     KINETO_THREADS, &slice.lane);

	to_kineto(sink)->step = *record;
	snprintf(name, sizeof(name), "ProfilerStep#%llu", (unsigned long long)step->number);
	slice.name = name;
	slice.cat = "user_annotation";
	step_args_fill(&args, window, step);
	json_fields_string(&args.fields, "ferrum.step", window__kind_name(window, record->kind));
	kineto_slice_write(&file->json, &slice, &args.fields);
	return end_piece(file, err);
}

static int write_escalation(struct sink *sink, const struct window *window, const struct step *step,
			    const struct escalation *escalation)
{
	const struct fbt_step *record = &step->record;
	struct escalation_fields args;
	struct kineto_slice slice;
	struct kineto_file *file;
	char name[64];
	int err;

	if (!escalation_is_shown(escalation))
		return 0;
	file = begin_piece(sink, window);
	slice = kineto_file_slice(file, window, record->start_ns, record->end_ns);
	err = kineto_file_thread(file, window, record->tgid, record->kind ? record->tid : 0,
				 KINETO_ESCALATIONS, &slice.lane);
	snprintf(name, sizeof(name), "escalation: %s",
		 escalation_otlp_value(escalation->result.reason));
	slice.name = name;
	slice.cat = "escalation";
	escalation_fields_fill(&args, window, escalation);
	if (!step->complete)
		json_fields_bool(&args.fields, "complete", false);
	kineto_slice_write(&file->json, &slice, &args.fields);
	return end_piece(file, err);
}

static int put_call(struct kineto_file *file, const struct window *window,
		    const struct fbt_call *call)
{
	struct kineto_slice slice;
	struct call_args args;
	uint64_t end_ns;
	char label[24];
	int err;

	if (__builtin_add_overflow(call->start_ns, call->duration_ns, &end_ns))
		end_ns = UINT64_MAX;
	slice = kineto_file_slice(file, window, call->start_ns, end_ns);
	err = kineto_file_thread(file, window, call->tgid, call->tid, KINETO_CALLS, &slice.lane);
	slice.name = syscall_label((enum fbt_arch)window->record.arch, call->nr, label);
	slice.cat = "syscall";
	call_args_fill(&args, window, call);
	kineto_slice_write(&file->json, &slice, &args.fields);
	return err;
}

static int write_calls(struct sink *sink, const struct window *window, const struct step *step)
{
	struct kineto_file *file = begin_piece(sink, window);
	int err = 0;

	for (size_t i = 0; !err && i < step->calls.count; i++)
		err = put_call(file, window, &step->calls.items[i]);
	return end_piece(file, err);
}

static int write_call(struct sink *sink, const struct window *window, const struct fbt_call *call)
{
	struct kineto_file *file = begin_piece(sink, window);

	return end_piece(file, put_call(file, window, call));
}

static int write_gpu(struct sink *sink, const struct window *window, const struct gpu_batch *batch)
{
	struct kineto_file *file = begin_piece(sink, window);
	struct kineto_sink *kineto = to_kineto(sink);

	return end_piece(file, kineto_gpu__write(kineto->gpu, file, window, batch, &kineto->step));
}

static int finish(struct sink *sink, const struct window *window,
		  const struct classifier *classifier)
{
	struct kineto_file *file = begin_piece(sink, window);

	kineto_file_end_events(file, window);
	kineto_gpu__end(to_kineto(sink)->gpu, file, window);
	return kineto_file_end(file);
}

static void free_kineto(struct sink *sink)
{
	struct kineto_sink *kineto = to_kineto(sink);

	kineto_gpu__free(kineto->gpu);
	kineto_file_clear(&kineto->file);
	free(kineto);
}

struct sink *sink_kineto__new(FILE *out, const struct kineto_options *options)
{
	struct kineto_sink *kineto = calloc(1, sizeof(*kineto));

	if (!kineto)
		return NULL;
	kineto->sink = (struct sink){
		.name = "trace",
		.write_step = write_step,
		.write_escalation = write_escalation,
		.write_calls = write_calls,
		.write_call = write_call,
		.write_gpu = write_gpu,
		.finish = finish,
		.free = free_kineto,
	};
	kineto->gpu = kineto_gpu__new();
	if (kineto_file_init(&kineto->file, out, options->rank, options->world_size,
			     options->path) ||
	    !kineto->gpu) {
		free_kineto(&kineto->sink);
		return NULL;
	}
	return &kineto->sink;
}
