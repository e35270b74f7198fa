/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "judge/class.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arith.h"
#include "base/stats.h"
#include "base/vec.h"

#define FILTERED_MIN 10 /* where fewer pass the filter, all count */
#define CAPACITY_MIN 16

#define CHAINS 2048 /* a power of two */
#define NONE   UINT32_MAX

/* A class key: the bucket, by what it is counted, without GPU records or not, kind, process. */
#define KEY_BUCKET	0xffu
#define KEY_BY_ARGUMENT 0x100u
#define KEY_WITHOUT_GPU 0x200u
#define KEY_KIND	16
#define KEY_PROCESS	22
_Static_assert(FBT_KIND_COUNT <= 1 << (KEY_PROCESS - KEY_KIND),
	       "a kind fits into its bits of a key");
_Static_assert(WINDOW_PROCESSES_MAX <= 1 << (32 - KEY_PROCESS),
	       "and so do the processes of one number");
#define BUCKETS 64

/* The arguments of Python engines that say how much there is to do. */
#define TOKENS "n_tokens"
#define WAITED "n_waited"

/* An anomaly is rare beside those nearby, and rarer beside others: class_table__find_standard. */
#define NEIGHBOUR_REACH 3 /* buckets */
#define COMMON_FACTOR	2
#define FAR_FACTOR	8

struct class_history {
	uint64_t key;
	uint32_t window_steps;
	uint32_t count;
	uint32_t told;	 /* for this many more steps */
	uint32_t oldest; /* 0 until the window is full */
	uint32_t capacity;
	struct cause_times *steps; /* a ring once it is full */
	uint64_t *numbers;	   /* of those steps */
	uint64_t *works;	   /* sorted */
	uint64_t *rests;	   /* sorted */
	uint64_t *scratch;
	uint32_t disturbed; /* of the steps; see is_disturbed */
	uint64_t asked;	    /* number of steps of all classes when … */
	bool is_anomaly;    /* … this was determined */
};

struct class_history *class_history__new(uint32_t window_steps)
{
	struct class_history *history = calloc(1, sizeof(*history));

	if (history)
		history->window_steps = window_steps;
	return history;
}

void class_history__free(struct class_history *history)
{
	if (!history)
		return;
	free(history->steps);
	free(history->numbers);
	free(history->works);
	free(history->rests);
	free(history->scratch);
	free(history);
}

static uint64_t rest_of(const struct cause_times *times)
{
	uint64_t total = 0;

	for (int i = 0; i < CAUSE_COUNT; i++)
		total += times->ns[i];
	return total - cause_work_ns(times);
}

/* Most classes stay small: a prompt of that length came once. */
static int grow(struct class_history *history)
{
	uint32_t capacity = history->capacity ? history->capacity * 2 : CAPACITY_MIN;
	uint64_t **const arrays[] = {&history->numbers, &history->works, &history->rests,
				     &history->scratch};
	void *larger;

	if (history->count < history->capacity)
		return 0;
	if (capacity > history->window_steps)
		capacity = history->window_steps;
	larger = reallocarray(history->steps, capacity, sizeof(*history->steps));
	if (!larger)
		return -ENOMEM;
	history->steps = larger;
	for (size_t i = 0; i < sizeof(arrays) / sizeof(arrays[0]); i++) {
		larger = reallocarray(*arrays[i], capacity, sizeof(**arrays[i]));
		if (!larger)
			return -ENOMEM;
		*arrays[i] = larger;
	}
	history->capacity = capacity;
	return 0;
}

/* Index of the first element that is not below value. */
static uint32_t position_of(const uint64_t *sorted, uint32_t count, uint64_t value)
{
	return (uint32_t)first_index(i, count, sorted[i] >= value);
}

static void insert_sorted(uint64_t *sorted, uint32_t count, uint64_t value)
{
	uint32_t at = position_of(sorted, count, value);

	memmove(&sorted[at + 1], &sorted[at], (count - at) * sizeof(*sorted));
	sorted[at] = value;
}

