/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "merge/rounds.h"

#include <errno.h>
#include <inttypes.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "base/arith.h"
#include "base/clock.h"
#include "base/format.h"

/* Less is noise, as in ranks/late.h. */
#define LATE_MIN_NS 100000

#define RANK_SPANS_MIN 3
#define NAMES_MAX      65536
#define WORST_SHOWN    10
#define RANKS_SHOWN    64
#define LABEL_COLUMNS  28

/* A slice that covers less of the time is not what it did. */
#define DID_PERCENT 10

/* As a name. It is an upper bound, so a call that took half of the time comes first. */
#define CPU_WAIT "waiting for a CPU"

static uint64_t error_of(const struct rounds *rounds)
{
	return rounds->of_collectives ? rounds->matched_error_ns : rounds->error_ns;
}

static const span_vec *spans_of(const struct rounds *rounds, struct gather_file *files,
				const struct rank_unit *rank)
{
	struct gather_process *process = &files[rank->file].processes.items[rank->process];

	return rounds->of_collectives ? &process->collectives : &process->steps;
}

/* What Kineto's format has as the pid of a device is its number. */
static bool is_device(const struct gather_file *file, const struct gather_process *process)
{
	return !process->is_host && file->facts.format == SOURCE_KINETO;
}

static bool has_several_devices(const struct gather_file *file)
{
	size_t count = 0;

	vec_for_each (process, &file->processes)
		count += is_device(file, process) && process->collectives.count >= RANK_SPANS_MIN;
	return count > 1;
}

static void name_rank(struct rank_unit *rank, const struct gather_file *file)
{
	const struct gather_process *process = &file->processes.items[rank->process];
	const char *slash = strrchr(file->path, '/');
	bool of_device = is_device(file, process);
	char name[32], pid[32] = "";

	rank->is_nobodys = of_device && rank->step_pid == process->pid;
	if (rank->is_nobodys && has_several_devices(file))
		snprintf(pid, sizeof(pid), ", GPU %" PRId64, process->pid);
	else if (!rank->is_nobodys)
		snprintf(pid, sizeof(pid), ", pid %" PRId64, rank->step_pid);
	shorten_text(name, sizeof(name), slash ? slash + 1 : file->path, 14);
	if (file->facts.has_rank)
		snprintf(rank->label, sizeof(rank->label), "rank %" PRIu32 "%s", file->facts.rank,
			 pid);
	else
		snprintf(rank->label, sizeof(rank->label), "%s, %s %" PRId64, name,
			 of_device ? "GPU" : "pid", process->pid);
}

static int add_ranks(struct rounds *rounds, struct gather_file *files, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct gather_process *host = gather_host(&files[i]);

		for (size_t j = 0; j < files[i].processes.count; j++) {
			const struct gather_process *process = &files[i].processes.items[j];
			struct rank_unit rank = {.file = i, .process = j, .step_pid = process->pid};
			size_t spans = rounds->of_collectives ? process->collectives.count
							      : process->steps.count;

			if (spans < RANK_SPANS_MIN)
				continue;
			if (!process->steps.count && host)
				rank.step_pid = host->pid;
			name_rank(&rank, &files[i]);
			if (vec_push(&rounds->ranks, rank))
				return -ENOMEM;
		}
	}
	return 0;
}

/* The number of a step counts from the begin of its trace, so it is another one in each. */
static bool is_same(const struct rounds *rounds, const struct collective *a,
		    const struct collective *b)
{
	return rounds->of_collectives ? collectives_match(a, b) : a->name == b->name;
}

static int compare_steps(const void *left, const void *right)
{
	const struct collective *a = left, *b = right;

	if (a->name != b->name)
		return (a->name > b->name) - (a->name < b->name);
	return (a->end_ns > b->end_ns) - (a->end_ns < b->end_ns);
}

/* Steps of two functions may be within each other, so that of a late rank the order is another. */
static void sort_steps(struct gather_file *files, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		vec_for_each (process, &files[i].processes)
			vec_sort(&process->steps, compare_steps);
	}
}

/* As the spans are sorted. */
static bool is_before(const struct rounds *rounds, const struct collective *a,
		      const struct collective *b)
{
	return rounds->of_collectives ? a->end_ns < b->end_ns : compare_steps(a, b) < 0;
}

