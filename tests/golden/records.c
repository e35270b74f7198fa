/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "records.h"

#include <stdlib.h>
#include <string.h>
#include "fbt_look.h"
#include "fbt_explain.h"
#include "model/syscalls.h"

uint32_t record_take_tgid(struct events *events)
{
	events->tgid = (uint32_t)line_take_number(&events->line, "tgid", events->tgid);
	return events->tgid;
}

uint32_t record_take_syscall(struct events *events)
{
	const char *name = line_take(&events->line, "name");

	if (!name)
		return (uint32_t)line_take_number(&events->line, "nr", 0);
	for (uint32_t nr = 0; nr < FBT_NR_COUNT; nr++) {
		const char *known = syscall_name(FBT_ARCH_X86_64, nr);

		if (known && strcmp(known, name) == 0)
			return nr;
	}
	line_stop(&events->line, "unknown syscall: %s", name);
}

void *record_begin(struct events *events, uint16_t type, size_t bytes)
{
	struct fbt_header *header = (struct fbt_header *)events->record;

	memset(events->record, 0, bytes);
	header->type = type;
	events->size = bytes;
	return header;
}

void record_add_string(struct events *events, const char *text, size_t length)
{
	if (events->size + length + 9 > RECORD_MAX)
		line_stop(&events->line, "record too long");
	memcpy(events->record + events->size, text, length);
	events->size += length;
	events->record[events->size++] = '\0';
}

static void write_window(struct events *events)
{
	static const char *const details[] = {"steps", "escalated", "all", "probes", NULL};
	static const char *const arches[] = {"x86_64", "arm64", NULL};
	static const char *const strings[][2] = {
		{"tag", "pid7_1700000000000"},
		{"version", "0.1.0"},
		{"kernel", "6.1.0"},
		{"host", "box"},
	};
	struct fbt_window *window = record_begin(events, FBT_EVENT_WINDOW, sizeof(*window));

	window->start_ns = line_take_time(&events->line, "start", UINT64_C(1000000000000));
	window->realtime_ns =
		line_take_time(&events->line, "realtime", UINT64_C(1700000000000000000));
	window->detail = line_take_name(&events->line, "detail", details);
	window->arch = line_take_name(&events->line, "arch", arches) + 1;
	if (line_take_number(&events->line, "gpu_strict", 0))
		window->header.flags |= FBT_WINDOW_GPU_STRICT;
	window->interval_ns = line_take_time(&events->line, "interval", 0);
	window->fault_ps = line_take_number(&events->line, "fault_ps", 0);
	window->call_ps = line_take_number(&events->line, "call_ps", 0);
	events->window_ns = window->start_ns;
	for (int i = 0; i < 4; i++) {
		const char *text = line_take_text(&events->line, strings[i][0], strings[i][1]);

		record_add_string(events, text, strlen(text));
	}
}

/* given=NAME=VALUE,… */
static void write_options(struct events *events)
{
	struct fbt_options *options = record_begin(events, FBT_EVENT_OPTIONS, sizeof(*options));
	const char *given = line_take_text(&events->line, "given", "");

	for (; *given; options->count++) {
		size_t length = strcspn(given, ",");

		record_add_string(events, given, length);
		given += length + (given[length] == ',');
	}
}

static void write_target(struct events *events)
{
	static const char *const strings[] = {"comm", "exe", "cmdline"};
	struct fbt_target *target = record_begin(events, FBT_EVENT_TARGET, sizeof(*target));

	target->tgid = record_take_tgid(events);
	target->start_ns = events->window_ns + line_take_time(&events->line, "start", 0);
	target->parent_tgid = (uint32_t)line_take_number(&events->line, "parent", 0);
	for (int i = 0; i < 3; i++) {
		const char *text = line_take_text(&events->line, strings[i], "");

		record_add_string(events, text, strlen(text));
	}
}

static void write_thread(struct events *events)
{
	struct fbt_thread_name *thread = record_begin(events, FBT_EVENT_THREAD, sizeof(*thread));
	const char *comm = line_take_text(&events->line, "comm", "");

	thread->tgid = record_take_tgid(events);
	thread->tid = (uint32_t)line_take_number(&events->line, "tid", thread->tgid);
	memcpy(thread->comm, comm,
	       strlen(comm) < sizeof(thread->comm) ? strlen(comm) : sizeof(thread->comm) - 1);
}

