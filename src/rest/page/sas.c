/* SPDX-License-Identifier: MIT
 * Shared access signatures for the page: the server signs, so no key reaches the browser.  The response
 * is a credential; it changes nothing, and other origins cannot read it. */
#include "service/sas/sas.h"

#include "base/clock.h"
#include "base/compiler.h"
#include "base/text.h"
#include "rest/page/page_data.h"
#include "service/core/accounts.h"

#include <string.h>

#define VERSION "2019-02-02" /* as of "rowfs sas" */
#define HOURS_MAX 8784

/* The signature that the browser asks for. */
struct order {
	const struct sas_service *of;
	struct span name; /* of a table, queue or container, or "container/blob" */
	struct span permissions;
	char expiry[CLOCK_TEXT_MAX];
};

static struct span param(const struct page_ask *ask, const char *name)
{
	struct span value = SPAN_LIT("");
	(void)query_params_find(&ask->params, name, &value);
	return value;
}

static const struct sas_service *service_named(struct span name)
{
	static const struct sas_service *const all[] = { &sas_tables, &sas_queues, &sas_blobs };
	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		if (span_is(name, all[i]->name))
			return all[i];
	return NULL;
}

static enum err read_order(const struct page_ask *ask, struct order *o)
{
	int64_t hours, second = clock_ticks() / TICKS_PER_SECOND * TICKS_PER_SECOND;
	uint32_t bits;
	*o = (struct order){ .of = service_named(param(ask, "service")),
		.name = param(ask, "name"),
		.permissions = param(ask, "permissions") };
	if (o->of == NULL || o->name.n == 0)
		return err_set(ask->detail, ERR_INVALID_INPUT,
			"service is table, queue or blob, and name says of what.");
	if (o->permissions.n == 0 || !sas_letters(o->permissions, o->of->permissions, &bits))
		return err_set(ask->detail, ERR_INVALID_INPUT,
			"permissions is one or more of '%s'.", o->of->permissions);
	if (!text_to_i64(param(ask, "hours"), &hours) || hours < 1 || hours > HOURS_MAX)
		return err_set(ask->detail, ERR_INVALID_INPUT, "hours is a number from 1 to %d.",
			HOURS_MAX);
	(void)clock_format(second + hours * 3600 * TICKS_PER_SECOND, o->expiry);
	return ERR_OK;
}

static void fill(const struct order *o, struct sas *s)
{
	*s = (struct sas){
		.of = o->of, .sv = SPAN_LIT(VERSION), .sp = o->permissions, .se = span_of(o->expiry)
	};
	if (o->of->names_resource) {
		s->tn = o->name;
		return;
	}
	size_t n = span_find(o->name, SPAN_LIT("/"));
	s->container = span_make(o->name.p, n);
	s->blob = o->name;
	if (o->of == &sas_blobs)
		s->sr = n < o->name.n ? SPAN_LIT("b") : SPAN_LIT("c");
}

static enum err sign(const struct page_ask *ask, struct sas *s, struct buf *sig)
{
	struct account_keys keys;
	enum err e = account_keys_get(ask->service, ask->account, &keys);
	if (e == ERR_OK)
		e = sas_sign(s, ask->account, span_make(keys.key[0], keys.len[0]), sig);
	explicit_bzero(&keys, sizeof(keys));
	s->sig = buf_span(sig);
	return e;
}

enum err page_sas_add(const struct page_ask *ask, struct json_build *b)
{
	struct order o;
	struct sas s;
	struct buf sig = BUF_INIT(64), token = BUF_INIT(SAS_STRING_LIMIT);
	enum err e = read_order(ask, &o);
	if (e != ERR_OK)
		return e;
	fill(&o, &s);
	e = sign(ask, &s, &sig);
	if (e == ERR_OK)
		sas_to_query(&s, &token);
	if (e == ERR_OK && !buf_ok(&token))
		e = ERR_NO_MEMORY;
	if (e == ERR_OK) {
		const char *endpoint = page_socket_of(o.of->name);
		json_add_text(b, "token", buf_span(&token));
		json_add_str(b, "expiry", o.expiry);
		json_add_str(b, "endpoint", endpoint != NULL ? endpoint : "");
	}
	buf_fini(&sig);
	buf_fini(&token);
	return e;
}
