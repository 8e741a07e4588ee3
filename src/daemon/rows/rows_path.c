/* SPDX-License-Identifier: MIT
 * Paths of commands, whatever the rows are of. */
#include "daemon/rows/row_ops.h"

#include <string.h>

static struct span cut(struct span *text)
{
	size_t n = 0;
	while (n < text->n && text->p[n] != '/')
		n++;
	struct span ret = span_make(text->p, n);
	while (n < text->n && text->p[n] == '/')
		n++;
	*text = span_make(text->p + n, text->n - n);
	return ret;
}

void rows_cut(const char *path, struct span *account, struct span *table, struct span *rest)
{
	struct span text = span_of(path + strspn(path, "/"));
	while (text.n > 0 && text.p[text.n - 1] == '/')
		text.n--;
	*account = cut(&text);
	*table = cut(&text);
	*rest = text;
}

enum err rows_not_table(struct err_detail *why)
{
	return err_set(why, ERR_INVALID_INPUT, "not ACCOUNT/TABLE or ACCOUNT/TABLE/PARTITION");
}

enum err row_condition_error(const struct row_condition *c, enum err e)
{
	bool unmet = e == ERR_NOT_FOUND || e == ERR_ENTITY_EXISTS || e == ERR_GONE;
	return c->given && unmet ? ERR_CONDITION_NOT_MET : e;
}
