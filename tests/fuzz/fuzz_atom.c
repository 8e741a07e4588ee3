/* SPDX-License-Identifier: MIT
 * ATOM bodies.  Whatever decodes is an entity by the model's rules, and is written as an entry
 * that decodes to the same; from the entity and from the document that the store would have,
 * byte for byte the same, alone and in a page.  A JSON document goes the same way, so that
 * strings of every kind are written. */
#include "codec/atom_tags.h"
#include "codec/entity_atom.h"
#include "codec/entity_json.h"
#include "fuzz.h"

static const struct odata_style style = {
	.single = true,
	.base = { "http://host/acct/", 17 },
	.account = { "acct", 4 },
	.table = { "t", 1 },
	.all = true,
};

static void must_be_same(const struct entity *a, const struct entity *b)
{
	MUST(b->has_pk && b->has_rk && a->nprops == b->nprops);
	MUST(!a->has_pk || span_eq(a->pk, b->pk));
	MUST(!a->has_rk || span_eq(a->rk, b->rk));
	for (size_t i = 0; i < a->nprops; i++) {
		MUST(span_eq(a->props[i].name, b->props[i].name));
		MUST(value_same(&a->props[i].value, &b->props[i].value));
	}
}

/* Behind a row that has its last half of properties, and behind itself. */
static void is_same_in_a_page(const struct entity *e, struct odata_row row, struct span want)
{
	struct buf document = BUF_INIT(16u << 20), out = BUF_INIT(16u << 20);
	struct arena arena = { 0 };
	struct odata_style page = style;
	struct entity half = *e;

	page.tags = atom_tags_new(&arena);
	if (e->nprops > 1) {
		half.props += e->nprops / 2;
		half.nprops -= e->nprops / 2;
	}
	const struct span whole = row.document;
	entity_json_encode(&half, 0, &document);
	row.document = buf_span(&document);
	MUST(entity_atom_render(&page, &row, &out) == ERR_OK);
	row.document = whole;
	for (int i = 0; i < 3; i++) {
		buf_clear(&out);
		MUST(entity_atom_render(&page, &row, &out) == ERR_OK);
		MUST(buf_ok(&out) && span_eq(buf_span(&out), want));
	}
	buf_fini(&document);
	buf_fini(&out);
	arena_fini(&arena);
}

static void comes_back(const struct entity *e)
{
	struct buf document = BUF_INIT(16u << 20), one = BUF_INIT(16u << 20),
		   other = BUF_INIT(16u << 20);
	struct entity again = { 0 };
	struct odata_row row = { .pk = e->has_pk ? e->pk : SPAN_LIT("p"),
		.rk = e->has_rk ? e->rk : SPAN_LIT("r"),
		.version = INT64_C(133500000000000001),
		.entity = e };

	entity_json_encode(e, 0, &document);
	MUST(entity_atom_render(&style, &row, &one) == ERR_OK);
	row.document = buf_span(&document);
	row.canonical = true;
	MUST(entity_atom_render(&style, &row, &other) == ERR_OK);
	MUST(buf_ok(&document) && buf_ok(&one) && buf_ok(&other));
	MUST(span_eq(buf_span(&one), buf_span(&other)));
	is_same_in_a_page(e, row, buf_span(&one));
	/* What is written may be larger than what is read at most. */
	if (one.len <= LIMIT_DOCUMENT_BYTES) {
		MUST(entity_atom_decode(buf_span(&one), &again, NULL) == ERR_OK);
		must_be_same(e, &again);
	}
	entity_fini(&again);
	buf_fini(&document);
	buf_fini(&one);
	buf_fini(&other);
}

static void table(struct span text)
{
	struct arena arena = { 0 };
	struct span name;

	if (table_atom_decode(text, &arena, &name, NULL) == ERR_OK)
		MUST(name.p != NULL && name.n <= text.n);
	arena_fini(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct span text = span_make(data, size);
	struct entity e = { 0 };
	struct err_detail detail = { 0 };
	enum err err = entity_atom_decode(text, &e, &detail);

	if (err == ERR_OK) {
		MUST(entity_check(&e, NULL) == ERR_OK);
		comes_back(&e);
	} else {
		MUST(err_http(err) == 400 || err == ERR_BODY_TOO_LARGE);
		MUST(err == ERR_BODY_TOO_LARGE || detail.text[0] != '\0');
	}
	table(text);
	if (size > 0 && data[0] == '{' &&
		entity_json_decode(text, ENTITY_JSON_REST, &e, NULL, NULL) == ERR_OK)
		comes_back(&e);
	entity_fini(&e);
	return 0;
}
