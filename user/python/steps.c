/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "python/steps.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/vec.h"
#include "python/engines.h"
#include "python/function.h"
#include "python/guest.h"
#include "python/markers.h"
#include "python/refusal.h"
#include "steps/python_spec.h"

/*
 * How long an order may wait for the GIL: C code may keep it for a whole step. Processes that -p
 * does not name are waited for together, no longer than one that it names.
 */
#define ORDER_NS (2 * NS_PER_S)
#define BEAT_NS	 (NS_PER_S / 2)
/* How often the answers of those are looked for: an order takes some 10 us. */
#define LOOK_US 500

/* What became of a wish in one process. */
struct answer {
	enum fbt_python_found found;
	char text[128];
};

struct engine {
	uint32_t tgid;
	struct python_guest *guest;
	bool is_named;	   /* by -p */
	bool is_searched;  /* python_steps__search has looked for functions */
	bool is_tried;	   /* to be armed; once is enough */
	bool is_arming;	   /* python_steps__finish_arming sees to it */
	bool is_armed;	   /* or is to be: an order may be on its way */
	bool is_late;	   /* a window is open, so nothing is waited for */
	bool is_resolved;  /* its functions were looked up before, so only what is new is */
	bool is_shared;	   /* another tracer has it */
	bool is_asked;	   /* an order waits for its answer */
	bool is_told;	   /* that steps are missing */
	bool is_doubted;   /* it was said that markers are not those of the library */
	bool has_placed;   /* any of is_placed */
	uint64_t limit_ns; /* until when an answer is waited for */
	uint64_t armed_ns; /* when arming was answered; of a late one, asked for */
	/* By wish: */
	unsigned int slots[FBT_PYTHON_SLOTS];
	bool is_placed[FBT_PYTHON_SLOTS];  /* the slot's markers were handed out */
	bool is_refused[FBT_PYTHON_SLOTS]; /* they cannot be */
	struct answer answers[FBT_PYTHON_SLOTS];
	bool is_lost[FBT_PYTHON_SLOTS]; /* by slot: it serves no other function */
};

struct python_steps {
	VEC(struct python_spec) wishes; /* at most FBT_PYTHON_SLOTS; index is the slot */
	bool from_table;
	bool shares;
	VEC(struct engine) engines;
	VEC(uint32_t) told; /* processes of which was said why functions are no steps */
	uint64_t beat_ns;   /* when to beat next */
	/* How much longer processes that -p does not name are waited for. */
	uint64_t search_left_ns;
	uint64_t arm_left_ns;
};

static int add_wish(struct python_steps *steps, const char *text)
{
	struct python_spec spec;
	int err = python_spec_parse(&spec, text);

	return err ? err : vec_push(&steps->wishes, spec);
}

static int add_wishes(struct python_steps *steps, const struct step_spec *specs, size_t count)
{
	const char *row;
	int err = 0;

	for (size_t i = 0; i < count && !err && steps->wishes.count < FBT_PYTHON_SLOTS; i++)
		if (specs[i].form == STEP_SPEC_PYTHON)
			err = add_wish(steps, specs[i].text);
	steps->from_table = !count;
	for (size_t i = 0; !count && !err && (row = python_engines_row(i)); i++)
		err = add_wish(steps, row);
	return err;
}

struct python_steps *python_steps__new(const struct step_spec *specs, size_t count)
{
	struct python_steps *steps = calloc(1, sizeof(*steps));

	if (steps)
		steps->search_left_ns = steps->arm_left_ns = ORDER_NS;
	if (steps && add_wishes(steps, specs, count)) {
		python_steps__free(steps);
		return NULL;
	}
	return steps;
}

void python_steps__share(struct python_steps *steps)
{
	steps->shares = true;
}

static uint64_t soon(void)
{
	return clock_ns(CLOCK_MONOTONIC) + ORDER_NS;
}

