/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "shim/peer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arith.h"
#include "base/clock.h"
#include "base/log.h"
#include "fbt_gpu.h"
#include "inject/cuda_use.h"
#include "model/gpu.h"
#include "proc/namespace.h"
#include "shim/relay.h"
#include "shim/ring.h"

/* Searches for a shim take at most 1 / LOOK_SHARE of the time. */
#define LOOK_SHARE 100
/* One search in CUDA_EVERY also checks for CUDA without a shim. */
#define CUDA_EVERY 4
/*
 * How long to wait before another try: by then another tool may have released CUPTI, another tracer
 * may have ended, or a stopped process may have continued.
 */
#define RETRY_NS 10000000000ull
/* So often a shim that failed is asked again: the engine or its driver may not have been ready. */
#define FAILURES_MAX 5

/* After PATIENCE_NS without an answer the wait is logged; after ANSWER_NS the shim is given up. */
#define PATIENCE_NS 10000000000ull
/* CUPTI takes up to 15 s for its first start. */
#define ANSWER_NS 30000000000ull
/* An armed shim changes its pulse several times a second. */
#define PULSE_NS 5000000000ull
#define BEAT_NS	 (FBT_GPU_BEAT_NS / 2)

/* A process whose status keeps changing must not fill the log. */
#define LOG_LINES 32
/* Limits of texts in messages; the target may have made them up. */
#define DETAIL_MAX  200
#define PATH_SHOWN  120
#define DETAIL_SIZE 256

enum peer_state {
	SEARCHING, /* no ring was found */
	DEAD,	   /* the shim will not work again; its last records are being read */
	DEAD_TOLD, /* DEAD, and the shim gave a reason */
	INHERITED, /* asked, but the shim still handles the previous tracer's request */
	ASKED,
	ARMED,
	SILENT,	 /* armed, but its pulse has stopped; the process may be stopped */
	ENDED,	 /* the shim disarmed itself: it has not seen our beat for a while */
	BUSY,	 /* another tool holds CUPTI, or it failed; that may change */
	REFUSED, /* the shim will not collect */
	LEAVING, /* disarmed at the end of the window; its last records may still come */
	LEFT,	 /* LEAVING, and the shim says that it has stopped */
	DONE,	 /* nothing more will come */
	STATE_COUNT,
};

enum peer_event {
	/* What the shim says. */
	SAYS_OTHER, /* any other status */
	SAYS_ARMED,
	SAYS_ENDED,
	SAYS_BUSY,
	SAYS_FAILED, /* it failed to collect, but may be asked again */
	SAYS_NO,     /* it will not collect, for another reason than BUSY */
	/* What a turn finds. */
	READ, /* there are no more records for now */
	/* The shim has handled the latest request and is idle, or is dead. */
	RESTS,
	OVERDUE, /* the shim has not answered in ANSWER_NS */
	PULSE,	 /* the pulse has changed */
	SILENCE, /* the pulse has not changed in PULSE_NS */
	NOTHING,
	BAD_RING,
	/* What the caller says. */
	PROCESS_ENDS,
	LEAVE,
	GIVE_UP,
	EVENT_COUNT,
};

struct gpu_peer {
	enum peer_state state;
	struct gpu_ring *ring; /* NULL while SEARCHING or DONE */
	struct gpu_relay relay;
	uint64_t now_ns;   /* time of the current call */
	uint64_t look_ns;  /* when the next look is due */
	uint64_t asked_ns; /* when the shim was asked */
	uint64_t arm_ns;   /* how long it took to arm */
	uint64_t warn_ns;  /* when to log that we wait for its answer; UINT64_MAX: that was done */
	bool told_wait;	   /* it was logged once: one that is stopped is asked again and again */
	uint64_t beat_ns;  /* of our last beat */
	uint64_t pulse_ns; /* when the pulse last changed */
	uint32_t pulse;
	uint32_t looks;
	uint32_t failures; /* to arm */
	bool was_armed;	   /* at any time */

