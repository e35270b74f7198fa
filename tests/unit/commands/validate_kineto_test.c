/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "commands/validate_trace.h"

#define AT "\"ts\":1.500,\"pid\":1,\"tid\":2"
#define HOST                                                                                       \
	"{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"cudaLaunchKernel\",\"dur\":1," AT ","
#define WORK	   "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"mul\",\"dur\":1.5," AT ","
#define LATE	   "{\"ph\":\"X\",\"cat\":\"kernel_uncorrelated\",\"name\":\"mul\",\"dur\":1.5," AT ","
#define CALL	   "{\"ph\":\"X\",\"cat\":\"syscall\",\"name\":\"futex\",\"dur\":1," AT ","
#define META	   "{\"ph\":\"M\",\"name\":\"process_name\"," AT ",\"args\":{\"name\":\"x\"}}"
#define LAUNCH(id) HOST "\"args\":{\"correlation\":" #id "}}"
#define KERNEL(id) WORK "\"args\":{\"stream\":7,\"correlation\":" #id "}}"
#define ARROW(ph, id)                                                                              \
	"{\"ph\":\"" #ph "\",\"cat\":\"ac2g\",\"name\":\"ac2g\",\"id\":" #id "," AT "}"

/*
 * Validates a list of events, given without its brackets. error gets the message without the
 * event's number.
 */
static int check(const char *events, char error[256])
{
	struct trace_facts facts;
	char *text = NULL, *reason;
	FILE *in;
	int err;

	assert_true(asprintf(&text, "{\"ferrum.mono_base_ns\":0,\"traceEvents\":[%s]}", events) >
		    0);
	in = fmemopen(text, strlen(text), "r");
	assert_non_null(in);
	error[0] = '\0';
	err = validate_trace(in, false, &facts, error, 256);
	assert_true(facts.is_trace);
	fclose(in);
	free(text);
	reason = strncmp(error, "event ", strlen("event ")) ? NULL : strchr(error, ':');
	if (reason)
		memmove(error, reason + 2, strlen(reason + 2) + 1);
	return err;
}

static void expect_sound(const char *events)
{
	char error[256];

	if (check(events, error))
		fail_msg("%s: %s", events, error);
}

static void expect_refused(const char *events, const char *reason)
{
	char error[256];

	assert_int_equal(check(events, error), -EBADMSG);
	assert_string_equal(error, reason);
}

static void sound_events_pass(void **state)
{
	expect_sound(META "," LAUNCH(5) "," ARROW(s, 5) "," KERNEL(5) "," ARROW(f, 5));
	/* A graph: one call and several pieces of work. */
	expect_sound(LAUNCH(5) "," ARROW(s, 5) "," KERNEL(5) "," KERNEL(5) "," ARROW(
		f, 5) "," ARROW(f, 5));
	/* Work may precede its call. */
	expect_sound(KERNEL(5) "," LAUNCH(5));
	expect_sound(LATE "\"args\":{\"stream\":0,\"ferrum.correlation\":5}}");
	expect_sound(CALL "\"args\":{}}");
	expect_sound("{\"ph\":\"i\",\"s\":\"g\",\"name\":\"Record Window End\"," AT "}");
	expect_sound("");
}

static void events_need_the_fields_of_their_phase(void **state)
{
	expect_refused("{\"ph\":\"M\"}", "missing field `name`");
	expect_refused("{\"name\":\"x\"}", "missing field `ph`");
	expect_refused("{\"name\":\"x\",\"ph\":\"B\"," AT "}", "unknown phase \"B\"");
	expect_refused("{\"name\":\"x\",\"ph\":\"\"," AT "}", "unknown phase \"\"");
	expect_refused("{\"name\":\"x\",\"ph\":\"M\"}", "missing field `ts`");
	expect_refused("{\"name\":\"x\",\"ph\":\"M\",\"ts\":-1}", "ts is negative");
	expect_refused("{\"name\":\"x\",\"ph\":\"M\",\"ts\":\"1\"}",
		       "expected microseconds, found \"1\"");
	expect_refused("{\"name\":\"x\",\"ph\":\"M\",\"ts\":1,\"pid\":1}", "missing field `tid`");
	expect_refused("{\"name\":\"x\",\"ph\":\"M\",\"ts\":1,\"pid\":\"\"}",
		       "expected a number, found \"\"");
	expect_refused("{\"name\":\"x\",\"ph\":\"M\"," AT "}", "missing field `args`");
	expect_refused("{\"name\":\"x\",\"ph\":\"X\"," AT "}", "missing field `cat`");
	expect_refused("{\"name\":\"x\",\"ph\":\"X\",\"cat\":\"a\"," AT "}", "missing field `dur`");
	expect_refused("{\"name\":\"x\",\"ph\":\"X\",\"cat\":\"a\",\"dur\":-0.001," AT "}",
		       "dur is negative");
	expect_refused(CALL "\"args\":[]}", "expected a map, found a sequence");
}

