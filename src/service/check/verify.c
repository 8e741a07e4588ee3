/* SPDX-License-Identifier: MIT
 * The check of a whole store.  The engine checks itself.  This file checks every item against the
 * rules of the model: names, keys, file names and documents. */
#include "service/check/verify.h"

#include "base/clock.h"
#include "codec/access_policy_xml.h"
#include "codec/entity_json.h"
#include "codec/service_properties_xml.h"
#include "model/filename.h"
#include "model/key.h"
#include "model/names.h"
#include "service/blobs/blobs.h"
#include "service/blobs/containers.h"
#include "service/check/walk.h"
#include "service/core/accounts.h"
#include "service/queue/messages.h"
#include "service/queue/queues.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define NAME_SHOWN 80 /* bytes of a name in a finding */

struct verify {
	struct service *service;
	struct store *store;
	struct store_view *view;
	store_check_fn fn;
	store_progress_fn progress;
	void *arg;
	struct verify_counts *counts;
	bool stopped;
	bool no_memory; /* memory is out; `stopped` is set too */
	bool exact;     /* the engine counts children exactly */

	/* The current path, for findings. */
	struct span account, table, partition;
	enum item_kind dir; /* the kind of the directory being listed */
	uint64_t children;  /* of that directory */
	uint64_t done;
	struct entity entity;
};

static bool find(struct verify *v, const char *finding)
{
	v->counts->findings++;
	if (v->fn != NULL && !v->fn(v->arg, finding))
		v->stopped = true;
	return !v->stopped;
}

/* A lack of memory is no finding about the store. */
static bool lacks_memory(struct verify *v, bool lacks)
{
	v->no_memory = v->no_memory || lacks;
	v->stopped = v->stopped || lacks;
	return lacks;
}

static int shown(struct span s)
{
	return (int)(s.n < NAME_SHOWN ? s.n : NAME_SHOWN);
}

/* Reports a finding about the item `name` at the current path. */
static void PRINTF_LIKE(3, 4) report(struct verify *v, struct span name, const char *fmt, ...)
{
	char what[256], line[768];
	va_list args;
	va_start(args, fmt);
	(void)vsnprintf(what, sizeof(what), fmt, args);
	va_end(args);
	(void)snprintf(line, sizeof(line), "%.*s%s%.*s%s%.*s%s%.*s: %s", shown(v->account),
		v->account.p != NULL ? v->account.p : "", v->account.n > 0 ? "/" : "",
		shown(v->table), v->table.p != NULL ? v->table.p : "", v->table.n > 0 ? "/" : "",
		shown(v->partition), v->partition.p != NULL ? v->partition.p : "",
		v->partition.p != NULL ? "/" : "", shown(name), name.p != NULL ? name.p : "", what);
	(void)find(v, line);
}

/* Counts the engine's findings too. */
static bool engine_finding(void *arg, const char *finding)
{
	return find(arg, finding);
}

static void engine_progress(void *arg, uint64_t done, uint64_t total)
{
	struct verify *v = arg;
	if (v->progress != NULL)
		v->progress(v->arg, done, total);
}

/* Every key must have one name, which leads back to it. */
static void check_name(struct verify *v, struct span key, enum filename_kind kind)
{
	char name[LIMIT_NAME_BYTES + 1];
	struct filename back;
	size_t n = filename_encode(key, kind, name);
	enum err e = filename_decode(span_make(name, n), kind, &back, NULL);
	bool same = e == ERR_OK;
	if (same && back.form == FILENAME_KEY)
		same = span_eq(span_make(back.key, back.key_len), key);
	else if (same)
		same = back.form == FILENAME_DIGEST &&
			span_starts(key, span_make(back.key, back.key_len));
	if (!same)
		report(v, key, "its file name '%.*s' does not lead back to it",
			shown(span_make(name, n)), name);
}