static int64_t overlap_ns(const struct collective *a, const struct collective *b)
{
	int64_t begin_ns = a->begin_ns > b->begin_ns ? a->begin_ns : b->begin_ns;

	return (a->end_ns < b->end_ns ? a->end_ns : b->end_ns) - begin_ns;
}

static uint64_t apart_ns(int64_t a, int64_t b)
{
	return a > b ? (uint64_t)a - (uint64_t)b : (uint64_t)b - (uint64_t)a;
}

/* Whether the second of two spans of another rank fits better, by all that can be said. */
static bool fits_second(const struct rounds *rounds, const struct collective *span,
			const struct collective two[2])
{
	return is_same(rounds, span, &two[1]) &&
	       overlap_ns(span, &two[1]) > overlap_ns(span, &two[0]) &&
	       apart_ns(span->begin_ns, two[1].begin_ns) <
		       apart_ns(span->begin_ns, two[0].begin_ns) &&
	       apart_ns(span->end_ns, two[1].end_ns) < apart_ns(span->end_ns, two[0].end_ns);
}

/* One of the spans of a rank. */
struct cursor {
	const span_vec *spans;
	size_t at;
};

/*
 * Whether the next one belongs to a step rather than this one: a trace may begin in the middle of a
 * step that another has whole. Then the step after it says so too. Where one rank is late, its step
 * overlaps the next one of the others, but the one after it is with theirs again. All end a
 * collective together, so one of which only the end was seen does not overlap the next.
 */
static bool is_next(const struct rounds *rounds, const struct cursor *own,
		    const struct cursor *others)
{
	const struct collective *span = &own->spans->items[own->at];
	const struct collective *other = &others->spans->items[others->at];

	if (rounds->of_collectives || others->at + 1 >= others->spans->count ||
	    !fits_second(rounds, span, other))
		return false;
	return own->at + 1 >= own->spans->count || others->at + 2 >= others->spans->count ||
	       fits_second(rounds, span + 1, other + 1);
}

/*
 * For each span of the first rank the one of another rank that belongs to it, index + 1, or 0: both
 * in order, and at the same time. One without a counterpart is passed.
 */
static uint32_t *find_twins(const struct rounds *rounds, const span_vec *first,
			    const span_vec *other)
{
	int64_t error_ns = rounds->error_known ? (int64_t)error_of(rounds) : 0;
	uint32_t *twins = calloc(first->count + 1, sizeof(*twins));
	struct cursor left = {first, 0}, right = {other, 0};

	while (twins && left.at < first->count && right.at < other->count) {
		const struct collective *a = &first->items[left.at], *b = &other->items[right.at];
		bool is_twin = is_same(rounds, a, b) && overlap_ns(a, b) >= -error_ns;
		bool passes_left =
			is_twin ? is_next(rounds, &right, &left) : is_before(rounds, a, b);
		bool passes_right = is_twin ? is_next(rounds, &left, &right) : !passes_left;

		if (is_twin && !passes_left && !passes_right)
			twins[left.at] = (uint32_t)right.at + 1;
		left.at += !passes_right;
		right.at += passes_right || !passes_left;
	}
	return twins;
}

static void widen(struct round *round, uint32_t rank, int64_t ns)
{
	if (!round->last_ns || ns < round->first_ns)
		round->first_ns = ns;
	if (!round->last_ns || ns > round->last_ns) {
		round->last_ns = ns;
		round->late = rank;
	}
}

/* The process groups of a rank's collectives, sorted, each once. */
typedef VEC(uint32_t) group_vec;

/* The collectives, or steps, of which a rank is the first that takes part. */
struct lead {
	uint32_t rank;
	group_vec groups;  /* of which it is the first rank */
	uint32_t **twins;  /* of each later rank that takes part, as find_twins() says */
	group_vec *all;	   /* of each rank */
	bool by_group;	   /* every file has ranks with groups */
	bool leads_others; /* it is the first of the ranks with groups, or of those without */
};

static bool has_group(const group_vec *groups, uint32_t group)
{
	size_t at = vec_lower_bound(groups, *item, group);

	return at < groups->count && groups->items[at] == group;
}

static int add_group(group_vec *groups, uint32_t group)
{
	size_t at = vec_lower_bound(groups, *item, group);

	if (at < groups->count && groups->items[at] == group)
		return 0;
	return vec_insert(groups, at, group);
}

