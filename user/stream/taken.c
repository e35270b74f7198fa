/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "stream/taken.h"

#include <stdlib.h>
#include <string.h>

#include "base/arith.h"
#include "base/clock.h"
#include "model/step.h"
#include "proc/cgroup_name.h"
#include "stream/step_sums.h"

/* Steps that are open, or whose record was lost. */
#define SUMS_MAX 512
/* Takers of one step that are told apart; and cgroups of others. */
#define TAKERS_MAX 24
#define GROUPS_MAX 6
/* Threads of the process itself that are told apart, of these; and in what is sent. */
#define OWN_MAX	 8
#define OWN_SENT 2
/* A cgroup is looked up for one that took this part of the time, … */
#define NAMED_PART 10
#define PROCESSES  32
#define CGROUPS	   16
/* … and by its id only so often: that looks through all cgroups. */
#define WALK_NS (200 * NS_PER_MS)
/* … and processes with less are told together if so many are in one cgroup. */
#define GROUP_LEAST 3
/* CPUs of one step that are told apart; and the part of its wait that is all but that of one. */
#define CPUS_MAX  4
#define REST_PART 10

/* Waits of threads outside of steps that are kept, the latest ones. */
#define WAITS_MAX 512
/* Records come in the order in which waits end, but for what the clocks of CPUs differ by. */
#define ORDER_NS 1000000
/* Threads of which the waits during one step are summed up; those with most are sent, … */
#define OTHERS_MAX  32
#define OTHERS_SENT 4
/* … if they have waited for this part of the step. */
#define OTHERS_PART 16

struct sum {
	struct step_sum of;
	uint64_t waited_ns;
	uint64_t idle_ns;
	uint64_t own_ns;
	uint64_t other_ns;
	uint32_t count;
	uint32_t own_count;
	uint32_t group_count;
	struct fbt_taker takers[TAKERS_MAX + GROUPS_MAX];
	struct {
		uint32_t cpu; /* fbt_taken.cpu; 0: free */
		uint64_t ns;
	} cpus[CPUS_MAX];
};

/* The cgroup of a process. */
struct process {
	uint32_t tgid;
	char comm[sizeof(((struct fbt_taker *)0)->comm)];
	char name[sizeof(((struct fbt_taker *)0)->cgroup)];
};

struct cgroup {
	uint64_t id;
	char name[sizeof(((struct fbt_taker *)0)->cgroup)]; /* "": it has none */
};

struct taken_sums {
	const struct record_output *output;
	struct step_sums *sums;
	struct fbt_taken waits[WAITS_MAX];
	uint32_t next_wait;
	struct sum others[OTHERS_MAX]; /* of the step that is being sent */
	uint32_t other_count;
	struct process processes[PROCESSES];
	uint32_t next_process;
	struct cgroup cgroups[CGROUPS];
	uint32_t next_cgroup;
	uint64_t walked_ns; /* when cgroups were looked through */
};

struct taken_sums *taken_sums__new(const struct record_output *output)
{
	struct taken_sums *sums = calloc(1, sizeof(*sums));

	if (!sums)
		return NULL;
	sums->output = output;
	sums->sums = step_sums__new(sizeof(struct sum), SUMS_MAX);
	if (sums->sums)
		return sums;
	free(sums);
	return NULL;
}

void taken_sums__free(struct taken_sums *sums)
{
	if (!sums)
		return;
	step_sums__free(sums->sums);
	free(sums);
}

static struct fbt_taker *find_taker(struct sum *sum, const struct fbt_taker *taker)
{
	for (uint32_t i = 0; i < sum->count; i++) {
		struct fbt_taker *known = &sum->takers[i];

		if (known->tgid == taker->tgid && known->tid == taker->tid &&
		    (!taker_is_group(taker) || known->cgroup_id == taker->cgroup_id))
			return known;
	}
	return NULL;
}

static bool has_place(const struct sum *sum, const struct fbt_taker *taker)
{
	if (taker_is_group(taker))
		return taker->cgroup_id && sum->group_count < GROUPS_MAX;
	return sum->count - sum->group_count < TAKERS_MAX &&
	       !(taker->tid && sum->own_count == OWN_MAX);
}

