/* SPDX-License-Identifier: MIT */
#include "service/tree/names.h"

#include "codec/entity_json.h"
#include "model/key.h"
#include "model/names.h"

void resolved_name_fini(struct resolved_name *t)
{
	item_fini(&t->dir);
}

static void set_key(struct resolved_name *t, const char *p, size_t n)
{
	memcpy(t->key, p, n);
	t->key_len = n;
}

/* ---- digest names ---- */

struct digest_search {
	struct span name;   /* what we look for */
	struct span prefix; /* order form of the key's beginning */
	enum filename_kind kind;
	struct resolved_name *target;
	bool found;
};

static bool try_digest(void *arg, const struct item *it)
{
	struct digest_search *d = arg;
	if (!span_starts(it->key, d->prefix))
		return false;
	char key[LIMIT_KEY_BYTES], name[LIMIT_NAME_BYTES + 1];
	key_from_order(it->key.p, it->key.n, key);
	size_t n = filename_encode(span_make(key, it->key.n), d->kind, name);
	if (!span_eq(span_make(name, n), d->name))
		return true;
	set_key(d->target, it->key.p, it->key.n);
	d->found = true;
	return false;
}

/* The key behind a digest name: among the keys that begin like it. */
static enum err find_digest(struct store *store, struct resolved_name *t, enum filename_kind kind,
	const struct filename *f)
{
	char prefix[LIMIT_KEY_BYTES];
	key_to_order(f->key, f->key_len, prefix);
	struct digest_search d = { .name = t->name, .kind = kind, .target = t };
	d.prefix = span_make(prefix, f->key_len);
	enum err e = store_list(
		store, t->view, t->dir.id, CLASS_KEYED, d.prefix, true, WANT_ATTRS, try_digest, &d);
	t->digest = !d.found;
	if (!d.found)
		t->key_len = 0;
	return e;
}

enum err resolved_name_learn(
	struct resolved_name *t, struct span document, struct err_detail *detail)
{
	if (!t->digest)
		return ERR_OK;
	bool row = t->row_name;
	struct entity entity = { 0 };
	enum err e = entity_json_decode(document, ENTITY_JSON_FILE, &entity, NULL, detail);
	if (e == ERR_OK && !(row ? entity.has_rk : entity.has_pk))
		e = err_set(detail, ERR_KEY_MISSING,
			"the name is a digest: the document must hold %s",
			row ? "RowKey" : "PartitionKey");
	if (e == ERR_OK) {
		struct span key = row ? entity.rk : entity.pk;
		char name[LIMIT_NAME_BYTES + 1];
		size_t n = filename_encode(key, row ? FILENAME_ROW : FILENAME_PARTITION, name);
		if (!span_eq(span_make(name, n), t->name)) {
			e = err_set(detail, ERR_KEY_MISMATCH,
				"the name's digest is not that of the document's %s",
				row ? "RowKey" : "PartitionKey");
		} else {
			key_to_order(key.p, key.n, t->key);
			t->key_len = key.n;
			t->digest = false;
		}
	}
	entity_fini(&entity);
	return e;
}

/* ---- by kind of directory ---- */

/* No key has one, at any level. */
static bool is_dot_name(struct span name)
{
	return name.n > 0 && name.p[0] == '.';
}

static enum err as_named(struct resolved_name *t)
{
	t->class = CLASS_NAMED;
	set_key(t, t->name.p, t->name.n);
	return ERR_OK;
}

static enum err in_root(struct resolved_name *t, struct err_detail *detail)
{
	enum err e = account_name_check(t->name, detail);
	if (e == ERR_OK)
		set_key(t, t->name.p, t->name.n);
	return e;
}

static enum err in_account(struct resolved_name *t, struct err_detail *detail)
{
	enum err e = table_name_check(t->name, detail);
	if (e == ERR_OK) {
		table_name_fold(t->name, t->key);
		t->key_len = t->name.n;
	}
	return e;
}

