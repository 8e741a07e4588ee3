/* SPDX-License-Identifier: MIT
 * A whole request through the whole REST layer, over the in-memory engine: lines of
 * "METHOD TARGET" and "Name: value", an empty line, the body.  The first byte says whether
 * the peer is trusted.  Whatever comes: an answer with a status, and 501 is the only one
 * from 500 on. */
#include "fuzz.h"
#include "rest/core/handle.h"
#include "rest/tables/tables.h"
#include "service/core/accounts.h"
#include "service/core/tables.h"
#include "store/engines.h"

#include <string.h>

#define HEADERS_MAX 32

static struct service *make_service(void)
{
	struct store *store;
	struct service *s;
	struct item account = { 0 };

	MUST(store_open_memory(&store) == ERR_OK);
	MUST(service_new(store, &s) == ERR_OK);
	MUST(account_create(s, ORIGIN_COMMAND, SPAN_LIT("acct"), NULL, NULL, NULL) == ERR_OK);
	MUST(account_find(s, SPAN_LIT("acct"), &account) == ERR_OK);
	MUST(table_create(s, ORIGIN_COMMAND, account.id, SPAN_LIT("tab"), NULL, NULL) == ERR_OK);
	item_fini(&account);
	return s;
}

static struct span take_line(struct span *rest)
{
	const char *end = rest->n == 0 ? NULL : memchr(rest->p, '\n', rest->n);
	size_t n = end == NULL ? rest->n : (size_t)(end - rest->p);
	size_t skip = end == NULL ? n : n + 1;
	struct span line = span_make(rest->p, n);

	*rest = span_make(rest->p + skip, rest->n - skip);
	return line;
}

static void split(struct span line, char by, struct span *left, struct span *right)
{
	const char *at = line.n == 0 ? NULL : memchr(line.p, by, line.n);
	size_t n = at == NULL ? line.n : (size_t)(at - line.p);

	*left = span_make(line.p, n);
	*right = at == NULL ? span_make(line.p + n, 0) : span_make(at + 1, line.n - n - 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct header headers[HEADERS_MAX];
	struct peer peer = { .is_unix = true };
	struct request q = { .headers = headers, .peer = &peer };
	struct response r;
	struct service *s;
	struct span rest, line;

	if (size == 0)
		return 0;
	peer.trusted = data[0] != 'n';
	rest = span_make(data + 1, size - 1);
	split(take_line(&rest), ' ', &q.method, &q.target);
	for (line = take_line(&rest); line.n > 0 && q.nheaders < HEADERS_MAX;
		line = take_line(&rest)) {
		struct header *h = &headers[q.nheaders++];
		split(line, ':', &h->name, &h->value);
	}
	q.body = rest;
	s = make_service();
	/* Who is refused before the body is refused behind it, and for the same. */
	q.body = SPAN_LIT("");
	enum err admitted = rest_admit(&rest_tables, s, &q, &r);
	int refused = r.status;
	response_fini(&r);
	q.body = rest;
	rest_handle(&rest_tables, s, &q, &r);
	MUST(admitted == ERR_OK || r.status == refused);
	MUST(r.status >= 200 && (r.status < 500 || r.status == 501));
	MUST(!(r.status < 300 && !peer.trusted) || span_is(q.method, "OPTIONS"));
	response_fini(&r);
	service_free(s);
	return 0;
}
