/* SPDX-License-Identifier: MIT
 * Sweeps over what the front ends and the commands ask of the service. */
#include "base/compiler.h"
#include "codec/entity_json.h"
#include "service/change/change_set.h"
#include "service/change/entities.h"
#include "service/check/verify.h"
#include "service/core/accounts.h"
#include "service/core/tables.h"
#include "service/query/queries.h"
#include "service/query/row_stream.h"
#include "service/transfer/importer.h"
#include "service/tree/trash.h"
#include "service/tree/tree.h"
#include "service/view/views.h"
#include "store/engines.h"
#include "sweep.h"

#include <stdio.h>
#include <string.h>

/* ---- entities ---- */

static enum err change_entity(
	struct world *w, enum entity_op_kind kind, const char *rk, const char *json)
{
	struct entity entity = { 0 };
	struct entity_op op = { .kind = kind,
		.pk = SPAN_LIT("p"),
		.rk = span_of(rk),
		.entity = kind == ENTITY_DELETE ? NULL : &entity,
		.attrs = ATTRS_UNSET };
	enum err e = json
		? entity_json_decode(span_of(json), ENTITY_JSON_REST, &entity, NULL, &w->detail)
		: ERR_OK;
	if (e == ERR_OK)
		e = entities_apply(w->service, ORIGIN_REST, ids.table, &op, 1,
			ENTITIES_SET | ENTITIES_DURABLE, &w->detail);
	entity_fini(&entity);
	return e;
}

static enum err insert(struct world *w)
{
	return change_entity(w, ENTITY_INSERT, "n", "{\"B\":\"x\",\"C\":1.5}");
}

static enum err upsert(struct world *w)
{
	return change_entity(w, ENTITY_UPSERT, "b", "{\"B\":\"x\",\"C\":1.5}");
}

static enum err merge(struct world *w)
{
	return change_entity(w, ENTITY_MERGE, "b", "{\"B\":\"x\",\"C\":1.5}");
}

static enum err replace(struct world *w)
{
	return change_entity(
		w, ENTITY_REPLACE, "a", "{\"B@odata.type\":\"Edm.Int64\",\"B\":\"7\"}");
}

static enum err delete (struct world *w) {
	return change_entity(w, ENTITY_DELETE, "a", NULL);
}

static enum err change_set(struct world *w)
{
	static const char text[] =
		"[{\"insert\":{\"PartitionKey\":\"p\",\"RowKey\":\"n\",\"A\":1}},"
		"{\"upsert\":{\"RowKey\":\"m\",\"A\":2}},"
		"{\"merge\":{\"RowKey\":\"a\",\"B\":4}},"
		"{\"delete\":{\"RowKey\":\"b\"},\"if_match\":\"*\"}]";
	const struct change_set_place at = {
		.account = SPAN_LIT("acc"), .table = SPAN_LIT("Tab"), .pk = SPAN_LIT("p")
	};
	struct change_set set;
	enum err e = change_set_parse(span_of(text), &at, &set, &w->detail);
	if (e == ERR_OK)
		e = change_set_apply(
			w->service, ORIGIN_MOUNT, ids.table, &set, ENTITIES_SET, &w->detail);
	change_set_fini(&set);
	return e;
}

/* As the mount does it. */
static enum err commit_file(struct world *w)
{
	struct entity_op op = { .kind = ENTITY_UPSERT,
		.pk = SPAN_LIT("p"),
		.rk = SPAN_LIT("f"),
		.document = SPAN_LIT("{\"A\":1}\n"),
		.attrs = ATTRS_UNSET };
	return entity_commit_document(
		w->service, ORIGIN_MOUNT, ids.table, &op, false, NULL, NULL, &w->detail);
}

/* ---- queries and streams ---- */

static bool see_row(void *arg, const struct query_row *row)
{
	unsigned *n = arg;
	*n += span_eq(row->pk, SPAN_LIT("q")) && row->rk.n == 3 && row->document.n > 0;
	return true;
}

static enum err query_page(struct world *w)
{
	unsigned n = 0;
	struct filter filter;
	struct query_end end = { 0 };
	enum err e = filter_parse(SPAN_LIT("PartitionKey eq 'q' and RowKey ge 'r10' and A eq 1"),
		&filter, &w->detail);
	if (e != ERR_OK) {
		filter_fini(&filter);
		return e;
	}
	struct query q = { .table_id = ids.table, .filter = &filter, .top = 20 };
	e = query_run(w->service, NULL, &q, see_row, &n, &end);
	if (e == ERR_OK) {
		EXPECT(w, n == 20 && end.more);
		EXPECT(w, span_is(buf_span(&end.next_rk), "r30"));
	}
	query_end_fini(&end);
	filter_fini(&filter);
	return e;
}

