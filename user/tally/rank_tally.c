/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "tally/rank_tally.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/arith.h"

/* Of a team with fewer iterations, or in which fewer of all ticks were joined, nothing is told. */
#define ITERATIONS_MIN 10
#define JOINED_PERCENT 80

static void free_team(struct team_tally *team)
{
	if (!team)
		return;
	stats__free(team->duration);
	vec_free(&team->ranks);
	free(team->name);
	free(team);
}

void iteration_tally_clear(struct iteration_tally *tally)
{
	vec_for_each (team, &tally->teams)
		free_team(*team);
	vec_free(&tally->teams);
}

static struct team_tally *new_team(const struct iteration *iteration)
{
	struct team_tally *team = calloc(1, sizeof(*team));

	if (!team)
		return NULL;
	team->parent = iteration->parent;
	team->calls_known = true;
	team->name = strdup(iteration->name);
	team->duration = stats__new();
	if (team->name && team->duration)
		return team;
	free_team(team);
	return NULL;
}

/* A team of which no iteration has come is NULL. */
static struct team_tally *find_team(struct iteration_tally *tally,
				    const struct iteration *iteration)
{
	struct team_tally **team;

	while (tally->teams.count <= iteration->team) {
		if (vec_push(&tally->teams, NULL))
			return NULL;
	}
	team = &tally->teams.items[iteration->team];
	if (!*team)
		*team = new_team(iteration);
	return *team;
}

static struct rank_tally *find_rank(struct team_tally *team, uint32_t tgid)
{
	size_t at = vec_lower_bound(&team->ranks, item->tgid, tgid);

	if (at == team->ranks.count || team->ranks.items[at].tgid != tgid) {
		struct rank_tally rank = {.tgid = tgid};

		if (vec_insert(&team->ranks, at, rank))
			return NULL;
	}
	return &team->ranks.items[at];
}

static void add_late(struct rank_tally *rank, const struct window *window,
		     const struct iteration *iteration)
{
	const struct late *late = &iteration->lates[iteration->latest];
	const struct tick *tick = &iteration->ranks[iteration->latest];

	rank->late++;
	rank->late_ns = add_saturating(rank->late_ns, late->total_ns);
	for (int i = 0; i < LATE_WHERE_COUNT; i++)
		rank->where_ns[i] = add_saturating(rank->where_ns[i], late->ns[i]);
	rank->cause_ns[late->cause] = add_saturating(rank->cause_ns[late->cause], late->cause_ns);
	rank->cause_count[late->cause]++;
	if (late->total_ns <= rank->worst.total_ns)
		return;
	rank->worst = *late;
	rank->worst_number = iteration->number;
	rank->worst_step = tick->number;
	rank->worst_ns = sub_saturating(tick->begin_ns, window->record.start_ns);
}

/* An injected library makes kinds of their own in each process: by their names they are the same.
 */
static void add_kind(struct team_tally *team, const struct window *window,
		     const struct tick_kind *kind)
{
	const char *name = window__kind_name(window, kind->kind);
	struct tick_kind *sum = team->kinds;

	while (sum->kind && strcmp(window__kind_name(window, sum->kind), name) != 0 &&
	       sum < &team->kinds[TICK_KINDS - 1])
		sum++;
	sum->kind = sum->kind ? sum->kind : kind->kind;
	sum->steps += kind->steps;
	sum->ns = add_saturating(sum->ns, kind->ns);
}

static void add_tick(struct team_tally *team, const struct window *window, const struct tick *tick)
{
	uint64_t ns = sub_saturating(tick->end_ns, tick->begin_ns), left_ns = ns;

	for (int i = 0; i < TICK_KINDS && tick->kinds[i].kind; i++) {
		add_kind(team, window, &tick->kinds[i]);
		take_u64(tick->kinds[i].ns, &left_ns);
	}
	team->tick_ns = add_saturating(team->tick_ns, ns);
	team->between_ns = add_saturating(team->between_ns, left_ns);
	team->calls_known &= tick->calls_known;
}

/* A rank that ends late may outlive the step of the engine, which waits for one of them only. */
static void add_engine(struct team_tally *team, const struct iteration *iteration)
{
	const struct engine_step *engine = &iteration->engine;
	uint64_t begin_ns = 0, end_ns = UINT64_MAX;

	if (!engine->number)
		return;
	for (size_t i = 0; i < iteration->count; i++) {
		begin_ns = max_u64(begin_ns, iteration->ranks[i].begin_ns);
		end_ns = min_u64(end_ns, iteration->ranks[i].end_ns);
	}
	team->engine_seen++;
	team->engine_kind = engine->kind;
	team->within += engine->start_ns <= iteration->begin_ns && begin_ns <= engine->end_ns &&
			end_ns <= engine->end_ns;
}

int iteration_tally_add(struct iteration_tally *tally, const struct window *window,
			const struct iteration *iteration)
{
	struct team_tally *team = find_team(tally, iteration);
	bool has_late = iteration->latest < iteration->count;

	if (!team)
		return -ENOMEM;
	team->unmatched = iteration->unmatched;
	if (!iteration->count)
		return 0;
	team->iterations++;
	team->late += has_late;
	stats__add(team->duration, sub_saturating(iteration->end_ns, iteration->begin_ns));
	add_engine(team, iteration);
	for (size_t i = 0; i < iteration->count; i++) {
		struct rank_tally *rank = find_rank(team, iteration->ranks[i].tgid);

		if (!rank)
			return -ENOMEM;
		add_tick(team, window, &iteration->ranks[i]);
		if (i == iteration->latest)
			add_late(rank, window, iteration);
	}
	return 0;
}

bool team_tally_is_shown(const struct team_tally *team)
{
	double joined, all;

	if (!team || team->iterations < ITERATIONS_MIN)
		return false;
	joined = (double)team->iterations * (double)team->ranks.count;
	all = joined + (double)team->unmatched;
	if (joined * 100 < all * JOINED_PERCENT)
		return false;
	return team->ranks.count > 1 || team->kinds[1].kind;
}
