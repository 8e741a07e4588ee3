/* SPDX-License-Identifier: MIT
 * Request targets.  Input: the target, then maybe LF and a Host, then maybe LF and an
 * Authorization.  What decodes is text; what is encoded decodes to the same; a path that
 * names an entity can be written again from its keys; both layouts give sound targets. */
#include "base/text.h"
#include "codec/uri.h"
#include "fuzz.h"
#include "model/names.h"
#include "rest/core/request_url.h"
#include "rest/http/access_line.h"

static void values(struct span text, struct arena *arena)
{
	struct buf encoded = BUF_INIT(4u << 20);
	struct span decoded, again;

	for (int plus = 0; plus < 2; plus++) {
		struct err_detail why = { 0 };
		if (percent_decode(text, plus != 0, arena, &decoded, &why) != ERR_OK) {
			MUST(why.text[0] != '\0');
			continue;
		}
		MUST(decoded.n <= text.n && utf8_valid(decoded));
		MUST(decoded.n == 0 || memchr(decoded.p, '\0', decoded.n) == NULL);
		buf_clear(&encoded);
		percent_encode_value(decoded, &encoded);
		MUST(percent_decode(buf_span(&encoded), true, arena, &again, NULL) == ERR_OK);
		MUST(span_eq(decoded, again));
	}
	buf_fini(&encoded);
}

static void must_be_same(const struct resource *a, const struct resource *b)
{
	MUST(a->kind == b->kind && span_eq(a->table, b->table));
	MUST(span_eq(a->pk, b->pk) && span_eq(a->rk, b->rk));
}

static void write_again(const struct resource *r, struct arena *arena)
{
	struct buf path = BUF_INIT(4u << 20);
	struct resource again;

	percent_encode_value(r->table, &path);
	buf_add_str(&path, "(PartitionKey='");
	percent_encode_key(r->pk, &path);
	buf_add_str(&path, "',RowKey='");
	percent_encode_key(r->rk, &path);
	buf_add_str(&path, "')");
	MUST(buf_ok(&path));
	MUST(resource_parse(buf_span(&path), arena, &again, NULL) == ERR_OK);
	must_be_same(r, &again);
	buf_fini(&path);
}

static void resources(struct span text, struct arena *arena)
{
	struct resource r;

	if (resource_parse(text, arena, &r, NULL) != ERR_OK)
		return;
	MUST(r.table.n + r.pk.n + r.rk.n <= text.n);
	if (r.kind == RESOURCE_ENTITIES || r.kind == RESOURCE_ENTITY)
		MUST(r.table.n > 0);
	if (r.kind != RESOURCE_ENTITY)
		return;
	MUST(r.pk.p != NULL && r.rk.p != NULL);
	write_again(&r, arena);
}

/* The access log shows no signature, and cleaning its text again changes nothing. */
static void logged(struct span text, struct arena *arena)
{
	size_t cap = 3 * text.n + 64;
	char *once = arena_alloc(arena, cap), *twice = arena_alloc(arena, cap);
	struct url_parts parts;
	struct query_params p;

	MUST(once != NULL && twice != NULL);
	access_clean(text, once, cap);
	access_clean(span_of(once), twice, cap);
	MUST(strcmp(once, twice) == 0);
	for (const char *c = once; *c != '\0'; c++)
		MUST(*c > 0x20 && *c < 0x7f && *c != '"' && *c != '\\');
	url_split(span_of(once), &parts);
	if (query_params_parse(parts.query, arena, &p, NULL) != ERR_OK)
		return;
	for (size_t i = 0; i < p.n; i++)
		MUST(!span_is(p.all[i].name, "sig") || p.all[i].value.n == 0 ||
			span_is(p.all[i].value, "***"));
}

static void queries(struct span text, struct arena *arena)
{
	struct query_params p;
	struct span value;

	if (query_params_parse(text, arena, &p, NULL) != ERR_OK)
		return;
	MUST(p.n <= text.n);
	for (size_t i = 0; i < p.n; i++)
		MUST(utf8_valid(p.all[i].name) && utf8_valid(p.all[i].value));
	(void)query_params_find(&p, "comp", &value);
}

static bool exists(void *arg, struct span name)
{
	(void)arg;
	MUST(account_name_check(name, NULL) == ERR_OK);
	return span_is(name, "acct") || span_is(name, "devstoreaccount1");
}

static struct span take_line(struct span *rest)
{
	const char *end = rest->n == 0 ? NULL : memchr(rest->p, '\n', rest->n);
	size_t n = end == NULL ? rest->n : (size_t)(end - rest->p);
	struct span line = { rest->p, n };

	*rest = end == NULL ? (struct span){ "", 0 } : span_make(end + 1, rest->n - n - 1);
	return line;
}

static void targets(struct span text, struct arena *arena)
{
	struct span target = take_line(&text), host = take_line(&text);
	const struct header headers[] = { { SPAN_LIT("Host"), host },
		{ SPAN_LIT("Authorization"), text } };
	const struct peer peer = { .is_unix = host.n == 0 };
	const struct request r = { SPAN_LIT("GET"), target, headers, 2, SPAN_LIT(""), &peer };
	struct err_detail why = { 0 };
	struct request_url t, part;
	enum err e = request_url_parse(&r, exists, NULL, arena, &t, &why);

	if (e != ERR_OK) {
		MUST(e == ERR_INVALID_INPUT && why.text[0] != '\0');
		return;
	}
	MUST(account_name_check(span_of(t.account), NULL) == ERR_OK);
	MUST(span_starts(t.base, SPAN_LIT("http://")) && span_ends(t.base, SPAN_LIT("/")));
	MUST(t.path.n > 0 && t.path.p[0] == '/');
	/* A batch may repeat its own target: the same resource then, unless a table of the
	 * account's name stands in the way. */
	e = request_url_parse_part(&t, target, exists, NULL, arena, &part, &why);
	MUST(e == ERR_OK || e == ERR_INVALID_INPUT);
	MUST(strcmp(part.account, t.account) == 0);
	struct resource outer, inner;
	if (e == ERR_OK && t.path_style &&
		resource_parse(t.resource, arena, &outer, NULL) == ERR_OK &&
		outer.kind == RESOURCE_ENTITY) {
		MUST(resource_parse(part.resource, arena, &inner, NULL) == ERR_OK);
		must_be_same(&outer, &inner);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct span text = span_make(data, size);
	struct arena arena = { 0 };

	values(text, &arena);
	resources(text, &arena);
	queries(text, &arena);
	logged(text, &arena);
	targets(text, &arena);
	arena_fini(&arena);
	return 0;
}
