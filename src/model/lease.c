/* SPDX-License-Identifier: MIT */
#include "model/lease.h"

#include "base/clock.h"
#include "base/text.h"

#include <inttypes.h>

enum lease_state lease_state(const struct lease *l, int64_t now)
{
	if (l->id.n == 0)
		return LEASE_AVAILABLE;
	if (now < l->until)
		return l->broken ? LEASE_BREAKING : LEASE_LEASED;
	return l->broken ? LEASE_BROKEN : LEASE_EXPIRED;
}

const char *lease_state_name(enum lease_state s)
{
	static const char *const names[] = { "available", "leased", "expired", "breaking",
		"broken" };
	return names[s];
}

/* ---- lease operations ---- */

static int64_t end_of(int seconds, int64_t now)
{
	return seconds == LEASE_INFINITE ? INT64_MAX : now + seconds * TICKS_PER_SECOND;
}

static enum err acquire(const struct lease *l, const struct lease_request *r, enum lease_state s,
	int64_t now, struct lease *ret)
{
	bool same = span_eq(l->id, r->id);
	if (s == LEASE_BREAKING)
		return same ? ERR_LEASE_BREAKING_ACQUIRE : ERR_LEASE_PRESENT;
	if (s == LEASE_LEASED && !same)
		return ERR_LEASE_PRESENT;
	*ret = (struct lease){ r->id, r->seconds, end_of(r->seconds, now), false };
	return ERR_OK;
}

static enum err renew(enum lease_state s, int64_t now, struct lease *ret)
{
	if (s == LEASE_BREAKING || s == LEASE_BROKEN)
		return ERR_LEASE_BROKEN_RENEW;
	ret->until = end_of(ret->seconds, now);
	return ERR_OK;
}

/* A client that did not get the response may ask again: the new id is there by then. */
static enum err change(const struct lease_request *r, enum lease_state s, struct lease *ret)
{
	if (s == LEASE_EXPIRED || s == LEASE_BROKEN)
		return ERR_LEASE_NONE;
	if (!span_eq(ret->id, r->from) && !span_eq(ret->id, r->id))
		return ERR_LEASE_OTHER_ID;
	if (s == LEASE_BREAKING)
		return ERR_LEASE_BREAKING_CHANGE;
	ret->id = r->id;
	return ERR_OK;
}

/* A break can only make the end come sooner. */
static void break_it(const struct lease_request *r, int64_t now, struct lease *ret)
{
	bool waits = r->seconds != LEASE_BREAK_DEFAULT;
	int64_t end = waits ? end_of(r->seconds, now) : ret->until == INT64_MAX ? now : ret->until;
	ret->until = end < ret->until ? end : ret->until;
	ret->broken = true;
}

enum err lease_apply(
	const struct lease *l, const struct lease_request *r, int64_t now, struct lease *ret)
{
	enum lease_state s = lease_state(l, now);
	*ret = *l;
	if (r->action == LEASE_ACQUIRE)
		return acquire(l, r, s, now, ret);
	if (s == LEASE_AVAILABLE)
		return r->action == LEASE_BREAK || r->action == LEASE_CHANGE ? ERR_LEASE_NONE
									     : ERR_LEASE_OTHER_ID;
	if (r->action == LEASE_CHANGE)
		return change(r, s, ret);
	if (r->action == LEASE_BREAK) {
		break_it(r, now, ret);
		return ERR_OK;
	}
	if (!span_eq(l->id, r->id))
		return ERR_LEASE_OTHER_ID;
	if (r->action == LEASE_RENEW)
		return renew(s, now, ret);
	*ret = (struct lease){ 0 };
	return ERR_OK;
}

/* ---- other operations ---- */

enum err lease_check_read(const struct lease *l, struct span given, int64_t now)
{
	enum lease_state s = lease_state(l, now);
	bool same = span_eq(l->id, given);
	if (given.n == 0)
		return ERR_OK;
	if (lease_is_locked(s))
		return same ? ERR_OK : ERR_LEASE_MISMATCH;
	return same ? ERR_LEASE_LOST : ERR_LEASE_ABSENT;
}

enum err lease_check_write(const struct lease *l, struct span given, int64_t now)
{
	if (given.n == 0 && lease_is_locked(lease_state(l, now)))
		return ERR_LEASE_ID_MISSING;
	return lease_check_read(l, given, now);
}

struct lease lease_after_write(const struct lease *l, int64_t now)
{
	return lease_is_locked(lease_state(l, now)) ? *l : (struct lease){ 0 };
}

/* ---- text ---- */

void lease_write(const struct lease *l, struct buf *out)
{
	buf_add_span(out, l->id);
	buf_addf(out, " %d %" PRId64 " %d", l->seconds, l->until, l->broken);
}

static bool take_number(struct span *rest, int64_t min, int64_t max, int64_t *ret)
{
	return text_to_i64(span_take(rest, ' '), ret) && *ret >= min && *ret <= max;
}

bool lease_read(struct span text, struct lease *ret)
{
	int64_t seconds, until, broken;
	*ret = (struct lease){ .id = span_take(&text, ' ') };
	if (ret->id.n == 0 || !take_number(&text, LEASE_INFINITE, LEASE_SECONDS_MAX, &seconds) ||
		!take_number(&text, 1, INT64_MAX, &until) || !take_number(&text, 0, 1, &broken) ||
		text.n > 0)
		return false;
	ret->seconds = (int)seconds;
	ret->until = until;
	ret->broken = broken != 0;
	return true;
}
