/* SPDX-License-Identifier: MIT
 * The rows of a page mostly have the same properties in the same order: the tags of each are made
 * once, and known again by what stands in front of a value in the document. */
#ifndef CODEC_ATOM_TAGS_H
#define CODEC_ATOM_TAGS_H

#include "base/arena.h"
#include "base/buf.h"
#include "codec/document_walk.h"

#include <stdbool.h>
#include <stddef.h>

/* Of a property in a canonical document. */
enum atom_value {
	ATOM_STRING,
	ATOM_QUOTED, /* with its type in front, and without escapes */
	ATOM_INT32,
	ATOM_DOUBLE,
	ATOM_BOOLEAN,
};

/* text: with its quotes. */
enum atom_value atom_value_of(struct span text, bool has_type);

/* A value up to this length is written in one piece with its element. */
#define ATOM_SHORT 1024

/* What a page has learned, and where a row is in it. */
struct atom_tags;
struct atom_tag;
struct atom_place {
	struct atom_tag **next;
};

/* Lives in the arena; NULL when memory is out. */
struct atom_tags *atom_tags_new(struct arena *arena);
/* Where a row begins; false: no use is to be made of them (tags may be NULL). */
bool atom_tags_begin(struct atom_tags *tags, struct atom_place *ret);
/* Takes properties of the document and writes their elements, as long as their tags are known. */
void atom_tags_put(struct atom_place *at, struct document_walk *walk, struct buf *out);
/* element: what was written for p; before: what stands in front of its value in the document. */
void atom_tags_learn(struct atom_tags *tags, struct atom_place *at, struct span before,
	const struct document_property *p, struct span element);

#endif
