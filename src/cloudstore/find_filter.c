/* SPDX-License-Identifier: MIT */
#include "cloudstore/find_filter.h"

#include "cloudstore/question.h"
#include "model/key.h"

/* A bound as the service has it. */
struct bound {
	char text[LIMIT_KEY_BYTES];
	struct span key;
	bool given;
	bool behind; /* the key itself is outside */
};

/* No key is longer: such a bound tells the service nothing. */
static void set_bound(struct bound *b, struct span order)
{
	size_t n = order.n;
	b->behind = n > 0 && (unsigned char)order.p[n - 1] < ' ';
	n -= b->behind;
	b->given = order.p != NULL && n <= LIMIT_KEY_BYTES;
	if (b->given && n > 0)
		key_from_order(order.p, n, b->text);
	b->key = span_make(b->text, b->given ? n : 0);
}

static void compare(struct buf *out, const char *what, const struct bound *b)
{
	refresh_add_comparison(out, what, b->key);
}

static void add_rows(struct buf *out, const struct bound *from, const struct bound *until)
{
	if (from->given && (from->key.n > 0 || from->behind))
		compare(out, from->behind ? "RowKey gt" : "RowKey ge", from);
	if (until->given)
		compare(out, "RowKey le", until);
}

/* Of several partitions.  The first comparison gives the service a range to read. */
static void add_partitions(struct buf *out, const struct bound *from, const struct bound *rk,
	const struct bound *until)
{
	bool inside = !from->behind && rk->given && (rk->key.n > 0 || rk->behind);
	if (from->given && (from->key.n > 0 || from->behind || inside))
		compare(out, from->behind ? "PartitionKey gt" : "PartitionKey ge", from);
	if (from->given && inside) {
		buf_add_str(out, " and (PartitionKey gt ");
		cloud_add_literal(from->key, out);
		buf_add_str(out, rk->behind ? " or RowKey gt " : " or RowKey ge ");
		cloud_add_literal(rk->key, out);
		buf_add_char(out, ')');
	}
	if (until->given)
		compare(out, "PartitionKey le", until);
}

enum err find_filter(const struct store_find *q, struct buf *ret)
{
	struct bound from, until, from_rk, until_rk;
	*ret = BUF_INIT(FILTER_LIMIT);
	set_bound(&from, q->from_pk);
	set_bound(&until, q->until_pk);
	set_bound(&from_rk, q->from_rk);
	set_bound(&until_rk, q->until_rk);
	bool one = from.given && until.given && !from.behind && span_eq(from.key, until.key);
	if (q->filter.n > 0)
		buf_addf(ret, "(%.*s)", (int)q->filter.n, q->filter.p);
	if (one) {
		compare(ret, "PartitionKey eq", &from);
		add_rows(ret, &from_rk, &until_rk);
	} else {
		add_partitions(ret, &from, &from_rk, &until);
	}
	return buf_ok(ret) ? ERR_OK : ERR_NOT_SUPPORTED;
}
