/* SPDX-License-Identifier: MIT
 * Sweeps over the codecs, which need memory only: without it they say so, or write what they
 * write with it. */
#include "codec/access_policy_xml.h"
#include "codec/atom_entry.h"
#include "codec/atom_tags.h"
#include "codec/change_set_json.h"
#include "codec/entity_atom.h"
#include "codec/entity_json.h"
#include "codec/entity_odata.h"
#include "codec/json_build.h"
#include "codec/multipart.h"
#include "codec/service_properties_xml.h"
#include "codec/splicer.h"
#include "codec/uri.h"
#include "query/key_ranges.h"
#include "service/change/change_set.h"
#include "service/change/entities.h"
#include "service/query/row_query.h"
#include "sweep.h"

#include <stdio.h>
#include <string.h>

static enum err written(const struct world *w, enum err e)
{
	return e == ERR_OK && !buf_ok(&w->out) ? ERR_NO_MEMORY : e;
}

#define DOCUMENT \
	"{\"PartitionKey\":\"p\",\"RowKey\":\"r\\u00e9\",\"S\":\"text \\\"\\n\",\"T\":true,\"I\":-7," \
	"\"L@odata.type\":\"Edm.Int64\",\"L\":\"9007199254740993\",\"D\":1.5e300," \
	"\"W@odata.type\":\"Edm.DateTime\",\"W\":\"2024-02-29T01:02:03.4567891Z\"," \
	"\"G@odata.type\":\"Edm.Guid\",\"G\":\"c9da6455-213d-42c9-9a79-3e9149a57833\"," \
	"\"B@odata.type\":\"Edm.Binary\",\"B\":\"AAECAwQ=\"}"

static enum err entity(struct world *w)
{
	struct entity entity = { 0 };
	enum err e =
		entity_json_decode(SPAN_LIT(DOCUMENT), ENTITY_JSON_FILE, &entity, NULL, &w->detail);
	if (e == ERR_OK)
		e = entity_check(&entity, &w->detail);
	if (e == ERR_OK)
		entity_json_encode(&entity, ENTITY_JSON_PK | ENTITY_JSON_NEWLINE, &w->out);
	entity_fini(&entity);
	return written(w, e);
}

static enum err many_properties(struct world *w)
{
	static char text[252 * 24];
	struct entity entity = { 0 };
	size_t n = 0;
	for (int i = 0; i < 252; i++)
		n += (size_t)snprintf(
			text + n, sizeof(text) - n, "%c\"P%d\":\"v%d\"", i == 0 ? '{' : ',', i, i);
	text[n++] = '}';
	enum err e =
		entity_json_decode(span_make(text, n), ENTITY_JSON_REST, &entity, NULL, &w->detail);
	if (e == ERR_OK)
		entity_json_encode(&entity, 0, &w->out);
	entity_fini(&entity);
	return written(w, e);
}

static enum err merge(struct world *w)
{
	struct entity a = { 0 }, b = { 0 };
	enum err e = entity_json_decode(
		SPAN_LIT("{\"S\":\"old\",\"Z\":\"kept\"}"), ENTITY_JSON_FILE, &a, NULL, NULL);
	if (e == ERR_OK)
		e = entity_json_decode(SPAN_LIT(DOCUMENT), ENTITY_JSON_FILE, &b, NULL, NULL);
	if (e == ERR_OK)
		e = entity_merge(&a, &b);
	entity_fini(&b);
	if (e == ERR_OK)
		entity_json_encode(&a, 0, &w->out);
	entity_fini(&a);
	return written(w, e);
}

static enum err splice(struct world *w)
{
	struct splicer *s = splicer_new();
	struct arena arena = { 0 };
	struct spliced got;
	/* False is no error: the long way leads to the same. */
	for (int i = 0; s && i < 2; i++) {
		buf_clear(&w->out);
		if (!splicer_take(
			    s, SPAN_LIT("{\"RowKey\":\"r\",\"B\":1,\"A\":\"x\"}"), &arena, &got)) {
			arena_fini(&arena);
			splicer_free(s);
			return ERR_NO_MEMORY;
		}
		buf_add_span(&w->out, got.document);
	}
	arena_fini(&arena);
	splicer_free(s);
	return s ? written(w, ERR_OK) : ERR_NO_MEMORY;
}