	struct fbt_gpu_state status; /* the status as last sent */
	char *library;		     /* path of libcupti; NULL: not known */
	uint32_t changes;	     /* how often a status was sent */
	bool unknown;		     /* it was logged that the process cannot be examined */

	bool injects;	       /* a missing shim will be injected: ABSENT is not sent */
	uint64_t lacks_ns;     /* since when the shim is missing; 0: it is not */
	bool lacks_from_start; /* it was missing at the first look */
	bool renewed;	       /* execve was called since the status was sent */
};

static void warn(const struct fbt_gpu_state *status, const char *detail)
{
	const struct gpu_problem *problem = gpu_status_problem((enum fbt_gpu_status)status->status);

	if (*detail)
		log_warn("process %u: GPU records are off: %s (%.*s): %s", status->tgid,
			 problem->what, DETAIL_MAX, detail, problem->advice);
	else
		log_warn("process %u: GPU records are off: %s: %s", status->tgid, problem->what,
			 problem->advice);
}

/* Logs problems as warnings, a missing shim as information, and the rest only with -v. */
static void log_gpu_status(const struct fbt_gpu_state *status, const char *detail)
{
	char version[32];

	switch (status->status) {
	case FBT_GPU_ABSENT:
		log_info("process %u: no GPU records: %s (ferrum-bpftrace engine-env says how to "
			 "load the shim)",
			 status->tgid, *detail ? detail : gpu_status_problem(FBT_GPU_ABSENT)->what);
		break;
	case FBT_GPU_ARMED:
		log_debug("process %u: GPU records are on, CUPTI %s, after %.3f s", status->tgid,
			  gpu_cupti_version_name(status->cupti_version, version),
			  (double)status->arm_ns / 1e9);
		break;
	case FBT_GPU_ENDED:
		if (*detail)
			log_warn("process %u: GPU records are interrupted: %.*s; its shim is armed "
				 "again",
				 status->tgid, DETAIL_MAX, detail);
		break;
	case FBT_GPU_EXITED:
	case FBT_GPU_NOT_CUDA:
	case FBT_GPU_OFF:
		log_debug("process %u: GPU status %s", status->tgid,
			  gpu_status_name((enum fbt_gpu_status)status->status));
		break;
	default:
		warn(status, detail);
	}
}

/* Sends and logs a status, unless it equals the last one sent. */
static void say_at(struct gpu_peer *peer, enum fbt_gpu_status status, const char *detail,
		   uint64_t time_ns)
{
	const char *const strings[] = {detail, peer->library};
	struct fbt_gpu_state *state = &peer->status;

	peer->renewed = false;
	if (peer->changes && state->status == status)
		return;
	state->status = status;
	state->time_ns = time_ns;
	if (status != FBT_GPU_ARMED)
		state->arm_ns = 0;
	if (record_send_strings(peer->relay.output, state, sizeof(*state), FBT_EVENT_GPU_STATE,
				strings, 2))
		log_warn("process %u: no memory for its GPU status", state->tgid);
	if (peer->changes++ < LOG_LINES)
		log_gpu_status(state, detail);
	else if (peer->changes == LOG_LINES + 1)
		log_info("process %u: its GPU status keeps changing: further changes are not "
			 "logged",
			 state->tgid);
}

static void say(struct gpu_peer *peer, enum fbt_gpu_status status, const char *detail)
{
	say_at(peer, status, detail, peer->now_ns);
}

/* Stores what a status record of the shim says about CUPTI. The record has been checked. */
static void learn(struct gpu_peer *peer, const struct fbt_gpu_state *said)
{
	const char *library = decode_string(&said->header, 1);
	char *copy = *library ? strdup(library) : NULL;

	peer->status.cupti_version = said->cupti_version;
	peer->status.driver_version = said->driver_version;
	peer->status.shim_version = FBT_GPU_VERSION;
	peer->status.clock_method = said->clock_method;
	if (!copy)
		return;
	free(peer->library);
	peer->library = copy;
}

