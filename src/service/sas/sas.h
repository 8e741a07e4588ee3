/* SPDX-License-Identifier: MIT
 * Shared access signatures: their fields, what is signed, and by whom (protocol sections
 * 4.5 and 4.6).  Both the socket, which verifies, and "rowfs sas", which makes them, use
 * this.  What a token then allows is decided in rest/auth_sas.c. */
#ifndef SERVICE_SAS_SAS_H
#define SERVICE_SAS_SAS_H

#include "base/buf.h"
#include "base/err.h"
#include "base/span.h"
#include "model/access_policy.h"
#include "service/core/service.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A parameter that is not there has p == NULL.  Values are decoded. */
struct sas {
	struct span sv, sp, st, se, sip, spr, sig;
	struct span tn, si, spk, srk, epk, erk; /* table SAS */
	struct span ss, srt, ses;               /* account SAS */
};

#define SAS_STRING_LIMIT ((size_t)1 << 20) /* of a string to sign; no request is that long */

/* The field of a query parameter of this name (exact case); NULL: not one of a SAS. */
struct span *sas_field(struct sas *s, struct span name);
/* "sv=2019-02-02&sp=r...": the fields that are there, in the order of their table, values
 * percent-encoded. */
void sas_to_query(const struct sas *s, struct buf *out);

/* An account SAS has ss or srt; else it is a table SAS. */
bool sas_is_account(const struct sas *s);
/* The name of a field that is there, but that this kind of token does not sign in this
 * version: anybody could have put it there, or taken it away elsewhere.  NULL: none. */
const char *sas_unsigned_field(const struct sas *s);
/* The string to sign for the version in s->sv.  ERR_INVALID_INPUT for a version that signs
 * no such token, and for a line break in a field (two tokens would have one string). */
enum err sas_string_to_sign(const struct sas *s, struct span account, struct buf *out);
/* base64(HMAC-SHA256(key, string to sign)) into out. */
enum err sas_sign(const struct sas *s, struct span account, struct span key, struct buf *out);

/* What a token and its stored policy (si) say together; borrowed from both. */
struct sas_terms {
	struct span start, expiry, permissions; /* n == 0: no start */
	struct access_policies policies;
	struct buf xml;
};
/* Each of the three comes from the token or from the policy, never from both; expiry and
 * permissions must come from somewhere.  sas_terms_fini() whatever the answer.
 * ERR_AUTH_FAILED where that is not so, or where the table has no such policy. */
enum err sas_terms_read(struct service *service, struct span account, const struct sas *s,
	struct sas_terms *ret, struct err_detail *detail);
void sas_terms_fini(struct sas_terms *t);

/* Letters as bits, 'a' is bit 0.  False if one is not among the allowed ones. */
bool sas_letters(struct span text, const char *allowed, uint32_t *ret);

/* The addresses of sip: "a" or "a-b", both ends included; IPv4 (IPv6 too, though the
 * protocol has none). */
struct sas_ip {
	int family; /* AF_INET, AF_INET6 */
	unsigned char from[16], to[16];
};
/* False if it is neither; a range that ends before it begins is one without addresses. */
bool sas_ip_parse(struct span text, struct sas_ip *ret);
/* ip: the text of an address; an IPv4 address that is written as an IPv6 one is IPv4.  False
 * for what is no address. */
bool sas_ip_holds(const struct sas_ip *r, const char *ip);

#endif
