/* SPDX-License-Identifier: MIT
 * A transfer of a store that is stopped removes what it made, and nothing of others (BK9). */
#include "base/clock.h"
#include "check.h"
#include "service/transfer/store_transfer.h"
#include "store/engines.h"

#include <stdio.h>

static void put_account(struct store *s, const char *name)
{
	struct change c = { .op = CHANGE_PUT,
		.at = { .parent = STORE_ROOT, .class = CLASS_KEYED, .key = span_of(name) },
		.cond = COND_ABSENT,
		.version = clock_ticks(),
		.kind = ITEM_ACCOUNT,
		.body = SPAN_LIT("secret"),
		.attrs = ATTRS_UNSET };
	CHECK_ERR(store_apply(s, &c, 1, false, NULL), ERR_OK);
	changes_fini(&c, 1);
}

struct names {
	char text[64];
};

static bool add_name(void *arg, const struct item *it)
{
	struct names *n = arg;
	size_t at = strlen(n->text);
	(void)snprintf(n->text + at, sizeof(n->text) - at, "%.*s ", (int)it->key.n, it->key.p);
	return true;
}

static struct names accounts(struct store *s)
{
	struct names n = { "" };
	CHECK_ERR(store_list(s, NULL, STORE_ROOT, CLASS_KEYED, (struct span){ 0 }, false, WANT_KEYS,
			  add_name, &n),
		ERR_OK);
	return n;
}

struct meddler {
	struct store *to;
	uint64_t stop_at; /* items */
};

/* Somebody else makes an account in the target, and then the transfer is stopped. */
static bool meddle(void *arg, const struct store_transfer_counts *so_far)
{
	struct meddler *m = arg;
	if (so_far->items == 1)
		put_account(m->to, "other");
	return so_far->items < m->stop_at;
}

static enum err transfer(uint64_t stop_at, const char *also, struct names *ret)
{
	struct store *from, *to;
	struct store_transfer_counts counts;
	CHECK_ERR(store_open_memory(&from), ERR_OK);
	CHECK_ERR(store_open_memory(&to), ERR_OK);
	put_account(from, "one");
	put_account(from, also);
	put_account(from, "three");
	struct meddler m = { .to = to, .stop_at = stop_at };
	enum err e = store_transfer(from, NULL, to, meddle, &m, &counts, NULL);
	CHECK(!counts.left);
	*ret = accounts(to);
	store_close(from);
	store_close(to);
	return e;
}

TEST(a_whole_transfer_has_all)
{
	struct names n;
	CHECK_ERR(transfer(100, "two", &n), ERR_OK);
	CHECK_EQ_STR(n.text, "one other three two ");
}

TEST(a_transfer_that_is_stopped_removes_only_what_it_made)
{
	struct names n;
	CHECK_ERR(transfer(2, "two", &n), ERR_CANCELLED);
	CHECK_EQ_STR(n.text, "other ");
}

TEST(an_account_that_others_made_is_left_to_them)
{
	struct names n;
	CHECK_ERR(transfer(100, "other", &n), ERR_ACCOUNT_EXISTS);
	CHECK_EQ_STR(n.text, "other ");
}

RUN_TESTS(T(a_whole_transfer_has_all), T(a_transfer_that_is_stopped_removes_only_what_it_made),
	T(an_account_that_others_made_is_left_to_them))
