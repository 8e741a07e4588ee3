/* SPDX-License-Identifier: MIT
 * A list in the order of the documents.  If a row lacks some properties, the next ones are found a
 * few entries further on.  New properties are inserted at the position.  Rows that differ much fill
 * the list; it is then no longer used. */
#include "codec/atom_tags.h"

#include "codec/atom_text.h"

#define TAGS_MAX ((size_t)2 * LIMIT_PROPERTIES)
#define LOOK_AHEAD 4
/* Tags are copied in steps of this size, beyond their end.  Most need one or two steps. */
#define STEP 16

struct atom_tag {
	struct span before; /* such as "X@odata.type":"Edm.Int64","X": */
	struct span open, close;
	enum atom_value kind;
	struct atom_tag *next;
};

struct atom_tags {
	struct arena *arena;
	struct atom_tag *first;
	size_t n;
};

struct atom_tags *atom_tags_new(struct arena *arena)
{
	struct atom_tags *tags = arena_alloc(arena, sizeof(*tags));

	if (tags != NULL)
		*tags = (struct atom_tags){ .arena = arena };
	return tags;
}

bool atom_tags_begin(struct atom_tags *tags, struct atom_place *ret)
{
	if (tags == NULL || tags->n == TAGS_MAX)
		return false;
	ret->next = &tags->first;
	return true;
}

enum atom_value atom_value_of(struct span text, bool has_type)
{
	if (text.p[0] == '"')
		return has_type ? ATOM_QUOTED : ATOM_STRING;
	if (text.p[0] == 't' || text.p[0] == 'f')
		return ATOM_BOOLEAN;
	for (size_t i = 0; i < text.n; i++)
		if ((text.p[i] < '0' || text.p[i] > '9') && text.p[i] != '-')
			return ATOM_DOUBLE;
	return ATOM_INT32;
}

/* ---- writing ---- */

static char *put_tag(char *to, struct span tag)
{
	for (size_t i = 0; i < tag.n; i += STEP)
		memcpy(to + i, tag.p + i, STEP);
	return to + tag.n;
}

static char *put_text(char *to, const struct atom_tag *t, struct span text)
{
	if (t->kind == ATOM_STRING)
		return atom_put_text(to, text, true);
	memcpy(to, text.p, text.n);
	return to + text.n;
}

/* Returns false for another kind of value, for a value whose tag differs, and for damaged text. */
static bool put_element(const struct atom_tag *t, struct span text, struct buf *out)
{
	if (text.n > ATOM_SHORT || atom_value_of(text, t->kind == ATOM_QUOTED) != t->kind)
		return false;
	if (t->kind <= ATOM_QUOTED)
		text = span_make(text.p + 1, text.n - 2);
	if (t->kind == ATOM_STRING && atom_json_has_blank_ends(text))
		return false;
	if (!buf_reserve(out, t->open.n + ATOM_TEXT_ROOM(text.n) + t->close.n + STEP))
		return true;
	char *to = put_text(put_tag(out->data + out->len, t->open), t, text);
	if (to != NULL)
		out->len = (size_t)(put_tag(to, t->close) - out->data);
	out->data[out->len] = '\0';
	return to != NULL;
}

/* Writes the element with one of the next tags and returns that tag, or NULL. */
static struct atom_tag *put_next(struct atom_tag *t, struct document_walk *walk, struct buf *out)
{
	const char *from = walk->p;
	struct span text;

	for (size_t i = 0; i < LOOK_AHEAD && t != NULL; i++, t = t->next) {
		if (!document_walk_behind(walk, t->before, &text))
			continue;
		if (put_element(t, text, out))
			return t;
		walk->p = from;
	}
	return NULL;
}

void atom_tags_put(struct atom_place *at, struct document_walk *walk, struct buf *out)
{
	struct atom_tag *t;

	while ((t = put_next(*at->next, walk, out)) != NULL)
		at->next = &t->next;
}

/* ---- learning ---- */

/* Copies s to *room, followed by the bytes that put_tag() may read. */
static struct span keep(char **room, struct span s)
{
	char *p = *room;

	memcpy(p, s.p, s.n);
	memset(p + s.n, 0, STEP);
	*room += s.n + STEP;
	return span_make(p, s.n);
}

/* Returns true if put_element() can write other values of this kind with the same tags.  Strings
 * with blank ends need an attribute, and XML writes some Doubles differently. */
static bool is_usual(const struct document_property *p, enum atom_value kind)
{
	if (p->text.n > ATOM_SHORT)
		return false;
	if (kind == ATOM_STRING)
		return !atom_json_has_blank_ends(span_make(p->text.p + 1, p->text.n - 2));
	return (kind == ATOM_QUOTED) == (p->type.n > 0) && !span_is(p->type, "Edm.Double");
}

/* The text of an element has no < and >. */
void atom_tags_learn(struct atom_tags *tags, struct atom_place *at, struct span before,
	const struct document_property *p, struct span element)
{
	enum atom_value kind = atom_value_of(p->text, p->type.n > 0);
	const char *end = element.p + element.n, *close = memrchr(element.p, '<', element.n);
	const char *text = (const char *)memchr(element.p, '>', element.n) + 1;

	if (tags->n == TAGS_MAX || !is_usual(p, kind))
		return;
	struct atom_tag *t =
		arena_alloc(tags->arena, sizeof(*t) + before.n + element.n + (size_t)3 * STEP);
	if (t == NULL)
		return;
	char *room = (char *)(t + 1);
	t->before = keep(&room, before);
	t->open = keep(&room, span_make(element.p, (size_t)(text - element.p)));
	t->close = keep(&room, span_make(close, (size_t)(end - close)));
	t->kind = kind;
	t->next = *at->next;
	*at->next = t;
	at->next = &t->next;
	tags->n++;
}