static enum err by_codec(struct store *store, struct resolved_name *t, enum filename_kind kind,
	struct err_detail *detail)
{
	struct filename f;
	enum err e = filename_decode(t->name, kind, &f, detail);
	if (e != ERR_OK)
		return e;
	if (f.form == FILENAME_ORDINARY)
		return as_named(t);
	t->row_name = kind == FILENAME_ROW;
	if (f.form == FILENAME_DIGEST)
		return find_digest(store, t, kind, &f);
	key_to_order(f.key, f.key_len, t->key);
	t->key_len = f.key_len;
	return ERR_OK;
}

static enum err in_folder(struct store *store, struct resolved_name *t, struct err_detail *detail)
{
	t->pending_dir = item_waits_for_key(store, t->view, &t->dir);
	return t->pending_dir ? by_codec(store, t, FILENAME_ROW, detail) : as_named(t);
}

static enum err by_directory(
	struct store *store, struct resolved_name *t, struct err_detail *detail)
{
	enum err e = ERR_NOT_A_DIRECTORY;
	if (is_dot_name(t->name) && item_is_dir(t->dir.kind))
		e = as_named(t);
	else if (t->dir.id == STORE_ROOT)
		e = in_root(t, detail);
	else if (t->dir.kind == ITEM_ACCOUNT)
		e = in_account(t, detail);
	else if (t->dir.kind == ITEM_TABLE)
		e = by_codec(store, t, FILENAME_PARTITION, detail);
	else if (t->dir.kind == ITEM_PARTITION)
		e = by_codec(store, t, FILENAME_ROW, detail);
	else if (t->dir.kind == ITEM_FOLDER)
		e = in_folder(store, t, detail);
	return e;
}

enum err name_in_item(struct store *store, struct store_view *view, struct item *dir,
	struct span name, struct resolved_name *ret, struct err_detail *detail)
{
	*ret = (struct resolved_name){
		.view = view, .name = name, .class = CLASS_KEYED, .dir = *dir
	};
	*dir = (struct item){ 0 };
	enum err e = name.n > LIMIT_FILE_NAME_BYTES ? ERR_NAME_TOO_LONG
						    : by_directory(store, ret, detail);
	if (e != ERR_OK)
		resolved_name_fini(ret);
	return e;
}

bool name_means_nothing(enum err e)
{
	return e == ERR_NAME_INVALID || e == ERR_NAME_TOO_SHORT || e == ERR_NAME_TOO_LONG ||
		e == ERR_KEY_INVALID || e == ERR_KEY_TOO_LARGE || e == ERR_NOT_FOUND;
}

bool name_may_hold_files(const struct resolved_name *t)
{
	if (t->dir.id < STORE_ID_FIRST && t->dir.id != STORE_ROOT)
		return false;
	return t->class == CLASS_NAMED || t->dir.kind == ITEM_PARTITION ||
		(t->dir.kind == ITEM_FOLDER && t->dir.id != STORE_ROOT);
}

struct dentry resolved_name_dentry(
	const struct resolved_name *t, enum item_kind kind, enum origin origin)
{
	struct dentry at = { .origin = origin, .dir = &t->dir, .class = t->class };
	at.key = span_make(t->key, t->key_len);
	bool table = t->dir.kind == ITEM_ACCOUNT && t->class == CLASS_KEYED;
	if (table || t->row_name)
		at.name = t->name;
	if ((t->row_name && kind == ITEM_FILE) || kind == ITEM_FOLDER) {
		at.class = CLASS_NAMED;
		at.key = t->name;
	}
	return at;
}

enum err resolved_name_item(
	struct store *store, const struct resolved_name *t, unsigned want, struct item *ret)
{
	enum err e = ERR_NOT_FOUND;
	const struct span key = span_make(t->key, t->key_len);
	if (!t->digest)
		e = store_child(store, t->view, t->dir.id, t->class, key, want, ret);
	bool named_too = t->row_name || (t->digest && t->dir.kind == ITEM_TABLE);
	if (e == ERR_NOT_FOUND && named_too)
		e = store_child(store, t->view, t->dir.id, CLASS_NAMED, t->name, want, ret);
	if (e == ERR_OK && ret->kind == ITEM_TABLE && !span_eq(ret->name, t->name)) {
		item_fini(ret);
		return ERR_NOT_FOUND;
	}
	return e;
}

