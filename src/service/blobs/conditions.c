/* SPDX-License-Identifier: MIT
 * A time in a header has whole seconds, so the fraction of an ETag's time does not count. */
#include "service/blobs/conditions.h"

#include "base/clock.h"

static int64_t seconds(int64_t ticks)
{
	return ticks / TICKS_PER_SECOND;
}

static bool is_match(int64_t wanted, int64_t etag)
{
	return etag != 0 && (wanted == ETAG_ANY || wanted == etag);
}

/* If-Match and If-Unmodified-Since. */
static bool is_as_expected(const struct blob_conditions *c, int64_t etag)
{
	if (c->match != 0 && !is_match(c->match, etag))
		return false;
	return !c->has_unmodified || etag == 0 || seconds(etag) <= seconds(c->unmodified_since);
}

/* If-None-Match or If-Modified-Since: one that holds is enough. */
static bool is_new(const struct blob_conditions *c, int64_t etag)
{
	bool other = c->none_match != 0 && !is_match(c->none_match, etag);
	bool later = c->has_since && seconds(etag) > seconds(c->modified_since);
	return (c->none_match == 0 && !c->has_since) || other || later;
}

enum err blob_conditions_read(const struct blob_conditions *c, int64_t etag)
{
	if (!is_as_expected(c, etag))
		return ERR_BLOB_CONDITION;
	return is_new(c, etag) ? ERR_OK : ERR_NOT_MODIFIED;
}

enum err blob_conditions_write(const struct blob_conditions *c, int64_t etag)
{
	if (c->none_match == ETAG_ANY && etag != 0)
		return ERR_BLOB_EXISTS;
	if (!is_as_expected(c, etag))
		return ERR_BLOB_CONDITION;
	return etag == 0 || is_new(c, etag) ? ERR_OK : ERR_BLOB_CONDITION;
}
