/* SPDX-License-Identifier: MIT
 * Runs the conformance suite over the engine of an account elsewhere.  tests/system/cloud/test_contract.py
 * starts the service: a second rowfs, or Azurite.  The argument is a directory for the local files. */
#include "check.h"
#include "cloud/change.h"
#include "cloud/row_scan.h"
#include "cloudstore/cloudstore.h"
#include "store/engines.h"
#include "store_contract.h"

#include <stdlib.h>

static const char *directory;
static char path[512]; /* of the shadow at work */
static struct endpoint at;
static struct store *shadow;
static struct err_detail detail;
static unsigned cache_ms;

static struct store *open_shadow(void)
{
	const struct cloudstore_options o = { .cache_ms = cache_ms };
	struct store *s = NULL;
	CHECK_ERR(store_open(path, 0, &shadow, NULL, &detail), ERR_OK);
	enum err e = cloudstore_open(shadow, &at, &o, &s, &detail);
	CHECK_ERR(e, ERR_OK);
	if (e != ERR_OK)
		printf("# %s\n", detail.text);
	return s;
}

static void make_account(void)
{
	struct change c = { .op = CHANGE_PUT, .kind = ITEM_ACCOUNT, .version = 1 };
	CHECK_ERR(store_open(path, 0, &shadow, NULL, &detail), ERR_OK);
	c.at = (struct item_ref){ .parent = STORE_ROOT, .key = span_of(at.account) };
	c.attrs = ATTRS_UNSET;
	c.body = SPAN_LIT("keys");
	CHECK_ERR(store_apply(shadow, &c, 1, false, &detail), ERR_OK);
	changes_fini(&c, 1);
	store_close(shadow);
}

/* The service begins without tables. */
static void remove_tables(void)
{
	const struct row_scan_query all = { .top = 0 };
	const struct client_options o = { .tries = 1 };
	struct client *c;
	struct row_scan rows;
	struct cloud_row row = { 0 };
	CHECK_ERR(client_new(&at, &o, &c, &detail), ERR_OK);
	CHECK_ERR(row_scan_begin(c, &all, &rows), ERR_OK);
	while (row_scan_next(&rows, &row, &detail) == ERR_OK) {
		const struct property *name = entity_find(&row.entity, SPAN_LIT("TableName"));
		CHECK_ERR(cloud_table_delete(c, name->value.bytes, &detail), ERR_OK);
	}
	cloud_row_fini(&row);
	row_scan_end(&rows);
	client_free(c);
}

static struct store *open_new(void)
{
	static unsigned nr;
	remove_tables();
	(void)snprintf(path, sizeof(path), "%s/%u.db", directory, ++nr);
	CHECK_ERR(store_create(path, &detail), ERR_OK);
	make_account();
	return open_shadow();
}

static struct store *reopen(struct store *s)
{
	store_close(s);
	return open_shadow();
}

static void limit_files(struct store *s, uint64_t one, uint64_t all)
{
	(void)s;
	store_set_file_limits(shadow, one, all);
}

/* Returns how many parts of the contract failed. */
static unsigned run_all(const struct contract_engine *engine)
{
	static unsigned nr;
	unsigned failed = 0;
	for (unsigned i = 0; i < contract_count(); i++) {
		unsigned failures = contract_run(i, engine);
		printf("%s %u - %s: %s\n", failures ? "not ok" : "ok", ++nr, engine->name,
			contract_name(i));
		failed += failures != 0;
	}
	return failed;
}

int main(int argc, char **argv)
{
	static struct contract_engine engine = { "cloud", open_new, reopen, limit_files,
		.lacks = CONTRACT_PARTS };
	const char *connection = getenv("AZURE_STORAGE_CONNECTION_STRING");
	unsigned failed = 0;
	(void)setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc != 2 || connection == NULL ||
		endpoint_parse(span_of(connection), &at, &detail) != ERR_OK) {
		printf("Bail out! no directory or no service: %s\n", detail.text);
		return 1;
	}
	directory = argv[1];
	engine.account = at.account;
	printf("1..%u\n", 2 * contract_count());
	failed += run_all(&engine);
	cache_ms = 60000;
	engine.name = "cloud with a cache";
	failed += run_all(&engine);
	return failed == 0 ? 0 : 1;
}
