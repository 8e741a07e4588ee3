/* SPDX-License-Identifier: MIT */
#include "fs/query/tree.h"

#include "fs/cache/content.h"
#include "fs/core/nid.h"
#include "fs/query/dir.h"
#include "fs/query/prune.h"
#include "fs/query/rows.h"
#include "fs/tree/attr.h"
#include "fs/tree/facts.h"
#include "fs/tree/names.h"
#include "fs/virtual/dir_control.h"
#include "fs/virtual/stream_file.h"
#include "model/key.h"

#include <fcntl.h>

struct key_text {
	char text[LIMIT_KEY_BYTES];
	struct span span;
};

static void key_of_order(struct key_text *k, struct span order)
{
	if (order.n > 0)
		key_from_order(order.p, order.n, k->text);
	k->span = span_make(k->text, order.n);
}

static uint64_t root_of(uint64_t table_id)
{
	return nid_of_dir_control(DIR_CONTROL_QUERY, table_id);
}

/* ---- attributes ---- */

static bool is_file(const struct query_node *n)
{
	return n->kind == QUERY_ROW || (n->kind == QUERY_OPTIONS && n->query.form != ROW_FORM_NONE);
}

/* it: what the node stands for, of the options the table. */
static void attr_of_node(
	const struct fs *fs, const struct query_node *n, const struct item *it, struct stat *ret)
{
	attr_of_item(fs, it, ret);
	ret->st_ino = n->ino;
	if (n->kind == QUERY_ROW) {
		ret->st_size = (off_t)n->size;
		ret->st_blocks = (ret->st_size + 511) / 512;
	} else if (is_file(n)) {
		ret->st_mode = S_IFREG | (0444 & ret->st_mode);
		ret->st_size = ret->st_blocks = 0;
	}
}

/* The attributes of what stands there now.  Of a row that was replaced or removed, those that it
 * had: the caller has the file open. */
static enum err stat_node(struct fs *fs, const struct query_node *n, struct stat *ret)
{
	struct item now = { 0 };
	uint64_t id = n->kind == QUERY_OPTIONS ? n->table_id : n->item.id;
	enum err e = store_get(fs->store, NULL, id, WANT_ATTRS, &now);
	if (e == ERR_OK && (n->kind != QUERY_ROW || now.generation == n->item.generation)) {
		attr_of_node(fs, n, &now, ret);
	} else if (n->kind == QUERY_ROW && (e == ERR_OK || e == ERR_NOT_FOUND)) {
		attr_of_node(fs, n, &n->item, ret);
		ret->st_nlink = e == ERR_OK;
		e = ERR_OK;
	}
	item_fini(&now);
	return e == ERR_NOT_FOUND ? ERR_GONE : e;
}

static enum err tree_stat(struct fs *fs, uint64_t nid, struct stat *ret)
{
	struct query_node *n = query_nodes_get(fs->query_nodes, nid);
	enum err e = n != NULL ? stat_node(fs, n, ret) : ERR_GONE;
	query_node_unref(fs->query_nodes, n);
	return e;
}

static void tree_forget(struct fs *fs, uint64_t nid, uint64_t n)
{
	query_nodes_forget(fs->query_nodes, nid, n);
}

/* ---- lookup ---- */

/* Takes over the new node; it: as in attr_of_node(). */
static enum err enter(
	struct fs *fs, struct query_node *fresh, const struct item *it, struct ventry *ret)
{
	if (fresh == NULL)
		return ERR_NO_MEMORY;
	struct query_node *n = query_nodes_enter(fs->query_nodes, fresh);
	ret->nid = n->nid;
	ret->valid_s = 0;
	ret->lasting = n->kind == QUERY_OPTIONS;
	ret->moment = n->kind == QUERY_OPTIONS && is_file(n);
	attr_of_node(fs, n, it, &ret->st);
	query_node_unref(fs->query_nodes, n);
	query_prune(fs);
	return ERR_OK;
}

static enum err root_lookup(struct fs *fs, uint64_t dir, struct span name,
	const struct caller *call, struct ventry *ret)
{
	struct item table = { 0 };
	struct row_query query;
	uint64_t table_id = nid_id(dir);
	enum err e = store_get(fs->store, NULL, table_id, WANT_ATTRS, &table);
	if (e != ERR_OK)
		return e == ERR_NOT_FOUND ? ERR_GONE : e;
	e = row_query_parse(name, &query, call->detail);
	if (e == ERR_OK)
		e = enter(fs, query_node_of_options(table_id, name, &query), &table, ret);
	else
		row_query_fini(&query);
	item_fini(&table);
	return e;
}

