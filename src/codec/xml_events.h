/* SPDX-License-Identifier: MIT
 * XML as events, with the rules for all bodies: UTF-8 only, no DTD, no entities but the predefined
 * ones, bounded.  xml.h builds a tree from the events, atom_entry.h an entry. */
#ifndef CODEC_XML_EVENTS_H
#define CODEC_XML_EVENTS_H

#include "base/err.h"
#include "base/span.h"

#include <stdbool.h>
#include <stddef.h>

#define XML_DEPTH_MAX 16
/* The most processing instructions in a document. */
#define XML_INSTRUCTIONS_MAX 1000

/* The start of an element.  It is valid only during the handler's call. */
struct xml_start {
	struct span space, name; /* the namespace, or ""; the name without prefix */
	size_t offset;           /* in the text, near the end of the tag */
	int nattributes;         /* private */
	const unsigned char **attributes;
};

/* An error of a handler ends the reading, and xml_events() returns it. */
struct xml_handler {
	enum err (*start)(void *arg, const struct xml_start *start);
	enum err (*end)(void *arg);
	/* Characters, CDATA included, in any number of pieces. */
	enum err (*text)(void *arg, struct span text);
};

/* Finds an attribute by namespace and name.  Returns false if it is missing. */
bool xml_attribute(
	const struct xml_start *start, const char *space, const char *name, struct span *ret);

/* Reads one document as UTF-8.  The library neither fetches nor prints anything.
 *
 * ERR_BODY_TOO_LARGE above bytes_max.  ERR_XML_INVALID if the document is not well-formed, declares
 * another encoding, or has a DTD, unknown entities, elements deeper than XML_DEPTH_MAX or more than
 * XML_INSTRUCTIONS_MAX instructions.  The detail has the position.  ERR_NO_MEMORY.  The error of a
 * handler, which fills the detail itself. */
enum err xml_events(struct span text, size_t bytes_max, const struct xml_handler *handler,
	void *arg, struct err_detail *detail);

/* Removes XML's white space from both ends. */
struct span xml_trim(struct span s);
/* Removes a byte order mark from the start. */
struct span xml_skip_bom(struct span text);

#endif
