/* SPDX-License-Identifier: MIT
 * Reads the certificate and the key of TLS into memory.  The key is wiped after use. */
#ifndef REST_TLS_FILES_H
#define REST_TLS_FILES_H

#include "base/buf.h"
#include "base/err.h"

struct tls_files {
	/* On ERR_OK call tls_files_fini().  On an error detail names the file and the problem. */
	struct buf cert, key;
};

/* tls_files_fini() if ERR_OK.  detail names the file and what is wrong with it. */
enum err tls_files_read(
	const char *cert, const char *key, struct tls_files *ret, struct err_detail *detail);
void tls_files_fini(struct tls_files *t);

#endif
