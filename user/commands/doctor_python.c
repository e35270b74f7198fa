/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "commands/doctor_python.h"

#include <stdio.h>
#include <string.h>

#include "inject/check.h"
#include "inject/python_use.h"
#include "python/guest.h"
#include "python/tree.h"

static void read_refusal(struct doctor_python *python, uint32_t tgid)
{
	struct inject_target target = {.pidfd = -1};
	struct inject_verdict verdict = {0};

	inject_check(&target, &verdict, tgid, INJECT_FOR_PYTHON);
	inject_verdict_reason(&verdict, python->refused);
	findings_free(&verdict.findings);
	inject_target_clear(&target);
}

void doctor_python_read(struct doctor_python *python, uint32_t tgid, const struct options *options)
{
	process_vec others = {0};

	*python = (struct doctor_python){
		.is_python = python_use_is_there(tgid),
		.mode = options->python,
	};
	if (!python->is_python)
		return;
	python->is_supported = python_use_is_supported(tgid, &python->minor);
	python->has_library = python_guest_is_there(tgid);
	python->is_inherited = python_guest_is_inherited(tgid);
	if (!python->has_library)
		read_refusal(python, tgid);
	if (!options->follow && !python_tree_list(tgid, &others))
		python->others = others.count;
	vec_free(&others);
	python_outlook(tgid, options->specs.items, options->specs.count, python->outlook);
}

/* "CPython 3.11, with libferrum_python.so: a trace would look for vllm: EngineCore.step, …". */
static void add(const struct doctor_python *python, struct findings *checks, enum severity severity,
		const char *what)
{
	char others[64] = "";

	if (python->others)
		snprintf(others, sizeof(others), ", also in %zu other process%s of its engine",
			 python->others, python->others == 1 ? "" : "es");
	findings_add(checks, severity, "Python", "CPython 3.%u, %s%s%s%s", python->minor, what,
		     *python->outlook ? " would look for " : " has nothing to look for",
		     python->outlook, *python->outlook ? others : "");
}

#define START "start it with what ferrum-bpftrace engine-env prints"

static void judge_without(const struct doctor_python *python, enum severity severity,
			  struct findings *checks)
{
	if (*python->refused) {
		findings_add(checks, severity, "Python",
			     "CPython 3.%u, into which libferrum_python.so cannot be loaded: %s",
			     python->minor, python->refused);
		findings_advise(checks, START);
	} else if (python->mode == PYTHON_INJECT) {
		add(python, checks, FINDING_OK,
		    "without libferrum_python.so: it would be loaded, and");
	} else {
		add(python, checks, severity,
		    python->is_inherited
			    ? "forked from a process with libferrum_python.so, whose thread it "
			      "does not have: --python=inject"
			    : "without libferrum_python.so: --python=inject");
		findings_advise(checks, python->is_inherited ? "use --python=inject"
							     : "use --python=inject, or " START);
	}
}

void doctor_python_judge(const struct doctor_python *python, struct findings *checks)
{
	bool required = python->mode == PYTHON_REQUIRE;
	enum severity severity = required ? FINDING_FAIL : FINDING_WARN;

	if (python->mode == PYTHON_OFF || (!python->is_python && !required))
		return;
	if (!python->is_python) {
		findings_add(checks, severity, "Python", "none: it does not run CPython");
		findings_advise(checks, "leave out --python require, or name the process that runs "
					"Python");
	} else if (!python->is_supported) {
		findings_add(checks, severity, "Python",
			     "CPython 3.%u: its functions cannot be steps", python->minor);
		findings_advise(checks, "run it with CPython 3.%d to 3.%d", PYTHON_MINOR_MIN,
				PYTHON_MINOR_MAX);
	} else if (python->has_library) {
		add(python, checks, FINDING_OK, "with libferrum_python.so: a trace");
	} else {
		judge_without(python, severity, checks);
	}
}
