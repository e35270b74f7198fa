/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "trace.h"

#include <errno.h>
#include <inttypes.h>
#include <unistd.h>

#include "clock.h"
#include "confine.h"
#include "env_host.h"
#include "exports.h"
#include "living.h"
#include "loading.h"
#include "log.h"
#include "loop.h"
#include "privilege.h"
#include "session.h"

/* No wakeups from the kernel: each would cost a traced thread 10 us. Half of what a ring must hold.
 */
#define POLL_NS	  (10 * 1000000ull)
#define STATUS_NS (1000 * 1000000ull)
/* Between two looks for the flag, however much goes on in its folder. */
#define LOOK_GAP_US 5000
#define ROOM_NS	    (10 * 1000000000ull)

struct trace {
	const struct options *options;
	struct loop *loop;
	struct session *session; /* NULL: there is none yet */
	struct exports *exports; /* of the window that is open */
	struct env_host host;	 /* empty unless a hash is made of it */
	/* Where the session sends; filled in before it starts. */
	struct record_output records;
	uint64_t end_ns; /* the limit of time; 0: there is none */

	/* By flag: */
	struct flag *flag;
	struct living *living;	       /* the targets; NULL: all processes there are */
	struct options window_options; /* what the session borrows */
	struct fbt_cost cost;
	uint64_t served;  /* the flag's time that has had its window */
	uint64_t room_ns; /* when to look next whether the session has room */
	int first_err;
};

/* What ended a window. */
enum ending {
	ENDED_BY_USER, /* a signal, or the limit of time */
	ENDED_BY_FLAG,
	ENDED_BY_ITSELF, /* targets or steps */
};

static void set_deadline(struct trace *trace)
{
	if (trace->options->duration_ns)
		trace->end_ns = clock_ns(CLOCK_MONOTONIC) + trace->options->duration_ns;
}

static bool is_due(const struct trace *trace, uint64_t now_ns)
{
	return trace->end_ns && now_ns >= trace->end_ns;
}

/* On failure nothing is attached, and no file is left. */
static int open_window(struct trace *trace)
{
	int err = loop__set_turn(trace->loop, POLL_NS);

	trace->records = exports__records(trace->exports);
	if (!err)
		err = session__start(trace->session, exports__tag(trace->exports));
	if (!err)
		return 0;
	exports__discard(trace->exports);
	trace->exports = NULL;
	return err;
}

static enum ending run_window(struct trace *trace)
{
	uint64_t now_ns = clock_ns(CLOCK_MONOTONIC), status_ns = now_ns + STATUS_NS;
	unsigned int news;

	while (!((news = loop__wait(trace->loop)) & LOOP_END)) {
		session__poll(trace->session);
		if (news & LOOP_MANUAL)
			session__escalate(trace->session);
		exports__poll(trace->exports);
		now_ns = clock_ns(CLOCK_MONOTONIC);
		if (session__is_over(trace->session))
			return ENDED_BY_ITSELF;
		if (is_due(trace, now_ns))
			break;
		if (trace->flag && flag__look(trace->flag) != trace->served)
			return ENDED_BY_FLAG;
		if (now_ns >= status_ns) {
			confine_report();
			exports__show_status(trace->exports, now_ns);
			status_ns += STATUS_NS;
		}
	}
	return ENDED_BY_USER;
}

static void drop_session(struct trace *trace)
{
	session__free(trace->session);
	trace->session = NULL;
}

static int close_window(struct trace *trace)
{
	int unmet = session__finish(trace->session), err;

	confine_report();

	/* Its probes cost the target something until they are gone, and a collector may be slow. */
	drop_session(trace);
	err = exports__finish(trace->exports);
	exports__free(trace->exports);
	trace->exports = NULL;
	confine_report();
	return err ? err : unmet;
}

/* Signals come through the loop only from here on: before, they end us, and nothing is attached. */
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
		confine(trace->options);
		run_window(trace);
		loop__restore_signals(trace->loop);
		err = close_window(trace);
	}
	loop__free(trace->loop);
	return err;
}

/* It runs programs, for a second or more: once, and before anything is attached. */
static int collect_host(struct trace *trace)
{
	struct env_tools tools = env_tools_default();

	if (!trace->options->compute_env_hash || trace->options->metadata.env_hash)
		return 0;
	return env_host_collect(&trace->host, &tools);
}

static const struct env_host *host_of(const struct trace *trace)
{
	return trace->host.hw_id ? &trace->host : NULL;
}

int trace_once(const struct options *options)
{
	struct trace trace = {.options = options};
	int err = privilege_check();

	if (!err)
		err = collect_host(&trace);
	if (!err)
		confine_prepare(options);
	if (!err)
		err = session__open(&trace.session, options, &trace.records, NULL);
	if (!err)
		err = exports__open_one(&trace.exports, options, host_of(&trace),
					session__main_tgid(trace.session));
	if (!err)
		err = attach_and_run(&trace);
	session__free(trace.session);
	confine_finish();
	env_host_clear(&trace.host);
	return err;
}

