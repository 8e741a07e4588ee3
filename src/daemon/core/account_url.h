/* SPDX-License-Identifier: MIT
 * Where clients reach an account: what connection strings and signed URLs begin with. */
#ifndef DAEMON_CORE_ACCOUNT_URL_H
#define DAEMON_CORE_ACCOUNT_URL_H

#include "base/buf.h"
#include "daemon/core/args.h"
#include "daemon/core/served.h"

/* Checks --url.  False after a message. */
bool account_url_check(const struct args *args, const char *command, FILE *err);

/* Adds the account's URL for the i-th storage service of rest.h, without a slash at its end: by the
 * first TCP endpoint of the process that serves the store; else by its Unix socket, with a host under
 * 'localhost'; if it has no endpoint at all, and where served is NULL, by the endpoint that 'rowfs
 * serve' has by default.  https: with this scheme, whatever the endpoint speaks.  Returns false if the
 * process serves other services only. */
bool account_url_add(const struct served *served, size_t service, struct span account, bool https,
	struct buf *out);
/* Adds the URL that --url gives. */
void account_url_add_given(const char *given, struct buf *out);

/* The path of the Unix socket by which alone clients reach the process; NULL: there is none, or
 * there is TCP. */
const char *account_url_socket(const struct served *served);

#endif
