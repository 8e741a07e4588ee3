/* SPDX-License-Identifier: MIT
 * Filters: whatever parses must print to a text that parses to the same, is true for the
 * same rows, and is turned round by a not; whatever does not parse is refused with one
 * line and a place in the text. */
#include "base/text.h"
#include "codec/entity_json.h"
#include "fuzz.h"
#include "query/filter.h"

#include <math.h>

/* One value for each slot, another type for each next slot and row. */
static const struct value values[] = {
	{ .type = EDM_STRING, .bytes = SPAN_LIT("it's \xef\xbf\xbd") },
	{ .type = EDM_STRING, .bytes = SPAN_LIT("") },
	{ .type = EDM_INT32, .int32 = -7 },
	{ .type = EDM_INT64, .int64 = INT64_MAX },
	{ .type = EDM_DOUBLE, .dbl = 0x1p63 },
	{ .type = EDM_DOUBLE, .dbl = (double)NAN },
	{ .type = EDM_BOOLEAN, .boolean = true },
	{ .type = EDM_DATETIME, .ticks = 132223104000000000 },
	{ .type = EDM_GUID, .guid = { 1, 0x23 } },
	{ .type = EDM_BINARY, .bytes = SPAN_LIT("\0\xff") },
};

#define ROWS (ARRAY_LEN(values) + 1) /* one value in turn is missing */

static uint32_t truth_of(const struct filter *f)
{
	const struct value *row[FILTER_SLOT_NAMED + FILTER_COMPARISONS_MAX];
	uint32_t ret = 0;

	MUST(f->nslots >= FILTER_SLOT_NAMED && f->nslots <= ARRAY_LEN(row));
	for (unsigned i = 0; i < ROWS; i++) {
		for (unsigned slot = 0; slot < f->nslots; slot++) {
			unsigned k = (slot + i) % ROWS;
			row[slot] = k < ARRAY_LEN(values) ? &values[k] : NULL;
		}
		ret |= (uint32_t)filter_eval(f, row) << i;
	}
	return ret;
}

/* Every name of the filter is there: binding must find each. */
static void bind_all(const struct filter *f)
{
	const struct value *row[FILTER_SLOT_NAMED + FILTER_COMPARISONS_MAX];
	struct entity e = { 0 };

	for (unsigned slot = f->nslots; slot-- > FILTER_SLOT_NAMED;)
		MUST(entity_add(&e, f->names[slot], &values[slot % ARRAY_LEN(values)]) == ERR_OK);
	filter_bind(f, &e, row);
	for (unsigned slot = FILTER_SLOT_NAMED; slot < f->nslots; slot++)
		MUST(row[slot] == &e.props[f->nslots - 1 - slot].value);
	entity_fini(&e);
}

/* A stored document must match as the entity that it was made from. */
static void bind_stored(const struct filter *f)
{
	static struct value memory[FILTER_SLOT_NAMED + FILTER_COMPARISONS_MAX];
	const struct value *decoded[ARRAY_LEN(memory)] = { 0 }, *stored[ARRAY_LEN(memory)] = { 0 };
	struct entity e = { 0 };
	struct arena arena = { 0 };
	struct buf document = BUF_INIT(64u << 20);

	for (unsigned slot = FILTER_SLOT_NAMED; slot < f->nslots; slot++) {
		const struct value *v = &values[slot % ARRAY_LEN(values)];
		if (v->type != EDM_BINARY)
			MUST(entity_add(&e, f->names[slot], v) == ERR_OK);
	}
	entity_json_encode(&e, ENTITY_JSON_NEWLINE, &document);
	filter_bind(f, &e, decoded);
	MUST(filter_bind_document(f, buf_span(&document), &arena, memory, stored) == ERR_OK);
	MUST(filter_eval(f, decoded) == filter_eval(f, stored));
	buf_fini(&document);
	arena_fini(&arena);
	entity_fini(&e);
}

static void check_print(const struct filter *f)
{
	struct buf once = BUF_INIT(64u << 20), twice = BUF_INIT(64u << 20);
	struct filter again;

	filter_print(f, &once);
	MUST(buf_ok(&once));
	MUST(filter_parse(buf_span(&once), &again, NULL) == ERR_OK);
	filter_print(&again, &twice);
	MUST(span_eq(buf_span(&once), buf_span(&twice)));
	MUST(again.nslots == f->nslots);
	MUST(truth_of(&again) == truth_of(f));
	filter_fini(&again);
	buf_fini(&once);
	buf_fini(&twice);
}

/* not (text): the opposite, or too deep. */
static void check_not(struct span text, const struct filter *f)
{
	struct buf b = BUF_INIT(64u << 20);
	struct filter opposite;
	enum err e;

	buf_add_str(&b, "not(");
	buf_add_span(&b, text);
	buf_add_char(&b, ')');
	MUST(buf_ok(&b));
	e = filter_parse(buf_span(&b), &opposite, NULL);
	MUST(e == ERR_OK || e == ERR_INVALID_INPUT);
	if (e == ERR_OK)
		MUST(truth_of(&opposite) == (~truth_of(f) & ((UINT32_C(1) << ROWS) - 1)));
	filter_fini(&opposite);
	buf_fini(&b);
}

static void check_refusal(struct span text, enum err e, const struct err_detail *d)
{
	MUST(e == ERR_INVALID_INPUT || e == ERR_NOT_SUPPORTED);
	MUST(utf8_valid(span_of(d->text)) && d->text[0] != '\0');
	MUST(!d->has_offset || d->offset <= text.n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct span text = span_make(data, size);
	struct err_detail detail;
	struct filter f;
	enum err e = filter_parse(text, &f, &detail);

	if (e == ERR_OK) {
		bind_all(&f);
		bind_stored(&f);
		check_print(&f);
		if (f.root != NULL)
			check_not(text, &f);
	} else {
		MUST(f.root == NULL);
		check_refusal(text, e, &detail);
	}
	filter_fini(&f);
	return 0;
}