/* As one of the processes that are not told apart. */
static struct fbt_taker group_of(const struct fbt_taker *taker)
{
	return (struct fbt_taker){.ns = taker->ns, .cgroup_id = taker->cgroup_id};
}

static void add_taker(struct sum *sum, const struct fbt_taker *taker)
{
	struct fbt_taker *known = find_taker(sum, taker), group = group_of(taker);

	if (known) {
		known->ns = add_saturating(known->ns, taker->ns);
	} else if (has_place(sum, taker)) {
		sum->takers[sum->count++] = *taker;
		sum->own_count += taker->tid != 0;
		sum->group_count += taker_is_group(taker);
	} else if (taker_is_group(taker)) {
		sum->other_ns += taker->ns;
	} else if (!taker->tid) {
		add_taker(sum, &group);
	}
}

static void add_cpu(struct sum *sum, const struct fbt_taken *taken)
{
	for (uint32_t i = 0; i < CPUS_MAX && taken->cpu; i++) {
		if (sum->cpus[i].cpu && sum->cpus[i].cpu != taken->cpu)
			continue;
		sum->cpus[i].cpu = taken->cpu;
		sum->cpus[i].ns = add_saturating(sum->cpus[i].ns, taken->waited_ns);
		return;
	}
}

static uint32_t find_cpu(const struct sum *sum)
{
	for (uint32_t i = 0; i < CPUS_MAX; i++)
		if (sum->cpus[i].cpu &&
		    sum->cpus[i].ns >= sum->waited_ns - sum->waited_ns / REST_PART)
			return sum->cpus[i].cpu;
	return 0;
}

static void add(struct sum *sum, const struct fbt_taken *taken)
{
	sum->waited_ns += taken->waited_ns;
	sum->idle_ns += taken->idle_ns;
	sum->own_ns += taken->own_ns;
	sum->other_ns += taken->other_ns;
	add_cpu(sum, taken);
	for (uint32_t i = 0; i < FBT_TAKERS && i < taken->count; i++)
		add_taker(sum, &taken->takers[i]);
}

void taken_sums__add(struct taken_sums *sums, const struct fbt_taken *taken)
{
	const struct step_sum key = {taken->tgid, taken->tid, taken->start_ns};
	struct sum *sum;

	if (taken->header.flags & FBT_TAKEN_OUTSIDE) {
		sums->waits[sums->next_wait++ % WAITS_MAX] = *taken;
		return;
	}
	sum = step_sums__get(sums->sums, &key);
	if (sum)
		add(sum, taken);
}

static int compare_takers(const void *left, const void *right)
{
	const struct fbt_taker *a = left, *b = right;

	if (a->ns != b->ns)
		return a->ns > b->ns ? -1 : 1;
	return (a->tgid > b->tgid) - (a->tgid < b->tgid);
}

/* "": not known, or not now. */
static const char *name_of_id(struct taken_sums *sums, uint64_t id)
{
	uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
	struct cgroup *cgroup;

	for (uint32_t i = 0; i < CGROUPS && id; i++)
		if (sums->cgroups[i].id == id)
			return sums->cgroups[i].name;
	if (!id || (sums->walked_ns && now_ns - sums->walked_ns < WALK_NS))
		return "";
	cgroup = &sums->cgroups[sums->next_cgroup++ % CGROUPS];
	cgroup->id = id;
	cgroup_name_of_id(id, cgroup->name, sizeof(cgroup->name));
	sums->walked_ns = clock_ns(CLOCK_MONOTONIC);
	return cgroup->name;
}