/* Converts a key from its order form.  Reports a finding and returns false if it is invalid. */
static bool check_key(struct verify *v, const struct item *it, const char *what,
	enum filename_kind kind, char out[LIMIT_KEY_BYTES])
{
	struct err_detail why = { 0 };
	if (it->key.n > (size_t)LIMIT_KEY_BYTES) {
		report(v, it->key, "the %s is longer than a key may be", what);
		return false;
	}
	key_from_order(it->key.p, it->key.n, out);
	struct span key = span_make(out, it->key.n);
	enum err e = key_check(key, what, &why);
	if (e != ERR_OK) {
		report(v, key, "%s", err_message(e, &why));
		return false;
	}
	check_name(v, key, kind);
	return true;
}

static void check_keys_inside(struct verify *v, const struct item *it, struct span key,
	const struct entity_json_facts *facts)
{
	const struct entity *e = &v->entity;
	bool wanted = filename_is_long(v->partition, FILENAME_PARTITION) ||
		filename_is_long(key, FILENAME_ROW);
	if ((e->has_pk && !span_eq(e->pk, v->partition)) || (e->has_rk && !span_eq(e->rk, key)))
		report(v, key, "the keys in the document are not the row's");
	if (facts->has_keys != ((it->flags & ITEM_KEYS_INSIDE) != 0))
		report(v, key, "the flag for keys in the document is wrong");
	if (wanted && !facts->has_keys)
		report(v, key, "the document of a long key does not hold its keys");
}

/* Responses contain canonical documents unread, so they must have the exact form. */
static void check_canonical(struct verify *v, const struct item *it, struct span key)
{
	if ((it->flags & ITEM_CANONICAL) == 0)
		return;
	struct buf again = BUF_INIT(LIMIT_DOCUMENT_BYTES);
	entity_json_encode(&v->entity, ENTITY_JSON_NEWLINE, &again);
	if (!lacks_memory(v, buf_full(&again) == ERR_NO_MEMORY) &&
		!span_eq(buf_span(&again), it->body))
		report(v, key, "the document is not in the form that its flag says");
	buf_fini(&again);
}

static void check_row(struct verify *v, const struct item *it)
{
	char key_bytes[LIMIT_KEY_BYTES];
	if (!check_key(v, it, "RowKey", FILENAME_ROW, key_bytes))
		return;
	struct span key = span_make(key_bytes, it->key.n);
	struct entity_json_facts facts = { 0 };
	struct err_detail why = { 0 };
	if (it->size != it->body.n)
		report(v, key, "the size is %" PRIu64 " but the document has %zu bytes", it->size,
			it->body.n);
	bool empty = item_is_empty_row(it);
	enum err e = empty
		? ERR_OK
		: entity_json_decode(it->body, ENTITY_JSON_FILE, &v->entity, &facts, &why);
	if (lacks_memory(v, e == ERR_NO_MEMORY))
		return;
	if (e != ERR_OK) {
		report(v, key, "%s", err_message(e, &why));
	} else if (empty && it->flags != 0) {
		report(v, key, "its document is empty");
	} else if (!empty) {
		check_keys_inside(v, it, key, &facts);
		check_canonical(v, it, key);
	}
	if (it->version <= 0 || it->version > TICKS_MAX)
		report(v, key, "the Timestamp is not a date");
	if ((it->flags & ~(uint32_t)(ITEM_KEYS_INSIDE | ITEM_CANONICAL)) != 0)
		report(v, key, "it has flags that a row cannot have");
}

static void tell_done(struct verify *v)
{
	v->done++;
	if (v->progress != NULL && v->done % 256 == 0)
		v->progress(v->arg, v->done, 0); /* the total is unknown */
}

static bool on_row(void *arg, const struct item *it)
{
	struct verify *v = arg;
	v->children++;
	if (it->kind == ITEM_ROW) {
		v->counts->rows += !item_is_empty_row(it);
		check_row(v, it);
	} else {
		report(v, it->key, "an item that is not a row has a row's key");
	}
	tell_done(v);
	return !v->stopped;
}

/* Returns true if an ordinary file or folder may have this name.  A leading dot is allowed
 * everywhere.  In a partition, a file may have a row's name: editors create it empty before they
 * write.  In a table, a folder may have the digest name of a partition whose key is unknown, and a
 * file the name of a temporary file that will be imported.
 * v->dir is ITEM_NONE for the root. */
