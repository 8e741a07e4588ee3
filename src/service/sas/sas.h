/* SPDX-License-Identifier: MIT
 * Shared access signatures: their fields, the string to sign, and the signature (protocol sections
 * 4.5 and 4.6).  The REST server verifies them, and "rowfs sas" makes them.  rest/core/auth_sas.c
 * decides what a token allows. */
#ifndef SERVICE_SAS_SAS_H
#define SERVICE_SAS_SAS_H

#include "base/buf.h"
#include "base/err.h"
#include "base/span.h"
#include "model/access_policy.h"
#include "model/versions.h"
#include "service/core/service.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sas;

/* A storage service whose resources can have a SAS. */
struct sas_service {
	const char *name;        /* stands before the account in what is signed: "table" */
	const char *permissions; /* the letters that sp may have */
	enum version_rule since;
	/* The first version whose tokens a user delegation key may sign; VERSION_KNOWN: none. */
	enum version_rule delegation;
	bool names_resource; /* the token names its table (tn); else the URL names the resource */
	/* Returns what the token is for, of the URL's container or of what is in it.  NULL: always the
	 * container. */
	struct span (*resource)(const struct sas *s);
	/* Appends the lines behind the versions' common ones. */
	void (*add_fields)(const struct sas *s, struct buf *out);
	/* Appends the stored policies of a resource as XML.  ERR_OK also if it does not exist. */
	enum err (*policies)(struct service *service, struct span account, struct span resource,
		struct buf *out);
};
extern const struct sas_service sas_tables, sas_queues, sas_blobs;

/* The decoded fields; p is NULL if a field is absent. */
struct sas {
	const struct sas_service *of;
	struct span container; /* the table, queue or container that the URL names */
	struct span blob;      /* "container/blob" where the URL names one; else "" */
	struct span sv, sp, st, se, sip, spr, sig;
	struct span si;                                         /* service SAS */
	struct span skoid, sktid, skt, ske, sks, skv;           /* user delegation SAS */
	struct span tn, spk, srk, epk, erk;                     /* table SAS */
	struct span sr, snapshot, rscc, rscd, rsce, rscl, rsct; /* blob SAS */
	struct span ss, srt, ses;                               /* account SAS; ses also blob SAS */
};

#define SAS_STRING_LIMIT ((size_t)1 << 20) /* bytes of a string to sign; no request is that long */

/* Returns the field for a query parameter; the case counts.  NULL if SAS has no such field. */
struct span *sas_field(struct sas *s, struct span name);
/* Appends "sv=2019-02-02&sp=r...": the fields that are present, percent-encoded, in a fixed
 * order. */
void sas_to_query(const struct sas *s, struct buf *out);

/* Returns true for an account SAS, which has ss or srt; else it is a service SAS. */
bool sas_is_account(const struct sas *s);
/* Returns true for a user delegation SAS: a service SAS that a user delegation key signed, with the key's
 * fields in the place of a stored policy. */
bool sas_is_delegated(const struct sas *s);
/* Returns the first version of tokens of this kind. */
enum version_rule sas_since(const struct sas *s);
/* Returns what a service SAS is for, as it is signed. */
struct span sas_resource(const struct sas *s);
/* Returns the table, queue or container of that. */
struct span sas_container(const struct sas *s);
/* Returns the name of a field that is present, but that this kind of token does not sign in this
 * version.  Anybody could have added it.  NULL if there is none. */
const char *sas_unsigned_field(const struct sas *s);
/* Appends the string to sign for the version in s->sv.  ERR_INVALID_INPUT if the version has no
 * such token.  Also for a line break in a field, because two tokens could then have the same
 * string. */
enum err sas_string_to_sign(const struct sas *s, struct span account, struct buf *out);
/* Appends base64(HMAC-SHA256(key, string to sign)). */
enum err sas_sign(const struct sas *s, struct span account, struct span key, struct buf *out);

/* The terms of a token with its stored policy (si).  The spans borrow from both. */
struct sas_terms {
	struct span start, expiry, permissions; /* n is 0 if there is no start */
	struct access_policies policies;
	struct buf xml;
};
/* Combines a token with its stored policy.  Each term comes from one of them, never from both;
 * expiry and permissions are required.  Call sas_terms_fini() also after an error.  ERR_AUTH_FAILED
 * if a rule is broken, or if the resource has no such policy. */
enum err sas_terms_read(struct service *service, struct span account, const struct sas *s,
	struct sas_terms *ret, struct err_detail *detail);
/* Frees the policies. */
void sas_terms_fini(struct sas_terms *t);

/* Reads letters as bits; 'a' is bit 0.  Returns false for a letter that is not allowed. */
bool sas_letters(struct span text, const char *allowed, uint32_t *ret);

/* The addresses of sip: "a" or "a-b" with both ends, IPv4 or IPv6.  The protocol has only IPv4. */
struct sas_ip {
	int family; /* AF_INET or AF_INET6 */
	unsigned char from[16], to[16];
};
/* Returns false for other text.  A range whose end is before its start is empty. */
bool sas_ip_parse(struct span text, struct sas_ip *ret);
/* Returns true if the range contains the address ip.  An IPv4-mapped IPv6 address counts as IPv4.
 * False if ip is not an address. */
bool sas_ip_holds(const struct sas_ip *r, const char *ip);

#endif