/*
 * Whether a rank is as the leading one: it has groups, or it has none, as the process of a rank has
 * whose few collectives are on the CPU.
 */
static bool is_alike(const struct lead *lead, uint32_t rank)
{
	return !lead->all[rank].count == !lead->all[lead->rank].count;
}

/* Whether a rank takes part; where the group is not known all do that are alike. */
static bool takes_part(const struct lead *lead, uint32_t rank, const struct collective *span)
{
	if (!lead->by_group)
		return true;
	return span->number ? has_group(&lead->all[rank], span->number) : is_alike(lead, rank);
}

static bool leads(const struct lead *lead, const struct collective *span)
{
	if (!lead->by_group)
		return !lead->rank;
	return span->number ? has_group(&lead->groups, span->number) : lead->leads_others;
}

/* false: not all ranks that take part have it. */
static bool make_round(const struct rounds *rounds, struct gather_file *files,
		       const struct lead *lead, size_t index, struct round *round)
{
	const struct collective *span =
		&spans_of(rounds, files, &rounds->ranks.items[lead->rank])->items[index];
	struct round ends = {.is_end = true};
	bool ends_known = true;
	uint32_t members = 0;

	*round = (struct round){0};
	for (uint32_t i = lead->rank; i < rounds->ranks.count; i++) {
		const span_vec *spans = spans_of(rounds, files, &rounds->ranks.items[i]);
		size_t at = i == lead->rank ? index + 1 : 0;

		if (!takes_part(lead, i, span))
			continue;
		if (i != lead->rank && lead->twins[i])
			at = lead->twins[i][index];
		if (!at)
			return false;
		widen(round, i, spans->items[at - 1].begin_ns);
		widen(&ends, i, spans->items[at - 1].end_ns);
		ends_known &= !spans->items[at - 1].is_cut;
		members++;
	}
	/* All end a collective at the same time, so only its begin tells who was late. */
	if (!rounds->of_collectives && ends_known &&
	    ends.last_ns - ends.first_ns > round->last_ns - round->first_ns)
		*round = ends;
	return members > 1;
}

/* The number of the step that a time is in, or that was the last one before it; 0: none. */
static uint32_t step_at(const span_vec *steps, int64_t ns)
{
	size_t at = vec_lower_bound(steps, item->end_ns, ns);

	if (at < steps->count && steps->items[at].begin_ns <= ns)
		return steps->items[at].number;
	return at ? steps->items[at - 1].number : 0;
}

static int add_led(struct rounds *rounds, struct gather_file *files, const struct lead *lead)
{
	const struct rank_unit *rank = &rounds->ranks.items[lead->rank];
	const span_vec *spans = spans_of(rounds, files, rank);
	const struct gather_process *host = gather_find(&files[rank->file], rank->step_pid);

	for (size_t i = 0; i < spans->count; i++) {
		const struct collective *span = &spans->items[i];
		struct round round;

		if (!leads(lead, span))
			continue;
		if (!make_round(rounds, files, lead, i, &round)) {
			rounds->unmatched++;
			continue;
		}
		round.lead = lead->rank;
		round.step = !rounds->of_collectives ? span->number
			     : host		     ? step_at(&host->steps, span->begin_ns)
						     : 0;
		if (vec_push(&rounds->rounds, round))
			return -ENOMEM;
	}
	return 0;
}

static bool shares_group(const group_vec *a, const group_vec *b)
{
	vec_for_each (group, a) {
		if (has_group(b, *group))
			return true;
	}
	return false;
}

/* The groups of which it is the first rank, and the twins of those that take part. */
static int begin_lead(const struct rounds *rounds, struct gather_file *files, struct lead *lead)
{
	const span_vec *spans = spans_of(rounds, files, &rounds->ranks.items[lead->rank]);
	int err = 0;

	lead->groups.count = 0;
	lead->leads_others = true;
	if (lead->rank && !lead->by_group)
		return 0;
	for (uint32_t i = 0; i < lead->rank; i++)
		lead->leads_others &= !is_alike(lead, i);
	vec_for_each (group, &lead->all[lead->rank]) {
		bool is_first = true;

		for (uint32_t i = 0; i < lead->rank && is_first; i++)
			is_first = !has_group(&lead->all[i], *group);
		err = err ? err : is_first ? vec_push(&lead->groups, *group) : 0;
	}
	for (size_t i = lead->rank + 1; i < rounds->ranks.count && !err; i++) {
		if (lead->by_group && !shares_group(&lead->groups, &lead->all[i]) &&
		    !(lead->leads_others && is_alike(lead, (uint32_t)i)))
			continue;
		lead->twins[i] =
			find_twins(rounds, spans, spans_of(rounds, files, &rounds->ranks.items[i]));
		err = lead->twins[i] ? 0 : -ENOMEM;
	}
	return err;
}

