/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "trace/trace.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arith.h"
#include "base/clock.h"
#include "base/gzip.h"
#include "base/log.h"
#include "fbt_event.h"
#include "metrics/metrics.h"
#include "model/env_host.h"
#include "model/event.h"
#include "option_judging.h"
#include "output/capture.h"
#include "profile/profile.h"
#include "profile/records.h"
#include "proc/process.h"
#include "sandbox/broker.h"
#include "sandbox/filter.h"
#include "sandbox/privilege.h"
#include "stacks/namer.h"
#include "steps/image.h"
#include "trace/command.h"
#include "trace/confine.h"
#include "trace/exports.h"
#include "trace/flight.h"
#include "trace/live_view.h"
#include "trace/loading.h"
#include "trace/loop.h"
#include "trace/outputs.h"
#include "trace/session.h"

/*
 * The rings wake nobody, because a wake-up would cost a traced thread 10 us. They are drained at
 * half of the time that a ring must hold.
 */
#define POLL_NS (10 * NS_PER_MS)
/* With a flight recorder no calls come, and the ring holds 6,000 steps. A turn takes some 80 us. */
#define FLIGHT_POLL_NS (25 * NS_PER_MS)
#define STATUS_NS      NS_PER_S
/* Minimum time between two looks for the flag, however busy its folder is. */
#define LOOK_GAP_US 5000
/* While metrics are on their way: each turn takes them one round trip further. */
#define SENDING_TURN_NS (10 * NS_PER_MS)
#define ROOM_NS		(10 * NS_PER_S)

struct trace {
	const struct options *options;
	struct loop *loop;
	struct session *session; /* NULL: none yet */
	struct exports *exports; /* of the window that is open */
	struct exports_shared shared;
	struct env_host host;	      /* empty unless --compute-env-hash needs it */
	struct record_output records; /* where the session sends; set before it starts */
	uint64_t end_ns;	      /* of -d; 0: no limit */
	struct child *command;	      /* COMMAND, after its window has ended; NULL: none */
	int ready_fd;		      /* --ready-fd; 0: none, or already written to */
	struct flight *flight;	      /* --flight-fd; NULL: none */
	struct live_view *view;	      /* NULL: not of the command top */

	/* Only by flag: */
	struct flag *flag;
	struct pid_set *targets;       /* NULL: with -a */
	struct options window_options; /* the options that the session borrows */
	struct fbt_cost cost;
	uint64_t served;  /* value of flag__look for the last window */
	uint64_t room_ns; /* when to check again whether the session has room */
	int first_err;
};

enum ending {
	ENDED_BY_USER, /* a signal, or -d */
	ENDED_BY_FLAG,
	ENDED_BY_ITSELF, /* the targets have ended, or enough steps were seen */
};

/* After the window has closed its last escalations may come: nobody needs them any more. */
static void note_escalation(void *ctx, const struct step *step, const struct escalation *escalation)
{
	const struct trace *trace = ctx;

	if (trace->session)
		session__note_escalation(trace->session, step, escalation);
}

static void set_deadline(struct trace *trace)
{
	if (trace->options->duration_ns)
		trace->end_ns = clock_ns(CLOCK_MONOTONIC) + trace->options->duration_ns;
}

static bool is_due(const struct trace *trace, uint64_t now_ns)
{
	return trace->end_ns && now_ns >= trace->end_ns;
}

/* On failure nothing stays attached, and no file is left. */
static int open_window(struct trace *trace)
{
	int err = loop__set_turn(trace->loop, trace->flight ? FLIGHT_POLL_NS : POLL_NS);

	trace->records = exports__records(trace->exports);
	if (!err)
		err = session__start(trace->session, exports__tag(trace->exports));
	if (!err)
		return 0;
	exports__discard(trace->exports);
	trace->exports = NULL;
	return err;
}