static bool file_name_is_allowed(const struct verify *v, const struct item *it)
{
	struct filename f;
	struct span name = it->key;
	if (name.n == 0 || name.n > LIMIT_FILE_NAME_BYTES || span_is(name, ".") ||
		span_is(name, "..") || memchr(name.p, '/', name.n) != NULL ||
		memchr(name.p, 0, name.n) != NULL)
		return false;
	if (name.p[0] == '.' || v->dir == ITEM_FOLDER)
		return true;
	if (v->dir == ITEM_TABLE)
		return filename_decode(name, FILENAME_PARTITION, &f, NULL) == ERR_OK &&
			f.form == (it->kind == ITEM_FOLDER ? FILENAME_DIGEST : FILENAME_ORDINARY);
	if (v->dir != ITEM_PARTITION)
		return false;
	return filename_decode(name, FILENAME_ROW, &f, NULL) == ERR_OK &&
		(f.form == FILENAME_ORDINARY || it->kind == ITEM_FILE);
}

static void check_dir_flags(struct verify *v, const struct item *dir, struct span name)
{
	if ((dir->flags & ~(uint32_t)(ITEM_MADE | ITEM_HELD_EMPTY)) != 0)
		report(v, name, "it has flags that a directory cannot have");
}

static bool on_file(void *arg, const struct item *it)
{
	struct verify *v = arg;
	v->children++;
	v->counts->files += it->kind == ITEM_FILE;
	if (!file_name_is_allowed(v, it))
		report(v, it->key, "the name of an ordinary file is not allowed");
	if (it->kind == ITEM_FOLDER)
		check_dir_flags(v, it, it->key);
	else if (it->flags != 0)
		report(v, it->key, "it has flags that a file cannot have");
	tell_done(v);
	return !v->stopped;
}

static void check_count(struct verify *v, const struct item *dir, struct span name)
{
	if (v->exact && !v->stopped && dir->size != v->children)
		report(v, name, "%" PRIu64 " children counted, %" PRIu64 " found", dir->size,
			v->children);
}

/* Takes the next folder of dir, as walk_next() does. */
static enum err next_folder(struct verify *v, uint64_t dir, struct item *at)
{
	enum err e;
	do
		e = walk_next(v->store, v->view, dir, CLASS_NAMED, WANT_ATTRS, at);
	while (e == ERR_OK && at->kind != ITEM_FOLDER);
	return e;
}

/* Reports unreadable parts, so that the check continues. */
static enum err tolerate(struct verify *v, struct span name, enum err e)
{
	if (e != ERR_CORRUPT)
		return e;
	report(v, name, "not all of what is in it can be read");
	return ERR_OK;
}

static enum err list_files(struct verify *v, uint64_t dir, enum item_kind kind)
{
	v->dir = kind;
	return v->stopped ? ERR_OK
			  : store_list(v->store, v->view, dir, CLASS_NAMED, (struct span){ 0 },
				    false, WANT_ATTRS, on_file, v);
}

/* Verifies the files of a folder.  *ret_within: its contents may be visited.  The engine reports a
 * folder with two parents, which could contain itself. */
static enum err verify_folder(struct verify *v, const struct item *folder, bool *ret_within)
{
	struct item as_kept = { 0 };
	enum err e = store_get(v->store, v->view, folder->id, WANT_ATTRS, &as_kept);
	*ret_within = e == ERR_OK && as_kept.parent == folder->parent;
	item_fini(&as_kept);
	if (!*ret_within)
		return e == ERR_NOT_FOUND ? ERR_OK : e;
	v->children = 0;
	e = list_files(v, folder->id, ITEM_FOLDER);
	if (e == ERR_OK)
		check_count(v, folder, folder->key);
	return e;
}

/* Verifies all folders below top, at any depth.  It asks the store for the way up and so needs no
 * stack. */
static enum err verify_folders(struct verify *v, uint64_t top)
{
	struct item at = { 0 };
	uint64_t dir = top;
	enum err e = ERR_OK;
	while (e == ERR_OK && !v->stopped) {
		bool within;
		e = next_folder(v, dir, &at);
		if (e == ERR_OK) {
			e = verify_folder(v, &at, &within);
			if (within) {
				dir = at.id;
				item_fini(&at);
			}
		} else if (e == ERR_NOT_FOUND && dir != top) {
			e = store_get(v->store, v->view, dir, WANT_ATTRS, &at);
			dir = at.parent;
		}
	}
	item_fini(&at);
	return e == ERR_NOT_FOUND ? ERR_OK : e;
}

