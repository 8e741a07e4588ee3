/* SPDX-License-Identifier: MIT
 * Where clients reach an account: what connection strings and signed URLs begin with. */
#ifndef DAEMON_CORE_ACCOUNT_URL_H
#define DAEMON_CORE_ACCOUNT_URL_H

#include "base/buf.h"
#include "daemon/core/args.h"
#include "daemon/core/served.h"

/* Checks --url.  False after a message. */
bool account_url_check(const struct args *args, const char *command, FILE *err);

/* Adds the account's URL, without a slash at its end: --url; else by the first TCP endpoint of the
 * process that serves the store; else by its Unix socket, with the host 'localhost'; else, and
 * where served is NULL, by the endpoint that 'rowfs serve' has by default.  https: with this
 * scheme, whatever the endpoint speaks. */
void account_url_add(const struct served *served, const struct args *args, struct span account,
	bool https, struct buf *out);

/* Adds the account's URL at the first TCP endpoint of another service than the tables, such as
 * "queue".  https as above.  Returns false if there is none. */
bool account_url_add_service(const struct served *served, const char *service, struct span account,
	bool https, struct buf *out);

/* The path of the Unix socket by which alone clients reach the process; NULL: there is none, or
 * there is TCP. */
const char *account_url_socket(const struct served *served);

#endif