static void write_kind(struct events *events)
{
	static const char *const sources[] = {"function", "usdt", "interval", NULL};
	struct fbt_kind *kind = record_begin(events, FBT_EVENT_KIND, sizeof(*kind));
	const char *name = line_take_text(&events->line, "name", "");
	const char *path = line_take_text(&events->line, "path", "/usr/lib/libengine.so");
	const char *args = line_take(&events->line, "args");

	kind->kind = (uint32_t)line_take_number(&events->line, "kind", 1);
	kind->source = line_take_name(&events->line, "source", sources);
	kind->address = line_take_number(&events->line, "address", 0x1000);
	kind->builtin = (uint32_t)line_take_number(&events->line, "builtin", 1);
	kind->exits = (uint32_t)line_take_number(&events->line, "exits", 1);
	if (line_take_number(&events->line, "polled", 0))
		kind->header.flags |= FBT_KIND_POLLED;
	if (line_take_number(&events->line, "python", 0))
		kind->header.flags |= FBT_KIND_PYTHON;
	/* Masks of arguments. */
	kind->header.flags |=
		(__u16)(line_take_number(&events->line, "inner", 0) * FBT_KIND_INNER(0) |
			line_take_number(&events->line, "timed", 0) * FBT_KIND_TIMED(0));
	kind->tgid = record_take_tgid(events);
	record_add_string(events, name, strlen(name));
	record_add_string(events, path, strlen(path));
	while (args && *args) {
		size_t length = strcspn(args, ",");

		record_add_string(events, args, length);
		kind->arg_count++;
		args += length + (args[length] == ',');
	}
}

/* CALLS/TIME[/MAX[/ERRORS]]; MAX is the mean if it is left out. */
static void take_sum(struct events *events, const char *key, struct fbt_sum *sum)
{
	const char *text = line_take(&events->line, key);
	char *end;

	if (!text)
		return;
	sum->calls = line_parse_number(&events->line, text, &end);
	if (*end != '/')
		line_stop(&events->line, "%s: want CALLS/TIME[/MAX[/ERRORS]]: %s", key, text);
	sum->ns = line_parse_time(&events->line, end + 1, &end);
	sum->max_ns = sum->calls ? sum->ns / sum->calls : sum->ns;
	if (*end == '/')
		sum->max_ns = line_parse_time(&events->line, end + 1, &end);
	if (*end == '/')
		sum->errors = line_parse_number(&events->line, end + 1, &end);
	if (*end)
		line_stop(&events->line, "%s: want CALLS/TIME[/MAX[/ERRORS]]: %s", key, text);
}

/* The faults are timed if fault_cpu is given. */
static void take_faults(struct events *events, struct fbt_step *step)
{
	static const char *const keys[FBT_MAPPING_COUNT] = {
		[FBT_MAPPING_UNKNOWN] = "fault_unknown",
		[FBT_MAPPING_FILE] = "fault_file",
		[FBT_MAPPING_ANON] = "fault_anon",
		[FBT_MAPPING_STACK] = "fault_stack",
	};
	struct fbt_step_faults *faults = &step->faults;

	faults->mean_ps = line_take_number(&events->line, "fault_mean_ps", 0);
	faults->cpu_ns = line_take_time(&events->line, "fault_cpu", UINT64_MAX);
	if (faults->cpu_ns == UINT64_MAX) {
		faults->cpu_ns = 0;
		return;
	}
	step->header.flags |= FBT_STEP_FAULTS_TIMED;
	faults->asleep_ns = line_take_time(&events->line, "fault_asleep", 0);
	for (int i = 0; i < FBT_MAPPING_COUNT; i++)
		faults->ns[i] = line_take_time(&events->line, keys[i], 0);
	faults->count[FBT_MAPPING_ANON] = step->minor_faults + step->major_faults;
	faults->major_ns = line_take_time(&events->line, "fault_majors", 0);
	faults->major_count = step->major_faults;
	faults->file_ns = faults->ns[FBT_MAPPING_FILE];
	faults->file = (uint32_t)line_take_number(&events->line, "fault_file_id", 0);
}

