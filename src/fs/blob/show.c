/* SPDX-License-Identifier: MIT */
#include "fs/blob/show.h"

#include "base/clock.h"
#include "fs/blob/room.h"
#include "fs/virtual/dir_control.h"
#include "model/metadata.h"
#include "service/blobs/containers.h"
#include "service/blobs/snapshot_key.h"

#include <inttypes.h>

#define DEFAULT_TYPE "application/octet-stream"

/* ---- stat ---- */

static void set_content(struct stat *st, uint64_t size, uint64_t bytes, int64_t etag)
{
	st->st_size = (off_t)size;
	st->st_blocks = (blkcnt_t)((bytes + 511) / 512);
	st->st_mtim = st->st_ctim = st->st_atim = ticks_to_timespec(etag);
}

static void set_blob(struct stat *st, const struct blob_record *r)
{
	set_content(st, r->size, r->type == BLOB_PAGES ? r->pages * 512 : r->size, r->etag);
}

/* Tells the size of a staged write; if it is not open, that of the blob of its name. */
static enum err stat_stage(struct fs *fs, const struct blob_node *n, struct stat *ret)
{
	struct blob_stage *s = blob_stage_get(fs->blobs->stages, (uint64_t)n->version);
	struct blob_info b;
	bool pages = s != NULL && blob_stage_is_pages(s);
	if (s != NULL && !pages) {
		uint64_t size = blob_stage_size(s);
		set_content(ret, size, size, service_now(fs->service));
		blob_stage_unref(fs->blobs->stages, s);
		return ERR_OK;
	}
	enum err e = pages ? blob_stage_blob(fs, s, &b)
			   : blob_find(fs->service, n->container, n->name, &b);
	if (s != NULL)
		blob_stage_unref(fs->blobs->stages, s);
	if (e != ERR_OK)
		return e == ERR_BLOB_NOT_FOUND ? ERR_GONE : e;
	set_blob(ret, &b.record);
	blob_info_fini(&b);
	return ERR_OK;
}

static mode_t most_of(const struct blob_node *n)
{
	switch (n->kind) {
	case BLOB_NODE_DIR:
		return S_IFDIR | 0777;
	case BLOB_NODE_SNAPSHOTS:
		return S_IFDIR | 0555;
	case BLOB_NODE_BLOCK:
	case BLOB_NODE_PAGES:
	case BLOB_NODE_STAGE:
		break;
	}
	return S_IFREG | (snapshot_key_is(n->name) ? 0444 : 0666);
}

static enum err stat_known(struct fs *fs, const struct blob_node *n, struct stat *ret)
{
	struct blob_info b;
	enum err e = collection_attr(fs, ITEM_CONTAINER, n->container, n->nid, most_of(n), ret);
	if (e != ERR_OK || n->kind == BLOB_NODE_SNAPSHOTS)
		return e;
	ret->st_ino = blob_ino(n->container, n->name);
	if (n->kind == BLOB_NODE_BLOCK)
		set_content(ret, n->size, n->size, n->version);
	if (n->kind == BLOB_NODE_STAGE)
		return stat_stage(fs, n, ret);
	if (n->kind != BLOB_NODE_PAGES)
		return ERR_OK;
	e = blob_of_node(fs, n, &b);
	if (e == ERR_OK) {
		set_blob(ret, &b.record);
		blob_info_fini(&b);
	}
	return e;
}

enum err blob_stat(struct fs *fs, uint64_t nid, struct stat *ret)
{
	switch (blob_node_class_of(nid)) {
	case BLOB_NODE_ROOT:
		return dir_control_stat(fs, nid, ret);
	case BLOB_NODE_CONTAINER:
		return collection_attr(fs, ITEM_CONTAINER, nid_id(nid), nid, S_IFDIR | 0777, ret);
	case BLOB_NODE_KNOWN:
	case BLOB_NODE_END:
		break;
	}
	const struct blob_node *n = blob_nodes_get(fs->blobs->nodes, nid);
	enum err e = n != NULL ? stat_known(fs, n, ret) : ERR_GONE;
	blob_nodes_unref(fs->blobs->nodes, n);
	return e;
}

/* ---- nodes ---- */