/* A function that something else has changed meanwhile is left so. */
static void tell_changed(const struct python_steps *steps, const struct engine *engine)
{
	for (size_t i = 0; i < steps->wishes.count; i++) {
		struct fbt_python_slot answer;

		python_guest__answer(engine->guest, engine->slots[i], &answer);
		if (answer.found == FBT_PYTHON_TAKEN_BY_OTHER && engine->is_placed[i])
			log_warn("process %u: py:%s was changed by something else while it was "
				 "traced, and is left so: steps may be missing",
				 engine->tgid, steps->wishes.items[i].function);
	}
}

/* Gives all that are armed an order. Answers are waited for afterwards, until one deadline. */
static void ask_armed(const struct python_steps *steps, enum fbt_python_command command)
{
	vec_for_each (engine, &steps->engines)
		engine->is_asked = engine->is_armed && !python_guest__ask(engine->guest, command);
}

static int await_armed(struct engine *engine, enum fbt_python_command command, uint64_t deadline_ns)
{
	/* One that was not asked was just about its last order. */
	int err = engine->is_asked ? python_guest__await(engine->guest, deadline_ns)
				   : python_guest__order(engine->guest, command, deadline_ns);

	engine->is_asked = false;
	return err;
}

void python_steps__disarm(struct python_steps *steps)
{
	uint64_t deadline_ns = soon();

	ask_armed(steps, FBT_PYTHON_DISARM);
	vec_for_each (engine, &steps->engines) {
		if (engine->is_armed && !await_armed(engine, FBT_PYTHON_DISARM, deadline_ns))
			tell_changed(steps, engine);
		engine->is_armed = false;
	}
}

void python_steps__free(struct python_steps *steps)
{
	if (!steps)
		return;
	python_steps__disarm(steps);
	vec_for_each (engine, &steps->engines)
		python_guest__free(engine->guest);
	vec_free(&steps->engines);
	vec_free(&steps->told);
	vec_free(&steps->wishes);
	free(steps);
}

static struct engine *find(struct python_steps *steps, uint32_t tgid)
{
	vec_for_each (engine, &steps->engines) {
		if (engine->tgid == tgid)
			return engine;
	}
	return NULL;
}

bool python_steps__is_told(const struct python_steps *steps, uint32_t tgid)
{
	vec_for_each (told, &steps->told) {
		if (*told == tgid)
			return true;
	}
	return false;
}

bool python_steps__has_wishes(const struct python_steps *steps)
{
	return steps->wishes.count;
}

void python_steps__forget(struct python_steps *steps, uint32_t tgid)
{
	struct engine *engine = find(steps, tgid);

	if (!engine)
		return;
	python_guest__free(engine->guest);
	*engine = steps->engines.items[--steps->engines.count];
}

static void tell_times(const struct engine *engine)
{
	uint64_t wait_ns, hold_ns;

	python_guest__times(engine->guest, &wait_ns, &hold_ns);
	log_debug("process %u: CPython 3.%u: waited %.3f ms for the GIL, held it for %.3f ms",
		  engine->tgid, python_guest__minor(engine->guest), (double)wait_ns / 1e6,
		  (double)hold_ns / 1e6);
}

/* all: else those only that are probed, not what was loaded since. A later look finds that. */
static void write_wishes(const struct python_steps *steps, const struct engine *engine, bool all)
{
	for (unsigned int i = 0; i < steps->wishes.count; i++) {
		const struct python_spec *wish = &steps->wishes.items[i];
		const char *expressions[FBT_PYTHON_ATTRIBUTES];
		size_t count = python_spec_list_reads(wish, expressions);
		bool is_wanted = all || engine->is_placed[i];

		python_guest__wish(engine->guest, engine->slots[i], is_wanted ? wish->function : "",
				   expressions, is_wanted ? count : 0);
		/* An engine's version has some of the table's functions only. */
		if (is_wanted && !steps->from_table)
			python_guest__suggest(engine->guest, engine->slots[i]);
	}
}