static void take_args(struct events *events, struct fbt_step *step)
{
	const char *args = line_take(&events->line, "args");

	for (int i = 0; args && *args; i++) {
		char *end = NULL;

		if (i == FBT_ARG_COUNT)
			line_stop(&events->line, "too many args");
		if (strncmp(args, "null", 4) == 0) {
			args += 4;
		} else {
			step->args[i] = strtoll(args, &end, 0);
			step->arg_mask |= 1u << i;
			args = end;
		}
		args += *args == ',';
	}
}

static void take_handlers(struct events *events, struct fbt_step *step)
{
	step->handlers_ns = line_take_time(&events->line, "handlers_time", UINT64_MAX);
	step->handlers = (uint32_t)line_take_number(&events->line, "handlers", 0);
	step->handlers_left = (uint32_t)line_take_number(&events->line, "handlers_left", 0);
	if (step->handlers_ns == UINT64_MAX)
		step->handlers_ns = 0;
	else
		step->header.flags |= FBT_STEP_HANDLERS_TIMED;
}

static void take_starved(struct events *events, struct fbt_step *step)
{
	step->starved_ns = line_take_time(&events->line, "starved", UINT64_MAX);
	step->starved_tid = (uint32_t)line_take_number(&events->line, "starved_tid", 0);
	if (step->starved_ns == UINT64_MAX)
		step->starved_ns = 0;
	else
		step->header.flags |= FBT_STEP_TEAM_KNOWN;
}

static void take_late(struct events *events, struct fbt_step *step)
{
	step->late_ns = line_take_time(&events->line, "late", 0);
	step->late_tid = (uint32_t)line_take_number(&events->line, "late_tid", 0);
	step->late_nr = (uint32_t)line_take_number(&events->line, "late_nr", 0);
}

static void take_team(struct events *events, struct fbt_step *step)
{
	step->team_ns = line_take_time(&events->line, "team", UINT64_MAX);
	step->team_cpu_ns = line_take_time(&events->line, "team_cpu", 0);
	step->team_delay_ns = line_take_time(&events->line, "team_delay", 0);
	if (step->team_ns == UINT64_MAX)
		step->team_ns = 0;
	else
		step->header.flags |= FBT_STEP_TEAM_TIMED;
}

/* A poll of the future at that address; its state is 0 before the first and 1 after the last. */
static void take_future(struct events *events, struct fbt_step *step)
{
	step->future = line_take_number(&events->line, "future", 0);
	step->state_before = (uint8_t)line_take_number(&events->line, "before", FBT_FUTURE_NEW);
	step->state_after = (uint8_t)line_take_number(&events->line, "after", FBT_FUTURE_READY);
	step->turn = (uint32_t)line_take_number(&events->line, "turn", 0);
	if (step->future)
		step->header.flags |= FBT_STEP_POLL;
	else
		step->state_before = step->state_after = 0;
}

/* A time that the tool may not know: if it is missing, it is 0, and flag says so. */
static uint64_t take_or_flag(struct events *events, const char *key, struct fbt_step *step,
			     uint16_t flag)
{
	uint64_t ns = line_take_time(&events->line, key, UINT64_MAX);

	if (ns != UINT64_MAX)
		return ns;
	step->header.flags |= flag;
	return 0;
}

static void take_cpu(struct events *events, struct fbt_step *step)
{
	step->run_delay_ns = take_or_flag(events, "run_delay", step, FBT_STEP_SCHED_UNKNOWN);
	step->cpu_ns = line_take_time(&events->line, "cpu", UINT64_MAX);
	if (step->cpu_ns == UINT64_MAX)
		step->cpu_ns = 0;
	else
		step->header.flags |= FBT_STEP_CPU_KNOWN;
	step->asleep_ns = line_take_time(&events->line, "asleep", 0);
	step->fault_wait_ns = line_take_time(&events->line, "fault_wait", 0);
}

static void take_sums(struct events *events, struct fbt_step *step)
{
	for (int i = 0; i < FBT_CATEGORY_COUNT; i++) {
		char key[32];

		take_sum(events, category_name(i), &step->sums[i]);
		snprintf(key, sizeof(key), "%s_delay", category_name(i));
		step->call_delay_ns[i] = line_take_time(&events->line, key, 0);
	}
}

static void take_limits(struct events *events, struct fbt_step_limits *limits)
{
	limits->throttled_ns = line_take_time(&events->line, "throttled", 0);
	limits->throttled_periods =
		(uint32_t)line_take_number(&events->line, "throttled_periods", 0);
	limits->quota_ns = line_take_time(&events->line, "quota", 0);
	limits->period_ns = line_take_time(&events->line, "period", 0);
	limits->memory_hits = (uint32_t)line_take_number(&events->line, "memory_hits", 0);
}