/*
 * Why the shim is missing, judged by the environment that the process was started with. "": nothing
 * asked CUDA to load it.
 */
static void describe(char detail[DETAIL_SIZE], enum cuda_injection injection, const char *path)
{
	*detail = '\0';
	switch (injection) {
	case CUDA_INJECTION_NONE:
		break;
	case CUDA_INJECTION_OTHER:
		snprintf(detail, DETAIL_SIZE, "CUDA_INJECTION64_PATH names %.*s", PATH_SHOWN, path);
		break;
	case CUDA_INJECTION_SHIM:
		snprintf(detail, DETAIL_SIZE,
			 "%.*s of CUDA_INJECTION64_PATH is not loaded: CUDA was not used yet, or "
			 "it cannot load the file",
			 PATH_SHOWN, path);
		break;
	case CUDA_INJECTION_MISSING:
		snprintf(detail, DETAIL_SIZE,
			 "%.*s of CUDA_INJECTION64_PATH is not there where it runs", PATH_SHOWN,
			 path);
		break;
	}
}

/* There is no shim: sends NOT_CUDA or ABSENT, unless another status has been sent. Reads /proc. */
static void say_absent(struct gpu_peer *peer)
{
	bool open = !peer->changes || peer->status.status == FBT_GPU_NOT_CUDA, lacks;
	uint32_t tgid = peer->status.tgid;
	enum cuda_injection injection;
	char path[CUDA_PATH_SIZE], detail[DETAIL_SIZE];

	if (!open && !peer->renewed)
		return;
	lacks = cuda_use_lacks_shim(tgid);
	injection = lacks ? cuda_use_injection(tgid, path) : CUDA_INJECTION_NONE;
	/*
	 * Wait if a shim is going to be injected, unless CUDA will load one itself. A forked child
	 * that has only inherited CUDA gets none.
	 */
	if (lacks && peer->injects && (injection != CUDA_INJECTION_SHIM || !strchr(path, '/'))) {
		lacks = !cuda_use_is_inherited(tgid);
		if (lacks && !peer->lacks_ns) {
			peer->lacks_ns = peer->now_ns;
			peer->lacks_from_start = !peer->changes;
		}
		if (lacks)
			return;
	}
	if (lacks) {
		describe(detail, injection, path);
		say(peer, FBT_GPU_ABSENT, detail);
	} else if (open) {
		say(peer, FBT_GPU_NOT_CUDA, "");
	}
}

static const char *advice_for(int err)
{
	if (err == -EMFILE)
		return ": trace fewer processes, or raise ulimit -n";
	if (err == -EACCES || err == -EPERM)
		return ": run with sudo, or grant CAP_DAC_READ_SEARCH and CAP_SYS_PTRACE";
	return "";
}

/* Sends no status, because the state of a process that cannot be examined is unknown. */
static void say_unknown(struct gpu_peer *peer, int err)
{
	if (!peer->unknown)
		log_warn("process %u: cannot look for GPU records in it: %s%s", peer->status.tgid,
			 strerror(-err), advice_for(err));
	peer->unknown = true;
}

/* Turns an error of gpu_ring__open into a status. A process that is gone gets none. */
static void explain(struct gpu_peer *peer, int err, uint32_t version, uint32_t holder)
{
	char detail[64] = "one in another container, or itself";

	switch (err) {
	case -ESRCH:
		break;
	case -EBUSY:
		if (holder)
			snprintf(detail, sizeof(detail), "process %u has them", holder);
		say(peer, FBT_GPU_TAKEN, detail);
		break;
	case -EPROTONOSUPPORT:
		snprintf(detail, sizeof(detail), "version %u, not %u", version, FBT_GPU_VERSION);
		peer->status.shim_version = version;
		say(peer, FBT_GPU_OTHER_SHIM, detail);
		break;
	case -EBADMSG:
		say(peer, FBT_GPU_BAD_RING, "");
		break;
	case -ENOENT:
		say_absent(peer);
		break;
	case -EACCES:
	case -EPERM:
		if (cuda_use_is_there(peer->status.tgid))
			say_unknown(peer, err);
		else
			say_absent(peer);
		break;
	default:
		say_unknown(peer, err);
	}
}