static bool is_used(const struct python_steps *steps, const struct engine *engine,
		    unsigned int slot)
{
	for (size_t i = 0; i < steps->wishes.count; i++) {
		if (engine->slots[i] == slot)
			return true;
	}
	return engine->is_lost[slot];
}

/*
 * A slot may keep the function of an earlier trace for ever (FBT_PYTHON_TAKEN_BY_OTHER): its wish
 * goes to a slot that nobody uses. True: look it up there.
 */
static bool leave_lost_slots(const struct python_steps *steps, struct engine *engine)
{
	struct fbt_python_slot answer;
	unsigned int slot = 0;
	bool any = false;

	for (size_t i = 0; i < steps->wishes.count; i++) {
		python_guest__answer(engine->guest, engine->slots[i], &answer);
		if (answer.found != FBT_PYTHON_TAKEN_BY_OTHER || engine->is_placed[i])
			continue;
		while (slot < FBT_PYTHON_SLOTS && is_used(steps, engine, slot))
			slot++;
		if (slot == FBT_PYTHON_SLOTS)
			break;
		python_guest__wish(engine->guest, engine->slots[i], "", NULL, 0);
		engine->is_lost[engine->slots[i]] = true;
		engine->slots[i] = slot;
		any = true;
	}
	return any;
}

static int ask(struct engine *engine, enum fbt_python_command command)
{
	int err = python_guest__ask(engine->guest, command);

	engine->is_asked = !err;
	engine->limit_ns = soon();
	if (command == FBT_PYTHON_ARM)
		engine->armed_ns = clock_ns(CLOCK_MONOTONIC);
	return err;
}

/* Waits for the answer of a process that -p does not name, and takes that off *left_ns. */
static int await_other(struct engine *engine, uint64_t *left_ns)
{
	uint64_t begin_ns = clock_ns(CLOCK_MONOTONIC), took_ns;
	int err = python_guest__await(engine->guest, begin_ns + *left_ns);

	took_ns = clock_ns(CLOCK_MONOTONIC) - begin_ns;
	*left_ns -= took_ns < *left_ns ? took_ns : *left_ns;
	engine->is_asked = err == -EAGAIN;
	return err;
}

/* The same, and gives the order before, unless that was done. */
static int order_other(struct engine *engine, enum fbt_python_command command, uint64_t *left_ns)
{
	int err = engine->is_asked ? 0 : ask(engine, command);

	/* It is just about the order before. */
	if (err == -EAGAIN && !await_other(engine, left_ns))
		err = ask(engine, command);
	return err ? err : await_other(engine, left_ns);
}

static int order(struct engine *engine, enum fbt_python_command command, uint64_t *left_ns)
{
	return engine->is_named ? python_guest__order(engine->guest, command, soon())
				: order_other(engine, command, left_ns);
}

/* Has the library look up the wishes; all: as for write_wishes. */
static int resolve(const struct python_steps *steps, struct engine *engine, bool all,
		   uint64_t *left_ns)
{
	int err;

	if (!engine->is_asked)
		write_wishes(steps, engine, all);
	err = order(engine, FBT_PYTHON_RESOLVE, left_ns);
	if (!err)
		tell_times(engine);
	return err;
}

/* The library has let go of all. New functions are found later: they are to be probed first. */
static void ask_again(const struct python_steps *steps, struct engine *engine)
{
	write_wishes(steps, engine, !engine->has_placed);
	(void)ask(engine, FBT_PYTHON_RESOLVE);
}

/*
 * What was asked early answers at once, and its lease runs from then on: it may be over before the
 * answer is taken, as when another process could not be injected meanwhile.
 */
static void keep_asked(const struct python_steps *steps)
{
	vec_for_each (engine, &steps->engines) {
		if (engine->is_asked && !engine->is_searched &&
		    python_guest__keep(engine->guest) == -ESTALE)
			ask_again(steps, engine);
	}
}

