/* SPDX-License-Identifier: MIT
 * TLS of the TCP endpoints, done by MHD with GnuTLS: the ciphers and the certificate.  MHD's
 * callback for the certificate has no argument for us, so a process has one certificate at a
 * time. */
#ifndef REST_HTTP_TLS_H
#define REST_HTTP_TLS_H

#include "base/err.h"
#include "base/span.h"

#include <stdbool.h>

struct MHD_OptionItem;

/* Reads the files and uses their certificate for new handshakes.  On an error the old one stays,
 * and detail names the file and the problem.  Only one thread may call it at a time. */
enum err tls_load(const char *cert, const char *key, struct err_detail *detail);
/* Frees the certificates.  No daemon may be running. */
void tls_unload(void);
/* Sends text on a GnuTLS session as far as its socket has room, then ends the session. */
void tls_send(void *session, struct span text);
/* Sets ret[0] and ret[1], two options of a daemon.  legacy: also allow ciphers without forward
 * secrecy. */
void tls_options(bool legacy, struct MHD_OptionItem *ret);

#endif
