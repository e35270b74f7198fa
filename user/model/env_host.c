/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "model/env_host.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/redact.h"
#include "base/text.h"
#include "base/vec.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define OUTPUT_SIZE  8192
#define PATH_SIZE    4096
#define PREFIX	     "FERRUM_"
#define REAP_MS	     1000

/* Running a program with a time limit. */

struct run {
	pid_t pid;
	int pid_fd;
	int out_fd;	     /* -1 after all output was read */
	uint64_t timeout_ns; /* the time at which the program is killed */
	char *text;
	size_t room; /* bytes left in text, not counting the NUL */
};

/* Runs in the child, which inherits no signal settings, descriptors, environment or directory. */
static void exec_program(const struct program *program, int out)
{
	sigset_t none;
	int null;

	/* Its own process group, so that its children can be killed too. It dies with the tool. */
	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	sigemptyset(&none);
	signal(SIGPIPE, SIG_DFL);
	sigprocmask(SIG_SETMASK, &none, NULL);
	null = open("/dev/null", O_RDWR);
	if (null < 0 || chdir("/") || dup2(null, STDIN_FILENO) < 0 ||
	    dup2(out, STDOUT_FILENO) < 0 || dup2(null, STDERR_FILENO) < 0)
		_exit(127);
	close_range(STDERR_FILENO + 1, ~0u, 0);
	execve(program->path, (char *const *)program->arguments,
	       (char *const *)program->environment);
	_exit(127);
}

static int start(struct run *run, const struct program *program)
{
	int ends[2], err = 0;

	if (pipe2(ends, O_CLOEXEC))
		return -errno;
	run->out_fd = ends[0];
	run->pid = fork();
	if (run->pid == 0)
		exec_program(program, ends[1]);
	if (run->pid < 0)
		err = -errno;
	close(ends[1]);
	if (err)
		return err;
	/* The child does the same. Done here too, so that the group exists before it is killed. */
	setpgid(run->pid, run->pid);
	run->pid_fd = pidfd_open(run->pid, 0);
	if (run->pid_fd < 0 || fcntl(run->out_fd, F_SETFL, O_NONBLOCK))
		return -errno;
	return 0;
}

/* Reads the available output. When text is full, closes the pipe, which ends most programs. */
static void read_available(struct run *run)
{
	ssize_t got = 1;

	while (got > 0 && run->room) {
		got = read(run->out_fd, run->text, run->room);
		if (got > 0) {
			run->text += got;
			run->room -= (size_t)got;
		}
	}
	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	close(run->out_fd);
	run->out_fd = -1;
}

static int left_ms(const struct run *run)
{
	uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);

	return now_ns < run->timeout_ns ? (int)((run->timeout_ns - now_ns) / NS_PER_MS) + 1 : 0;
}

/* Reads until the program has ended, not until end of file: its child may keep the pipe open. */
static int read_to_end(struct run *run)
{
	bool ended = false;
	int left, count;

	while (!ended) {
		struct pollfd fds[] = {{.fd = run->pid_fd, .events = POLLIN},
				       {.fd = run->out_fd, .events = POLLIN}};

		left = left_ms(run);
		if (!left)
			return -ETIMEDOUT;
		count = poll(fds, 2, left);
		if (count < 0 && errno != EINTR)
			return -errno;
		if (count <= 0)
			continue;
		ended = fds[0].revents;
		if (run->out_fd >= 0)
			read_available(run);
	}
	return 0;
}

/*
 * Returns its wait status. One that waits in a driver that hangs does not die of the signal,
 * perhaps never: then it is left, as if it had.
 */
static int reap(const struct run *run)
{
	struct pollfd ended = {.fd = run->pid_fd, .events = POLLIN};
	uint64_t end_ns = clock_ns(CLOCK_MONOTONIC) + REAP_MS * NS_PER_MS;
	int status = SIGKILL;

	while (run->pid_fd >= 0 && poll(&ended, 1, REAP_MS) < 0 && errno == EINTR &&
	       clock_ns(CLOCK_MONOTONIC) < end_ns)
		;
	while (waitpid(run->pid, &status, run->pid_fd >= 0 ? WNOHANG : 0) < 0 && errno == EINTR)
		;
	return status;
}