static enum err odata(struct world *w)
{
	const struct span names[] = { SPAN_LIT("S"), SPAN_LIT("None"), SPAN_LIT("L") };
	struct odata_style style = { .level = ODATA_FULL,
		.single = true,
		.base = SPAN_LIT("http://host/acc/"),
		.account = SPAN_LIT("acc"),
		.table = SPAN_LIT("Tab"),
		.all = true };
	struct odata_row row = { .pk = SPAN_LIT("p"),
		.rk = SPAN_LIT("r"),
		.version = INT64_C(133500000000000000),
		.document = SPAN_LIT(DOCUMENT) };
	enum err e = entity_odata_render(&style, &row, &w->out);
	if (e == ERR_OK) {
		style = (struct odata_style){
			.level = ODATA_NONE, .table = SPAN_LIT("Tab"), .select = names, .nselect = 3
		};
		e = entity_odata_render(&style, &row, &w->out);
	}
	return written(w, e);
}

#define ATOM(properties_) \
	"<entry xmlns='" ATOM_SPACE "' xmlns:d='" ATOM_DATA "' xmlns:m='" ATOM_METADATA \
	"'><content><m:properties>" properties_ "</m:properties></content></entry>"

/* With what has to be hidden from the parser, and shown again. */
static enum err atom(struct world *w)
{
	static const char text[] =
		ATOM("<d:PartitionKey>p</d:PartitionKey><d:RowKey>r</d:RowKey><d:S>a&#1;b</d:S>"
		     "<d:B m:type='Edm.Binary'>AA EC</d:B><d:I m:type='Edm.Int32'>7</d:I>");
	struct odata_style style = { .single = true,
		.base = SPAN_LIT("http://host/acc/"),
		.account = SPAN_LIT("acc"),
		.table = SPAN_LIT("Tab"),
		.all = true };
	struct odata_row row = { .pk = SPAN_LIT("p"),
		.rk = SPAN_LIT("r"),
		.version = INT64_C(133500000000000000),
		.document = SPAN_LIT("{\"S\":\"a\\u0001\\r\"}"),
		.canonical = true };
	struct entity entity = { 0 };
	enum err e = entity_atom_decode(span_of(text), &entity, &w->detail);
	if (e == ERR_OK)
		entity_json_encode(&entity, ENTITY_JSON_PK, &w->out);
	entity_fini(&entity);
	if (e == ERR_OK)
		e = entity_atom_render(&style, &row, &w->out);
	row.canonical = false;
	if (e == ERR_OK)
		e = entity_atom_render(&style, &row, &w->out);
	return written(w, e);
}

/* Of a page: where there is no memory for their tags they are written all the same. */
static enum err atom_rows(struct world *w)
{
	struct arena arena = { 0 };
	struct odata_style style = { .base = SPAN_LIT("http://host/acc/"),
		.account = SPAN_LIT("acc"),
		.table = SPAN_LIT("Tab"),
		.all = true,
		.tags = atom_tags_new(&arena) };
	char document[12000];
	size_t n = 0;
	for (int i = 0; i < 40; i++)
		n += (size_t)snprintf(document + n, sizeof(document) - n, "%c\"N%0200d\":%d",
			i == 0 ? '{' : ',', i, i);
	(void)snprintf(document + n, sizeof(document) - n, "}");
	const struct odata_row row = { .pk = SPAN_LIT("p"),
		.rk = SPAN_LIT("r"),
		.version = INT64_C(133500000000000000),
		.document = span_of(document),
		.canonical = true };
	enum err e = entity_atom_render(&style, &row, &w->out);
	if (e == ERR_OK)
		e = entity_atom_render(&style, &row, &w->out);
	arena_fini(&arena);
	return written(w, e);
}

/* Values that each need a block of memory of their own, in both formats. */
static enum err large(struct world *w)
{
	static char text[65536], many[20001];
	struct entity entity = { 0 };
	memset(many, 'A', sizeof(many) - 1);
	int n = snprintf(text, sizeof(text),
		ATOM("<d:PartitionKey>%.512s</d:PartitionKey><d:RowKey>%.512s</d:RowKey>"
		     "<d:S>%.5000s</d:S><d:B m:type='Edm.Binary'>%s</d:B>"
		     "<d:D m:type='Edm.Double'>1%0100d</d:D>"),
		many, many, many, many, 0);
	enum err e = entity_atom_decode(span_make(text, (size_t)n), &entity, &w->detail);
	if (e == ERR_OK)
		entity_json_encode(&entity, ENTITY_JSON_PK, &w->out);
	entity_fini(&entity);
	n = snprintf(text, sizeof(text),
		"{\"S\":\"%.5000s\\n\",\"B@odata.type\":\"Edm.Binary\",\"B\":\"\\u0041%.19999s\"}",
		many, many);
	if (e == ERR_OK)
		e = entity_json_decode(
			span_make(text, (size_t)n), ENTITY_JSON_FILE, &entity, NULL, &w->detail);
	if (e == ERR_OK)
		entity_json_encode(&entity, 0, &w->out);
	entity_fini(&entity);
	return written(w, e);
}

