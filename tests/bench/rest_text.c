/* SPDX-License-Identifier: MIT */
#include "rest_text.h"

#include "base/compiler.h"
#include "base/crypto.h"
#include "base/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define DATE_MAX 40
#define PATH_MAX_BYTES 200
#define TEXT_LIMIT ((size_t)2 << 30)
/* The account that everybody's emulator has. */
#define EMULATOR "devstoreaccount1"
#define EMULATOR_KEY \
	"Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/" \
	"K1SZFPTOtr/KBHBeksoGMGw=="

static const struct {
	const char *name;
	enum kind kind;
	int status;
	bool cycles, atom;
} kinds[] = {
	{ "table", KIND_TABLE, 204, false, false },
	{ "fill", KIND_FILL, 202, false, false },
	{ "get", KIND_GET, 200, true, false },
	{ "insert", KIND_INSERT, 204, false, false },
	{ "upsert", KIND_UPSERT, 204, false, false },
	{ "batch", KIND_BATCH, 202, false, false },
	{ "query", KIND_QUERY, 200, true, false },
	{ "query-atom", KIND_QUERY, 200, true, true },
};

/* ---- arguments ---- */

static bool read_number(const char *arg, const char *name, size_t *ret)
{
	size_t n = strlen(name);
	uint64_t value;
	if (strncmp(arg, name, n) != 0 || !text_to_u64(span_of(arg + n), &value))
		return false;
	*ret = (size_t)value;
	return true;
}

static bool read_text(const char *arg, const char *name, const char **ret)
{
	size_t n = strlen(name);
	if (strncmp(arg, name, n) != 0)
		return false;
	*ret = arg + n;
	return true;
}

static bool read_option(struct load *l, const char *arg)
{
	size_t ms;
	if (read_number(arg, "milliseconds=", &ms)) {
		l->seconds = (double)ms / 1000;
		return true;
	}
	return read_number(arg, "connections=", &l->connections) ||
		read_number(arg, "requests=", &l->requests) ||
		read_number(arg, "rows=", &l->rows) || read_number(arg, "first=", &l->first) ||
		read_number(arg, "top=", &l->top) || read_number(arg, "whole=", &l->whole) ||
		read_text(arg, "account=", &l->account) || read_text(arg, "key=", &l->key) ||
		read_text(arg, "table=", &l->table) || read_text(arg, "filter=", &l->filter);
}

static bool find_kind(struct load *l)
{
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		if (strcmp(kinds[i].name, l->kind_name) != 0)
			continue;
		l->kind = kinds[i].kind;
		l->status = kinds[i].status;
		l->cycles = kinds[i].cycles;
		l->atom = kinds[i].atom;
		return true;
	}
	return false;
}

bool load_read(struct load *l, int argc, char **argv)
{
	*l = (struct load){ .account = EMULATOR,
		.key = EMULATOR_KEY,
		.table = "bench",
		.connections = 32,
		.requests = 10000,
		.rows = 100000,
		.top = 1000 };
	bool ok = argc > 2;
	if (ok) {
		l->server = argv[1];
		l->kind_name = argv[2];
		ok = find_kind(l);
	}
	for (int i = 3; i < argc && ok; i++)
		ok = read_option(l, argv[i]);
	if (l->kind == KIND_FILL)
		l->requests = l->rows / BATCH_ROWS;
	if (l->kind == KIND_TABLE)
		l->requests = l->connections = 1;
	ok = ok && l->connections > 0 && l->connections <= 256 && l->requests > 0 &&
		(l->rows > 0 || l->filter != NULL);
	if (!ok)
		(void)fprintf(stderr,
			"usage: rest_load IP:PORT|unix:PATH "
			"table|fill|get|insert|upsert|batch|query|query-atom [connections=N] "
			"[requests=N] "
			"[milliseconds=N] [rows=N] [first=N] [top=N] [account=NAME] [key=BASE64] "
			"[table=NAME] [filter=TEXT] [whole=1]\n");
	return ok;
}

/* ---- rows ---- */

void row_key(uint64_t i, char out[ROW_KEY_MAX])
{
	(void)snprintf(out, ROW_KEY_MAX, "row-%010" PRIu64, i);
}

/* The j-th row of a batch.  A hundred batches fill a hundred rows of every partition. */
static uint64_t row_of_batch(uint64_t batch, uint64_t j)
{
	return batch / PARTITIONS * BATCH_ROWS * PARTITIONS + j * PARTITIONS + batch % PARTITIONS;
}

