/* SPDX-License-Identifier: MIT
 * Shared access signatures: their fields, what is signed, and by whom (protocol sections
 * 4.5 and 4.6).  Both the socket, which verifies, and "rowfs sas", which makes them, use
 * this.  What a token then allows is decided in rest/auth_sas.c. */
#ifndef SERVICE_SAS_H
#define SERVICE_SAS_H

#include "base/buf.h"
#include "base/err.h"
#include "base/span.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A parameter that is not there has p == NULL.  Values are decoded. */
struct sas {
	struct span sv, sp, st, se, sip, spr, sig;
	struct span tn, si, spk, srk, epk, erk; /* table SAS */
	struct span ss, srt, ses;               /* account SAS */
};

/* An account SAS has ss or srt; else it is a table SAS. */
bool sas_is_account(const struct sas *s);
/* "2019-02-02" as 20190202; 0 if it is not a date of that form. */
int sas_version(struct span sv);
/* The string to sign for the version in s->sv.  ERR_INVALID_INPUT for a version that signs
 * no such token. */
enum err sas_string_to_sign(const struct sas *s, struct span account, struct buf *out);
/* base64(HMAC-SHA256(key, string to sign)) into out. */
enum err sas_sign(const struct sas *s, struct span account, struct span key, struct buf *out);
/* The times of tokens and policies: YYYY-MM-DD, YYYY-MM-DDThh:mmTZD, ...:ssTZD, with 1 to 7
 * fraction digits; TZD is Z or +hh:mm, -hh:mm.  Ticks. */
bool sas_time_parse(struct span text, int64_t *ret_ticks);

#endif