/* Releases the ring, so that another tracer can have it. */
static void release(struct gpu_peer *peer)
{
	gpu_ring__free(peer->ring);
	peer->ring = NULL;
	ns_tids__free(peer->relay.tids);
	peer->relay.tids = NULL;
	peer->look_ns = peer->now_ns + RETRY_NS;
}

/* The action for an event in a state, and the state after it. */
struct rule {
	void (*action)(struct gpu_peer *peer, const struct rule *rule,
		       const struct fbt_gpu_state *said); /* NULL: the event is ignored */
	enum peer_state next;
	enum fbt_gpu_status status; /* for stop and report */
	const char *detail;
};

static void do_nothing(struct gpu_peer *peer, const struct rule *rule,
		       const struct fbt_gpu_state *said)
{
}

static void let_go(struct gpu_peer *peer, const struct rule *rule, const struct fbt_gpu_state *said)
{
	release(peer);
}

static void report(struct gpu_peer *peer, const struct rule *rule, const struct fbt_gpu_state *said)
{
	say(peer, rule->status, rule->detail);
}

static void stop(struct gpu_peer *peer, const struct rule *rule, const struct fbt_gpu_state *said)
{
	report(peer, rule, said);
	release(peer);
}

/* Forwards the status that the shim reports. */
static void repeat(struct gpu_peer *peer, const struct rule *rule, const struct fbt_gpu_state *said)
{
	learn(peer, said);
	say_at(peer, (enum fbt_gpu_status)said->status, decode_string(&said->header, 0),
	       gpu_relay_mono(&peer->relay, said->time_ns, peer->now_ns));
}

static void repeat_failure(struct gpu_peer *peer, const struct rule *rule,
			   const struct fbt_gpu_state *said)
{
	peer->failures++;
	repeat(peer, rule, said);
}

static void start(struct gpu_peer *peer, const char *detail, uint64_t time_ns)
{
	peer->was_armed = true;
	peer->relay.flush.last = 0;
	peer->pulse = gpu_ring__pulse(peer->ring);
	peer->pulse_ns = peer->now_ns;
	peer->status.arm_ns = peer->arm_ns;
	say_at(peer, FBT_GPU_ARMED, detail, time_ns);
}

static void begin(struct gpu_peer *peer, const struct rule *rule, const struct fbt_gpu_state *said)
{
	uint64_t time_ns = gpu_relay_mono(&peer->relay, said->time_ns, peer->now_ns);

	learn(peer, said);
	peer->arm_ns = sub_saturating(time_ns, peer->asked_ns);
	start(peer, decode_string(&said->header, 0), time_ns);
}

static void go_on(struct gpu_peer *peer, const struct rule *rule, const struct fbt_gpu_state *said)
{
	start(peer, "", peer->now_ns);
}

static void ask(struct gpu_peer *peer, const struct rule *rule, const struct fbt_gpu_state *said)
{
	peer->asked_ns = peer->now_ns;
	peer->warn_ns = peer->now_ns + PATIENCE_NS;
	gpu_relay_begin(&peer->relay);
	/*
	 * What has ended was an earlier request: ours still waits. Asked anew at that moment each
	 * time, the shim would always be one request behind.
	 */
	if (gpu_ring__is_pending(peer->ring)) {
		peer->state = ASKED;
		return;
	}
	peer->state = gpu_ring__is_dormant(peer->ring) ? ASKED : INHERITED;
	peer->beat_ns = peer->now_ns;
	gpu_ring__arm(peer->ring);
}

static void disarm(struct gpu_peer *peer, const struct rule *rule, const struct fbt_gpu_state *said)
{
	gpu_ring__disarm(peer->ring);
}

