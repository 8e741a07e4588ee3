/* SPDX-License-Identifier: MIT */
#include "daemon/core/columns.h"

#include "base/text.h"

#include <stdlib.h>
#include <string.h>

#define ROWS_ALIGNED 200 /* together; later ones keep the widths, or widen them */
#define WIDTH_MAX 48
#define HIDDEN SIZE_MAX

void columns_fini(struct columns *c)
{
	buf_fini(&c->cells);
	free(c->width);
}

/* How many bytes of a cell are shown.  *ret_width: on how many places. */
static size_t shown(const char *cell, size_t *ret_width)
{
	size_t n = 0, width = 0;
	for (; cell[n] != 0; n++) {
		width += ((unsigned char)cell[n] & 0xc0) != 0x80;
		if (width > WIDTH_MAX)
			break;
	}
	*ret_width = width < WIDTH_MAX ? width : WIDTH_MAX;
	return n;
}

static void widen(struct columns *c)
{
	const char *cell = c->cells.data;
	for (size_t i = 0; i < c->rows * c->n; i++, cell += strlen(cell) + 1) {
		size_t width;
		(void)shown(cell, &width);
		size_t *of = &c->width[i % c->n];
		if (*of != HIDDEN && width > *of)
			*of = width;
	}
}

static void print(struct columns *c)
{
	const char *cell = c->cells.data;
	size_t blanks = 0; /* that come before the next cell */
	for (size_t i = 0; i < c->rows * c->n; i++, cell += strlen(cell) + 1) {
		size_t width, n = shown(cell, &width), of = c->width[i % c->n];
		if (of != HIDDEN && n > 0) {
			fprintf(c->out, "%*s%.*s", (int)blanks, "", (int)n, cell);
			blanks = of - width + 2;
		} else if (of != HIDDEN) {
			blanks += of + 2;
		}
		if (i % c->n != c->n - 1)
			continue;
		fputc('\n', c->out);
		blanks = 0;
	}
}

enum err columns_flush(struct columns *c)
{
	if (!buf_ok(&c->cells))
		return buf_full(&c->cells);
	if (c->rows > 0) {
		widen(c);
		print(c);
	}
	buf_clear(&c->cells);
	c->rows = 0;
	return ERR_OK;
}

/* The header has told how many columns there are. */
static enum err begin(struct columns *c)
{
	c->n = c->cell;
	c->width = calloc(c->n, sizeof(*c->width));
	if (c->width == NULL || !buf_ok(&c->cells))
		return ERR_NO_MEMORY;
	const char *name = c->cells.data;
	for (size_t i = 0; i < c->n; i++, name += strlen(name) + 1)
		if (span_ends(span_of(name), SPAN_LIT("@type")))
			c->width[i] = HIDDEN;
	return ERR_OK;
}

static enum err end_row(struct columns *c)
{
	enum err e = c->n == 0 ? begin(c) : ERR_OK;
	c->cell = 0;
	c->rows++;
	return e == ERR_OK && c->rows >= ROWS_ALIGNED ? columns_flush(c) : e;
}

static enum err take(struct columns *c, char byte)
{
	bool again = c->quote_before && byte == '"';
	c->quote_before = false;
	if (byte == '"') {
		if (again)
			buf_add_char(&c->cells, '"');
		c->quoted = !c->quoted;
		c->quote_before = !c->quoted;
	} else if (!c->quoted && (byte == ',' || byte == '\n')) {
		buf_add_char(&c->cells, 0);
		c->cell++;
		return byte == '\n' ? end_row(c) : ERR_OK;
	} else if (c->quoted || byte != '\r') {
		/* A row's text must not steer the terminal. */
		bool plain = (unsigned char)byte >= ' ' && byte != 0x7f;
		buf_add_char(&c->cells, plain ? byte : ' ');
	}
	return ERR_OK;
}

enum err columns_add(struct columns *c, struct span csv)
{
	enum err e = ERR_OK;
	for (size_t i = 0; e == ERR_OK && i < csv.n; i++)
		e = take(c, csv.p[i]);
	return e == ERR_OK ? buf_full(&c->cells) : e;
}