/* --ready-fd, as in s6. The reader must not block us. Without a reader (EPIPE) we continue. */
static void tell_ready(struct trace *trace)
{
	struct pollfd room = {.fd = trace->ready_fd, .events = POLLOUT};

	if (!trace->ready_fd || !session__is_attached(trace->session))
		return;
	if (poll(&room, 1, 0) != 1 || write(trace->ready_fd, "\n", 1) != 1)
		log_warn("--ready-fd %d: cannot be written to", trace->ready_fd);
	close(trace->ready_fd);
	trace->ready_fd = 0;
}

static void escalate(struct trace *trace)
{
	session__escalate(trace->session);
	if (trace->flag && !trace->options->all)
		log_info("SIGUSR1: the next step of each process is escalated, since each has "
			 "files of its own");
	else if (session__has_several(trace->session))
		log_info("SIGUSR1: the next step is escalated: one in all, in whichever process "
			 "it ends");
	else
		log_info("SIGUSR1: the next step is escalated");
}

/* What was asked for while the window was prepared. */
static unsigned int take_early(struct trace *trace)
{
	unsigned int news = loop__take(trace->loop);

	if (!(news & LOOP_MANUAL))
		return news;
	log_info("SIGUSR1 came before the window was open: it is served now");
	escalate(trace);
	return news;
}

static enum ending run_window(struct trace *trace)
{
	uint64_t now_ns = clock_ns(CLOCK_MONOTONIC), status_ns = now_ns + STATUS_NS;
	unsigned int news;

	if (take_early(trace) & LOOP_END)
		return ENDED_BY_USER;
	tell_ready(trace);
	while (!((news = loop__wait(trace->loop)) & LOOP_END)) {
		session__poll(trace->session);
		tell_ready(trace);
		if (news & LOOP_MANUAL)
			escalate(trace);
		exports__poll(trace->exports);
		if (trace->shared.metrics)
			metrics__poll(trace->shared.metrics);
		if (!flight__turn(trace->flight, trace->session, exports__tag(trace->exports)))
			break;
		now_ns = clock_ns(CLOCK_MONOTONIC);
		if (!live_view__turn(trace->view, news, trace->session, now_ns))
			return ENDED_BY_USER;
		if (session__is_over(trace->session)) {
			flight__end(trace->flight, trace->session, exports__tag(trace->exports));
			return ENDED_BY_ITSELF;
		}
		if (is_due(trace, now_ns))
			break;
		if (trace->flag && flag__look(trace->flag) != trace->served)
			return ENDED_BY_FLAG;
		if (now_ns >= status_ns) {
			sandbox_filter_report();
			exports__show_status(trace->exports, now_ns);
			if (trace->shared.metrics)
				metrics__set_cost(trace->shared.metrics,
						  session__call_ps(trace->session),
						  session__probes_ns(trace->session));
			status_ns += STATUS_NS;
		}
	}
	return ENDED_BY_USER;
}

static void free_session(struct trace *trace)
{
	session__free(trace->session);
	trace->session = NULL;
}

/* All is still attached, and the rings go on filling. */
static void poll_session(void *ctx)
{
	struct trace *trace = ctx;

	session__poll(trace->session);
}

static int close_window(struct trace *trace)
{
	int unmet = session__finish(trace->session), err;

	session__give_torch(trace->session, exports__take_torch, trace->exports);
	sandbox_filter_report();
	trace->command = session__take_command(trace->session);
	/*
	 * Detach first: probes cost the target time until they are gone, and a collector may be
	 * slow.
	 */
	free_session(trace);
	err = exports__finish(trace->exports);
	exports__free(trace->exports);
	trace->exports = NULL;
	if (trace->shared.metrics)
		metrics__close_window(trace->shared.metrics);
	sandbox_filter_report();
	return err ? err : unmet;
}

