/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * An engine on a double of CUDA. Its steps (gpu_engine_step) play a script. The file of --truth has
 * each launch and the device's times, to the nanosecond.
 */
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include "gpu_engine_script.h"

#if __has_attribute(noipa)
#define EXPORTED __attribute__((noipa, used))
#else
#define EXPORTED __attribute__((noinline, used))
#endif

#define THREADS 8

struct config {
	long steps, sleep_us, step_threads, helper_us, fork_every, init_ms, linger_ms;
	bool wait, exec;
	const char *script, *outside, *helper, *truth;
};

struct engine {
	struct config config;
	struct script script, outside, helper;
	struct truth *truth;
	char **argv;
	int go;
	int done;
};

struct thread {
	struct engine *engine;
	pthread_t id;
	uint32_t index;
};

static volatile sig_atomic_t signals_seen;

long gpu_engine_step(struct player *player, const struct script *script, long n);

EXPORTED long gpu_engine_step(struct player *player, const struct script *script, long n)
{
	play(player, script);
	return n;
}

static const struct {
	const char *name;
	char kind; /* n: number, s: string, f: flag */
	size_t offset;
	const char *help;
} rows[] = {
	{"--steps", 'n', offsetof(struct config, steps), "of each thread; 0: until SIGTERM (100)"},
	{"--script", 's', offsetof(struct config, script), "of a step"},
	{"--outside", 's', offsetof(struct config, outside), "script between two steps"},
	{"--helper", 's', offsetof(struct config, helper), "script of another thread, repeated"},
	{"--helper-us", 'n', offsetof(struct config, helper_us), "its pause (500)"},
	{"--sleep-us", 'n', offsetof(struct config, sleep_us), "between two steps (1000)"},
	{"--step-threads", 'n', offsetof(struct config, step_threads), "threads with steps (1)"},
	{"--fork-every", 'n', offsetof(struct config, fork_every), "a child after every Nth step"},
	{"--exec", 'f', offsetof(struct config, exec), "run itself again at the end, once"},
	{"--init-ms", 'n', offsetof(struct config, init_ms), "cuInit so long after the go"},
	{"--linger-ms", 'n', offsetof(struct config, linger_ms),
	 "rest at the end; TRUTH.done is there from then on"},
	{"--truth", 's', offsetof(struct config, truth), "FILE"},
	{"--wait", 'f', offsetof(struct config, wait), "for a line on stdin, after 'ready PID'"},
};

static int parse(struct config *config, int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		size_t row = 0;
		char *field, *end;

		while (row < sizeof(rows) / sizeof(rows[0]) && strcmp(rows[row].name, argv[i]) != 0)
			row++;
		if (row == sizeof(rows) / sizeof(rows[0]) ||
		    (rows[row].kind != 'f' && i + 1 == argc))
			return -1;
		field = (char *)config + rows[row].offset;
		if (rows[row].kind == 'f')
			*(bool *)field = true;
		else if (rows[row].kind == 's')
			*(const char **)field = argv[++i];
		else if ((*(long *)field = strtol(argv[++i], &end, 10)) < 0 || *end)
			return -1;
	}
	return config->step_threads < 1 || config->step_threads > THREADS - 1 ? -1 : 0;
}

static void print_help(void)
{
	puts("usage: gpu_engine [OPTION]...\nAn engine whose steps do known work on a fake GPU.");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		printf("  %-15s %s %s\n", rows[i].name, rows[i].kind == 'f' ? " " : "V",
		       rows[i].help);
	printf("A script is words as k50.1: operation, number, stream (and @device).\n%s",
	       script_help);
}

static struct player make_player(struct engine *engine, uint32_t index)
{
	return (struct player){.truth = engine->truth,
			       .tid = (uint32_t)syscall(SYS_gettid),
			       .streams = index * 8,
			       .api_ns = 3000,
			       .delay_ns = 2000,
			       .zero = open("/dev/zero", O_RDONLY | O_CLOEXEC)};
}

static void sleep_us(long us)
{
	struct timespec time = {us / 1000000, us % 1000000 * 1000};

	syscall(SYS_nanosleep, &time, NULL);
}

/* CUDA does not survive a fork, so the child only idles for a while. */
static void run_child(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		sleep_us(50000);
		_exit(0);
	}
	if (pid > 0)
		waitpid(pid, NULL, 0);
}

static void run_steps(struct engine *engine, uint32_t index)
{
	struct player player = make_player(engine, index);
	const struct config *config = &engine->config;

	for (long n = 1; !signals_seen && (config->steps == 0 || n <= config->steps); n++) {
		struct truth_entry entry = {.type = TRUTH_STEP, .tid = player.tid};

		entry.step = player.step = (uint64_t)n;
		entry.start_ns = fake_cuda_now();
		gpu_engine_step(&player, &engine->script, n);
		entry.end_ns = fake_cuda_now();
		truth_add(engine->truth, &entry);
		player.step = 0;
		play(&player, &engine->outside);
		if (config->sleep_us)
			sleep_us(config->sleep_us);
		if (config->fork_every && n % config->fork_every == 0)
			run_child();
	}
}

