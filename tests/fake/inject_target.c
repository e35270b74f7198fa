/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * A program that checks itself while something is injected into it: a thread for each kind of
 * blocking call, with known values in all registers; threads that take numbered signals; and, on
 * request, threads that do what may disturb the loading of a library. See usage().
 */
#include <stdio.h>

#if defined(__x86_64__)

#include <getopt.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <ucontext.h>
#include "inject_kinds.h"
#include "inject_nasty.h"
#include "inject_report.h"

struct options {
	double seconds;
	const char *with;
	bool light, exec;
};

static void check_alternate(struct worker *w)
{
	stack_t now;

	sigaltstack(NULL, &now);
	if (now.ss_sp != w->fibre || now.ss_size != w->kind->stack || now.ss_flags != SS_ONSTACK)
		complain(w, "signal stack", (uintptr_t)now.ss_sp, (uintptr_t)w->fibre);
}

static void work_on(void)
{
	struct worker *w = self;

	for (;;) {
		if (w->kind->plain)
			w->kind->plain(w);
		else
			raw_call(w);
		if (w->kind->alternate)
			check_alternate(w);
		atomic_fetch_add(&w->loops, 1);
	}
}

/* A stack of that size with an unmapped guard below it. */
static void *new_stack(size_t size)
{
	uint8_t *memory = mmap(NULL, size + 65536, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED || mprotect(memory + 65536, size, PROT_READ | PROT_WRITE))
		return NULL;
	return memory + 65536;
}

static bool prepare_fibre(struct worker *w, ucontext_t *fibre)
{
	stack_t stack = {.ss_sp = w->fibre, .ss_size = w->kind->stack};

	if (!w->fibre || (w->kind->alternate && sigaltstack(&stack, NULL)) || getcontext(fibre))
		return false;
	fibre->uc_stack.ss_sp = w->fibre;
	fibre->uc_stack.ss_size = w->kind->stack;
	makecontext(fibre, work_on, 0);
	return true;
}

static void enter_fibre(struct worker *w)
{
	ucontext_t fibre;

	/*
	 * The first call resolves functions in the loader, for which a small stack would have no
	 * room.
	 */
	raw_call(w);
	w->fibre = new_stack(w->kind->stack);
	if (prepare_fibre(w, &fibre))
		setcontext(&fibre);
	complain(w, "fibre", (uint64_t)errno, 0);
}

static void *work(void *arg)
{
	struct worker *w = arg;
	sigset_t wanted;

	self = w;
	w->schedstat = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
	prctl(PR_SET_NAME, w->name);
	if (w->kind->set_up && !w->kind->set_up(w)) {
		complain(w, "set up", (uint64_t)errno, 0);
		return NULL;
	}
	sigemptyset(&wanted);
	if (w->signal) {
		sigaddset(&wanted, w->signal);
		pthread_sigmask(SIG_UNBLOCK, &wanted, NULL);
	}
	w->tid = gettid();
	if (w->kind->stack)
		enter_fibre(w);
	else
		work_on();
	return NULL;
}

static int start_worker(struct target *target, const struct kind *kind, const char *prefix,
			int signal)
{
	struct worker *w;
	pthread_attr_t attributes;
	int err;

	if (target->count == WORKERS_MAX)
		return -E2BIG;
	w = aligned_alloc(64, sizeof(*w));
	if (!w)
		return -ENOMEM;
	memset(w, 0, sizeof(*w));
	w->kind = kind;
	w->target = target;
	w->signal = signal;
	w->sa_restart = signal == SIGNAL_RESTART;
	w->random = (0x9e3779b97f4a7c15 * (target->count + 1)) ^ (uint64_t)getpid();
	snprintf(w->name, sizeof(w->name), "%s%s", prefix, kind->name);
	target->workers[target->count] = w;
	__atomic_store_n(&target->count, target->count + 1, __ATOMIC_RELEASE);
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, 256u << 10);
	err = pthread_create(&w->thread, &attributes, work, w);
	pthread_attr_destroy(&attributes);
	return -err;
}

static int start_nasty(struct target *target, const char *with)
{
	char name[16];
	int size, err = 0;

	for (const char *at = with; at && *at && !err; at += size + (at[size] == ',')) {
		const struct kind *kind;

		size = (int)strcspn(at, ",");
		snprintf(name, sizeof(name), "%.*s", size, at);
		kind = find_kind(nasty_kinds, sizeof(nasty_kinds) / sizeof(*nasty_kinds), name);
		err = kind ? start_worker(target, kind, "", 0) : -EINVAL;
		if (!err && kind->plain == malloc_plain)
			err = start_worker(target, kind, "", 0);
	}
	return err;
}

