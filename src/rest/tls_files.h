/* SPDX-License-Identifier: MIT
 * The certificate and the key of TLS, read into memory.  The key is wiped when it was used. */
#ifndef REST_TLS_FILES_H
#define REST_TLS_FILES_H

#include "base/buf.h"
#include "base/err.h"

struct tls_files {
	struct buf cert, key; /* PEM, NUL-terminated */
};

/* tls_files_fini() if ERR_OK.  detail names the file and what is wrong with it. */
enum err tls_files_read(
	const char *cert, const char *key, struct tls_files *ret, struct err_detail *detail);
void tls_files_fini(struct tls_files *t);

#endif
