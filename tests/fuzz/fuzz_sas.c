/* SPDX-License-Identifier: MIT
 * Credentials: whatever a request holds, it is let in only with the right signature; and a
 * signature is that of one token alone.  The input's first two bytes say who asks and what
 * is done to the token (see below), then come lines: the query string, an Authorization
 * header, a date. */
#include "base/clock.h"
#include "base/crypto.h"
#include "fuzz.h"
#include "model/key.h"
#include "model/versions.h"
#include "rest/core/access.h"
#include "rest/queues/queues.h"
#include "rest/tables/table_request.h"
#include "rest/tables/tables.h"
#include "service/core/tables.h"
#include "service/queue/queues.h"
#include "service/sas/sas.h"
#include "store/engines.h"

#include <stdio.h>
#include <string.h>

#define ACCOUNT SPAN_LIT("devstoreaccount1")
#define QUEUE SPAN_LIT("jobs")
#define NOW (TICKS_UNIX_EPOCH + INT64_C(1795176000) * TICKS_PER_SECOND)

enum {
	IS_SIGNED = 1,  /* sig is replaced by the right one */
	IS_CHANGED = 2, /* and then one byte of one parameter is changed */
	SECOND_KEY = 4,
	HAS_TLS = 8,
	IS_UNIX = 16,
	IS_IPV6 = 32,
	HAS_HEADER = 64,
	OF_QUEUES = 128, /* the queue "jobs", not the table */
};

struct world {
	struct service *service;
	struct account_secrets secrets;
};

static const char policies[] =
	"<SignedIdentifiers><SignedIdentifier><Id>p</Id><AccessPolicy><Expiry>2035-01-01</Expiry>"
	"<Permission>ra</Permission></AccessPolicy></SignedIdentifier><SignedIdentifier>"
	"<Id>q</Id></SignedIdentifier></SignedIdentifiers>";

static const struct world *the_world(void)
{
	static struct world w;
	struct store *store;
	struct item it = { 0 };

	if (w.service != NULL)
		return &w;
	MUST(store_open_memory(&store) == ERR_OK);
	MUST(service_new(store, &w.service) == ERR_OK);
	MUST(account_create(w.service, ORIGIN_COMMAND, ACCOUNT, &SPAN_LIT("sixteen bytes 16"), NULL,
		     NULL) == ERR_OK);
	MUST(account_secrets_get(w.service, ACCOUNT, &w.secrets) == ERR_OK);
	MUST(table_create(w.service, ORIGIN_COMMAND, w.secrets.id, SPAN_LIT("Tab"), &it, NULL) ==
		ERR_OK);
	MUST(table_policies_set(w.service, ORIGIN_COMMAND, it.id, span_of(policies), NULL) ==
		ERR_OK);
	item_fini(&it);
	bool created;
	uint64_t queue;
	MUST(queue_create(w.service, ORIGIN_COMMAND, w.secrets.id, QUEUE, SPAN_LIT(""), &created,
		     NULL) == ERR_OK);
	MUST(queue_id(w.service, w.secrets.id, QUEUE, &queue) == ERR_OK);
	struct span xml = span_of(policies);
	int64_t etag;
	MUST(collection_set(w.service, ORIGIN_COMMAND, &collection_queue, queue,
		     &(struct collection_edit){ .policies = &xml }, &etag, NULL) == ERR_OK);
	return &w;
}

static struct span key_of(const struct world *w, int which)
{
	return span_make(w->secrets.keys.key[which], w->secrets.keys.len[which]);
}

static struct span next_line(struct span *s)
{
	const char *end = s->n > 0 ? memchr(s->p, '\n', s->n) : NULL;
	struct span line = span_make(s->p, end != NULL ? (size_t)(end - s->p) : s->n);
	size_t used = line.n + (end != NULL);

	*s = span_make(s->p + used, s->n - used);
	return line;
}

/* ---- the token ---- */

static struct sas sas_of(const struct query_params *params, const struct rest_service *rest)
{
	struct sas s = { .of = rest->sas };
	if (rest == &rest_queues)
		s.container = QUEUE;