/* --metrics, --otlp-metrics. NULL: neither is given. 0 or -ENOMEM. */
static int open_metrics(struct metrics **metrics, const struct options *options, bool is_replay)
{
	struct metrics_options wanted = {
		.path = options->metrics,
		.collector = options->otlp_metrics ? &options->metrics_collector : NULL,
		.service = getenv("OTEL_SERVICE_NAME"),
		.instance = getenv("FERRUM_BPFTRACE_INSTANCE"), /* of watch */
		.interval_ns = options->metrics_interval_ns,
		.keep_free = options->windows.keep_free,
		.is_replay = is_replay,
	};

	*metrics = NULL;
	if (!wanted.path && !wanted.collector)
		return 0;
	*metrics = metrics__new(&wanted);
	return *metrics ? 0 : -ENOMEM;
}

/* The last values; a failure to write them is one of the run. */
static void close_metrics(struct metrics *metrics, int *err)
{
	if (!metrics)
		return;
	keep_first(err, metrics__end(metrics));
	metrics__free(metrics);
}

/* Until there is a loop, signals end the tool; nothing is attached yet. */
static int attach_and_run(struct trace *trace)
{
	int err = loop__new(&trace->loop);

	if (err) {
		exports__discard(trace->exports);
		return err;
	}
	err = open_window(trace);
	if (!err) {
		set_deadline(trace);
		err = live_view__open(trace->view, trace->loop);
		confine(trace->options);
		if (!err)
			run_window(trace);
		live_view__close(trace->view);
		keep_first(&trace->first_err, err);
		loop__restore_signals(trace->loop, poll_session, trace);
		err = close_window(trace);
		keep_first(&err, trace->first_err);
	} else {
		trace->command = session__take_command(trace->session);
	}
	loop__free(trace->loop);
	return err;
}

/*
 * Called before anything is attached, since collecting the host's data runs programs, for a second
 * or more.
 */
static int begin(struct trace *trace)
{
	const struct options *options = trace->options;
	struct env_tools tools = env_tools_default();
	int err = privilege_check();

	if (!err && options->compute_env_hash && !options->metadata.env_hash) {
		trace->shared.host = &trace->host;
		err = env_host_collect(&trace->host, &tools);
	}
	if (!err)
		err = open_metrics(&trace->shared.metrics, options, false);
	if (!err && trace->shared.metrics)
		metrics__poll(trace->shared.metrics);
	if (!err)
		confine_broker_start(options);
	return err;
}

static void end(struct trace *trace)
{
	session__free(trace->session);
	live_view__free(trace->view);
	broker_stop();
	env_host_clear(&trace->host);
}

int trace_once(const struct options *options, int *command_status)
{
	struct trace trace = {
		.options = options,
		.ready_fd = options->ready_fd,
		.shared = {.options = options,
			   .on_escalation = note_escalation,
			   .ctx = &trace,
			   .add_sinks = flight__add_sinks},
	};
	int err = live_view__new(&trace.view, options);

	if (!err)
		err = begin(&trace);
	if (!err)
		err = flight__new(&trace.flight, options);
	trace.shared.sinks_ctx = trace.flight;
	if (!err)
		err = session__open(&trace.session, options, &trace.records, NULL, false);
	if (!err)
		err = exports__open_one(&trace.exports, &trace.shared,
					session__main_tgid(trace.session));
	if (!err && live_view__attach(trace.view, trace.exports)) {
		err = -ENOMEM;
		exports__discard(trace.exports);
	}
	if (!err)
		err = attach_and_run(&trace);
	/*
	 * Done last: after Ctrl-C, COMMAND may take as long to end as we take to write our files.
	 */
	if (trace.command)
		*command_status = child__status(trace.command);
	child__free(trace.command);
	close_metrics(trace.shared.metrics, &err);
	end(&trace);
	flight__free(trace.flight);
	return err;
}

/* The targets of a window are those that are still alive. */
static void narrow_options(struct trace *trace)
{
	if (trace->targets)
		trace->window_options.pids = *pid_set__pids(trace->targets);
}

/* Does everything that can be done before the flag appears. */
static int prepare(struct trace *trace, bool quiet)
{
	narrow_options(trace);
	trace->room_ns = clock_ns(CLOCK_MONOTONIC) + ROOM_NS;
	return session__open(&trace->session, &trace->window_options, &trace->records, &trace->cost,
			     quiet);
}

