/* SPDX-License-Identifier: MIT
 * The row that the tests of both formats render, and how they ask for it. */
#ifndef UNIT_ODATA_ROW_H
#define UNIT_ODATA_ROW_H

#include "base/clock.h"
#include "check.h"
#include "codec/entity_odata.h"

#define BASE "http://127.0.0.1:10002/acct/"
#define TIME "2021-10-15T16:13:07.21463Z"

static struct odata_style style = {
	.base = { BASE, sizeof(BASE) - 1 },
	.account = { "acct", 4 },
	.table = { "t", 1 },
	.all = true,
};
static struct odata_row row = {
	.pk = { "p", 1 },
	.rk = { "r", 1 },
};

/* TIME */
static int64_t version(void)
{
	int64_t midnight;

	CHECK(clock_date(2021, 10, 15, &midnight));
	return midnight + (16 * 3600 + 13 * 60 + 7) * TICKS_PER_SECOND + 2146300;
}

static void set_document(const char *text, bool canonical)
{
	row.version = version();
	row.document = span_of(text);
	row.canonical = canonical;
	row.entity = NULL;
}

static void select_names(const struct span *names, size_t n)
{
	style.all = false;
	style.select = names;
	style.nselect = n;
}

static void select_all(void)
{
	style.all = true;
	style.select = NULL;
	style.nselect = 0;
}

#endif