/* Excludes kinds that would fail by themselves. */
static bool is_wanted(const struct target *target, const struct kind *kind)
{
	/* setresuid() sends a signal, whose frame does not fit on that stack. */
	if (target->broadcasts && kind->stack == 4096)
		return false;
	/* Any interruption makes this call return only half. */
	return kind->feed != feed_half || (!target->broadcasts && !target->stray_epoll);
}

static int start(struct target *target, const struct options *options)
{
	size_t count = options->light ? LIGHT_KINDS : KINDS;
	int err = signals_set_up(!options->light);

	for (size_t i = 0; i < count && !err; i++)
		if (is_wanted(target, &kinds[i]))
			err = start_worker(target, &kinds[i], "", 0);
	for (size_t i = 0; i < 6 && !options->light && !err; i++) {
		const struct kind *kind = find_kind(kinds, KINDS, signal_kinds[i]);

		err = start_worker(target, kind, "s_", SIGNAL_PLAIN);
		if (!err)
			err = start_worker(target, kind, "r_", SIGNAL_RESTART);
	}
	if (!options->light && !err)
		err = start_worker(target, find_kind(kinds, KINDS, "epoll"), "a_", SIGALRM);
	return err ? err : start_nasty(target, options->with);
}

/* The state of a task in its stat; 0: the task is gone. */
static char task_state(const char *folder)
{
	char path[64], text[256], state = 0;
	const char *name_end;
	FILE *file;

	snprintf(path, sizeof(path), "%s/stat", folder);
	file = fopen(path, "re");
	if (!file)
		return 0;
	if (fgets(text, sizeof(text), file) && (name_end = strrchr(text, ')')))
		state = name_end[1] ? name_end[2] : 0;
	fclose(file);
	return state;
}

/* How long a task has waited for a CPU. */
static uint64_t task_delay_ns(const char *folder)
{
	unsigned long long delay_ns = 0;
	char path[64];
	FILE *file;

	snprintf(path, sizeof(path), "%s/schedstat", folder);
	file = fopen(path, "re");
	if (!file)
		return 0;
	if (fscanf(file, "%*u %llu", &delay_ns) != 1)
		delay_ns = 0;
	fclose(file);
	return delay_ns;
}

/*
 * Whether a thread, or the process that it waits for, is waiting for a CPU, or has since the last
 * look.
 */
static bool is_starved(struct worker *w, char states[2])
{
	uint64_t delay_ns;
	char folder[48];

	snprintf(folder, sizeof(folder), "/proc/self/task/%ld", (long)w->tid);
	states[0] = task_state(folder);
	delay_ns = task_delay_ns(folder);
	snprintf(folder, sizeof(folder), "/proc/%ld", (long)w->child);
	states[1] = w->child ? task_state(folder) : 0;
	delay_ns += w->child ? task_delay_ns(folder) : 0;
	if (delay_ns == w->delay_ns && states[0] != 'R' && states[1] != 'R')
		return false;
	w->delay_ns = delay_ns;
	return true;
}

/* Where in the kernel a thread, or the process that it waits for, is. */
static void tell_where(const struct worker *w)
{
	const pid_t tasks[] = {w->tid, w->child};
	char path[48], text[128] = "";
	FILE *file;

	for (size_t i = 0; i < sizeof(tasks) / sizeof(tasks[0]); i++) {
		snprintf(path, sizeof(path), "/proc/%ld/wchan", (long)tasks[i]);
		file = tasks[i] ? fopen(path, "re") : NULL;
		if (!file)
			continue;
		if (!fgets(text, sizeof(text), file))
			text[0] = '\0';
		fclose(file);
		printf("# %s: task %ld is in %s\n", w->kind->name, (long)tasks[i], text);
	}
}

/*
 * Reports a thread that has made no call in ten seconds of the main thread's time, although it did
 * not wait for a CPU: its state, and that of the process it waits for.
 *
 * In state D it has a minute. No thread gets there by what is done to it here, but a fork or an
 * exit does: for a lock of the kernel that somebody holds who has no CPU, as that of all mappings
 * of a library, or of all forks, which uprobes take.
 */
static void look_for_stuck(struct target *target)
{
	char states[2];

	for (size_t i = 0; i < target->count; i++) {
		struct worker *w = target->workers[i];
		bool starved = is_starved(w, states);
		unsigned int most = states[0] == 'D' || states[1] == 'D' ? 60 : 10;

		w->still = w->loops == w->loops_seen && !starved ? w->still + 1 : 0;
		w->loops_seen = w->loops;
		if (w->still < most || w->told)
			continue;
		w->told = true;
		tell_where(w);
		complain(w, "stuck", (uint64_t)states[0] << 8 | (uint8_t)states[1], 0);
	}
}

static bool is_drained(struct target *target)
{
	for (size_t i = 0; i < target->count; i++) {
		struct worker *w = target->workers[i];

		if (w->signal != SIGALRM && w->signals_handled < w->signals_sent)
			return false;
		if (w->kind->feed &&
		    (w->received != w->sent || (w->kind->feed == feed_half && w->sent % 2)))
			return false;
	}
	return true;
}