int program_output(const struct program *program, char *text, size_t size, int *status)
{
	struct run run = {.pid = -1, .pid_fd = -1, .out_fd = -1, .room = size - 1};
	int wait_status = 0, err;

	run.text = text;
	run.timeout_ns = clock_ns(CLOCK_MONOTONIC) + (uint64_t)program->timeout_ms * NS_PER_MS;
	err = start(&run, program);
	if (!err)
		err = read_to_end(&run);
	*run.text = '\0';
	/* Kill before reaping: until then no other process can have its PID and process group. */
	if (run.pid > 0) {
		kill(-run.pid, SIGKILL);
		kill(run.pid, SIGKILL);
		wait_status = reap(&run);
	}
	if (run.pid_fd >= 0)
		close(run.pid_fd);
	if (run.out_fd >= 0)
		close(run.out_fd);
	*status = WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 128 + WTERMSIG(wait_status);
	return err;
}

/* The facts about this host. */

static const char *const safe_folders[] = {"/usr/local/cuda/bin",
					   "/usr/local/sbin",
					   "/usr/local/bin",
					   "/usr/sbin",
					   "/usr/bin",
					   "/sbin",
					   "/bin",
					   NULL};

/*
 * The engine queries these fields one by one. Here one call gets them all, because a call may take
 * a second if the driver is not loaded.
 */
enum gpu_field { GPU_NAME, GPU_DRIVER, GPU_CLOCK, GPU_POWER_LIMIT, GPU_PERSISTENCE, GPU_FIELDS };
#define GPU_QUERY  "--query-gpu=name,driver_version,clocks.gr,power.limit,persistence_mode"
#define GPU_FORMAT "--format=csv,noheader,nounits"

struct env_tools env_tools_default(void)
{
	return (struct env_tools){
		.folders = safe_folders,
		.rustc = getenv("RUSTC"),
		.cpuinfo = "/proc/cpuinfo",
		.gpu_driver = "/proc/driver/nvidia/version",
		.timeout_ms = 5000,
	};
}

static bool is_program(const char *path)
{
	struct stat status;

	return !stat(path, &status) && S_ISREG(status.st_mode) && !access(path, X_OK);
}

static bool find_program(const struct env_tools *tools, const char *name, char path[PATH_SIZE])
{
	for (const char *const *folder = tools->folders; *folder; folder++) {
		snprintf(path, PATH_SIZE, "%s/%s", *folder, name);
		if (is_program(path))
			return true;
	}
	return false;
}

static void make_search_path(const struct env_tools *tools, char variable[PATH_SIZE])
{
	const char *separator = "";
	size_t used = (size_t)snprintf(variable, PATH_SIZE, "PATH=");

	for (const char *const *folder = tools->folders; *folder && used < PATH_SIZE; folder++) {
		used += (size_t)snprintf(variable + used, PATH_SIZE - used, "%s%s", separator,
					 *folder);
		separator = ":";
	}
}

/* Sets PATH to the folders, and keeps the variables by which rustup's rustc finds its toolchain. */
static int run_program(const struct env_tools *tools, const char *const *arguments,
		       char output[OUTPUT_SIZE], int *status)
{
	static const char *const kept[] = {"HOME", "RUSTUP_HOME"};
	char search[PATH_SIZE], values[COUNT(kept)][PATH_SIZE];
	const char *environment[COUNT(kept) + 3] = {"LC_ALL=C", search};
	struct program program = {arguments[0], arguments, environment, tools->timeout_ms};
	size_t count = 2;
	int err;

	make_search_path(tools, search);
	for (size_t i = 0; i < COUNT(kept); i++) {
		const char *value = getenv(kept[i]);

		if (!value)
			continue;
		snprintf(values[i], PATH_SIZE, "%s=%s", kept[i], value);
		environment[count++] = values[i];
	}
	err = program_output(&program, output, OUTPUT_SIZE, status);
	if (err == -ETIMEDOUT)
		log_warn("%s: no answer within %u ms: what it says is not in the env hash",
			 arguments[0], tools->timeout_ms);
	else if (err)
		log_warn("%s: %s: what it says is not in the env hash", arguments[0],
			 strerror(-err));
	else
		log_debug("%s: exit status %d", arguments[0], *status);
	return err;
}