	for (size_t i = 0; i < params->n; i++) {
		struct span *field = sas_field(&s, params->all[i].name);
		if (field != NULL && field->p == NULL)
			*field = params->all[i].value.p != NULL ? params->all[i].value
								: SPAN_LIT("");
	}
	return s;
}

static struct query_param *find(struct query_params *params, const char *name)
{
	for (size_t i = 0; i < params->n; i++) {
		if (span_is(params->all[i].name, name))
			return &params->all[i];
	}
	return NULL;
}

static void sign(const struct world *w, struct query_params *params,
	const struct rest_service *rest, int key, struct arena *arena)
{
	struct query_param *sig = find(params, "sig");
	struct sas s = sas_of(params, rest);
	struct buf b = BUF_INIT(100);

	if (sig != NULL && sas_sign(&s, ACCOUNT, key_of(w, key), &b) == ERR_OK)
		sig->value = arena_copy(arena, buf_span(&b));
	buf_fini(&b);
}

static void change(struct query_params *params, uint8_t what, struct arena *arena)
{
	struct query_param *param = params->n > 0 ? &params->all[what % params->n] : NULL;

	if (param == NULL || param->value.n == 0)
		return;
	char *copy = arena_alloc(arena, param->value.n);
	MUST(copy != NULL);
	memcpy(copy, param->value.p, param->value.n);
	copy[what % param->value.n] ^= 1;
	param->value = span_make(copy, param->value.n);
}

/* ---- what must hold ---- */

static void is_rightly_signed(const struct world *w, const struct sas *s)
{
	bool right = false;

	for (int i = 0; i < 2; i++) {
		struct buf b = BUF_INIT(100);
		MUST(sas_sign(s, ACCOUNT, key_of(w, i), &b) == ERR_OK);
		right |= span_eq(buf_span(&b), s->sig);
		buf_fini(&b);
	}
	MUST(right);
}

static void is_in_time(const struct sas *s)
{
	int64_t t;

	if (s->st.n > 0)
		MUST(policy_time_parse(s->st, &t) && t <= NOW);
	if (s->se.n > 0)
		MUST(policy_time_parse(s->se, &t) && t > NOW);
	else
		MUST(s->si.n > 0);
}

static void is_from_there(const struct sas *s, const struct peer *peer)
{
	struct sas_ip range;

	if (s->sip.n > 0)
		MUST(!peer->is_unix && sas_ip_parse(s->sip, &range) &&
			sas_ip_holds(&range, peer->ip));
	if (s->spr.n > 0)
		MUST(peer->tls || span_is(s->spr, "https,http"));
}

static int compare(struct span a, struct span b)
{
	char x[LIMIT_KEY_BYTES], y[LIMIT_KEY_BYTES];

	key_to_order(a.p, a.n, x);
	key_to_order(b.p, b.n, y);
	return span_cmp(span_make(x, a.n), span_make(y, b.n));
}

static bool in_range(const struct sas *s, struct span pk, struct span rk)
{
	int low = s->spk.p == NULL ? 1 : compare(pk, s->spk);
	int high = s->epk.p == NULL ? -1 : compare(pk, s->epk);

	if (low == 0 && s->srk.p != NULL && compare(rk, s->srk) < 0)
		return false;
	if (high == 0 && s->erk.p != NULL && compare(rk, s->erk) > 0)
		return false;
	return low >= 0 && high <= 0;
}

/* The bounds themselves, and what is around them. */
static void holds_its_rows(const struct sas *s)
{
	struct table_request t = { 0 };
	struct request_context c = { .own = &t };
	const struct span keys[] = { s->spk, s->srk, s->epk, s->erk, SPAN_LIT(""), SPAN_LIT("m") };

	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		if (keys[i].n > LIMIT_KEY_BYTES)
			return;
	}
	MUST(table_request_limit(&t, s) == ERR_OK);
	for (size_t i = 0; i < ARRAY_LEN(keys) * ARRAY_LEN(keys); i++) {
		struct span pk = keys[i / ARRAY_LEN(keys)], rk = keys[i % ARRAY_LEN(keys)];
		enum err e = table_request_allows_row(&t, pk, rk);
		MUST((e == ERR_OK) == in_range(s, pk, rk));
	}
	table_request_end(&c);
}

