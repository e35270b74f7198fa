/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * fault_left: reads names of BPF objects from stdin, a line "prog ID", "map ID" or "link ID" each.
 * Prints those that the kernel has not freed within 10 s.
 */
#include <bpf/bpf.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define OBJECTS_MAX 512
#define TRIES	    500
#define TRY_US	    20000

struct object {
	char kind[8];
	unsigned int id;
};

/*
 * It is not opened: a BPF_MAP_TYPE_PROG_ARRAY that is opened and closed right after its last file
 * was closed is never freed by Linux 6.18 (prog_array_map_clear takes a reference for work that is
 * pending already: of 300 such maps 73 stayed).
 */
static bool is_there(const struct object *object)
{
	unsigned int before = object->id - 1, next = 0;
	int err = object->kind[0] == 'p'   ? bpf_prog_get_next_id(before, &next)
		  : object->kind[0] == 'm' ? bpf_map_get_next_id(before, &next)
					   : bpf_link_get_next_id(before, &next);

	return !err && next == object->id;
}

int main(void)
{
	struct object objects[OBJECTS_MAX];
	size_t count = 0, left = 0;

	while (count < OBJECTS_MAX && scanf("%7s %u", objects[count].kind, &objects[count].id) == 2)
		count++;
	for (int try = 0; try < TRIES; try++) {
		left = 0;
		for (size_t i = 0; i < count; i++) {
			if (is_there(&objects[i]))
				objects[left++] = objects[i];
		}
		count = left;
		if (!left)
			break;
		usleep(TRY_US);
	}
	for (size_t i = 0; i < left; i++)
		printf("%s %u\n", objects[i].kind, objects[i].id);
	return 0;
}