/* Rules of every state with a ring that was asked. */
#define AT_ANY_TIME(after_bad_ring)                                                                \
	[BAD_RING] = {stop, after_bad_ring, FBT_GPU_BAD_RING, ""},                                 \
	[PROCESS_ENDS] = {stop, DONE, FBT_GPU_EXITED, ""},                                         \
	[GIVE_UP] = {stop, DONE, FBT_GPU_STALLED, "its last records did not come"}

#define UNTIL_IT_ANSWERS                                                                           \
	[SAYS_ARMED] = {begin, ARMED}, [SAYS_BUSY] = {repeat, BUSY},                               \
	[SAYS_FAILED] = {repeat_failure, BUSY}, [SAYS_NO] = {repeat, REFUSED},                     \
	[RESTS] = {stop, DONE, FBT_GPU_FAILED, "its shim does not say why"},                       \
	[OVERDUE] = {stop, SEARCHING, FBT_GPU_STALLED, "CUPTI has not started in 30 s"},           \
	[LEAVE] = {stop, DONE, FBT_GPU_STALLED, "CUPTI had not started when the window ended"},    \
	AT_ANY_TIME(SEARCHING)

/*
 * The state machine. Only the first answer of the shim counts; what follows a refusal is ignored.
 */
static const struct rule rules[STATE_COUNT][EVENT_COUNT] = {
	[SEARCHING] = {[LEAVE] = {let_go, DONE}},
	[DEAD] = {[SAYS_BUSY] = {repeat, DEAD_TOLD},
		  [SAYS_FAILED] = {repeat, DEAD_TOLD},
		  [SAYS_NO] = {repeat, DEAD_TOLD},
		  [READ] = {stop, DONE, FBT_GPU_FAILED, "its shim has given up"},
		  [BAD_RING] = {stop, SEARCHING, FBT_GPU_BAD_RING, ""}},
	[DEAD_TOLD] = {[SAYS_BUSY] = {repeat, DEAD_TOLD},
		       [SAYS_FAILED] = {repeat, DEAD_TOLD},
		       [SAYS_NO] = {repeat, DEAD_TOLD},
		       [READ] = {let_go, DONE},
		       [BAD_RING] = {stop, SEARCHING, FBT_GPU_BAD_RING, ""}},
	[INHERITED] = {[SAYS_OTHER] = {do_nothing, ASKED},
		       [SAYS_ENDED] = {do_nothing, ASKED},
		       UNTIL_IT_ANSWERS},
	[ASKED] = {UNTIL_IT_ANSWERS},
	/*
	 * A tool that takes CUPTI over while records are on would lose its own records if we took
	 * them back, so that is not tried again.
	 */
	[ARMED] = {[SAYS_ENDED] = {repeat, ENDED},
		   [SAYS_BUSY] = {repeat, REFUSED},
		   [SAYS_FAILED] = {repeat, REFUSED},
		   [SAYS_NO] = {repeat, REFUSED},
		   [RESTS] = {stop, DONE, FBT_GPU_FAILED, "its shim stopped"},
		   [SILENCE] = {report, SILENT, FBT_GPU_STALLED, ""},
		   [LEAVE] = {disarm, LEAVING},
		   AT_ANY_TIME(SEARCHING)},
	/* The shim of a stopped process stays armed as long as we beat, and resumes later. */
	[SILENT] = {[SAYS_ENDED] = {repeat, ENDED},
		    [SAYS_BUSY] = {repeat, REFUSED},
		    [SAYS_FAILED] = {repeat, REFUSED},
		    [SAYS_NO] = {repeat, REFUSED},
		    [RESTS] = {stop, DONE, FBT_GPU_FAILED, "its shim stopped"},
		    [PULSE] = {go_on, ARMED},
		    [LEAVE] = {let_go, DONE},
		    AT_ANY_TIME(SEARCHING)},
	[ENDED] = {[SAYS_BUSY] = {repeat, BUSY},
		   [SAYS_FAILED] = {repeat, REFUSED},
		   [SAYS_NO] = {repeat, REFUSED},
		   [READ] = {ask, ASKED},
		   [BAD_RING] = {stop, SEARCHING, FBT_GPU_BAD_RING, ""},
		   [PROCESS_ENDS] = {let_go, DONE}},
	[BUSY] = {[READ] = {let_go, SEARCHING},
		  [BAD_RING] = {stop, SEARCHING, FBT_GPU_BAD_RING, ""},
		  [PROCESS_ENDS] = {let_go, DONE}},
	[REFUSED] = {[READ] = {let_go, DONE},
		     [BAD_RING] = {stop, DONE, FBT_GPU_BAD_RING, ""},
		     [PROCESS_ENDS] = {let_go, DONE}},
	[LEAVING] = {[SAYS_ENDED] = {repeat, LEFT},
		     [SAYS_BUSY] = {repeat, REFUSED},
		     [SAYS_FAILED] = {repeat, REFUSED},
		     [SAYS_NO] = {repeat, REFUSED},
		     [RESTS] = {stop, DONE, FBT_GPU_ENDED, ""},
		     [LEAVE] = {let_go, DONE},
		     AT_ANY_TIME(DONE)},
	[LEFT] = {[SAYS_BUSY] = {repeat, REFUSED},
		  [SAYS_FAILED] = {repeat, REFUSED},
		  [SAYS_NO] = {repeat, REFUSED},
		  [RESTS] = {stop, DONE, FBT_GPU_ENDED, ""},
		  [BAD_RING] = {stop, DONE, FBT_GPU_BAD_RING, ""},
		  [PROCESS_ENDS] = {let_go, DONE},
		  [LEAVE] = {let_go, DONE},
		  [GIVE_UP] = {stop, DONE, FBT_GPU_STALLED, "its last records did not come"}},
	[DONE] = {[LEAVE] = {let_go, DONE}},
};