/* Before its probes are in place. */
static int resolve_first(struct python_steps *steps, struct engine *engine, bool quiet)
{
	int err = resolve(steps, engine, true, &steps->search_left_ns);
	int kept = err ? 0 : python_guest__keep(engine->guest);

	/* The lease was over just before it was extended. */
	if (kept == -ESTALE)
		err = resolve(steps, engine, true, &steps->search_left_ns);
	else if (kept)
		err = -EBUSY;
	while (!err && leave_lost_slots(steps, engine))
		err = resolve(steps, engine, true, &steps->search_left_ns);
	if (err && !quiet)
		python_refusal_tell_order(engine->tgid, engine->guest, err, ORDER_NS);
	return err;
}

/* Its functions are no steps, and the trace goes on. */
static void refuse(struct engine *engine, unsigned int index, int err)
{
	engine->is_refused[index] = true;
	if (!engine->is_doubted)
		log_warn("process %u: its Python functions cannot be steps: %s", engine->tgid,
			 python_markers_text(err));
	engine->is_doubted = true;
}

static int take_answers(const struct python_steps *steps, struct engine *engine,
			function_vec *functions)
{
	enum fbt_python_found wanted = engine->is_shared ? FBT_PYTHON_ARMED : FBT_PYTHON_FOUND;
	int added = 0;

	for (unsigned int i = 0; i < steps->wishes.count; i++) {
		const struct python_spec *wish = &steps->wishes.items[i];
		struct fbt_python_slot answer;
		const struct python_definition definition = {
			.tgid = engine->tgid,
			.index = engine->slots[i],
			.slot = &answer,
			.wish = wish,
			.builtin = steps->from_table,
		};
		int err;

		python_guest__answer(engine->guest, engine->slots[i], &answer);
		engine->answers[i].found = answer.found;
		snprintf(engine->answers[i].text, sizeof(engine->answers[i].text), "%s",
			 answer.text);
		if (answer.found != wanted || engine->is_placed[i] || engine->is_refused[i])
			continue;
		err = python_function_add(functions, &definition);
		if (err == -ENOMEM)
			return err;
		if (err) {
			refuse(engine, i, err);
			continue;
		}
		engine->is_placed[i] = engine->has_placed = true;
		if (answer.more && !engine->is_shared)
			log_warn("process %u: py:%s: %u definition%s only: more of its subclasses "
				 "define it, or may, and their calls are no steps",
				 engine->tgid, wish->function, answer.own,
				 answer.own == 1 ? "" : "s");
		added++;
	}
	return added;
}

/* Sets the slots in which the other tracer has armed the wishes. Returns how many are new. */
static int find_shared(const struct python_steps *steps, struct engine *engine)
{
	int count = 0;

	for (size_t i = 0; i < steps->wishes.count; i++) {
		const struct python_spec *wish = &steps->wishes.items[i];
		const char *expressions[FBT_PYTHON_ATTRIBUTES];
		int slot;

		if (engine->is_placed[i] || engine->is_refused[i])
			continue;
		slot = python_guest__armed(engine->guest, wish->function, expressions,
					   python_spec_list_reads(wish, expressions));
		engine->slots[i] = slot < 0 ? FBT_PYTHON_SLOTS : (unsigned int)slot;
		count += slot >= 0;
	}
	return count;
}

/*
 * Where a function that --step names was not found, that its module is not loaded says least: most
 * processes of an engine are others. NULL: it was found, or there is no process with the library.
 */
static const struct engine *choose_explaining(const struct python_steps *steps, unsigned int slot)
{
	const struct engine *chosen = NULL;

	vec_for_each (engine, &steps->engines) {
		enum fbt_python_found found = engine->answers[slot].found;

		/* Armed: by another tracer, or before. */
		if (found == FBT_PYTHON_FOUND || found == FBT_PYTHON_ARMED ||
		    found == FBT_PYTHON_SAME)
			return NULL;
		if (!chosen || chosen->answers[slot].found == FBT_PYTHON_NO_MODULE)
			chosen = engine;
	}
	return chosen;
}

