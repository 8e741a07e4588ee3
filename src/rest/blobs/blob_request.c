/* SPDX-License-Identifier: MIT */
#include "rest/blobs/blob_request.h"

#include "base/text.h"
#include "codec/http_date.h"
#include "rest/blobs/body_source.h"
#include "rest/blobs/lease_headers.h"
#include "service/blobs/containers.h"
#include "service/blobs/snapshot_key.h"

#include <inttypes.h>
#include <string.h>

_Static_assert(sizeof(struct blob_request) <= REST_OWN_BYTES, "fits in the request's context");

/* ---- the path ---- */

static enum err name_blob(struct request_context *c, struct span name)
{
	struct span *to = &blob_request(c)->name;
	enum err e = percent_decode(name, false, c->arena, to, &c->detail);
	if (e != ERR_OK)
		return e;
	/* No blob's name has the mark, so a snapshot cannot be reached by its key. */
	if (to->n > 0 && memchr(to->p, SNAPSHOT_MARK, to->n) != NULL)
		return ERR_NAME_INVALID;
	char *full = arena_alloc(c->arena, c->container.n + 1 + to->n);
	if (full == NULL)
		return ERR_NO_MEMORY;
	memcpy(full, c->container.p, c->container.n);
	full[c->container.n] = '/';
	memcpy(full + c->container.n + 1, to->p, to->n);
	c->blob = span_make(full, c->container.n + 1 + to->n);
	return ERR_OK;
}

enum err blob_request_read_path(struct request_context *c, struct span path)
{
	if (path.n > 0 && path.p[0] == '/')
		path = span_make(path.p + 1, path.n - 1);
	const char *slash = path.n > 0 ? memchr(path.p, '/', path.n) : NULL;
	size_t n = slash != NULL ? (size_t)(slash - path.p) : path.n;
	struct span first = span_make(path.p, n);
	struct span rest = slash != NULL ? span_make(slash + 1, path.n - n - 1) : SPAN_LIT("");
	bool container = c->url.restype.p != NULL && span_is(c->url.restype, "container");
	if (first.n == 0) {
		c->kind = rest.n == 0 ? BLOB_SERVICE : BLOB_NOTHING;
		return ERR_OK;
	}
	/* A blob of the root container has no container in its path. */
	bool in_root = rest.n == 0 && !container;
	enum err e = percent_decode(
		in_root ? SPAN_LIT("$root") : first, false, c->arena, &c->container, &c->detail);
	c->kind = container ? (rest.n == 0 ? BLOB_CONTAINER : BLOB_NOTHING) : BLOB_ITSELF;
	if (e == ERR_OK && c->kind == BLOB_ITSELF)
		e = name_blob(c, in_root ? first : rest);
	return e;
}

int blob_request_version(const struct request_context *c)
{
	(void)c;
	return VERSION_NEWEST;
}

enum request_cost blob_request_cost(const struct request *r)
{
	if (span_is(r->method, "OPTIONS"))
		return COST_BOUNDED;
	return body_source_given(r) ? COST_LONG : COST_USUAL;
}

/* A container may let anybody read its blobs, and list them. */
bool blob_request_anonymous(struct request_context *c)
{
	struct collection info = { 0 };
	bool reads = span_is(c->method, "GET") || span_is(c->method, "HEAD");
	if (!reads || c->container.n == 0 ||
		container_find(c->service, c->secrets.id, c->container, &info) != ERR_OK)
		return false;
	int least = c->kind == BLOB_ITSELF ? CONTAINER_BLOBS : CONTAINER_ALL;
	bool allowed = info.access >= least;
	collection_fini(&info);
	c->access = (struct access){ .kind = ACCESS_SERVICE_SAS,
		.permissions = PERMISSION('r') | PERMISSION('l'),
		.version = VERSION_NEWEST,
		.container = c->container };
	return allowed;
}

/* ---- conditions ---- */

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char)(c | 0x20);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* What is no ETag of ours matches nothing. */
static int64_t read_etag(struct span s)
{
	uint64_t v = 0;
	if (span_is(s, "*"))
		return ETAG_ANY;
	if (span_starts(s, SPAN_LIT("W/")))
		s = span_make(s.p + 2, s.n - 2);
	if (s.n > 2 && s.p[0] == '"' && s.p[s.n - 1] == '"')
		s = span_make(s.p + 1, s.n - 2);
	if (s.n < 3 || s.n > 17 || !span_starts(s, SPAN_LIT("0x")))
		return ETAG_OTHER;
	for (size_t i = 2; i < s.n; i++) {
		int digit = hex_digit(s.p[i]);
		if (digit < 0)
			return ETAG_OTHER;
		v = v << 4 | (uint64_t)digit;
	}
	return v != 0 ? (int64_t)v : ETAG_OTHER;
}

static int64_t condition_etag(const struct request_context *c, const char *header)
{
	struct span s = request_header(c->request, header);
	return s.n > 0 ? read_etag(s) : 0;
}

static enum err condition_time(
	struct request_context *c, const char *header, bool *ret_has, int64_t *ret)
{
	struct span s = request_header(c->request, header);
	*ret_has = s.n > 0;
	if (s.n == 0 || http_date_parse(s, ret))
		return ERR_OK;
	return err_set(&c->detail, ERR_HEADER_INVALID, "%s is not a date of RFC 1123.", header);
}

