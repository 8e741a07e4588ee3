/* SPDX-License-Identifier: MIT */
#include "fs/requests/xattr.h"

#include "fs/cache/content.h"
#include "fs/core/nid.h"
#include "fs/refused/reason.h"
#include "fs/requests/kinds.h"
#include "fs/tree/attr.h"
#include "fs/tree/facts.h"
#include "fs/tree/handle.h"
#include "fs/tree/names.h"
#include "fs/write/stages.h"
#include "model/etag.h"
#include "service/tree/tree.h"

#define PREFIX "user.rowfs."

/* Nothing was refused, but somebody may have meant a row.  A leading dot is meant. */
static bool is_mistakable(struct store *store, const struct item *it)
{
	struct item dir = { 0 };
	if (item_is_empty_row(it))
		return true;
	if (it->kind != ITEM_FILE || it->key.n == 0 || it->key.p[0] == '.')
		return false;
	enum err e = store_get(store, NULL, it->parent, WANT_ATTRS, &dir);
	bool in_partition = e == ERR_OK && dir.kind == ITEM_PARTITION;
	item_fini(&dir);
	return in_partition;
}

static enum err get_no_row(struct store *store, const struct item *it, struct buf *out)
{
	if (!is_mistakable(store, it))
		return ERR_NO_ATTRIBUTE;
	if (item_waits_for_document(store, it))
		buf_add_str(out,
			"NoRow: an empty file, no row yet: write a document to it, {} will do");
	else
		buf_add_str(out,
			"NoRow: an ordinary file, no row: the name of a row ends in .json (mv makes "
			"it one)");
	return ERR_OK;
}

static enum err get_error(struct fs *fs, const struct item *it, struct buf *out)
{
	char name[COMPONENT_MAX];
	size_t n = item_component(it, name);
	uint64_t inside = item_is_dir(it->kind) ? it->id : 0;
	return reasons_get(fs->reasons, it->parent, span_make(name, n), inside, out)
		? ERR_OK
		: get_no_row(fs->store, it, out);
}

static enum err add_match(int64_t match, struct buf *out)
{
	char etag[ETAG_MAX];
	if (match == MATCH_UNSET)
		return ERR_NO_ATTRIBUTE;
	if (match == MATCH_PRESENT)
		buf_add(out, "*", 1);
	else if (match != MATCH_ABSENT)
		buf_add(out, etag, (size_t)etag_format(match, etag));
	return ERR_OK;
}

bool xattr_is_ours(const char *name)
{
	return strncmp(name, PREFIX, sizeof(PREFIX) - 1) == 0;
}

const char *xattr_meta_name(const char *name)
{
	static const char prefix[] = "user.meta.";
	bool is = strncmp(name, prefix, sizeof(prefix) - 1) == 0;
	return is ? name + sizeof(prefix) - 1 : NULL;
}

const char *xattr_behind_prefix(const char *name)
{
	return name + sizeof(PREFIX) - 1;
}

/* A writer's document.  One that nobody has open was given speculatively (fs/write/speculation.h): its node stands
 * for the row. */
static struct stage *stage_of(struct fs *fs, uint64_t nid)
{
	struct stage *s = nid_is_staged(nid) ? stages_get(fs->stages, nid) : NULL;
	if (s != NULL && nid_is_staged_row(nid) && !stage_is_open(s)) {
		stages_unref(fs, fs->stages, s);
		s = NULL;
	}
	return s;
}

/* The item behind a node; a stage stands for the row it was loaded from. */
static enum err item_of(struct fs *fs, uint64_t nid, struct item *ret)
{
	struct stage *s = stage_of(fs, nid);
	if (s == NULL) {
		if (nid_is_staged(nid) && !nid_is_staged_row(nid))
			return ERR_GONE;
		enum err e = store_get(fs->store, NULL, nid_id(nid), WANT_ATTRS, ret);
		return e == ERR_NOT_FOUND ? ERR_GONE : e;
	}
	struct item held = stage_item(s);
	stages_unref(fs, fs->stages, s);
	enum err e =
		held.id == 0 ? ERR_NOT_FOUND : store_get(fs->store, NULL, held.id, WANT_ATTRS, ret);
	if (e == ERR_OK && ret->kind == ITEM_ROW)
		ret->version = held.version;
	return e == ERR_NOT_FOUND ? ERR_NO_ATTRIBUTE : e;
}

/* The version of an old node is that of its content, so that what a handle reads and what it
 * says of it belong together.  Where nobody reads by it, it stands for the row. */
static enum err version_of_node(struct fs *fs, uint64_t nid, struct item *it)
{
	if (it->kind != ITEM_ROW || nid_of(it) == nid)
		return ERR_OK;
	struct stage *s = stage_of(fs, nid);
	if (s != NULL) {
		stages_unref(fs, fs->stages, s);
		return ERR_OK;
	}
	const struct content *content = contents_look(fs->contents, nid);
	if (content == NULL)
		return handles_of_file(fs, nid) ? ERR_GONE : ERR_OK;
	if (content->nid != nid_of(it)) /* a rename gives a new one to what is the same */
		it->version = content->item.version;
	contents_unpin(fs->contents, content);
	return ERR_OK;
}

