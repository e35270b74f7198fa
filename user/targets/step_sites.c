/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "targets/step_sites.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "kernel/step_probes.h"
#include "proc/maps.h"
#include "proc/process.h"
#include "steps/callers.h"
#include "targets/site_counts.h"
#include "targets/step_follow.h"
#include "targets/steps_found.h"

/* Sites of one kind in a process. A function that is called from everywhere is no step. */
#define SITES_MAX 64
/*
 * Callers of one function that are probed before they are seen, where one link holds them all, and
 * where each is a perf uprobe, which takes some 50 ms to remove.
 */
#define CALLERS_MAX	 48
#define CALLERS_MAX_PERF 8
/* How long it is watched, after they were probed, whether others call what a function jumps to. */
#define WATCH_TRIES 5
#define WATCH_US    1000

struct known_site {
	struct fbt_site_key key;
	uint32_t kind; /* the one for which it is probed */
	struct step_site place;
	uint64_t counted; /* kinds that it was probed for, a bit for each */
	bool on;	  /* its key is marked as probed */
	bool shares;	  /* the probe for all processes was attached for another known site */
};

struct refused_site {
	struct fbt_site_key key;
	uint32_t kind;
};

enum mode {
	MODE_LEARNING,	/* exits and sites are probed */
	MODE_SWITCHING, /* the same, but steps begin only at sites */
	MODE_SITES,
	MODE_EXITS,
};

struct kind_sites {
	enum mode mode;
	bool begun;
	bool told;	      /* that a site cannot be probed */
	bool was_off;	      /* at the last turn: the rate guard had switched its probes off */
	bool tried;	      /* to follow its jumps: they are followed, or cannot be */
	bool followed;	      /* its steps end at exits of what it jumps to */
	char *why_not;	      /* they are not followed; NULL: no reason is known */
	struct passed look;   /* the kernel side's counters at the last look */
	struct passed turn;   /* and at the last turn */
	uint32_t refused;     /* sites that cannot be probed, of processes that are there */
	uint32_t sites;	      /* places that were probed for it, and that it was called from */
	uint64_t site_ns;     /* when a site was last added */
	struct fbt_ends sent; /* kind 0: none */
};

struct step_sites {
	const struct live *live;
	VEC(struct fbt_ring_site) told;
	VEC(struct known_site) known;
	VEC(struct refused_site) refused;
	struct kind_sites kinds[FBT_KIND_COUNT];
	uint64_t looked_ns;
	uint64_t turned_ns;
	caller_vec callers; /* those that were found in code; function is the kind */
	uint64_t searched;  /* kinds whose callers were looked for */
	struct step_follow *follow;
};

struct step_sites *step_sites__new(const struct live *live)
{
	struct step_sites *sites = calloc(1, sizeof(*sites));

	if (!sites)
		return NULL;
	sites->live = live;
	sites->follow = step_follow__new(live);
	if (!sites->follow) {
		free(sites);
		return NULL;
	}
	return sites;
}

void step_sites__free(struct step_sites *sites)
{
	if (!sites)
		return;
	vec_for_each (known, &sites->known)
		step_site_clear(&known->place);
	vec_free(&sites->known);
	vec_free(&sites->told);
	vec_free(&sites->refused);
	callers_clear(&sites->callers);
	for (uint32_t kind = 0; kind < FBT_KIND_COUNT; kind++)
		free(sites->kinds[kind].why_not);
	step_follow__free(sites->follow);
	free(sites);
}

/* Whether the rate guard has switched the probes of a kind off. None may be attached then. */
static bool is_off(const struct step_sites *sites, uint32_t kind)
{
	return steps_found__off_kinds(sites->live->found) & kind_bit(kind);
}

