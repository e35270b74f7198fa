/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "merge/merge.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/arith.h"
#include "base/clock.h"
#include "base/format.h"
#include "base/log.h"
#include "merge/gather.h"
#include "merge/rounds.h"
#include "output/file.h"

/* Ids of arrows beyond that are no numbers in JavaScript. */
#define FLOW_ID_MAX (1ull << 53)

#define PATH_COLUMNS 28
#define WHY_TEXT     96

/* Of the lane of late ranks: below the pids that gather_number makes. */
#define LATE_PID 1999999999
/* Rounds of several process groups may overlap. */
#define LATE_LANES 64

#define LATE_LANE                                                                                  \
	"{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":1999999999,\"tid\":0,"                    \
	"\"args\":{\"name\":\"late ranks\"}}"

struct merge {
	struct gather_file *files;
	size_t count;
	struct rounds rounds;
	int64_t base_ns; /* of the merged trace, on the common clock */
	struct json json;
	struct writer writer;
	size_t current; /* file */
};

static int fail(const char *path, int err, const char *error)
{
	if (err == -EBADMSG)
		log_err("%s: %s", path, *error ? error : "no trace");
	else
		log_err("%s: %s", path, strerror(-err));
	return err;
}

/* How far the wall clock of a file is before the first one's. false: one of both has none. */
static bool wall_offset(const struct gather_file *first, const struct gather_file *file,
			int64_t *offset_ns)
{
	if (!first->facts.base_ns || !file->facts.base_ns)
		return false;
	*offset_ns = (int64_t)(file->facts.base_ns - first->facts.base_ns);
	return true;
}

static void align(struct gather_file *first, struct gather_file *file)
{
	const struct gather_process *a = gather_most_collectives(first);
	const struct gather_process *b = gather_most_collectives(file);
	struct alignment *alignment = &file->alignment;
	struct alignment found = {.why = ALIGN_WHY_FEW};
	int64_t guess_ns = 0;
	bool has_guess = wall_offset(first, file, &guess_ns);

	if (a && b &&
	    align_collectives(&a->collectives, &b->collectives, &file->span, has_guess, guess_ns,
			      &found)) {
		*alignment = found;
		return;
	}
	*alignment = (struct alignment){
		.by = has_guess ? ALIGN_WALL_CLOCK : ALIGN_NOTHING,
		.why = found.why,
		.line.offset_ns = guess_ns,
		.matched = found.matched,
		.compared = found.compared,
	};
}

/* What is wrong with the collectives, so that the clock is not by them. */
static const char *why_not(const struct alignment *alignment, char text[WHY_TEXT])
{
	switch (alignment->why) {
	case ALIGN_WHY_PLACES:
		return "fit in several places";
	case ALIGN_WHY_GROUPS:
		return "of other process groups";
	case ALIGN_WHY_SHARE:
		snprintf(text, WHY_TEXT, "only %s of %s match", FORMAT_COUNT(alignment->matched),
			 FORMAT_COUNT(alignment->compared));
		return text;
	case ALIGN_WHY_DRIFT:
		return "match only with an impossible drift";
	default:
		return "too few in common";
	}
}

static int read_all(struct merge *merge, char *const *paths)
{
	char error[SOURCE_ERROR];

	for (size_t i = 0; i < merge->count; i++) {
		int err = gather_read(&merge->files[i], paths[i], error);

		if (err)
			return fail(paths[i], err, error);
		if (merge->files[i].left_out)
			log_warn("%s: %s steps and collectives are not looked at: at most %d are",
				 paths[i], FORMAT_COUNT(merge->files[i].left_out),
				 GATHER_SPANS_MAX);
	}
	return 0;
}

/* Each is against the first file: two others may be off by both. */
struct worst {
	uint64_t first_ns, second_ns;
};

static void note_error(struct worst *worst, uint64_t error_ns)
{
	if (error_ns > worst->first_ns) {
		worst->second_ns = worst->first_ns;
		worst->first_ns = error_ns;
	} else {
		worst->second_ns = max_u64(worst->second_ns, error_ns);
	}
}

