/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* bench_empty_pair [clock]: attaches the empty pair, prints "attached", holds it until stdin ends.
 */
#include <stdio.h>
#include <stdlib.h>
#include "bench_empty.skel.h"

int main(int argc, char **argv)
{
	struct bench_empty_bpf *skel = bench_empty_bpf__open();
	int err = -1;

	if (skel) {
		skel->rodata->reads_clock = argc > 1;
		err = bench_empty_bpf__load(skel);
	}
	if (!err)
		err = bench_empty_bpf__attach(skel);

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
