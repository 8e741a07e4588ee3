/* SPDX-License-Identifier: MIT
 * The parts of a request target: percent-encoding, the query string, and the OData path that names
 * a resource (protocol sections 1.2 and 1.3).  This module knows neither accounts nor hosts. */
#ifndef CODEC_URI_H
#define CODEC_URI_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/span.h"

#include <stdbool.h>
#include <stddef.h>

/* Decodes s.  ret borrows from s if s needs no decoding; else the arena owns it.  plus: '+' means a
 * space, as in query strings.  ERR_INVALID_INPUT for '%' without two hex digits, and for a result
 * that is not UTF-8 or contains NUL.  ERR_NO_MEMORY. */
enum err percent_decode(
	struct span s, bool plus, struct arena *arena, struct span *ret, struct err_detail *detail);
/* Appends a key as it stands between the quotes of an entity URL (Location, odata.id).  Quotes are
 * doubled.  Characters that RFC 3986 forbids in a path segment are percent-encoded, with upper-case
 * digits.
 *
 * These remain: A-Z a-z 0-9 - . _ ~ ! $ & ( ) * + , ; = : @.  Clients compare keys with the
 * undecoded text, and a '+' in a path is a plus. */
void percent_encode_key(struct span key, struct buf *out);
/* Appends a value of a query string.  Encodes everything but the unreserved characters of RFC 3986
 * section 2.3. */
void percent_encode_value(struct span value, struct buf *out);

/* A request target: "http://host:port/path?query", "/path?query" or a part of it. */
struct url_parts {
	struct span host;  /* with its port; p is NULL unless the form is absolute */
	struct span path;  /* "/" if the absolute form has no path */
	struct span query; /* without the '?' */
};
/* Splits a target without checking it.  The spans borrow from target. */
void url_split(struct span target, struct url_parts *ret);

struct query_param {
	struct span name, value; /* decoded */
};

struct query_params {
	struct query_param *all; /* in their order, with duplicates; the arena owns them */
	size_t n;
};

/* Parses a query string, given without its '?'.  Names and values are decoded, and '+' is a space.
 * A name without '=' has an empty value.  Empty parts ("a=1&&b=2") are skipped. */
enum err query_params_parse(struct span query, struct arena *arena, struct query_params *ret,
	struct err_detail *detail);
/* Sets *ret to the value of the first parameter with this name; case counts.  Returns false if
 * there is none. */
bool query_params_find(const struct query_params *p, const char *name, struct span *ret);
/* Returns how many parameters have this name. */
size_t query_params_count(const struct query_params *p, const char *name);

enum resource_kind {
	RESOURCE_SERVICE,  /* "" or "/" */
	RESOURCE_METADATA, /* $metadata */
	RESOURCE_TABLES,   /* Tables, Tables() */
	RESOURCE_TABLE,    /* Tables('t') */
	RESOURCE_ENTITIES, /* t, t() */
	RESOURCE_ENTITY,   /* t(PartitionKey='p',RowKey='r') */
	RESOURCE_BATCH,    /* $batch */
};

struct resource {
	enum resource_kind kind;
	struct span table;  /* TABLE, ENTITIES, ENTITY: in the case of the request */
	struct span pk, rk; /* ENTITY: UTF-8, without doubled quotes */
};

/* Parses a path behind the account's segment.  It is still percent-encoded and may have '/' at
 * either end.  The keys may have any order, with blanks between the tokens; the case of their names
 * counts.
 *
 * The spans in ret borrow from path or are in the arena.  The p of an empty key is not NULL.
 * ERR_INVALID_INPUT with "Bad Request - Error in query syntax." for other paths.  Table names and
 * keys are not checked against the model here. */
enum err resource_parse(
	struct span path, struct arena *arena, struct resource *ret, struct err_detail *detail);

#endif