static int align_all(struct merge *merge)
{
	struct gather_file *files = merge->files;
	struct worst all = {0, 0}, matched = {0, 0};
	char why[WHY_TEXT];

	merge->rounds.error_known = true;
	for (size_t i = 1; i < merge->count; i++) {
		struct alignment *alignment = &files[i].alignment;

		align(&files[0], &files[i]);
		if (alignment->by == ALIGN_NOTHING) {
			log_err("%s cannot be put on the clock of %s by collectives (%s), and "
				"there is no wall clock in both. A trace in ferrum's format has "
				"one in its default "
				"name (ferrum_trace_pid7_1764108000000.json); the other formats "
				"have one inside",
				files[i].path, files[0].path, why_not(alignment, why));
			return -EINVAL;
		}
		merge->rounds.error_known &= alignment_error_known(alignment);
		note_error(&all, alignment->error_ns);
		note_error(&matched, alignment->matched_error_ns);
	}
	merge->rounds.error_ns = add_saturating(all.first_ns, all.second_ns);
	merge->rounds.matched_error_ns = add_saturating(matched.first_ns, matched.second_ns);
	merge->base_ns = INT64_MAX;
	for (size_t i = 0; i < merge->count; i++) {
		gather_convert(&files[i]);
		if (files[i].span.first_ns < merge->base_ns)
			merge->base_ns = files[i].span.first_ns;
	}
	return 0;
}

static uint64_t to_ts(const struct merge *merge, int64_t ns)
{
	return ns > merge->base_ns ? (uint64_t)(ns - merge->base_ns) : 0;
}

static void put_id(struct merge *merge, struct json_object *value)
{
	uint64_t id = json_object_is_type(value, json_type_int) ? json_object_get_uint64(value)
								: FLOW_ID_MAX;

	if (id < FLOW_ID_MAX / merge->count)
		json_uint(&merge->json, "id", id * merge->count + merge->current);
	else
		json_string(&merge->json, "id", json_object_get_string(value));
}

static int write_event(void *ctx, const struct source_event *event)
{
	struct merge *merge = ctx;
	struct gather_file *file = &merge->files[merge->current];
	const struct gather_process *process = gather_find(file, event->pid);
	int64_t ns = clock_line_apply(&file->alignment.line, event->ts_ns);
	/* With the drift as well: slices that touch must not overlap, which viewers do not show. */
	int64_t end_ns = clock_line_apply(&file->alignment.line, event->ts_ns + event->dur_ns);
	uint64_t dur_ns = to_ts(merge, end_ns) - to_ts(merge, ns);
	struct json *json = &merge->json;
	bool is_perfetto = file->facts.format == SOURCE_PERFETTO;

	/* It has a name of ours. */
	if (event->phase == 'M' && !strcmp(event->name, "process_name"))
		return 0;
	if (event->has_time && process && gather_is_of_steps(process, event) &&
	    rounds_note(&merge->rounds, merge->current, event, ns, end_ns))
		return -ENOMEM;
	writer_begin(&merge->writer);
	json_newline(json);
	json_object_begin(json, NULL);
	json_object_object_foreach(event->whole, key, value)
	{
		if (!strcmp(key, "ts"))
			json_micros(json, "ts", to_ts(merge, ns));
		else if (!strcmp(key, "dur") && event->phase == 'X')
			json_micros(json, "dur", dur_ns);
		else if (!strcmp(key, "pid"))
			json_int(json, "pid", process ? process->new_pid : event->pid);
		else if (!strcmp(key, "id"))
			put_id(merge, value);
		else
			json_write_value(json, key, value);
	}
	if (is_perfetto && event->has_time)
		json_micros(json, "ts", to_ts(merge, ns));
	if (is_perfetto && event->phase == 'X')
		json_micros(json, "dur", dur_ns);
	json_object_end(json);
	return writer_end(&merge->writer);
}

static void put_process(struct merge *merge, const struct gather_file *file,
			const struct gather_process *process)
{
	struct json *json = &merge->json;
	const char *slash = strrchr(file->path, '/');
	char label[64], *name;

	if (file->facts.has_rank)
		snprintf(label, sizeof(label), "rank %" PRIu32, file->facts.rank);
	else
		snprintf(label, sizeof(label), "%s", slash ? slash + 1 : file->path);
	if (asprintf(&name, "%s: %s%spid %" PRId64, label, process->name,
		     *process->name ? ", " : "", process->pid) < 0) {
		merge->writer.err = -ENOMEM;
		return;
	}
	json_newline(json);
	json_object_begin(json, NULL);
	json_string(json, "name", "process_name");
	json_string(json, "ph", "M");
	json_int(json, "pid", process->new_pid);
	json_uint(json, "tid", 0);
	json_object_begin(json, "args");
	json_string(json, "name", name);
	json_object_end(json);
	json_object_end(json);
	free(name);
}

static const char *by_name(enum align_by by)
{
	static const char *const names[] = {"reference", "collectives", "wall_clock", "nothing"};

	return names[by];
}

