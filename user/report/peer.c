/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* For which other process a step waited, in the JSON report. */
#include "base/arith.h"
#include "base/json.h"
#include "judge/peers.h"
#include "judge/text.h"
#include "model/syscalls.h"
#include "report/part.h"

static void write_stop(struct json *json, const struct fbt_peer *peer)
{
	if (peer_did(peer) != PEER_STOPPED) {
		json_null(json, "stop_reason");
		json_null(json, "tracer");
		json_null(json, "tracer_name");
		return;
	}
	json_string(json, "stop_reason", stop_reason_name((enum fbt_stop_reason)peer->stop_reason));
	if (peer->tracer)
		json_uint(json, "tracer", peer->tracer);
	else
		json_null(json, "tracer");
	json_string(json, "tracer_name", *peer->tracer_comm ? peer->tracer_comm : NULL);
}

/* The members of a process, without its braces. */
static void write_members(struct json *json, const struct window *window,
			  const struct fbt_peer *peer)
{
	char label[24];
	bool has_call = peer->nr != FBT_PEER_NR_UNKNOWN;

	json_uint(json, "pid", peer->peer);
	json_uint(json, "tid", peer->peer_tid);
	json_string(json, "name", *peer->comm ? peer->comm : NULL);
	json_string(json, "way", peer_way_name((enum fbt_peer_way)peer->way));
	json_uint(json, "others", peer->others);
	json_string(json, "did", peer_did_name(peer_did(peer)));
	json_uint(json, "did_ns", peer_did_ns(peer));
	json_uint(json, "seen_ns", sub_saturating(peer->time_ns, peer->first_ns));
	json_uint(json, "cpu_ns", peer->cpu_ns);
	json_uint(json, "cpu_wait_ns", peer->delay_ns);
	json_uint(json, "stopped_ns", peer->stopped_ns);
	json_uint(json, "asleep_ns", peer->asleep_ns);
	json_uint(json, "throttled_periods", peer->throttled_periods);
	json_string(json, "call",
		    has_call ? syscall_label((enum fbt_arch)window->record.arch, peer->nr, label)
			     : NULL);
	json_string(json, "step", peer->kind ? window__kind_name(window, peer->kind) : NULL);
	write_stop(json, peer);
}

void report_json_peer(struct json *json, const struct window *window, const struct step_peer *peer,
		      uint64_t wait_ns)
{
	if (peer->record.header.type != FBT_EVENT_PEER)
		return;
	json_object_begin(json, "peer");
	json_uint(json, "wait_ns", wait_ns);
	write_members(json, window, &peer->record);
	if (peer->beyond.header.type == FBT_EVENT_PEER) {
		json_object_begin(json, "waited_for");
		write_members(json, window, &peer->beyond);
		json_object_end(json);
	} else {
		json_null(json, "waited_for");
	}
	json_object_end(json);
}
