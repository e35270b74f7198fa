/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "env_host.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "log.h"
#include "program_output.h"
#include "rust_number.h"
#include "whitespace.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define OUTPUT_SIZE  8192
#define PATH_SIZE    4096

static const char *const safe_folders[] = {"/usr/local/cuda/bin",
					   "/usr/local/sbin",
					   "/usr/local/bin",
					   "/usr/sbin",
					   "/usr/bin",
					   "/sbin",
					   "/bin",
					   NULL};

/* The engine asks for them one by one; a call may take a second where the driver is not loaded. */
enum gpu_field { GPU_NAME, GPU_DRIVER, GPU_CLOCK, GPU_POWER_LIMIT, GPU_PERSISTENCE, GPU_FIELDS };
#define GPU_QUERY  "--query-gpu=name,driver_version,clocks.gr,power.limit,persistence_mode"
#define GPU_FORMAT "--format=csv,noheader,nounits"

struct env_tools env_tools_default(void)
{
	return (struct env_tools){
		.folders = safe_folders,
		.rustc = getenv("RUSTC"),
		.cpuinfo = "/proc/cpuinfo",
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

/* With the folders as PATH, and with what rustup's rustc needs to find its toolchain. */
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

/* *copy is a part of a text without the white space around it. */
static int copy_trimmed(char **copy, const char *text, size_t size)
{
	whitespace_trim(&text, &size);
	*copy = strndup(text, size);
	return *copy ? 0 : -ENOMEM;
}

/* As the engine takes no value for one that is there. */
static bool is_value(const char *text)
{
	return *text && strcmp(text, "[Not Supported]") != 0 && strcmp(text, "[N/A]") != 0;
}

/*
 * The first GPU's line of an nvidia-smi query, cut at its commas: NULL for what has no value. Does
 * not ask a driver that hung before.
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

/* As the engine, but for letters beyond ASCII, which no product name has. */
static void lower(char *text)
{
	for (; *text; text++)
		*text = (char)tolower((unsigned char)*text);
}

/* "NVIDIA GeForce RTX 4090": "rtx-4090"; of a processor no word is left out. */
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

/* The name of the first processor that has one. *name stays NULL without. */
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

static int collect_gpu(struct env_host *host, const struct env_tools *tools, bool *hangs)
{
	char *fields[GPU_FIELDS];
	int err = query_gpu(tools, hangs, GPU_QUERY, fields, GPU_FIELDS);

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

/* "…, release 12.4, V12.4.131" */
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

/* The toolkit's version, else the driver's. */
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

/* "rustc 1.78.0 (9b00956e5 2024-04-29)" */
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
