/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "ranks/iterations.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/arith.h"
#include "base/log.h"
#include "base/vec.h"

/* Ticks of a rank that wait for those of the others. */
#define QUEUE_MAX 64
/* So long after the last tick of a rank a tick of another rank is a later one. */
#define PERIODS_MAX 4
/* Ticks of one rank by which all ranks are known, and can be put in order. */
#define ORDER_TICKS 8
/* Steps of an engine's own process that are remembered. */
#define ENGINE_STEPS 64

/* A process, and its ticks that are in no iteration yet, oldest first. */
struct rank {
	struct ticker ticker;
	struct team *team; /* NULL: it has ended no tick yet */
	struct tick *queue;
	size_t count;
};

/* Which part of an engine a process is, as its title says; 0: it does not say, else from 1 up. */
struct place {
	unsigned long stage;   /* of a pipeline */
	unsigned long replica; /* of data parallel ones */
};

/* Ranks that belong together. */
struct team {
	uint32_t index;
	uint32_t parent;
	struct place place;
	char *name;
	VEC(struct rank *) ranks;
	bool is_ordered;
	uint64_t iterations;
	uint64_t unmatched;
	uint64_t told;				 /* … as of the last iteration */
	struct engine_step engine[ENGINE_STEPS]; /* a ring */
	uint64_t engine_count;
};

struct iterations {
	int (*on_iteration)(void *ctx, const struct window *window,
			    const struct iteration *iteration);
	void *ctx;
	VEC(struct rank *) ranks;
	VEC(struct team *) teams;
	uint64_t now_ns;	      /* end of the latest step */
	struct tick ticks[RANKS_MAX]; /* of one iteration */
	struct late lates[RANKS_MAX];
};

struct iterations *iterations__new(int (*on_iteration)(void *ctx, const struct window *window,
						       const struct iteration *iteration),
				   void *ctx)
{
	struct iterations *iterations = calloc(1, sizeof(*iterations));

	if (!iterations)
		return NULL;
	iterations->on_iteration = on_iteration;
	iterations->ctx = ctx;
	return iterations;
}

void iterations__free(struct iterations *iterations)
{
	if (!iterations)
		return;
	vec_for_each (rank, &iterations->ranks) {
		free((*rank)->queue);
		free(*rank);
	}
	vec_for_each (team, &iterations->teams) {
		vec_free(&(*team)->ranks);
		free((*team)->name);
		free(*team);
	}
	vec_free(&iterations->ranks);
	vec_free(&iterations->teams);
	free(iterations);
}

/* The rank of a process; *rank is NULL if there are too many. 0 or -ENOMEM. */
static int find_rank(struct iterations *iterations, uint32_t tgid, struct rank **rank)
{
	int err;

	vec_for_each (known, &iterations->ranks) {
		if ((*known)->ticker.tgid != tgid)
			continue;
		*rank = *known;
		return 0;
	}
	*rank = NULL;
	if (iterations->ranks.count == RANKS_MAX)
		return 0;
	*rank = calloc(1, sizeof(**rank));
	err = *rank ? vec_push(&iterations->ranks, *rank) : -ENOMEM;
	if (err) {
		free(*rank);
		*rank = NULL;
		return err;
	}
	(*rank)->ticker.tgid = tgid;
	return 0;
}

static unsigned long number_after(const char *title, const char *word)
{
	const char *found = strstr(title, word);

	if (!found || !isdigit((unsigned char)found[strlen(word)]))
		return 0;
	return strtoul(found + strlen(word), NULL, 10) + 1;
}

/* "VLLM::Worker_PP1_TP0", "sglang::scheduler_DP1_TP0". */
static struct place find_place(const struct window *window, uint32_t tgid)
{
	char title[PROCESS_TITLE_MAX];

	window__process_title(window, tgid, title);
	return (struct place){number_after(title, "_PP"), number_after(title, "_DP")};
}

