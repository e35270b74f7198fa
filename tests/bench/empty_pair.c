/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Attaches the empty pair, says "attached", and holds it until stdin ends. */
#include <stdio.h>
#include <stdlib.h>
#include "bench_empty.skel.h"

int main(void)
{
	struct bench_empty_bpf *skel = bench_empty_bpf__open_and_load();
	int err = skel ? bench_empty_bpf__attach(skel) : -1;

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