enum err resolved_name_search(struct store *store, struct resolved_name *t)
{
	return by_codec(store, t, t->row_name ? FILENAME_ROW : FILENAME_PARTITION, NULL);
}

/* ---- the keys of a row ---- */

/* The PartitionKey of a directory that has only a digest for a name, out of the document. */
static enum err pending_key(const struct resolved_name *t, struct span document,
	char pk[LIMIT_KEY_BYTES], size_t *ret_n, struct err_detail *detail)
{
	struct entity entity = { 0 };
	enum err e = entity_json_decode(document, ENTITY_JSON_FILE, &entity, NULL, detail);
	if (e == ERR_OK && !entity.has_pk)
		e = err_set(detail, ERR_KEY_MISSING,
			"the directory's name is a digest: the document must hold PartitionKey");
	if (e == ERR_OK) {
		char name[LIMIT_NAME_BYTES + 1];
		size_t n = filename_encode(entity.pk, FILENAME_PARTITION, name);
		if (!span_eq(span_make(name, n), t->dir.key))
			e = err_set(detail, ERR_KEY_MISMATCH,
				"the directory's digest is not that of the document's PartitionKey");
	}
	if (e == ERR_OK) {
		memcpy(pk, entity.pk.p, entity.pk.n);
		*ret_n = entity.pk.n;
	}
	entity_fini(&entity);
	return e;
}

enum err resolved_name_keys(struct resolved_name *t, struct span document, struct row_keys *k,
	struct err_detail *detail)
{
	enum err e = resolved_name_learn(t, document, detail);
	if (e != ERR_OK)
		return e;
	k->rk_n = t->key_len;
	key_from_order(t->key, t->key_len, k->rk);
	if (t->pending_dir)
		return pending_key(t, document, k->pk, &k->pk_n, detail);
	k->pk_n = t->dir.key.n;
	key_from_order(t->dir.key.p, t->dir.key.n, k->pk);
	return ERR_OK;
}

/* ---- back ---- */

size_t item_component(const struct item *it, char out[COMPONENT_MAX])
{
	if (it->kind == ITEM_TABLE || it->class != CLASS_KEYED || it->kind == ITEM_ACCOUNT) {
		struct span s = it->kind == ITEM_TABLE ? it->name : it->key;
		size_t n = s.n < COMPONENT_MAX ? s.n : COMPONENT_MAX - 1;
		memcpy(out, s.p, n);
		out[n] = 0;
		return n;
	}
	enum filename_kind kind = it->kind == ITEM_ROW ? FILENAME_ROW : FILENAME_PARTITION;
	if (key_is_order(it->key))
		return filename_encode(it->key, kind, out);
	char key[LIMIT_KEY_BYTES];
	key_from_order(it->key.p, it->key.n, key);
	return filename_encode(span_make(key, it->key.n), kind, out);
}

static bool parent_is(
	struct store *store, struct store_view *view, const struct item *it, enum item_kind kind)
{
	struct item parent = { 0 };
	if (store_get(store, view, it->parent, WANT_ATTRS, &parent) != ERR_OK)
		return false;
	bool is = parent.kind == kind ||
		(kind == ITEM_PARTITION && item_waits_for_key(store, view, &parent));
	item_fini(&parent);
	return is;
}

bool item_waits_for_document(struct store *store, const struct item *it)
{
	if (it->kind != ITEM_FILE || it->size != 0 || !span_ends(it->key, SPAN_LIT(".json")) ||
		it->key.p[0] == '.')
		return item_is_empty_row(it);
	return parent_is(store, NULL, it, ITEM_PARTITION);
}

bool name_tells_key(const struct resolved_name *t)
{
	return t->row_name && !t->digest && !t->pending_dir;
}

bool item_waits_for_key(struct store *store, struct store_view *view, const struct item *it)
{
	struct filename f;
	if (it->kind != ITEM_FOLDER || it->key.n == 0 || it->key.p[0] == '.')
		return false;
	if (filename_decode(it->key, FILENAME_PARTITION, &f, NULL) != ERR_OK ||
		f.form != FILENAME_DIGEST)
		return false;
	return parent_is(store, view, it, ITEM_TABLE);
}