void step_sites__take(struct step_sites *sites, const struct fbt_ring_site *site)
{
	struct fbt_site_key key = {.address = site->address, .tgid = site->tgid};

	if (site->jump_kind) {
		key.jump_kind = site->jump_kind;
		if (site->kind < FBT_KIND_COUNT && !is_off(sites, site->kind))
			step_follow__take(sites->follow, site);
		else
			loader__forget_site(sites->live->loader, &key);
		return;
	}
	/* Without memory, forget the site: the kernel side then reports it again. */
	if (vec_push(&sites->told, *site))
		loader__forget_site(sites->live->loader, &key);
}

static bool is_same_place(const struct known_site *a, const struct known_site *b)
{
	return a->place.device == b->place.device && a->place.inode == b->place.inode &&
	       a->place.offset == b->place.offset;
}

/* Whether a probe for all processes is there already. */
static bool is_probed_for_all(const struct step_sites *sites, const struct known_site *site)
{
	if (!steps_found__probes_all(sites->live->found))
		return false;
	vec_for_each (known, &sites->known) {
		if (known != site && known->on && !known->shares && is_same_place(known, site))
			return true;
	}
	return false;
}

/* A site of a process that has ended only stands for its probe, and has no key. */
static void set_state(const struct step_sites *sites, const struct known_site *known)
{
	if (known->key.tgid)
		loader__set_site(sites->live->loader, &known->key,
				 known->on ? FBT_SITE_PROBED : FBT_SITE_REFUSED);
}

static void count_place(struct step_sites *sites, struct known_site *known)
{
	if (known->counted & kind_bit(known->kind))
		return;
	known->counted |= kind_bit(known->kind);
	sites->kinds[known->kind].sites++;
}

/* Probes places of one file in a process, or in all of them, for one kind. */
static int attach_places(struct step_sites *sites, uint32_t tgid, uint32_t kind,
			 const struct step_site *const *places, size_t count)
{
	const struct live *live = sites->live;
	struct traced *traced = traced_set__find(live->traced, tgid);
	bool all = steps_found__probes_all(live->found);
	struct uprobes *links = traced || all ? steps_found__links(live->found, traced) : NULL;
	int err;

	if (!links)
		return -ESRCH;
	uprobes__set_quiet(links, log_level() < LOG_DEBUG);
	err = step_probes_attach_sites(links, loader__step_program(live->loader), places, count,
				       kind, all ? 0 : steps_found__link_tgid(live->found, traced));
	uprobes__set_quiet(links, false);
	return err;
}

static int attach(struct step_sites *sites, struct known_site *known)
{
	const struct step_site *place = &known->place;

	return attach_places(sites, known->key.tgid, known->kind, &place, 1);
}

static int probe(struct step_sites *sites, struct known_site *known)
{
	int err;

	known->shares = is_probed_for_all(sites, known);
	err = known->shares ? 0 : attach(sites, known);
	known->on = !err;
	set_state(sites, known);
	return err;
}

static void put_out(const struct step_sites *sites, struct known_site *known)
{
	known->on = false;
	if (known->key.tgid)
		loader__forget_site(sites->live->loader, &known->key);
}

/* The other kinds that are called from a place, and end there. */
static uint64_t find_users(const struct step_sites *sites, const struct known_site *at,
			   uint64_t leaving)
{
	uint64_t users = 0, gone = leaving | steps_found__off_kinds(sites->live->found);

	for (uint32_t kind = 1; kind < FBT_KIND_COUNT; kind++) {
		if (sites->kinds[kind].mode == MODE_EXITS)
			gone |= kind_bit(kind);
	}
	vec_for_each (known, &sites->known) {
		if (known->on && known->key.tgid && is_same_place(known, at))
			users |= loader__site_kinds(sites->live->loader, &known->key);
	}
	return users & ~gone;
}

/*
 * The probes for these kinds are about to go. A place where steps of another kind end gets a new
 * probe for that one first, so that those that are open now end there too.
 */
