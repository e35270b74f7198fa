/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * capture_json FILE: prints the calls, steps, wakes, files, stacks and losses of a capture as one
 * JSON array, in order. Each byte of a string becomes one character.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../../include/fbt_event.h"
#include "../../include/fbt_explain.h"
#include "../../include/fbt_look.h"

struct capture_start {
	uint64_t magic;
	uint32_t version;
	uint32_t header_bytes;
};

static const char *comma = "";

static void write_call(const struct fbt_call *call)
{
	printf("%s{\"type\": \"call\", \"tgid\": %u, \"tid\": %u, \"nr\": %u, \"ret\": %lld, "
	       "\"flags\": %u, \"args\": [%llu, %llu], \"file\": %u, \"start_ns\": %llu, "
	       "\"duration_ns\": %llu, \"calls\": %u}",
	       comma, call->tgid, call->tid, call->nr, (long long)call->ret, call->header.flags,
	       (unsigned long long)call->args[0], (unsigned long long)call->args[1], call->file,
	       (unsigned long long)call->start_ns, (unsigned long long)call->duration_ns,
	       call->header.flags & FBT_CALL_RUN ? call->run.calls : 1);
}

static void write_peer(const struct fbt_peer *peer)
{
	printf("%s{\"type\": \"peer\", \"tid\": %u, \"step_start_ns\": %llu, \"first_ns\": %llu, "
	       "\"time_ns\": %llu, \"peer\": %u, \"peer_tid\": %u, \"way\": %u, \"others\": %u, "
	       "\"cpu_ns\": %llu, \"delay_ns\": %llu, \"stopped_ns\": %llu, \"asleep_ns\": %llu, "
	       "\"nr\": %d, \"throttled\": %u, \"kind\": %u}",
	       comma, peer->tid, (unsigned long long)peer->step_start_ns,
	       (unsigned long long)peer->first_ns, (unsigned long long)peer->time_ns, peer->peer,
	       peer->peer_tid, peer->way, peer->others, (unsigned long long)peer->cpu_ns,
	       (unsigned long long)peer->delay_ns, (unsigned long long)peer->stopped_ns,
	       (unsigned long long)peer->asleep_ns, (int)peer->nr, peer->throttled_periods,
	       peer->kind);
}

static void write_numbers(const char *name, const unsigned long long numbers[FBT_MAPPING_COUNT])
{
	printf("\"%s\": [", name);
	for (int i = 0; i < FBT_MAPPING_COUNT; i++)
		printf("%s%llu", i ? ", " : "", numbers[i]);
	printf("], ");
}

static void write_faults(const struct fbt_step_faults *faults)
{
	unsigned long long ns[FBT_MAPPING_COUNT], count[FBT_MAPPING_COUNT];

	for (int i = 0; i < FBT_MAPPING_COUNT; i++) {
		ns[i] = faults->ns[i];
		count[i] = faults->count[i];
	}
	write_numbers("faults_ns", ns);
	write_numbers("faults_count", count);
	printf("\"faults_cpu_ns\": %llu, \"faults_asleep_ns\": %llu, \"major_ns\": %llu, "
	       "\"major_count\": %u, \"faults_mean_ps\": %llu, \"faults_file\": %u, "
	       "\"faults_file_ns\": %llu, ",
	       (unsigned long long)faults->cpu_ns, (unsigned long long)faults->asleep_ns,
	       (unsigned long long)faults->major_ns, faults->major_count,
	       (unsigned long long)faults->mean_ps, faults->file,
	       (unsigned long long)faults->file_ns);
}