static enum err stream(struct world *w, enum row_form form, const char *begin, size_t want)
{
	struct row_query all = ROW_QUERY_ALL(form);
	struct span pk = SPAN_LIT("q");
	struct row_stream *s = NULL;
	struct buf out = BUF_INIT((size_t)1 << 20);
	enum err e =
		row_stream_open(w->service, ids.table, &pk, &all, SPAN_LIT("q"), &s, &w->detail);
	for (size_t before = 1; e == ERR_OK && before != out.len;) {
		before = out.len;
		e = row_stream_read(s, out.len, 1000, NULL, NULL, &out, &w->detail);
	}
	if (e == ERR_OK && !buf_ok(&out))
		e = ERR_NO_MEMORY;
	if (e == ERR_OK) {
		EXPECT(w, row_stream_rows(s) == 40);
		EXPECT(w, span_starts(buf_span(&out), span_of(begin)));
		EXPECT(w, out.len > want);
	}
	row_stream_close(s);
	buf_fini(&out);
	return e;
}

static enum err stream_ndjson(struct world *w)
{
	return stream(w, ROW_FORM_NDJSON, "{\"PartitionKey\":\"q\",\"RowKey\":\"r00\",", 40 * 50);
}

static enum err stream_csv(struct world *w)
{
	return stream(w, ROW_FORM_CSV, "PartitionKey,RowKey,Timestamp,A", 40 * 20);
}

/* ---- import ---- */

#define RECORDS 30

static enum err import(struct world *w, enum transfer_format format, const char *text)
{
	const struct import_options options = {
		.format = format, .mode = IMPORT_UPSERT, .stop_at_error = true, .at_once = true
	};
	struct importer *im = NULL;
	enum err e = importer_new(w->service, ORIGIN_MOUNT, ids.table, &options, &im);
	size_t n = strlen(text), half = n / 2 + 3;
	if (e == ERR_OK)
		e = importer_feed(im, span_make(text, half), &w->detail);
	if (e == ERR_OK)
		e = importer_feed(im, span_make(text + half, n - half), &w->detail);
	if (e == ERR_OK)
		e = importer_end(im, &w->detail);
	if (e == ERR_OK)
		EXPECT(w, importer_counts(im)->done == RECORDS);
	importer_free(im);
	return e;
}

static enum err import_ndjson(struct world *w)
{
	static char text[RECORDS * 80];
	size_t n = 0;
	for (int i = 0; i < RECORDS; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n,
			"{\"PartitionKey\":\"i\",\"RowKey\":\"%02d\", \"A\":\"%d\"}\n", i, i);
	return import(w, TRANSFER_NDJSON, text);
}

static enum err import_csv(struct world *w)
{
	static char text[RECORDS * 80];
	size_t n = (size_t)snprintf(text, sizeof(text), "PartitionKey,RowKey,A,B@Int32\n");
	for (int i = 0; i < RECORDS; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "i,%02d,\"a\n%d\",%d\n", i, i, i);
	return import(w, TRANSFER_CSV, text);
}

/* ---- the tree ---- */

static enum err partition(struct world *w, uint64_t id, struct item *ret)
{
	*ret = (struct item){ 0 };
	return store_get(w->store, NULL, id, WANT_ATTRS, ret);
}

static enum err move(struct world *w, uint64_t from_dir, struct dentry from, uint64_t to_dir,
	struct dentry to, unsigned flags)
{
	struct item a, b = { 0 };
	enum err e = partition(w, from_dir, &a);
	if (e == ERR_OK)
		e = partition(w, to_dir, &b);
	from.dir = &a;
	to.dir = &b;
	if (e == ERR_OK)
		e = tree_move(w->service, &from, &to, flags, NULL, NULL, &w->detail);
	item_fini(&a);
	item_fini(&b);
	return e;
}

#define ROW_SPOT(name_) ((struct dentry){ .class = CLASS_KEYED, .key = SPAN_LIT(name_) })
#define FILE_SPOT(name_) ((struct dentry){ .class = CLASS_NAMED, .key = SPAN_LIT(name_) })

