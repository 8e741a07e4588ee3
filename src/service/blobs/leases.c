/* SPDX-License-Identifier: MIT */
#include "service/blobs/leases.h"

#include "base/clock.h"
#include "service/blobs/blob_change.h"
#include "service/blobs/containers.h"

static int seconds_left(const struct lease *l, int64_t now)
{
	if (l->until <= now || l->until == INT64_MAX)
		return 0;
	return (int)((l->until - now + TICKS_PER_SECOND - 1) / TICKS_PER_SECOND);
}

struct work {
	struct service *service;
	const struct lease_request *request;
	const struct blob_conditions *conditions;
	struct lease_result *result;
	struct lease lease; /* the new one */
};

static enum err step(struct work *w, const struct lease *there)
{
	int64_t now = service_now(w->service);
	enum err e = lease_apply(there, w->request, now, &w->lease);
	w->result->seconds = seconds_left(&w->lease, now);
	return e;
}

static enum err make_lease(void *arg, struct blob_change *change, const struct blob_record *there,
	struct blob_record *ret)
{
	struct work *w = arg;
	(void)change;
	if (there == NULL)
		return ERR_BLOB_NOT_FOUND;
	enum err e = step(w, &there->lease);
	*ret = *there;
	ret->lease = w->lease;
	return e;
}

enum err blob_lease(struct service *s, enum origin origin, uint64_t container_id, struct span name,
	const struct lease_request *r, const struct blob_conditions *conditions,
	struct lease_result *ret, struct err_detail *detail)
{
	struct work work = { .service = s, .request = r, .result = ret };
	struct blob_change w = { .service = s,
		.origin = origin,
		.container = container_id,
		.name = name,
		.conditions = conditions,
		.keeps_etag = true,
		.detail = detail };
	*ret = (struct lease_result){ 0 };
	enum err e = blob_change(&w, make_lease, &work);
	ret->etag = w.etag;
	return e;
}

static enum err check_lease(void *arg, const struct collection *now)
{
	struct work *w = arg;
	enum err e = blob_conditions_write(w->conditions, now->etag);
	return e == ERR_OK ? step(w, &now->lease) : e;
}

enum err container_lease(struct service *s, enum origin origin, uint64_t container_id,
	const struct lease_request *r, const struct blob_conditions *conditions,
	struct lease_result *ret, struct err_detail *detail)
{
	struct work w = { .service = s, .request = r, .conditions = conditions, .result = ret };
	struct collection_edit to = { .lease = &w.lease, .check = check_lease, .arg = &w };
	*ret = (struct lease_result){ 0 };
	return collection_set(
		s, origin, &collection_container, container_id, &to, &ret->etag, detail);
}

static enum err of_container(enum err e)
{
	return e == ERR_LEASE_MISMATCH  ? ERR_CONTAINER_LEASE_MISMATCH
		: e == ERR_LEASE_ABSENT ? ERR_CONTAINER_LEASE_ABSENT
					: e;
}

enum err container_check_delete(
	struct service *s, const struct collection *now, const struct blob_conditions *c)
{
	enum err e = blob_conditions_write(c, now->etag);
	return e == ERR_OK ? of_container(lease_check_write(&now->lease, c->lease, service_now(s)))
			   : e;
}

enum err container_check_use(
	struct service *s, const struct collection *now, const struct blob_conditions *c)
{
	enum err e = blob_conditions_write(c, now->etag);
	return e == ERR_OK ? of_container(lease_check_read(&now->lease, c->lease, service_now(s)))
			   : e;
}
