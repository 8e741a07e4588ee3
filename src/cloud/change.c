/* SPDX-License-Identifier: MIT */
#include "cloud/change.h"

#include "codec/entity_json.h"
#include "codec/entity_odata.h"
#include "codec/uri.h"
#include "model/limits.h"

#include <math.h>
#include <string.h>

#define PATH_LIMIT ((size_t)32 << 10)
#define JSON "application/json"

static void add_entity_path(struct span table, struct span pk, struct span rk, struct buf *out)
{
	entity_odata_url(SPAN_LIT("/"), table, pk, rk, out);
}

/* ---- reading ---- */

enum err cloud_get(struct client *c, struct span table, struct span pk, struct span rk,
	struct cloud_row *ret, struct buf *body, struct err_detail *detail)
{
	struct buf path = BUF_INIT(PATH_LIMIT);
	struct http_response response = { 0 };
	size_t n;
	*body = BUF_INIT(HTTP_BODY_MAX);
	add_entity_path(table, pk, rk, &path);
	const struct client_request r = {
		.kind = TRAFFIC_READ, .method = "GET", .path = buf_span(&path), .idempotent = true
	};
	enum err e = buf_full(&path);
	if (e == ERR_OK)
		e = client_send(c, &r, &response, NULL, detail);
	struct span etag = http_response_header(&response, "ETag");
	if (e == ERR_OK)
		e = cloud_row_read(buf_span(&response.body), ret, &n, detail);
	if (e == ERR_OK && etag.n > 0 && etag.n < sizeof(ret->etag)) {
		memcpy(ret->etag, etag.p, etag.n);
		ret->etag[etag.n] = 0;
	}
	*body = response.body;
	response.body = (struct buf){ 0 };
	http_response_fini(&response);
	buf_fini(&path);
	return e;
}

/* ---- the request of a change ---- */

const char *cloud_change_method(const struct cloud_change *change)
{
	static const char *const methods[] = { [CLOUD_INSERT] = "POST",
		[CLOUD_UPSERT] = "PUT",
		[CLOUD_UPSERT_MERGE] = "PATCH",
		[CLOUD_REPLACE] = "PUT",
		[CLOUD_MERGE] = "PATCH",
		[CLOUD_DELETE] = "DELETE" };
	return methods[change->kind];
}

void cloud_change_path(struct span table, const struct cloud_change *change, struct buf *out)
{
	if (change->kind != CLOUD_INSERT) {
		add_entity_path(table, change->pk, change->rk, out);
		return;
	}
	buf_add_char(out, '/');
	buf_add_span(out, table);
}

/* Services whose JSON has one kind of number take 2.0 for an Int32 unless its type is given. */
static void add_property(const struct property *p, struct buf *out)
{
	if (p->value.type == EDM_DOUBLE && isfinite(p->value.dbl))
		buf_addf(out, ",\"%.*s@odata.type\":\"Edm.Double\"", (int)p->name.n, p->name.p);
	entity_json_encode_property(p->name, &p->value, true, out);
}

void cloud_change_body(const struct cloud_change *change, struct buf *out)
{
	if (change->kind == CLOUD_DELETE)
		return;
	buf_add_str(out, "{\"PartitionKey\":");
	buf_add_json(out, change->pk);
	buf_add_str(out, ",\"RowKey\":");
	buf_add_json(out, change->rk);
	for (size_t i = 0; i < change->entity->nprops; i++)
		add_property(&change->entity->props[i], out);
	buf_add_char(out, '}');
}

struct span cloud_change_condition(const struct cloud_change *change)
{
	if (change->kind < CLOUD_REPLACE)
		return (struct span){ 0 };
	return change->if_match.n > 0 ? change->if_match : SPAN_LIT("*");
}

/* ---- after a lost response ---- */

/* Returns whether the row is known to be as the change leaves it. */
static bool is_done(struct client *c, struct span table, const struct cloud_change *change,
	char etag[CLOUD_ETAG_MAX])
{
	struct cloud_row row = { 0 };
	struct buf body;
	bool merge = change->kind == CLOUD_MERGE || change->kind == CLOUD_UPSERT_MERGE;
	enum err e = cloud_get(c, table, change->pk, change->rk, &row, &body, NULL);
	bool done = e == ERR_NOT_FOUND;
	if (change->kind != CLOUD_DELETE)
		done = e == ERR_OK &&
			(merge ? cloud_has_properties(&row.entity, change->entity)
			       : cloud_same_properties(&row.entity, change->entity));
	if (done && etag != NULL)
		memcpy(etag, row.etag, CLOUD_ETAG_MAX);
	cloud_row_fini(&row);
	buf_fini(&body);
	return done;
}