/* Moves only what lies between the old value and the new one. */
static void replace_sorted(uint64_t *sorted, uint32_t count, uint64_t old, uint64_t value)
{
	uint32_t from = position_of(sorted, count, old);
	uint32_t to = position_of(sorted, count, value);

	if (to > from) {
		to--;
		memmove(&sorted[from], &sorted[from + 1], (to - from) * sizeof(*sorted));
	} else {
		memmove(&sorted[to + 1], &sorted[to], (from - to) * sizeof(*sorted));
	}
	sorted[to] = value;
}

/* Whether more than half of a step's work may be no work: see cause_blame. */
static bool is_disturbed(const struct cause_times *times)
{
	return times->blamable_ns > cause_work_ns(times) / 2;
}

static void replace_oldest(struct class_history *history, const struct cause_times *times,
			   uint64_t number)
{
	struct cause_times *oldest = &history->steps[history->oldest];

	replace_sorted(history->works, history->count, cause_work_ns(oldest), cause_work_ns(times));
	replace_sorted(history->rests, history->count, rest_of(oldest), rest_of(times));
	history->disturbed -= is_disturbed(oldest);
	history->disturbed += is_disturbed(times);
	*oldest = *times;
	history->numbers[history->oldest] = number;
	history->oldest = (history->oldest + 1) % history->window_steps;
}

int class_history__add(struct class_history *history, const struct cause_times *times,
		       uint64_t number)
{
	int err;

	history->told -= history->told != 0;
	if (history->count == history->window_steps) {
		replace_oldest(history, times, number);
		return 0;
	}
	err = grow(history);
	if (err)
		return err;
	insert_sorted(history->works, history->count, cause_work_ns(times));
	insert_sorted(history->rests, history->count, rest_of(times));
	history->numbers[history->count] = number;
	history->disturbed += is_disturbed(times);
	history->steps[history->count++] = *times;
	return 0;
}

void class_history__mark_told(struct class_history *history)
{
	history->told = history->window_steps;
}

bool class_history__is_told(const struct class_history *history)
{
	return history->told != 0;
}

uint32_t class_history__count(const struct class_history *history)
{
	return history->count;
}

uint64_t class_history__key(const struct class_history *history)
{
	return history->key;
}

bool class_history__is_known(const struct class_history *history)
{
	return history && history->count >= CLASS_KNOWN_STEPS;
}

static uint64_t median_of(const struct class_history *history, const uint64_t *sorted)
{
	return history->count ? sorted[history->count / 2] : 0;
}

uint64_t class_history__usual_work_ns(const struct class_history *history)
{
	return median_of(history, history->works);
}

uint64_t class_history__usual_rest_ns(const struct class_history *history)
{
	return median_of(history, history->rests);
}

/* How many times more there is to do in a step of the key, by the argument of both. */
static double size_ratio(const struct class_history *history, uint64_t key)
{
	int buckets = (int)(key & KEY_BUCKET) - (int)(history->key & KEY_BUCKET);

	return key & history->key & KEY_BY_ARGUMENT ? ldexp(1, buckets) : 1;
}

uint64_t class_history__rest_for_ns(const struct class_history *history, uint64_t key,
				    uint64_t work_ns)
{
	uint64_t rest_ns = class_history__usual_rest_ns(history);
	uint64_t usual_ns = class_history__usual_work_ns(history);
	double ratio = size_ratio(history, key), share;

	if (usual_ns)
		ratio = fmax(ratio, (double)work_ns / (double)usual_ns);
	if (ratio <= 1)
		return rest_ns;
	share = (double)rest_ns * ratio;
	return share < (double)UINT64_MAX ? (uint64_t)share : UINT64_MAX;
}

