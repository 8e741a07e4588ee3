/* SPDX-License-Identifier: MIT
 * Lease Blob and Lease Container. */
#include "base/text.h"
#include "rest/blobs/blob_request.h"
#include "rest/blobs/lease_headers.h"
#include "rest/blobs/ops.h"
#include "service/blobs/leases.h"

#include <stdio.h>
#include <strings.h>

static enum err missing(struct request_context *c, const char *header)
{
	return err_set(&c->detail, ERR_HEADER_MISSING,
		"A required HTTP header was not specified: %s.", header);
}

static enum err read_action(struct request_context *c, enum lease_action *ret)
{
	static const char *const names[] = { "acquire", "renew", "change", "release", "break" };
	struct span s = request_header(c->request, "x-ms-lease-action");
	if (s.n == 0)
		return missing(c, "x-ms-lease-action");
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (s.n == strlen(names[i]) && strncasecmp(s.p, names[i], s.n) == 0) {
			*ret = (enum lease_action)i;
			return ERR_OK;
		}
	return err_set(&c->detail, ERR_HEADER_INVALID,
		"x-ms-lease-action is acquire, renew, change, release or break.");
}

static enum err need_id(struct request_context *c, const char *header, struct span *ret)
{
	enum err e = lease_id_read(c, header, ret);
	return e == ERR_OK && ret->n == 0 ? missing(c, header) : e;
}

static enum err read_duration(struct request_context *c, int *ret)
{
	struct span s = request_header(c->request, "x-ms-lease-duration");
	int64_t v;
	if (s.n == 0)
		return missing(c, "x-ms-lease-duration");
	if (!text_to_i64(s, &v) ||
		(v != LEASE_INFINITE && (v < LEASE_SECONDS_MIN || v > LEASE_SECONDS_MAX)))
		return err_set(&c->detail, ERR_HEADER_INVALID,
			"x-ms-lease-duration is 15 to 60 seconds, or -1.");
	*ret = (int)v;
	return ERR_OK;
}

static enum err read_break(struct request_context *c, int *ret)
{
	struct span s = request_header(c->request, "x-ms-lease-break-period");
	int64_t v = LEASE_BREAK_DEFAULT;
	if (s.n > 0 && (!text_to_i64(s, &v) || v < 0 || v > LEASE_BREAK_SECONDS_MAX))
		return err_set(&c->detail, ERR_HEADER_INVALID,
			"x-ms-lease-break-period is 0 to 60 seconds.");
	*ret = (int)v;
	return ERR_OK;
}

static enum err read_acquire(struct request_context *c, struct lease_request *ret)
{
	enum err e = read_duration(c, &ret->seconds);
	if (e == ERR_OK)
		e = lease_id_read(c, "x-ms-proposed-lease-id", &ret->id);
	return e == ERR_OK && ret->id.n == 0 ? lease_id_make(c, &ret->id) : e;
}

static enum err read_change(struct request_context *c, struct lease_request *ret)
{
	enum err e = need_id(c, "x-ms-lease-id", &ret->from);
	return e == ERR_OK ? need_id(c, "x-ms-proposed-lease-id", &ret->id) : e;
}

static enum err read_request(struct request_context *c, struct lease_request *ret)
{
	*ret = (struct lease_request){ 0 };
	enum err e = read_action(c, &ret->action);
	if (e != ERR_OK)
		return e;
	switch (ret->action) {
	case LEASE_ACQUIRE:
		return read_acquire(c, ret);
	case LEASE_CHANGE:
		return read_change(c, ret);
	case LEASE_BREAK:
		return read_break(c, &ret->seconds);
	case LEASE_RENEW:
	case LEASE_RELEASE:
		return need_id(c, "x-ms-lease-id", &ret->id);
	}
	return ERR_OK;
}

/* A SAS that may only delete can break a lease, but not take one. */
static enum err check_permission(const struct request_context *c, const struct lease_request *q)
{
	bool writes = (c->access.permissions & PERMISSION('w')) != 0;
	return c->access.kind == ACCESS_OWNER || writes || q->action == LEASE_BREAK
		? ERR_OK
		: ERR_SAS_PERMISSION;
}

static void answer(const struct lease_request *q, const struct lease_result *a, struct response *r)
{
	char seconds[16];
	blob_etag_headers(a->etag, r);
	if (q->action == LEASE_BREAK) {
		(void)snprintf(seconds, sizeof(seconds), "%d", a->seconds);
		response_header_str(r, "x-ms-lease-time", seconds);
	} else if (q->action != LEASE_RELEASE) {
		response_header(r, "x-ms-lease-id", q->id);
	}
	r->status = q->action == LEASE_ACQUIRE ? 201 : q->action == LEASE_BREAK ? 202 : 200;
}

static enum err lease(struct request_context *c, bool container, struct response *r)
{
	struct blob_conditions conditions;
	struct lease_request q;
	struct lease_result a = { 0 };
	uint64_t id;
	enum err e = read_request(c, &q);
	if (e == ERR_OK)
		e = check_permission(c, &q);
	if (e == ERR_OK)
		e = blob_request_begin(c, &conditions, &id);
	if (e == ERR_OK && container)
		e = container_lease(c->service, ORIGIN_REST, id, &q, &conditions, &a, &c->detail);
	else if (e == ERR_OK)
		e = blob_lease(c->service, ORIGIN_REST, id, blob_request(c)->name, &q, &conditions,
			&a, &c->detail);
	answer(&q, &a, r);
	return e;
}

enum err op_lease_blob(struct request_context *c, struct response *r)
{
	return lease(c, false, r);
}

enum err op_lease_container(struct request_context *c, struct response *r)
{
	return lease(c, true, r);
}