/* Copies text without the white space around it. */
static int copy_trimmed(char **copy, const char *text, size_t size)
{
	whitespace_trim(&text, &size);
	*copy = strndup(text, size);
	return *copy ? 0 : -ENOMEM;
}

/* Whether the engine would take this field as a value. */
static bool is_value(const char *text)
{
	return *text && strcmp(text, "[Not Supported]") != 0 && strcmp(text, "[N/A]") != 0;
}

/*
 * Runs an nvidia-smi query and splits the line of the first GPU at the commas; a field without a
 * value is NULL. Does nothing if nvidia-smi timed out before (*hangs).
 */
static int query_gpu(const struct env_tools *tools, bool *hangs, const char *query, char **fields,
		     size_t count)
{
	char path[PATH_SIZE], output[OUTPUT_SIZE];
	const char *arguments[] = {path, query, GPU_FORMAT, NULL};
	char *line = output;
	int status = -1, err = 0;

	memset(fields, 0, count * sizeof(*fields));
	if (*hangs || !find_program(tools, "nvidia-smi", path))
		return 0;
	*hangs = run_program(tools, arguments, output, &status) == -ETIMEDOUT;
	if (*hangs || status)
		return 0;
	output[strcspn(output, "\r\n")] = '\0';
	for (size_t i = 0; !err && line && i < count; i++) {
		const char *field = strsep(&line, ",");

		err = copy_trimmed(&fields[i], field, strlen(field));
		if (!err && !is_value(fields[i])) {
			free(fields[i]);
			fields[i] = NULL;
		}
	}
	return err;
}

static void remove_all(char *text, const char *part)
{
	size_t length = strlen(part);
	char *to = text;

	while (*text) {
		if (!strncmp(text, part, length))
			text += length;
		else
			*to++ = *text++;
	}
	*to = '\0';
}

/* The engine also lowers letters beyond ASCII; no product name has any. */
static void lower(char *text)
{
	for (; *text; text++)
		*text = (char)tolower((unsigned char)*text);
}

/* "NVIDIA GeForce RTX 4090" becomes "rtx-4090". The name of a CPU keeps all its words. */
static int make_hw_id(char **hw_id, char *name, bool is_gpu)
{
	int err;

	lower(name);
	if (is_gpu) {
		remove_all(name, "nvidia ");
		remove_all(name, "geforce ");
	}
	err = copy_trimmed(hw_id, name, strlen(name));
	for (char *at = *hw_id; !err && *at; at++) {
		if (*at == ' ')
			*at = '-';
	}
	return err;
}

/* The name of the first CPU that has one; *name stays NULL if none has. */
static int read_cpu_name(const struct env_tools *tools, char **name)
{
	FILE *file = fopen(tools->cpuinfo, "re");
	char line[1024];
	int err = 0;

	while (file && !err && !*name && fgets(line, sizeof(line), file)) {
		char *rest = line;

		if (strncmp(line, "model name", strlen("model name")) != 0)
			continue;
		strsep(&rest, ":");
		if (rest) {
			const char *value = strsep(&rest, ":");

			err = copy_trimmed(name, value, strlen(value));
		}
	}
	if (file)
		fclose(file);
	return err;
}

/* gpu_name may be NULL. */
static int collect_hw_id(struct env_host *host, const struct env_tools *tools, char *gpu_name)
{
	char *cpu_name = NULL;
	int err = 0;

	if (gpu_name)
		err = make_hw_id(&host->hw_id, gpu_name, true);
	if (err || (host->hw_id && *host->hw_id))
		return err;
	free(host->hw_id);
	host->hw_id = NULL;
	err = read_cpu_name(tools, &cpu_name);
	if (!err && cpu_name)
		err = make_hw_id(&host->hw_id, cpu_name, false);
	else if (!err)
		err = copy_trimmed(&host->hw_id, "unknown", strlen("unknown"));
	free(cpu_name);
	return err;
}