/* The CV of the steps first … last - 1, in the order of their rest. */
static double cv_of(const struct class_history *history, double work, uint32_t first, uint32_t last)
{
	double count = (double)(last - first), sum = 0, squares = 0, mean;

	for (uint32_t i = first; i < last; i++)
		sum += work + (double)history->rests[i];
	mean = sum / count;
	for (uint32_t i = first; i < last; i++) {
		double difference = work + (double)history->rests[i] - mean;

		squares += difference * difference;
	}
	return mean > 0 ? sqrt(squares / count) / mean * 100 : 0;
}

double class_history__cv_percent(const struct class_history *history)
{
	double work = (double)class_history__usual_work_ns(history);
	uint32_t first = 0, last = history->count;
	uint32_t quarter = history->count / 4;
	uint32_t three_quarters = (uint32_t)((uint64_t)history->count * 3 / 4);
	double low, high, reach;

	if (!history->count)
		return 0;
	if (history->count >= FILTERED_MIN) {
		/* In doubles, as ferrum computes them. */
		low = work + (double)history->rests[quarter];
		high = work + (double)history->rests[three_quarters];
		reach = 1.5 * (high - low);
		while (first < last && work + (double)history->rests[first] < low - reach)
			first++;
		while (last > first && work + (double)history->rests[last - 1] > high + reach)
			last--;
	}
	if (last - first >= FILTERED_MIN)
		return cv_of(history, work, first, last);
	return cv_of(history, work, 0, history->count);
}

/* Most parts of most steps are 0. Reorders values. */
static uint64_t sparse_median(uint64_t *values, uint32_t count)
{
	uint32_t zeros = 0;

	for (uint32_t i = 0; i < count; i++)
		zeros += !values[i];
	return zeros > count / 2 ? 0 : median_u64(values, count);
}

/* The median over the steps of a value, an expression of times, a pointer. */
#define median_over(history, value)                                                                \
	({                                                                                         \
		for (uint32_t step = 0; step < (history)->count; step++) {                         \
			const struct cause_times *times = &(history)->steps[step];                 \
			(history)->scratch[step] = (value);                                        \
		}                                                                                  \
		sparse_median((history)->scratch, (history)->count);                               \
	})

void class_history__usual(const struct class_history *history, struct cause_times *usual)
{
	for (int part = 0; part < CAUSE_COUNT; part++)
		usual->ns[part] = median_over(history, times->ns[part]);
	usual->covered_ns = median_over(history, times->covered_ns);
	usual->steal_ns = median_over(history, times->steal_ns);
	usual->worker_ns = median_over(history, times->worker_ns);
	usual->threads_made = (uint32_t)median_over(history, times->threads_made);
	usual->signals = (uint32_t)median_over(history, times->signals);
}

uint64_t class_history__usual_ns(const struct class_history *history)
{
	return median_over(history, cause_work_ns(times) + rest_of(times));
}

struct entry {
	uint64_t key;
	uint64_t used; /* number of the look-up that found it last */
	struct class_history *history;
	uint32_t next; /* in its chain */
};

struct class_table {
	uint32_t window_steps;
	uint32_t limit;
	uint32_t count;
	uint64_t lookups;
	uint64_t steps;		 /* that were added to any class */
	uint32_t chains[CHAINS]; /* first entry */
	struct entry entries[CLASSES_MAX];
};

struct class_table *class_table__new(uint32_t window_steps)
{
	struct class_table *table = calloc(1, sizeof(*table));

	if (!table)
		return NULL;
	table->window_steps = window_steps;
	table->limit = CLASS_STEPS_MAX / window_steps;
	if (table->limit > CLASSES_MAX)
		table->limit = CLASSES_MAX;
	for (uint32_t i = 0; i < CHAINS; i++)
		table->chains[i] = NONE;
	return table;
}

void class_table__free(struct class_table *table)
{
	if (!table)
		return;
	for (uint32_t i = 0; i < table->count; i++)
		class_history__free(table->entries[i].history);
	free(table);
}

