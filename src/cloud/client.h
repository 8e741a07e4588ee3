/* SPDX-License-Identifier: MIT
 * Requests to the Table service: signed, tried again where that is safe, and their errors as ours.
 * A client is for one thread; many may share the same struct client_options. */
#ifndef CLOUD_CLIENT_H
#define CLOUD_CLIENT_H

#include "cloud/endpoint.h"
#include "cloud/http.h"
#include "cloud/traffic.h"

#include <stdbool.h>
#include <stdint.h>

struct client_options {
	unsigned connect_ms, response_ms; /* 0: the defaults, 10 s and 60 s */
	unsigned tries;                   /* of one request; 0: the default, 5 */
	struct traffic *traffic;          /* of all clients of an account; NULL: not counted */
	const char *ca_file;
	bool (*cancelled)(void *arg);
	void *arg;
	bool finishes_changes; /* cancelled() ends no change that is under way */
};

struct client;

/* Copies the endpoint.  Sends nothing.  Errors of http_new(). */
enum err client_new(const struct endpoint *at, const struct client_options *o, struct client **ret,
	struct err_detail *detail);
void client_free(struct client *c); /* accepts NULL; wipes the key */
const struct endpoint *client_endpoint(const struct client *c);
/* Returns how many requests were sent, tries again included. */
uint64_t client_requests(const struct client *c);

struct client_request {
	enum traffic_kind kind;
	const char *method;
	struct span path;  /* percent-encoded, behind the account's URL: "/Posts()" */
	struct span query; /* encoded, without '?' */
	struct span body;  /* p NULL: none */
	struct span content_type;
	struct span if_match; /* n 0: none */
	/* Whether a second one does no harm.  Else an unknown outcome ends the tries. */
	bool idempotent;
	/* Finds an error in the body of a response that says 2xx; NULL: there is none. */
	enum err (*inner_error)(struct span body, struct err_detail *detail);
};

/* Sends the request, and again after errors that pass: no connection, 429, 500 to 504, lost responses.
 * It waits as Retry-After says, else longer each time with some jitter.  The status is 200 to 299
 * on ERR_OK.  *ret_again (may be NULL): an earlier try may have been done although its response was
 * lost.  Call http_response_fini() also after an error.
 *
 * Errors of the service are those of err.h with its message; ERR_THROTTLED, ERR_OUTCOME_UNKNOWN,
 * ERR_IO and ERR_CANCELLED.  Where the clock of this machine explains a refusal, the detail says
 * so. */
enum err client_send(struct client *c, const struct client_request *r, struct http_response *ret,
	bool *ret_again, struct err_detail *detail);

#endif
