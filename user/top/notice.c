/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "top/notice.h"

#include <stdio.h>
#include "base/clock.h"

#define NOTICE_NS (8 * NS_PER_S)

void notice_answer(struct notice *notice, uint64_t now_ns, const char *format, va_list args)
{
	vsnprintf(notice->text, sizeof(notice->text), format, args);
	notice->answers = true;
	notice->until_ns = now_ns + NOTICE_NS;
}

bool notice_message(struct notice *notice, uint64_t now_ns, enum log_level level,
		    const char *message)
{
	if (*notice->text && notice->answers && level > LOG_ERR)
		return false;
	snprintf(notice->text, sizeof(notice->text), "%s", message);
	notice->answers = false;
	notice->until_ns = now_ns + NOTICE_NS;
	return true;
}

bool notice_turn(struct notice *notice, uint64_t now_ns)
{
	if (!*notice->text || now_ns < notice->until_ns)
		return false;
	*notice->text = '\0';
	return true;
}
