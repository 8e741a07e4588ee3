/* SPDX-License-Identifier: MIT */
#include "query/filter_mismatch.h"

#include "codec/edm_text.h"

#include <inttypes.h>
#include <stdlib.h>

/* Per slot of the filter. */
struct mismatch {
	enum edm_type literal; /* type of the last comparison; STRING: nothing to count */
	uint64_t missed;       /* rows whose String parses as that type */
};

struct filter_mismatch {
	const struct filter *filter;
	struct mismatch slots[];
};

static void collect(struct filter_mismatch *w, const struct filter_node *n)
{
	for (; n->kind == FILTER_AND || n->kind == FILTER_OR; n = n->right)
		collect(w, n->left);
	if (n->kind == FILTER_NOT)
		collect(w, n->left);
	else if (n->kind == FILTER_COMPARE && n->slot != FILTER_SLOT_TIMESTAMP &&
		n->literal.type != EDM_STRING && n->literal.type != EDM_BINARY)
		w->slots[n->slot].literal = n->literal.type;
}

struct filter_mismatch *filter_mismatch_new(const struct filter *f)
{
	struct filter_mismatch *w = calloc(1, sizeof(*w) + f->nslots * sizeof(w->slots[0]));
	if (w == NULL)
		return NULL;
	w->filter = f;
	for (unsigned i = 0; i < f->nslots; i++)
		w->slots[i].literal = EDM_STRING;
	if (f->root != NULL)
		collect(w, f->root);
	return w;
}

void filter_mismatch_free(struct filter_mismatch *w)
{
	free(w);
}

void filter_mismatch_clear(struct filter_mismatch *w)
{
	for (unsigned i = 0; i < w->filter->nslots; i++)
		w->slots[i].missed = 0;
}

void filter_mismatch_row(struct filter_mismatch *w, const struct value *const *values)
{
	for (unsigned i = 0; i < w->filter->nslots; i++) {
		const struct value *v = values[i];
		struct value read;
		struct buf none = { 0 }; /* Binary is never counted */
		if (w->slots[i].literal != EDM_STRING && v != NULL && v->type == EDM_STRING &&
			edm_text_parse(w->slots[i].literal, v->bytes, &read, &none, NULL) == ERR_OK)
			w->slots[i].missed++;
	}
}

/* "Edm.DateTime" without "Edm.". */
static const char *short_name(enum edm_type type)
{
	return edm_name(type) + 4;
}

static void tell(struct buf *out, unsigned slot, struct span name, const struct mismatch *s)
{
	buf_add_span(out, name);
	if (slot < FILTER_SLOT_NAMED)
		buf_addf(out,
			" is a String, and never equals a literal of type %s. Compare it with a "
			"string, in quotes.",
			short_name(s->literal));
	else
		buf_addf(out,
			" is a String in %" PRIu64 " of these rows, and never equals a literal of "
			"type %s. ",
			s->missed, short_name(s->literal));
	if (slot >= FILTER_SLOT_NAMED && (s->literal == EDM_BOOLEAN || s->literal == EDM_INT32))
		buf_add_str(out,
			"Write it without quotes in the rows, or compare it with a string, in "
			"quotes.");
	else if (slot >= FILTER_SLOT_NAMED)
		buf_addf(out,
			"Write \"%.*s@odata.type\":\"%s\" beside it in the rows, or compare it "
			"with a string, in quotes.",
			(int)name.n, name.p, edm_name(s->literal));
}

void filter_mismatch_tell(const struct filter_mismatch *w, struct json_build *b)
{
	bool any = false;
	for (unsigned i = 0; i < w->filter->nslots; i++) {
		struct buf text = BUF_INIT(4096);
		if (w->slots[i].literal == EDM_STRING ||
			(i >= FILTER_SLOT_NAMED && w->slots[i].missed == 0))
			continue;
		tell(&text, i, w->filter->names[i], &w->slots[i]);
		if (!any)
			json_open_array(b, "notes");
		any = true;
		json_add_text(b, NULL, buf_span(&text));
		if (!buf_ok(&text))
			b->failed = true;
		buf_fini(&text);
	}
	if (any)
		json_close(b);
}