/* Prepares for the same targets again, about which everything has been logged. */
static int prepare_again(struct trace *trace)
{
	trace->window_options.wait_step = true;
	return prepare(trace, true);
}

/* Opens the session again if new threads need more room. */
static void keep_room(struct trace *trace, uint64_t now_ns)
{
	if (!trace->session || now_ns < trace->room_ns)
		return;
	trace->room_ns = now_ns + ROOM_NS;
	if (session__has_room(trace->session))
		return;
	free_session(trace);
	prepare_again(trace);
}

/* Returns what signals have asked for; also LOOP_END if the loop fails. */
static unsigned int wait_a_turn(struct trace *trace, uint64_t now_ns)
{
	uint64_t turn_ns = flag__turn_ns(trace->flag);
	unsigned int news;
	int err;

	if (trace->shared.metrics && metrics__is_sending(trace->shared.metrics))
		turn_ns = min_u64(turn_ns, SENDING_TURN_NS);
	if (trace->end_ns && trace->end_ns - now_ns < turn_ns)
		turn_ns = trace->end_ns - now_ns;
	err = loop__set_turn(trace->loop, turn_ns);
	keep_first(&trace->first_err, err);
	if (err)
		return LOOP_END;
	usleep(LOOK_GAP_US);
	news = loop__wait(trace->loop);
	if (news & LOOP_MANUAL)
		log_info("SIGUSR1: no window is open, so there is no step to escalate");
	return news;
}

/* true: open a window. false: it is time to end. */
static bool wait_for_flag(struct trace *trace)
{
	unsigned int news = 0;
	bool told = false;

	for (;;) {
		uint64_t now_ns = clock_ns(CLOCK_MONOTONIC), time;

		if ((news & LOOP_END) || is_due(trace, now_ns))
			return false;
		if (trace->targets && !pid_set__look(trace->targets)) {
			log_info("the target has ended");
			return false;
		}
		time = flag__look(trace->flag);
		if (time && time != trace->served) {
			trace->served = time;
			return true;
		}
		if (!told)
			log_info("waiting for %s", trace->options->windows.flag);
		told = true;
		keep_room(trace, now_ns);
		if (trace->shared.metrics)
			metrics__poll(trace->shared.metrics);
		news = wait_a_turn(trace, now_ns);
	}
}

static int open_window_by_flag(struct trace *trace)
{
	int err = trace->session ? 0 : prepare_again(trace);

	if (err)
		return err;
	narrow_options(trace);
	session__refresh(trace->session);
	if (trace->options->all)
		err = exports__open_one(&trace->exports, &trace->shared, 0);
	else
		err = exports__open_each(&trace->exports, &trace->shared);
	if (!err)
		err = open_window(trace);
	if (!err)
		log_info("window %" PRIu64 " is open", exports__unix_ms(trace->exports));
	return err;
}

/* Traces one window. Returns whether to continue. */
static bool serve_flag(struct trace *trace)
{
	enum ending ending = ENDED_BY_ITSELF;
	int err = open_window_by_flag(trace);

	if (!err) {
		ending = run_window(trace);
		if (ending == ENDED_BY_USER)
			loop__restore_signals(trace->loop, poll_session, trace);
		err = close_window(trace);
	}
	keep_first(&trace->first_err, err);
	/* If no window was opened, the session still exists, in whatever state. */
	free_session(trace);
	if (ending == ENDED_BY_USER)
		return false;
	if (trace->targets && !pid_set__look(trace->targets))
		return true;
	if (flag__look(trace->flag) == trace->served)
		log_info("the next window opens once %s has been removed and created again",
			 trace->options->windows.flag);
	prepare_again(trace);
	return true;
}

static int serve_flags(struct trace *trace)
{
	int fd = flag__fd(trace->flag);
	bool goes_on = true;

	set_deadline(trace);
	while (goes_on) {
		/*
		 * Watched only between windows: a window has enough turns, and other files in the
		 * folder would wake us.
		 */
		if (fd >= 0)
			keep_first(&trace->first_err, loop__watch(trace->loop, fd));
		goes_on = wait_for_flag(trace);
		if (fd >= 0)
			loop__unwatch(trace->loop, fd);
		if (goes_on)
			goes_on = serve_flag(trace);
	}
	return trace->first_err;
}