/* What the name (a NUL is behind it) is in the tree of the mount: its key, or ERR_NOT_FOUND. */
static enum err find_key(
	struct store *store, uint64_t dir_id, struct span name, bool row, struct key_text *ret)
{
	struct resolved_name t;
	enum err e = name_resolve(store, nid_make(dir_id, 0), name.p, &t, NULL);
	if (e != ERR_OK)
		return name_means_nothing(e) ? ERR_NOT_FOUND : e;
	bool is_key = t.control == 0 && t.class == CLASS_KEYED && !t.digest && t.row_name == row;
	if (is_key)
		key_of_order(ret, span_make(t.key, t.key_len));
	resolved_name_fini(&t);
	return is_key ? ERR_OK : ERR_NOT_FOUND;
}

/* The first row that the options show in the partition, or the one row there. */
static enum err find_row(struct fs *fs, struct query_node *options, const struct span *pk,
	const struct span *rk, const struct caller *call, struct item *ret)
{
	struct query_limit limit;
	enum err e = query_limit_find(fs, options, pk, rk, call, &limit);
	if (e == ERR_OK)
		e = query_first_row(fs, options, &limit, call, ret);
	key_ranges_fini(&limit.ranges);
	return e;
}

static enum err find_partition(struct fs *fs, struct query_node *options, struct span name,
	const struct caller *call, struct ventry *ret)
{
	struct item row = { 0 }, partition = { 0 };
	struct key_text pk;
	enum err e = find_key(fs->store, options->table_id, name, false, &pk);
	if (e == ERR_OK)
		e = find_row(fs, options, &pk.span, NULL, call, &row);
	if (e == ERR_OK)
		e = store_get(fs->store, NULL, row.parent, WANT_ATTRS, &partition);
	if (e == ERR_OK)
		e = enter(fs, query_node_of_item(fs->query_nodes, options, &partition), &partition,
			ret);
	item_fini(&partition);
	item_fini(&row);
	return e;
}

/* The content goes where open() will find it, so that it is of this generation whatever happens
 * in between. */
static void keep_content(struct contents *contents, struct item *row)
{
	const struct content *content;
	if (contents_put(contents, row, &content) == ERR_OK)
		contents_unpin(contents, content);
}

static enum err shown_size(struct query_node *options, const struct item *row, struct span pk,
	struct span rk, uint64_t *ret)
{
	struct buf text = BUF_INIT(LIMIT_DOCUMENT_BYTES);
	*ret = row->size;
	if (options->query.select.all)
		return ERR_OK;
	enum err e = query_row_text(options, row, pk, rk, &text);
	*ret = text.len;
	buf_fini(&text);
	return e;
}

static enum err find_row_file(struct fs *fs, struct query_node *partition, struct span name,
	const struct caller *call, struct ventry *ret)
{
	struct query_node *options = query_node_options(partition);
	struct item row = { 0 };
	struct key_text pk, rk;
	uint64_t size;
	key_of_order(&pk, partition->item.key);
	enum err e = find_key(fs->store, partition->item.id, name, true, &rk);
	if (e == ERR_OK)
		e = find_row(fs, options, &pk.span, &rk.span, call, &row);
	if (e == ERR_OK)
		e = shown_size(options, &row, pk.span, rk.span, &size);
	if (e == ERR_OK) {
		struct query_node *n = query_node_of_item(fs->query_nodes, partition, &row);
		if (n != NULL)
			n->size = size;
		e = enter(fs, n, &row, ret);
	}
	if (e == ERR_OK)
		keep_content(fs->contents, &row);
	item_fini(&row);
	return e;
}

static enum err tree_lookup(struct fs *fs, uint64_t dir, struct span name,
	const struct caller *call, struct ventry *ret)
{
	struct query_node *n = query_nodes_get(fs->query_nodes, dir);
	enum err e = ERR_NOT_A_DIRECTORY;
	if (n == NULL)
		e = ERR_GONE;
	else if (n->kind == QUERY_PARTITION)
		e = find_row_file(fs, n, name, call, ret);
	else if (!is_file(n))
		e = find_partition(fs, n, name, call, ret);
	query_node_unref(fs->query_nodes, n);
	return e;
}

/* ---- open ---- */

/* The row's content of the node's generation. */
static enum err content_of(struct fs *fs, const struct query_node *n, const struct content **ret)
{
	struct item now = { 0 };
	/* The walk's own look-up put it here, so a version that was replaced since will do. */
	*ret = contents_pin_old(fs->contents, nid_of(&n->item));
	if (*ret != NULL)
		return ERR_OK;
	enum err e = store_get(fs->store, NULL, n->item.id, WANT_BODY, &now);
	if (e == ERR_NOT_FOUND ||
		(e == ERR_OK && (now.kind != ITEM_ROW || now.generation != n->item.generation)))
		e = ERR_GONE;
	if (e == ERR_OK)
		e = contents_put(fs->contents, &now, ret);
	item_fini(&now);
	return e;
}

