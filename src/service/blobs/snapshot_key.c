/* SPDX-License-Identifier: MIT */
#include "service/blobs/snapshot_key.h"

#include "base/clock.h"

#include <string.h>

bool snapshot_time_check(struct span time)
{
	static const char form[] = "0000-00-00T00:00:00.0000000Z";
	if (time.n != SNAPSHOT_TIME_CHARS)
		return false;
	for (size_t i = 0; i < time.n; i++) {
		bool digit = time.p[i] >= '0' && time.p[i] <= '9';
		if (form[i] == '0' ? !digit : time.p[i] != form[i])
			return false;
	}
	return true;
}

struct span snapshot_time(int64_t ticks, char out[SNAPSHOT_TIME_CHARS + 1])
{
	char text[CLOCK_TEXT_MAX];
	clock_format_full(ticks, text);
	memcpy(out, text, SNAPSHOT_TIME_CHARS);
	out[SNAPSHOT_TIME_CHARS] = '\0';
	return span_make(out, SNAPSHOT_TIME_CHARS);
}

bool snapshot_key_is(struct span key)
{
	return key.n > 0 && memchr(key.p, SNAPSHOT_MARK, key.n) != NULL;
}

void snapshot_key_split(struct span key, struct span *ret_name, struct span *ret_time)
{
	const char *mark = key.n > 0 ? memchr(key.p, SNAPSHOT_MARK, key.n) : NULL;
	size_t n = mark != NULL ? (size_t)(mark - key.p) : key.n;
	*ret_name = span_make(key.p, n);
	*ret_time = mark != NULL ? span_make(mark + 1, key.n - n - 1) : SPAN_LIT("");
}

struct span snapshot_key(struct span name, struct span time, char *out)
{
	memcpy(out, name.p, name.n);
	out[name.n] = SNAPSHOT_MARK;
	if (time.n > 0)
		memcpy(out + name.n + 1, time.p, time.n);
	return span_make(out, name.n + 1 + time.n);
}
