/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* One JSON line with what each thread has done and seen. */
#ifndef INJECT_REPORT_H
#define INJECT_REPORT_H

#include "inject_worker.h"

static uint64_t count_errors(const struct target *target)
{
	uint64_t errors = 0;

	for (size_t i = 0; i < target->count; i++)
		errors += target->workers[i]->errors;
	return errors;
}

static void report_worker(const struct worker *w)
{
	const char *what = __atomic_load_n(&w->what, __ATOMIC_ACQUIRE);

	printf("{\"name\":\"%s\",\"tid\":%d,\"loops\":%ju,\"errors\":%ju,", w->name, w->tid,
	       w->loops, w->errors);
	if (what)
		printf("\"what\":\"%s\",\"got\":\"%#jx\",\"want\":\"%#jx\",", what, w->got,
		       w->want);
	printf("\"eintr\":%ju,\"eintr_stray\":%ju,\"eintr_lost\":%ju,\"late_max_us\":%ju,"
	       "\"sent\":%ju,\"received\":%ju,\"signals_sent\":%ju,\"signals_handled\":%ju}",
	       w->eintr, w->eintr_stray, w->eintr_lost, w->late_max_ns / 1000, w->sent,
	       w->kind->feed ? w->received : 0, w->signals_sent, w->signals_handled);
}

static void report(const struct target *target, double seconds)
{
	uint64_t stray = 0, lost = 0, eintr = 0, loops = 0;

	for (size_t i = 0; i < target->count; i++) {
		stray += target->workers[i]->eintr_stray;
		lost += target->workers[i]->eintr_lost;
		eintr += target->workers[i]->eintr;
		loops += target->workers[i]->loops;
	}
	printf("{\"ok\":%s,\"errors\":%ju,\"seconds\":%.3f,\"loops\":%ju,\"eintr\":%ju,"
	       "\"eintr_stray\":%ju,\"eintr_lost\":%ju,\"stall_us\":%ju,\"vectors\":\"%s\","
	       "\"threads\":[",
	       count_errors(target) ? "false" : "true", count_errors(target), seconds, loops, eintr,
	       stray, lost, target->stall_ns / 1000,
	       target->width == CALL_ZMM   ? "zmm"
	       : target->width == CALL_YMM ? "ymm"
					   : "xmm");
	for (size_t i = 0; i < target->count; i++) {
		if (i)
			putchar(',');
		report_worker(target->workers[i]);
	}
	puts("]}");
	fflush(stdout);
}

#endif