static void hand_over(struct step_sites *sites, uint64_t kinds)
{
	vec_for_each (known, &sites->known) {
		uint32_t heir;

		if (!known->on || known->shares || !(kinds & kind_bit(known->kind)))
			continue;
		heir = kind_next(find_users(sites, known, kinds), 0);
		if (heir) {
			known->kind = heir;
			if (!attach(sites, known))
				continue;
		}
		vec_for_each (other, &sites->known) {
			if (other->on && other->shares && is_same_place(known, other))
				put_out(sites, other);
		}
		put_out(sites, known);
	}
}

static bool has_exits(const struct step_sites *sites, uint32_t kind)
{
	return steps_found__function(sites->live->found, kind)->exit_offsets.count > 0;
}

/* Whether it may have exits that end its steps: its own, or those of what it jumps to. */
static bool has_end(const struct step_sites *sites, uint32_t kind)
{
	return has_exits(sites, kind) || !sites->kinds[kind].tried;
}

static void refuse(struct step_sites *sites, const struct fbt_ring_site *site)
{
	struct fbt_site_key key = {.address = site->address, .tgid = site->tgid};

	/* The process has ended since. */
	if (!traced_set__find(sites->live->traced, site->tgid)) {
		loader__forget_site(sites->live->loader, &key);
		return;
	}
	loader__set_site(sites->live->loader, &key, FBT_SITE_REFUSED);
	/* Without memory, the refusal is not reported to the user. */
	if (vec_push(&sites->refused, ((struct refused_site){key, site->kind})))
		log_debug("call site 0x%llx: not remembered", (unsigned long long)key.address);
	else
		sites->kinds[site->kind].refused++;
}

static struct known_site *find_known(struct step_sites *sites, const struct fbt_ring_site *site)
{
	vec_for_each (known, &sites->known) {
		if (known->key.address == site->address && known->key.tgid == site->tgid)
			return known;
	}
	return NULL;
}

/* Looking for a site takes some ms: not for each call of code that is generated all the time. */
static bool has_room(const struct step_sites *sites, const struct fbt_ring_site *site)
{
	size_t count = 0;

	vec_for_each (refused, &sites->refused)
		count += refused->key.tgid == site->tgid && refused->kind == site->kind;
	vec_for_each (known, &sites->known)
		count += known->key.tgid == site->tgid && known->kind == site->kind;
	return count < SITES_MAX;
}

/* A future's state is read there: see fbt_future_state. */
static bool keeps_memory(const struct step_sites *sites, uint32_t kind)
{
	return steps_found__function(sites->live->found, kind)->future.kind == FUTURE_KNOWN;
}

static void add(struct step_sites *sites, const struct fbt_ring_site *site, uint64_t now_ns)
{
	struct known_site added = {.key = {.address = site->address, .tgid = site->tgid}};
	struct known_site *known = find_known(sites, site);

	/* It was told between hand_over and the end of learning, or is probed again since. */
	if (sites->kinds[site->kind].mode == MODE_EXITS || (known && known->on)) {
		if (known && known->on)
			set_state(sites, known);
		else
			loader__forget_site(sites->live->loader, &added.key);
		return;
	}
	if (!known) {
		if (!has_room(sites, site) ||
		    step_site_find(&added.place, site->tgid, site->address,
				   keeps_memory(sites, site->kind))) {
			refuse(sites, site);
			return;
		}
		if (vec_push(&sites->known, added)) {
			step_site_clear(&added.place);
			loader__forget_site(sites->live->loader, &added.key);
			return;
		}
		known = &sites->known.items[sites->known.count - 1];
	}
	known->kind = site->kind;
	sites->kinds[site->kind].site_ns = now_ns;
	if (probe(sites, known))
		refuse(sites, site);
}

/* What has passed the sites of a kind since the last time. */
static struct passed take_passed(const struct step_sites *sites, uint32_t kind,
				 struct passed *before)
{
	const struct shared *shared = loader__shared(sites->live->loader);
	struct passed now = {SHARED_HITS(shared, confirmed, kind),
			     SHARED_HITS(shared, strangers, kind)};
	struct passed since = {now.steps - before->steps, now.strangers - before->strangers};

