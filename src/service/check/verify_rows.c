/* SPDX-License-Identifier: MIT
 * Partitions: keys and their file names, documents. */
#include "base/clock.h"
#include "model/filename.h"
#include "model/key.h"
#include "service/check/verify_parts.h"

#include <inttypes.h>
#include <string.h>

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
		verify_report(v, key, "its file name '%.*s' does not lead back to it",
			verify_shown(span_make(name, n)), name);
}

/* Converts a key from its order form.  Reports a finding and returns false if it is invalid. */
static bool check_key(struct verify *v, const struct item *it, const char *what,
	enum filename_kind kind, char out[LIMIT_KEY_BYTES])
{
	struct err_detail why = { 0 };
	if (it->key.n > (size_t)LIMIT_KEY_BYTES) {
		verify_report(v, it->key, "the %s is longer than a key may be", what);
		return false;
	}
	key_from_order(it->key.p, it->key.n, out);
	struct span key = span_make(out, it->key.n);
	enum err e = key_check(key, what, &why);
	if (e != ERR_OK) {
		verify_report(v, key, "%s", err_message(e, &why));
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
		verify_report(v, key, "the keys in the document are not the row's");
	if (facts->has_keys != ((it->flags & ITEM_KEYS_INSIDE) != 0))
		verify_report(v, key, "the flag for keys in the document is wrong");
	if (wanted && !facts->has_keys)
		verify_report(v, key, "the document of a long key does not hold its keys");
}

/* Responses contain canonical documents unread, so they must have the exact form. */
static void check_canonical(struct verify *v, const struct item *it, struct span key)
{
	if ((it->flags & ITEM_CANONICAL) == 0)
		return;
	struct buf again = BUF_INIT(LIMIT_DOCUMENT_BYTES);
	entity_json_encode(&v->entity, ENTITY_JSON_NEWLINE, &again);
	if (!verify_lacks_memory(v, buf_full(&again) == ERR_NO_MEMORY) &&
		!span_eq(buf_span(&again), it->body))
		verify_report(v, key, "the document is not in the form that its flag says");
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
		verify_report(v, key, "the size is %" PRIu64 " but the document has %zu bytes",
			it->size, it->body.n);
	bool empty = item_is_empty_row(it);
	enum err e = empty
		? ERR_OK
		: entity_json_decode(it->body, ENTITY_JSON_FILE, &v->entity, &facts, &why);
	if (verify_lacks_memory(v, e == ERR_NO_MEMORY))
		return;
	if (e != ERR_OK) {
		verify_report(v, key, "%s", err_message(e, &why));
	} else if (empty && it->flags != 0) {
		verify_report(v, key, "its document is empty");
	} else if (!empty) {
		check_keys_inside(v, it, key, &facts);
		check_canonical(v, it, key);
		verify_sizes_add(v, it, key);
	}
	if (it->version <= 0 || it->version > TICKS_MAX)
		verify_report(v, key, "the Timestamp is not a date");
	if ((it->flags & ~(uint32_t)(ITEM_KEYS_INSIDE | ITEM_CANONICAL)) != 0)
		verify_report(v, key, "it has flags that a row cannot have");
}

static bool on_row(void *arg, const struct item *it)
{
	struct verify *v = arg;
	v->children++;
	if (it->kind == ITEM_ROW) {
		v->counts->rows += !item_is_empty_row(it);
		check_row(v, it);
	} else {
		verify_report(v, it->key, "an item that is not a row has a row's key");
	}
	verify_tell_done(v);
	return !v->stopped;
}

enum err verify_partition(struct verify *v, const struct item *it)
{
	char key[LIMIT_KEY_BYTES];
	v->counts->partitions++;
	if (!check_key(v, it, "PartitionKey", FILENAME_PARTITION, key))
		return ERR_OK;
	v->partition = span_make(key, it->key.n);
	verify_dir_flags(v, it, (struct span){ 0 });
	v->children = 0;
	v->partition_bytes = 0;
	enum err e = store_list(v->store, v->view, it->id, CLASS_KEYED, (struct span){ 0 }, false,
		WANT_BODY, on_row, v);
	if (e == ERR_OK)
		e = verify_files(v, it->id, ITEM_PARTITION);
	uint64_t children = v->children;
	if (e == ERR_OK)
		e = verify_folders(v, it->id);
	struct span name = v->partition;
	v->partition = (struct span){ 0 };
	v->children = children;
	if (e == ERR_OK)
		verify_count(v, it, name);
	if (e == ERR_OK)
		verify_size(v, it->id, v->partition_bytes, name);
	return verify_tolerate(v, name, e);
}
