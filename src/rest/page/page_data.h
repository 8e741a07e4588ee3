/* SPDX-License-Identifier: MIT
 * The data of the page that the Table service does not have, as JSON objects.
 *
 *   /accounts                  the names of the accounts
 *   /live                      operations by front end, the store's bytes, the hottest partitions
 *   /heat/ACCOUNT/TABLE        the heat of each tracked partition of a table
 *   /partitions/ACCOUNT/TABLE  a window on its partitions (partitions.c)
 *   /sizes/ACCOUNT/TABLE       its rows and their bytes, in parts (sizes.c)
 *   /compare/ACCOUNT/TABLE     how it differs in two versions of the store (compare.c)
 *   /explain/ACCOUNT/TABLE     the plan of a query and its cost (explain.c)
 *   /snapshots                 those of the store; POST and DELETE with name= make and remove one
 *   /sas/ACCOUNT               a shared access signature (sas.c)
 *   /import/ACCOUNT/TABLE      imports rows (import.c)
 *   /trash/ACCOUNT/TABLE       DELETE with pk=, rk= and etag= moves a row into the trash and names its file, or
 *                              names none and does nothing if the trash cannot keep it; POST with pk=, rk= and
 *                              file= moves it back (trash.c)
 *
 * The import is a POST.  The rest is read with GET.  All of it needs the session, which the caller checks. */
#ifndef REST_PAGE_PAGE_DATA_H
#define REST_PAGE_PAGE_DATA_H

#include "codec/json_build.h"
#include "codec/uri.h"
#include "rest/core/rest_service.h"

/* One request for data. */
struct page_ask {
	struct service *service;
	struct arena *arena;        /* for what lives as long as the request */
	struct span account, table; /* "" where the path has none */
	struct query_params params;
	bool removes; /* of a change: DELETE, else POST */
	struct span body;
	struct err_detail *detail;
};

struct page_data {
	struct span path; /* with a slash at its end: an account and a table follow */
	enum request_cost cost;
	/* Add the members of the response.  NULL: it is not read, or not changed. */
	enum err (*add)(const struct page_ask *ask, struct json_build *b);
	enum err (*change)(const struct page_ask *ask, struct json_build *b);
};

/* Returns the data with this path, or NULL. */
const struct page_data *page_data_find(struct span path);
/* Writes the response: an object.  POST and DELETE change what data->change is for. */
enum err page_data_write(const struct page_data *data, struct service *service,
	const struct request *q, const struct url_parts *parts, struct buf *out,
	struct err_detail *detail);

/* The implementations, each in a file of its own. */
enum err page_live_add(const struct page_ask *ask, struct json_build *b);
enum err page_heat_add(const struct page_ask *ask, struct json_build *b);
enum err page_partitions_add(const struct page_ask *ask, struct json_build *b);
enum err page_sizes_add(const struct page_ask *ask, struct json_build *b);
enum err page_compare_add(const struct page_ask *ask, struct json_build *b);
enum err page_explain_add(const struct page_ask *ask, struct json_build *b);
enum err page_snapshots_add(const struct page_ask *ask, struct json_build *b);
enum err page_snapshots_change(const struct page_ask *ask, struct json_build *b);
enum err page_sas_add(const struct page_ask *ask, struct json_build *b);
enum err page_trash_change(const struct page_ask *ask, struct json_build *b);
enum err page_import(const struct page_ask *ask, struct json_build *b);

/* Sets the sockets of the process, as of rest_endpoint().  The strings must live as long as a socket
 * serves the page. */
void page_set_sockets(const char *const *texts, size_t n);
/* Returns the URL of the first TCP socket of a service, such as "http://127.0.0.1:10002"; NULL: there
 * is none. */
const char *page_socket_of(const char *service);

#endif