	*before = now;
	return since;
}

static bool is_followed(const struct step_sites *sites, uint32_t kind)
{
	return sites->kinds[kind].followed;
}

static void give_up_following(struct step_sites *sites, uint32_t kind, const char *why)
{
	struct kind_sites *row = &sites->kinds[kind];

	free(row->why_not);
	row->why_not = *why ? strdup(why) : NULL;
	step_follow__drop(sites->follow, kind);
	log_debug("%s: its jumps are not followed: %s",
		  steps_found__function(sites->live->found, kind)->name, why);
}

/* Others call what it jumps to all the time: its steps end at its call sites again. */
static void unfollow(struct step_sites *sites, uint32_t kind)
{
	steps_found__end_at_sites_again(sites->live->found, kind);
	sites->kinds[kind].mode = MODE_SITES;
	sites->kinds[kind].followed = false;
	give_up_following(sites, kind, "others call what it jumps to too often");
	vec_for_each (known, &sites->known) {
		if (known->kind == kind && !known->on && known->key.tgid)
			(void)probe(sites, known);
	}
}

/*
 * Probes the returns of the functions that it jumps to. Others may call these a million times a
 * second, which shows at once.
 */
static void follow(struct step_sites *sites, uint32_t kind)
{
	struct kind_sites *row = &sites->kinds[kind];
	int err = step_follow__attach_all(sites->follow, kind);

	/* Without a process, later ones may have what it jumps to. */
	row->tried = err != -ESRCH;
	if (err) {
		steps_found__drop_exits(sites->live->found, kind);
		give_up_following(sites, kind, step_follow__reason(sites->follow, kind));
		return;
	}
	hand_over(sites, kind_bit(kind));
	if (steps_found__end_at_exits(sites->live->found, kind))
		return;
	row->mode = MODE_EXITS;
	row->followed = true;
	/* Those who passed its sites before are nothing to its exits. */
	(void)take_passed(sites, kind, &row->look);
	row->turn = row->look;
	for (int i = 0; i < WATCH_TRIES && row->followed; i++) {
		struct passed before = row->look, passed;

		usleep(WATCH_US);
		passed = take_passed(sites, kind, &before);
		if (exits_are_too_busy(&passed, 0))
			unfollow(sites, kind);
	}
}

static void use_exits(struct step_sites *sites, uint32_t kind)
{
	if (!has_exits(sites, kind)) {
		follow(sites, kind);
		return;
	}
	hand_over(sites, kind_bit(kind));
	if (steps_found__end_at_exits(sites->live->found, kind))
		return;
	sites->kinds[kind].mode = MODE_EXITS;
	log_debug("%s: its exits are probed: %s",
		  steps_found__function(sites->live->found, kind)->name,
		  sites->kinds[kind].refused ? "it is called from where no probe can be"
					     : "others pass its call sites too often");
}

/*
 * Every turn, so that the rate guard does not take the strangers for calls of the function. While
 * its probes are switched off or on, no step begins: its own calls pass as strangers then.
 */
static void check_strangers(struct step_sites *sites, uint32_t kind, uint64_t time_ns)
{
	struct kind_sites *row = &sites->kinds[kind];
	struct passed passed = take_passed(sites, kind, &row->turn);

	if (is_off(sites, kind) || row->was_off) {
		row->was_off = is_off(sites, kind);
		(void)take_passed(sites, kind, &row->look);
		return;
	}
	if (row->followed) {
		if (exits_are_too_busy(&passed, time_ns))
			unfollow(sites, kind);
	} else if (row->mode != MODE_EXITS && has_end(sites, kind) &&
		   sites_are_too_busy(&passed, SITE_TURN_NS)) {
		use_exits(sites, kind);
	}
}

/*
 * Functions that have no exits and are called from where no site can be probed: their jumps are
 * followed, or a line says so.
 */
