/* SPDX-License-Identifier: MIT */
#include "service/blobs/tiers.h"

#include "service/blobs/blob_change.h"

struct work {
	enum blob_tier to, was;
	struct span lease;
};

static enum err make_tier(
	void *arg, struct blob_change *w, const struct blob_record *there, struct blob_record *ret)
{
	struct work *t = arg;
	int64_t now = service_now(w->service);
	if (there == NULL)
		return ERR_BLOB_NOT_FOUND;
	if (there->type != BLOB_BLOCK)
		return ERR_BLOB_TYPE;
	t->was = there->tier;
	*ret = *there;
	ret->tier = t->to;
	ret->tier_set = now;
	return lease_check_read(&there->lease, t->lease, now);
}

enum err blob_set_tier(struct service *s, enum origin origin, uint64_t container_id,
	struct span name, enum blob_tier tier, struct span lease, enum blob_tier *ret_was,
	struct err_detail *detail)
{
	static const struct blob_conditions none;
	struct work t = { .to = tier, .lease = lease };
	struct blob_change w = { .service = s,
		.origin = origin,
		.container = container_id,
		.name = name,
		.conditions = &none,
		.keeps_etag = true,
		.detail = detail };
	enum err e = blob_change(&w, make_tier, &t);
	*ret_was = t.was;
	return e;
}

enum err blob_tier_check_read(const struct blob_record *r)
{
	return r->tier == TIER_ARCHIVE ? ERR_BLOB_ARCHIVED : ERR_OK;
}
