/* SPDX-License-Identifier: MIT */
#include "rest/core/http_date.h"

#include "base/clock.h"

#include <time.h>

void http_date_add(struct buf *out, int64_t ticks)
{
	static const char *const days[] = { "Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat" };
	static const char *const months[] = { "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul",
		"Aug", "Sep", "Oct", "Nov", "Dec" };
	struct timespec t = ticks_to_timespec(ticks);
	struct tm tm;
	if (gmtime_r(&t.tv_sec, &tm) == NULL)
		return; /* the year is out of range: leave the element empty */
	buf_addf(out, "%s, %02d %s %d %02d:%02d:%02d GMT", days[tm.tm_wday], tm.tm_mday,
		months[tm.tm_mon], tm.tm_year + 1900, tm.tm_hour, tm.tm_min, tm.tm_sec);
}
