/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Small engines that the compiler builds and that run while a test examines them. */
#ifndef FBT_ENGINE_FIXTURE_H
#define FBT_ENGINE_FIXTURE_H

#include "child_fixture.h"
#include "elf_fixture.h"
#include "steps/find.h"

/* An engine that prints "ready" in main() and then sleeps. */
static const char engine_source[] =
	"#include <stdio.h>\n#include <unistd.h>\n"
	"__attribute__((noinline)) int engine_step(int x) { return x > 3 ? getpid() + 1 : x; }\n"
	"__attribute__((noinline)) void engine_spin(void) { for (;;) pause(); }\n"
	"#define MANY(n) __attribute__((noinline)) int many_##n(int x) { return x * n + getpid(); "
	"}\n"
	"MANY(1) MANY(2) MANY(3) MANY(4) MANY(5) MANY(6) MANY(7) MANY(8) MANY(9)\n"
	"MANY(10) MANY(11) MANY(12) MANY(13) MANY(14) MANY(15) MANY(16) MANY(17)\n"
	"int llama_decode(void *ctx, int x) { return engine_step(x) + 1; }\n"
	"int main(int argc, char **argv) { if (argc > 5) return engine_step(argc);\n"
	"	if (argc > 4) return llama_decode(argv, argc);\n"
	"	puts(\"ready\"); fflush(stdout); engine_spin(); }\n";

__attribute__((unused)) static int build(void **state)
{
	struct elf_fixture *fixture;

	if (elf_fixture_set_up(state))
		return -1;
	fixture = *state;
	elf_fixture_write(fixture, "engine.c", engine_source);
	elf_fixture_write(fixture, "go.c",
			  "__attribute__((section(\".go.buildinfo\"))) int go_info = 1;\n"
			  "#include \"engine.c\"\n");
	elf_fixture_run(fixture,
			"gcc -O1 -fcf-protection=full -Wl,--build-id engine.c -o engine && "
			"strip -o stripped engine && gcc -O1 go.c -o go");
	return 0;
}

/* Starts a program of the fixture's folder and waits until it is in main(). */
__attribute__((unused)) static pid_t start(struct elf_fixture *fixture, const char *name)
{
	char path[128], ready[6];
	int ends[2];
	pid_t child;

	elf_fixture_need(fixture, "gcc");
	snprintf(path, sizeof(path), "%s/%s", fixture->folder, name);
	assert_int_equal(pipe(ends), 0);
	child = child_fork();
	if (!child) {
		dup2(ends[1], 1);
		execl(path, path, NULL);
		_exit(127);
	}
	close(ends[1]);
	assert_int_equal(read(ends[0], ready, sizeof(ready)), sizeof(ready));
	close(ends[0]);
	return child;
}

__attribute__((unused)) static void stop(pid_t child)
{
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

__attribute__((unused)) static int find(pid_t tgid, const char *text, struct target_options options,
					function_vec *functions)
{
	struct target_seen *seen = target_seen__new();
	struct step_spec spec;
	int found;

	assert_non_null(seen);
	if (text) {
		assert_int_equal(step_spec_parse(&spec, text), 0);
		options.specs = &spec;
		options.spec_count = 1;
	}
	found = target_find(tgid, &options, seen, functions);
	if (text)
		step_spec_clear(&spec);
	target_seen__free(seen);
	return found;
}

__attribute__((unused)) static void release(function_vec *functions)
{
	vec_for_each (function, functions)
		step_function_free(*function);
	vec_free(functions);
}

#endif