static void write_step(struct events *events)
{
	static const char *const ends[] = {"return", "unwound", "truncated", "exited", NULL};
	struct fbt_step *step = record_begin(events, FBT_EVENT_STEP, sizeof(*step));

	step->tgid = record_take_tgid(events);
	step->tid = (uint32_t)line_take_number(&events->line, "tid", step->tgid);
	step->kind = (uint32_t)line_take_number(&events->line, "kind", 1);
	step->end = line_take_name(&events->line, "ended", ends);
	step->start_ns = events->window_ns + line_take_time(&events->line, "start", 0);
	step->end_ns = events->window_ns + line_take_time(&events->line, "end", 0);
	step->thread_ns = line_take_time(&events->line, "thread", step->end_ns - step->start_ns);
	step->gap_ns = take_or_flag(events, "gap", step, FBT_STEP_NO_GAP);
	step->gap_syscall_ns = line_take_time(&events->line, "gap_syscall", 0);
	step->other_syscall_ns =
		take_or_flag(events, "other_threads", step, FBT_STEP_OTHER_UNKNOWN);
	if (line_take_number(&events->line, "sampled", 0))
		step->header.flags |= FBT_STEP_SAMPLED;
	if (line_take_number(&events->line, "untraced", 0))
		step->header.flags |= FBT_STEP_CALLS_UNKNOWN;
	step->lost_calls = line_take_number(&events->line, "lost", 0);
	step->threads = (uint32_t)line_take_number(&events->line, "threads", 0);
	take_args(events, step);
	take_cpu(events, step);
	step->minor_faults = (uint32_t)line_take_number(&events->line, "faults", 0);
	step->major_faults = (uint32_t)line_take_number(&events->line, "major_faults", 0);
	take_sums(events, step);
	take_faults(events, step);
	take_limits(events, &step->limits);
	step->steal_us = (uint32_t)(line_take_time(&events->line, "steal", 0) / 1000);
	take_handlers(events, step);
	take_starved(events, step);
	take_late(events, step);
	take_team(events, step);
	take_future(events, step);
}

static void write_call(struct events *events)
{
	struct fbt_call *call = record_begin(events, FBT_EVENT_CALL, sizeof(*call));
	uint32_t calls;

	call->tgid = record_take_tgid(events);
	call->tid = (uint32_t)line_take_number(&events->line, "tid", call->tgid);
	call->start_ns = events->window_ns + line_take_time(&events->line, "start", 0);
	call->duration_ns = line_take_time(&events->line, "dur", 0);
	call->ret = (int64_t)line_take_number(&events->line, "ret", 0);
	call->nr = record_take_syscall(events);
	call->delay_ns = line_take_time(&events->line, "delay", 0);
	if (line_take_number(&events->line, "unfinished", 0))
		call->header.flags |= FBT_CALL_UNFINISHED;
	if (line_take_number(&events->line, "blocked", 0))
		call->header.flags |= FBT_CALL_BLOCKED;
	call->file = (uint32_t)line_take_number(&events->line, "file", 0);
	call->args[0] = line_take_number(&events->line, "a0", UINT64_MAX);
	call->args[1] = line_take_number(&events->line, "a1", 0);
	if (call->args[0] == UINT64_MAX)
		call->args[0] = 0;
	else
		call->header.flags |= FBT_CALL_ARGS;
	calls = (uint32_t)line_take_number(&events->line, "calls", 0);
	if (!calls)
		return;
	call->header.flags |= FBT_CALL_RUN;
	call->run.calls = calls;
	call->run.calls_ns = line_take_time(&events->line, "in_calls", 0);
	call->run.longest_ns = (uint32_t)line_take_time(&events->line, "longest", 0);
}