static enum err rename_row(struct world *w)
{
	return move(w, ids.p, ROW_SPOT("b"), ids.q, ROW_SPOT("r05"), 0);
}

static enum err rename_partition(struct world *w)
{
	return move(w, ids.table, ROW_SPOT("q"), ids.table, ROW_SPOT("z"), 0);
}

static enum err rename_file_to_row(struct world *w)
{
	static const char document[] = "{\"X\":1}";
	struct item it = { 0 };
	/* Done already where it is tried again. */
	enum err e = store_get(w->store, NULL, ids.f, WANT_ATTRS, &it);
	item_fini(&it);
	if (e == ERR_OK)
		e = tree_file_resize(w->service, ids.f, 0, NULL);
	if (e == ERR_OK)
		e = tree_file_write(w->service, ids.f, 0, span_of(document), NULL);
	return e == ERR_OK ? move(w, ids.p, FILE_SPOT("f"), ids.p, ROW_SPOT("b"), 0) : e;
}

static enum err rename_row_to_file(struct world *w)
{
	return move(w, ids.p, ROW_SPOT("b"), ids.p, FILE_SPOT("b~"), 0);
}

static enum err exchange_rows(struct world *w)
{
	return move(w, ids.p, ROW_SPOT("a"), ids.q, ROW_SPOT("r05"), TREE_EXCHANGE);
}

static enum err to_trash(struct world *w)
{
	const struct trash_limits limits = TRASH_LIMITS_USUAL;
	struct trash *t = NULL;
	struct item dir = { 0 };
	bool kept;
	enum err e = trash_new(w->service, &limits, &t);
	if (e == ERR_OK)
		e = partition(w, ids.p, &dir);
	struct dentry at = ROW_SPOT("a");
	at.dir = &dir;
	if (e == ERR_OK)
		e = trash_unlink(t, &at, &kept, &w->detail);
	item_fini(&dir);
	trash_free(t);
	return e;
}

static enum err make_all(struct world *w)
{
	const struct attrs attrs = ATTRS_UNSET;
	struct item table = { 0 }, dir = { 0 }, file = { 0 };
	struct dentry at = ROW_SPOT("made");
	enum err e = partition(w, ids.table, &table);
	at.dir = &table;
	if (e == ERR_OK)
		e = tree_mkdir(w->service, &at, &attrs, &dir, &w->detail);
	if (e == ERR_NAME_EXISTS) /* the first try came so far */
		e = store_child(w->store, NULL, ids.table, CLASS_KEYED, SPAN_LIT("made"), 0, &dir);
	struct dentry in = FILE_SPOT("file");
	in.dir = &dir;
	if (e == ERR_OK)
		e = tree_create_file(w->service, &in, &attrs, &file, &w->detail);
	if (e == ERR_NAME_EXISTS)
		e = store_child(w->store, NULL, dir.id, CLASS_NAMED, SPAN_LIT("file"), 0, &file);
	if (e == ERR_OK)
		e = tree_file_write(w->service, file.id, 10, SPAN_LIT("bytes"), NULL);
	item_fini(&table);
	item_fini(&dir);
	item_fini(&file);
	return e;
}

/* ---- accounts, tables ---- */

static enum err make_account(struct world *w)
{
	return account_create(
		w->service, ORIGIN_COMMAND, SPAN_LIT("newacc"), NULL, NULL, &w->detail);
}

static enum err new_key(struct world *w)
{
	struct account_keys keys;
	return account_key_regenerate(
		w->service, ORIGIN_COMMAND, SPAN_LIT("newacc"), 1, &keys, &w->detail);
}

static void with_account(struct world *w)
{
	MUST_DO(make_account(w));
}

static enum err make_table(struct world *w)
{
	struct item it = { 0 };
	enum err e = table_create(
		w->service, ORIGIN_REST, ids.account, SPAN_LIT("NewTable"), &it, &w->detail);
	item_fini(&it);
	return e;
}

static enum err drop_table(struct world *w)
{
	return table_delete(w->service, ORIGIN_REST, ids.table, &w->detail);
}

static enum err set_policies(struct world *w)
{
	return table_policies_set(w->service, ORIGIN_REST, ids.table,
		SPAN_LIT("<SignedIdentifiers><SignedIdentifier><Id>i</Id></SignedIdentifier>"
			 "</SignedIdentifiers>"),
		&w->detail);
}

