/* SPDX-License-Identifier: MIT
 * A row as an OData JSON element (protocol sections 2.4, 2.5).  A canonical document is copied
 * without decoding it.  Other documents are decoded and encoded again. */
#ifndef CODEC_ENTITY_ODATA_H
#define CODEC_ENTITY_ODATA_H

#include "base/buf.h"
#include "base/err.h"
#include "base/span.h"
#include "model/entity.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum odata_level {
	ODATA_NONE,    /* odata=nometadata */
	ODATA_MINIMAL, /* odata=minimalmetadata */
	ODATA_FULL,    /* odata=fullmetadata */
};

struct atom_tags;

struct odata_style {
	enum odata_level level;
	bool single; /* the response is one entity: odata.metadata comes first */
	/* These are copied into URLs and strings: they must need no escapes. */
	struct span base;    /* "http://host/account/" with the final slash */
	struct span account; /* for odata.type */
	struct span table;   /* in the case of the request */
	bool all;            /* no $select, or $select=* */
	/* else these properties in this order, without duplicates; null if the row lacks one */
	const struct span *select;
	size_t nselect;
	struct atom_tags *tags; /* ATOM: the tags of earlier rows, or NULL */
};

struct odata_row {
	struct span pk, rk; /* UTF-8 */
	int64_t version;    /* ticks, for Timestamp and ETag */
	struct span document;
	/* ITEM_CANONICAL: as entity_json_encode() writes it without keys */
	bool canonical;
	const struct entity *entity; /* the decoded document, or NULL */
};

/* Appends one JSON object on one line.  ERR_CORRUPT if the document cannot be decoded; a canonical
 * one is trusted and only partly checked.  ERR_NO_MEMORY.  After an error out has a part of the
 * object.  The caller must check buf_ok(). */
enum err entity_odata_render(
	const struct odata_style *style, const struct odata_row *row, struct buf *out);

/* Appends base and "table(PartitionKey='p',RowKey='r')", percent-encoded, for Location and
 * odata.id. */
void entity_odata_url(
	struct span base, struct span table, struct span pk, struct span rk, struct buf *out);

#endif