/* A process may have ended; its name tells whether its number is another one's by now. */
static const char *cgroup_of(struct taken_sums *sums, const struct fbt_taker *taker)
{
	struct process *process;

	if (taker_is_group(taker))
		return name_of_id(sums, taker->cgroup_id);
	for (uint32_t i = 0; i < PROCESSES; i++) {
		process = &sums->processes[i];
		if (process->tgid == taker->tgid &&
		    !memcmp(process->comm, taker->comm, sizeof(process->comm)))
			return process->name;
	}
	process = &sums->processes[sums->next_process % PROCESSES];
	process->tgid = taker->tgid;
	memcpy(process->comm, taker->comm, sizeof(process->comm));
	cgroup_name_of_process(taker->tgid, process->name, sizeof(process->name));
	if (*process->name) {
		sums->next_process++;
		return process->name;
	}
	process->tgid = 0;
	return name_of_id(sums, taker->cgroup_id);
}

/* The name in the place of the id. */
static void name_cgroup(struct taken_sums *sums, struct fbt_taker *taker, bool is_wanted)
{
	const char *name = is_wanted ? cgroup_of(sums, taker) : "";
	char cgroup[sizeof(taker->cgroup)] = "";

	memcpy(cgroup, name, strlen(name));
	memcpy(taker->cgroup, cgroup, sizeof(cgroup));
}

static bool is_small(const struct sum *sum, const struct fbt_taker *taker)
{
	return !taker->tid && taker->tgid && taker->cgroup_id &&
	       taker->ns < sum->waited_ns / NAMED_PART;
}

/*
 * Whether the cgroup has a group, or enough processes for one, which is told: without a name
 * processes are better than nothing.
 */
static bool wants_group(struct taken_sums *sums, const struct sum *sum, uint64_t cgroup_id)
{
	uint32_t count = 0;
	uint64_t ns = 0;

	for (uint32_t i = 0; i < sum->count; i++) {
		const struct fbt_taker *taker = &sum->takers[i];

		if (taker->cgroup_id != cgroup_id ||
		    (!taker_is_group(taker) && !is_small(sum, taker)))
			continue;
		count += taker_is_group(taker) ? GROUP_LEAST : 1;
		ns = add_saturating(ns, taker->ns);
	}
	return count >= GROUP_LEAST && ns >= sum->waited_ns / NAMED_PART &&
	       *name_of_id(sums, cgroup_id);
}

/* Processes with little go into the group of their cgroup. */
static void group_small(struct taken_sums *sums, struct sum *sum)
{
	struct sum grouped = *sum;

	grouped.count = grouped.own_count = grouped.group_count = 0;
	for (uint32_t i = 0; i < sum->count; i++) {
		const struct fbt_taker *taker = &sum->takers[i], group = group_of(taker);
		bool is_grouped = is_small(sum, taker) && wants_group(sums, sum, taker->cgroup_id);

		add_taker(&grouped, is_grouped ? &group : taker);
	}
	*sum = grouped;
}

/*
 * The thread that was moved to another CPU may have been charged for both. What does not fit is
 * taken from the smallest.
 */
static void clamp(struct fbt_taken *taken)
{
	uint64_t left_ns = taken->waited_ns, own_ns;

	taken->own_ns = take_u64(taken->own_ns, &left_ns);
	own_ns = taken->own_ns;
	for (uint32_t i = 0; i < taken->count; i++) {
		struct fbt_taker *taker = &taken->takers[i];

		taker->ns = take_u64(taker->ns, taker->tid ? &own_ns : &left_ns);
	}
	taken->other_ns = take_u64(taken->other_ns, &left_ns);
	taken->idle_ns = take_u64(taken->idle_ns, &left_ns);
}

static void send(struct taken_sums *sums, struct sum *sum, uint16_t flags)
{
	struct fbt_taken taken = {.header.flags = flags,
				  .tgid = sum->of.tgid,
				  .tid = sum->of.tid,
				  .start_ns = sum->of.start_ns,
				  .waited_ns = sum->waited_ns,
				  .idle_ns = sum->idle_ns,
				  .own_ns = sum->own_ns,
				  .cpu = find_cpu(sum)};
	uint32_t own = 0;

	group_small(sums, sum);
	taken.other_ns = sum->other_ns;
	qsort(sum->takers, sum->count, sizeof(sum->takers[0]), compare_takers);
	for (uint32_t i = 0; i < sum->count; i++) {
		struct fbt_taker *taker = &sum->takers[i];

		if (taken.count == FBT_TAKERS || (taker->tid && own == OWN_SENT)) {
			taken.other_ns += taker->tid ? 0 : taker->ns;
			continue;
		}
		own += taker->tid != 0;
		name_cgroup(sums, taker, !taker->tid && taker->ns >= taken.waited_ns / NAMED_PART);
		/* Without its name it says nothing. */
		if (taker_is_group(taker) && !*taker->cgroup)
			taken.other_ns += taker->ns;
		else
			taken.takers[taken.count++] = *taker;
	}
	clamp(&taken);
	record_send(sums->output, &taken, sizeof(taken), FBT_EVENT_TAKEN);
}