static uint32_t *chain_of(struct class_table *table, uint64_t key)
{
	return &table->chains[(key * UINT64_C(0x9e3779b97f4a7c15) >> 40) % CHAINS];
}

struct class_history *class_table__find(struct class_table *table, uint64_t key)
{
	for (uint32_t i = *chain_of(table, key); i != NONE; i = table->entries[i].next) {
		struct entry *entry = &table->entries[i];

		if (entry->key != key)
			continue;
		entry->used = ++table->lookups;
		return entry->history;
	}
	return NULL;
}

/* Whether a step with these times would be escalated as inefficient. */
static bool is_inefficient(double budget_ns, double actual_ns, double efficiency_percent)
{
	return budget_ns * 100.0 < actual_ns * efficiency_percent;
}

/* Number of steps of all classes per step of this one. */
static double interval_of(const struct class_table *table, const struct class_history *history)
{
	return (double)(table->steps - history->numbers[history->oldest] + 1) /
	       (double)history->count;
}

/*
 * A search for a standard that can show that a class is an anomaly, or that a step is held against.
 */
struct search {
	struct class_table *table;
	uint64_t key;
	const struct class_history *rare; /* find only more common ones than this; NULL: any */
	double efficiency_percent;
};

static struct class_history *find_nearest(const struct search *search);

static bool is_disturbed_class(const struct class_history *history)
{
	return history->disturbed > history->count / 2;
}

/* Whether the usual step of a class is efficient even by a budget without any rest. */
static bool is_efficient_class(const struct search *search, const struct class_history *history)
{
	double work_ns = (double)class_history__usual_work_ns(history);

	return !is_disturbed_class(history) &&
	       !is_inefficient(work_ns, work_ns + (double)class_history__usual_rest_ns(history),
			       search->efficiency_percent);
}

/* The usual work of a class, without what may be a wait, but not less than that of the standard. */
static uint64_t undisturbed_work_ns(struct class_history *history,
				    const struct class_history *standard)
{
	uint64_t blamable_ns = median_over(history, times->blamable_ns);

	return max_u64(class_history__usual_work_ns(standard),
		       sub_saturating(class_history__usual_work_ns(history), blamable_ns));
}

/* A search for the standards that can show that history is an anomaly. */
static struct search among_neighbours(const struct search *search,
				      const struct class_history *history, uint64_t key)
{
	return (struct search){.table = search->table,
			       .key = key,
			       .rare = history,
			       .efficiency_percent = search->efficiency_percent};
}

/*
 * The recursion ends, because only a class that is more common or that is efficient by any budget
 * can show an anomaly. The answer is kept until the next step, because each of many classes could
 * ask about all others.
 */
static bool is_anomaly(const struct search *search, struct class_history *history, uint64_t key)
{
	const struct search others = among_neighbours(search, history, key);
	uint64_t work_ns = class_history__usual_work_ns(history);
	double actual_ns = (double)work_ns + (double)class_history__usual_rest_ns(history);
	const struct class_history *standard;

	if (is_efficient_class(search, history))
		return false;
	if (history->asked == search->table->steps)
		return history->is_anomaly;
	standard = find_nearest(&others);
	history->asked = search->table->steps;
	if (standard && is_disturbed_class(history))
		work_ns = min_u64(work_ns, undisturbed_work_ns(history, standard));
	history->is_anomaly =
		standard && is_inefficient((double)work_ns + (double)class_history__rest_for_ns(
								     standard, key, work_ns),
					   actual_ns, search->efficiency_percent);
	return history->is_anomaly;
}

/*
 * Number of steps of all classes per inefficient step of the rare one, by the budget of a standard,
 * or per step if most are efficient. Where the usual steps lie across the edge of two classes, some
 * of them are among the few slow ones beyond it, and make that class no more usual.
 */