static void put_error(struct json *json, const struct alignment *alignment)
{
	if (alignment_error_known(alignment))
		json_uint(json, "error_ns", alignment->error_ns);
	else
		json_null(json, "error_ns");
}

/* What was done to the clocks, for programs. */
static void put_clocks(struct merge *merge)
{
	struct json *json = &merge->json;
	char why[WHY_TEXT];

	json_array_begin(json, "ferrum.merge");
	for (size_t i = 0; i < merge->count; i++) {
		const struct alignment *alignment = &merge->files[i].alignment;

		json_newline(json);
		json_object_begin(json, NULL);
		json_string(json, "path", merge->files[i].path);
		json_string(json, "by", by_name(alignment->by));
		json_int(json, "offset_ns", alignment->line.offset_ns);
		json_int(json, "at_ns", alignment->line.from_ns);
		json_double(json, "drift_ppm", alignment->line.drift * 1e6);
		if (alignment->by == ALIGN_COLLECTIVES) {
			json_uint(json, "matched", alignment->matched);
			put_error(json, alignment);
			json_uint(json, "slack_ns", alignment->slack_ns);
			json_double(json, "drift_error_ppm", alignment->drift_error * 1e6);
		} else if (alignment->by == ALIGN_WALL_CLOCK) {
			put_error(json, alignment);
			json_string(json, "why", why_not(alignment, why));
		}
		json_object_end(json);
	}
	json_array_end(json);
}

/* The first lane that is free from then on: slices that overlap are not shown in one. */
static uint32_t choose_lane(int64_t ends_ns[LATE_LANES], const struct round *round)
{
	uint32_t lane = 0;

	while (lane < LATE_LANES - 1 && ends_ns[lane] > round->first_ns)
		lane++;
	ends_ns[lane] = round->last_ns;
	return lane;
}

/* A process of its own: who was late, from the first rank that came until the last one did. */
static void put_rounds(struct merge *merge)
{
	int64_t ends_ns[LATE_LANES];
	struct json *json = &merge->json;
	char text[ROUND_TEXT];

	for (int i = 0; i < LATE_LANES; i++)
		ends_ns[i] = INT64_MIN;

	json_newline(json);
	json_raw(json, NULL, LATE_LANE);
	vec_for_each (round, &merge->rounds.rounds) {
		if (!round_is_late(&merge->rounds, round))
			continue;
		rounds_describe(&merge->rounds, round, text);
		json_newline(json);
		json_object_begin(json, NULL);
		json_string(json, "name", merge->rounds.ranks.items[round->late].label);
		json_string(json, "cat", "late");
		json_string(json, "ph", "X");
		json_micros(json, "ts", to_ts(merge, round->first_ns));
		json_micros(json, "dur", round_spread(round));
		json_int(json, "pid", LATE_PID);
		json_uint(json, "tid", 1 + choose_lane(ends_ns, round));
		json_object_begin(json, "args");
		json_string(json, "meanwhile", text);
		if (round->step)
			json_uint(json, "step", round->step);
		json_string(json, "at", round->is_end ? "end" : "begin");
		json_bool(json, "sure", merge->rounds.error_known);
		json_object_end(json);
		json_object_end(json);
	}
}

static int write_all(struct merge *merge, struct output *output)
{
	uint64_t base_ns = merge->files[0].facts.base_ns;
	struct json *json = &merge->json;
	char error[SOURCE_ERROR];
	struct source_facts facts;
	int err = 0;

	json->out = merge->writer.file = output__file(output);
	writer_begin(&merge->writer);
	json_object_begin(json, NULL);
	json_string(json, "displayTimeUnit", "ms");
	if (base_ns)
		json_uint(json, "baseTimeNanoseconds", base_ns + (uint64_t)merge->base_ns);
	put_clocks(merge);
	json_newline(json);
	json_array_begin(json, "traceEvents");
	for (size_t i = 0; i < merge->count; i++) {
		vec_for_each (process, &merge->files[i].processes)
			put_process(merge, &merge->files[i], process);
	}
	for (size_t i = 0; i < merge->count && !err; i++) {
		struct source_taker taker = {write_event, merge};

		merge->current = i;
		err = source_read(merge->files[i].path, &taker, &facts, error);
		if (err)
			err = fail(merge->files[i].path, err, error);
	}
	put_rounds(merge);
	json_newline(json);
	json_array_end(json);
	json_object_end(json);
	json_newline(json);
	return err ? err : writer_finish(&merge->writer);
}