static void tell_refused(struct step_sites *sites, bool may_follow)
{
	uint64_t kinds = 0;

	vec_for_each (refused, &sites->refused)
		kinds |= loader__site_kinds(sites->live->loader, &refused->key);
	for (uint32_t kind = 0; (kind = kind_next(kinds, kind));) {
		struct kind_sites *row = &sites->kinds[kind];

		if (row->mode != MODE_SITES || row->told || has_exits(sites, kind))
			continue;
		if (!row->tried && may_follow && !is_off(sites, kind))
			follow(sites, kind);
		if (row->followed)
			continue;
		row->told = true;
		step_follow_warn(steps_found__function(sites->live->found, kind), row->why_not);
	}
}

/* The site for which the probe for all processes at a place was attached. */
static struct known_site *find_owner(struct step_sites *sites, struct known_site *site)
{
	vec_for_each (known, &sites->known) {
		if (known->on && !known->shares && is_same_place(known, site))
			return known;
	}
	return site;
}

/* Sites that were found in code count from when a step has begun there. */
static void count_used(struct step_sites *sites)
{
	vec_for_each (known, &sites->known) {
		if (known->on && known->key.tgid && !(known->counted & kind_bit(known->kind)) &&
		    loader__site_kinds(sites->live->loader, &known->key) & kind_bit(known->kind))
			count_place(sites, known->shares ? find_owner(sites, known) : known);
	}
}

/* Whether callers of a kind in a process are to be probed before they call. */
static bool is_foreseen(const struct step_sites *sites, uint32_t kind)
{
	const struct step_function *function = steps_found__function(sites->live->found, kind);

	return function->has_sites && !function->usdt && !function->uretprobe &&
	       !is_off(sites, kind) && sites->kinds[kind].mode != MODE_EXITS;
}

/* Looks for the callers of new kinds in the code of a process. */
static void search_callers(struct step_sites *sites, const struct traced *traced, uint64_t kinds)
{
	const struct step_function *functions[FBT_KIND_COUNT];
	uint32_t numbers[FBT_KIND_COUNT];
	const struct callers_limits limits = {
		.each = loader__has_multi(sites->live->loader) ? CALLERS_MAX : CALLERS_MAX_PERF,
		.cpu_ns = CALLERS_CPU_NS,
		.bytes_max = CALLERS_BYTES_MAX,
	};
	size_t count = 0, before = sites->callers.count;
	uint64_t left_out, start_ns = clock_ns(CLOCK_MONOTONIC);

	for (uint32_t kind = 0; (kind = kind_next(kinds & ~sites->searched, kind));) {
		numbers[count] = kind;
		functions[count++] = steps_found__function(sites->live->found, kind);
	}
	if (!count)
		return;
	sites->searched |= kinds;
	callers_find(&sites->callers, traced->tgid, functions, count, &limits, &left_out);
	for (size_t i = before; i < sites->callers.count; i++)
		sites->callers.items[i].function = numbers[sites->callers.items[i].function];
	log_debug("process %u: %zu callers found in %.1f ms", traced->tgid,
		  sites->callers.count - before,
		  (double)(clock_ns(CLOCK_MONOTONIC) - start_ns) / 1e6);
	for (size_t i = 0; i < count; i++) {
		if (left_out >> i & 1)
			log_debug("%s: its callers are not all known: call sites are learnt",
				  functions[i]->name);
	}
}

/* The address in a process that a caller returns to; 0: it does not map the file. */
static uint64_t find_return(const mapping_vec *maps, const struct caller *caller)
{
	vec_for_each (mapping, maps) {
		if (mapping->executable && mapping->inode == caller->inode &&
		    mapping->device_major == caller->device_major &&
		    mapping->device_minor == caller->device_minor &&
		    caller->offset >= mapping->offset &&
		    caller->offset - mapping->offset < mapping->end - mapping->start)
			return mapping->start + caller->offset - mapping->offset;
	}
	return 0;
}

