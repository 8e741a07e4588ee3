/* SPDX-License-Identifier: MIT
 * Where an account of the Table service is, and the credential for it: parsed from a connection
 * string as Azure's tools take it, or from a URL. */
#ifndef CLOUD_ENDPOINT_H
#define CLOUD_ENDPOINT_H

#include "base/err.h"
#include "base/span.h"

#include <stddef.h>
#include <stdint.h>

#define ENDPOINT_TEXT_MAX 4096 /* a connection string */

struct endpoint {
	char url[1024]; /* without a slash at its end: "http://127.0.0.1:10002/devstoreaccount1" */
	size_t path;    /* where the path begins in url; its length: the path is empty */
	char account[64];
	uint8_t key[128];
	size_t key_len;        /* 0: none */
	char sas[2048];        /* a query without its '?'; "": none */
	char token_file[1024]; /* of a bearer token; "": none */
};

/* Parses a connection string: NAME=VALUE fields with ';' between them.  TableEndpoint, or
 * AccountName with EndpointSuffix and DefaultEndpointsProtocol; AccountKey,
 * SharedAccessSignature or BearerTokenFile; UseDevelopmentStorage=true.  Fields of other services are skipped.  The
 * detail shows no secret.  ERR_INVALID_INPUT. */
enum err endpoint_parse(struct span text, struct endpoint *ret, struct err_detail *detail);
/* Parses the URL of an account; without a credential.  ERR_INVALID_INPUT, also for a query: a secret
 * in an argument is shown by ps(1). */
enum err endpoint_parse_url(struct span url, struct endpoint *ret, struct err_detail *detail);
/* Whether both are the same account at the same place. */
_Bool endpoint_same(const struct endpoint *a, const struct endpoint *b);
/* Overwrites it with zeros. */
void endpoint_wipe(struct endpoint *e);

#endif