static void write_peer(struct events *events)
{
	static const char *const ways[] = {"memory", "futex", "pipe", "socket", NULL};
	static const char *const reasons[] = {"signal", "tracer", "freezer", NULL};
	struct fbt_peer *peer = record_begin(events, FBT_EVENT_PEER, sizeof(*peer));

	peer->tgid = record_take_tgid(events);
	peer->tid = (uint32_t)line_take_number(&events->line, "tid", peer->tgid);
	peer->step_start_ns = events->window_ns + line_take_time(&events->line, "step", 0);
	peer->first_ns = events->window_ns + line_take_time(&events->line, "first", 0);
	peer->peer = (uint32_t)line_take_number(&events->line, "peer", 0);
	peer->peer_tid = (uint32_t)line_take_number(&events->line, "peer_tid", peer->peer);
	peer->way = line_take_name(&events->line, "way", ways);
	peer->others = (uint32_t)line_take_number(&events->line, "others", 0);
	peer->cpu_ns = line_take_time(&events->line, "cpu", 0);
	peer->delay_ns = line_take_time(&events->line, "delay", 0);
	peer->stopped_ns = line_take_time(&events->line, "stopped", 0);
	peer->asleep_ns = line_take_time(&events->line, "asleep", 0);
	peer->time_ns =
		peer->first_ns + peer->cpu_ns + peer->delay_ns + peer->stopped_ns + peer->asleep_ns;
	peer->nr = peer->asleep_ns ? record_take_syscall(events) : FBT_PEER_NR_UNKNOWN;
	peer->throttled_periods = (uint32_t)line_take_number(&events->line, "throttled", 0);
	peer->kind = (uint32_t)line_take_number(&events->line, "kind", 0);
	peer->stop_reason = line_take_name(&events->line, "reason", reasons);
	peer->tracer = (uint32_t)line_take_number(&events->line, "tracer", 0);
	peer->via = (uint32_t)line_take_number(&events->line, "via", 0);
	snprintf(peer->tracer_comm, sizeof(peer->tracer_comm), "%s",
		 line_take_text(&events->line, "tracer_comm", ""));
	snprintf(peer->comm, sizeof(peer->comm), "%s", line_take_text(&events->line, "comm", ""));
}

static void write_file(struct events *events)
{
	struct fbt_file *file = record_begin(events, FBT_EVENT_FILE, sizeof(*file));
	const char *path = line_take_text(&events->line, "path", "");

	file->tgid = record_take_tgid(events);
	file->id = (uint32_t)line_take_number(&events->line, "id", 1);
	file->fd = (int32_t)line_take_number(&events->line, "fd", 3);
	file->mode = (uint32_t)line_take_number(&events->line, "mode", 0100644);
	file->ino = line_take_number(&events->line, "ino", 1);
	file->device = (uint32_t)line_take_number(&events->line, "device", 0);
	file->node_device = (uint32_t)line_take_number(&events->line, "node_device", 0);
	record_add_string(events, path, strlen(path));
}

static void write_hang(struct events *events)
{
	struct fbt_hang *hang = record_begin(events, FBT_EVENT_HANG, sizeof(*hang));
	uint64_t call_ns;

	hang->tgid = record_take_tgid(events);
	hang->tid = (uint32_t)line_take_number(&events->line, "tid", hang->tgid);
	hang->kind = (uint32_t)line_take_number(&events->line, "kind", 1);
	hang->state = (uint8_t)*line_take_text(&events->line, "state", "S");
	hang->step_start_ns = events->window_ns + line_take_time(&events->line, "start", 0);
	hang->time_ns = events->window_ns + line_take_time(&events->line, "time", 0);
	call_ns = line_take_time(&events->line, "call", UINT64_MAX);
	if (call_ns == UINT64_MAX)
		return;
	hang->call.header.type = FBT_EVENT_CALL;
	hang->call.header.flags = FBT_CALL_UNFINISHED | FBT_CALL_ARGS;
	hang->call.header.size = sizeof(hang->call);
	hang->call.tgid = hang->tgid;
	hang->call.tid = hang->tid;
	hang->call.start_ns = hang->time_ns - call_ns;
	hang->call.duration_ns = call_ns;
	hang->call.nr = record_take_syscall(events);
	hang->call.file = (uint32_t)line_take_number(&events->line, "file", 0);
	hang->call.args[0] = line_take_number(&events->line, "a0", 0);
	hang->call.args[1] = line_take_number(&events->line, "a1", 0);
}