static enum err verify_partition(struct verify *v, const struct item *it)
{
	char key[LIMIT_KEY_BYTES];
	v->counts->partitions++;
	if (!check_key(v, it, "PartitionKey", FILENAME_PARTITION, key))
		return ERR_OK;
	v->partition = span_make(key, it->key.n);
	check_dir_flags(v, it, (struct span){ 0 });
	v->children = 0;
	enum err e = store_list(v->store, v->view, it->id, CLASS_KEYED, (struct span){ 0 }, false,
		WANT_BODY, on_row, v);
	if (e == ERR_OK)
		e = list_files(v, it->id, ITEM_PARTITION);
	uint64_t children = v->children;
	if (e == ERR_OK)
		e = verify_folders(v, it->id);
	struct span name = v->partition;
	v->partition = (struct span){ 0 };
	v->children = children;
	if (e == ERR_OK)
		check_count(v, it, name);
	return tolerate(v, name, e);
}

/* Calls fn for each keyed child of dir, and counts all children. */
static enum err each_child(struct verify *v, uint64_t dir, enum item_kind kind,
	enum err (*fn)(struct verify *v, const struct item *it), uint64_t *ret_children)
{
	struct item at = { 0 };
	enum err e = ERR_OK;
	*ret_children = 0;
	while (!v->stopped) {
		e = walk_next(v->store, v->view, dir, CLASS_KEYED, WANT_BODY, &at);
		if (e != ERR_OK)
			break;
		(*ret_children)++;
		e = fn(v, &at);
		if (e != ERR_OK)
			break;
	}
	item_fini(&at);
	if (e != ERR_OK && e != ERR_NOT_FOUND)
		return e;
	v->children = 0;
	e = list_files(v, dir, kind);
	*ret_children += v->children;
	return e == ERR_OK ? verify_folders(v, dir) : e;
}

static void check_policies(struct verify *v, const struct item *it)
{
	struct access_policies policies;
	struct err_detail why = { 0 };
	enum err e = access_policies_from_xml(it->body, POLICY_LETTERS_TABLE, &policies, &why);
	arena_fini(&policies.arena);
	if (e != ERR_OK && !lacks_memory(v, e == ERR_NO_MEMORY))
		report(v, it->name, "its access policies cannot be read: %s", err_message(e, &why));
}

static enum err verify_table(struct verify *v, const struct item *it)
{
	struct err_detail why = { 0 };
	char key[LIMIT_TABLE_NAME_MAX];
	v->counts->tables++;
	enum err e = table_name_check(it->name, &why);
	if (e != ERR_OK) {
		report(v, it->name, "%s", err_message(e, &why));
		return ERR_OK;
	}
	table_name_fold(it->name, key);
	if (!span_eq(span_make(key, it->name.n), it->key))
		report(v, it->name, "the key is not the name in lower case");
	check_policies(v, it);
	check_dir_flags(v, it, it->name);
	v->table = it->name;
	uint64_t children;
	e = each_child(v, it->id, ITEM_TABLE, verify_partition, &children);
	v->table = (struct span){ 0 };
	v->children = children;
	if (e == ERR_OK)
		check_count(v, it, it->name);
	return tolerate(v, it->name, e);
}

static void check_secrets(struct verify *v, const struct item *it)
{
	struct account_secrets secrets;
	struct service_properties properties;
	enum err e = account_secrets_read(it->body, &secrets);
	if (lacks_memory(v, e == ERR_NO_MEMORY))
		return;
	if (e != ERR_OK) {
		report(v, it->key, "the account's keys cannot be read");
		return;
	}
	for (int i = 0; i < ACCOUNT_SERVICES_; i++) {
		e = service_properties_load(buf_span(&secrets.properties[i]), &properties);
		if (e != ERR_OK && !lacks_memory(v, e == ERR_NO_MEMORY))
			report(v, it->key, "its service properties cannot be read");
		service_properties_fini(&properties);
	}
	account_secrets_fini(&secrets);
}

