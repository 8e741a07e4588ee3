/* SPDX-License-Identifier: MIT
 * Set Blob Tier, and how tiers are shown. */
#include "base/compiler.h"
#include "rest/blobs/blob_request.h"
#include "rest/blobs/lease_headers.h"
#include "rest/blobs/ops.h"
#include "rest/blobs/tier_headers.h"
#include "service/blobs/tiers.h"

#include <strings.h>

static const char *const names[] = { "", "Hot", "Cool", "Cold", "Archive" };

enum err tier_read(struct request_context *c, enum blob_tier *ret)
{
	struct span s = request_header(c->request, "x-ms-access-tier");
	*ret = TIER_UNSET;
	for (size_t i = TIER_HOT; i < ARRAY_LEN(names); i++)
		if (s.n == strlen(names[i]) && strncasecmp(s.p, names[i], s.n) == 0)
			*ret = (enum blob_tier)i;
	return s.n == 0 || *ret != TIER_UNSET
		? ERR_OK
		: err_set(&c->detail, ERR_HEADER_INVALID,
			  "x-ms-access-tier is Hot, Cool, Cold or Archive.");
}

void tier_headers_add(const struct blob_record *b, struct response *r)
{
	if (b->type != BLOB_BLOCK)
		return;
	response_header_str(
		r, "x-ms-access-tier", names[b->tier == TIER_UNSET ? TIER_HOT : b->tier]);
	if (b->tier == TIER_UNSET)
		response_header_str(r, "x-ms-access-tier-inferred", "true");
	else
		blob_date_header("x-ms-access-tier-change-time", b->tier_set, r);
}

void tier_xml_add(const struct blob_record *b, struct buf *out)
{
	if (b->type == BLOB_BLOCK)
		buf_addf(out, "<AccessTier>%s</AccessTier>%s",
			names[b->tier == TIER_UNSET ? TIER_HOT : b->tier],
			b->tier == TIER_UNSET ? "<AccessTierInferred>true</AccessTierInferred>"
					      : "");
}

enum err op_set_tier(struct request_context *c, struct response *r)
{
	enum blob_tier tier, was = TIER_UNSET;
	struct span lease, key;
	uint64_t id;
	enum err e = tier_read(c, &tier);
	if (e == ERR_OK && tier == TIER_UNSET)
		e = err_set(&c->detail, ERR_HEADER_MISSING,
			"A required HTTP header was not specified: x-ms-access-tier.");
	if (e == ERR_OK)
		e = lease_id_read(c, "x-ms-lease-id", &lease);
	if (e == ERR_OK)
		e = rest_collection_id(c, &id);
	if (e == ERR_OK)
		e = blob_request_key(c, blob_request(c)->name, &key);
	if (e == ERR_OK)
		e = blob_set_tier(c->service, ORIGIN_REST, id, key, tier, lease, &was, &c->detail);
	r->status = was == TIER_ARCHIVE && tier != TIER_ARCHIVE ? 202 : 200;
	return e;
}
