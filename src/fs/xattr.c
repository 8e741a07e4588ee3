/* SPDX-License-Identifier: MIT */
#include "fs/xattr.h"

#include "base/clock.h"
#include "fs/blob.h"
#include "fs/handle.h"
#include "fs/match.h"
#include "fs/names.h"
#include "fs/nid.h"
#include "fs/reason.h"
#include "fs/stages.h"
#include "model/etag.h"
#include "model/key.h"

#define PREFIX "user.rowfs."

/* Nothing was refused, but somebody may have meant a row.  A leading dot is meant. */
static bool is_mistakable(struct fs *fs, const struct item *it)
{
	struct item dir = { 0 };
	if (it->kind != ITEM_FILE || it->key.n == 0 || it->key.p[0] == '.')
		return false;
	enum err e = store_get(fs->store, NULL, it->parent, WANT_ATTRS, &dir);
	bool in_partition = e == ERR_OK && dir.kind == ITEM_PARTITION;
	item_fini(&dir);
	return in_partition;
}

static enum err get_no_row(struct fs *fs, const struct item *it, struct buf *out)
{
	if (!is_mistakable(fs, it))
		return ERR_NO_ATTRIBUTE;
	if (item_is_draft(fs, it))
		buf_add_str(out,
			"NoRow: an empty file, no row yet: write a document to it, {} will do");
	else
		buf_add_str(out,
			"NoRow: an ordinary file, no row: the name of a row ends in .json (mv makes "
			"it one)");
	return ERR_OK;
}

static enum err get_error(
	struct fs *fs, struct store_view *view, const struct item *it, struct buf *out)
{
	char name[COMPONENT_MAX];
	(void)view;
	size_t n = item_component(it, name);
	uint64_t inside = item_is_dir(it->kind) ? it->id : 0;
	return reasons_get(fs->reasons, it->parent, span_make(name, n), inside, out)
		? ERR_OK
		: get_no_row(fs, it, out);
}

static enum err get_etag(
	struct fs *fs, struct store_view *view, const struct item *it, struct buf *out)
{
	char etag[ETAG_MAX];
	(void)fs, (void)view;
	buf_add(out, etag, (size_t)etag_format(it->version, etag));
	return ERR_OK;
}

static enum err get_if_match(
	struct fs *fs, struct store_view *view, const struct item *it, struct buf *out)
{
	char etag[ETAG_MAX];
	(void)view;
	int64_t version = matches_get(fs->matches, it->id);
	if (version < 0)
		return ERR_NO_ATTRIBUTE;
	buf_add(out, etag, (size_t)etag_format(version, etag));
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
#define ANY_KIND ~0u

/* Keep alphabetized. */
static const struct attribute {
	const char *name;
	bool live;    /* of what can be changed only */
	bool version; /* tells which version it is: that of the node, not of the row as of now */
	unsigned kinds;
	enum err (*get)(
		struct fs *fs, struct store_view *view, const struct item *it, struct buf *out);
} attributes[] = {
	{ "error", true, false, ANY_KIND, get_error },
	{ "etag", false, true, KIND(ITEM_ROW), get_etag },
	{ "if_match", true, false, KIND(ITEM_ROW), get_if_match },
	{ "partition_key", false, false, KIND(ITEM_ROW) | KIND(ITEM_PARTITION), get_partition_key },
	{ "row_key", false, false, KIND(ITEM_ROW), get_row_key },
	{ "timestamp", false, true, KIND(ITEM_ROW), get_timestamp },
};

static const struct attribute *find_behind_prefix(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(attributes); i++)
		if (strcmp(name, attributes[i].name) == 0)
			return &attributes[i];
	return NULL;
}

static const struct attribute *find(const char *name)
{
	if (strncmp(name, PREFIX, sizeof(PREFIX) - 1) != 0)
		return NULL;
	return find_behind_prefix(name + sizeof(PREFIX) - 1);
}

bool xattr_is_ours(const char *name)
{
	return strncmp(name, PREFIX, sizeof(PREFIX) - 1) == 0;
}

const char *xattr_behind_prefix(const char *name)
{
	return name + sizeof(PREFIX) - 1;
}

/* A writer's document.  One that nobody has open was given by a guess (fs/habits.h): its node stands
 * for the row. */
