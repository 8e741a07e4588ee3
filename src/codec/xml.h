/* SPDX-License-Identifier: MIT
 * For XML bodies of a fixed form (policies, properties, stats): a strict reader that builds a small
 * tree, and functions for writers. */
#ifndef CODEC_XML_H
#define CODEC_XML_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "codec/xml_events.h"

#include <stdbool.h>

#define XML_BYTES_MAX ((size_t)64 * 1024)
#define XML_DECLARATION "<?xml version=\"1.0\" encoding=\"utf-8\"?>"

/* An element.  Prefixes, attributes, comments and processing instructions are dropped. */
struct xml_node {
	struct span name;              /* without prefix */
	struct span text;              /* its own characters, CDATA included; never NULL */
	struct xml_node *first, *next; /* its elements; its next sibling */
};

/* Sets *ret to the root of the document; the arena owns the tree.  The errors are those of
 * xml_events() with XML_BYTES_MAX. */
enum err xml_parse(
	struct span text, struct arena *arena, struct xml_node **ret, struct err_detail *detail);

/* A child that an element can have.  A table of them ends with name == NULL. */
struct xml_field {
	const char *name;
	bool required;
};
/* Sorts the children of an element by the table: ret[i] is the child fields[i].name or NULL.
 * ERR_XML_INVALID for text, and for an unknown, repeated or missing child, which the message
 * names. */
enum err xml_fields(const struct xml_node *node, const struct xml_field *fields,
	const struct xml_node **ret, struct err_detail *detail);
/* Sets *ret to the text of an element without inner elements.  ERR_XML_INVALID. */
enum err xml_text(const struct xml_node *node, struct span *ret, struct err_detail *detail);

/* Appends s with markup escaped.  Sets out->failed for characters that XML cannot contain: control
 * characters, U+FFFE, U+FFFF, invalid UTF-8. */
void xml_add_text(struct buf *out, struct span s);
/* Appends s as a message for people: characters that XML cannot contain are dropped. */
void xml_add_message(struct buf *out, struct span s);
/* Appends <name>text</name>, or <name /> if text is empty. */
void xml_add_element(struct buf *out, const char *name, struct span text);

#endif