/* The engine itself finds nvidia-smi in PATH, and may use devices that are hidden from the tool. */
static void warn_of_gpu(const struct env_tools *tools)
{
	if (!tools->gpu_driver || access(tools->gpu_driver, F_OK))
		return;
	log_warn("NVIDIA's driver is loaded, but nvidia-smi fails or is in none of the usual "
		 "folders: the env hash is that of a machine without a GPU");
}

static int collect_gpu(struct env_host *host, const struct env_tools *tools, bool *hangs)
{
	char *fields[GPU_FIELDS];
	int err = query_gpu(tools, hangs, GPU_QUERY, fields, GPU_FIELDS);

	if (!err && !*hangs && !fields[GPU_NAME])
		warn_of_gpu(tools);
	if (!err)
		err = collect_hw_id(host, tools, fields[GPU_NAME]);
	host->driver = fields[GPU_DRIVER];
	fields[GPU_DRIVER] = NULL;
	if (fields[GPU_CLOCK])
		host->has_clock = !rust_parse_u32(fields[GPU_CLOCK], &host->clock_mhz);
	if (fields[GPU_POWER_LIMIT]) {
		fields[GPU_POWER_LIMIT][strcspn(fields[GPU_POWER_LIMIT], ".")] = '\0';
		host->has_power_limit =
			!rust_parse_u32(fields[GPU_POWER_LIMIT], &host->power_limit_w);
	}
	if (fields[GPU_PERSISTENCE]) {
		host->has_persistence = true;
		host->persistence = !strcmp(fields[GPU_PERSISTENCE], "Enabled");
	}
	for (size_t i = 0; i < GPU_FIELDS; i++)
		free(fields[i]);
	return err;
}

/* Finds 12.4 in "…, release 12.4, V12.4.131"; *release stays NULL if there is none. */
static int find_release(char **release, char *output)
{
	char *line;

	while ((line = strsep(&output, "\n"))) {
		const char *at = strstr(line, "release ");
		const char *comma = at ? strchr(at, ',') : NULL;

		if (!comma)
			continue;
		at += strlen("release ");
		return copy_trimmed(release, at, (size_t)(comma - at));
	}
	return 0;
}

/* The CUDA version of the toolkit, or else of the driver. */
static int collect_cuda(struct env_host *host, const struct env_tools *tools, bool *hangs)
{
	char path[PATH_SIZE], output[OUTPUT_SIZE];
	const char *arguments[] = {path, "--version", NULL};
	int status, err = 0;

	if (find_program(tools, "nvcc", path) && !run_program(tools, arguments, output, &status))
		err = find_release(&host->cuda, output);
	if (err || host->cuda)
		return err;
	return query_gpu(tools, hangs, "--query-gpu=cuda_version", &host->cuda, 1);
}

/* Takes 1.78.0 from "rustc 1.78.0 (9b00956e5 2024-04-29)". */
static int collect_rust(struct env_host *host, const struct env_tools *tools)
{
	char path[PATH_SIZE], output[OUTPUT_SIZE], *rest = output;
	const char *arguments[] = {path, "--version", NULL};
	const char *version = NULL;
	bool found;
	int status;

	if (tools->rustc && tools->rustc[0] == '/') {
		snprintf(path, sizeof(path), "%s", tools->rustc);
		found = is_program(path);
	} else {
		found = find_program(tools, "rustc", path);
	}
	if (found && !run_program(tools, arguments, output, &status) &&
	    strtok_r(output, " \t\r\n\v\f", &rest))
		version = strtok_r(NULL, " \t\r\n\v\f", &rest);
	host->rust = strdup(version ? version : "unknown");
	return host->rust ? 0 : -ENOMEM;
}

int env_host_collect(struct env_host *host, const struct env_tools *tools)
{
	bool hangs = false;
	int err;

	memset(host, 0, sizeof(*host));
	err = collect_gpu(host, tools, &hangs);
	if (!err)
		err = collect_cuda(host, tools, &hangs);
	if (!err)
		err = collect_rust(host, tools);
	return err;
}