/* All numbers and signals that were sent must arrive. */
static void drain(struct target *target)
{
	target->stopping = true;
	rest_us(30000);
	for (int i = 0; i < 1000 && !is_drained(target); i++)
		rest_us(10000);
	for (size_t i = 0; i < target->count; i++) {
		struct worker *w = target->workers[i];

		if (w->signal != SIGALRM)
			expect(w, "signals", w->signals_handled, w->signals_sent);
		if (w->kind->feed)
			expect(w, "numbers", w->received, w->sent);
	}
}

/* Runs until the time is over, or returns true when told to end. */
static bool watch(struct target *target, double seconds, uint64_t start_ns)
{
	uint64_t end_ns = seconds > 0 ? start_ns + (uint64_t)(seconds * 1e9) : UINT64_MAX;
	uint64_t look_ns = start_ns + 1000000000;
	sigset_t wanted;

	sigemptyset(&wanted);
	sigaddset(&wanted, SIGUSR1);
	sigaddset(&wanted, SIGTERM);
	sigaddset(&wanted, SIGINT);
	for (uint64_t now = now_ns(); now < end_ns; now = now_ns()) {
		uint64_t wait_ns = end_ns < look_ns ? end_ns - now : look_ns - now;
		struct timespec time = timespec_of(now < look_ns ? wait_ns : 0);
		int signal = sigtimedwait(&wanted, NULL, &time);

		if (signal == SIGTERM || signal == SIGINT)
			return true;
		if (signal == SIGUSR1)
			report(target, (double)(now_ns() - start_ns) / 1e9);
		if (now_ns() >= look_ns) {
			look_for_stuck(target);
			look_ns = now_ns() + 1000000000;
		}
	}
	return false;
}

static int usage(void)
{
	puts("usage: inject_target [OPTION]…\n"
	     "Prints `ready`, at SIGUSR1 and at its end (SIGTERM, SIGINT, --seconds) a line of "
	     "JSON.\n"
	     "Exits with 0 if all was well, else with 1.\n"
	     "  --seconds S    end by itself\n"
	     "  --with LIST    threads that loop: dlopen,malloc,threads,setuid,fork\n"
	     "  --light        five threads, no signals\n"
	     "  --exec         call execve when the time is over, if all was well, and go on\n"
	     "  --stray-epoll  count EINTR without a handler of epoll_wait and SO_RCVTIMEO; no "
	     "error\n"
	     "  --late-ms N    time-outs may be so late, of 250\n"
	     "  -h, --help");
	return 0;
}

static int parse(struct options *options, struct target *target, int argc, char **argv)
{
	static const struct option names[] = {
		{"seconds", required_argument, NULL, 's'},
		{"with", required_argument, NULL, 'w'},
		{"light", no_argument, NULL, 'l'},
		{"exec", no_argument, NULL, 'x'},
		{"stray-epoll", no_argument, NULL, 'e'},
		{"late-ms", required_argument, NULL, 'm'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	int option;

	while ((option = getopt_long(argc, argv, "h", names, NULL)) != -1) {
		switch (option) {
		case 's':
			options->seconds = strtod(optarg, NULL);
			break;
		case 'w':
			options->with = optarg;
			target->broadcasts = strstr(optarg, "setuid") != NULL;
			break;
		case 'l':
			options->light = target->is_light = true;
			break;
		case 'x':
			options->exec = true;
			break;
		case 'e':
			target->stray_epoll = true;
			break;
		case 'm':
			target->late_limit_ns = strtoull(optarg, NULL, 10) * 1000000;
			break;
		default:
			return option == 'h' ? usage() - 1 : 1;
		}
	}
	return optind == argc ? 0 : 1;
}

int main(int argc, char **argv)
{
	static struct target target = {.late_limit_ns = 250000000};
	struct options options = {0, NULL, false, false};
	uint64_t start_ns = now_ns();
	sigset_t all;
	bool told;
	int err = parse(&options, &target, argc, argv);

	if (err)
		return err < 0 ? 0 : 2;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, NULL);
	target.width = call_width();
	err = start(&target, &options);
	if (err) {
		fprintf(stderr, "inject_target: cannot start: %s\n", strerror(-err));
		return 2;
	}
	puts("ready");
	fflush(stdout);
	told = watch(&target, options.seconds, start_ns);
	if (options.exec && !told && !count_errors(&target)) {
		execv("/proc/self/exe", argv);
		return 2;
	}
	drain(&target);
	report(&target, (double)(now_ns() - start_ns) / 1e9);
	exit(count_errors(&target) ? 1 : 0);
}

#else

int main(void)
{
	puts("SKIP x86-64 only");
	return 77;
}

#endif
