/* SPDX-License-Identifier: MIT
 * The check of a whole store.  The engine says what it alone can know; here every item is
 * held against the rules of the model: names, keys and their file names, documents. */
#include "service/verify.h"

#include "base/clock.h"
#include "codec/entity_json.h"
#include "codec/filename.h"
#include "model/key.h"
#include "model/names.h"
#include "service/accounts.h"
#include "service/walk.h"

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
	bool exact; /* the engine counts children */

	/* Where we are, for the findings. */
	struct span account, table, partition;
	uint64_t children; /* of the directory being listed */
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

static int shown(struct span s)
{
	return (int)(s.n < NAME_SHOWN ? s.n : NAME_SHOWN);
}

/* A finding about the item `name` where we are. */
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

/* The engine's findings come through here, so that they are counted. */
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

/* Every key has one name, and the name leads back to it. */
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

/* The key out of its order form; false, with a finding, if it breaks a rule. */
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
		report(v, key, "the mark for keys in the document is wrong");
	if (wanted && !facts->has_keys)
		report(v, key, "the document of a long key does not hold its keys");
}

/* What is spliced into answers without being read must be what would be rendered. */
static void check_canonical(struct verify *v, const struct item *it, struct span key)
{
	if ((it->flags & ITEM_CANONICAL) == 0)
		return;
	struct buf again = BUF_INIT(LIMIT_DOCUMENT_BYTES);
	entity_json_encode(&v->entity, ENTITY_JSON_NEWLINE, &again);
	if (!buf_ok(&again) || !span_eq(buf_span(&again), it->body))
		report(v, key, "the document is not in the form that its mark says");
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
	enum err e = entity_json_decode(it->body, ENTITY_JSON_FILE, &v->entity, &facts, &why);
	if (e != ERR_OK) {
		report(v, key, "%s", err_message(e, &why));
	} else {
		check_keys_inside(v, it, key, &facts);
		check_canonical(v, it, key);
	}
	if (it->version <= 0 || it->version > TICKS_MAX)
		report(v, key, "the Timestamp is no date");
}

static bool on_row(void *arg, const struct item *it)
{
	struct verify *v = arg;
	v->children++;
	v->done++;
	if (it->kind == ITEM_ROW) {
		v->counts->rows++;
		check_row(v, it);
	} else {
		report(v, it->key, "something that is no row has a row's key");
	}
	if (v->progress != NULL && v->done % 256 == 0)
		v->progress(v->arg, v->done, 0); /* how many there are is not known */
	return !v->stopped;
}

static bool on_file(void *arg, const struct item *it)
{
	struct verify *v = arg;
	v->children++;
	v->counts->files += it->kind == ITEM_FILE;
	if (it->key.n == 0 || it->key.n > LIMIT_FILE_NAME_BYTES ||
		memchr(it->key.p, '/', it->key.n) != NULL)
		report(v, it->key, "the name of an ordinary file is not allowed");
	return !v->stopped;
}

static void check_count(struct verify *v, const struct item *dir, struct span name)
{
	if (v->exact && !v->stopped && dir->size != v->children)
		report(v, name, "%" PRIu64 " children counted, %" PRIu64 " found", dir->size,
			v->children);
}

static enum err verify_partition(struct verify *v, const struct item *it)
{
	char key[LIMIT_KEY_BYTES];
	v->counts->partitions++;
	if (!check_key(v, it, "PartitionKey", FILENAME_PARTITION, key))
		return ERR_OK;
	v->partition = span_make(key, it->key.n);
	v->children = 0;
	enum err e = store_list(v->store, v->view, it->id, CLASS_KEYED, (struct span){ 0 }, false,
		WANT_BODY, on_row, v);
	if (e == ERR_OK && !v->stopped)
		e = store_list(v->store, v->view, it->id, CLASS_NAMED, (struct span){ 0 }, false,
			WANT_ATTRS, on_file, v);
	struct span name = v->partition;
	v->partition = (struct span){ 0 };
	if (e == ERR_OK)
		check_count(v, it, name);
	return e;
}

/* Calls fn for every keyed child of dir, and counts all children. */
static enum err each_child(struct verify *v, uint64_t dir,
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
	e = v->stopped ? ERR_OK
		       : store_list(v->store, v->view, dir, CLASS_NAMED, (struct span){ 0 }, false,
				 WANT_ATTRS, on_file, v);
	*ret_children += v->children;
	return e;
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
	v->table = it->name;
	uint64_t children;
	e = each_child(v, it->id, verify_partition, &children);
	v->table = (struct span){ 0 };
	v->children = children;
	if (e == ERR_OK)
		check_count(v, it, it->name);
	return e;
}

static enum err verify_account(struct verify *v, const struct item *it)
{
	struct err_detail why = { 0 };
	struct account_keys keys;
	v->counts->accounts++;
	enum err e = account_name_check(it->key, &why);
	if (e != ERR_OK)
		report(v, it->key, "%s", err_message(e, &why));
	e = account_keys_get(v->service, it->key, &keys);
	explicit_bzero(&keys, sizeof(keys));
	if (e != ERR_OK && e != ERR_ACCOUNT_NOT_FOUND) /* removed since the view */
		report(v, it->key, "the account's keys cannot be read");
	v->account = it->key;
	uint64_t children;
	e = each_child(v, it->id, verify_table, &children);
	v->account = (struct span){ 0 };
	v->children = children;
	if (e == ERR_OK)
		check_count(v, it, it->key);
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
		e = each_child(&v, STORE_ROOT, verify_account, &unused);
	store_view_close(v.store, v.view);
	entity_fini(&v.entity);
	if (e == ERR_OK && counts->findings > 0)
		e = ERR_CORRUPT;
	return e == ERR_OK && v.stopped ? ERR_CANCELLED : e;
}
