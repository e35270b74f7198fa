/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* The result of diff as one JSON object (--report json), which the page has inside too. */
#include <math.h>
#include <stdlib.h>

#include "base/format.h"
#include "diff/write.h"

static const char *const fact_names[FACT_COUNT] = {
	[FACT_HOST] = "host",	      [FACT_ARCH] = "arch",
	[FACT_KERNEL] = "kernel",     [FACT_TOOL] = "tool_version",
	[FACT_DETAIL] = "detail",     [FACT_GPU] = "gpu_records",
	[FACT_MODEL] = "model",	      [FACT_CONCURRENCY] = "concurrency",
	[FACT_COMMIT] = "commit_sha", [FACT_ENV_HASH] = "env_hash",
};

static void put_percent(struct json *json, const char *key, double share)
{
	/* Rounded, so that it is the same on all machines. */
	json_double(json, key, isnan(share) ? NAN : round(share * 1e4) / 100);
}

static void put_ns(struct json *json, const char *key, double ns)
{
	json_uint(json, key, ns > 0 ? (uint64_t)llround(ns) : 0);
}

static void write_side(struct json *json, const struct side *side, double compared)
{
	uint64_t left_out = 0;

	vec_for_each (kind, &side->kinds)
		for (int i = 0; i < LEFT_COUNT; i++)
			left_out += (*kind)->left_out[i];
	json_object_begin(json, NULL);
	json_string(json, "path", side->path);
	json_string(json, "file", side->is_capture ? "recording" : "profile");
	json_uint(json, "steps", side->steps.count);
	json_uint(json, "steps_left_out", left_out + side->kinds_left_out);
	json_uint(json, "windows", side->windows);
	json_uint(json, "window_ns", side->windows_ns);
	json_uint(json, "lost", side->lost);
	put_percent(json, "compared_percent", compared);
	for (int i = 0; i < FACT_COUNT; i++)
		json_string(json, fact_names[i], side->facts[i]);
	json_object_end(json);
}

static const char *const states[] = {"known", "too_few_steps", "too_few_independent_steps"};

static void write_quantile(struct json *json, const struct diff_class *class, int index)
{
	const struct change *change = &class->changes[index];
	const char *reason = change_reason(class, index);

	json_object_begin(json, diff_share_names[index]);
	for (int i = 0; i < SIDES; i++)
		json_uint(json, i ? "b_ns" : "a_ns", class->sides[i].quantiles[index].ns);
	put_percent(json, "change_percent", class_only_in(class) < 0 ? change->ratio : NAN);
	put_percent(json, "low_percent", class_only_in(class) < 0 ? change->low : NAN);
	put_percent(json, "high_percent", class_only_in(class) < 0 ? change->high : NAN);
	json_string(json, "verdict", verdict_name(change->verdict));
	json_string(json, "reason", *reason ? reason : NULL);
	for (int i = 0; i < SIDES; i++) {
		const struct quantile *quantile = &class->sides[i].quantiles[index];

		json_string(json, i ? "b_state" : "a_state", states[quantile->state]);
		json_uint(json, i ? "b_blocks" : "a_blocks", quantile->blocks);
		json_double(json, i ? "b_effective_steps" : "a_effective_steps",
			    round(quantile->effective));
	}
	json_object_end(json);
}

static void write_class_side(struct json *json, const struct class_side *side, bool with_curves)
{
	json_object_begin(json, NULL);
	json_uint(json, "steps", side->steps);
	json_uint(json, "compared_steps", side->compared);
	json_uint(json, "total_ns", side->ns);
	put_ns(json, "mean_ns", side->mean_ns);
	if (side->parts_known) {
		json_object_begin(json, "parts_ns");
		for (int i = 0; i < STEP_PARTS; i++) {
			const char *name = step_part_name((enum step_part)i, side->calls_known);

			if (name)
				put_ns(json, name, side->part_ns[i]);
		}
		json_object_end(json);
	} else {
		json_null(json, "parts_ns");
	}
	json_object_begin(json, "causes");
	for (int i = 0; i < CAUSE_COUNT; i++) {
		if (!side->causes[i].steps)
			continue;
		json_object_begin(json, cause_name((enum cause_kind)i));
		json_uint(json, "steps", side->causes[i].steps);
		json_uint(json, "extra_ns", side->causes[i].extra_ns);
		json_object_end(json);
	}
	json_object_end(json);
	if (with_curves) {
		json_array_begin(json, "curve_ns");
		for (int i = 0; i < CURVE; i++)
			json_uint(json, NULL, side->curve_ns[i]);
		json_array_end(json);
	}
	json_object_end(json);
}

static void write_class(struct json *json, const struct diff_class *class, bool with_curves)
{
	static const char *const only[] = {"a", "b"};
	char label[CLASS_LABEL_MAX];
	int side = class_only_in(class);

	json_object_begin(json, NULL);
	json_string(json, "function", class->kind);
	json_string(json, "size", class_label(class, label));
	json_string(json, "size_by", class->argument ? class->argument : "work");
	json_uint(json, "size_low", class->low);
	json_uint(json, "size_high", class->high);
	json_bool(json, "size_by_size", class->by_bin);
	json_bool(json, "waits_only", class->is_cut);
	json_string(json, "only_in", side < 0 ? NULL : only[side]);
	json_string(json, "verdict", verdict_name(class->verdict));
	json_bool(json, "regression", class->is_regression);
	json_object_begin(json, "quantiles");
	for (int i = 0; i < QUANTILES; i++)
		write_quantile(json, class, i);
	json_object_end(json);
	json_array_begin(json, "sides");
	for (int i = 0; i < SIDES; i++)
		write_class_side(json, &class->sides[i], with_curves);
	json_array_end(json);
	json_object_end(json);
}

void result_write_json(const struct result *result, struct json *json, bool with_curves)
{
	char *headline = result_headline(result);

	json_object_begin(json, NULL);
	json_string(json, "verdict", verdict_name(result->verdict));
	json_bool(json, "comparable", result->is_comparable);
	json_bool(json, "regression", result->has_regression);
	json_string(json, "headline", headline);
	put_percent(json, "margin_percent", result->options.margin);
	put_percent(json, "threshold_percent", result->options.threshold);
	put_percent(json, "confidence_percent", INTERVAL_CONFIDENCE);
	json_uint(json, "comparisons", result->comparisons);
	json_array_begin(json, "doubts");
	vec_for_each (doubt, &result->doubts) {
		json_object_begin(json, NULL);
		json_bool(json, "serious", doubt->is_serious);
		json_string(json, "text", doubt->text);
		json_object_end(json);
	}
	json_array_end(json);
	json_array_begin(json, "sides");
	for (int i = 0; i < SIDES; i++)
		write_side(json, result->sides[i], result->compared[i]);
	json_array_end(json);
	json_array_begin(json, "classes");
	vec_for_each (class, &result->classes)
		write_class(json, class, with_curves);
	json_array_end(json);
	json_object_end(json);
	free(headline);
}
