/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * The step functions that are probed. They are found process by process; a function has the same
 * kind in all processes. Probes are attached once for all processes or for each process. Kinds are
 * described in the stream.
 */
#ifndef FBT_TARGETS_STEPS_FOUND_H
#define FBT_TARGETS_STEPS_FOUND_H

#include <stdint.h>
#include "python/torch.h"
#include "steps/find.h"
#include "stacks/script.h"
#include "steps/resolve.h"
#include "targets/live.h"

struct steps_found;

/* live is borrowed; its loader must be open. NULL: -ENOMEM. */
struct steps_found *steps_found__new(const struct live *live);
void steps_found__free(struct steps_found *found);

/* Reads functions of Python in the processes that were searched. Lives as long as found. */
struct script_reader steps_found__scripts(struct steps_found *found);

/*
 * Searches the files that a process has mapped since the last search. Returns the number of new
 * functions, or -errno, logged.
 */
int steps_found__search(struct steps_found *found, struct traced *traced);

/*
 * Before that, for processes that -p does not name: has the library in them look for functions of
 * Python, so that search does not wait for one after the other.
 */
void steps_found__ask_python(struct steps_found *found, uint32_t tgid);

/* Number of known functions; whether any of them is probed. */
size_t steps_found__count(const struct steps_found *found);
bool steps_found__is_probing(const struct steps_found *found);

/*
 * Probes the process's known functions that are not probed yet. Returns their number, or -errno,
 * logged.
 */
int steps_found__attach(struct steps_found *found, struct traced *traced);

/* Waits until the functions of Python are armed in all processes that attach was called for. */
void steps_found__finish_arming(struct steps_found *found);

/*
 * Whether functions of Python are looked for. explain: says why those that --step names were found
 * nowhere; call once all processes were searched.
 */
bool steps_found__wants_python(const struct steps_found *found);
void steps_found__explain(const struct steps_found *found);

/* Whether any step function that was found is one of Python. */
bool steps_found__has_python(const struct steps_found *found);

/* Whether it was said why the Python functions of a process cannot be had. */
bool steps_found__python_is_told(const struct steps_found *found, uint32_t tgid);

/*
 * In a window that is open: looks for functions of Python in a process, which need not be traced
 * (python_steps__look). take makes step functions of those that were found, of a traced process,
 * and returns their number or -errno; attach probes them.
 */
int steps_found__look_python(struct steps_found *found, uint32_t tgid);
int steps_found__take_python(struct steps_found *found, struct traced *traced);

/* Says what one would gain by --python=inject, of a named process in which nothing was found. */
void steps_found__offer_python(const struct steps_found *found, const struct traced *traced);

/*
 * Functions of Python are armed with their probes: beat keeps them so (call it at least once a
 * second), charge adds what the probes of their interpreters have cost, disarm ends that before the
 * probes are removed, forget when a process has ended or runs another program.
 */
void steps_found__beat(struct steps_found *found, uint64_t now_ns);
void steps_found__charge(const struct steps_found *found, struct fbt_cost *cost);
void steps_found__disarm(struct steps_found *found);
void steps_found__forget(struct steps_found *found, uint32_t tgid);

/*
 * PyTorch's profiler (--torch-trace) in the processes whose functions of Python are armed. begin:
 * once they are. join: of a process that is armed later. is_profiled: whether it was on during a
 * step. end: then the functions must stay armed until collect has returned, which waits for the
 * exports.
 */
void steps_found__begin_torch(struct steps_found *found);
void steps_found__join_torch(struct steps_found *found, uint32_t tgid);
bool steps_found__is_profiled(const struct steps_found *found, const struct fbt_step *step);
void steps_found__end_torch(struct steps_found *found);
void steps_found__collect_torch(struct steps_found *found,
				void (*take)(void *ctx, const struct torch_export *export),
				void *ctx);

/*
 * Detaches the probes of one process, but not those for all processes. replace: detach them only
 * after the next attach has attached new ones.
 */
void steps_found__detach(struct traced *traced, bool replace);

/* The function of a kind, from 1 to steps_found__count. */
const struct step_function *steps_found__function(const struct steps_found *found, uint32_t kind);

/*
 * Detaches the probes of a set of kinds in all processes, and attaches them again. In between,
 * steps_found__attach leaves these kinds out. 0; or -errno, logged, and the kinds are probed
 * nowhere.
 */
void steps_found__switch_off(struct steps_found *found, uint64_t kinds);
int steps_found__switch_on(struct steps_found *found, uint64_t kinds);

/*
 * Detaches the probes of kinds for ever: switch_on leaves them out, and functions that are found
 * from now on are of other kinds.
 */
void steps_found__give_up(struct steps_found *found, uint64_t kinds);

/* The kinds that are switched off. */
uint64_t steps_found__off_kinds(const struct steps_found *found);

/*
 * How the steps of a kind with has_sites end. At first they end at its exits, if it has any, and
 * the kernel side tells its call sites. end_at_sites: from now on steps begin only at probed sites;
 * drop_exits: no open step needs the exits any more. end_at_exits: the exits are probed, sites are
 * neither probed nor told; 0, or -errno, logged, and nothing has changed.
 */
void steps_found__end_at_sites(struct steps_found *found, uint32_t kind);
void steps_found__drop_exits(struct steps_found *found, uint32_t kind);
int steps_found__end_at_exits(struct steps_found *found, uint32_t kind);

/* Undoes end_at_exits for a kind without exits of its own: steps begin only at probed sites. */
void steps_found__end_at_sites_again(struct steps_found *found, uint32_t kind);

/*
 * Whether links cover all processes. Otherwise each target has links of its own, so that other
 * processes pay nothing.
 */
bool steps_found__probes_all(const struct steps_found *found);

/*
 * The owner of a process's links, or of those for all processes: then traced may be NULL. NULL:
 * -ENOMEM. And the process to limit a link to; 0: none.
 */
struct uprobes *steps_found__links(const struct steps_found *found, struct traced *traced);
uint32_t steps_found__link_tgid(const struct steps_found *found, const struct traced *traced);

/* Sends a record for each kind that is new. Call after the window's first record. 0 or -ENOMEM. */
int steps_found__describe(struct steps_found *found);

/* A set of step kinds has a bit for each kind. */
_Static_assert(FBT_KIND_COUNT <= 64, "a set of kinds is one word");

static inline uint64_t kind_bit(uint32_t kind)
{
	return UINT64_C(1) << kind;
}

/*
 * The next kind of a set after before; start with 0. 0: there are no more (kind 0 has no probes).
 */
static inline uint32_t kind_next(uint64_t set, uint32_t before)
{
	uint64_t rest = before < 63 ? set & ~(kind_bit(before + 1) - 1) : 0;

	return rest ? (uint32_t)__builtin_ctzll(rest) : 0;
}

#endif
