/* SPDX-License-Identifier: MIT
 * Caches the tags of a page's properties.  Most rows of a page have the same properties in the same
 * order.  A tag is found again by the text in front of the value in the document. */
#ifndef CODEC_ATOM_TAGS_H
#define CODEC_ATOM_TAGS_H

#include "base/arena.h"
#include "base/buf.h"
#include "codec/document_walk.h"

#include <stdbool.h>
#include <stddef.h>

/* The kinds of values in a canonical document. */
enum atom_value {
	ATOM_STRING,
	ATOM_QUOTED, /* has a type in front, and no escapes */
	ATOM_INT32,
	ATOM_DOUBLE,
	ATOM_BOOLEAN,
};

/* text includes the quotes. */
enum atom_value atom_value_of(struct span text, bool has_type);

/* A value of up to this length is written together with its tags. */
#define ATOM_SHORT 1024

/* The tags of a page, and a position among them. */
struct atom_tags;
struct atom_tag;
struct atom_place {
	struct atom_tag **next;
};

/* The arena owns the result.  NULL when memory is out. */
struct atom_tags *atom_tags_new(struct arena *arena);
/* Sets *ret to the start of a row.  Returns false if the cache cannot be used; tags may be NULL. */
bool atom_tags_begin(struct atom_tags *tags, struct atom_place *ret);
/* Takes properties from the document and appends their elements while their tags are known. */
void atom_tags_put(struct atom_place *at, struct document_walk *walk, struct buf *out);
/* Adds the tags of property p.  element is what was written for p; before is the text in front of
 * its value in the document. */
void atom_tags_learn(struct atom_tags *tags, struct atom_place *at, struct span before,
	const struct document_property *p, struct span element);

#endif