static bool may_be_own(enum err e)
{
	return e == ERR_ENTITY_EXISTS || e == ERR_NOT_FOUND || e == ERR_CONDITION_NOT_MET;
}

static bool are_done(struct client *c, struct span table, const struct cloud_change *changes,
	size_t n, char (*etags)[CLOUD_ETAG_MAX])
{
	bool done = true;
	for (size_t i = 0; done && i < n; i++)
		done = is_done(c, table, &changes[i], etags != NULL ? etags[i] : NULL);
	return done;
}

enum err cloud_change_resolve(struct client *c, struct span table,
	const struct cloud_change *changes, size_t n, bool again, enum err e,
	char (*etags)[CLOUD_ETAG_MAX], struct err_detail *detail)
{
	if (e != ERR_OUTCOME_UNKNOWN && !(again && may_be_own(e)))
		return e;
	if (are_done(c, table, changes, n, etags))
		return ERR_OK;
	if (e == ERR_OUTCOME_UNKNOWN)
		return e;
	/* Somebody may have changed the row after it was done. */
	return err_set(detail, ERR_OUTCOME_UNKNOWN,
		"the response was lost, and the row is not as it was written");
}

enum err cloud_change(struct client *c, struct span table, const struct cloud_change *change,
	char etag[CLOUD_ETAG_MAX], struct err_detail *detail)
{
	struct buf path = BUF_INIT(PATH_LIMIT), body = BUF_INIT((size_t)LIMIT_DOCUMENT_BYTES * 2);
	struct http_response response = { 0 };
	bool again = false;
	cloud_change_path(table, change, &path);
	cloud_change_body(change, &body);
	const struct client_request r = { .kind = change->kind == CLOUD_DELETE ? TRAFFIC_DELETE
									       : TRAFFIC_CHANGE,
		.method = cloud_change_method(change),
		.path = buf_span(&path),
		.body = buf_span(&body),
		.content_type = body.len > 0 ? SPAN_LIT(JSON) : (struct span){ 0 },
		.if_match = cloud_change_condition(change),
		.idempotent = true };
	if (etag != NULL)
		etag[0] = 0;
	enum err e = buf_ok(&path) ? buf_full(&body) : buf_full(&path);
	if (e == ERR_OK)
		e = client_send(c, &r, &response, &again, detail);
	again |= change->again;
	struct span sent = http_response_header(&response, "ETag");
	if (e == ERR_OK && etag != NULL && sent.n < CLOUD_ETAG_MAX && sent.n > 0) {
		memcpy(etag, sent.p, sent.n);
		etag[sent.n] = 0;
	}
	e = cloud_change_resolve(
		c, table, change, 1, again, e, (char(*)[CLOUD_ETAG_MAX])etag, detail);
	http_response_fini(&response);
	buf_fini(&path);
	buf_fini(&body);
	return e;
}

/* ---- tables ---- */

enum err cloud_table_create(struct client *c, struct span table, struct err_detail *detail)
{
	struct buf body = BUF_INIT(512);
	struct http_response response = { 0 };
	bool again = false;
	buf_add_str(&body, "{\"TableName\":");
	buf_add_json(&body, table);
	buf_add_char(&body, '}');
	const struct client_request r = { .kind = TRAFFIC_TABLES,
		.method = "POST",
		.path = SPAN_LIT("/Tables"),
		.body = buf_span(&body),
		.content_type = SPAN_LIT(JSON),
		.idempotent = true };
	enum err e = buf_full(&body);
	if (e == ERR_OK)
		e = client_send(c, &r, &response, &again, detail);
	http_response_fini(&response);
	buf_fini(&body);
	return again && e == ERR_TABLE_EXISTS ? ERR_OK : e;
}

enum err cloud_table_delete(struct client *c, struct span table, struct err_detail *detail)
{
	struct buf path = BUF_INIT(PATH_LIMIT);
	struct http_response response = { 0 };
	bool again = false;
	buf_add_str(&path, "/Tables('");
	percent_encode_key(table, &path);
	buf_add_str(&path, "')");
	const struct client_request r = { .kind = TRAFFIC_TABLES,
		.method = "DELETE",
		.path = buf_span(&path),
		.idempotent = true };
	enum err e = buf_full(&path);
	if (e == ERR_OK)
		e = client_send(c, &r, &response, &again, detail);
	http_response_fini(&response);
	buf_fini(&path);
	if (e == ERR_NOT_FOUND)
		e = ERR_TABLE_NOT_FOUND;
	return again && e == ERR_TABLE_NOT_FOUND ? ERR_OK : e;
}