static bool on_message(void *arg, const struct item *it)
{
	struct verify *v = arg;
	const char *wrong = message_item_wrong(it);
	v->children++;
	v->counts->messages++;
	if (wrong != NULL)
		report(v, it->key, "%s", wrong);
	tell_done(v);
	return !v->stopped;
}

static enum err verify_queue(struct verify *v, const struct item *it)
{
	const char *wrong = collection_item_wrong(&collection_queue, it);
	v->counts->queues++;
	if (wrong != NULL)
		report(v, it->key, "%s", wrong);
	v->table = it->key;
	v->children = 0;
	enum err e = store_list(v->store, v->view, it->id, CLASS_QUEUE, (struct span){ 0 }, false,
		WANT_BODY, on_message, v);
	v->table = (struct span){ 0 };
	if (e == ERR_OK)
		check_count(v, it, it->key);
	return tolerate(v, it->key, e);
}

static enum err verify_queues(struct verify *v, uint64_t account, uint64_t *children)
{
	struct item at = { 0 };
	enum err e = ERR_OK;
	while (e == ERR_OK && !v->stopped) {
		e = walk_next(v->store, v->view, account, CLASS_QUEUE, WANT_BODY, &at);
		if (e == ERR_OK) {
			(*children)++;
			e = verify_queue(v, &at);
		}
	}
	item_fini(&at);
	return e == ERR_NOT_FOUND ? ERR_OK : e;
}

/* The extents and pieces of a blob, or the pieces of an extent.  An extent has no extents. */
static enum err verify_content(struct verify *v, const struct item *dir)
{
	struct item at = { 0 };
	uint64_t children = 0;
	enum err e = ERR_OK;
	while (e == ERR_OK && !v->stopped) {
		e = walk_next(v->store, v->view, dir->id, CLASS_BLOB, WANT_BODY, &at);
		const char *wrong = e == ERR_OK ? blob_item_wrong(&at) : NULL;
		if (wrong != NULL)
			report(v, dir->key, "%s", wrong);
		children += e == ERR_OK;
		if (e == ERR_OK && at.kind == ITEM_EXTENT && dir->kind == ITEM_BLOB)
			e = verify_content(v, &at);
		tell_done(v);
	}
	item_fini(&at);
	v->children = children;
	if (e == ERR_NOT_FOUND)
		check_count(v, dir, dir->key);
	return e == ERR_NOT_FOUND ? ERR_OK : e;
}

/* The extent that the record names, and that all of its pieces are there. */
static enum err verify_extent(struct verify *v, const struct item *blob)
{
	struct item extent = { 0 };
	uint64_t id, pieces;
	if (!blob_item_extent(blob, &id, &pieces))
		return ERR_OK;
	enum err e = store_get(v->store, v->view, id, WANT_ATTRS, &extent);
	if (e == ERR_NOT_FOUND || (e == ERR_OK && extent.parent != blob->id))
		report(v, blob->key, "the content of the blob is missing");
	else if (e == ERR_OK && extent.size < pieces)
		report(v, blob->key, "a part of the content of the blob is missing");
	item_fini(&extent);
	const char *wrong = NULL;
	if (e == ERR_OK)
		e = blob_pages_wrong(v->store, v->view, blob, &wrong);
	if (wrong != NULL)
		report(v, blob->key, "%s", wrong);
	return e == ERR_NOT_FOUND ? ERR_OK : e;
}

static enum err verify_container(struct verify *v, const struct item *it)
{
	struct item at = { 0 };
	const char *wrong = collection_item_wrong(&collection_container, it);
	uint64_t children = 0;
	enum err e = ERR_OK;
	v->counts->containers++;
	if (wrong != NULL)
		report(v, it->key, "%s", wrong);
	v->table = it->key;
	while (e == ERR_OK && !v->stopped) {
		e = walk_next(v->store, v->view, it->id, CLASS_BLOB, WANT_BODY, &at);
		if (e != ERR_OK)
			break;
		children++;
		v->counts->blobs++;
		wrong = blob_item_wrong(&at);
		if (wrong != NULL)
			report(v, at.key, "%s", wrong);
		e = verify_content(v, &at);
		if (e == ERR_OK)
			e = verify_extent(v, &at);
	}
	item_fini(&at);
	v->table = (struct span){ 0 };
	v->children = children;
	if (e == ERR_NOT_FOUND)
		check_count(v, it, it->key);
	return tolerate(v, it->key, e == ERR_NOT_FOUND ? ERR_OK : e);
}

