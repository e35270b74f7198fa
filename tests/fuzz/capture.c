/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* The input is a capture file that is replayed. */
#include "replayed.h"

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	replay_set_up();
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	replay_bytes(data, size, size & 1);
	return 0;
}