/* As far as the page tells: why not, only the tracer that gives the orders can know. */
static void tell_unarmed(struct python_steps *steps, const struct engine *engine,
			 const struct python_spec *wish)
{
	log_warn("process %u: py:%s: not armed by the other tracer: name it there, with the same "
		 "numbers",
		 engine->tgid, wish->function);
	if (!python_steps__is_told(steps, engine->tgid))
		(void)vec_push(&steps->told, engine->tgid);
}

void python_steps__explain(struct python_steps *steps)
{
	/* Of the table, most engines are others. */
	for (unsigned int i = 0; i < steps->wishes.count && !steps->from_table; i++) {
		const struct engine *engine = choose_explaining(steps, i);
		const struct answer *answer;

		if (engine && engine->is_shared)
			tell_unarmed(steps, engine, &steps->wishes.items[i]);
		if (!engine || engine->answers[i].found == FBT_PYTHON_UNKNOWN)
			continue;
		answer = &engine->answers[i];
		log_warn("process %u: py:%s: %s%s%s", engine->tgid, steps->wishes.items[i].function,
			 python_found_text(answer->found), *answer->text ? ": " : "", answer->text);
	}
}

/*
 * Sets *result if the process has the library and is new, else to NULL. 0 in both cases; or -errno.
 */
static int open_engine(struct python_steps *steps, uint32_t tgid, bool quiet,
		       struct engine **result)
{
	struct engine engine = {.tgid = tgid, .is_shared = steps->shares};
	uint32_t holder = 0;
	int err = steps->shares ? python_guest__open_shared(&engine.guest, tgid)
				: python_guest__open(&engine.guest, tgid, &holder);

	*result = NULL;
	for (unsigned int i = 0; i < FBT_PYTHON_SLOTS; i++)
		engine.slots[i] = i;
	if (err && err != -ENOMEM && !quiet && python_refusal_tell(tgid, err, holder))
		return vec_push(&steps->told, tgid);
	if (err)
		return err == -ENOMEM ? err : 0;
	err = vec_push(&steps->engines, engine);
	if (err)
		python_guest__free(engine.guest);
	else
		*result = &steps->engines.items[steps->engines.count - 1];
	return err;
}

void python_steps__ask(struct python_steps *steps, uint32_t tgid)
{
	struct engine *engine;

	if (!steps->wishes.count || find(steps, tgid) || open_engine(steps, tgid, true, &engine) ||
	    !engine || engine->is_shared)
		return;
	ask_again(steps, engine);
}

/* The library holds no references until the window opens. */
static void let_go(struct engine *engine)
{
	if (engine->is_named)
		python_guest__order(engine->guest, FBT_PYTHON_DISARM, soon());
	else
		python_guest__ask(engine->guest, FBT_PYTHON_DISARM);
}

int python_steps__search(struct python_steps *steps, const struct python_search *search,
			 function_vec *functions)
{
	struct engine *engine = find(steps, search->tgid);
	int err, added;

	keep_asked(steps);
	if (!steps->wishes.count || (engine && engine->is_searched))
		return 0;
	if (!engine) {
		err = open_engine(steps, search->tgid, search->quiet, &engine);
		if (err || !engine)
			return err;
	}
	engine->is_searched = true;
	engine->is_named = search->is_named;
	if (engine->is_shared)
		return find_shared(steps, engine) ? take_answers(steps, engine, functions) : 0;
	if (resolve_first(steps, engine, search->quiet))
		return 0;
	added = take_answers(steps, engine, functions);
	let_go(engine);
	return added;
}

/*
 * 0: there was an answer. -EAGAIN: not yet. -ETIMEDOUT: C code keeps the GIL, as an import of a
 * large library may, or the process is stopped; the order was withdrawn, to be given again.
 */