static double bad_interval_of(const struct search *search, const struct class_history *standard)
{
	const struct class_history *rare = search->rare;
	uint64_t work_ns = class_history__usual_work_ns(rare);
	double budget_ns = (double)work_ns +
			   (double)class_history__rest_for_ns(standard, search->key, work_ns);
	uint32_t efficient = (uint32_t)first_index(
		i, rare->count,
		is_inefficient(budget_ns, (double)work_ns + (double)rare->rests[i],
			       search->efficiency_percent));
	uint32_t bad = rare->count - efficient;

	if (bad <= rare->count / 2)
		bad = rare->count;
	return interval_of(search->table, rare) * rare->count / bad;
}

/* Number of efficient classes' steps near the rare one, per step of all classes. */
static double common_nearby(const struct search *search)
{
	uint64_t bucket = search->key & KEY_BUCKET, least = sub_saturating(bucket, NEIGHBOUR_REACH);
	uint64_t most = min_u64(bucket + NEIGHBOUR_REACH, BUCKETS);
	double part = 0;

	for (uint64_t at = least; at <= most; at++) {
		const struct class_history *history =
			class_table__find(search->table, search->key - bucket + at);

		if (at != bucket && class_history__is_known(history) &&
		    is_efficient_class(search, history))
			part += 1 / interval_of(search->table, history);
	}
	return part;
}

/*
 * Whether a class can show that another one is an anomaly: it is always more common, or one of
 * several nearby that are so together, because usual steps may lie in more classes than one. A
 * class far away must be what the kind mostly does, by time as well: short steps that find nothing
 * to do say nothing about long ones.
 */
static bool is_common(const struct search *search, const struct class_history *history, bool is_far)
{
	const struct class_history *rare = search->rare;
	double interval = interval_of(search->table, history);
	double rare_interval = interval_of(search->table, rare);

	if (is_disturbed_class(rare))
		return interval * COMMON_FACTOR <= rare_interval;
	if (!is_far) {
		double bad_interval = bad_interval_of(search, history);

		return interval * COMMON_FACTOR <= bad_interval ||
		       (is_efficient_class(search, history) &&
			common_nearby(search) * bad_interval >= COMMON_FACTOR);
	}
	return interval * FAR_FACTOR <= rare_interval &&
	       (double)class_history__usual_work_ns(history) * rare_interval >=
		       (double)class_history__usual_work_ns(rare) * interval;
}

static struct class_history *find_standard(const struct search *search, uint64_t key, uint64_t far)
{
	struct class_history *history = class_table__find(search->table, key);

	if (!class_history__is_known(history))
		return NULL;
	if (search->rare && !is_common(search, history, far > NEIGHBOUR_REACH))
		return NULL;
	return is_anomaly(search, history, key) ? NULL : history;
}

/* The nearest standard other than the class of the key; of two, the one with less work. */
static struct class_history *find_nearest(const struct search *search)
{
	uint64_t bucket = search->key & KEY_BUCKET;

	for (uint64_t far = 1; far <= BUCKETS; far++) {
		struct class_history *history = NULL;

		if (far <= bucket)
			history = find_standard(search, search->key - far, far);
		if (!history && bucket + far <= BUCKETS)
			history = find_standard(search, search->key + far, far);
		if (history)
			return history;
	}
	return NULL;
}

struct class_history *class_table__find_standard(struct class_table *table,
						 struct class_history *own, uint64_t key,
						 double efficiency_percent)
{
	struct search search = {
		.table = table, .key = key, .efficiency_percent = efficiency_percent};
	struct class_history *standard;

	if (class_history__is_known(own)) {
		if (!is_anomaly(&search, own, key))
			return own;
		search = among_neighbours(&search, own, key);
	} else if (key & KEY_BY_ARGUMENT) {
		return own;
	}
	standard = find_nearest(&search);
	return standard ? standard : own;
}

int class_table__add_step(struct class_table *table, struct class_history *history,
			  const struct cause_times *times)
{
	return class_history__add(history, times, ++table->steps);
}

