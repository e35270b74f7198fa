/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <bpf/libbpf.h>
#include <stdio.h>
#include "sizing.h"

/* Call records: room for 50 ms of the fastest caller, and a bound on the memory of big machines. */
#define RING_RECORDS	 (1u << 17)
#define RING_RECORDS_MIN (1u << 12)
#define RING_BYTES_MAX	 (128ull << 20)

#define SLOTS_MIN   1024u
#define SLOTS_SPARE 512u

static uint32_t round_up_pow2(uint32_t value)
{
	uint32_t power = 1;

	while (power < value && power < (1u << 31))
		power <<= 1;
	return power;
}

static uint32_t read_pid_max(void)
{
	unsigned int pid_max = 4194304;
	FILE *file = fopen("/proc/sys/kernel/pid_max", "re");

	if (!file)
		return pid_max;
	if (fscanf(file, "%u", &pid_max) != 1)
		pid_max = 4194304;
	fclose(file);
	return pid_max;
}

static uint32_t choose_ring_records(enum fbt_detail detail, uint32_t wanted, uint32_t cpu_count)
{
	uint32_t records = wanted ? round_up_pow2(wanted) : RING_RECORDS;

	if (detail == FBT_DETAIL_STEPS)
		return FBT_RING_MARGIN * 2;
	while (!wanted && records > RING_RECORDS_MIN &&
	       (uint64_t)records * cpu_count * sizeof(struct fbt_ring_call) > RING_BYTES_MAX)
		records /= 2;
	return records < FBT_RING_MARGIN * 2 ? FBT_RING_MARGIN * 2 : records;
}

void sizing_choose(struct shared *shared, enum fbt_detail detail, uint32_t ring_records,
		   uint32_t thread_count)
{
	uint32_t wanted = thread_count * 2 + SLOTS_SPARE;
	uint32_t records;

	shared->cpu_count = libbpf_num_possible_cpus();
	shared->id_chunks = read_pid_max() / FBT_IDS + 1;
	shared->slot_count = round_up_pow2(wanted < SLOTS_MIN ? SLOTS_MIN : wanted);
	if (shared->slot_count > FBT_SLOTS_MAX)
		shared->slot_count = FBT_SLOTS_MAX;
	records = choose_ring_records(detail, ring_records, shared->cpu_count);
	while ((1u << shared->ring_shift) < records)
		shared->ring_shift++;
}