static int await_answer(struct engine *engine)
{
	int err = python_guest__poll(engine->guest);

	if (err == -EAGAIN && clock_ns(CLOCK_MONOTONIC) >= engine->limit_ns &&
	    python_guest__withdraw(engine->guest))
		err = -ETIMEDOUT;
	if (err != -EAGAIN)
		engine->is_asked = false;
	engine->is_resolved |= !err;
	return err;
}

/* is_new: those only that were not handed out before. */
static int count_found(const struct python_steps *steps, const struct engine *engine, bool is_new)
{
	int count = 0;

	for (unsigned int i = 0; i < steps->wishes.count; i++) {
		struct fbt_python_slot answer;

		python_guest__answer(engine->guest, engine->slots[i], &answer);
		count += answer.found == FBT_PYTHON_FOUND && !engine->is_refused[i] &&
			 !(is_new && engine->is_placed[i]);
	}
	return count;
}

/*
 * Arms what has been looked up, unless some of it is new: that is taken and probed first, see
 * python_steps__take.
 */
static int arm_known(const struct python_steps *steps, struct engine *engine)
{
	if (!engine->is_armed || !count_found(steps, engine, false) ||
	    count_found(steps, engine, true))
		return 0;
	return ask(engine, FBT_PYTHON_ARM);
}

int python_steps__look(struct python_steps *steps, uint32_t tgid)
{
	struct engine *engine = find(steps, tgid);
	int err;

	if (!engine) {
		err = open_engine(steps, tgid, true, &engine);
		if (err || !engine)
			return err ? err : -ENOENT;
	}
	engine->is_searched = true;
	if (engine->is_shared)
		return find_shared(steps, engine);
	engine->is_late = true;
	if (engine->is_asked) {
		err = await_answer(engine);
		if (!err && leave_lost_slots(steps, engine))
			return -EAGAIN;
		if (!err)
			(void)arm_known(steps, engine);
		return err ? err : count_found(steps, engine, true);
	}
	write_wishes(steps, engine, true);
	err = ask(engine, engine->is_resolved ? FBT_PYTHON_LOOK : FBT_PYTHON_RESOLVE);
	return err ? err : -EAGAIN;
}

int python_steps__take(struct python_steps *steps, uint32_t tgid, function_vec *functions)
{
	struct engine *engine = find(steps, tgid);

	if (!engine)
		return 0;
	tell_times(engine);
	return take_answers(steps, engine, functions);
}

/*
 * The library keeps what it was asked to look up until it is armed. Where nothing waits for that,
 * as in one that is armed, no order is given: it would take the place of one that is on its way.
 */
static int arm_late(const struct python_steps *steps, struct engine *engine)
{
	int err;

	engine->is_armed = true;
	err = engine->is_asked ? 0 : arm_known(steps, engine);
	return err == -EAGAIN ? 0 : err;
}

/* One that does not answer in time is armed as a late one: beat sees to it. */
static void arm_later(struct engine *engine)
{
	engine->is_arming = false;
	engine->is_late = true;
	if (!kill((pid_t)engine->tgid, 0) || errno != ESRCH)
		log_warn("process %u: its Python steps are missing at first: the interpreter did "
			 "not let go of its lock within %llu s; they are traced once it does",
			 engine->tgid, (unsigned long long)(ORDER_NS / NS_PER_S));
}

static int arm_named(const struct python_steps *steps, struct engine *engine)
{
	int err = resolve(steps, engine, false, NULL);

	engine->is_armed = !err || err == -ETIMEDOUT;
	if (!err)
		err = order(engine, FBT_PYTHON_ARM, NULL);
	engine->is_resolved = !err;
	engine->armed_ns = clock_ns(CLOCK_MONOTONIC);
	/* The order was withdrawn: beat gives it once more, from the beginning. */
	if (err != -ETIMEDOUT)
		return err;
	arm_later(engine);
	return 0;
}