/* Unlinks and frees the least recently used class; returns the index of its entry. */
static uint32_t evict(struct class_table *table)
{
	uint32_t oldest = 0;
	uint32_t *link;

	for (uint32_t i = 1; i < table->count; i++) {
		if (table->entries[i].used < table->entries[oldest].used)
			oldest = i;
	}
	link = chain_of(table, table->entries[oldest].key);
	while (*link != oldest)
		link = &table->entries[*link].next;
	*link = table->entries[oldest].next;
	class_history__free(table->entries[oldest].history);
	return oldest;
}

struct class_history *class_table__add(struct class_table *table, uint64_t key)
{
	struct class_history *history = class_history__new(table->window_steps);
	uint32_t *chain = chain_of(table, key);
	uint32_t index;

	if (!history)
		return NULL;
	history->key = key;
	index = table->count < table->limit ? table->count++ : evict(table);
	table->entries[index] = (struct entry){
		.key = key, .used = ++table->lookups, .history = history, .next = *chain};
	*chain = index;
	return history;
}

static uint64_t bucket_of(uint64_t value)
{
	return value ? BUCKETS - (uint64_t)__builtin_clzll(value) : 0;
}

static bool has_arg(const struct kind *kind, const char *name)
{
	for (uint32_t i = 0; i < FBT_ARG_COUNT; i++) {
		if (kind->arg_names[i] && !strcmp(kind->arg_names[i], name))
			return true;
	}
	return false;
}

const char *class_argument(const struct window *window, uint32_t kind, const char *class_by)
{
	const struct kind *known = &window->kinds[kind % FBT_KIND_COUNT];

	if (class_by || !(known->record.header.flags & FBT_KIND_PYTHON))
		return class_by;
	return has_arg(known, WAITED) ? WAITED : has_arg(known, TOKENS) ? TOKENS : NULL;
}

/* The value of the argument by which steps of this kind have their classes, if the step has it. */
static bool find_argument(const struct window *window, const struct fbt_step *record,
			  const char *class_by, int64_t *value)
{
	const struct kind *kind = &window->kinds[record->kind % FBT_KIND_COUNT];
	const char *name = class_argument(window, record->kind, class_by);

	for (uint32_t i = 0; name && i < FBT_ARG_COUNT; i++) {
		if (!(record->arg_mask & (1u << i)) || !kind->arg_names[i] ||
		    strcmp(kind->arg_names[i], name) != 0)
			continue;
		*value = record->args[i];
		return true;
	}
	return false;
}

/* How many processes had this PID so far. What was usual for one is not usual for the next. */
static uint64_t processes_of(const struct window *window, uint32_t tgid)
{
	size_t i = first_index(k, window->processes.count,
			       window->processes.items[k]->record.tgid >= tgid);
	uint64_t count = 0;

	while (i < window->processes.count && window->processes.items[i++]->record.tgid == tgid)
		count++;
	return count % WINDOW_PROCESSES_MAX;
}

uint64_t class_key(const struct window *window, const struct fbt_step *record, const char *class_by,
		   uint64_t work_ns)
{
	uint64_t bucket = bucket_of(work_ns);
	int64_t value;

	if (find_argument(window, record, class_by, &value))
		bucket = bucket_of(value > 0 ? (uint64_t)value : 0) | KEY_BY_ARGUMENT;
	return (uint64_t)record->tgid << 32 | processes_of(window, record->tgid) << KEY_PROCESS |
	       (uint64_t)(record->kind % FBT_KIND_COUNT) << KEY_KIND | bucket;
}

uint64_t class_key_without_gpu(uint64_t key)
{
	return key | KEY_WITHOUT_GPU;
}

struct step_class class_of_key(uint64_t key)
{
	return (struct step_class){
		.is_known = true,
		.by_argument = key & KEY_BY_ARGUMENT,
		.bits = key & KEY_BUCKET,
	};
}
