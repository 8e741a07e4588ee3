/* SPDX-License-Identifier: MIT
 * Every number that the service or the mount fixes.  Sources: protocol section 5.4 for
 * the service's, the contract (docs/semantics.md) for the mount's. */
#ifndef MODEL_LIMITS_H
#define MODEL_LIMITS_H

/* The service's. */
#define LIMIT_PROPERTIES 252     /* beside the three system properties */
#define LIMIT_PROPERTY_NAME 255  /* UTF-16 units */
#define LIMIT_STRING_UNITS 32768 /* UTF-16 units: 64 KiB */
#define LIMIT_BINARY_BYTES 65536
#define LIMIT_ENTITY_BYTES 1048576            /* by entity_size() */
#define LIMIT_KEY_UNITS 512                   /* UTF-16 units: 1 KiB */
#define LIMIT_KEY_BYTES (3 * LIMIT_KEY_UNITS) /* the most UTF-8 bytes that 512 units can take */
#define LIMIT_TABLE_NAME_MIN 3
#define LIMIT_TABLE_NAME_MAX 63
#define LIMIT_ACCOUNT_NAME_MIN 3
#define LIMIT_ACCOUNT_NAME_MAX 24
#define LIMIT_ACCOUNT_KEY_BYTES 32
#define LIMIT_BATCH_OPS 100
#define LIMIT_BATCH_BYTES (4 * 1024 * 1024)

/* The mount's. */
#define LIMIT_NAME_BYTES 240                   /* a longer file name takes the digest form */
#define LIMIT_DOCUMENT_BYTES (4 * 1024 * 1024) /* a row's JSON text with its white space */
#define LIMIT_FILE_NAME_BYTES 255
/* Documents that the rename of a partition writes anew, in one commit, which others wait for. */
#define LIMIT_REKEYED_ROWS 4096
#define LIMIT_REKEYED_BYTES (4 * 1024 * 1024)
#define LIMIT_FILE_BYTES (INT64_C(1) << 30)  /* one ordinary file */
#define LIMIT_FILES_BYTES (INT64_C(8) << 30) /* all ordinary files of a store */

#endif