static struct team *new_team(struct iterations *iterations, uint32_t parent, struct place place,
			     const char *name)
{
	struct team *team = calloc(1, sizeof(*team));

	if (!team)
		return NULL;
	team->index = (uint32_t)iterations->teams.count;
	team->parent = parent;
	team->place = place;
	team->name = strdup(name);
	if (team->name && !vec_push(&iterations->teams, team))
		return team;
	free(team->name);
	free(team);
	return NULL;
}

/*
 * Processes without a parent that is known belong to no others. The stages of a pipeline work on
 * the same batch one after the other, and replicas on other batches: none of these is late.
 */
static struct team *find_team(struct iterations *iterations, uint32_t parent, struct place place,
			      const char *name)
{
	vec_for_each (entry, &iterations->teams) {
		struct team *team = *entry;

		if (parent && team->parent == parent && team->place.stage == place.stage &&
		    team->place.replica == place.replica && !strcmp(team->name, name))
			return team;
	}
	return new_team(iterations, parent, place, name);
}

static int join_team(struct iterations *iterations, const struct window *window, struct rank *rank)
{
	const struct process *process = window__process(window, rank->ticker.tgid);
	struct team *team = find_team(iterations, process ? process->record.parent_tgid : 0,
				      find_place(window, rank->ticker.tgid),
				      window__kind_name(window, rank->ticker.lead));
	int err = -ENOMEM;

	if (!rank->queue)
		rank->queue = calloc(QUEUE_MAX, sizeof(*rank->queue));
	if (team && rank->queue)
		err = vec_push(&team->ranks, rank);
	if (err)
		return err;
	rank->team = team;
	team->is_ordered = false;
	return 0;
}

static void drop_oldest(struct rank *rank)
{
	memmove(rank->queue, rank->queue + 1, --rank->count * sizeof(*rank->queue));
}

static void leave_out_oldest(struct rank *rank)
{
	drop_oldest(rank);
	rank->team->unmatched++;
}

static void push_tick(struct rank *rank, const struct tick *tick)
{
	if (rank->count == QUEUE_MAX) {
		leave_out_oldest(rank);
		rank->team->is_ordered = false;
	}
	rank->queue[rank->count++] = *tick;
}