static void end_lead(const struct rounds *rounds, struct lead *lead)
{
	for (size_t i = 0; lead->twins && i < rounds->ranks.count; i++) {
		free(lead->twins[i]);
		lead->twins[i] = NULL;
	}
}

/*
 * A trace without groups (ferrum's format) beside others may have its collectives in common with
 * all of them.
 */
static int list_groups(const struct rounds *rounds, struct gather_file *files, struct lead *lead)
{
	bool has_groups = true; /* some rank of the file at hand */
	int err = 0;

	lead->by_group = rounds->of_collectives;
	for (size_t i = 0; i < rounds->ranks.count && rounds->of_collectives; i++) {
		const struct rank_unit *rank = &rounds->ranks.items[i];

		vec_for_each (span, spans_of(rounds, files, rank))
			err = err || !span->number ? err : add_group(&lead->all[i], span->number);
		if (!i || rank->file != rank[-1].file) {
			lead->by_group &= has_groups;
			has_groups = false;
		}
		has_groups |= lead->all[i].count > 0;
	}
	lead->by_group &= has_groups;
	return err;
}

static int add_rounds(struct rounds *rounds, struct gather_file *files)
{
	struct lead lead = {
		.twins = calloc(rounds->ranks.count, sizeof(*lead.twins)),
		.all = calloc(rounds->ranks.count, sizeof(*lead.all)),
	};
	int err = lead.twins && lead.all ? list_groups(rounds, files, &lead) : -ENOMEM;

	for (; lead.rank < rounds->ranks.count && !err; lead.rank++) {
		err = begin_lead(rounds, files, &lead);
		if (!err)
			err = add_led(rounds, files, &lead);
		end_lead(rounds, &lead);
	}
	for (size_t i = 0; lead.all && i < rounds->ranks.count; i++)
		vec_free(&lead.all[i]);
	vec_free(&lead.groups);
	free(lead.all);
	free(lead.twins);
	return err;
}

uint64_t round_spread(const struct round *round)
{
	return (uint64_t)(round->last_ns - round->first_ns);
}

bool round_is_late(const struct rounds *rounds, const struct round *round)
{
	uint64_t least = rounds->error_known ? max_u64(error_of(rounds), LATE_MIN_NS) : LATE_MIN_NS;

	return round_spread(round) > least;
}

static int compare_rounds(const void *left, const void *right)
{
	const struct round *a = left, *b = right;

	return (a->last_ns > b->last_ns) - (a->last_ns < b->last_ns);
}

/* For each rank the rounds in which it was late, in the order in which it came. */
static int index_rounds(struct rounds *rounds)
{
	vec_sort(&rounds->rounds, compare_rounds);
	for (uint32_t rank = 0; rank < rounds->ranks.count; rank++) {
		size_t from = rounds->order.count;
		int64_t earliest_ns = INT64_MAX;

		if (vec_push(&rounds->by_rank, from))
			return -ENOMEM;
		for (uint32_t i = 0; i < rounds->rounds.count; i++) {
			if (rounds->rounds.items[i].late == rank &&
			    round_is_late(rounds, &rounds->rounds.items[i]) &&
			    vec_push(&rounds->order, i))
				return -ENOMEM;
		}
		for (size_t i = rounds->order.count; i-- > from;) {
			struct round *round = &rounds->rounds.items[rounds->order.items[i]];

			if (round->first_ns < earliest_ns)
				earliest_ns = round->first_ns;
			round->earliest_ns = earliest_ns;
		}
	}
	return vec_push(&rounds->by_rank, rounds->order.count);
}

