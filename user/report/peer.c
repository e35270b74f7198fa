/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Other processes in the JSON report: for which one a step waited, and which one stopped it. */
#include "base/arith.h"
#include "base/json.h"
#include "judge/peers.h"
#include "judge/stopper.h"
#include "judge/text.h"
#include "model/syscalls.h"
#include "report/part.h"

static void put_pid(struct json *json, const char *key, uint32_t pid)
{
	if (pid)
		json_uint(json, key, pid);
	else
		json_null(json, key);
}

void report_json_sender(struct json *json, const struct fbt_stop_sender *sender)
{
	const char *signal = stop_signal_name(sender->number);

	if (sender->header.type != FBT_EVENT_STOP_SENDER || !signal)
		return;
	json_object_begin(json, "sender");
	json_string(json, "signal", signal);
	json_string(json, "origin", sender_origin_name((enum fbt_sender_origin)sender->origin));
	put_pid(json, "pid", sender->sender);
	json_string(json, "name", *sender->comm ? sender->comm : NULL);
	put_pid(json, "parent_pid", sender->parent);
	json_string(json, "parent_name", *sender->parent_comm ? sender->parent_comm : NULL);
	json_object_end(json);
}

static void write_stop(struct json *json, const struct fbt_peer *peer,
		       const struct fbt_stop_sender *sender)
{
	if (peer_did(peer) != PEER_STOPPED) {
		json_null(json, "stop_reason");
		json_null(json, "tracer");
		json_null(json, "tracer_name");
		return;
	}
	json_string(json, "stop_reason", stop_reason_name((enum fbt_stop_reason)peer->stop_reason));
	put_pid(json, "tracer", peer->tracer);
	json_string(json, "tracer_name", *peer->tracer_comm ? peer->tracer_comm : NULL);
	report_json_sender(json, sender);
}

/* The members of a process, without its braces. */
static void write_members(struct json *json, const struct window *window,
			  const struct fbt_peer *peer, const struct fbt_stop_sender *sender)
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
	write_stop(json, peer, sender);
}

void report_json_peer(struct json *json, const struct window *window, const struct step_peer *peer,
		      uint64_t wait_ns)
{
	if (peer->record.header.type != FBT_EVENT_PEER)
		return;
	json_object_begin(json, "peer");
	json_uint(json, "wait_ns", wait_ns);
	put_pid(json, "via_tid", peer->record.via);
	write_members(json, window, &peer->record, &peer->sender);
	if (peer->beyond.header.type == FBT_EVENT_PEER) {
		json_object_begin(json, "waited_for");
		write_members(json, window, &peer->beyond, &peer->beyond_sender);
		json_object_end(json);
	} else {
		json_null(json, "waited_for");
	}
	json_object_end(json);
}