static void tell_torch(const struct options *options)
{
	log_warn("--torch-trace: while a window is open, PyTorch's profiler runs in the "
		 "engine, and steps take about 5 times as long: they are marked, and not "
		 "judged. Errors of that profiler are errors of the engine: PyTorch has "
		 "crashed programs in which other threads ran operators when it was "
		 "stopped (docs/python.md)");
	if (options->torch.stack)
		log_warn("--torch-trace with FERRUM_BPFTRACE_WITH_STACK=1: PyTorch's start may "
			 "hang an engine that has several threads and is busy");
	if (options->gpu.mode != GPU_OFF)
		log_warn("--torch-trace with GPU records: with PyTorch since August 2026 the GPU "
			 "records may end when its profiler starts; an older one records no GPU "
			 "work in that process again, unless it had been used there before "
			 "(--gpu off avoids both)");
}

int trace_by_flag(const struct options *options, struct flag *flag)
{
	struct trace trace = {
		.options = options,
		.ready_fd = options->ready_fd,
		.flag = flag,
		.window_options = *options,
		.shared = {.options = options, .on_escalation = note_escalation, .ctx = &trace},
	};
	int err = begin(&trace);

	trace.window_options.steps = options->windows.max_steps;
	if (!err && !options->all)
		err = pid_set__new(&trace.targets, &options->pids);
	if (!err && options->torch.is_on)
		tell_torch(options);
	err = err ? err : loading_measure(options, &trace.cost, trace.window_options.explain_ps);
	err = err ? err : prepare(&trace, false);
	err = err ? err : loop__new(&trace.loop);
	if (!err)
		confine(options);
	if (!err)
		err = serve_flags(&trace);
	loop__free(trace.loop);
	close_metrics(trace.shared.metrics, &err);
	end(&trace);
	pid_set__free(trace.targets);
	return err;
}

struct replay {
	struct options *options;
	const struct metadata *metadata;
	struct otlp_health health;
	struct metrics *metrics;
	struct outputs *outputs;  /* NULL: not open yet */
	struct code_namer *namer; /* NULL: no --symbols */
	int naming_err;
	bool escalate; /* --escalate-now has yet to be served */
};

static void push_outputs(void *ctx, const void *data, size_t size)
{
	outputs__push(ctx, data, size);
}

/* Code that has no name in the capture gets one from --symbols. */
static void push_named(struct replay *replay, const void *data, size_t size)
{
	const struct record_output output = {push_outputs, replay->outputs};
	int err = 0;

	if (replay->namer)
		err = code_namer__push(replay->namer, data, size, &output);
	else
		outputs__push(replay->outputs, data, size);
	keep_first(&replay->naming_err, err);
}

static int open_replayed(struct replay *replay)
{
	return outputs__open(&replay->outputs, replay->options, replay->metadata, NULL,
			     &replay->health, replay->metrics);
}

/* The options of a recording, if it has any: they come right after its window. */
static int take_options(struct options *options, const void *data, size_t size)
{
	const char *texts[FBT_OPTIONS_MAX], *position = data;
	const struct fbt_header *event;
	uint32_t count;

	if (decode_event(position, size, &event) <= 0 || event->type != FBT_EVENT_WINDOW)
		return 0;
	position += event->size;
	size -= event->size;
	if (decode_event(position, size, &event) <= 0 || event->type != FBT_EVENT_OPTIONS)
		return 0;
	count = ((const struct fbt_options *)event)->count;
	for (uint32_t i = 0; i < count; i++)
		texts[i] = decode_string(event, i);
	return option_judging_take(options, texts, count);
}

