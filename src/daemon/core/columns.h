/* SPDX-License-Identifier: MIT
 * CSV as columns for people: aligned, one line a row, without the columns of types. */
#ifndef DAEMON_CORE_COLUMNS_H
#define DAEMON_CORE_COLUMNS_H

#include "base/buf.h"

#include <stdio.h>

#define COLUMNS_BYTES ((size_t)16 << 20) /* of the cells that wait */

struct columns {
	FILE *out;
	struct buf cells; /* each with a NUL; row by row */
	size_t n;         /* columns; 0: the header is not complete */
	size_t cell;      /* in the last row */
	size_t rows;      /* complete ones */
	size_t *width;    /* of each column; SIZE_MAX: it is not shown */
	bool quoted, quote_before;
};

#define COLUMNS_INIT(out_) ((struct columns){ .out = (out_), .cells = BUF_INIT(COLUMNS_BYTES) })

/* Takes the next piece of the CSV, and prints what is enough to align.  ERR_NO_MEMORY,
 * ERR_BODY_TOO_LARGE. */
enum err columns_add(struct columns *c, struct span csv);
/* Prints the rest. */
enum err columns_flush(struct columns *c);
void columns_fini(struct columns *c);

#endif
