/* SPDX-License-Identifier: MIT
 * Gives the client of src/cloud to tests: reads a command on each line of standard input, with tabs between
 * its words, and answers on one line.  The environment has the connection string; the arguments are the
 * options CA-FILE ANSWER-MS RPS. */
#include "cloud/change.h"
#include "cloud/credentials.h"
#include "cloud/row_scan.h"
#include "codec/entity_json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GROUP 100

struct words {
	char *at[6];
	size_t n;
};

static struct span word(const struct words *w, size_t i)
{
	return i < w->n ? span_of(w->at[i]) : (struct span){ 0 };
}

static enum err add_row(const struct cloud_row *row, struct buf *out)
{
	if (out->len > 0)
		buf_add_char(out, ' ');
	entity_json_encode(&row->entity, ENTITY_JSON_PK | ENTITY_JSON_RK, out);
	return buf_ok(out) ? ERR_OK : ERR_NO_MEMORY;
}

/* get TABLE PK RK */
static enum err get(
	struct client *c, const struct words *w, struct buf *out, struct err_detail *detail)
{
	struct cloud_row row = { 0 };
	struct buf body;
	enum err e = cloud_get(c, word(w, 1), word(w, 2), word(w, 3), &row, &body, detail);
	if (e == ERR_OK)
		e = add_row(&row, out);
	if (e == ERR_OK)
		buf_addf(out, " %s", row.etag);
	cloud_row_fini(&row);
	buf_fini(&body);
	return e;
}

/* count TABLE FILTER */
static enum err count(
	struct client *c, const struct words *w, struct buf *out, struct err_detail *detail)
{
	struct row_scan scan;
	struct cloud_row row = { 0 };
	const struct row_scan_query q = { .table = word(w, 1), .filter = word(w, 2) };
	unsigned n = 0;
	enum err e = row_scan_begin(c, &q, &scan);
	while (e == ERR_OK && (e = row_scan_next(&scan, &row, detail)) == ERR_OK)
		n++;
	cloud_row_fini(&row);
	row_scan_end(&scan);
	buf_addf(out, "%u", n);
	return e == ERR_NOT_FOUND ? ERR_OK : e;
}

static bool kind_of(const char *name, enum cloud_change_kind *ret)
{
	static const char *const names[] = { [CLOUD_INSERT] = "insert",
		[CLOUD_UPSERT] = "upsert",
		[CLOUD_UPSERT_MERGE] = "upsert-merge",
		[CLOUD_REPLACE] = "replace",
		[CLOUD_MERGE] = "merge",
		[CLOUD_DELETE] = "delete" };
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(name, names[i]) == 0) {
			*ret = (enum cloud_change_kind)i;
			return true;
		}
	return false;
}

/* KIND TABLE PK RK JSON ETAG */
static enum err change(struct client *c, enum cloud_change_kind kind, const struct words *w,
	struct buf *out, struct err_detail *detail)
{
	struct entity entity = { 0 };
	char etag[CLOUD_ETAG_MAX] = "";
	const struct cloud_change one = { kind, word(w, 2), word(w, 3), &entity, word(w, 5) };
	enum err e = entity_json_decode(
		w->n > 4 ? word(w, 4) : SPAN_LIT("{}"), ENTITY_JSON_REST, &entity, NULL, detail);
	if (e == ERR_OK)
		e = cloud_change(c, word(w, 1), &one, etag, detail);
	buf_add_str(out, etag);
	entity_fini(&entity);
	return e;
}

/* group TABLE PK NUMBER [KIND]: inserts as many rows in one transaction; the first change has the KIND. */
static enum err group(
	struct client *c, const struct words *w, struct buf *out, struct err_detail *detail)
{
	static char keys[GROUP][8];
	struct cloud_change all[GROUP];
	struct entity entity = { 0 };
	size_t n = strtoul(w->at[3], NULL, 10);
	for (size_t i = 0; i < n && i < GROUP; i++) {
		(void)snprintf(keys[i], sizeof(keys[i]), "%06zu", i);
		all[i] = (struct cloud_change){ CLOUD_INSERT, word(w, 2), span_of(keys[i]), &entity,
			{ 0 } };
	}
	if (w->n > 4 && !kind_of(w->at[4], &all[0].kind))
		return ERR_INVALID_INPUT;
	detail->op = 0;
	enum err e = cloud_change_group(c, word(w, 1), all, n, NULL, detail);
	if (e != ERR_OK)
		buf_addf(out, "%zu", (size_t)detail->op);
	entity_fini(&entity);
	return e;
}

static enum err run(
	struct client *c, const struct words *w, struct buf *out, struct err_detail *detail)
{
	enum cloud_change_kind kind;
	if (kind_of(w->at[0], &kind))
		return change(c, kind, w, out, detail);
	if (strcmp(w->at[0], "get") == 0)
		return get(c, w, out, detail);
	if (strcmp(w->at[0], "count") == 0)
		return count(c, w, out, detail);
	if (strcmp(w->at[0], "group") == 0)
		return group(c, w, out, detail);
	if (strcmp(w->at[0], "create") == 0)
		return cloud_table_create(c, word(w, 1), detail);
	return cloud_table_delete(c, word(w, 1), detail); /* drop */
}

static void serve(struct client *c)
{
	char *line = NULL;
	size_t room = 0;
	while (getline(&line, &room, stdin) > 0) {
		struct words w = { 0 };
		struct err_detail detail = { 0 };
		struct buf out = BUF_INIT((size_t)4 << 20);
		uint64_t before = client_requests(c);
		char *rest = line, *one;
		line[strcspn(line, "\n")] = 0;
		while (w.n < 6 && (one = strsep(&rest, "\t")) != NULL)
			w.at[w.n++] = one;
		enum err e = run(c, &w, &out, &detail);
		printf("%s\t%u\t%.*s\t%s\n", e == ERR_OK ? "OK" : err_code(e),
			(unsigned)(client_requests(c) - before), (int)out.len,
			out.len > 0 ? out.data : "", e == ERR_OK ? "" : err_message(e, &detail));
		(void)fflush(stdout);
		buf_fini(&out);
	}
	free(line);
}

int main(int argc, char **argv)
{
	struct endpoint at;
	struct client *c;
	struct err_detail detail = { 0 };
	struct traffic traffic = { .rps = argc > 3 ? (unsigned)strtoul(argv[3], NULL, 10) : 0 };
	const struct client_options options = { .ca_file = argc > 1 && argv[1][0] ? argv[1] : NULL,
		.response_ms = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 0,
		.traffic = &traffic };
	enum err e = credentials_find(getenv("CREDENTIAL_FILE"), NULL, &at, &detail);
	if (e == ERR_OK)
		e = client_new(&at, &options, &c, &detail);
	if (e != ERR_OK) {
		(void)fprintf(stderr, "%s\n", err_message(e, &detail));
		return 1;
	}
	serve(c);
	client_free(c);
	return 0;
}