int rounds_find(struct rounds *rounds, struct gather_file *files, size_t count)
{
	int err;

	rounds->of_collectives = true;
	err = add_ranks(rounds, files, count);
	if (!err && rounds->ranks.count >= 2)
		err = add_rounds(rounds, files);
	if (!err && !rounds->rounds.count) {
		rounds->of_collectives = false;
		rounds->ranks.count = 0;
		rounds->unmatched = 0;
		sort_steps(files, count);
		err = add_ranks(rounds, files, count);
		if (!err && rounds->ranks.count >= 2)
			err = add_rounds(rounds, files);
	}
	return err ? err : index_rounds(rounds);
}

struct numbered_name {
	char *text;
	uint32_t number;
};

static int compare_names(const void *left, const void *right)
{
	return strcmp(((const struct numbered_name *)left)->text,
		      ((const struct numbered_name *)right)->text);
}

static uint32_t number_name(struct rounds *rounds, const char *text)
{
	struct numbered_name key = {.text = (char *)text}, *entry;
	struct numbered_name **found = tfind(&key, &rounds->name_tree, compare_names);
	char *copy;

	if (found)
		return (*found)->number;
	copy = rounds->names.count < NAMES_MAX ? strdup(text) : NULL;
	entry = copy ? malloc(sizeof(*entry)) : NULL;
	if (!entry || vec_push(&rounds->names, copy)) {
		free(copy);
		free(entry);
		return 0;
	}
	*entry = (struct numbered_name){copy, (uint32_t)rounds->names.count};
	return tsearch(entry, &rounds->name_tree, compare_names) ? entry->number : 0;
}

/*
 * Of more names than there is room for, that with the least time is given up. Slices of a name may
 * be within each other, or in several threads: together they fill the time at most.
 */
static void add_did(struct round *round, uint32_t name, int64_t ns)
{
	struct meanwhile *least = round->did;

	for (int i = 0; i < ROUND_NAMES; i++) {
		if (round->did[i].name == name) {
			round->did[i].ns = (int64_t)min_u64((uint64_t)(round->did[i].ns + ns),
							    round_spread(round));
			return;
		}
		if (round->did[i].ns < least->ns)
			least = &round->did[i];
	}
	if (ns > least->ns)
		*least = (struct meanwhile){name, ns};
}

static void note_rank(struct rounds *rounds, size_t rank, int64_t begin_ns, int64_t end_ns,
		      uint32_t name, bool is_cause)
{
	const uint32_t *order = rounds->order.items;
	size_t from = rounds->by_rank.items[rank], to = rounds->by_rank.items[rank + 1];
	size_t at = from + first_index(i, to - from,
				       rounds->rounds.items[order[from + i]].last_ns > begin_ns);

	for (; at < to; at++) {
		struct round *round = &rounds->rounds.items[order[at]];
		int64_t first = begin_ns > round->first_ns ? begin_ns : round->first_ns;
		int64_t last = end_ns < round->last_ns ? end_ns : round->last_ns;

		if (round->earliest_ns >= end_ns)
			break;
		if (last <= first)
			continue;
		if (!is_cause)
			add_did(round, name, last - first);
		else if (2 * (uint64_t)(last - first) > round_spread(round))
			round->cause = name;
	}
}

static const char *cause_of(const struct source_event *event)
{
	struct json_object *args, *cause;

	if (!json_object_object_get_ex(event->whole, "args", &args) ||
	    !json_object_is_type(args, json_type_object) ||
	    !json_object_object_get_ex(args, "cause", &cause) ||
	    !json_object_is_type(cause, json_type_string))
		return NULL;
	return json_object_get_string(cause);
}

/* Slices that are around others tell nothing. */
static bool is_around(const struct source_event *event)
{
	static const char *const cats[] = {"step",  "user_annotation",	   "iteration",
					   "Trace", "gpu_user_annotation", "python_function"};
	uint32_t kind;

	for (size_t i = 0; i < sizeof(cats) / sizeof(cats[0]); i++) {
		if (!strcmp(event->cat, cats[i]))
			return true;
	}
	return collective_is(event->cat, event->name, &kind);
}

/* How long a step waited for a CPU, which is in its arguments; 0: it did not, or is no step. */
static int64_t cpu_wait_of(const struct source_event *event)
{
	struct json_object *args, *wait;

	if (!json_object_object_get_ex(event->whole, "args", &args) ||
	    !json_object_is_type(args, json_type_object) ||
	    !json_object_object_get_ex(args, "cpu_wait_us", &wait) ||
	    !json_object_is_type(wait, json_type_int))
		return 0;
	return (int64_t)clamp_u64(json_object_get_uint64(wait) * NS_PER_US, 0,
				  (uint64_t)event->dur_ns);
}