static int begin_arming(const struct python_steps *steps, struct engine *engine)
{
	int err;

	write_wishes(steps, engine, false);
	err = ask(engine, FBT_PYTHON_RESOLVE);
	if (err && err != -EAGAIN)
		return err;
	engine->is_armed = true;
	engine->is_arming = true;
	return 0;
}

/* While this tool waited for its window, another one may have had the library, or have it still. */
static int arm_now(const struct python_steps *steps, struct engine *engine)
{
	int kept = python_guest__keep(engine->guest);

	if (kept && kept != -ESTALE)
		return -EBUSY;
	return engine->is_named ? arm_named(steps, engine) : begin_arming(steps, engine);
}

int python_steps__arm(struct python_steps *steps, uint32_t tgid)
{
	struct engine *engine = find(steps, tgid);
	int err;

	if (!engine || engine->is_shared || !engine->has_placed)
		return 0;
	if (engine->is_late)
		return arm_late(steps, engine);
	if (engine->is_tried)
		return 0;
	engine->is_tried = true;
	err = arm_now(steps, engine);
	if (err)
		python_refusal_tell_order(engine->tgid, engine->guest, err, ORDER_NS);
	return err;
}

/* What there is to do once the library has answered. */
static int take_arming(const struct python_steps *steps, struct engine *engine)
{
	int kept = python_guest__keep(engine->guest);

	engine->is_asked = false;
	engine->armed_ns = clock_ns(CLOCK_MONOTONIC);
	if (kept == -ESTALE) {
		engine->is_resolved = false;
		write_wishes(steps, engine, false);
		return -EAGAIN;
	}
	if (!kept && engine->is_resolved)
		engine->is_arming = false;
	else if (!kept)
		tell_times(engine);
	engine->is_resolved = true;
	return kept;
}

/* Looks for the answer of a library, and gives the next order at once. */
static void advance(const struct python_steps *steps, struct engine *engine)
{
	int err = engine->is_asked ? python_guest__poll(engine->guest) : 0;

	if (!err && engine->is_asked)
		err = take_arming(steps, engine);
	if ((!err || err == -EAGAIN) && engine->is_arming && !engine->is_asked)
		err = ask(engine, engine->is_resolved ? FBT_PYTHON_ARM : FBT_PYTHON_RESOLVE);
	if (!err || err == -EAGAIN)
		return;
	python_refusal_tell_order(engine->tgid, engine->guest, err, ORDER_NS);
	engine->is_arming = engine->is_armed = engine->is_asked = false;
}

/* false: nothing is waited for any more. */
static bool advance_all(const struct python_steps *steps)
{
	bool any = false;

	vec_for_each (engine, &steps->engines) {
		if (engine->is_arming)
			advance(steps, engine);
		any |= engine->is_arming;
	}
	return any;
}

void python_steps__finish_arming(struct python_steps *steps)
{
	uint64_t begin_ns = clock_ns(CLOCK_MONOTONIC), took_ns = 0;

	while (advance_all(steps) && took_ns < steps->arm_left_ns) {
		usleep(LOOK_US);
		took_ns = clock_ns(CLOCK_MONOTONIC) - begin_ns;
	}
	steps->arm_left_ns -= took_ns < steps->arm_left_ns ? took_ns : steps->arm_left_ns;
	vec_for_each (engine, &steps->engines) {
		if (engine->is_arming)
			arm_later(engine);
	}
}

static void count_functions(const struct python_steps *steps, const struct engine *engine,
			    void (*each)(void *ctx, const struct python_count *count), void *ctx)
{
	for (unsigned int i = 0; i < steps->wishes.count; i++) {
		struct fbt_python_slot answer;
		struct python_count count;

		python_guest__answer(engine->guest, engine->slots[i], &answer);
		if (answer.found != FBT_PYTHON_ARMED || engine->is_refused[i])
			continue;
		count = (struct python_count){
			.tgid = engine->tgid,
			.function = steps->wishes.items[i].function,
			.file = answer.file,
			.line = answer.line,
			.calls = answer.begun,
			.armed_ns = engine->armed_ns,
		};
		each(ctx, &count);
	}
}

