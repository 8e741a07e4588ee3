/* SPDX-License-Identifier: MIT
 * The REST socket: the protocol of storage services over HTTP.  This is the public header of the layer;
 * docs/rest.md describes the protocol. */
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
/* Bytes for the text of an endpoint. */
#define REST_ENDPOINT_TEXT 200
/* Bytes of rest_page_link(), with NUL. */
#define REST_PAGE_LINK_TEXT 256
#define REST_TRUSTED_MAX 16
/* In the form that SDKs parse; no real tenant has it. */
#define REST_TENANT_DEFAULT "00000000-0000-0000-0000-000000000000"

/* Limits for clients; 0: the default. */
struct rest_limits {
	uint32_t connections; /* of all endpoints together: 4096, or as open files allow */
	/* ms from the first line of a request to the end of its headers: 30 s */
	uint32_t head_ms;
	uint32_t idle_ms;     /* ms without a request on an open connection: 120 s */
	uint32_t progress_ms; /* ms for each 64 KiB of a body or a response: 30 s */
	uint32_t memory_kib;  /* KiB of all bodies and responses above 64 KiB: 256 MiB */
};

/* The access log; docs/operating.md has its formats. */
struct rest_access_log {
	const char *path; /* a file, or "-" for the standard output; NULL: no log */
	bool json;        /* else the combined format */
	uint32_t slow_ms; /* requests that took at least so long; 0: any */
	uint32_t sample;  /* one of so many requests, besides the slow ones; 0: see slow_ms */
};

struct rest_options {
	/* "127.0.0.1:10002", "[::1]:10002", "localhost:0" (any free port), "unix:/path".  With the
	 * prefix of a service, such as "table=", the socket serves this one, else the tables.
	 * "admin=": an admin socket (rest/admin/admin.h).  "page=": the page (rest/page/page.h). */
	const char *endpoints[REST_ENDPOINTS_MAX];
	size_t nendpoints;
	const char *tenant; /* a UUID for challenges; NULL: REST_TENANT_DEFAULT */
	/* Which bearer tokens are accepted: "basic" or "jwks:FILE" (rest/tokens/oauth.h); NULL:
	 * none. */
	const char *oauth;
	/* PEM files; with them the TCP endpoints use TLS.  Give both or neither.  The strings must
	 * outlive the server. */
	const char *cert, *key;
	bool tls_legacy; /* also allow ciphers without forward secrecy, and CBC */
	/* Users that need no signature on Unix sockets: root and the owner of this process, unless
	 * `untrusting`, and these user ids.  With such ids all users may connect; else the mode is
	 * 0600. */
	uid_t trusted[REST_TRUSTED_MAX];
	size_t ntrusted;
	bool untrusting;
	struct rest_limits limits;
	bool admin_public; /* admin sockets may have addresses that other machines reach */
	struct rest_access_log access_log; /* its path must outlive the server */
	const char *faults; /* rules (service/core/fault_rules.h); NULL: leave them as they are */
};

/* Returns the name of the i-th storage service, such as "table"; NULL behind the last one.  The tables
 * are the first. */
const char *rest_service_name(size_t i);
/* Returns where the emulator serves the i-th storage service, such as "127.0.0.1:10002" or
 * "queue=127.0.0.1:10001"; NULL behind the last one. */
const char *rest_default_endpoint(size_t i);
/* Returns the address of an endpoint, behind the prefix of its service if it has one. */
const char *rest_endpoint_address(const char *endpoint);
/* Checks the syntax of an endpoint.  ERR_INVALID_INPUT with the reason. */
enum err rest_endpoint_check(const char *endpoint, struct err_detail *detail);

/* Checks the text of `oauth` above and returns the name of its file, NULL for basic.
 * ERR_INVALID_INPUT. */
enum err rest_oauth_parse(const char *oauth, const char **ret_file);

/* Opens all endpoints and serves them in its own threads until rest_stop().  The caller keeps the
 * service, which must outlive the server.  On an error nothing stays open, and detail names the
 * endpoint: ERR_BUSY (address in use), ERR_ACCESS, ERR_INVALID_INPUT, ERR_IO. */
enum err rest_start(struct service *service, const struct rest_options *options, struct rest **ret,
	struct err_detail *detail);
/* Returns the text of the i-th socket with its real port, such as "http://127.0.0.1:10002" or
 * "unix:/path"; with the service's prefix if that is not the tables.  "localhost" can have two.  NULL behind the last one. */
const char *rest_endpoint(const struct rest *r, size_t i);
/* Writes the link that opens the page once, as "http://127.0.0.1:10003/?link=...".  Returns false if
 * no socket serves the page.  The link is a credential: write it to no log. */
bool rest_page_link(const struct rest *r, char ret[REST_PAGE_LINK_TEXT]);
/* Reads certificate and key again, for new connections.  On an error the old ones stay and detail
 * has the reason.  Only one thread may call it at a time.  Does nothing without TLS. */
enum err rest_reload(struct rest *r, struct err_detail *detail);
/* Opens the access log again, since its name may have another file now.  On an error the old file
 * stays and detail has the reason.  One thread at a time may call it. */
enum err rest_reopen_log(struct rest *r, struct err_detail *detail);
/* Accepts no new requests for storage and finishes those in work.  It waits a few seconds at most
 * for slow readers.  Admin sockets go on until rest_stop(), and tell that the server is not ready.
 * NULL is allowed. */
void rest_drain(struct rest *r);
/* Drains, and closes everything.  NULL is allowed. */
void rest_stop(struct rest *r);

#endif
