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

static bool is_there(const struct object *object)
{
	int fd = object->kind[0] == 'p'	  ? bpf_prog_get_fd_by_id(object->id)
		 : object->kind[0] == 'm' ? bpf_map_get_fd_by_id(object->id)
					  : bpf_link_get_fd_by_id(object->id);

	if (fd < 0)
		return false;
	close(fd);
	return true;
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