static const char *signed_time(char text[FORMAT_MAX + 2], int64_t ns)
{
	snprintf(text, FORMAT_MAX + 2, "%c%s", ns < 0 ? '-' : '+',
		 FORMAT_TIME(ns < 0 ? -(double)ns : (double)ns));
	return text;
}

/* Against what the wall clocks say, since the offsets of windows' begins tell nobody anything. */
static void print_clock(const struct merge *merge, const struct gather_file *file, FILE *out)
{
	const struct alignment *alignment = &file->alignment;
	char path[64], offset[FORMAT_MAX + 2] = "-", drift[48] = "-", why[WHY_TEXT];
	int64_t wall_ns = 0;
	bool has_wall = wall_offset(&merge->files[0], file, &wall_ns);

	shorten_text(path, sizeof(path), file->path, PATH_COLUMNS);
	switch (alignment->by) {
	case ALIGN_COLLECTIVES:
		if (has_wall)
			signed_time(offset, alignment->line.offset_ns - wall_ns);
		snprintf(drift, sizeof(drift), "%+.2f ppm", alignment->line.drift * 1e6);
		terminal_line(out, "  %-*s %-11s %11s %11s  %9s  %s", PATH_COLUMNS, path,
			      "collectives", offset, drift,
			      alignment_error_known(alignment) ? FORMAT_TIME(alignment->error_ns)
							       : "not known",
			      FORMAT_COUNT(alignment->matched));
		if (alignment->slack_ns > NS_PER_US)
			terminal_line(
				out,
				"  ! its collectives contradict each other by up to %s: %sthe "
				"times in one of the traces are not exact, or a clock was set",
				FORMAT_TIME(2 * alignment->slack_ns),
				alignment->is_contradictory ? "they are not the same ones, or "
							    : "");
		if (alignment->is_ambiguous)
			terminal_line(out, "  ! they fit in several places: the one nearest to the "
					   "wall clock was taken");
		break;
	case ALIGN_WALL_CLOCK:
		terminal_line(out, "  %-*s %-11s %11s %11s  %9s  %s", PATH_COLUMNS, path,
			      "wall clock", "-", "-", "not known", why_not(alignment, why));
		break;
	default:
		terminal_line(out, "  %-*s %-11s", PATH_COLUMNS, path, "reference");
	}
}

static void print_all(const struct merge *merge, FILE *out)
{
	terminal_line(out, "  %-*s %-11s %11s %11s  %9s  %s", PATH_COLUMNS, "trace", "clock by",
		      "wall clock", "drift", "error at", "collectives");
	terminal_line(out, "  %-*s %-11s %11s %11s  %9s  %s", PATH_COLUMNS, "", "", "is off by", "",
		      "most", "");
	for (size_t i = 0; i < merge->count; i++)
		print_clock(merge, &merge->files[i], out);
	terminal_line(out, "%s", "");
	rounds_print(&merge->rounds, merge->base_ns, out);
}

/* An output that is one of the inputs would be read while it is replaced. */
static int check_output(char *const *paths, size_t count, const char *path)
{
	struct stat output, input;

	if (stat(path, &output))
		return 0;
	for (size_t i = 0; i < count; i++) {
		if (!stat(paths[i], &input) && input.st_dev == output.st_dev &&
		    input.st_ino == output.st_ino) {
			log_err("%s is one of the traces that are read: choose another name for -o",
				path);
			return -EINVAL;
		}
	}
	return 0;
}

int merge_traces(char *const *paths, size_t count, const char *path, FILE *out)
{
	struct merge merge = {.files = calloc(count, sizeof(*merge.files)), .count = count};
	struct output *output = NULL;
	int err = merge.files ? check_output(paths, count, path) : -ENOMEM;

	if (!err)
		err = read_all(&merge, paths);
	if (!err)
		err = align_all(&merge);
	if (!err) {
		gather_number(merge.files, count);
		err = rounds_find(&merge.rounds, merge.files, count);
	}
	if (!err)
		err = output__create(&output, path);
	if (!err)
		err = write_all(&merge, output);
	if (!err)
		err = output__commit(output);
	if (!err)
		print_all(&merge, out);
	if (!err && fflush(out))
		err = -errno;
	if (output && err)
		output__discard(output);
	else if (output)
		output__free(output);
	rounds_clear(&merge.rounds);
	for (size_t i = 0; i < count && merge.files; i++)
		gather_clear(&merge.files[i]);
	free(merge.files);
	return err;
}