/* Whether records arrive in this state and no last flush has been sent. */
static bool has_records(enum peer_state state)
{
	return state == ARMED || state == ENDED || state == LEAVING || state == LEFT;
}

static uint64_t skipped(const struct gpu_peer *peer)
{
	return peer->ring ? gpu_ring__skipped(peer->ring) : 0;
}

/*
 * Applies the rule for an event. said: the shim's record, for SAYS_*. false: the event is ignored.
 */
static bool happen(struct gpu_peer *peer, enum peer_event event, const struct fbt_gpu_state *said)
{
	const struct rule *rule = &rules[peer->state][event];

	if (!rule->action)
		return false;
	if (has_records(peer->state) && !has_records(rule->next))
		gpu_relay_end(&peer->relay, skipped(peer), peer->now_ns);
	peer->state = rule->next;
	rule->action(peer, rule, said);
	return true;
}

static enum peer_event event_of(const struct gpu_peer *peer, uint32_t status)
{
	switch (status) {
	case FBT_GPU_ARMED:
		return SAYS_ARMED;
	case FBT_GPU_ENDED:
		return SAYS_ENDED;
	case FBT_GPU_BUSY:
		return SAYS_BUSY;
	case FBT_GPU_NO_DRIVER:
	case FBT_GPU_FAILED:
		return peer->failures < FAILURES_MAX ? SAYS_FAILED : SAYS_NO;
	case FBT_GPU_NO_CUPTI:
	case FBT_GPU_OLD_CUPTI:
		return SAYS_NO;
	}
	return SAYS_OTHER;
}

/*
 * While the shim may still handle the previous tracer's request, its records are not ours: they
 * refer to names that were never sent to us. Devices and names are kept, because the shim tells
 * each one once, also before it says that it is armed.
 */
static bool is_wanted(const struct gpu_peer *peer, const struct fbt_header *record)
{
	return peer->state != INHERITED || record->type == FBT_EVENT_GPU_DEVICE ||
	       record->type == FBT_EVENT_GPU_NAME;
}

static void take_record(void *ctx, struct fbt_header *record)
{
	const struct fbt_gpu_state *said = (const struct fbt_gpu_state *)record;
	struct gpu_peer *peer = ctx;

	if (record->type == FBT_EVENT_GPU_STATE)
		happen(peer, event_of(peer, said->status), said);
	else if (is_wanted(peer, record))
		gpu_relay_record(&peer->relay, record, skipped(peer), peer->now_ns);
}