static struct blob_node node_for(uint64_t container, const struct blob_found *f)
{
	struct blob_node n = {
		.kind = BLOB_NODE_DIR, .container = container, .name = buf_span(&f->name)
	};
	const struct blob_record *r = &f->blob.record;
	if (f->is_dir)
		return n;
	if (f->stage != 0) {
		n.kind = BLOB_NODE_STAGE;
		n.version = (int64_t)f->stage;
		return n;
	}
	n.kind = r->type == BLOB_PAGES ? BLOB_NODE_PAGES : BLOB_NODE_BLOCK;
	n.version = r->type == BLOB_PAGES ? (int64_t)r->extent : r->etag;
	n.size = r->type == BLOB_PAGES ? 0 : r->size;
	return n;
}

static enum err enter(struct fs *fs, const struct blob_node *n, struct ventry *ret)
{
	enum err e = blob_nodes_enter(fs->blobs->nodes, n, &ret->nid);
	if (e != ERR_OK)
		return e;
	ret->valid_s = 0;
	e = blob_stat(fs, ret->nid, &ret->st);
	if (e != ERR_OK)
		blob_nodes_forget(fs->blobs->nodes, ret->nid, 1);
	return e == ERR_GONE ? ERR_NOT_FOUND : e;
}

enum err blob_entry(
	struct fs *fs, uint64_t container, const struct blob_found *found, struct ventry *ret)
{
	const struct blob_node n = node_for(container, found);
	return enter(fs, &n, ret);
}

enum err blob_snapshots_entry(struct fs *fs, const struct blob_dir *dir, struct ventry *ret)
{
	const struct blob_node n = {
		.kind = BLOB_NODE_SNAPSHOTS, .container = dir->container, .name = dir->prefix
	};
	return enter(fs, &n, ret);
}

enum err blob_container_entry(struct fs *fs, uint64_t id, struct ventry *ret)
{
	ret->nid = blob_nid(BLOB_NODE_CONTAINER, id);
	ret->valid_s = 0;
	enum err e = blob_stat(fs, ret->nid, &ret->st);
	return e == ERR_GONE ? ERR_NOT_FOUND : e;
}

enum err blob_of_node(struct fs *fs, const struct blob_node *n, struct blob_info *ret)
{
	if (n->kind == BLOB_NODE_DIR || n->kind == BLOB_NODE_SNAPSHOTS)
		return ERR_IS_A_DIRECTORY;
	enum err e = blob_find(fs->service, n->container, n->name, ret);
	if (e != ERR_OK)
		return e == ERR_BLOB_NOT_FOUND ? ERR_GONE : e;
	if (n->kind == BLOB_NODE_STAGE)
		return ERR_OK;
	int64_t version =
		n->kind == BLOB_NODE_PAGES ? (int64_t)ret->record.extent : ret->record.etag;
	bool pages = ret->record.type == BLOB_PAGES;
	bool same = version == n->version || ret->record.etag == atomic_load(&n->edited);
	if (same && pages == (n->kind == BLOB_NODE_PAGES))
		return ERR_OK;
	blob_info_fini(ret);
	return ERR_GONE;
}

/* ---- attributes ---- */

/* The blob of a node, or the metadata of a container. */
struct object {
	struct blob_info blob;       /* if is_blob */
	struct collection container; /* else */
	bool is_blob;
};

static enum err load_container(struct fs *fs, uint64_t id, struct object *ret)
{
	struct item it = { 0 };
	enum err e = store_get(fs->store, NULL, id, WANT_ATTRS, &it);
	if (e == ERR_OK)
		e = container_find(fs->service, it.parent, it.key, &ret->container);
	item_fini(&it);
	return e == ERR_NOT_FOUND || e == ERR_CONTAINER_NOT_FOUND ? ERR_GONE : e;
}

static enum err load(struct fs *fs, uint64_t nid, struct object *ret)
{
	*ret = (struct object){ 0 };
	if (blob_node_class_of(nid) == BLOB_NODE_CONTAINER)
		return load_container(fs, nid_id(nid), ret);
	if (blob_node_class_of(nid) != BLOB_NODE_KNOWN)
		return ERR_NO_ATTRIBUTE;
	const struct blob_node *n = blob_nodes_get(fs->blobs->nodes, nid);
	enum err e = n != NULL ? blob_of_node(fs, n, &ret->blob) : ERR_GONE;
	if (e == ERR_GONE && n != NULL && n->kind == BLOB_NODE_STAGE)
		e = ERR_NO_ATTRIBUTE; /* it is new */
	blob_nodes_unref(fs->blobs->nodes, n);
	ret->is_blob = true;
	return e == ERR_IS_A_DIRECTORY ? ERR_NO_ATTRIBUTE : e;
}