static void push_records(void *ctx, const void *data, size_t size)
{
	struct replay *replay = ctx;
	const struct fbt_window *window = data;

	/*
	 * As when tracing, the request comes right after the window's record, with which a capture
	 * begins.
	 */
	if (replay->escalate && size >= sizeof(*window) &&
	    window->header.type == FBT_EVENT_WINDOW && window->header.size <= size) {
		struct fbt_manual manual = {
			.header = {.type = FBT_EVENT_MANUAL, .size = sizeof(manual)},
			.time_ns = window->start_ns,
		};

		replay->escalate = false;
		outputs__push(replay->outputs, data, window->header.size);
		outputs__push(replay->outputs, &manual, sizeof(manual));
		data = (const char *)data + window->header.size;
		size -= window->header.size;
	}
	push_named(replay, data, size);
}

/* How steps are judged is known when the first block is there. */
static int push_block(void *ctx, const void *data, size_t size)
{
	struct replay *replay = ctx;
	int err = 0;

	if (!replay->outputs)
		err = take_options(replay->options, data, size);
	if (err)
		log_err("options of the recording: %s", strerror(-err));
	else if (!replay->outputs)
		err = open_replayed(replay);
	if (!err)
		push_records(replay, data, size);
	return err;
}

/* 0; -EINVAL, logged, if a file of --symbols has none; or -ENOMEM. */
static int open_symbols(struct replay *replay, const struct options *options)
{
	struct symbol_files symbols = options_symbols(options);
	int err = 0;

	for (size_t i = 0; i < symbols.count && !err; i++)
		err = debug_file_check(symbols.paths[i], false);
	if (err || !symbols.count)
		return err;
	replay->namer = code_namer__new(&symbols);
	return replay->namer ? 0 : -ENOMEM;
}

/*
 * Whether the file begins as a profile does. One that cannot be read is none, nor is a pipe, which
 * could be read only once.
 */
static bool is_profile(const char *path)
{
	struct stat status;
	char begin[16];
	FILE *in;
	bool is;

	if (stat(path, &status) || !S_ISREG(status.st_mode))
		return false;
	in = gzip_open_input(path);
	is = in && profile_is_begin(begin, fread(begin, 1, sizeof(begin), in));
	if (in)
		fclose(in);
	return is;
}

static int read_records(const char *path, FILE *in, struct replay *replay)
{
	const struct record_output output = {push_records, replay};
	bool from_profile = is_profile(path);
	int err = from_profile ? 0 : capture_read(in, path, push_block, replay);

	/* A profile has no options, and a recording may have been cut off before its first block.
	 */
	if (!err && !replay->outputs)
		err = open_replayed(replay);
	return err || !from_profile ? err : profile_send_records(path, &output);
}

int replay_run(struct options *options, const struct metadata *metadata)
{
	struct replay replay = {
		.options = options, .metadata = metadata, .escalate = options->escalate_now};
	int err = 0, failed;
	FILE *in = gzip_open_input(options->replay);

	if (!in) {
		err = -errno;
		log_err("%s: %s", options->replay, strerror(-err));
		return err;
	}
	if (options->compute_env_hash && !strcmp(metadata->env_hash, METADATA_ENV_HASH_UNKNOWN))
		log_warn("--compute-env-hash: a capture does not describe its host: the hash stays "
			 "unknown");
	err = open_symbols(&replay, options);
	if (!err)
		err = open_metrics(&replay.metrics, options, true);
	if (!err)
		err = read_records(options->replay, in, &replay);
	fclose(in);
	if (!err && replay.namer)
		code_namer__tell(replay.namer);
	code_namer__free(replay.namer);
	keep_first(&err, replay.naming_err);
	/* The file is not a capture: there is nothing else to report. */
	if (err && (!replay.outputs || !outputs__window(replay.outputs)->record.start_ns)) {
		outputs__discard(replay.outputs);
		metrics__free(replay.metrics);
		return err;
	}
	failed = outputs__finish(replay.outputs);
	outputs__wait(replay.outputs);
	outputs__free(replay.outputs);
	close_metrics(replay.metrics, &failed);
	return err ? err : failed;
}