/* PyTorch's own events are held to no more than those of any other tool's trace. */
static void events_of_pytorch_have_other_rules(void **state)
{
	static const char foreign[] =
		"{\"name\":\"ferrum.pytorch\",\"ph\":\"M\"," AT ",\"args\":{}},";
	static const char *const events[] = {
		"{\"ph\":\"X\",\"cat\":\"Trace\",\"ts\":1.500,\"dur\":2.000,\"pid\":\"Spans\","
		"\"tid\":\"PyTorch Profiler\",\"name\":\"PyTorch Profiler (0)\",\"args\":{}}",
		"{\"ph\":\"X\",\"cat\":\"overhead\",\"name\":\"Buffer Flush\",\"dur\":1," AT "}",
		LAUNCH(5) "," LAUNCH(5),
		KERNEL(6),
		ARROW(s, 7),
	};
	char text[1024], error[256];

	for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++) {
		snprintf(text, sizeof(text), "%s%s", foreign, events[i]);
		expect_sound(text);
		assert_int_equal(check(events[i], error), -EBADMSG);
	}
	snprintf(text, sizeof(text), "%s{\"ph\":\"X\"}", foreign);
	expect_refused(text, "missing field `name`");
	snprintf(text, sizeof(text), "%s,%s%s", LAUNCH(5), foreign, LAUNCH(5));
	expect_sound(text);
}

static void only_work_has_a_stream(void **state)
{
	expect_refused(CALL "\"args\":{\"stream\":7}}",
		       "args.stream on futex, which is no work of a device");
	expect_refused(CALL "\"args\":{\"stream\":-1}}",
		       "args.stream on futex, which is no work of a device");
	expect_refused(WORK "\"args\":{\"correlation\":5}}", "kernel without args.stream");
	expect_refused(LATE "\"args\":{}}", "kernel_uncorrelated without args.stream");
}

static void one_host_event_has_a_correlation(void **state)
{
	expect_refused(LAUNCH(5) "," LAUNCH(5), "correlation 5 is on two host events");
	expect_refused(LAUNCH(0), "args.correlation of cudaLaunchKernel is no number above 0");
	expect_refused(HOST "\"args\":{\"correlation\":\"5\"}}",
		       "args.correlation of cudaLaunchKernel is no number above 0");
	expect_sound(LAUNCH(4294967296) "," LAUNCH(8589934592));
}

static void work_is_linked_or_set_apart(void **state)
{
	expect_refused(KERNEL(5), "no host event has correlation 5, which work has");
	expect_refused(WORK "\"args\":{\"stream\":7}}", "kernel without args.correlation");
	expect_refused(LATE "\"args\":{\"stream\":7,\"correlation\":5}}",
		       "kernel_uncorrelated with args.correlation");
}

static void arrows_have_both_ends(void **state)
{
	expect_refused(ARROW(s, 5), "arrow 5 begins and does not end");
	expect_refused(ARROW(f, 5), "arrow 5 ends and does not begin");
	expect_refused("{\"ph\":\"s\",\"cat\":\"ac2g\",\"name\":\"ac2g\"," AT "}",
		       "an arrow without an id");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sound_events_pass),
		cmocka_unit_test(events_need_the_fields_of_their_phase),
		cmocka_unit_test(events_of_pytorch_have_other_rules),
		cmocka_unit_test(only_work_has_a_stream),
		cmocka_unit_test(one_host_event_has_a_correlation),
		cmocka_unit_test(work_is_linked_or_set_apart),
		cmocka_unit_test(arrows_have_both_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
