/* SPDX-License-Identifier: MIT
 * The bodies of OData operations, by format: JSON and ATOM.  Nothing above this line knows
 * which one is spoken. */
#ifndef REST_FORMAT_H
#define REST_FORMAT_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "codec/entity_odata.h"
#include "model/entity.h"

#include <stdbool.h>
#include <stdint.h>

/* What a body is. */
enum body_kind {
	BODY_ELEMENTS, /* entities or tables */
	BODY_SERVICE,  /* the service document */
	BODY_ERROR,
};

struct format {
	const char *name;
	const char *version; /* of the protocol that it belongs to: DataServiceVersion */
	/* Value of Content-Type at a level. */
	const char *(*content_type)(enum odata_level level, enum body_kind kind);

	/* An entity from a body; keys it may hold, checked (the decoder's rules). */
	enum err (*read_entity)(struct span body, struct entity *ret, struct err_detail *detail);
	/* The TableName of a body; lives in the arena.  ERR_KEY_MISSING without one. */
	enum err (*read_table)(struct span body, struct arena *arena, struct span *ret_name,
		struct err_detail *detail);

	/* A single entity or table as the whole body. */
	enum err (*write_entity)(
		const struct odata_style *style, const struct odata_row *row, struct buf *out);
	void (*write_table)(const struct odata_style *style, struct span name, struct buf *out);
	/* A feed: begin, any number of entries, end.  first: nothing was written before it.
	 * what: "Tables" or the table; select: the raw $select or p == NULL.  What the entries
	 * have in common may be kept in the style, and lives in the arena. */
	void (*begin_feed)(struct odata_style *style, struct span what, struct span select,
		struct arena *arena, struct buf *out);
	enum err (*feed_entity)(const struct odata_style *style, const struct odata_row *row,
		bool first, struct buf *out);
	void (*feed_table)(
		const struct odata_style *style, struct span name, bool first, struct buf *out);
	void (*end_feed)(const struct odata_style *style, struct buf *out);

	/* The service document. */
	void (*write_service)(const struct odata_style *style, struct buf *out);
	/* message has its RequestId and Time already. */
	void (*write_error)(const char *code, struct span message, struct buf *out);
};

extern const struct format format_json;
extern const struct format format_atom;

/* Which format and level the answer takes: $format, else Accept, by version (protocol
 * section 3.3).  ERR_ATOM_NOT_SUPPORTED, ERR_JSON_NOT_SUPPORTED, ERR_JSON_VERBOSE, ERR_MEDIA_TYPE: then
 * neither is changed. */
enum err format_negotiate(struct span dollar_format, struct span accept, int version,
	const struct format **ret, enum odata_level *ret_level, struct err_detail *detail);
/* What a version answers with where it is free to choose. */
const struct format *format_default(int version);
/* Which format a body has, by its Content-Type (none: JSON where the version has it). */
enum err format_of_body(struct span content_type, int version, const struct format **ret,
	struct err_detail *detail);

#endif