/* The document that a descriptor writes, with a reference.  Its node is no other writer's, so what comes
 * by it is about this one change. */
static struct stage *written_by(struct fs *fs, uint64_t nid)
{
	struct stage *s = stage_of(fs, nid);
	if (s != NULL && !stage_is_open(s)) {
		stages_unref(fs, fs->stages, s);
		s = NULL;
	}
	return s;
}

static bool is_match(const char *name)
{
	return strcmp(name, "if_match") == 0;
}

static enum err get_match(struct fs *fs, uint64_t nid, struct buf *out)
{
	struct item it = { 0 };
	struct stage *s = written_by(fs, nid);
	if (s != NULL) {
		int64_t match = stage_match(s);
		stages_unref(fs, fs->stages, s);
		return add_match(match, out);
	}
	enum err e = item_of(fs, nid, &it);
	if (e == ERR_OK)
		e = it.kind == ITEM_FILE ? add_match(it.attrs.if_match, out) : ERR_NO_ATTRIBUTE;
	item_fini(&it);
	return e;
}

/* What tells the version tells that of the node's content, also when the row has another one by now;
 * ERR_GONE if that is not known any more. */
enum err item_xattr_get(struct fs *fs, uint64_t nid, const char *fact, struct buf *out)
{
	struct item it = { 0 };
	if (is_match(fact))
		return get_match(fs, nid, out);
	bool error = strcmp(fact, "error") == 0;
	if (!error && !fact_is_known(fact))
		return ERR_NO_ATTRIBUTE;
	enum err e = item_of(fs, nid, &it);
	if (e == ERR_OK && fact_is_of_version(fact))
		e = version_of_node(fs, nid, &it);
	if (e == ERR_OK)
		e = error ? get_error(fs, &it, out) : fact_get(fs, NULL, &it, fact, out);
	item_fini(&it);
	return e;
}

/* ---- user.rowfs.if_match ---- */

/* An ETag that no row has, for one that is not ours. */
#define MATCH_NEVER INT64_C(1)

static enum err parse_match(struct span value, int64_t *ret)
{
	bool any = false;
	*ret = MATCH_ABSENT;
	if (value.n == 0)
		return ERR_OK;
	enum err e = etag_parse(value, &any, ret, NULL);
	if (any)
		*ret = MATCH_PRESENT;
	else if (*ret <= MATCH_UNSET)
		*ret = MATCH_NEVER;
	return e;
}

static enum err refuse_attribute(struct err_detail *detail)
{
	return err_set(detail, ERR_NOT_PERMITTED,
		"user.rowfs.if_match alone can be set, on a descriptor that writes a row or on an "
		"ordinary file");
}

static enum err set_on_file(struct service *service, const struct item *file, int64_t match)
{
	struct item now = { 0 };
	struct timespec t;
	struct attrs attrs = ATTRS_UNSET;
	clock_gettime(CLOCK_REALTIME, &t);
	attrs.if_match = match;
	attrs.ctime_ns = attr_unix_ns(t);
	enum err e = tree_set_attrs(service, file->id, &attrs, ATTR_MATCH | ATTR_CTIME, &now);
	item_fini(&now);
	return e == ERR_NOT_FOUND ? ERR_GONE : e;
}

/* By its path a row is everybody's: any change could use up the condition. */
static enum err set_match(struct fs *fs, uint64_t nid, int64_t match, struct err_detail *detail)
{
	struct item it = { 0 };
	struct stage *s = written_by(fs, nid);
	if (s != NULL) {
		stage_set_match(s, match);
		stages_unref(fs, fs->stages, s);
		return ERR_OK;
	}
	enum err e = item_of(fs, nid, &it);
	if (e == ERR_OK && (it.kind == ITEM_ROW || item_waits_for_document(fs->store, &it)))
		e = err_set(detail, ERR_NOT_PERMITTED,
			"a condition is of one change: set it on a descriptor that the row was "
			"opened by for writing, or on an ordinary file, and rename that over the "
			"row");
	else if (e == ERR_OK && it.kind != ITEM_FILE)
		e = refuse_attribute(detail);
	else if (e == ERR_OK)
		e = set_on_file(fs->service, &it, match);
	item_fini(&it);
	return e;
}

/* user.rowfs.if_match only, of a descriptor that writes a row, or of an ordinary file. */
void item_xattr_set(struct fuse_call *c, uint64_t nid, const char *name, struct span value)
{
	int64_t match;
	enum err e = is_match(name) ? parse_match(value, &match) : refuse_attribute(&c->detail);
	reply_err(c, e == ERR_OK ? set_match(c->fs, nid, match, &c->detail) : e);
}

void item_xattr_remove(struct fuse_call *c, uint64_t nid, const char *name)
{
	struct buf there = BUF_INIT(ETAG_MAX);
	enum err e = is_match(name) ? get_match(c->fs, nid, &there) : refuse_attribute(&c->detail);
	buf_fini(&there);
	reply_err(c, e == ERR_OK ? set_match(c->fs, nid, MATCH_UNSET, &c->detail) : e);
}