void python_steps__count(const struct python_steps *steps,
			 void (*each)(void *ctx, const struct python_count *count), void *ctx)
{
	uint64_t deadline_ns = soon();

	ask_armed(steps, FBT_PYTHON_COUNT);
	vec_for_each (engine, &steps->engines) {
		if (engine->is_armed && !await_armed(engine, FBT_PYTHON_COUNT, deadline_ns))
			count_functions(steps, engine, each, ctx);
	}
}

/* Functions are looked up and armed again as those of a late engine: nothing is waited for. */
static void after_lapse(const struct python_steps *steps, struct engine *engine, int err)
{
	if (err == -EBUSY) {
		log_warn("process %u: its Python functions are steps of another tracer now: this "
			 "one had no CPU for over 5 s",
			 engine->tgid);
		engine->is_armed = false;
	}
	if (err != -ESTALE || !engine->is_armed)
		return;
	if (!engine->is_told)
		log_warn("process %u: Python steps are missing: this tool had no CPU for over 5 s, "
			 "and they end then; they are traced again from now on",
			 engine->tgid);
	engine->is_told = true;
	engine->is_late = true;
	engine->is_resolved = false;
	ask_again(steps, engine);
}

/* err: what keep says, 0 or -ENOTCONN. */
static bool misses_steps(const struct python_steps *steps, const struct engine *engine, int err)
{
	for (size_t i = 0; i < steps->wishes.count; i++) {
		struct fbt_python_slot answer;

		python_guest__answer(engine->guest, engine->slots[i], &answer);
		if (engine->is_placed[i] && (err || answer.found != FBT_PYTHON_ARMED))
			return true;
	}
	return false;
}

static void beat_shared(const struct python_steps *steps, struct engine *engine)
{
	int err = python_guest__keep(engine->guest);

	if (err == -EBUSY)
		log_warn("process %u: another tracer has its Python functions now: steps may be "
			 "those of others",
			 engine->tgid);
	/* Of a process that ends, the other tracer has just let go. */
	if (engine->is_told || (err && err != -ENOTCONN) || !misses_steps(steps, engine, err) ||
	    !python_guest_is_there(engine->tgid))
		return;
	log_warn("process %u: the other tracer has ended, or has let go of its Python functions: "
		 "steps are missing from now on",
		 engine->tgid);
	engine->is_told = true;
}

static void beat(const struct python_steps *steps, struct engine *engine)
{
	/* What is not armed may be looked at again: it stays ours. */
	int err = python_guest__keep(engine->guest);

	if (err)
		after_lapse(steps, engine, err);
	if (!engine->is_armed || !engine->is_late)
		return;
	if (!engine->is_asked && !engine->is_resolved)
		ask_again(steps, engine);
	/* Its order to arm was not taken yet, or had to be withdrawn. */
	else if (count_found(steps, engine, false) && (!engine->is_asked || !await_answer(engine)))
		(void)arm_known(steps, engine);
}

bool python_steps__member(const struct python_steps *steps, size_t i, struct python_member *member)
{
	vec_for_each (engine, &steps->engines) {
		if (!engine->is_armed || i--)
			continue;
		*member = (struct python_member){.tgid = engine->tgid, .guest = engine->guest};
		return true;
	}
	return false;
}

void python_steps__beat(struct python_steps *steps, uint64_t now_ns)
{
	if (now_ns < steps->beat_ns)
		return;
	steps->beat_ns = now_ns + BEAT_NS;
	vec_for_each (engine, &steps->engines)
		(engine->is_shared ? beat_shared : beat)(steps, engine);
}