/* Other values for another turn. */
static void add_row(struct buf *out, uint64_t i, uint64_t turn)
{
	char key[ROW_KEY_MAX];
	uint64_t v = i * 2654435761u + turn * 40503u;
	row_key(i, key);
	buf_addf(out,
		"{\"PartitionKey\":\"part-%04" PRIu64 "\",\"RowKey\":\"%s\","
		"\"Title\":\"An entry with the number %010" PRIu64
		"\",\"Author\":\"author-%05" PRIu64 "\",\"Rating\":%" PRIu64 ",\"Score\":%" PRIu64
		".25,\"Active\":%s,"
		"\"Visits@odata.type\":\"Edm.Int64\",\"Visits\":\"9%09" PRIu64
		"\",\"Place\":\"%04" PRIu64 " Long Street, Somewhere\",\"Tag\":\"tag-%02" PRIu64
		"\",\"Born@odata.type\":\"Edm.DateTime\",\"Born\":\"20%02" PRIu64
		"-06-15T12:34:56Z\"," ROW_LAST "}",
		i % PARTITIONS, key, i, v % 100000, 10 + v % 90, 100 + v % 900,
		(v >> 20) % 100 == 0 ? "false" : "true", v % 1000000000, v % 10000, (v >> 16) % 100,
		(v >> 24) % 100);
}

/* ---- requests ---- */

static void sign(const struct load *l, const char *date, const char *path, struct buf *out)
{
	struct buf text = BUF_INIT(1024), key = BUF_INIT(256), signature = BUF_INIT(128);
	uint8_t digest[32];
	buf_addf(&text, "%s\n/%s%s", date, l->account, path);
	BUG_ON(!base64_decode(span_of(l->key), &key));
	crypto_hmac_sha256(buf_span(&key), buf_span(&text), digest);
	base64_encode(span_make(digest, sizeof(digest)), &signature);
	buf_addf(out, "Authorization: SharedKeyLite %s:%s\r\n", l->account, signature.data);
	buf_fini(&text);
	buf_fini(&key);
	buf_fini(&signature);
}

static void add_head(const struct load *l, const char *method, const char *path, struct span query,
	struct buf *out)
{
	char date[DATE_MAX];
	time_t now = time(NULL);
	struct tm tm;
	(void)gmtime_r(&now, &tm);
	(void)strftime(date, sizeof(date), "%a, %d %b %Y %H:%M:%S GMT", &tm);
	buf_addf(out, "%s %s%.*s HTTP/1.1\r\nHost: %s\r\n", method, path, (int)query.n,
		query.n > 0 ? query.p : "",
		strncmp(l->server, "unix:", 5) == 0 ? "localhost" : l->server);
	buf_addf(out, "x-ms-date: %s\r\n", date);
	buf_add_str(out,
		l->atom ? "x-ms-version: 2015-07-08\r\nDataServiceVersion: 1.0;NetFx\r\n"
			  "MaxDataServiceVersion: 2.0;NetFx\r\nAccept: application/atom+xml\r\n"
			: "x-ms-version: 2019-02-02\r\nDataServiceVersion: 3.0;NetFx\r\n"
			  "MaxDataServiceVersion: 3.0;NetFx\r\n"
			  "Accept: application/json;odata=minimalmetadata\r\n");
	sign(l, date, path, out);
}

static void add_body(struct buf *out, const char *headers, const char *type, struct span body)
{
	buf_addf(out, "%sContent-Type: %s\r\nContent-Length: %zu\r\n\r\n", headers, type, body.n);
	buf_add_span(out, body);
}

static void row_path(const struct load *l, uint64_t i, char out[PATH_MAX_BYTES])
{
	char key[ROW_KEY_MAX];
	row_key(i, key);
	(void)snprintf(out, PATH_MAX_BYTES, "/%s/%s(PartitionKey='part-%04" PRIu64 "',RowKey='%s')",
		l->account, l->table, i % PARTITIONS, key);
}

