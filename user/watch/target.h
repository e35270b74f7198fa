/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * One process that is watched: its tracer, which is started again if it fails; the windows in which
 * its system calls are traced; and its dumps.
 */
#ifndef FBT_WATCH_TARGET_H
#define FBT_WATCH_TARGET_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "options.h"
#include "watch/dumps.h"
#include "watch/dying.h"
#include "watch/trigger.h"

/* A capture on its way to files. */
struct dump_job {
	int fd; /* a memory file; owned */
	char stem[DUMP_STEM_MAX];
	char part[8];					       /* "", "_calls", "_sample" */
	char text[sizeof(((struct flight_message *)0)->text)]; /* why; "" of the latter two */
	uint64_t bytes;
	uint64_t steps;
	bool crowded;
	uint64_t covers_ns;
};

/* What a target needs of watch. */
struct target_home {
	const struct options *options; /* the present ones */
	int epoll_fd;
	bool stopping;	    /* nothing is started any more */
	pid_t calls;	    /* of the target whose calls are traced: one at a time; 0: none */
	uint64_t ignored;   /* slow steps and hangs that were not dumped, because of the cooldown */
	struct dying dying; /* what ran for targets that are no more */
	void (*take_job)(void *ctx, const struct dump_job *job); /* owns its fd from then on */
	void *ctx;
};

struct target {
	struct target_home *home;
	uint32_t tgid;
	uint64_t start; /* of the process, as /proc has it: with tgid its identity */
	char comm[16];
	bool follows;	   /* its descendants are traced too */
	unsigned int slot; /* from 1 on; no other target has it */

	pid_t tracer; /* 0: none runs */
	int link;     /* to it; -1: none */
	bool attached;
	bool killed;	   /* by us, because it was stuck */
	uint64_t ready_ns; /* since when it is attached */
	uint64_t told_ns;  /* when it was told to end, to be started again; 0: it was not */
	bool restarts;	   /* it is ended as soon as no dump is due */
	bool told_to_end;  /* both, once: a second signal would kill them */
	uint64_t heard_ns; /* from the tracer */
	uint64_t retry_ns; /* when to start the next one */
	unsigned int failures;
	uint64_t steps;

	pid_t calls;		/* traces system calls; 0: none runs */
	uint64_t calls_wait_ns; /* an escalation waits so long to start it; 0: none does */
	int calls_fd;		/* takes its capture */
	uint64_t calls_end_ns;	/* when it must have ended */
	bool is_sample;		/* it was not an escalation that started it */
	int sample_fd;		/* the latest sample; -1: none */
	uint64_t sample_ns;	/* when the next one is due */

	struct trigger trigger;
	bool succeeded;		  /* one that was started since goes on with the cooldown */
	char stem[DUMP_STEM_MAX]; /* of the dump that is due */
	int due_sample_fd;	  /* its parts, as long as its name may change; -1: none */
	int due_calls_fd;
	char calls_stem[DUMP_STEM_MAX]; /* of the one to which the calls belong */
};

/* Whether that process runs, and since when. */
bool target_find_start(uint32_t tgid, uint64_t *start);

/* NULL: -ENOMEM. Its tracer is started by target__turn. */
struct target *target__new(struct target_home *home, uint32_t tgid, uint64_t start,
			   const char *comm);

/* Whether its descendants are traced too; a tracer that does otherwise is started again. */
void target__follow(struct target *target, bool follows);

/* Has what runs for it end: it is in home->dying until it has. */
void target__free(struct target *target);

/* Its process has ended, and nothing runs for it any more. */
bool target__is_over(const struct target *target);

/* Call several times a second. */
void target__turn(struct target *target, uint64_t now_ns);

/*
 * For ns before now_ns this process did not run (it was frozen, or the machine stood still), so it
 * could hear nothing: that time counts for no limit.
 */
void target__pardon(struct target *target, uint64_t ns, uint64_t now_ns);

/* Its link can be read. */
void target__read(struct target *target, uint64_t now_ns);

/* A child of watch has ended that no target has: whether it was one of a former target. */
bool target_home_reap(struct target_home *home, pid_t pid);

/* A child of watch has ended. Returns whether it was one of this target. */
bool target__reap(struct target *target, pid_t pid, int status, uint64_t now_ns);

/* SIGUSR1: escalates its next step. */
void target__escalate(const struct target *target);

/* Asks at once for a dump that is due later. Returns whether one is due. */
bool target__hurry(struct target *target);

/* Starts its tracer again, with the present options, after a dump that is due. */
void target__restart(struct target *target);

/* Asks for a dump that is due now, and then ends the tracer. */
void target__stop(struct target *target);

#endif
