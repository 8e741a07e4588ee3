/* SPDX-License-Identifier: MIT
 * Entity group transactions (protocol section 7).  The outer answer is 202; the status of the only
 * operation that failed, or of all, stands in its parts. */
#include "base/crypto.h"
#include "base/text.h"
#include "cloud/change.h"
#include "cloud/group_response.h"
#include "cloud/service_error.h"
#include "model/limits.h"

#include <string.h>

#define BATCH_LIMIT ((size_t)LIMIT_BATCH_BYTES + ((size_t)256 << 10))

static void add_part(const struct client *c, struct span table, const struct cloud_change *change,
	const char *mark, struct buf *out)
{
	struct span condition = cloud_change_condition(change);
	buf_addf(out,
		"--changeset_%s\r\nContent-Type: application/http\r\n"
		"Content-Transfer-Encoding: binary\r\n\r\n%s %s",
		mark, cloud_change_method(change), client_endpoint(c)->url);
	cloud_change_path(table, change, out);
	buf_add_str(out,
		" HTTP/1.1\r\nAccept: application/json;odata=minimalmetadata\r\n"
		"DataServiceVersion: 3.0\r\nPrefer: return-no-content\r\n");
	if (condition.n > 0)
		buf_addf(out, "If-Match: %.*s\r\n", (int)condition.n, condition.p);
	if (change->kind != CLOUD_DELETE)
		buf_add_str(out, "Content-Type: application/json\r\n");
	buf_add_str(out, "\r\n");
	cloud_change_body(change, out);
	buf_add_str(out, "\r\n");
}

static void add_body(const struct client *c, struct span table, const struct cloud_change *changes,
	size_t n, const char *mark, struct buf *out)
{
	buf_addf(out, "--batch_%s\r\nContent-Type: multipart/mixed; boundary=changeset_%s\r\n\r\n",
		mark, mark);
	for (size_t i = 0; i < n; i++)
		add_part(c, table, &changes[i], mark, out);
	buf_addf(out, "--changeset_%s--\r\n--batch_%s--\r\n", mark, mark);
}

static void make_mark(char out[33])
{
	static const char hex[] = "0123456789abcdef";
	uint8_t bytes[16];
	crypto_random(bytes, sizeof(bytes));
	for (size_t i = 0; i < sizeof(bytes); i++) {
		out[2 * i] = hex[bytes[i] >> 4];
		out[2 * i + 1] = hex[bytes[i] & 15];
	}
	out[32] = 0;
}

static enum err send_group(struct client *c, struct span table, const struct cloud_change *changes,
	size_t n, char (*etags)[CLOUD_ETAG_MAX], bool *ret_again, struct err_detail *detail)
{
	char mark[33];
	struct buf body = BUF_INIT(BATCH_LIMIT), type = BUF_INIT(128);
	struct http_response response = { 0 };
	make_mark(mark);
	add_body(c, table, changes, n, mark, &body);
	buf_addf(&type, "multipart/mixed; boundary=batch_%s", mark);
	const struct client_request r = { .kind = TRAFFIC_GROUP,
		.method = "POST",
		.path = SPAN_LIT("/$batch"),
		.body = buf_span(&body),
		.content_type = buf_span(&type),
		.idempotent = true,
		.inner_error = group_response };
	enum err e = buf_ok(&type) ? buf_full(&body) : ERR_NO_MEMORY;
	if (e == ERR_OK)
		e = client_send(c, &r, &response, ret_again, detail);
	if (etags != NULL)
		group_response_etags(
			e == ERR_OK ? buf_span(&response.body) : SPAN_LIT(""), etags, n);
	http_response_fini(&response);
	buf_fini(&body);
	buf_fini(&type);
	return e;
}

enum err cloud_change_group(struct client *c, struct span table, const struct cloud_change *changes,
	size_t n, char (*etags)[CLOUD_ETAG_MAX], struct err_detail *detail)
{
	bool again = false;
	enum err e = send_group(c, table, changes, n, etags, &again, detail);
	return cloud_change_resolve(
		c, table, changes, n, again || changes[0].again, e, etags, detail);
}