static void write_stop(struct events *events)
{
	static const char *const reasons[] = {"signal", "tracer", "freezer", NULL};
	struct fbt_stop *stop = record_begin(events, FBT_EVENT_STOP, sizeof(*stop));

	stop->tgid = record_take_tgid(events);
	stop->tid = (uint32_t)line_take_number(&events->line, "tid", stop->tgid);
	stop->time_ns = events->window_ns + line_take_time(&events->line, "time", 0);
	stop->reason = line_take_name(&events->line, "reason", reasons);
	stop->tracer = (uint32_t)line_take_number(&events->line, "tracer", 0);
	snprintf(stop->comm, sizeof(stop->comm), "%s", line_take_text(&events->line, "comm", ""));
	stop->stopped_ns = line_take_time(&events->line, "stopped", 0);
}

static void write_thread_use(struct events *events)
{
	struct fbt_thread_use *use = record_begin(events, FBT_EVENT_THREAD_USE, sizeof(*use));

	use->tgid = record_take_tgid(events);
	use->tid = (uint32_t)line_take_number(&events->line, "tid", use->tgid);
	use->calls = line_take_number(&events->line, "calls", 0);
	use->call_ns = line_take_time(&events->line, "call", 0);
	use->cpu_ns = line_take_time(&events->line, "cpu", 0);
	use->delay_ns = line_take_time(&events->line, "delay", 0);
	use->traced_ns = line_take_time(&events->line, "traced", 0);
	snprintf(use->comm, sizeof(use->comm), "%s", line_take_text(&events->line, "comm", ""));
	if (!line_take_number(&events->line, "unknown", 0))
		use->header.flags |= FBT_USE_CPU_KNOWN;
	if (line_take_number(&events->line, "ended", 0))
		use->header.flags |= FBT_USE_ENDED;
	if (line_take_number(&events->line, "steps", 0))
		use->header.flags |= FBT_USE_STEPS;
}

static void write_cpus(struct events *events)
{
	struct fbt_cpus *cpus = record_begin(events, FBT_EVENT_CPUS, sizeof(*cpus));

	cpus->tgid = record_take_tgid(events);
	cpus->cpus = (uint32_t)line_take_number(&events->line, "cpus", 0);
	cpus->quota_ns = line_take_time(&events->line, "quota", 0);
	cpus->period_ns = line_take_time(&events->line, "period", 0);
}

static void write_manual(struct events *events)
{
	struct fbt_manual *manual = record_begin(events, FBT_EVENT_MANUAL, sizeof(*manual));

	manual->time_ns = events->window_ns + line_take_time(&events->line, "time", 0);
}

static void write_wake(struct events *events)
{
	struct fbt_wake *wake = record_begin(events, FBT_EVENT_WAKE, sizeof(*wake));

	wake->tgid = record_take_tgid(events);
	wake->tid = (uint32_t)line_take_number(&events->line, "tid", wake->tgid);
	wake->start_ns = events->window_ns + line_take_time(&events->line, "start", 0);
	wake->cpu_ns = line_take_time(&events->line, "cpu", 0);
	wake->delay_ns = line_take_time(&events->line, "delay", 0);
	wake->call_ns = line_take_time(&events->line, "calls", 0);
	wake->unknown_ns = line_take_time(&events->line, "unknown", 0);
	wake->fault_wait_ns = line_take_time(&events->line, "faulted", 0);
	wake->faults = (uint32_t)line_take_number(&events->line, "faults", 0);
	wake->minor_faults = (uint32_t)line_take_number(&events->line, "minor_faults", 0);
	wake->off_ns = line_take_time(&events->line, "off", 0);
	wake->wake_ns = wake->start_ns + wake->cpu_ns + wake->delay_ns + wake->call_ns +
			wake->unknown_ns + wake->fault_wait_ns + wake->off_ns;
	wake->nr_ns = line_take_time(&events->line, "longest", wake->call_ns);
	wake->nr = record_take_syscall(events);
	wake->waker_tid = (uint32_t)line_take_number(&events->line, "waker", 0);
	if (line_take_number(&events->line, "lock", 0))
		wake->flags |= FBT_WAKE_LOCK;
	if (line_take_number(&events->line, "all", 0))
		wake->flags |= FBT_WAKE_ALL;
	if (line_take_number(&events->line, "collected", 0))
		wake->flags |= FBT_WAKE_GC;
}

