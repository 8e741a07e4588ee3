/* SPDX-License-Identifier: MIT */
#include "fs/tree/facts.h"

#include "base/clock.h"
#include "model/etag.h"
#include "model/key.h"

static enum err get_etag(
	struct fs *fs, struct store_view *view, const struct item *it, struct buf *out)
{
	char etag[ETAG_MAX];
	(void)fs, (void)view;
	buf_add(out, etag, (size_t)etag_format(it->version, etag));
	return ERR_OK;
}

static enum err get_timestamp(
	struct fs *fs, struct store_view *view, const struct item *it, struct buf *out)
{
	char text[CLOCK_TEXT_MAX];
	(void)fs, (void)view;
	buf_add(out, text, (size_t)clock_format(it->version, text));
	return ERR_OK;
}

static enum err add_key(struct span order, struct buf *out)
{
	char key[LIMIT_KEY_BYTES];
	key_from_order(order.p, order.n, key);
	buf_add(out, key, order.n);
	return ERR_OK;
}

static enum err get_row_key(
	struct fs *fs, struct store_view *view, const struct item *it, struct buf *out)
{
	(void)fs, (void)view;
	return add_key(it->key, out);
}

static enum err get_partition_key(
	struct fs *fs, struct store_view *view, const struct item *it, struct buf *out)
{
	if (it->kind == ITEM_PARTITION)
		return add_key(it->key, out);
	struct item partition = { 0 };
	enum err e = store_get(fs->store, view, it->parent, WANT_ATTRS, &partition);
	if (e == ERR_OK)
		e = add_key(partition.key, out);
	item_fini(&partition);
	return e;
}

#define KIND(k_) (1u << (k_))

/* Keep alphabetized. */
static const struct fact {
	const char *name;
	bool version; /* of the version, not of the row as it is now */
	unsigned kinds;
	enum err (*get)(
		struct fs *fs, struct store_view *view, const struct item *it, struct buf *out);
} facts[] = {
	{ "etag", true, KIND(ITEM_ROW), get_etag },
	{ "partition_key", false, KIND(ITEM_ROW) | KIND(ITEM_PARTITION), get_partition_key },
	{ "row_key", false, KIND(ITEM_ROW), get_row_key },
	{ "timestamp", true, KIND(ITEM_ROW), get_timestamp },
};

static const struct fact *find(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(facts); i++)
		if (strcmp(name, facts[i].name) == 0)
			return &facts[i];
	return NULL;
}

bool fact_is_known(const char *name)
{
	return find(name) != NULL;
}

bool fact_is_of_version(const char *name)
{
	const struct fact *f = find(name);
	return f != NULL && f->version;
}

enum err fact_get(struct fs *fs, struct store_view *view, const struct item *it, const char *name,
	struct buf *out)
{
	const struct fact *f = find(name);
	return f != NULL && (f->kinds & KIND(it->kind)) != 0 && !item_is_empty_row(it)
		? f->get(fs, view, it, out)
		: ERR_NO_ATTRIBUTE;
}
