/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* One line on stderr for each escalation, as it happens. */
#ifndef FBT_SINK_ALERT_H
#define FBT_SINK_ALERT_H

#include "escalation.h"
#include "sink.h"

/* thresholds are copied: the limit that is told when it is exceeded. NULL: -ENOMEM. */
struct sink *sink_alert__new(const struct escalation_thresholds *thresholds);

#endif