/* Reads all new records. false: the ring is corrupt and was released. */
static bool read_ring(struct gpu_peer *peer)
{
	if (!gpu_ring__read(peer->ring, take_record, peer))
		return true;
	happen(peer, BAD_RING, NULL);
	return false;
}

static bool is_overdue(struct gpu_peer *peer)
{
	if (peer->now_ns - peer->asked_ns >= ANSWER_NS)
		return true;
	if (peer->now_ns >= peer->warn_ns) {
		peer->warn_ns = UINT64_MAX;
		if (!peer->told_wait)
			log_info("process %u: waiting for CUPTI to start in it, which may take 15 "
				 "s the first time",
				 peer->relay.tgid);
		peer->told_wait = true;
	}
	return false;
}

static bool has_pulse(struct gpu_peer *peer)
{
	uint32_t pulse = gpu_ring__pulse(peer->ring);

	if (pulse == peer->pulse)
		return false;
	peer->pulse = pulse;
	peer->pulse_ns = peer->now_ns;
	return true;
}

static enum peer_event look_at_shim(struct gpu_peer *peer, bool rests)
{
	if (rests)
		return RESTS;
	if (peer->state == INHERITED || peer->state == ASKED)
		return is_overdue(peer) ? OVERDUE : NOTHING;
	if (peer->state != ARMED && peer->state != SILENT)
		return NOTHING;
	if (has_pulse(peer))
		return PULSE;
	return peer->now_ns - peer->pulse_ns >= PULSE_NS ? SILENCE : NOTHING;
}

void gpu_peer__poll(struct gpu_peer *peer, uint64_t now_ns)
{
	bool rests;

	peer->now_ns = now_ns;
	if (!peer->ring)
		return;
	if (now_ns - peer->beat_ns >= BEAT_NS) {
		gpu_ring__beat(peer->ring);
		peer->beat_ns = now_ns;
	}
	/*
	 * Ask before reading: everything that the shim wrote before it came to rest is in the ring
	 * then.
	 */
	rests = gpu_ring__is_dormant(peer->ring);
	if (read_ring(peer) && !happen(peer, READ, NULL))
		happen(peer, look_at_shim(peer, rests), NULL);
}

/*
 * Starts with a ring that was just opened. A dead shim does not answer; only the records that it
 * left can be read.
 */
static void look_into_ring(struct gpu_peer *peer)
{
	uint32_t tgid = peer->relay.tgid;

	peer->relay.tids = ns_tids__new(tgid);
	if (!peer->relay.tids) {
		gpu_ring__free(peer->ring);
		peer->ring = NULL;
		return;
	}
	memset(&peer->relay.clock, 0, sizeof(peer->relay.clock));
	peer->relay.clock.timens_ns = time_namespace_offset(tgid);
	if (!gpu_ring__is_dead(peer->ring)) {
		ask(peer, NULL, NULL);
		return;
	}
	peer->state = DEAD;
	if (read_ring(peer))
		happen(peer, READ, NULL);
}

bool gpu_peer__is_due(const struct gpu_peer *peer, uint64_t now_ns)
{
	return peer->state == SEARCHING && now_ns >= peer->look_ns;
}

void gpu_peer__look(struct gpu_peer *peer, uint64_t now_ns, uint64_t pause_ns)
{
	uint64_t start_ns = clock_ns(CLOCK_MONOTONIC), took_ns;
	uint32_t version, holder;
	int err = gpu_ring__open(&peer->ring, peer->relay.tgid, &version, &holder);

	took_ns = clock_ns(CLOCK_MONOTONIC) - start_ns;
	peer->now_ns = now_ns;
	peer->look_ns = now_ns + pause_ns + LOOK_SHARE * took_ns;
	if (!err)
		look_into_ring(peer);
	else if (err != -ENOENT || peer->looks % CUDA_EVERY == 0)
		explain(peer, err, version, holder);
	peer->looks++;
}