static void await_start(const struct engine *engine)
{
	while (!__atomic_load_n(&engine->go, __ATOMIC_ACQUIRE))
		sleep_us(1000);
}

static void *run_thread(void *arg)
{
	struct thread *thread = arg;
	struct engine *engine = thread->engine;

	await_start(engine);
	run_steps(engine, thread->index);
	return NULL;
}

static void *run_helper(void *arg)
{
	struct thread *thread = arg;
	struct engine *engine = thread->engine;
	struct player player = make_player(engine, thread->index);

	await_start(engine);
	while (!__atomic_load_n(&engine->done, __ATOMIC_ACQUIRE)) {
		play(&player, &engine->helper);
		sleep_us(engine->config.helper_us);
	}
	return NULL;
}

/* They wait for the go. */
static void start_threads(struct engine *engine, struct thread threads[THREADS])
{
	long last = engine->config.step_threads;

	for (uint32_t i = 0; i < THREADS; i++)
		threads[i] = (struct thread){.engine = engine, .index = i};
	if (engine->config.helper)
		pthread_create(&threads[last].id, NULL, run_helper, &threads[last]);
	for (long i = 1; i < last; i++)
		pthread_create(&threads[i].id, NULL, run_thread, &threads[i]);
}

static void run(struct engine *engine, const struct thread threads[THREADS])
{
	long last = engine->config.step_threads;

	__atomic_store_n(&engine->go, 1, __ATOMIC_RELEASE);
	run_steps(engine, 0);
	for (long i = 1; i < last; i++)
		pthread_join(threads[i].id, NULL);
	__atomic_store_n(&engine->done, 1, __ATOMIC_RELEASE);
	if (engine->config.helper)
		pthread_join(threads[last].id, NULL);
}

static void await_go(void)
{
	char line[64];
	int n = snprintf(line, sizeof(line), "ready %d\n", getpid());
	long got = write(STDOUT_FILENO, line, (size_t)n);

	while (got > 0 && (got = read(STDIN_FILENO, line, sizeof(line))) > 0)
		if (memchr(line, '\n', (size_t)got))
			return;
}

static void on_signal(int signo)
{
	(void)signo;
	signals_seen = 1;
}

static void linger(const struct config *config)
{
	char path[4096];
	int fd;

	if (config->truth) {
		snprintf(path, sizeof(path), "%s.done", config->truth);
		fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
		if (fd >= 0)
			close(fd);
	}
	for (long ms = 0; !signals_seen && ms < config->linger_ms; ms += 10) {
		sleep_us(10000);
		/* What is in use then is what nobody gave back. */
		malloc_trim(0);
	}
}

/* Calls execve with the same arguments, without --exec and --wait. */
static void exec_self(struct engine *engine, int argc, char **argv)
{
	int n = 0;

	for (int i = 0; i < argc; i++)
		if (strcmp(argv[i], "--exec") != 0 && strcmp(argv[i], "--wait") != 0)
			engine->argv[n++] = argv[i];
	execve("/proc/self/exe", engine->argv, environ);
}

int main(int argc, char **argv)
{
	static struct engine engine = {.config = {.steps = 100,
						  .sleep_us = 1000,
						  .step_threads = 1,
						  .helper_us = 500,
						  .script = "k50 s",
						  .outside = ""}};
	struct config *config = &engine.config;
	struct sigaction action = {.sa_handler = on_signal};
	struct thread threads[THREADS];
	const char *word = "";

	if (argc == 2 && strcmp(argv[1], "--help") == 0) {
		print_help();
		return 0;
	}
	if (parse(config, argc, argv)) {
		fprintf(stderr, "gpu_engine: bad option, --help lists them\n");
		return 2;
	}
	if (script_parse(&engine.script, config->script, &word) ||
	    script_parse(&engine.outside, config->outside, &word) ||
	    script_parse(&engine.helper, config->helper ? config->helper : "", &word)) {
		fprintf(stderr, "gpu_engine: no such word: %s\n", word);
		return 2;
	}
	engine.argv = calloc((size_t)argc + 1, sizeof(*argv));
	engine.truth = truth_map(config->truth);
	if (!engine.argv || !engine.truth) {
		fprintf(stderr, "gpu_engine: %s\n", strerror(errno));
		return 1;
	}
	sigaction(SIGTERM, &action, NULL);
	if (!config->init_ms)
		cuInit(0);
	start_threads(&engine, threads);
	if (config->wait)
		await_go();
	if (config->init_ms) {
		sleep_us(config->init_ms * 1000);
		cuInit(0);
	}
	run(&engine, threads);
	if (config->linger_ms)
		linger(config);
	if (config->exec)
		exec_self(&engine, argc, argv);
	return 0;
}
