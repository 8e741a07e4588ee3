/* SPDX-License-Identifier: MIT
 * Finds the connection string of an account: in a file, in the environment, or among the credentials
 * of systemd.  Never in an argument, which ps(1) shows to everybody. */
#ifndef CLOUD_CREDENTIALS_H
#define CLOUD_CREDENTIALS_H

#include "base/buf.h"
#include "cloud/endpoint.h"

/* Finds the account.  file: what holds connection strings, one a line, lines with '#' before them
 * skipped; "-": standard input; NULL: the variable AZURE_STORAGE_CONNECTION_STRING, else the file
 * connection-string in CREDENTIALS_DIRECTORY.  url: which of them; NULL: the only one.
 *
 * Only its owner may be able to read the file (ERR_ACCESS).  ERR_NOT_FOUND: there is none, or none
 * for the URL.  ERR_INVALID_INPUT, errors of reading.  The detail shows no secret. */
enum err credentials_find(
	const char *file, const char *url, struct endpoint *ret, struct err_detail *detail);
/* Does the same with the text at hand. */
enum err credentials_choose(
	struct span text, const char *url, struct endpoint *ret, struct err_detail *detail);
/* Appends the bearer token in a file, without white space around it.  Another program may renew the file, by a
 * rename.  Only its owner may be able to read it (ERR_ACCESS).  ERR_INVALID_INPUT: it holds something else.
 * Errors of reading. */
enum err credentials_read_token(const char *file, struct buf *out, struct err_detail *detail);

#endif
