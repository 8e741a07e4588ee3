/* SPDX-License-Identifier: MIT
 * Reads the certificate and the key of TLS into memory.  The key is wiped after use. */
#ifndef REST_HTTP_TLS_FILES_H
#define REST_HTTP_TLS_FILES_H

#include "base/buf.h"
#include "base/err.h"

struct tls_files {
	struct buf cert, key; /* PEM text that ends in NUL */
};

/* Reads both files.  On ERR_OK call tls_files_fini().  On an error detail names the file and the
 * problem. */
enum err tls_files_read(
	const char *cert, const char *key, struct tls_files *ret, struct err_detail *detail);
/* Wipes the key and frees both. */
void tls_files_fini(struct tls_files *t);

#endif