static void write_python(struct events *events)
{
	static const char *const collectors[] = {"none", "usdt", "symbol", "off", "failed", NULL};
	struct fbt_python *python = record_begin(events, FBT_EVENT_PYTHON, sizeof(*python));
	const char *path = line_take_text(&events->line, "path", "/usr/bin/python3.11");

	python->tgid = record_take_tgid(events);
	python->minor = (uint32_t)line_take_number(&events->line, "minor", 11);
	python->time_ns = events->window_ns + line_take_time(&events->line, "time", 0);
	python->gil_start = line_take_number(&events->line, "gil", 0);
	python->gil_end = python->gil_start ? python->gil_start + 0x1000 : 0;
	python->collector = line_take_name(&events->line, "collector", collectors);
	if (line_take_number(&events->line, "offered", 0))
		python->flags = FBT_PYTHON_OFFERED;
	record_add_string(events, path, strlen(path));
}

static void write_stalls(struct events *events)
{
	struct fbt_stalls *stalls = record_begin(events, FBT_EVENT_STALLS, sizeof(*stalls));

	stalls->tgid = record_take_tgid(events);
	stalls->tid = (uint32_t)line_take_number(&events->line, "tid", stalls->tgid);
	stalls->start_ns = events->window_ns + line_take_time(&events->line, "start", 0);
	stalls->gil_ns = line_take_time(&events->line, "gil", 0);
	stalls->gil_waits = (uint32_t)line_take_number(&events->line, "waits", 0);
	stalls->gc_ns = line_take_time(&events->line, "gc", 0);
	stalls->gc_own_ns = line_take_time(&events->line, "own", stalls->gc_ns);
	stalls->gc_longest_ns = line_take_time(&events->line, "longest", stalls->gc_ns);
	stalls->gc_count = (uint32_t)line_take_number(&events->line, "collections", 0);
	stalls->gc_generation =
		(uint32_t)line_take_number(&events->line, "generation", FBT_GENERATION_UNKNOWN);
}

static void write_gap(struct events *events)
{
	struct fbt_gap *gap = record_begin(events, FBT_EVENT_GAP, sizeof(*gap));

	gap->tgid = record_take_tgid(events);
	gap->tid = (uint32_t)line_take_number(&events->line, "tid", gap->tgid);
	gap->start_ns = events->window_ns + line_take_time(&events->line, "start", 0);
	gap->cpu_ns = line_take_time(&events->line, "cpu", 0);
	gap->delay_ns = line_take_time(&events->line, "delay", 0);
}

static void write_sampling(struct events *events)
{
	struct fbt_sampling *sampling = record_begin(events, FBT_EVENT_SAMPLING, sizeof(*sampling));

	sampling->kind = (uint32_t)line_take_number(&events->line, "kind", 1);
	sampling->cost_percent = (uint32_t)line_take_number(&events->line, "cost", 0);
	sampling->time_ns = events->window_ns + line_take_time(&events->line, "time", 0);
	sampling->watched_ns = line_take_time(&events->line, "watched", 0);
	sampling->off_ns = line_take_time(&events->line, "off", 0);
	sampling->calls = line_take_number(&events->line, "calls", 0);
	sampling->cut_steps = line_take_number(&events->line, "cut_steps", 0);
}

static void write_ends(struct events *events)
{
	struct fbt_ends *ends = record_begin(events, FBT_EVENT_ENDS, sizeof(*ends));

	ends->kind = (uint32_t)line_take_number(&events->line, "kind", 1);
	ends->exits = (uint32_t)line_take_number(&events->line, "exits", 0);
	ends->sites = (uint32_t)line_take_number(&events->line, "sites", 0);
	ends->tail_calls = (uint32_t)line_take_number(&events->line, "tail_calls", 0);
	ends->unseen_steps = line_take_number(&events->line, "unseen", 0);
}

/* names=FIRST,SECOND */
static void write_tails(struct events *events)
{
	struct fbt_tails *tails = record_begin(events, FBT_EVENT_TAILS, sizeof(*tails));
	const char *names = line_take_text(&events->line, "names", "");
	size_t length = strcspn(names, ",");

	tails->kind = (uint32_t)line_take_number(&events->line, "kind", 1);
	tails->returns = (uint32_t)line_take_number(&events->line, "returns", 0);
	tails->tail_calls = (uint32_t)line_take_number(&events->line, "calls", 1);
	tails->pointers = (uint32_t)line_take_number(&events->line, "pointers", 0);
	tails->targets = (uint32_t)line_take_number(&events->line, "targets", 0);
	record_add_string(events, names, length);
	names += length + (names[length] == ',');
	record_add_string(events, names, strlen(names));
}

