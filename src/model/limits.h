/* SPDX-License-Identifier: MIT
 * All limits that the service or the mount fixes.  Those of the service come from protocol section
 * 5.4, those of the mount from docs/semantics.md. */
#ifndef MODEL_LIMITS_H
#define MODEL_LIMITS_H

/* Limits of the service. */
#define LIMIT_PROPERTIES 252     /* without the three system properties */
#define LIMIT_PROPERTY_NAME 255  /* UTF-16 units */
#define LIMIT_STRING_UNITS 32768 /* UTF-16 units: 64 KiB */
#define LIMIT_BINARY_BYTES 65536
#define LIMIT_ENTITY_BYTES 1048576            /* as entity_size() counts */
#define LIMIT_KEY_UNITS 512                   /* UTF-16 units: 1 KiB */
#define LIMIT_KEY_BYTES (3 * LIMIT_KEY_UNITS) /* 512 units need at most so many bytes in UTF-8 */
#define LIMIT_TABLE_NAME_MIN 3
#define LIMIT_TABLE_NAME_MAX 63
#define LIMIT_ACCOUNT_NAME_MIN 3
#define LIMIT_ACCOUNT_NAME_MAX 24
#define LIMIT_ACCOUNT_KEY_BYTES 32
#define LIMIT_BATCH_OPS 100
#define LIMIT_BATCH_BYTES (4 * 1024 * 1024)
#define LIMIT_QUEUE_NAME_MIN 3
#define LIMIT_QUEUE_NAME_MAX 63
#define LIMIT_BLOB_NAME_UNITS 1024
#define LIMIT_BLOB_SEGMENTS 254
#define LIMIT_METADATA_BYTES 8192 /* names and values together */
#define LIMIT_MESSAGE_BYTES 65536
#define LIMIT_MESSAGES_TAKEN 32            /* by one request */
#define LIMIT_MESSAGE_HIDDEN_S (7 * 86400) /* how long a message can be invisible */

/* Limits of the mount. */
#define LIMIT_NAME_BYTES 240                   /* a longer file name becomes a digest name */
#define LIMIT_DOCUMENT_BYTES (4 * 1024 * 1024) /* JSON text of a row, white space included */
#define LIMIT_FILE_NAME_BYTES 255
/* The documents that the rename of a partition may rewrite.  One commit does so, and other writers
 * wait for it. */
#define LIMIT_REKEYED_ROWS 4096
#define LIMIT_REKEYED_BYTES (4 * 1024 * 1024)
#define LIMIT_FILE_BYTES (INT64_C(1) << 30)  /* one ordinary file */
#define LIMIT_FILES_BYTES (INT64_C(8) << 30) /* all ordinary files of a store */

#endif
