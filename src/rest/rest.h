/* SPDX-License-Identifier: MIT
 * The REST socket: the Table service's protocol over HTTP.  This is the floor's only door;
 * docs/rest.md tells what is behind it. */
#ifndef REST_REST_H
#define REST_REST_H

#include "base/err.h"
#include "service/core/service.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct rest;

#define REST_ENDPOINTS_MAX 8
/* Where the emulator of the service listens for tables. */
#define REST_DEFAULT_ENDPOINT "127.0.0.1:10002"
#define REST_TRUSTED_MAX 16
/* In the form that SDKs read; nobody's tenant. */
#define REST_TENANT_DEFAULT "00000000-0000-0000-0000-000000000000"

/* How long clients may take and how many there may be; 0: the default. */
struct rest_limits {
	uint32_t connections; /* of all endpoints together: 4096, or what open files allow */
	uint32_t head_ms;     /* from a request's first line to the end of its headers: 30 s */
	uint32_t idle_ms;     /* without a request on an open connection: 120 s */
	uint32_t progress_ms; /* for each 64 KiB of a body or of an answer: 30 s */
	uint32_t memory_kib;  /* for all bodies and answers above 64 KiB together: 256 MiB */
};

struct rest_options {
	/* "127.0.0.1:10002", "[::1]:10002", "localhost:0" (a port of the system's choice),
	 * "unix:/path". */
	const char *endpoints[REST_ENDPOINTS_MAX];
	size_t nendpoints;
	const char *tenant; /* a UUID, which challenges name; NULL: REST_TENANT_DEFAULT */
	/* PEM files: the TCP endpoints speak TLS; both or neither.  They outlive the server. */
	const char *cert, *key;
	bool tls_legacy; /* also ciphers without forward secrecy, and CBC */
	/* On Unix sockets, who needs no signature: the owner of this process and root always,
	 * unless `untrusting`; these user ids too (the socket is then open to all, else 0600). */
	uid_t trusted[REST_TRUSTED_MAX];
	size_t ntrusted;
	bool untrusting;
	struct rest_limits limits;
};

/* Checks one endpoint's spelling without opening anything: ERR_INVALID_INPUT with why. */
enum err rest_endpoint_check(const char *endpoint, struct err_detail *detail);

/* Opens every endpoint and serves in threads of its own, until rest_stop().  The service
 * stays the caller's and must outlive it.  On failure nothing is left open, and detail
 * names the endpoint: ERR_BUSY (address in use), ERR_ACCESS, ERR_INVALID_INPUT, ERR_IO. */
enum err rest_start(struct service *service, const struct rest_options *options, struct rest **ret,
	struct err_detail *detail);
/* "http://127.0.0.1:10002", "https://...", "unix:/path": with the real port; one for each
 * socket ("localhost" can be two); NULL behind the last. */
const char *rest_endpoint(const struct rest *r, size_t i);
/* Reads certificate and key again, for connections that come from now on.  On failure all stays as
 * it was, and detail says why.  One thread at a time; nothing to do without TLS. */
enum err rest_reload(struct rest *r, struct err_detail *detail);
/* Takes no new request, finishes what is being worked on (waiting at most a few seconds for
 * slow readers of answers), closes all.  NULL is fine. */
void rest_stop(struct rest *r);

#endif