static void write_probes(struct events *events)
{
	struct fbt_probes *probes = record_begin(events, FBT_EVENT_PROBES, sizeof(*probes));

	probes->kind = (uint32_t)line_take_number(&events->line, "kind", 1);
	probes->cost_ns = line_take_time(&events->line, "cost", 0);
}

static void write_table(struct events *events)
{
	struct fbt_table *row = record_begin(events, FBT_EVENT_TABLE, sizeof(*row));

	row->tgid = record_take_tgid(events);
	row->nr = record_take_syscall(events);
	take_sum(events, "sum", &row->sum);
	row->unfinished = line_take_number(&events->line, "unfinished", 0);
}

static void write_lost(struct events *events)
{
	static const char *const causes[] = {"calls",  "steps",	    "threads",
					     "begins", "processes", "files"};
	struct fbt_lost *lost = record_begin(events, FBT_EVENT_LOST, sizeof(*lost));

	for (int i = 0; i < FBT_LOST_COUNT; i++)
		lost->count[i] = line_take_number(&events->line, causes[i], 0);
}

static void write_unseen(struct events *events)
{
	struct fbt_unseen *unseen = record_begin(events, FBT_EVENT_UNSEEN, sizeof(*unseen));

	unseen->calls = line_take_number(&events->line, "calls", 0);
}

static void write_cost(struct events *events)
{
	struct fbt_cost *cost = record_begin(events, FBT_EVENT_COST, sizeof(*cost));

	cost->call_ps = line_take_number(&events->line, "call_ps", 0);
	cost->neighbor_ps = line_take_number(&events->line, "neighbor_ps", 0);
	cost->step_ns = line_take_number(&events->line, "step_ns", 0);
	cost->floor_ns = line_take_number(&events->line, "floor_ns", 0);
	cost->rss_bytes = line_take_number(&events->line, "rss", 0);
	cost->ring_bytes = line_take_number(&events->line, "ring", 0);
	cost->cpu_ns = line_take_time(&events->line, "cpu", 0);
	cost->fault_ps = line_take_number(&events->line, "fault_ps", 0);
	cost->collections = (uint32_t)line_take_number(&events->line, "collections", 0);
	cost->collection_ns = (uint32_t)line_take_number(&events->line, "collection_ns", 0);
}

static void write_exit(struct events *events)
{
	struct fbt_target_exit *exited =
		record_begin(events, FBT_EVENT_TARGET_EXIT, sizeof(*exited));

	exited->tgid = record_take_tgid(events);
	exited->end_ns = events->window_ns + line_take_time(&events->line, "end", 0);
}

static void write_end(struct events *events)
{
	struct fbt_window_end *end = record_begin(events, FBT_EVENT_WINDOW_END, sizeof(*end));

	end->end_ns = events->window_ns + line_take_time(&events->line, "end", 0);
}

/* A record of a type that no version has. */
static void write_unknown(struct events *events)
{
	record_begin(events, 999, 16);
}

static const struct {
	const char *type;
	record_writer write;
} writers[] = {
	{"window", write_window},   {"target", write_target},
	{"options", write_options}, {"thread", write_thread},
	{"kind", write_kind},	    {"step", write_step},
	{"call", write_call},	    {"table", write_table},
	{"lost", write_lost},	    {"unseen", write_unseen},
	{"cost", write_cost},	    {"exit", write_exit},
	{"end", write_end},	    {"unknown", write_unknown},
	{"file", write_file},	    {"manual", write_manual},
	{"hang", write_hang},	    {"peer", write_peer},
	{"stop", write_stop},	    {"thread_use", write_thread_use},
	{"cpus", write_cpus},	    {"sampling", write_sampling},
	{"ends", write_ends},	    {"tails", write_tails},
	{"probes", write_probes},   {"wake", write_wake},
	{"python", write_python},   {"stalls", write_stalls},
	{"gap", write_gap},
};

record_writer record_writer_of(const char *type)
{
	static record_writer (*const others[])(const char *type) = {
		stack_record_writer,
		explain_record_writer,
		gpu_record_writer,
	};

	for (size_t i = 0; i < sizeof(writers) / sizeof(writers[0]); i++) {
		if (!strcmp(writers[i].type, type))
			return writers[i].write;
	}
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		record_writer write = others[i](type);

		if (write)
			return write;
	}
	return NULL;
}