static enum err open_row(struct fs *fs, struct query_node *n, struct vfile **ret)
{
	struct buf text = BUF_INIT(LIMIT_DOCUMENT_BYTES);
	const struct content *content;
	struct key_text pk, rk;
	key_of_order(&pk, n->parent->item.key);
	key_of_order(&rk, n->item.key);
	enum err e = content_of(fs, n, &content);
	if (e != ERR_OK)
		return e;
	struct item row = content->item; /* borrowed; its version may be that before a rename */
	row.version = n->item.version;
	e = query_row_text(query_node_options(n), &row, pk.span, rk.span, &text);
	contents_unpin(fs->contents, content);
	if (e == ERR_OK)
		return vfile_of_content(fs, &text, true, ret);
	buf_fini(&text);
	return e;
}

static enum err tree_open(
	struct fs *fs, uint64_t nid, int flags, const struct caller *call, struct vfile **ret)
{
	struct query_node *n = query_nodes_get(fs->query_nodes, nid);
	enum err e = ERR_IS_A_DIRECTORY;
	if (n == NULL)
		e = ERR_GONE;
	else if ((flags & O_ACCMODE) != O_RDONLY || (flags & O_TRUNC) != 0)
		e = ERR_READ_ONLY;
	else if (n->kind == QUERY_ROW)
		e = open_row(fs, n, ret);
	else if (is_file(n))
		e = stream_file_open_query(fs, NID_QUERY | n->ino, n->table_id, n->text, call, ret);
	query_node_unref(fs->query_nodes, n);
	return e;
}

static enum err tree_opendir(
	struct fs *fs, uint64_t nid, const struct caller *call, struct vdir **ret)
{
	struct query_node *n = query_nodes_get(fs->query_nodes, nid);
	(void)call;
	if (n == NULL)
		return ERR_GONE;
	if (!is_file(n))
		return query_dir_open(fs, n, ret);
	query_node_unref(fs->query_nodes, n);
	return ERR_NOT_A_DIRECTORY;
}

static enum err root_opendir(
	struct fs *fs, uint64_t nid, const struct caller *call, struct vdir **ret)
{
	(void)nid, (void)call;
	return query_dir_open(fs, NULL, ret);
}

/* ---- extended attributes ---- */

static enum err tree_xattr_get(struct fs *fs, uint64_t nid, const char *name, struct buf *out)
{
	struct query_node *n = query_nodes_get(fs->query_nodes, nid);
	enum err e = n != NULL ? ERR_NO_ATTRIBUTE : ERR_GONE;
	if (n != NULL && n->kind != QUERY_OPTIONS)
		e = fact_get(fs, NULL, &n->item, name, out);
	query_node_unref(fs->query_nodes, n);
	return e;
}

/* All reasons of queries are the table's .query's. */
static void tree_place(struct fs *fs, uint64_t nid, struct span name, struct vplace *ret)
{
	struct query_node *n = query_nodes_get(fs->query_nodes, nid);
	dir_control_place(fs, root_of(n != NULL ? n->table_id : 0), name, ret);
	query_node_unref(fs->query_nodes, n);
}

/* ---- the kinds ---- */

#define READ_ONLY \
	"Queries are read-only; change a row where it is: ACCOUNT/TABLE/PARTITION/ROW.json"

static const struct vnode_ops root_ops = {
	.pool = VPOOL_INLINE,
	.refusal = ERR_READ_ONLY,
	.why = READ_ONLY,
	.stat = dir_control_stat,
	.lookup = root_lookup,
	.opendir = root_opendir,
	.place = dir_control_place,
};

#define TREE_OPS(pool_) \
	{ \
		.pool = (pool_), .refusal = ERR_READ_ONLY, .why = READ_ONLY, .stat = tree_stat, \
		.lookup = tree_lookup, .opendir = tree_opendir, .open = tree_open, \
		.forget = tree_forget, .xattr_get = tree_xattr_get, .place = tree_place, \
	}
static const struct vnode_ops tree_ops = TREE_OPS(VPOOL_SCAN);
static const struct vnode_ops quick_ops = TREE_OPS(VPOOL_INLINE);

const struct vnode_ops *query_ops_of(uint64_t nid)
{
	if (nid_is_dir_control(nid))
		return &root_ops;
	return query_nid_is_quick(nid) ? &quick_ops : &tree_ops;
}