static void write_step(const struct fbt_step *step)
{
	unsigned long long calls_ns = 0, delay_ns = 0;

	for (int i = 0; i < FBT_CATEGORY_COUNT; i++) {
		calls_ns += step->sums[i].ns;
		delay_ns += step->call_delay_ns[i];
	}
	printf("%s{\"type\": \"step\", \"tgid\": %u, \"tid\": %u, \"flags\": %u, \"end\": %u, "
	       "\"run_delay_ns\": %llu, \"minor\": %u, \"major\": %u, \"start_ns\": %llu, "
	       "\"end_ns\": %llu, ",
	       comma, step->tgid, step->tid, step->header.flags, step->end,
	       (unsigned long long)step->run_delay_ns, step->minor_faults, step->major_faults,
	       (unsigned long long)step->start_ns, (unsigned long long)step->end_ns);
	/* What was stolen before a step may count in it: its CPU time may be less than 0. */
	printf("\"cpu_ns\": %lld, \"asleep_ns\": %llu, \"fault_wait_ns\": %llu, "
	       "\"calls_ns\": %llu, \"call_delay_ns\": %llu, ",
	       (long long)step->cpu_ns, (unsigned long long)step->asleep_ns,
	       (unsigned long long)step->fault_wait_ns, calls_ns, delay_ns);
	write_faults(&step->faults);
	printf("\"team_ns\": %llu, \"team_cpu_ns\": %llu, \"team_delay_ns\": %llu, "
	       "\"starved_ns\": %llu, \"starved_tid\": %u, \"steal_us\": %u}",
	       (unsigned long long)step->team_ns, (unsigned long long)step->team_cpu_ns,
	       (unsigned long long)step->team_delay_ns, (unsigned long long)step->starved_ns,
	       step->starved_tid, step->steal_us);
}

static void write_wake(const struct fbt_wake *wake)
{
	printf("%s{\"type\": \"wake\", \"tid\": %u, \"start_ns\": %llu, \"wake_ns\": %llu, "
	       "\"cpu_ns\": %llu, \"delay_ns\": %llu, \"call_ns\": %llu, \"unknown_ns\": %llu, "
	       "\"nr\": %u, \"nr_ns\": %llu, \"waker\": %u, \"flags\": %u, "
	       "\"stopped_ns\": %llu, \"fault_wait_ns\": %llu, \"off_ns\": %llu}",
	       comma, wake->tid, (unsigned long long)wake->start_ns,
	       (unsigned long long)wake->wake_ns, (unsigned long long)wake->cpu_ns,
	       (unsigned long long)wake->delay_ns, (unsigned long long)wake->call_ns,
	       (unsigned long long)wake->unknown_ns, wake->nr, (unsigned long long)wake->nr_ns,
	       wake->waker_tid, wake->flags, (unsigned long long)wake->stopped_ns,
	       (unsigned long long)wake->fault_wait_ns, (unsigned long long)wake->off_ns);
}

static void write_text(const char *name, const char *text)
{
	printf(", \"%s\": \"", name);
	for (; *text; text++)
		printf("\\u%04x", (unsigned char)*text);
	printf("\"");
}

static void write_code(const struct fbt_code *code)
{
	const char *text = (const char *)(code + 1);

	printf("%s{\"type\": \"code\", \"id\": %u, \"address\": %llu, \"offset\": %llu, "
	       "\"flags\": %u",
	       comma, code->id, (unsigned long long)code->address, (unsigned long long)code->offset,
	       code->header.flags);
	write_text("function", text);
	text += strlen(text) + 1;
	write_text("path", text);
	text += strlen(text) + 1;
	write_text("build_id", text);
	printf("}");
}

static void write_stack(const struct fbt_stack *stack)
{
	printf("%s{\"type\": \"stack\", \"tid\": %u, \"owner\": %u, \"nr\": %u, \"flags\": %u, "
	       "\"start_ns\": %llu, \"codes\": [",
	       comma, stack->tid, stack->owner, stack->nr, stack->header.flags,
	       (unsigned long long)stack->start_ns);
	for (unsigned int i = 0; i < stack->count && i < FBT_STACK_FRAMES; i++)
		printf("%s%u", i ? ", " : "", stack->codes[i]);
	printf("]}");
}

static void write_file(const struct fbt_file *file)
{
	const char *path = (const char *)(file + 1);

	printf("%s{\"type\": \"file\", \"id\": %u, \"tgid\": %u, \"fd\": %d, \"mode\": %u, "
	       "\"ino\": %llu, \"device\": %u, \"node_device\": %u, \"path\": \"",
	       comma, file->id, file->tgid, file->fd, file->mode, (unsigned long long)file->ino,
	       file->device, file->node_device);
	for (; *path; path++)
		printf("\\u%04x", (unsigned char)*path);
	printf("\"}");
}

