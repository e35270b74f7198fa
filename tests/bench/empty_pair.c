/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * bench_empty_pair [clock | probe PID PATH FUNCTION]: attaches the empty pair, or an empty uprobe
 * on the first instruction of a function, prints "attached", and holds it until stdin ends.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "bench_empty.skel.h"

static int attach_probe(struct bench_empty_bpf *skel, char **argv)
{
	LIBBPF_OPTS(bpf_uprobe_opts, opts, .func_name = argv[4]);

	skel->links.handle_probe = bpf_program__attach_uprobe_opts(
		skel->progs.handle_probe, atoi(argv[2]), argv[3], 0, &opts);
	return skel->links.handle_probe ? 0 : -1;
}

static int attach_pair(struct bench_empty_bpf *skel)
{
	bpf_program__set_autoattach(skel->progs.handle_probe, false);
	return bench_empty_bpf__attach(skel);
}

int main(int argc, char **argv)
{
	struct bench_empty_bpf *skel = bench_empty_bpf__open();
	int err = -1;

	if (skel) {
		skel->rodata->reads_clock = argc > 1 && !strcmp(argv[1], "clock");
		err = bench_empty_bpf__load(skel);
	}
	if (!err)
		err = argc == 5 ? attach_probe(skel, argv) : attach_pair(skel);

	if (err) {
		fprintf(stderr, "empty_pair: cannot be attached\n");
	} else {
		puts("attached");
		fflush(stdout);
		while (getchar() != EOF)
			;
	}
	bench_empty_bpf__destroy(skel);
	return err ? EXIT_FAILURE : EXIT_SUCCESS;
}