void gpu_peer__end(struct gpu_peer *peer, uint64_t now_ns)
{
	peer->now_ns = now_ns;
	if (peer->ring && read_ring(peer))
		happen(peer, PROCESS_ENDS, NULL);
}

void gpu_peer__restart(struct gpu_peer *peer, uint64_t now_ns)
{
	gpu_peer__end(peer, now_ns);
	peer->lacks_ns = 0;
	peer->renewed = peer->injects;
	peer->state = SEARCHING;
	peer->look_ns = now_ns;
	peer->looks = 0;
}

void gpu_peer__leave(struct gpu_peer *peer, uint64_t now_ns)
{
	peer->now_ns = now_ns;
	happen(peer, LEAVE, NULL);
}

bool gpu_peer__is_settled(const struct gpu_peer *peer)
{
	return peer->state == DONE;
}

void gpu_peer__give_up(struct gpu_peer *peer, uint64_t now_ns)
{
	peer->now_ns = now_ns;
	happen(peer, GIVE_UP, NULL);
}

void gpu_peer__look_for_cuda(struct gpu_peer *peer, uint64_t now_ns)
{
	peer->now_ns = now_ns;
	if (peer->status.status == FBT_GPU_NOT_CUDA)
		say_absent(peer);
}

bool gpu_peer__was_armed(const struct gpu_peer *peer)
{
	return peer->was_armed;
}

bool gpu_peer__is_waiting(const struct gpu_peer *peer)
{
	return peer->state == INHERITED || peer->state == ASKED ||
	       (peer->state == SEARCHING && !peer->looks);
}

void gpu_peer__await_injection(struct gpu_peer *peer)
{
	peer->injects = true;
}

uint64_t gpu_peer__lacks_shim(const struct gpu_peer *peer, bool *from_start)
{
	bool open = !peer->changes || peer->renewed || peer->status.status == FBT_GPU_NOT_CUDA;

	*from_start = peer->lacks_from_start;
	return open ? peer->lacks_ns : 0;
}

void gpu_peer__take_shim(struct gpu_peer *peer, uint64_t now_ns)
{
	peer->look_ns = now_ns;
}

void gpu_peer__miss_shim(struct gpu_peer *peer, uint64_t now_ns)
{
	say_at(peer, FBT_GPU_STALLED,
	       "it was injected too late for this window; the next trace has its records", now_ns);
}

void gpu_peer__do_without(struct gpu_peer *peer, const char *why, uint64_t now_ns)
{
	say_at(peer, FBT_GPU_NOT_INJECTED, why, now_ns);
}

void gpu_peer__send_off(struct gpu_peer *peer, uint64_t now_ns)
{
	say_at(peer, FBT_GPU_OFF, "", now_ns);
	peer->state = DONE;
}

struct gpu_peer *gpu_peer__new(uint32_t tgid, const struct record_output *output, uint64_t now_ns)
{
	struct gpu_peer *peer = calloc(1, sizeof(*peer));

	if (!peer)
		return NULL;
	peer->look_ns = now_ns;
	peer->relay.tgid = tgid;
	peer->relay.output = output;
	peer->status.tgid = tgid;
	return peer;
}

void gpu_peer__free(struct gpu_peer *peer)
{
	if (!peer)
		return;
	release(peer);
	free(peer->library);
	free(peer);
}

uint32_t gpu_peer__tgid(const struct gpu_peer *peer)
{
	return peer->relay.tgid;
}

static void drop_record(void *ctx, const void *data, size_t size)
{
}

int gpu_peer_explain(uint32_t tgid, int err, uint32_t version, uint32_t holder)
{
	const struct record_output nowhere = {.emit = drop_record};
	struct gpu_peer *peer = gpu_peer__new(tgid, &nowhere, 0);
	int status;

	if (!peer)
		return -1;
	explain(peer, err, version, holder);
	status = peer->changes ? (int)peer->status.status : -1;
	gpu_peer__free(peer);
	return status;
}