/* The headers of conditions, for the blob of the URL and for the source of a copy. */
struct condition_names {
	const char *match, *none_match, *since, *unmodified, *tags, *lease;
};
static const struct condition_names names_here = { "If-Match", "If-None-Match", "If-Modified-Since",
	"If-Unmodified-Since", "x-ms-if-tags", "x-ms-lease-id" };
static const struct condition_names names_source = { "x-ms-source-if-match",
	"x-ms-source-if-none-match", "x-ms-source-if-modified-since",
	"x-ms-source-if-unmodified-since", "x-ms-source-if-tags", "x-ms-source-lease-id" };

/* A condition that is not known must not be taken for none. */
static enum err refuse_tags(struct request_context *c, const char *header)
{
	return request_header(c->request, header).p == NULL
		? ERR_OK
		: err_set(&c->detail, ERR_NOT_SUPPORTED, "Blobs have no tags: %s.", header);
}

static enum err read_conditions(
	struct request_context *c, const struct condition_names *names, struct blob_conditions *ret)
{
	*ret = (struct blob_conditions){ .match = condition_etag(c, names->match),
		.none_match = condition_etag(c, names->none_match) };
	enum err e = condition_time(c, names->since, &ret->has_since, &ret->modified_since);
	if (e == ERR_OK)
		e = condition_time(
			c, names->unmodified, &ret->has_unmodified, &ret->unmodified_since);
	if (e == ERR_OK)
		e = refuse_tags(c, names->tags);
	return e == ERR_OK ? lease_id_read(c, names->lease, &ret->lease) : e;
}

enum err blob_request_source_conditions(struct request_context *c, struct blob_conditions *ret)
{
	return read_conditions(c, &names_source, ret);
}

enum err blob_request_conditions(struct request_context *c, struct blob_conditions *ret)
{
	enum err e = read_conditions(c, &names_here, ret);
	int n = (ret->match != 0) + (ret->none_match != 0) + ret->has_since + ret->has_unmodified;
	if (e == ERR_OK && !span_is(c->method, "DELETE") &&
		context_param(c, "snapshot", &(struct span){ 0 }))
		return err_set(&c->detail, ERR_QUERY_VALUE, "A snapshot cannot be changed.");
	return e == ERR_OK && n > 1 ? ERR_MULTIPLE_CONDITIONS : e;
}

enum err blob_request_key(struct request_context *c, struct span name, struct span *ret)
{
	return blob_snapshot_key(c, name, "snapshot", ret);
}

enum err blob_snapshot_key(
	struct request_context *c, struct span name, const char *param, struct span *ret)
{
	struct span time;
	*ret = name;
	if (!context_param(c, param, &time))
		return ERR_OK;
	if (!snapshot_time_check(time))
		return err_set(&c->detail, ERR_QUERY_VALUE, "%s '%s' is the time of a snapshot.",
			err_text(ERR_QUERY_VALUE), param);
	char *key = arena_alloc(c->arena, name.n + SNAPSHOT_KEY_EXTRA);
	if (key == NULL)
		return ERR_NO_MEMORY;
	*ret = snapshot_key(name, time, key);
	return ERR_OK;
}

/* ---- headers ---- */

enum err blob_request_look(struct request_context *c, struct blob_info *ret)
{
	struct blob_conditions conditions;
	struct span key;
	uint64_t id;
	enum err e = read_conditions(c, &names_here, &conditions);
	if (e == ERR_OK)
		e = rest_collection_id(c, &id);
	if (e == ERR_OK)
		e = blob_request_key(c, blob_request(c)->name, &key);
	if (e == ERR_OK)
		e = blob_look(c->service, id, key, ret);
	if (e != ERR_OK)
		return e == ERR_NOT_FOUND ? ERR_BLOB_NOT_FOUND : e;
	if (ret->record.type != BLOB_NONE)
		e = blob_conditions_read(&conditions, ret->record.etag);
	if (e == ERR_OK)
		e = lease_check_read(&ret->record.lease, conditions.lease, service_now(c->service));
	if (e != ERR_OK)
		blob_info_fini(ret);
	return e;
}

enum err blob_request_find(struct request_context *c, struct blob_info *ret)
{
	enum err e = blob_request_look(c, ret);
	if (e != ERR_OK || ret->record.type != BLOB_NONE)
		return e;
	blob_info_fini(ret);
	return ERR_BLOB_NOT_FOUND;
}

enum err blob_request_begin(
	struct request_context *c, struct blob_conditions *ret, uint64_t *ret_container)
{
	enum err e = blob_request_conditions(c, ret);
	return e == ERR_OK ? rest_collection_id(c, ret_container) : e;
}

void blob_etag_add(int64_t etag, struct buf *out)
{
	buf_addf(out, "0x%" PRIX64, (uint64_t)etag);
}

void blob_date_header(const char *name, int64_t ticks, struct response *r)
{
	struct buf date = BUF_INIT(64);
	http_date_add(&date, ticks);
	response_header(r, name, buf_span(&date));
	buf_fini(&date);
}

void blob_etag_headers(int64_t etag, struct response *r)
{
	struct buf text = BUF_INIT(64);
	buf_add_char(&text, '"');
	blob_etag_add(etag, &text);
	buf_add_char(&text, '"');
	response_header(r, "ETag", buf_span(&text));
	buf_fini(&text);
	blob_date_header("Last-Modified", etag, r);
}