/* Makes a caller a known site of a process, not probed yet. 0 or -errno; 1: it is one already. */
static int add_caller(struct step_sites *sites, uint32_t tgid, const struct caller *caller,
		      uint64_t address)
{
	struct known_site added = {
		.key = {.address = address, .tgid = tgid},
		.kind = caller->function,
		.place = caller->site,
	};
	struct fbt_ring_site told = {.address = address, .tgid = tgid};
	int err;

	if (find_known(sites, &told))
		return 1;
	added.place.path = strdup(caller->site.path);
	added.place.fd = fcntl(caller->site.fd, F_DUPFD_CLOEXEC, 0);
	err = added.place.path && added.place.fd >= 0 ? vec_push(&sites->known, added) : -ENOMEM;
	if (err)
		step_site_clear(&added.place);
	return err;
}

static void probe_or_refuse(struct step_sites *sites, struct known_site *known)
{
	const struct fbt_ring_site site = {
		.address = known->key.address,
		.tgid = known->key.tgid,
		.kind = known->kind,
	};

	if (probe(sites, known))
		refuse(sites, &site);
}

/*
 * Probes the sites from first on that are of the same file and kind as that one, in one link. If
 * one of them cannot be probed, the others are, each for itself. Returns the index after them.
 */
static size_t probe_group(struct step_sites *sites, size_t first)
{
	const struct step_site *places[CALLERS_MAX];
	struct known_site *known = &sites->known.items[first];
	size_t count = 0, all = sites->known.count - first;
	int err;

	while (count < all && count < CALLERS_MAX && known[count].kind == known->kind &&
	       known[count].place.device == known->place.device &&
	       known[count].place.inode == known->place.inode) {
		places[count] = &known[count].place;
		count++;
	}
	err = is_probed_for_all(sites, known)
		      ? -EEXIST
		      : attach_places(sites, known->key.tgid, known->kind, places, count);
	for (size_t i = 0; i < count; i++) {
		if (err) {
			probe_or_refuse(sites, &known[i]);
			continue;
		}
		known[i].on = true;
		set_state(sites, &known[i]);
	}
	return first + count;
}

/*
 * Probes the callers that were found. While the exits of a function are probed, this is not needed:
 * callers are learnt when they call.
 */
static void probe_callers(struct step_sites *sites, const struct traced *traced, uint64_t kinds)
{
	struct proc_ref ref = processes_ref(traced->tgid);
	size_t first = sites->known.count;
	mapping_vec maps = {0};
	int err = maps_read_all(ref, &maps);

	vec_for_each (caller, &sites->callers) {
		uint64_t address = err ? 0 : find_return(&maps, caller);

		if (address && kinds & kind_bit(caller->function) &&
		    sites->kinds[caller->function].mode != MODE_LEARNING)
			(void)add_caller(sites, traced->tgid, caller, address);
	}
	maps_free(&maps);
	while (first < sites->known.count)
		first = probe_group(sites, first);
}

/* The exits of the kind are about to be removed, so all its callers must be probed. */
static void probe_all_callers(struct step_sites *sites, uint32_t kind)
{
	struct traced *traced;

	for (size_t i = 0; (traced = traced_set__at(sites->live->traced, i)); i++)
		probe_callers(sites, traced, kind_bit(kind));
}

static void look_at(struct step_sites *sites, uint32_t kind, uint64_t now_ns)
{
	struct kind_sites *row = &sites->kinds[kind];
	struct passed passed = take_passed(sites, kind, &row->look);

	if (is_off(sites, kind))
		return;
	if (row->followed) {
		if (exits_are_too_busy(&passed, SITE_LOOK_NS))
			unfollow(sites, kind);
		return;
	}
	if (row->mode == MODE_EXITS || !has_end(sites, kind))
		return;
	/* Calls from where no probe can be have no other end. */
	if (sites_are_too_busy(&passed, SITE_LOOK_NS) ||
	    (row->mode == MODE_SITES && row->refused && has_exits(sites, kind))) {
		use_exits(sites, kind);
	} else if (row->mode == MODE_LEARNING && !row->refused && sites_have_proved(&passed) &&
		   now_ns - row->site_ns >= SITE_LOOK_NS) {
		row->mode = MODE_SWITCHING;
		probe_all_callers(sites, kind);
		steps_found__end_at_sites(sites->live->found, kind);
	}
}

