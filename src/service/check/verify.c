/* SPDX-License-Identifier: MIT
 * The check of a whole store: accounts and tables here, what is in them in the other files. */
#include "service/check/verify.h"

#include "codec/access_policy_xml.h"
#include "codec/service_properties_xml.h"
#include "model/names.h"
#include "service/check/verify_parts.h"
#include "service/check/walk.h"
#include "service/core/accounts.h"

/* Counts the engine's findings too. */
static bool engine_finding(void *arg, const char *finding)
{
	return verify_find(arg, finding);
}

static void engine_progress(void *arg, enum store_check_unit unit, uint64_t done, uint64_t total)
{
	struct verify *v = arg;
	if (v->progress != NULL)
		v->progress(v->arg, unit == STORE_CHECK_PAGES ? VERIFY_PAGES : VERIFY_PLACES, done,
			total);
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
	e = verify_files(v, dir, kind);
	*ret_children += v->children;
	return e == ERR_OK ? verify_folders(v, dir) : e;
}

static void check_policies(struct verify *v, const struct item *it)
{
	struct access_policies policies;
	struct err_detail why = { 0 };
	enum err e = access_policies_from_xml(it->body, POLICY_LETTERS_TABLE, &policies, &why);
	arena_fini(&policies.arena);
	if (e != ERR_OK && !verify_lacks_memory(v, e == ERR_NO_MEMORY))
		verify_report(v, it->name, "its access policies cannot be read: %s",
			err_message(e, &why));
}

static enum err verify_table(struct verify *v, const struct item *it)
{
	struct err_detail why = { 0 };
	char key[LIMIT_TABLE_NAME_MAX];
	v->counts->tables++;
	enum err e = table_name_check(it->name, &why);
	if (e != ERR_OK) {
		verify_report(v, it->name, "%s", err_message(e, &why));
		return ERR_OK;
	}
	table_name_fold(it->name, key);
	if (!span_eq(span_make(key, it->name.n), it->key))
		verify_report(v, it->name, "the key is not the name in lower case");
	check_policies(v, it);
	verify_dir_flags(v, it, it->name);
	v->table = it->name;
	v->table_bytes = 0;
	v->countable = true;
	uint64_t children;
	e = each_child(v, it->id, ITEM_TABLE, verify_partition, &children);
	v->table = (struct span){ 0 };
	v->children = children;
	if (e == ERR_OK)
		verify_count(v, it, it->name);
	if (e == ERR_OK)
		verify_size(v, it->id, v->table_bytes, it->name);
	return verify_tolerate(v, it->name, e);
}

static void check_secrets(struct verify *v, const struct item *it)
{
	struct account_secrets secrets;
	struct service_properties properties;
	enum err e = account_secrets_read(it->body, &secrets);
	if (verify_lacks_memory(v, e == ERR_NO_MEMORY))
		return;
	if (e != ERR_OK) {
		verify_report(v, it->key, "the account's keys cannot be read");
		return;
	}
	for (int i = 0; i < ACCOUNT_SERVICES_; i++) {
		e = service_properties_load(buf_span(&secrets.properties[i]), &properties);
		if (e != ERR_OK && !verify_lacks_memory(v, e == ERR_NO_MEMORY))
			verify_report(v, it->key, "its service properties cannot be read");
		service_properties_fini(&properties);
	}
	account_secrets_fini(&secrets);
}

static enum err verify_account(struct verify *v, const struct item *it)
{
	struct err_detail why = { 0 };
	v->counts->accounts++;
	enum err e = account_name_check(it->key, &why);
	if (e != ERR_OK)
		verify_report(v, it->key, "%s", err_message(e, &why));
	check_secrets(v, it);
	verify_dir_flags(v, it, it->key);
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
		verify_count(v, it, it->key);
	return verify_tolerate(v, it->key, e);
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
	e = verify_files(v, id, ITEM_FOLDER);
	uint64_t children = v->children;
	if (e == ERR_OK)
		e = verify_folders(v, id);
	v->table = (struct span){ 0 };
	v->children = children;
	if (e == ERR_OK)
		verify_count(v, &it, it.key);
	v->account = (struct span){ 0 };
	item_fini(&it);
	return e;
}

enum err service_verify(struct service *s, store_check_fn fn, verify_progress_fn progress,
	void *arg, struct verify_counts *counts)
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
		(void)verify_find(&v, "the engine found the store damaged");
	struct store_info info;
	store_info(v.store, &info);
	v.exact = (info.abilities & STORE_COUNTS_EXACT) != 0;

	e = store_view_hold(v.store, &v.view);
	uint64_t unused;
	/* A damaged store may have no estimate. */
	if (e == ERR_OK && progress != NULL)
		(void)estimate_store(v.store, v.view, &v.expected);
	if (e == ERR_OK)
		verify_sizes_begin(&v);
	if (e == ERR_OK)
		e = each_child(&v, STORE_ROOT, ITEM_NONE, verify_account, &unused);
	if (e == ERR_OK)
		e = verify_fixed(&v, STORE_REJECTED);
	if (e == ERR_OK)
		e = verify_fixed(&v, STORE_TRASH);
	store_view_close(v.store, v.view);
	entity_fini(&v.entity);
	row_line_fini(&v.line);
	if (v.no_memory)
		return ERR_NO_MEMORY;
	if (e == ERR_OK && counts->findings > 0)
		e = ERR_CORRUPT;
	return e == ERR_OK && v.stopped ? ERR_CANCELLED : e;
}