static void is_good(const struct world *w, const struct access_facts *f, const struct access *a)
{
	static const struct access_need acl = { 0 };
	static const struct access_need peek = { .service_all = PERMISSION('r') };
	struct sas s = sas_of(&f->url->params, f->rest);

	MUST(a->kind != ACCESS_OWNER);
	MUST((a->kind == ACCESS_ACCOUNT_SAS) == sas_is_account(&s));
	is_rightly_signed(w, &s);
	is_in_time(&s);
	is_from_there(&s, f->request->peer);
	MUST(access_allows(f->rest, a, &acl, f->container, NULL) != ERR_OK);
	MUST(access_allows(f->rest, a, &peek, SPAN_LIT("another"), NULL) != ERR_OK);
	if (a->kind == ACCESS_SERVICE_SAS && f->rest == &rest_tables)
		holds_its_rows(&s);
}

static void ask(const struct world *w, struct query_params params, const struct rest_service *rest,
	uint8_t who, struct span authorization, struct span date)
{
	const struct header headers[] = { { SPAN_LIT("Date"), date },
		{ SPAN_LIT("Authorization"), authorization } };
	struct peer peer = { .is_unix = (who & IS_UNIX) != 0, .tls = (who & HAS_TLS) != 0 };
	struct request r = { .method = SPAN_LIT("GET"),
		.headers = headers,
		.nheaders = (who & HAS_HEADER) != 0 ? 2 : 1,
		.peer = &peer };
	struct request_url t = { .path = SPAN_LIT("/devstoreaccount1-secondary/Tab(%27')"),
		.params = params,
		.path_style = true,
		.secondary = true,
		.account = "devstoreaccount1" };
	struct access_facts f = { rest, w->service, &r, &t,
		rest == &rest_queues ? QUEUE : SPAN_LIT(""), &w->secrets, NOW };
	struct access a;
	struct err_detail detail = { 0 };

	if (!peer.is_unix)
		(void)snprintf(peer.ip, sizeof(peer.ip), "%s",
			(who & IS_IPV6) != 0 ? "::ffff:10.0.0.9" : "10.0.0.1");
	if (!query_params_find(&t.params, "comp", &t.comp))
		t.comp = (struct span){ NULL, 0 };
	enum err e = access_check(&f, &a, &detail);
	MUST(memchr(detail.text, '\0', sizeof(detail.text)) != NULL);
	MUST((e == ERR_OK) == (detail.text[0] == '\0'));
	if (e != ERR_OK)
		return;
	/* No input holds a signature of a header. */
	MUST((who & HAS_HEADER) == 0);
	is_good(w, &f, &a);
}

static void times(struct span text)
{
	char out[CLOCK_TEXT_MAX];
	int64_t t, again;

	(void)version_parse(text);
	if (!policy_time_parse(text, &t) || t < 0 || t > TICKS_MAX)
		return;
	(void)clock_format(t, out);
	MUST(policy_time_parse(span_of(out), &again) && again == t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct world *w = the_world();
	struct arena arena = { 0 };
	struct query_params params;

	if (size < 2)
		return 0;
	uint8_t who = data[0], what = data[1];
	const struct rest_service *rest_of = (who & OF_QUEUES) != 0 ? &rest_queues : &rest_tables;
	struct span rest = span_make(data + 2, size - 2);
	struct span query = next_line(&rest), header = next_line(&rest), date = next_line(&rest);
	times(query);
	if (query_params_parse(query, &arena, &params, NULL) == ERR_OK) {
		if ((who & IS_SIGNED) != 0)
			sign(w, &params, rest_of, (who & SECOND_KEY) != 0, &arena);
		if ((who & IS_CHANGED) != 0)
			change(&params, what, &arena);
		ask(w, params, rest_of, who, header, date);
	}
	arena_fini(&arena);
	return 0;
}