/* ---- the rest ---- */

static enum err snapshot(struct world *w)
{
	struct view_info info;
	struct view *view;
	struct store_view *v;
	struct item it = { 0 };
	struct views *views = service_views(w->service);
	enum err e = snapshot_make(views, SPAN_LIT("s"), &info, &w->detail);
	if (e != ERR_OK)
		return e;
	e = snapshot_begin(views, info.number, &view, &v);
	if (e == ERR_OK) {
		e = store_get(w->store, v, ids.a, WANT_BODY, &it);
		if (e == ERR_OK)
			EXPECT(w, span_is(it.body, "{\"A\":1}\n"));
		item_fini(&it);
		view_end(view);
	}
	enum err end = snapshot_drop(views, SPAN_LIT("s"));
	return e == ERR_OK ? end : e;
}

static enum err verify(struct world *w)
{
	struct verify_counts counts = { 0 };
	enum err e = service_verify(w->service, NULL, NULL, NULL, &counts);
	if (e == ERR_OK)
		EXPECT(w, counts.rows == 42 && counts.files == 3 && counts.findings == 0);
	/* A page that cannot be read is a finding. */
	return e == ERR_CORRUPT ? ERR_IO : e;
}

static enum err start(struct world *w)
{
	enum err e = store_open(w->path, 0, &w->store, NULL, &w->detail);
	if (e == ERR_OK)
		e = service_new(w->store, &w->service);
	if (e == ERR_OK)
		return e;
	w->store = NULL;
	w->service = NULL;
	return w->detail.text[0] ? e : err_set(&w->detail, e, "the service");
}

/* clang-format off */
const struct sweep_case sweep_service[] = {
	{ "start", SWEEP_OPENS | SWEEP_SERVICE, NULL, start, NULL },
	{ "insert an entity", SWEEP_SERVICE, NULL, insert, NULL },
	{ "upsert an entity", SWEEP_SERVICE, NULL, upsert, NULL },
	{ "merge into an entity", SWEEP_SERVICE, NULL, merge, NULL },
	{ "replace an entity", SWEEP_SERVICE, NULL, replace, NULL },
	{ "delete an entity", SWEEP_SERVICE, NULL, delete, NULL },
	{ "change set", SWEEP_SERVICE, NULL, change_set, NULL },
	{ "commit of a row file", SWEEP_SERVICE, NULL, commit_file, NULL },
	{ "page of a query", SWEEP_SERVICE, NULL, query_page, NULL },
	{ "stream of rows as NDJSON", SWEEP_SERVICE, NULL, stream_ndjson, NULL },
	{ "stream of rows as CSV", SWEEP_SERVICE, NULL, stream_csv, NULL },
	{ "import of NDJSON", SWEEP_SERVICE | SWEEP_IN_PARTS, NULL, import_ndjson, NULL },
	{ "import of CSV", SWEEP_SERVICE | SWEEP_IN_PARTS, NULL, import_csv, NULL },
	{ "rename of a row", SWEEP_SERVICE, NULL, rename_row, NULL },
	{ "rename of a partition", SWEEP_SERVICE, NULL, rename_partition, NULL },
	{ "rename of a file to a row", SWEEP_SERVICE | SWEEP_IN_PARTS, NULL, rename_file_to_row,
		NULL },
	{ "rename of a row to a file", SWEEP_SERVICE, NULL, rename_row_to_file, NULL },
	{ "exchange of rows", SWEEP_SERVICE, NULL, exchange_rows, NULL },
	{ "removal into the trash", SWEEP_SERVICE, NULL, to_trash, NULL },
	{ "directory, file, write", SWEEP_SERVICE | SWEEP_IN_PARTS, NULL, make_all, NULL },
	{ "account", SWEEP_SERVICE, NULL, make_account, NULL },
	{ "new key", SWEEP_SERVICE, with_account, new_key, NULL },
	{ "table", SWEEP_SERVICE, NULL, make_table, NULL },
	{ "table's end", SWEEP_SERVICE, NULL, drop_table, NULL },
	{ "policies", SWEEP_SERVICE, NULL, set_policies, NULL },
	{ "snapshot", SWEEP_SERVICE, NULL, snapshot, NULL },
	{ "verification", SWEEP_SERVICE, NULL, verify, NULL },
	{ NULL, 0, NULL, NULL, NULL },
};
/* clang-format on */