static void object_fini(struct object *o)
{
	if (o->is_blob)
		blob_info_fini(&o->blob);
	else
		collection_fini(&o->container);
}

static void add_etag(int64_t etag, struct buf *out)
{
	buf_addf(out, "\"0x%" PRIX64 "\"", (uint64_t)etag);
}

/* The properties that a client sets, by the names of their attributes. */
static const struct shown_property {
	const char *name;
	size_t at; /* in struct blob_properties */
} properties[] = {
	{ "cache_control", offsetof(struct blob_properties, cache_control) },
	{ "content_disposition", offsetof(struct blob_properties, disposition) },
	{ "content_encoding", offsetof(struct blob_properties, encoding) },
	{ "content_language", offsetof(struct blob_properties, language) },
	{ "content_md5", offsetof(struct blob_properties, md5) },
	{ "content_type", offsetof(struct blob_properties, content_type) },
};

static struct span property_of(const struct blob_record *r, const struct shown_property *p)
{
	struct span s;
	memcpy(&s, (const char *)&r->properties + p->at, sizeof(s));
	return s;
}

bool blob_property_set(struct blob_properties *p, const char *name, struct span value)
{
	if (strcmp(name, "content_md5") == 0) /* it is the content's */
		return false;
	for (size_t i = 0; i < ARRAY_LEN(properties); i++)
		if (strcmp(name, properties[i].name) == 0) {
			memcpy((char *)p + properties[i].at, &value, sizeof(value));
			return true;
		}
	return false;
}

static enum err fact_of_blob(const struct blob_record *r, const char *name, struct buf *out)
{
	for (size_t i = 0; i < ARRAY_LEN(properties); i++)
		if (strcmp(name, properties[i].name) == 0) {
			struct span value = property_of(r, &properties[i]);
			bool type = strcmp(name, "content_type") == 0;
			buf_add_span(out, value.n == 0 && type ? SPAN_LIT(DEFAULT_TYPE) : value);
			return value.n > 0 || type ? ERR_OK : ERR_NO_ATTRIBUTE;
		}
	if (strcmp(name, "blob_type") != 0)
		return ERR_NO_ATTRIBUTE;
	buf_add_str(out,
		r->type == BLOB_PAGES            ? "page"
			: r->type == BLOB_APPEND ? "append"
						 : "block");
	return ERR_OK;
}

enum err blob_fact(struct fs *fs, uint64_t nid, const char *name, struct buf *out)
{
	struct object o;
	enum err e = load(fs, nid, &o);
	if (e != ERR_OK)
		return e;
	if (strcmp(name, "etag") == 0)
		add_etag(o.is_blob ? o.blob.record.etag : o.container.etag, out);
	else
		e = o.is_blob ? fact_of_blob(&o.blob.record, name, out) : ERR_NO_ATTRIBUTE;
	object_fini(&o);
	return e;
}

static struct span metadata_of(const struct object *o)
{
	return o->is_blob ? o->blob.record.metadata : o->container.metadata;
}

enum err blob_meta(struct fs *fs, uint64_t nid, const char *name, struct buf *out)
{
	struct object o;
	struct metadata_pair pair;
	enum err e = load(fs, nid, &o);
	if (e != ERR_OK)
		return e;
	e = ERR_NO_ATTRIBUTE;
	for (struct span rest = metadata_of(&o); e != ERR_OK && metadata_next(&rest, &pair);)
		if (span_is(pair.name, name)) {
			buf_add_span(out, pair.value);
			e = ERR_OK;
		}
	object_fini(&o);
	return e;
}

/* A copy takes along the attributes that are listed: those that somebody set. */
enum err blob_attribute_names(struct fs *fs, uint64_t nid, struct buf *out)
{
	struct object o;
	struct metadata_pair pair;
	enum err e = load(fs, nid, &o);
	if (e != ERR_OK)
		return e == ERR_NO_ATTRIBUTE ? ERR_OK : e;
	for (struct span rest = metadata_of(&o); metadata_next(&rest, &pair);) {
		buf_add_str(out, "user.meta.");
		buf_add_span(out, pair.name);
		buf_add_char(out, '\0');
	}
	for (size_t i = 0; o.is_blob && i < ARRAY_LEN(properties); i++)
		if (property_of(&o.blob.record, &properties[i]).n > 0 &&
			strcmp(properties[i].name, "content_md5") != 0) {
			buf_addf(out, "user.rowfs.%s", properties[i].name);
			buf_add_char(out, '\0');
		}
	object_fini(&o);
	return ERR_OK;
}