/* What the window options say of the targets is what is left of them. */
static void narrow_options(struct trace *trace)
{
	if (trace->living)
		trace->window_options.pids = *living__pids(trace->living);
}

/* All that can be done before the flag comes. */
static int prepare(struct trace *trace)
{
	narrow_options(trace);
	trace->room_ns = clock_ns(CLOCK_MONOTONIC) + ROOM_NS;
	return session__open(&trace->session, &trace->window_options, &trace->records,
			     &trace->cost);
}

/* The same targets again: what there is to say of them was said the first time. */
static int prepare_again(struct trace *trace)
{
	enum log_level level = log_level();
	int err;

	if (level < LOG_DEBUG && level > LOG_ERR)
		log_set_level(LOG_ERR);
	trace->window_options.wait_step = true;
	err = prepare(trace);
	log_set_level(level);
	return err;
}

/* Threads may have come while nobody looked. */
static void keep_room(struct trace *trace, uint64_t now_ns)
{
	if (!trace->session || now_ns < trace->room_ns)
		return;
	trace->room_ns = now_ns + ROOM_NS;
	if (session__has_room(trace->session))
		return;
	drop_session(trace);
	prepare_again(trace);
}

static void keep_first_error(struct trace *trace, int err)
{
	if (!trace->first_err)
		trace->first_err = err;
}

/* What signals asked for; without a loop there is nothing to wait for but the end. */
static unsigned int wait_a_turn(struct trace *trace, uint64_t now_ns)
{
	uint64_t turn_ns = flag__turn_ns(trace->flag);
	unsigned int news;
	int err;

	if (trace->end_ns && trace->end_ns - now_ns < turn_ns)
		turn_ns = trace->end_ns - now_ns;
	err = loop__set_turn(trace->loop, turn_ns);
	keep_first_error(trace, err);
	if (err)
		return LOOP_END;
	usleep(LOOK_GAP_US);
	news = loop__wait(trace->loop);
	if (news & LOOP_MANUAL)
		log_info("SIGUSR1: no window is open, so there is no step to escalate");
	return news;
}

/* Whether a window is to be opened; else it is time to end. */
static bool wait_for_flag(struct trace *trace)
{
	unsigned int news = 0;
	bool told = false;

	for (;;) {
		uint64_t now_ns = clock_ns(CLOCK_MONOTONIC), time;

		if ((news & LOOP_END) || is_due(trace, now_ns))
			return false;
		if (trace->living && !living__look(trace->living)) {
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
		err = exports__open_one(&trace->exports, trace->options, host_of(trace), 0);
	else
		err = exports__open_each(&trace->exports, trace->options, host_of(trace));
	if (!err)
		err = open_window(trace);
	if (!err)
		log_info("window %" PRIu64 " is open", exports__unix_ms(trace->exports));
	return err;
}

/* Whether to go on. */
static bool serve_flag(struct trace *trace)
{
	enum ending ending = ENDED_BY_ITSELF;
	int err = open_window_by_flag(trace);

	if (!err) {
		ending = run_window(trace);
		if (ending == ENDED_BY_USER)
			loop__restore_signals(trace->loop);
		err = close_window(trace);
	}
	keep_first_error(trace, err);
	/* Where no window was opened it is what it was when that failed. */
	drop_session(trace);
	if (ending == ENDED_BY_USER)
		return false;
	if (trace->living && !living__look(trace->living))
		return true;
	if (flag__look(trace->flag) == trace->served)
		log_info("the next window opens once %s has gone and come again",
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
		/* Not in a window: there are turns enough, and other files of its folder. */
		if (fd >= 0)
			keep_first_error(trace, loop__watch(trace->loop, fd));
		goes_on = wait_for_flag(trace);
		if (fd >= 0)
			loop__unwatch(trace->loop, fd);
		if (goes_on)
			goes_on = serve_flag(trace);
	}
	return trace->first_err;
}

int trace_by_flag(const struct options *options, struct flag *flag)
{
	struct trace trace = {.options = options, .flag = flag, .window_options = *options};
	int err = privilege_check();

	trace.window_options.steps = options->windows.max_steps;
	if (!err)
		err = collect_host(&trace);
	if (!err)
		confine_prepare(options);
	if (!err && !options->all)
		err = living__new(&trace.living, &options->pids);
	if (!err)
		err = loading_measure(options, &trace.cost);
	if (!err)
		err = prepare(&trace);
	if (!err)
		err = loop__new(&trace.loop);
	if (!err)
		confine(options);
	if (!err)
		err = serve_flags(&trace);
	loop__free(trace.loop);
	session__free(trace.session);
	living__free(trace.living);
	confine_finish();
	env_host_clear(&trace.host);
	return err;
}
