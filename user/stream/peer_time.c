/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "stream/peer_time.h"

#include "base/arith.h"

void peer_time_add(struct fbt_peer *record, const struct peer_reading *last,
		   const struct peer_reading *now, bool is_stopped, uint64_t now_ns)
{
	uint64_t left_ns = sub_saturating(now_ns, record->time_ns);

	record->cpu_ns += take_u64(sub_saturating(now->use.cpu_ns, last->use.cpu_ns), &left_ns);
	record->delay_ns += take_u64(sub_saturating(now->use.wait_ns, last->use.wait_ns), &left_ns);
	if (is_stopped)
		record->stopped_ns += left_ns;
	else if (now->state == 'R' && last->state != 'S' && last->state != 'D')
		record->delay_ns += now->is_tickless ? 0 : left_ns;
	else
		record->asleep_ns += left_ns;
	record->time_ns = now_ns;
}