int rounds_note(struct rounds *rounds, size_t file, const struct source_event *event,
		int64_t begin_ns, int64_t end_ns)
{
	bool is_cause = !strcmp(event->cat, "escalation");
	const char *text = is_cause ? cause_of(event) : event->name;
	int64_t wait_ns = event->phase == 'X' ? cpu_wait_of(event) : 0;
	uint32_t name = 0;

	/* Where in the step it waited is not known. */
	if (wait_ns && !is_cause && 2 * wait_ns > event->dur_ns)
		text = CPU_WAIT;
	else if (event->phase != 'X' || !text || !*text || is_around(event))
		return 0;
	for (size_t i = 0; i < rounds->ranks.count; i++) {
		const struct rank_unit *rank = &rounds->ranks.items[i];

		if (rank->file != file || rank->step_pid != event->pid)
			continue;
		name = name ? name : number_name(rounds, text);
		if (name)
			note_rank(rounds, i, begin_ns, end_ns, name, is_cause);
	}
	return 0;
}

static uint64_t weight(const struct rounds *rounds, const struct round *round,
		       const struct meanwhile *did)
{
	uint64_t ns = (uint64_t)did->ns;

	if (did->name && !strcmp(rounds->names.items[did->name - 1], CPU_WAIT))
		return min_u64(ns, round_spread(round) / 2);
	return ns;
}

void rounds_describe(const struct rounds *rounds, const struct round *round, char text[ROUND_TEXT])
{
	struct line line = {text, ROUND_TEXT, 0};
	const struct meanwhile *most = round->did;
	char name[48];

	*text = '\0';
	for (int i = 0; i < ROUND_NAMES; i++) {
		if (weight(rounds, round, &round->did[i]) > weight(rounds, round, most))
			most = &round->did[i];
	}
	if (!most->name && rounds->ranks.items[round->late].is_nobodys) {
		line_add(&line, "not known: the trace does not say whose GPU it is");
	} else if (!most->name || (uint64_t)most->ns * 100 < round_spread(round) * DID_PERCENT) {
		line_add(&line, "its own code, or nothing that is traced");
	} else {
		shorten_text(name, sizeof(name), rounds->names.items[most->name - 1], 32);
		line_add(&line, "%s %s", name, FORMAT_TIME(most->ns));
	}
	if (round->cause) {
		shorten_text(name, sizeof(name), rounds->names.items[round->cause - 1], 32);
		line_add(&line, " (%s)", name);
	}
}

struct late_sum {
	uint64_t count, total_ns;
	const struct round *worst;
};

static struct late_sum sum_up(const struct rounds *rounds, size_t rank)
{
	struct late_sum sum = {0};

	for (size_t i = rounds->by_rank.items[rank]; i < rounds->by_rank.items[rank + 1]; i++) {
		const struct round *round = &rounds->rounds.items[rounds->order.items[i]];

		sum.count++;
		sum.total_ns = add_saturating(sum.total_ns, round_spread(round));
		if (!sum.worst || round_spread(round) > round_spread(sum.worst))
			sum.worst = round;
	}
	return sum;
}

static void print_ranks(const struct rounds *rounds, FILE *out)
{
	char text[ROUND_TEXT], label[64];

	terminal_line(out, "  %-*s %6s %9s %9s  meanwhile in the worst", LABEL_COLUMNS, "late rank",
		      "late", "total", "worst");
	for (size_t i = 0; i < rounds->ranks.count && i < RANKS_SHOWN; i++) {
		struct late_sum sum = sum_up(rounds, i);

		shorten_text(label, sizeof(label), rounds->ranks.items[i].label, LABEL_COLUMNS);
		if (!sum.count) {
			terminal_line(out, "  %-*s %6s", LABEL_COLUMNS, label, "-");
			continue;
		}
		rounds_describe(rounds, sum.worst, text);
		terminal_line(out, "  %-*s %6s %9s %9s  %s", LABEL_COLUMNS, label,
			      FORMAT_COUNT(sum.count), FORMAT_TIME(sum.total_ns),
			      FORMAT_TIME(round_spread(sum.worst)), text);
	}
	if (rounds->ranks.count > RANKS_SHOWN)
		terminal_line(out, "  and %zu more", rounds->ranks.count - RANKS_SHOWN);
}