static enum err verify_containers(struct verify *v, uint64_t account, uint64_t *children)
{
	struct item at = { 0 };
	enum err e = ERR_OK;
	while (e == ERR_OK && !v->stopped) {
		e = walk_next(v->store, v->view, account, CLASS_BLOB, WANT_BODY, &at);
		if (e == ERR_OK) {
			(*children)++;
			e = verify_container(v, &at);
		}
	}
	item_fini(&at);
	return e == ERR_NOT_FOUND ? ERR_OK : e;
}

static enum err verify_account(struct verify *v, const struct item *it)
{
	struct err_detail why = { 0 };
	v->counts->accounts++;
	enum err e = account_name_check(it->key, &why);
	if (e != ERR_OK)
		report(v, it->key, "%s", err_message(e, &why));
	check_secrets(v, it);
	check_dir_flags(v, it, it->key);
	v->account = it->key;
	uint64_t children;
	e = each_child(v, it->id, ITEM_ACCOUNT, verify_table, &children);
	if (e == ERR_OK)
		e = verify_queues(v, it->id, &children);
	if (e == ERR_OK)
		e = verify_containers(v, it->id, &children);
	v->account = (struct span){ 0 };
	v->children = children;
	if (e == ERR_OK)
		check_count(v, it, it->key);
	return tolerate(v, it->key, e);
}

/* Verifies a fixed folder that the mount shows in .rowfs. */
static enum err verify_fixed(struct verify *v, uint64_t id)
{
	struct item it = { 0 };
	enum err e = store_get(v->store, v->view, id, WANT_ATTRS, &it);
	if (e != ERR_OK)
		return e == ERR_NOT_FOUND ? ERR_OK : e; /* the engine reports it */
	v->account = SPAN_LIT(".rowfs");
	v->table = it.key;
	v->children = 0;
	e = list_files(v, id, ITEM_FOLDER);
	uint64_t children = v->children;
	if (e == ERR_OK)
		e = verify_folders(v, id);
	v->table = (struct span){ 0 };
	v->children = children;
	if (e == ERR_OK)
		check_count(v, &it, it.key);
	v->account = (struct span){ 0 };
	item_fini(&it);
	return e;
}

enum err service_verify(struct service *s, store_check_fn fn, store_progress_fn progress, void *arg,
	struct verify_counts *counts)
{
	*counts = (struct verify_counts){ 0 };
	struct verify v = { .service = s,
		.store = service_store(s),
		.fn = fn,
		.progress = progress,
		.arg = arg,
		.counts = counts };
	enum err e = store_check(v.store, engine_finding, engine_progress, &v);
	if (e != ERR_OK && e != ERR_CORRUPT)
		return e;
	if (e == ERR_CORRUPT && counts->findings == 0)
		(void)find(&v, "the engine found the store damaged");
	struct store_info info;
	store_info(v.store, &info);
	v.exact = (info.abilities & STORE_COUNTS_EXACT) != 0;

	e = store_view_hold(v.store, &v.view);
	uint64_t unused;
	if (e == ERR_OK)
		e = each_child(&v, STORE_ROOT, ITEM_NONE, verify_account, &unused);
	if (e == ERR_OK)
		e = verify_fixed(&v, STORE_REJECTED);
	if (e == ERR_OK)
		e = verify_fixed(&v, STORE_TRASH);
	store_view_close(v.store, v.view);
	entity_fini(&v.entity);
	if (v.no_memory)
		return ERR_NO_MEMORY;
	if (e == ERR_OK && counts->findings > 0)
		e = ERR_CORRUPT;
	return e == ERR_OK && v.stopped ? ERR_CANCELLED : e;
}