void env_host_clear(struct env_host *host)
{
	free(host->hw_id);
	free(host->driver);
	free(host->cuda);
	free(host->rust);
	memset(host, 0, sizeof(*host));
}

/* The environment document. */

struct variable {
	char *name;
	const char *value;
	size_t index; /* in the environment */
};

typedef VEC(struct variable) variable_vec;

static void clear_variables(variable_vec *variables)
{
	vec_for_each (variable, variables)
		free(variable->name);
	vec_free(variables);
}

/* Sorts by the bytes of the names; equal names keep their order. */
static int compare_variables(const void *a, const void *b)
{
	const struct variable *left = a, *right = b;
	int order = strcmp(left->name, right->name);

	return order ? order : left->index < right->index ? -1 : 1;
}

static int find_variables(variable_vec *found, char *const *environment)
{
	int err = 0;

	for (size_t i = 0; !err && environment[i]; i++) {
		struct variable variable = {.index = i};
		const char *equals = strchr(environment[i], '=');

		if (!equals || strncmp(environment[i], PREFIX, strlen(PREFIX)) != 0)
			continue;
		variable.name = strndup(environment[i], (size_t)(equals - environment[i]));
		variable.value = equals + 1;
		err = variable.name ? vec_push(found, variable) : -ENOMEM;
		if (err)
			free(variable.name);
	}
	return err;
}

/* Sorts like the engine's map, which keeps the last of equal names. */
static void sort_variables(variable_vec *variables)
{
	struct variable *items = variables->items;
	size_t kept = 0;

	vec_sort(variables, compare_variables);
	for (size_t i = 0; i < variables->count; i++) {
		if (i + 1 < variables->count && !strcmp(items[i].name, items[i + 1].name))
			free(items[i].name);
		else
			items[kept++] = items[i];
	}
	variables->count = kept;
}

/*
 * The engine infers what a variable affects from these words in its name (ferrum-types,
 * runtime_config.rs, infer_effects). It added words over time, together with new variables.
 */
static const char diagnostics_words[] = "DIAG PROF TRACE DUMP LOG_CONFIG CAPTURE DEBUG";
static const char memory_words[] = "KV BATCHED_TOKENS PAGED_MAX_SEQS MODEL_LEN FIT_POLICY "
				   "STATE_MAX_SLOTS REUSABLE_EXECUTION MEMORY";
static const char correctness_words[] =
	"PREFIX_CACHE MODEL_PATH MODEL_LEN FIT_POLICY RUNTIME_MEMORY_BUDGET NATIVE ARTIFACT SPEC_ "
	"REF_ DTYPE ATTENTION_POLICY REUSABLE_EXECUTION";
static const char performance_words[] =
	"MOE VLLM MARLIN PAGED GRAPH SCHED BATCH ATTN ATTENTION_POLICY FLASH CUDA TRITON GREEDY "
	"REUSABLE_EXECUTION FA";

static bool has_any(const char *name, const char *words)
{
	for (size_t length; *words; words += length + (words[length] == ' ')) {
		length = strcspn(words, " ");
		if (memmem(name, strlen(name), words, length))
			return true;
	}
	return false;
}

static void write_effects(struct json *json, const char *name)
{
	bool diagnostics = has_any(name, diagnostics_words);
	bool memory = has_any(name, memory_words);
	bool correctness = has_any(name, correctness_words);

	json_array_begin(json, "affects");
	if (correctness)
		json_string(json, NULL, "correctness");
	if (!(diagnostics || memory || correctness) || has_any(name, performance_words))
		json_string(json, NULL, "performance");
	if (memory)
		json_string(json, NULL, "memory");
	if (diagnostics)
		json_string(json, NULL, "diagnostics");
	json_array_end(json);
}

static void write_optional(struct json *json, const char *key, const char *value)
{
	if (value)
		json_string(json, key, value);
}