static uint64_t end_of(const struct fbt_taken *wait)
{
	return add_saturating(wait->start_ns, wait->waited_ns);
}

/* The part of a wait that is in the step. */
static struct fbt_taken cut_wait(const struct fbt_taken *wait, const struct fbt_step *step)
{
	uint64_t begin_ns = max_u64(wait->start_ns, step->start_ns);
	uint64_t end_ns = min_u64(end_of(wait), step->end_ns);
	struct fbt_taken cut = *wait;

	taken_cut(&cut, sub_saturating(end_ns, begin_ns));
	return cut;
}

/* The sum of a thread. With many, those that have waited recently are the ones that matter. */
static struct sum *other_of(struct taken_sums *sums, const struct step_sum *of)
{
	struct sum *sum;

	for (uint32_t i = 0; i < sums->other_count; i++)
		if (sums->others[i].of.tid == of->tid)
			return &sums->others[i];
	if (sums->other_count == OTHERS_MAX)
		return NULL;
	sum = &sums->others[sums->other_count++];
	*sum = (struct sum){.of = *of};
	return sum;
}

static void sum_others(struct taken_sums *sums, const struct fbt_step *step)
{
	sums->other_count = 0;
	for (uint32_t i = 1; i <= WAITS_MAX; i++) {
		const struct fbt_taken *wait = &sums->waits[(sums->next_wait - i) % WAITS_MAX];
		const struct step_sum key = {wait->tgid, wait->tid, step->start_ns};
		struct fbt_taken cut;
		struct sum *sum;

		if (add_saturating(end_of(wait), ORDER_NS) < step->start_ns)
			return;
		if (wait->tgid != step->tgid || wait->tid == step->tid)
			continue;
		cut = cut_wait(wait, step);
		sum = cut.waited_ns ? other_of(sums, &key) : NULL;
		if (sum)
			add(sum, &cut);
	}
}

/*
 * One that has waited for least_ns; the one of which it is known that it has waited longest goes
 * first.
 */
static struct sum *most_of(struct taken_sums *sums, uint32_t starved_tid, uint64_t least_ns)
{
	struct sum *most = NULL;

	for (uint32_t i = 0; i < sums->other_count; i++) {
		struct sum *sum = &sums->others[i];

		if (!sum->waited_ns || sum->waited_ns < least_ns)
			continue;
		if (sum->of.tid == starved_tid)
			return sum;
		if (!most || sum->waited_ns > most->waited_ns)
			most = sum;
	}
	return most;
}

static void send_others(struct taken_sums *sums, const struct fbt_step *step)
{
	uint64_t least_ns = sub_saturating(step->end_ns, step->start_ns) / OTHERS_PART;

	sum_others(sums, step);
	for (int i = 0; i < OTHERS_SENT; i++) {
		struct sum *sum = most_of(sums, step->starved_tid, least_ns);

		if (!sum)
			return;
		send(sums, sum, FBT_TAKEN_OUTSIDE);
		sum->waited_ns = 0;
	}
}

void taken_sums__send(struct taken_sums *sums, const struct fbt_step *step)
{
	struct sum *sum = step_sums__find(sums->sums, step->tid, step->start_ns);

	send_others(sums, step);
	if (!sum)
		return;
	if (sum->waited_ns)
		send(sums, sum, 0);
	step_sums__drop(sums->sums, sum);
}