/*
 * Called at least a turn after end_at_sites, so that every step that is open has begun with it in
 * force.
 */
static void finish_switch(struct step_sites *sites, uint32_t kind)
{
	if (sites->kinds[kind].mode != MODE_SWITCHING ||
	    stream__awaits_exit(sites->live->stream, kind))
		return;
	sites->kinds[kind].mode = MODE_SITES;
	steps_found__drop_exits(sites->live->found, kind);
}

static void begin(struct step_sites *sites, uint32_t kind)
{
	const struct step_function *function = steps_found__function(sites->live->found, kind);
	struct kind_sites *row = &sites->kinds[kind];

	row->begun = true;
	row->mode = !function->has_sites     ? MODE_EXITS
		    : has_exits(sites, kind) ? MODE_LEARNING
					     : MODE_SITES;
}

static void foresee(struct step_sites *sites, const struct traced *traced)
{
	uint64_t kinds = 0;

	for (size_t i = traced->probed_kinds; i < traced->kinds.count; i++) {
		uint32_t kind = traced->kinds.items[i];

		if (!sites->kinds[kind].begun)
			begin(sites, kind);
		if (is_foreseen(sites, kind))
			kinds |= kind_bit(kind);
	}
	if (!kinds)
		return;
	search_callers(sites, traced, kinds);
	probe_callers(sites, traced, kinds);
	/* Passes so far do not count as passes of other code, because no step could begin. */
	for (uint32_t kind = 0; (kind = kind_next(kinds, kind));) {
		(void)take_passed(sites, kind, &sites->kinds[kind].look);
		(void)take_passed(sites, kind, &sites->kinds[kind].turn);
	}
}

/* In a process that comes later, the ends of its steps are probed before their begins. */
static void follow_in(struct step_sites *sites, struct traced *traced)
{
	for (size_t i = traced->probed_kinds; i < traced->kinds.count; i++) {
		uint32_t kind = traced->kinds.items[i];

		if (is_followed(sites, kind) && !is_off(sites, kind) &&
		    step_follow__attach(sites->follow, traced, kind))
			log_debug("process %u: where its calls end is not known: %s", traced->tgid,
				  step_follow__reason(sites->follow, kind));
	}
}

int step_sites__attach(struct step_sites *sites, struct traced *traced)
{
	foresee(sites, traced);
	follow_in(sites, traced);
	return steps_found__attach(sites->live->found, traced);
}

static uint32_t count_exits(const struct step_sites *sites, uint32_t kind)
{
	if (sites->kinds[kind].mode == MODE_SITES)
		return 0;
	return has_exits(sites, kind) ? (uint32_t)steps_found__function(sites->live->found, kind)
						->exit_offsets.count
				      : step_follow__places(sites->follow, kind);
}

static void send(struct step_sites *sites)
{
	const struct shared *shared = loader__shared(sites->live->loader);
	uint32_t count = (uint32_t)steps_found__count(sites->live->found);

	for (uint32_t kind = 1; kind <= count; kind++) {
		const struct step_function *function =
			steps_found__function(sites->live->found, kind);
		struct kind_sites *row = &sites->kinds[kind];
		struct fbt_ends ends = {
			.header = row->sent.header,
			.kind = kind,
			.exits = count_exits(sites, kind),
			.sites = row->mode == MODE_EXITS ? 0 : row->sites,
			.tail_calls = function->tail_calls,
			.unseen_steps = SHARED_HITS(shared, unseen, kind),
		};

		if (!row->begun || !function->has_sites || !memcmp(&ends, &row->sent, sizeof(ends)))
			continue;
		row->sent = ends;
		record_send(sites->live->output, &row->sent, sizeof(row->sent), FBT_EVENT_ENDS);
	}
}