static enum err atom_table(struct world *w)
{
	struct arena arena = { 0 };
	struct span name;
	enum err e = table_atom_decode(
		SPAN_LIT(ATOM("<d:TableName>Tab</d:TableName>")), &arena, &name, &w->detail);
	if (e == ERR_OK)
		buf_add_span(&w->out, name);
	arena_fini(&arena);
	return written(w, e);
}

static enum err multipart(struct world *w)
{
	static const char text[] =
		"--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n"
		"--c\r\nContent-Type: application/http\r\nContent-ID: 1\r\n\r\n"
		"POST http://h/acc/Tab HTTP/1.1\r\nAccept: x\r\nPrefer: y\r\n\r\n{\"A\":1}\r\n"
		"--c\r\nContent-Type: application/http\r\n\r\n"
		"DELETE /acc/Tab(PartitionKey='p',RowKey='r') HTTP/1.1\r\nIf-Match: *\r\n\r\n"
		"--c--\r\n--b--\r\n";
	struct arena arena = { 0 };
	struct batch_body body;
	enum err e = batch_body_parse(SPAN_LIT("multipart/mixed; boundary=b"), span_of(text), 100,
		&arena, &body, &w->detail);
	for (size_t i = 0; e == ERR_OK && i < body.nparts; i++) {
		buf_add_span(&w->out, body.parts[i].method);
		buf_add_span(&w->out, body.parts[i].target);
		buf_addf(&w->out, "%zu", body.parts[i].nheaders);
		buf_add_span(&w->out, body.parts[i].body);
	}
	arena_fini(&arena);
	return written(w, e);
}

static enum err change_set(struct world *w)
{
	static const char text[] =
		"{\"insert\":{\"PartitionKey\":\"p\",\"RowKey\":\"n\",\"A\":1}}\n"
		"{\"merge\":{\"PartitionKey\":\"p\",\"RowKey\":\"m\"},\"if_match\":\"*\"}\n";
	const struct change_set_place at = { .account = SPAN_LIT("acc"), .table = SPAN_LIT("Tab") };
	struct change_set set;
	enum err e = change_set_parse(span_of(text), &at, &set, &w->detail);
	if (e == ERR_OK)
		change_set_result(&set, e, &w->detail, true, &w->out);
	change_set_fini(&set);
	return written(w, e);
}

static enum err built(struct world *w)
{
	struct json_build b;
	json_begin(&b);
	json_open_array(&b, "a");
	json_open_object(&b, NULL);
	json_add_hundredths(&b, "h", 7);
	json_add_text(&b, "bad", SPAN_LIT("\xff"));
	json_close(&b);
	json_close(&b);
	json_end_indented(&b, &w->out);
	return written(w, ERR_OK);
}

static enum err filter(struct world *w)
{
	struct filter f;
	struct key_ranges ranges = { 0 };
	enum err e = filter_parse(
		SPAN_LIT("(PartitionKey ge 'a' and PartitionKey lt 'c' or PartitionKey eq 'x')"
			 " and not (S eq 'it''s' or L gt 5L) and RowKey gt 'r'"),
		&f, &w->detail);
	if (e == ERR_OK)
		e = key_ranges_of_filter(&f, &ranges);
	if (e == ERR_OK)
		filter_print(&f, &w->out);
	key_ranges_fini(&ranges);
	filter_fini(&f);
	return written(w, e);
}

static enum err row_query(struct world *w)
{
	struct row_query q;
	enum err e = row_query_parse(
		SPAN_LIT("filter=A eq 'x%2Fy'&top=10&select=A,B,C.ndjson"), &q, &w->detail);
	if (e == ERR_OK)
		filter_print(&q.filter, &w->out);
	for (size_t i = 0; e == ERR_OK && i < q.select.n; i++)
		buf_add_span(&w->out, q.select.names[i]);
	row_query_fini(&q);
	return written(w, e);
}