static void write_gpu(struct json *json, const struct env_host *host)
{
	if (host->has_clock)
		json_uint(json, "gpu_clock_lock_mhz", host->clock_mhz);
	if (host->has_power_limit)
		json_uint(json, "gpu_power_limit_w", host->power_limit_w);
	if (host->has_persistence)
		json_bool(json, "gpu_persistence_mode", host->persistence);
}

static void write_document(FILE *out, const struct env_host *host, const char *commit_sha,
			   const variable_vec *variables)
{
	struct json json = {.out = out};

	json_object_begin(&json, NULL);
	json_string(&json, "commit_sha", commit_sha ? commit_sha : "");
	json_string(&json, "hw_id", host->hw_id);
	write_optional(&json, "driver", host->driver);
	write_optional(&json, "cuda", host->cuda);
	json_string(&json, "rust", host->rust);
	json_array_begin(&json, "ferrum_features");
	json_array_end(&json);
	write_gpu(&json, host);
	json_object_begin(&json, "ferrum_env");
	vec_for_each (variable, variables)
		json_string(&json, variable->name, variable->value);
	json_object_end(&json);
	json_object_begin(&json, "runtime_config");
	json_array_begin(&json, "entries");
	vec_for_each (variable, variables) {
		json_object_begin(&json, NULL);
		json_string(&json, "key", variable->name);
		json_string(&json, "effective_value", variable->value);
		json_string(&json, "source", "env");
		write_effects(&json, variable->name);
		json_object_end(&json);
	}
	json_array_end(&json);
	json_object_end(&json);
	json_object_end(&json);
}

int env_collect_document(char **text, const struct env_host *host, const char *commit_sha,
			 char *const *environment)
{
	variable_vec variables = {0};
	FILE *out = NULL;
	size_t size = 0;
	int err;

	*text = NULL;
	err = find_variables(&variables, environment);
	if (err)
		goto out;
	sort_variables(&variables);
	out = open_memstream(text, &size);
	if (!out) {
		err = -ENOMEM;
		goto out;
	}
	write_document(out, host, commit_sha, &variables);
	if (fclose(out)) {
		free(*text);
		*text = NULL;
		err = -ENOMEM;
	}
out:
	clear_variables(&variables);
	return err;
}

/* Logs the document without secrets, which env_collect_hash includes in the hash. */
static void log_document(const struct env_host *host, const char *commit_sha,
			 char *const *environment)
{
	struct redactor redactor = {false};
	VEC(char *) shown = {0};
	char *text = NULL;
	int err = 0;

	for (size_t i = 0; !err && environment[i]; i++) {
		size_t length = strlen(environment[i]);
		char *variable;

		if (strncmp(environment[i], PREFIX, strlen(PREFIX)) != 0)
			continue;
		redactor.takes_values = false;
		variable = redact_text(&redactor, environment[i], &length);
		err = variable ? vec_push(&shown, variable) : -ENOMEM;
		if (err)
			free(variable);
	}
	if (!err)
		err = vec_push(&shown, (char *)NULL);
	if (!err)
		err = env_collect_document(&text, host, commit_sha, shown.items);
	if (!err)
		log_debug("environment document: %s", text);
	vec_for_each (variable, &shown)
		free(*variable);
	vec_free(&shown);
	free(text);
}

int env_collect_hash(char hash[ENV_HASH_SIZE], const struct env_host *host, const char *commit_sha,
		     char *const *environment)
{
	struct json_object *document = NULL;
	char error[256] = "";
	char *text = NULL;
	int err;

	err = env_collect_document(&text, host, commit_sha, environment);
	if (!err)
		err = json_read(text, strlen(text), &document, error, sizeof(error));
	/*
	 * Hash the parsed document, not its text: names that are not UTF-8 may have become equal,
	 * and json-c keeps the last of equal keys.
	 */
	if (!err)
		err = env_document_hash(hash, document, error, sizeof(error));
	if (err)
		log_err("environment document: %s", *error ? error : strerror(-err));
	else if (log_level() >= LOG_DEBUG)
		log_document(host, commit_sha, environment);
	json_object_put(document);
	free(text);
	return err;
}