/* A kind whose probes are switched off gets none: its sites are told again when they are on. */
static void take_told(struct step_sites *sites, uint32_t count, uint64_t now_ns)
{
	uint64_t off = steps_found__off_kinds(sites->live->found);

	vec_for_each (site, &sites->told) {
		struct fbt_site_key key = {.address = site->address, .tgid = site->tgid};

		if (site->kind < 1 || site->kind > count)
			continue;
		if (off & kind_bit(site->kind))
			loader__forget_site(sites->live->loader, &key);
		else
			add(sites, site, now_ns);
	}
	sites->told.count = 0;
}

void step_sites__turn(struct step_sites *sites, uint64_t now_ns)
{
	uint32_t count = (uint32_t)steps_found__count(sites->live->found);

	for (uint32_t kind = 1; kind <= count; kind++) {
		if (!sites->kinds[kind].begun)
			begin(sites, kind);
		check_strangers(sites, kind, now_ns - sites->turned_ns);
		finish_switch(sites, kind);
	}
	take_told(sites, count, now_ns);
	sites->turned_ns = now_ns;
	for (uint32_t kind = 1; kind <= count; kind++) {
		struct kind_sites *row = &sites->kinds[kind];

		if (!is_off(sites, kind) && row->mode == MODE_SITES && row->refused &&
		    !has_exits(sites, kind) && !row->tried)
			follow(sites, kind);
	}
	if (now_ns - sites->looked_ns < SITE_LOOK_NS)
		return;
	sites->looked_ns = now_ns;
	for (uint32_t kind = 1; kind <= count; kind++)
		look_at(sites, kind, now_ns);
	tell_refused(sites, true);
	count_used(sites);
	send(sites);
}

void step_sites__forget(struct step_sites *sites, uint32_t tgid)
{
	bool all = steps_found__probes_all(sites->live->found);
	size_t kept = 0;

	count_used(sites);
	vec_for_each (known, &sites->known) {
		if (known->key.tgid == tgid) {
			loader__forget_site(sites->live->loader, &known->key);
			if (!all || known->shares || !known->on) {
				step_site_clear(&known->place);
				continue;
			}
			known->key = (struct fbt_site_key){0};
		}
		sites->known.items[kept++] = *known;
	}
	sites->known.count = kept;
	kept = 0;
	vec_for_each (refused, &sites->refused) {
		if (refused->key.tgid != tgid) {
			sites->refused.items[kept++] = *refused;
			continue;
		}
		loader__forget_site(sites->live->loader, &refused->key);
		sites->kinds[refused->kind].refused--;
	}
	sites->refused.count = kept;
	kept = 0;
	vec_for_each (told, &sites->told) {
		if (told->tgid != tgid)
			sites->told.items[kept++] = *told;
	}
	sites->told.count = kept;
	step_follow__forget(sites->follow, tgid);
}

void step_sites__switch_off(struct step_sites *sites, uint64_t kinds)
{
	hand_over(sites, kinds);
}

/* The exits that were followed are gone since they were switched off. */
static void follow_on(struct step_sites *sites, uint32_t kind)
{
	step_follow__drop(sites->follow, kind);
	if (step_follow__attach_all(sites->follow, kind))
		unfollow(sites, kind);
}

void step_sites__switch_on(struct step_sites *sites, uint64_t kinds)
{
	vec_for_each (known, &sites->known) {
		if (kinds & kind_bit(known->kind) && !known->on &&
		    sites->kinds[known->kind].mode != MODE_EXITS)
			probe(sites, known);
	}
	for (uint32_t kind = 0; (kind = kind_next(kinds, kind));) {
		if (is_followed(sites, kind))
			follow_on(sites, kind);
	}
}

void step_sites__finish(struct step_sites *sites)
{
	tell_refused(sites, false);
	count_used(sites);
	send(sites);
}
