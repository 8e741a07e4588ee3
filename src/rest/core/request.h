/* SPDX-License-Identifier: MIT
 * An HTTP request as plain data.  It comes from a connection, from a part of a batch, or from a
 * test.  Everything is borrowed. */
#ifndef REST_CORE_REQUEST_H
#define REST_CORE_REQUEST_H

#include "base/span.h"
#include "model/limits.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct header {
	struct span name, value;
};

/* The other end of the connection. */
struct peer {
	bool is_unix;
	bool trusted; /* a Unix peer that needs no signature */
	bool tls;
	char ip[46]; /* the address as text; "" on a Unix socket */
};

#define REQUEST_ID_BYTES 16

/* The credential that was checked, valid or not. */
enum credential_kind {
	CREDENTIAL_UNKNOWN, /* the request was refused before */
	CREDENTIAL_NONE,
	CREDENTIAL_KEY, /* an Authorization header of another scheme than Bearer */
	CREDENTIAL_TOKEN,
	CREDENTIAL_SAS,
	CREDENTIAL_TRUSTED, /* the peer of a Unix socket */
	CREDENTIAL_SESSION, /* of the page */
};

/* Facts of a request for the access log. */
struct request_facts {
	const char *operation; /* NULL: not known */
	enum credential_kind credential;
	char account[LIMIT_ACCOUNT_NAME_MAX + 1]; /* "": not known */
};

struct request {
	struct span method; /* as sent, in upper case */
	struct span target; /* as sent: the path or the absolute form, with the query */
	const struct header *headers;
	size_t nheaders;
	struct span body;
	const struct peer *peer;
	uint64_t since_us;         /* clock_mono_us() when it was complete; 0: now */
	const uint8_t *id;         /* REQUEST_ID_BYTES unique bytes; NULL: make them */
	const char *tenant;        /* for the challenge of a 401; NULL: the default */
	struct oauth *oauth;       /* which bearer tokens are accepted; NULL: none */
	struct buf_memory *memory; /* for the body of the response; NULL: no budget */
	void *stream;  /* a body that was taken in parts (rest_service.h); NULL: it is `body` */
	bool stopping; /* the server takes no new requests for storage */
	struct request_facts *facts; /* set while the request is handled; NULL: nobody asks */
};

/* Returns the value of the first header with this name, without blanks at its ends; the case is
 * ignored.  p is NULL if there is none. */
struct span request_header(const struct request *r, const char *name);
/* Returns true if Host is localhost, 127.0.0.1 or [::1].  A name of another site may lead to this machine
 * too, but the pages of that site send that name as Host. */
bool request_host_is_local(const struct request *r);
/* Returns x-ms-date, else Date: browsers and some HTTP libraries set Date themselves. */
struct span request_date(const struct request *r);
/* Returns how many headers have this name; the case is ignored. */
size_t request_header_count(const struct request *r, const char *name);

#endif
