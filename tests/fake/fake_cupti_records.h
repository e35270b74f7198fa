/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * The records of the double of libcupti, and their lengths by release. Bytes that this file does
 * not name are filled with poison.
 */
#ifndef FBT_TESTS_FAKE_CUPTI_RECORDS_H
#define FBT_TESTS_FAKE_CUPTI_RECORDS_H

#include "fake_cupti_state.h"

#define POISON	     0xa5
#define RECORD_BYTES 256 /* no record is longer */

struct kernel_record {
	uint32_t kind;
	uint8_t cache[2];
	uint16_t registers;
	uint32_t reserved_global[2];
	uint64_t start, end, completed;
	uint32_t device, context, stream;
	int32_t grid[3], block[3];
	int32_t static_shared, dynamic_shared;
	uint32_t local_thread, local_total;
	uint32_t correlation;
	int64_t grid_id;
	const char *name;
	void *reserved;
	uint64_t queued, submitted;
	uint8_t launch[8];
	uint64_t graph_node;
	uint32_t shared_limit;
	uint32_t graph;
};

struct copy_record {
	uint32_t kind;
	uint8_t copy_kind, source, target, flags;
	uint64_t bytes, start, end;
	uint32_t device, context, stream, correlation, runtime_correlation, pad;
	void *reserved;
	uint64_t graph_node;
	uint32_t graph;
};

struct peer_record {
	uint32_t kind;
	uint8_t copy_kind, source, target, flags;
	uint64_t bytes, start, end;
	uint32_t device, context, stream, source_device, source_context;
	uint32_t target_device, target_context, correlation;
	void *reserved;
	uint64_t graph_node;
	uint32_t graph;
};

struct set_record {
	uint32_t kind, value;
	uint64_t bytes, start, end;
	uint32_t device, context, stream, correlation;
	uint16_t flags, memory;
	uint32_t pad;
	void *reserved;
	uint64_t graph_node;
	uint32_t graph;
};

struct api_record {
	uint32_t kind, cbid;
	uint64_t start, end;
	uint32_t process, thread, correlation, result;
};

struct sync_record {
	uint32_t kind, type;
	uint64_t start, end;
	uint32_t correlation, context, stream, event;
};

struct overhead_record {
	uint32_t kind, overhead, object, process, thread, pad;
	uint64_t start, end;
	uint32_t correlation, pad2; /* from 12.3 on */
	void *data;		    /* from 12.4 on; the client must free it */
};

struct device_record {
	uint32_t kind, flags;
	uint64_t bandwidth, memory;
	uint32_t constant, l2, warp, clock;
	uint32_t engines, sms, ipc, warps_per_sm, blocks_per_sm, shared_per_sm;
	uint32_t registers_per_sm, registers_per_block, shared_per_block, threads_per_block;
	uint32_t rest[8];
	uint32_t id, ecc;
	uint8_t uuid[16];
	const char *name;
};

#define ASSERT_AT(type, member, offset)                                                            \
	_Static_assert(offsetof(struct type, member) == (offset), #type "." #member)
ASSERT_AT(kernel_record, correlation, 92);
ASSERT_AT(kernel_record, graph, 156);
ASSERT_AT(copy_record, graph, 72);
ASSERT_AT(peer_record, graph, 80);
ASSERT_AT(set_record, graph, 72);
ASSERT_AT(api_record, result, 36);
ASSERT_AT(sync_record, event, 36);
ASSERT_AT(overhead_record, start, 24);
ASSERT_AT(overhead_record, data, 48);
ASSERT_AT(device_record, name, 136);
ASSERT_AT(device_record, id, 112);

/* Length of a record of that kind in this release; 0: the release has none. */
static size_t record_bytes(uint32_t kind)
{
	uint32_t v = cupti.config.version;

	switch (kind) {
	case KIND_KERNEL:
	case KIND_SERIAL_KERNEL:
		return v >= 130400   ? 232
		       : v >= 130100 ? 224
		       : v >= 130000 ? 216
		       : v >= 19     ? 208
		       : v >= 18     ? 200
		       : v >= 16     ? 176
		       : v >= 14     ? 168
				     : 160;
	case KIND_MEMCPY:
		return v >= 26 ? 96 : v >= 16 ? 88 : 80;
	case KIND_PEER_COPY:
		return v >= 16 ? 96 : 88;
	case KIND_MEMSET:
		return v >= 16 ? 88 : 80;
	case KIND_DRIVER:
	case KIND_RUNTIME:
		return 40;
	case KIND_SYNC:
		return v >= 26 ? 56 : 40;
	case KIND_OVERHEAD:
		return v >= 22 ? 56 : v >= 21 ? 48 : 40;
	case KIND_DEVICE:
		return v >= 22 ? 184 : 176;
	case KIND_CONTEXT:
		return v >= 23 ? 32 : 24;
	case KIND_STREAM:
		return 24;
	default:
		return 0;
	}
}

#endif