static enum err policies(struct world *w)
{
	struct access_policies p = { 0 };
	enum err e = access_policies_from_xml(
		SPAN_LIT("<SignedIdentifiers><SignedIdentifier><Id>one &amp; two</Id><AccessPolicy>"
			 "<Start>2024-01-01</Start><Expiry>2025-01-01</Expiry>"
			 "<Permission>raud</Permission></AccessPolicy></SignedIdentifier>"
			 "<SignedIdentifier><Id>b</Id></SignedIdentifier></SignedIdentifiers>"),
		POLICY_LETTERS_TABLE, &p, &w->detail);
	if (e == ERR_OK)
		access_policies_to_xml(&p, &w->out);
	arena_fini(&p.arena);
	return written(w, e);
}

static enum err properties(struct world *w)
{
	struct service_properties p;
	service_properties_default(&p);
	enum err e = service_properties_from_xml(
		SPAN_LIT(
			"<?xml version=\"1.0\"?><StorageServiceProperties><Cors><CorsRule>"
			"<AllowedOrigins>http://a,http://b</AllowedOrigins>"
			"<AllowedMethods>GET,PUT</AllowedMethods><AllowedHeaders>x-*</AllowedHeaders>"
			"<ExposedHeaders>*</ExposedHeaders><MaxAgeInSeconds>5</MaxAgeInSeconds>"
			"</CorsRule></Cors></StorageServiceProperties>"),
		PROPERTIES_NEW, &p, &w->detail);
	if (e == ERR_OK)
		service_properties_to_xml(&p, PROPERTIES_NEW, &w->out);
	service_properties_fini(&p);
	return written(w, e);
}

static enum err uri(struct world *w)
{
	struct arena arena = { 0 };
	struct query_params params = { 0 };
	enum err e = query_params_parse(SPAN_LIT("$filter=A%20eq%201&$top=3&NextRowKey=a%26b"),
		&arena, &params, &w->detail);
	percent_encode_key(SPAN_LIT("it's \xC3\xA9/?#"), &w->out);
	arena_fini(&arena);
	return written(w, e);
}

static enum err batch_body(struct world *w)
{
	static const char text[] =
		"--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n--c\r\n"
		"Content-Type: application/http\r\n\r\nPOST /acc/Tab HTTP/1.1\r\n\r\n"
		"{\"PartitionKey\":\"p\",\"RowKey\":\"n\"}\r\n--c--\r\n--b--\r\n";
	const struct change_set_place at = { .account = SPAN_LIT("acc"), .table = SPAN_LIT("Tab") };
	struct change_set set;
	enum err e = change_set_parse(span_of(text), &at, &set, &w->detail);
	if (e == ERR_OK)
		buf_addf(&w->out, "%zu %.*s", set.n, (int)set.ops[0].rk.n, set.ops[0].rk.p);
	change_set_fini(&set);
	return written(w, e);
}

/* With keys that need memory of their own. */
static enum err entity_of_row(struct world *w)
{
	static char key[900];
	struct entity entity = { 0 };
	memset(key, 'k', sizeof(key));
	struct item it = { .kind = ITEM_ROW, .key = span_make(key, sizeof(key)) };
	it.body = SPAN_LIT("{\"A\":1}\n");
	enum err e = entity_of_item(&it, it.key, &entity);
	if (e == ERR_OK)
		buf_addf(&w->out, "%zu %zu %zu", entity.nprops, entity.pk.n, entity.rk.n);
	entity_fini(&entity);
	return written(w, e);
}

#define TEXT(name_, run_) \
	{ \
		name_, SWEEP_TEXT, NULL, run_, NULL \
	}
/* clang-format off */
const struct sweep_case sweep_texts[] = {
	TEXT("text: an entity of all types", entity),
	TEXT("text: an entity of 252 properties", many_properties),
	TEXT("text: a merge", merge),
	TEXT("text: a splicer", splice),
	TEXT("text: OData", odata),
	TEXT("text: ATOM", atom),
	TEXT("text: rows in ATOM", atom_rows),
	TEXT("text: a table in ATOM", atom_table),
	TEXT("text: large values", large),
	TEXT("text: multipart", multipart),
	TEXT("text: a change set", change_set),
	TEXT("text: JSON without rows", built),
	TEXT("text: a change set as a batch body", batch_body),
	TEXT("text: a row as an entity", entity_of_row),
	TEXT("text: a filter", filter),
	TEXT("text: a query in a path", row_query),
	TEXT("text: access policies", policies),
	TEXT("text: service properties", properties),
	TEXT("text: a query string", uri),
	{ NULL, 0, NULL, NULL, NULL },
};
/* clang-format on */