static void write_window(const struct fbt_window *window)
{
	printf("%s{\"type\": \"window\", \"fault_ps\": %llu}", comma,
	       (unsigned long long)window->fault_ps);
}

static void write_lost(const struct fbt_lost *lost)
{
	printf("%s{\"type\": \"lost\", \"count\": [", comma);
	for (int i = 0; i < FBT_LOST_COUNT; i++)
		printf("%s%llu", i ? ", " : "", (unsigned long long)lost->count[i]);
	printf("]}");
}

static void write_look(const struct fbt_look_thread *look)
{
	printf("%s{\"type\": \"look\", \"tid\": %u, \"owner\": %u, \"depth\": %u, \"flags\": %u, "
	       "\"start_ns\": %llu, \"time_ns\": %llu, \"codes\": [",
	       comma, look->tid, look->owner, look->depth, look->header.flags,
	       (unsigned long long)look->start_ns, (unsigned long long)look->time_ns);
	for (unsigned int i = 0; i < look->count && i < FBT_STACK_FRAMES; i++)
		printf("%s%u", i ? ", " : "", look->codes[i]);
	printf("]}");
}

static void write_sites(const struct fbt_fault_sites *sites)
{
	printf("%s{\"type\": \"fault_sites\", \"tid\": %u, \"start_ns\": %llu, \"faults\": %llu, "
	       "\"in_calls\": %llu, \"sites\": [",
	       comma, sites->tid, (unsigned long long)sites->start_ns,
	       (unsigned long long)sites->faults, (unsigned long long)sites->in_calls);
	for (unsigned int i = 0; i < sites->count && i < FBT_FAULT_SITES; i++) {
		const struct fbt_fault_site *site = &sites->sites[i];

		printf("%s{\"faults\": %u, \"majors\": %u, \"mapping\": %u, \"file\": %u, "
		       "\"codes\": [%u, %u, %u, %u]}",
		       i ? ", " : "", site->faults, site->majors, site->mapping, site->file,
		       site->codes[0], site->codes[1], site->codes[2], site->codes[3]);
	}
	printf("]}");
}

static void write_event(const struct fbt_header *event)
{
	if (event->type == FBT_EVENT_WINDOW)
		write_window((const struct fbt_window *)event);
	else if (event->type == FBT_EVENT_CALL)
		write_call((const struct fbt_call *)event);
	else if (event->type == FBT_EVENT_STEP)
		write_step((const struct fbt_step *)event);
	else if (event->type == FBT_EVENT_WAKE)
		write_wake((const struct fbt_wake *)event);
	else if (event->type == FBT_EVENT_PEER)
		write_peer((const struct fbt_peer *)event);
	else if (event->type == FBT_EVENT_FILE)
		write_file((const struct fbt_file *)event);
	else if (event->type == FBT_EVENT_CODE)
		write_code((const struct fbt_code *)event);
	else if (event->type == FBT_EVENT_STACK)
		write_stack((const struct fbt_stack *)event);
	else if (event->type == FBT_EVENT_LOOK_THREAD)
		write_look((const struct fbt_look_thread *)event);
	else if (event->type == FBT_EVENT_FAULT_SITES)
		write_sites((const struct fbt_fault_sites *)event);
	else if (event->type == FBT_EVENT_LOST)
		write_lost((const struct fbt_lost *)event);
	else
		return;
	comma = ",\n";
}

int main(int argc, char **argv)
{
	static _Alignas(8) char record[1 << 20];
	struct fbt_header *event = (struct fbt_header *)record;
	FILE *file = argc == 2 ? fopen(argv[1], "r") : NULL;
	struct capture_start start;

	if (!file || fread(&start, sizeof(start), 1, file) != 1 ||
	    fseek(file, start.header_bytes, SEEK_SET))
		return EXIT_FAILURE;
	printf("[");
	while (fread(event, sizeof(*event), 1, file) == 1) {
		if (event->size < sizeof(*event) || event->size > sizeof(record) ||
		    fread(event + 1, event->size - sizeof(*event), 1, file) != 1)
			return EXIT_FAILURE;
		write_event(event);
	}
	puts("]");
	fclose(file);
	return EXIT_SUCCESS;
}
