/* SPDX-License-Identifier: MIT */
#include "rest/admin/admin.h"

#include "base/compiler.h"
#include "codec/json_build.h"
#include "rest/core/request_url.h"
#include "service/stats/service_metrics.h"
#include "store/store.h"

/* Room that a usual change needs. */
#define ROOM_BYTES 65536

static void write_metrics(struct service *service, const struct request *q, struct response *r)
{
	(void)q;
	response_header_str(r, "Content-Type", "text/plain; version=0.0.4; charset=utf-8");
	service_metrics_write(service, &r->body);
}

static void end_json(struct json_build *b, struct response *r)
{
	response_header_str(r, "Content-Type", "application/json");
	json_end(b, &r->body);
	buf_add_char(&r->body, '\n');
}

static void write_live(struct service *service, const struct request *q, struct response *r)
{
	struct json_build b;
	(void)service;
	(void)q;
	json_begin(&b);
	json_add_str(&b, "status", "live");
	end_json(&b, r);
}

/* No account has this name, so the store must look for it and find nothing. */
static enum err store_answers(struct service *service)
{
	struct item item;
	enum err e = store_child(
		service_store(service), NULL, STORE_ROOT, CLASS_KEYED, SPAN_LIT("-"), 0, &item);
	return e == ERR_NOT_FOUND ? ERR_OK : e;
}

static enum err takes_changes(struct service *service, struct err_detail *why)
{
	return service_is_read_only(service) ? ERR_OK
					     : store_room(service_store(service), ROOM_BYTES, why);
}

static void write_ready(struct service *service, const struct request *q, struct response *r)
{
	struct json_build b;
	struct err_detail why = { 0 };
	enum err reads = store_answers(service), changes = takes_changes(service, &why);
	bool ready = reads == ERR_OK && changes == ERR_OK && !q->stopping;
	r->status = ready ? 200 : 503;
	json_begin(&b);
	json_add_str(&b, "status", ready ? "ready" : "not ready");
	json_open_array(&b, "reasons");
	if (reads != ERR_OK)
		json_add_str(&b, NULL, err_text(reads));
	if (changes != ERR_OK)
		json_add_str(&b, NULL, err_message(changes, &why));
	if (q->stopping)
		json_add_str(&b, NULL, "The server is stopping.");
	json_close(&b);
	end_json(&b, r);
}

static const struct {
	struct span path;
	enum request_cost cost;
	void (*write)(struct service *service, const struct request *q, struct response *r);
} resources[] = {
	{ SPAN_LIT("/metrics"), COST_USUAL, write_metrics },
	{ SPAN_LIT("/health/live"), COST_BOUNDED, write_live },
	{ SPAN_LIT("/health/ready"), COST_USUAL, write_ready },
};

/* Returns ARRAY_LEN(resources) if there is none. */
static size_t find(const struct request *q)
{
	struct url_parts parts;
	size_t i = 0;
	url_split(q->target, &parts);
	while (i < ARRAY_LEN(resources) && !span_eq(parts.path, resources[i].path))
		i++;
	return i;
}

static enum request_cost cost(const struct request *q)
{
	size_t i = find(q);
	return i < ARRAY_LEN(resources) ? resources[i].cost : COST_BOUNDED;
}

static void refuse_with(int status, const char *text, struct response *r)
{
	struct json_build b;
	r->status = status;
	json_begin(&b);
	json_add_str(&b, "error", text);
	end_json(&b, r);
}

static void refuse(enum err e, struct response *r)
{
	if (e == ERR_METHOD_NOT_ALLOWED)
		response_header_str(r, "Allow", "GET, HEAD");
	refuse_with(err_http(e), err_text(e), r);
}

/* A page of another site, in a browser on this machine, can have a name that leads here: it may not read
 * the response. */
static bool is_by_another_name(const struct request *q)
{
	const char *ip = q->peer->ip;
	bool is_near = strncmp(ip, "127.", 4) == 0 || strcmp(ip, "::1") == 0;
	return is_near && !request_host_is_local(q);
}

static void answer(struct service *service, const struct request *q, enum err e, struct response *r)
{
	size_t i = find(q);
	response_header_str(r, "Server", "rowfs");
	response_header_str(r, "Cache-Control", "no-store");
	if (e == ERR_OK && i == ARRAY_LEN(resources))
		e = ERR_NOT_FOUND;
	if (e == ERR_OK && !span_is(q->method, "GET") && !span_is(q->method, "HEAD"))
		e = ERR_METHOD_NOT_ALLOWED;
	if (e != ERR_OK) {
		refuse(e, r);
		return;
	}
	if (is_by_another_name(q)) {
		refuse_with(403, "The Host header must be localhost, 127.0.0.1 or [::1].", r);
		return;
	}
	r->status = 200;
	resources[i].write(service, q, r);
	if (!buf_ok(&r->body)) {
		response_clear(r);
		refuse(ERR_NO_MEMORY, r);
	}
}

const struct rest_service rest_admin = {
	.name = "admin",
	.cost = cost,
	.answer = answer,
	.while_stopping = true,
};
