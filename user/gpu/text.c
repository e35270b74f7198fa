/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "gpu/text.h"

#include <stdio.h>
#include <string.h>

#include "base/arith.h"
#include "base/format.h"
#include "model/syscalls.h"

/* Calls by name, their rest, user code and unknown; launch, queue and unattributed. */
#define PARTS_MAX   (GPU_WAIT_CALLS_MAX + 7)
#define PARTS_SHOWN 4
#define WORDS_SIZE  48

struct part {
	uint64_t ns;
	char words[WORDS_SIZE];
};

struct parts {
	struct part items[PARTS_MAX]; /* the longest first */
	int count;
};

/* A part of that length, where it belongs; NULL if it has none. */
static struct part *make_part(struct parts *parts, uint64_t ns)
{
	int place = parts->count;

	if (!ns)
		return NULL;
	for (; place && parts->items[place - 1].ns < ns; place--)
		parts->items[place] = parts->items[place - 1];
	parts->count++;
	parts->items[place].ns = ns;
	return &parts->items[place];
}

static void add_part(struct parts *parts, uint64_t ns, const char *words)
{
	struct part *part = make_part(parts, ns);

	if (part)
		snprintf(part->words, sizeof(part->words), "%s", words);
}

static void add_call(struct parts *parts, const struct gpu_wait_call *call, enum fbt_arch arch)
{
	struct part *part = make_part(parts, call->ns);
	char label[24];

	if (part)
		snprintf(part->words, sizeof(part->words), "%s%s",
			 syscall_label(arch, call->nr, label), call->blocked ? " (blocked)" : "");
}

/* Where in the step its thread waited for a CPU is not known, only how long. */
static const char *outside_words(const struct gpu_text *about)
{
	return about->run_delay_ns > about->figures->wait_user_ns / 10 ? "user code and run queue"
								       : "user code";
}

static void add_host_wait(struct parts *parts, const struct gpu_text *about)
{
	const struct gpu_figures *figures = about->figures;
	uint64_t blocked_ns = figures->wait_blocked_ns, syscall_ns = figures->wait_syscall_ns;

	for (int i = 0; i < GPU_WAIT_CALLS_MAX; i++) {
		const struct gpu_wait_call *call = &figures->wait_calls[i];

		add_call(parts, call, about->arch);
		if (call->blocked)
			blocked_ns = sub_saturating(blocked_ns, call->ns);
		else
			syscall_ns = sub_saturating(syscall_ns, call->ns);
	}
	add_part(parts, blocked_ns,
		 figures->wait_calls[0].ns ? "other calls (blocked)" : "calls (blocked)");
	add_part(parts, syscall_ns, figures->wait_calls[0].ns ? "other calls" : "calls");
	add_part(parts, figures->wait_user_ns, outside_words(about));
	add_part(parts, figures->wait_unknown_ns, "host (calls not recorded)");
}

/*
 * Appends "1.10 ms futex (blocked), 400 us user code, 12.0 us more", without what is less than a
 * hundredth.
 */
static void write_parts(const struct parts *parts, char *text, size_t used)
{
	uint64_t sum_ns = 0, rest_ns = 0;
	char time[FORMAT_MAX];

	for (int i = 0; i < parts->count; i++)
		sum_ns += parts->items[i].ns;
	for (int i = 0; i < parts->count; i++) {
		if (i >= PARTS_SHOWN || (i && parts->items[i].ns < sum_ns / 100)) {
			rest_ns += parts->items[i].ns;
			continue;
		}
		format_time(time, (double)parts->items[i].ns);
		used += (size_t)snprintf(text + used, GPU_IDLE_TEXT_SIZE - used, "%s%s %s",
					 i ? ", " : "", time, parts->items[i].words);
	}
	if (rest_ns && rest_ns >= sum_ns / 100)
		snprintf(text + used, GPU_IDLE_TEXT_SIZE - used, ", %s more",
			 format_time(time, (double)rest_ns));
}

const char *gpu_wait_text(const struct gpu_text *about, char text[GPU_IDLE_TEXT_SIZE])
{
	struct parts parts = {.count = 0};

	text[0] = '\0';
	add_host_wait(&parts, about);
	write_parts(&parts, text, 0);
	return text;
}

const char *gpu_idle_text(const struct gpu_text *about, char text[GPU_IDLE_TEXT_SIZE])
{
	const struct gpu_figures *figures = about->figures;
	struct parts parts = {.count = 0};
	int used;

	if (about->incomplete) {
		snprintf(text, GPU_IDLE_TEXT_SIZE, "busy at least %s of %s, GPU records missing",
			 FORMAT_TIME(figures->busy_ns), FORMAT_TIME(about->total_ns));
		return text;
	}
	add_host_wait(&parts, about);
	add_part(&parts, figures->launch_ns, "in launch calls");
	add_part(&parts, figures->queue_ns, "queued");
	add_part(&parts, figures->unattributed_ns, "not attributed");
	used = snprintf(text, GPU_IDLE_TEXT_SIZE, "idle %s of %s%s", FORMAT_TIME(figures->idle_ns),
			FORMAT_TIME(about->total_ns), parts.count ? ": " : "");
	write_parts(&parts, text, (size_t)used);
	return text;
}

const char *gpu_bound_words(enum gpu_bound bound)
{
	static const char *const words[GPU_BOUND_COUNT] = {
		[GPU_BOUND_UNKNOWN] = "of unknown bound",
		[GPU_BOUND_GPU] = "GPU-bound",
		[GPU_BOUND_COPY] = "copy-bound",
		[GPU_BOUND_WAIT] = "wait-bound",
		[GPU_BOUND_LAUNCH] = "launch-bound",
		[GPU_BOUND_HOST] = "host-bound",
		[GPU_BOUND_NONE] = "not bound by one thing",
	};

	return bound < GPU_BOUND_COUNT ? words[bound] : words[GPU_BOUND_UNKNOWN];
}
