/* SPDX-License-Identifier: MIT
 * TLS of the TCP endpoints, which libmicrohttpd does with GnuTLS: which ciphers, and which
 * certificate a handshake gets.  The library's call for a certificate has no argument of ours, so a
 * process has one certificate at a time. */
#ifndef REST_TLS_H
#define REST_TLS_H

#include "base/err.h"
#include "base/span.h"

#include <stdbool.h>

struct MHD_OptionItem;

/* Reads the files, and gives their certificate to every handshake from now on.  On failure nothing
 * changes; detail names the file and what is wrong.  One thread at a time. */
enum err tls_load(const char *cert, const char *key, struct err_detail *detail);
/* Frees what tls_load() made, once no daemon runs. */
void tls_unload(void);
/* Sends text on a session, as far as its socket has room, and ends it.  session: GnuTLS's. */
void tls_send(void *session, struct span text);
/* Fills two options of a daemon: ret[0] and ret[1]. */
void tls_options(bool legacy, struct MHD_OptionItem *ret);

#endif
