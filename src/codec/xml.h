/* SPDX-License-Identifier: MIT
 * The common ground of the XML bodies of fixed form (policies, properties, stats): a strict
 * reader that makes a small tree, and what writers need. */
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
	struct span name; /* without prefix */
	struct span text; /* all characters that stand in it directly, CDATA too; never NULL */
	struct xml_node *first, *next; /* its elements; its next sibling */
};

/* The document's root; everything lives in the arena.  The errors of xml_events(), with
 * XML_BYTES_MAX. */
enum err xml_parse(
	struct span text, struct arena *arena, struct xml_node **ret, struct err_detail *detail);

/* One child that an element may have; the table of them ends with name == NULL. */
struct xml_field {
	const char *name;
	bool required;
};
/* Sorts the children of an element, which holds nothing else but blanks, by the table:
 * ret[i] is the child fields[i].name or NULL.  ERR_XML_INVALID, naming it, for a child that
 * is unknown, stands twice, or is missing. */
enum err xml_fields(const struct xml_node *node, const struct xml_field *fields,
	const struct xml_node **ret, struct err_detail *detail);
/* The text of an element without elements in it, as it stands.  ERR_XML_INVALID. */
enum err xml_text(const struct xml_node *node, struct span *ret, struct err_detail *detail);

/* s with what markup needs escaped.  What XML cannot carry (control characters, U+FFFE,
 * invalid UTF-8) sets out->failed. */
void xml_add_text(struct buf *out, struct span s);
/* The same for people: what XML cannot carry is left out. */
void xml_add_message(struct buf *out, struct span s);
/* <name>text</name>, or <name /> where the text is empty. */
void xml_add_element(struct buf *out, const char *name, struct span text);

#endif
