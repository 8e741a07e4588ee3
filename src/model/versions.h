/* SPDX-License-Identifier: MIT
 * All rules that depend on x-ms-version, or on the version of a SAS (sv).  docs/rest.md has the
 * same table, and tests/lint compares them.  A version is a date, here as a number: 20190202. */
#ifndef MODEL_VERSIONS_H
#define MODEL_VERSIONS_H

#include "base/span.h"

#include <stdbool.h>

/* symbol, first version with the rule, first version without it (0: none), text */
#define VERSION_RULE_LIST(X) \
	X(KNOWN, 20090414, 0, "the oldest version; change sets (`$batch`)") \
	X(ATOM, 20090414, 20151211, "ATOM; the default where `Accept` leaves the choice") \
	X(ECHO, 20090919, 0, "`x-ms-version` in the response") \
	X(PROPERTIES, 20090919, 0, "service properties") \
	X(QUEUES, 20090919, 0, "queues") \
	X(BLOBS, 20090919, 0, "blobs") \
	X(UPSERT, 20110818, 0, "insert or replace, insert or merge") \
	X(MESSAGE_UPDATE, 20110818, 0, "Update Message; messages invisible for over 2 hours") \
	X(SELECT, 20110818, 0, "`$select`; before, whole rows come") \
	X(ACL, 20120212, 0, "stored access policies") \
	X(TABLE_SAS, 20120212, 0, "table SAS (`sv`)") \
	X(JSON, 20130815, 0, "JSON") \
	X(PREFER, 20130815, 0, "`Prefer`; before, it is ignored") \
	X(CORS, 20130815, 0, "CORS; before, a response has none of its headers") \
	X(METRICS, 20130815, 0, "hour and minute metrics, CORS rules in service properties") \
	X(STATS, 20130815, 0, "service stats") \
	X(SAS_PREFIX, 20150221, 0, "the service before the account in what a SAS signs") \
	X(SIGNED_LENGTH, 20150221, 0, "SharedKey of queues, blobs: no `Content-Length` of 0") \
	X(SAS_LIMITS, 20150405, 0, "`sip` and `spr` in a table SAS") \
	X(ACCOUNT_SAS, 20150405, 0, "account SAS (`sv`)") \
	X(SAS_CODES, 20150405, 0, "403 where a SAS lacks a permission; before, 404") \
	X(MESSAGE_ANSWER, 20160531, 0, "Put Message answers with the message") \
	X(SIGNED_EMPTY, 20160531, 0, "SharedKey of queues and blobs: empty `x-ms-` headers too") \
	X(BLOCK_100, 20160531, 0, "blocks of over 4 MiB, up to 100 MiB") \
	X(MESSAGE_TTL, 20170729, 0, "`messagettl` above 7 days, and -1") \
	X(BEARER, 20171109, 0, "401 for bearer tokens and for no credential; before, 403") \
	X(SAS_RESOURCE, 20181109, 0, "`sr` and the snapshot's time in what a blob SAS signs") \
	X(DELEGATION, 20181109, 0, "user delegation SAS of blobs") \
	X(CRC64, 20190202, 0, "`x-ms-content-crc64`") \
	X(BLOCK_4000, 20191212, 0, "blocks of over 100 MiB, up to 4,000 MiB") \
	X(SAS_AGENTS, 20200210, 0, "agents in what a user delegation SAS of blobs signs") \
	X(SAS_ENCRYPTION, 20201206, 0, "`ses` in an account SAS or a blob SAS") \
	X(APPEND_100, 20221102, 0, "Append Block of over 4 MiB, up to 100 MiB") \
	X(SAS_USERS, 20250705, 0, "users in what a user delegation SAS signs; also of queues") \
	X(SAS_REQUEST, 20260406, 0, "`srh` and `srq` in what a user delegation SAS signs")

enum version_rule {
#define X(symbol_, since_, until_, text_) VERSION_##symbol_,
	VERSION_RULE_LIST(X)
#undef X
};

#define VERSION_OLDEST 20090414
#define VERSION_NEWEST 20260606

/* Returns the first version with the rule. */
int version_first(enum version_rule rule);
/* Returns true if the rule holds in this version. */
bool version_has(int version, enum version_rule rule);

/* Returns "2019-02-02" as 20190202; 0 for other forms and invalid dates. */
int version_parse(struct span text);

#endif