static struct stage *stage_of(struct fs *fs, uint64_t nid)
{
	struct stage *s = nid_is_private(nid) ? stages_get(fs->stages, nid) : NULL;
	if (s != NULL && nid_is_private_row(nid) && !stage_is_open(s)) {
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
		if (nid_is_private(nid) && !nid_is_private_row(nid))
			return ERR_GONE;
		enum err e = store_get(fs->store, NULL, nid_id(nid), WANT_ATTRS, ret);
		return e == ERR_NOT_FOUND ? ERR_GONE : e;
	}
	pthread_mutex_lock(&s->lock);
	uint64_t id = s->row_id != 0 ? s->row_id : s->draft_id;
	int64_t version = s->base_version;
	pthread_mutex_unlock(&s->lock);
	stages_unref(fs, fs->stages, s);
	enum err e = id == 0 ? ERR_NOT_FOUND : store_get(fs->store, NULL, id, WANT_ATTRS, ret);
	if (e == ERR_OK && ret->kind == ITEM_ROW)
		ret->version = version;
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
	const struct blob *blob = blobs_look(fs->blobs, nid);
	if (blob == NULL)
		blob = handles_look(fs, nid);
	if (blob == NULL)
		return handles_of_file(fs, nid) ? ERR_GONE : ERR_OK;
	if (blob->nid != nid_of(it)) /* a rename gives a new one to what is the same */
		it->version = blob->item.version;
	blobs_unpin(fs->blobs, blob);
	return ERR_OK;
}

static enum err get_from(struct fs *fs, struct store_view *view, const struct attribute *a,
	const struct item *it, struct buf *out)
{
	return (a->kinds & KIND(it->kind)) != 0 ? a->get(fs, view, it, out) : ERR_NO_ATTRIBUTE;
}

enum err xattr_in_view(struct fs *fs, struct store_view *view, const struct item *it,
	const char *name, struct buf *out)
{
	const struct attribute *a = find_behind_prefix(name);
	return a == NULL || a->live ? ERR_NO_ATTRIBUTE : get_from(fs, view, a, it, out);
}

enum err xattr_get(struct fs *fs, uint64_t nid, const char *name, struct buf *out)
{
	const struct attribute *a = find(name);
	if (a == NULL)
		return ERR_NO_ATTRIBUTE;
	struct item it = { 0 };
	enum err e = item_of(fs, nid, &it);
	if (e == ERR_OK && a->version)
		e = version_of_node(fs, nid, &it);
	if (e == ERR_OK)
		e = get_from(fs, NULL, a, &it, out);
	item_fini(&it);
	return e;
}

static enum err row_of(struct fs *fs, uint64_t nid, const char *name, uint64_t *ret_id)
{
	const struct attribute *a = find(name);
	if (a == NULL || a->get != get_if_match)
		return ERR_NOT_PERMITTED;
	struct item it = { 0 };
	enum err e = item_of(fs, nid, &it);
	if (e == ERR_OK && it.kind != ITEM_ROW)
		e = ERR_NOT_PERMITTED;
	*ret_id = it.id;
	item_fini(&it);
	return e;
}

static bool is_gone(void *arg, uint64_t row_id)
{
	struct fs *fs = arg;
	struct item it = { 0 };
	enum err e = store_get(fs->store, NULL, row_id, WANT_ATTRS, &it);
	bool gone = e == ERR_NOT_FOUND || (e == ERR_OK && it.kind != ITEM_ROW);
	item_fini(&it);
	return gone;
}

static enum err set_match(struct fs *fs, uint64_t id, int64_t version)
{
	return matches_set(fs->matches, id, version, is_gone, fs) ? ERR_OK : ERR_NO_SPACE;
}

enum err xattr_set(struct fs *fs, uint64_t nid, const char *name, struct span value)
{
	uint64_t id;
	bool any;
	int64_t version;
	enum err e = row_of(fs, nid, name, &id);
	if (e == ERR_OK)
		e = etag_parse(value, &any, &version, NULL);
	if (e != ERR_OK)
		return e;
	if (!any)
		return set_match(fs, id, version < 0 ? 0 : version);
	matches_drop(fs->matches, id);
	return ERR_OK;
}

enum err xattr_remove(struct fs *fs, uint64_t nid, const char *name)
{
	uint64_t id;
	enum err e = row_of(fs, nid, name, &id);
	if (e == ERR_OK)
		matches_drop(fs->matches, id);
	return e;
}