/* A step, or a collective that is in none. */
struct group {
	const struct round *worst;
	uint64_t total_ns; /* for which the others waited */
};

static int compare_groups(const void *left, const void *right)
{
	const struct group *a = left, *b = right;

	return (a->total_ns < b->total_ns) - (a->total_ns > b->total_ns);
}

/* latest: of each rank that leads, index + 1 of the group of its step; all 0. */
static size_t group_rounds(const struct rounds *rounds, struct group *groups, size_t *latest)
{
	size_t count = 0;

	vec_for_each (round, &rounds->rounds) {
		size_t *last = &latest[round->lead];
		struct group *group;

		if (!round_is_late(rounds, round))
			continue;
		if (!*last || !round->step || round->step != groups[*last - 1].worst->step) {
			groups[count++] = (struct group){round, 0};
			*last = count;
		}
		group = &groups[*last - 1];

		group->total_ns = add_saturating(group->total_ns, round_spread(round));
		if (round_spread(round) > round_spread(group->worst))
			group->worst = round;
	}
	return count;
}

static void print_worst(const struct rounds *rounds, int64_t base_ns, FILE *out)
{
	struct group *groups = calloc(rounds->rounds.count + 1, sizeof(*groups));
	size_t *latest = calloc(rounds->ranks.count + 1, sizeof(*latest));
	size_t count = groups && latest ? group_rounds(rounds, groups, latest) : 0;

	char text[ROUND_TEXT], label[64], step[24];

	if (count) {
		qsort(groups, count, sizeof(*groups), compare_groups);
		terminal_line(out, "  %-10s %9s %9s  %-*s meanwhile", "worst step", "at", "spread",
			      LABEL_COLUMNS, "late rank");
	}
	for (size_t i = 0; i < count && i < WORST_SHOWN; i++) {
		const struct round *worst = groups[i].worst;

		snprintf(step, sizeof(step), worst->step ? "#%" PRIu32 : "-", worst->step);
		rounds_describe(rounds, worst, text);
		shorten_text(label, sizeof(label), rounds->ranks.items[worst->late].label,
			     LABEL_COLUMNS);
		terminal_line(out, "  %-10s %9s %9s  %-*s %s%s", step,
			      FORMAT_TIME(worst->first_ns - base_ns),
			      FORMAT_TIME(groups[i].total_ns), LABEL_COLUMNS, label,
			      worst->is_end ? "at its end: " : "", text);
	}
	free(latest);
	free(groups);
}

void rounds_print(const struct rounds *rounds, int64_t base_ns, FILE *out)
{
	const char *what = rounds->of_collectives ? "collectives" : "steps";

	if (rounds->ranks.count < 2) {
		terminal_line(out, "Late ranks: the traces have no steps or collectives of two "
				   "ranks");
		return;
	}
	terminal_line(out, "Late ranks: %s %s of %zu ranks, late in %s",
		      FORMAT_COUNT(rounds->rounds.count), what, rounds->ranks.count,
		      FORMAT_COUNT(rounds->order.count));
	if (rounds->unmatched)
		terminal_line(out, "  left out: %s that not all of their ranks have",
			      FORMAT_COUNT(rounds->unmatched));
	if (!rounds->error_known)
		terminal_line(out,
			      "! by wall clocks, or by collectives that may be others: the error "
			      "is not known, and who was late may be wrong");
	else
		terminal_line(out, "  differences up to %s are not reported: %s",
			      FORMAT_TIME(max_u64(error_of(rounds), LATE_MIN_NS)),
			      error_of(rounds) > LATE_MIN_NS ? "the error of the clocks" : "noise");
	print_ranks(rounds, out);
	print_worst(rounds, base_ns, out);
}

static void free_name(void *node)
{
	free(node);
}

void rounds_clear(struct rounds *rounds)
{
	tdestroy(rounds->name_tree, free_name);
	vec_for_each (name, &rounds->names)
		free(*name);
	vec_free(&rounds->names);
	vec_free(&rounds->ranks);
	vec_free(&rounds->rounds);
	vec_free(&rounds->order);
	vec_free(&rounds->by_rank);
}