static uint64_t distance(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

/* Has the oldest ticks of all ranks begin as near to each other as they do anywhere. */
static void put_in_order(struct team *team)
{
	uint64_t begin_ns = 0;

	vec_for_each (rank, &team->ranks) {
		if ((*rank)->count)
			begin_ns = max_u64(begin_ns, (*rank)->queue[0].begin_ns);
	}
	vec_for_each (entry, &team->ranks) {
		struct rank *rank = *entry;

		while (rank->count > 1 && distance(rank->queue[1].begin_ns, begin_ns) <=
						  distance(rank->queue[0].begin_ns, begin_ns))
			leave_out_oldest(rank);
	}
	team->is_ordered = true;
}

static bool have_equal_args(const struct tick *a, const struct tick *b)
{
	uint32_t both = a->arg_mask & b->arg_mask;

	for (uint32_t i = 0; i < FBT_ARG_COUNT; i++) {
		if (both & (1u << i) && a->args[i] != b->args[i])
			return false;
	}
	return true;
}

/*
 * Whether a tick is over when the last rank begins its own: the next one has begun, or is nearer.
 * Between its end and that there is no telling, but while a tick lasts its rank may wait for
 * others.
 */
static bool is_over(const struct tick *tick, uint64_t last_ns)
{
	uint64_t period_ns = add_saturating(tick->end_ns - tick->begin_ns, tick->gap_ns);

	/* None came after it: its rank does nothing any more, or nothing that is seen. */
	if (tick->next_ns == UINT64_MAX)
		return sub_saturating(last_ns, tick->end_ns) / PERIODS_MAX > period_ns;
	return tick->next_ns <= last_ns ||
	       (tick->end_ns <= last_ns && last_ns - tick->begin_ns > tick->next_ns - last_ns);
}

/* The first rank by the begins of the oldest ticks, and the begin of the last one. */
static struct rank *find_first(const struct team *team, uint64_t *last_ns)
{
	struct rank *first = NULL;

	*last_ns = 0;
	vec_for_each (rank, &team->ranks) {
		if (!(*rank)->count)
			continue;
		if (!first || (*rank)->queue->begin_ns < first->queue->begin_ns)
			first = *rank;
		*last_ns = max_u64(*last_ns, (*rank)->queue->begin_ns);
	}
	return first;
}

/*
 * The rank whose oldest tick does not belong to the others' oldest ones; NULL: all belong together.
 * Of those with different arguments, the earliest one does not.
 */
static struct rank *find_stranger(const struct team *team)
{
	struct rank *over = NULL, *first;
	bool is_equal = true;
	uint64_t last_ns;

	first = find_first(team, &last_ns);
	vec_for_each (rank, &team->ranks) {
		const struct tick *tick = (*rank)->queue;

		if (!(*rank)->count)
			continue;
		is_equal = is_equal && have_equal_args(tick, first->queue);
		if (is_over(tick, last_ns) && (!over || tick->next_ns < over->queue->next_ns))
			over = *rank;
	}
	return over || is_equal ? over : first;
}

/* The step of the engine's process that has most time in common with the iteration. */
static struct engine_step find_engine_step(const struct team *team,
					   const struct iteration *iteration)
{
	struct engine_step best = {0};
	uint64_t longest_ns = 0;

	for (size_t i = 0; i < ENGINE_STEPS && i < team->engine_count; i++) {
		const struct engine_step *step = &team->engine[i];
		uint64_t from_ns = max_u64(step->start_ns, iteration->begin_ns);
		uint64_t common_ns =
			sub_saturating(min_u64(step->end_ns, iteration->end_ns), from_ns);

		if (common_ns <= longest_ns)
			continue;
		longest_ns = common_ns;
		best = *step;
	}
	return best;
}

static int put_out(struct iterations *iterations, const struct window *window, struct team *team)
{
	struct iteration iteration = {
		.number = ++team->iterations,
		.team = team->index,
		.parent = team->parent,
		.name = team->name,
		.begin_ns = UINT64_MAX,
		.ranks = iterations->ticks,
		.lates = iterations->lates,
		.unmatched = team->unmatched,
	};

	vec_for_each (entry, &team->ranks) {
		struct rank *rank = *entry;

		if (!rank->count)
			continue;
		iterations->ticks[iteration.count++] = rank->queue[0];
		iteration.begin_ns = min_u64(iteration.begin_ns, rank->queue[0].begin_ns);
		iteration.end_ns = max_u64(iteration.end_ns, rank->queue[0].end_ns);
		drop_oldest(rank);
	}
	team->told = team->unmatched;
	iteration.engine = find_engine_step(team, &iteration);
	late_find(iterations->ticks, iteration.count, iterations->lates);
	iteration.latest = late_choose(iterations->lates, iteration.count,
				       iteration.end_ns - iteration.begin_ns);
	return iterations->on_iteration(iterations->ctx, window, &iteration);
}

/*
 * No step of the process comes any more: steps come by order of their ends, but perhaps long after
 * them, and later than it is known that the process has ended.
 */
static bool is_over_for(const struct iterations *iterations, const struct window *window,
			uint32_t tgid, bool is_last)
{
	const struct process *process = window__process(window, tgid);

	if (!window__has_ended(window, tgid))
		return false;
	return is_last || !process || process->exit_ns < iterations->now_ns;
}

/*
 * A rank that has no tick, and may still get one, is waited for. At the end none gets any: what has
 * no counterpart of a rank that has not ended is no iteration.
 */
static bool has_all(const struct iterations *iterations, const struct window *window,
		    const struct team *team, bool is_last)
{
	size_t most = 0;

	vec_for_each (rank, &team->ranks) {
		if (!(*rank)->count &&
		    !is_over_for(iterations, window, (*rank)->ticker.tgid, is_last))
			return false;
		if ((*rank)->count > most)
			most = (*rank)->count;
	}
	return most && (is_last || team->is_ordered || most >= ORDER_TICKS);
}

/* No step comes any more, of any process or of one that has ended: its last tick is whole. */
static void end_ranks(const struct iterations *iterations, const struct window *window,
		      struct team *team, bool is_last)
{
	vec_for_each (entry, &team->ranks) {
		struct rank *rank = *entry;
		struct tick tick;

		if ((is_last || is_over_for(iterations, window, rank->ticker.tgid, false)) &&
		    ticker_end(&rank->ticker, &tick))
			push_tick(rank, &tick);
	}
}

static int match(struct iterations *iterations, const struct window *window, struct team *team,
		 bool is_last)
{
	int err = 0;

	end_ranks(iterations, window, team, is_last);
	while (!err && has_all(iterations, window, team, is_last)) {
		struct rank *stranger;

		if (!team->is_ordered)
			put_in_order(team);
		stranger = find_stranger(team);
		if (!stranger) {
			err = put_out(iterations, window, team);
			continue;
		}
		leave_out_oldest(stranger);
		team->is_ordered = false;
	}
	return err;
}

static int add_tick(struct iterations *iterations, const struct window *window, struct rank *rank,
		    const struct tick *tick)
{
	int err = rank->team ? 0 : join_team(iterations, window, rank);

	if (err)
		return err;
	push_tick(rank, tick);
	return match(iterations, window, rank->team, false);
}

/* The process may be the engine of ranks, which its steps contain. */
static void note_engine(struct iterations *iterations, const struct step *step)
{
	vec_for_each (entry, &iterations->teams) {
		struct team *team = *entry;

		if (team->parent == step->record.tgid)
			team->engine[team->engine_count++ % ENGINE_STEPS] = (struct engine_step){
				.number = step->number,
				.kind = step->record.kind,
				.start_ns = step->record.start_ns,
				.end_ns = step->record.end_ns,
			};
	}
}

int iterations__add(struct iterations *iterations, const struct window *window,
		    const struct step *step)
{
	const struct fbt_step *record = &step->record;
	struct rank *rank;
	struct tick tick;
	int err;

	if (!(window->kinds[record->kind % FBT_KIND_COUNT].record.header.flags & FBT_KIND_PYTHON))
		return 0;
	iterations->now_ns = max_u64(iterations->now_ns, record->end_ns);
	if (!step_is_profiled(step))
		note_engine(iterations, step);
	err = find_rank(iterations, record->tgid, &rank);
	if (err || !rank || !ticker_add(&rank->ticker, step, &tick))
		return err;
	return add_tick(iterations, window, rank, &tick);
}

/*
 * Ticks whose counterparts never came are in no iteration. But the latest one of a rank may be
 * there only because the window ended before those of the others did.
 */
static int tell_left(struct iterations *iterations, const struct window *window, struct team *team)
{
	struct iteration none = {.team = team->index, .parent = team->parent, .name = team->name};

	vec_for_each (rank, &team->ranks) {
		while ((*rank)->count > 1)
			leave_out_oldest(*rank);
	}
	none.unmatched = team->unmatched;
	if (!team->iterations || team->unmatched == team->told)
		return 0;
	return iterations->on_iteration(iterations->ctx, window, &none);
}

int iterations__flush(struct iterations *iterations, const struct window *window)
{
	int err = 0;

	vec_for_each (team, &iterations->teams) {
		keep_first(&err, match(iterations, window, *team, true));
		keep_first(&err, tell_left(iterations, window, *team));
	}
	return err;
}