static void write_batch(const struct load *l, uint64_t first, struct buf *out)
{
	char path[PATH_MAX_BYTES];
	struct buf body = BUF_INIT((size_t)4 << 20), row = BUF_INIT(4096);
	buf_add_str(
		&body, "--batch_b\r\nContent-Type: multipart/mixed; boundary=changeset_c\r\n\r\n");
	for (uint64_t j = 0; j < BATCH_ROWS; j++) {
		uint64_t i = row_of_batch(first, j);
		row_path(l, i, path);
		buf_clear(&row);
		add_row(&row, i, 0);
		buf_addf(&body,
			"--changeset_c\r\nContent-Type: application/http\r\n"
			"Content-Transfer-Encoding: binary\r\n\r\nPUT http://127.0.0.1%s "
			"HTTP/1.1\r\nContent-Type: application/json\r\nAccept: "
			"application/json;odata=minimalmetadata\r\nDataServiceVersion: 3.0\r\n\r\n"
			"%s\r\n",
			path, row.data);
	}
	buf_add_str(&body, "--changeset_c--\r\n--batch_b--\r\n");
	(void)snprintf(path, sizeof(path), "/%s/$batch", l->account);
	add_head(l, "POST", path, (struct span){ 0 }, out);
	add_body(out, "", "multipart/mixed; boundary=batch_b", buf_span(&body));
	buf_fini(&body);
	buf_fini(&row);
}

static void write_one(const struct load *l, uint64_t i, struct buf *row, struct buf *out)
{
	static uint64_t turn;
	char path[PATH_MAX_BYTES];
	bool insert = l->kind == KIND_INSERT, table = l->kind == KIND_TABLE;
	if (insert || table)
		(void)snprintf(
			path, sizeof(path), "/%s/%s", l->account, table ? "Tables" : l->table);
	else
		row_path(l, i, path);
	add_head(l,
		l->kind == KIND_GET       ? "GET"
			: insert || table ? "POST"
					  : "PUT",
		path, (struct span){ 0 }, out);
	if (l->kind == KIND_GET) {
		buf_add_str(out, "\r\n");
		return;
	}
	buf_clear(row);
	if (table)
		buf_addf(row, "{\"TableName\":\"%s\"}", l->table);
	else
		add_row(row, i, ++turn);
	add_body(out, insert || table ? "Prefer: return-no-content\r\n" : "", "application/json",
		buf_span(row));
}

static void add_parameter(struct buf *out, const char *name, struct span value)
{
	buf_addf(out, "&%s=", name);
	for (size_t i = 0; i < value.n; i++)
		buf_addf(out, "%%%02X", (unsigned)(unsigned char)value.p[i]);
}

void write_page(const struct load *l, struct span pk, struct span rk, struct buf *out)
{
	char path[PATH_MAX_BYTES];
	struct buf query = BUF_INIT(16384);
	buf_addf(&query, "?$top=%zu", l->top);
	if (l->filter != NULL)
		add_parameter(&query, "$filter", span_of(l->filter));
	if (pk.n > 0)
		add_parameter(&query, "NextPartitionKey", pk);
	if (rk.n > 0)
		add_parameter(&query, "NextRowKey", rk);
	(void)snprintf(path, sizeof(path), "/%s/%s()", l->account, l->table);
	buf_clear(out);
	add_head(l, "GET", path, buf_span(&query), out);
	buf_add_str(out, "\r\n");
	buf_fini(&query);
}

/* Any of the rows, without a pattern; the same ones in each run. */
static uint64_t any_row(const struct load *l, size_t n)
{
	uint64_t x = n + 1;
	x ^= x >> 31;
	x *= 0x7fb5d329728ea185u;
	x ^= x >> 27;
	x *= 0x81dadef4bc2dd44du;
	return l->first + (x ^ x >> 33) % l->rows;
}

void load_write(struct load *l)
{
	struct buf row = BUF_INIT(4096);
	l->text = BUF_INIT(TEXT_LIMIT);
	l->ids = calloc(l->requests, sizeof(*l->ids));
	l->ends = calloc(l->requests, sizeof(*l->ends));
	BUG_ON(l->ids == NULL || l->ends == NULL);
	for (size_t n = 0; n < l->requests && l->kind != KIND_QUERY; n++) {
		bool any = l->kind == KIND_GET || l->kind == KIND_UPSERT;
		l->ids[n] = any ? any_row(l, n) : l->first + n;
		if (l->kind == KIND_FILL || l->kind == KIND_BATCH)
			write_batch(l, l->first / BATCH_ROWS + n, &l->text);
		else
			write_one(l, l->ids[n], &row, &l->text);
		l->ends[n] = l->text.len;
	}
	BUG_ON(!buf_ok(&l->text));
	buf_fini(&row);
}

struct span load_text(const struct load *l, size_t request)
{
	size_t from = request > 0 ? l->ends[request - 1] : 0;
	return span_make(l->text.data + from, l->ends[request] - from);
}
