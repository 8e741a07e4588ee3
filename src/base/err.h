/* SPDX-License-Identifier: MIT
 * The list of all errors.  A row gives the symbol, the errno for the mount, the HTTP status and the
 * service code for the REST socket, and the text.
 *
 * Every function that can fail returns enum err.  An errno would not do: REST must tell "table not
 * found" from "entity not found".
 *
 * Texts and codes are those of the Table service where it has one (protocol section 8.2).  Two
 * places translate external codes: err_from_errno() here, and store/sqlite/errors.c. */
#ifndef BASE_ERR_H
#define BASE_ERR_H

#include "base/compiler.h"
#include "base/span.h"

#include <stddef.h>

/* clang-format off */
/*      symbol               errno         HTTP  service code                    text */
#define ERR_LIST(X) \
	X(OK,                    0,            200, "OK",                           "Done.") \
	/* An object is missing, or exists already. */ \
	X(NOT_FOUND,             ENOENT,       404, "ResourceNotFound",             "The specified resource does not exist.") \
	X(TABLE_NOT_FOUND,       ENOENT,       404, "TableNotFound",                "The table specified does not exist.") \
	X(ACCOUNT_NOT_FOUND,     ENOENT,       404, "ResourceNotFound",             "The account specified does not exist.") \
	X(ENTITY_EXISTS,         EEXIST,       409, "EntityAlreadyExists",          "The specified entity already exists.") \
	X(TABLE_EXISTS,          EEXIST,       409, "TableAlreadyExists",           "The table specified already exists.") \
	X(ACCOUNT_EXISTS,        EEXIST,       409, "AccountAlreadyExists",         "The account specified already exists.") \
	X(QUEUE_EXISTS,          EEXIST,       409, "QueueAlreadyExists",           "The specified queue already exists.") \
	X(CONTAINER_EXISTS,      EEXIST,       409, "ContainerAlreadyExists",       "The specified container already exists.") \
	X(BLOB_EXISTS,           EEXIST,       409, "BlobAlreadyExists",            "The specified blob already exists.") \
	X(LEASE_PRESENT,         EBUSY,        409, "LeaseAlreadyPresent",          "There is already a lease present.") \
	X(LEASE_ID_MISSING,      EBUSY,        412, "LeaseIdMissing",               "There is currently a lease on the resource and no lease ID was specified in the request.") \
	X(LEASE_MISMATCH,        EBUSY,        412, "LeaseIdMismatchWithBlobOperation", "The lease ID specified did not match the lease ID for the blob.") \
	X(LEASE_ABSENT,          ESTALE,       412, "LeaseNotPresentWithBlobOperation", "There is currently no lease on the blob.") \
	X(LEASE_LOST,            ESTALE,       412, "LeaseLost",                    "A lease ID was specified, but the lease for the resource has expired.") \
	X(CONTAINER_LEASE_MISMATCH, EBUSY,     412, "LeaseIdMismatchWithContainerOperation", "The lease ID specified did not match the lease ID for the container.") \
	X(CONTAINER_LEASE_ABSENT, ESTALE,      412, "LeaseNotPresentWithContainerOperation", "There is currently no lease on the container.") \
	X(LEASE_OTHER_ID,        EBUSY,        409, "LeaseIdMismatchWithLeaseOperation", "The lease ID specified did not match the lease ID for the resource.") \
	X(LEASE_NONE,            ESTALE,       409, "LeaseNotPresentWithLeaseOperation", "There is currently no lease on the resource.") \
	X(LEASE_BREAKING_ACQUIRE, EBUSY,       409, "LeaseIsBreakingAndCannotBeAcquired", "The lease ID matched, but the lease is currently in breaking state and cannot be acquired until it is broken.") \
	X(LEASE_BREAKING_CHANGE, EBUSY,        409, "LeaseIsBreakingAndCannotBeChanged", "The lease ID matched, but the lease is currently in breaking state and cannot be changed.") \
	X(LEASE_BROKEN_RENEW,    ESTALE,       409, "LeaseIsBrokenAndCannotBeRenewed", "The lease ID matched, but the lease has been broken explicitly and cannot be renewed.") \
	X(SNAPSHOTS_PRESENT,     EBUSY,        409, "SnapshotsPresent",             "This operation is not permitted while the blob has snapshots.") \
	X(BLOB_ARCHIVED,         EACCES,       409, "BlobArchived",                 "This operation is not permitted on an archived blob.") \
	X(OLD_SNAPSHOT_MISSING,  ENOENT,       409, "PreviousSnapshotNotFound",     "The previous snapshot is not found.") \
	X(OLD_SNAPSHOT_NEWER,    EINVAL,       400, "PreviousSnapshotCannotBeNewer", "The prevsnapshot query parameter value cannot be newer than snapshot query parameter value.") \
	X(OLD_SNAPSHOT_OTHER,    ESTALE,       409, "BlobGenerationMismatch",       "The specified previous snapshot is of a blob that was overwritten since.") \
	X(BLOB_TYPE,             EINVAL,       409, "InvalidBlobType",              "The blob type is invalid for this operation.") \
	X(BLOCK_ID,              EINVAL,       400, "InvalidBlockId",               "The specified block ID is invalid.") \
	X(BLOCK_CONTENT,         EINVAL,       400, "InvalidBlobOrBlock",           "The specified blob or block content is invalid.") \
	X(BLOCK_LIST,            EINVAL,       400, "InvalidBlockList",             "The specified block list is invalid.") \
	X(BLOCK_COUNT,           EOVERFLOW,    409, "BlockCountExceedsLimit",       "The block count exceeds the maximum permissible limit.") \
	X(APPEND_POSITION,       ESTALE,       412, "AppendPositionConditionNotMet", "The append position condition specified was not met.") \
	X(APPEND_SIZE,           EFBIG,        412, "MaxBlobSizeConditionNotMet",   "The max blob size condition specified was not met.") \
	X(NAME_EXISTS,           EEXIST,       409, "ResourceAlreadyExists",        "The specified name already exists.") \
	X(NOT_EMPTY,             ENOTEMPTY,    409, "ResourceNotEmpty",             "The directory is not empty.") \
	X(NOT_A_DIRECTORY,       ENOTDIR,      409, "InvalidInput",                 "Not a directory.") \
	X(IS_A_DIRECTORY,        EISDIR,       409, "InvalidInput",                 "Is a directory.") \
	X(QUEUE_NOT_FOUND,       ENOENT,       404, "QueueNotFound",                "The specified queue does not exist.") \
	X(MESSAGE_NOT_FOUND,     ENOENT,       404, "MessageNotFound",              "The specified message does not exist.") \
	X(CONTAINER_NOT_FOUND,   ENOENT,       404, "ContainerNotFound",            "The specified container does not exist.") \
	X(BLOB_NOT_FOUND,        ENOENT,       404, "BlobNotFound",                 "The specified blob does not exist.") \
	/* A precondition failed. */ \
	X(CONDITION_NOT_MET,     ESTALE,       412, "UpdateConditionNotSatisfied",  "The update condition specified in the request was not satisfied.") \
	X(BLOB_CONDITION,        ESTALE,       412, "ConditionNotMet",              "The condition specified using HTTP conditional header(s) is not met.") \
	X(MULTIPLE_CONDITIONS,   EINVAL,       400, "MultipleConditionHeadersNotSupported", "Multiple condition headers are not supported.") \
	X(SOURCE_CONDITION,      ESTALE,       412, "SourceConditionNotMet",        "The source condition specified using HTTP conditional header(s) is not met.") \
	X(COPY_SOURCE,           EREMOTE,      404, "CannotVerifyCopySource",       "Could not verify the copy source within the specified time. Examine the HTTP status code and message for more information about the failure.") \
	X(COPY_ACCESS,           EACCES,       403, "CannotVerifyCopySource",       "Could not verify the copy source within the specified time. Examine the HTTP status code and message for more information about the failure.") \
	X(COPY_NOT_PENDING,      EINVAL,       409, "NoPendingCopyOperation",       "There is currently no pending copy operation.") \
	X(SEQUENCE_CONDITION,    ESTALE,       412, "SequenceNumberConditionNotMet", "The sequence number condition specified was not met.") \
	X(SEQUENCE_TOO_LARGE,    EOVERFLOW,    409, "SequenceNumberIncrementTooLarge", "The sequence number increment cannot be performed because it would result in overflow of the sequence number.") \
	X(NOT_MODIFIED,          ESTALE,       304, "ConditionNotMet",              "The condition specified using HTTP conditional header(s) is not met.") \
	X(STALE_VERSION,         EAGAIN,       503, "ServerBusy",                   "A newer version of the row was committed first.") \
	X(GONE,                  ESTALE,       404, "ResourceNotFound",             "The row was removed or replaced meanwhile.") \
	X(FEED_GONE,             ESTALE,       410, "PositionGone",                 "The changes after this position are not kept any more: read the rows anew, and go on from the position of now.") \
	/* The input is not an entity, or exceeds a limit. */ \
	X(INVALID_INPUT,         EINVAL,       400, "InvalidInput",                 "One of the request inputs is not valid.") \
	X(INCOMPLETE,            EINVAL,       400, "InvalidInput",                 "The document is not complete.") \
	X(EMPTY,                 EINVAL,       400, "InvalidInput",                 "A row cannot be emptied by truncation; write {} instead.") \
	X(VALUE_INVALID,         EINVAL,       400, "InvalidInput",                 "An error occurred while processing this request.") \
	X(OUT_OF_RANGE,          EINVAL,       400, "OutOfRangeInput",              "One of the request inputs is out of range.") \
	X(KEY_INVALID,           EINVAL,       400, "OutOfRangeInput",              "A key may not hold / \\ # ? or control characters.") \
	X(KEY_TOO_LARGE,         EINVAL,       400, "KeyValueTooLarge",             "A key is longer than 512 UTF-16 units.") \
	X(KEY_MISMATCH,          EINVAL,       400, "InvalidInput",                 "The key in the document is not the key in the path.") \
	X(KEY_MISSING,           EINVAL,       400, "PropertiesNeedValue",          "The values are not specified for all properties in the entity.") \
	X(NAME_INVALID,          EINVAL,       400, "InvalidResourceName",          "The specifed resource name contains invalid characters.") \
	X(NAME_NOT_UTF8,         EILSEQ,       400, "InvalidInput",                 "The name is not valid UTF-8.") \
	X(NAME_TOO_SHORT,        EINVAL,       400, "OutOfRangeInput",              "The specified resource name length is not within the permissible limits.") \
	X(NAME_TOO_LONG,         ENAMETOOLONG, 400, "OutOfRangeInput",              "The specified resource name length is not within the permissible limits.") \
	X(PROPERTY_NAME_INVALID, EINVAL,       400, "PropertyNameInvalid",          "The property name is invalid.") \
	X(PROPERTY_NAME_LONG,    EINVAL,       400, "PropertyNameTooLong",          "The property name exceeds the maximum allowed length (255).") \
	X(PROPERTY_DUPLICATE,    EINVAL,       400, "DuplicatePropertiesSpecified", "A property is specified more than one time.") \
	X(PROPERTY_TOO_LARGE,    EINVAL,       400, "PropertyValueTooLarge",        "The property value exceeds the maximum allowed size (64KB). If the property value is a string, it is UTF-16 encoded and the maximum number of characters should be 32K or less.") \
	X(TOO_MANY_PROPERTIES,   E2BIG,        400, "TooManyProperties",            "The entity contains more properties than allowed. Each entity can include up to 252 properties to store data. Each entity also has 3 system properties.") \
	X(ENTITY_TOO_LARGE,      EFBIG,        400, "EntityTooLarge",               "The entity is larger than the maximum allowed size (1MB).") \
	X(BODY_TOO_LARGE,        EFBIG,        413, "RequestBodyTooLarge",          "The request body is too large and exceeds the maximum permissible limit.") \
	X(FILE_TOO_LARGE,        EFBIG,        413, "RequestBodyTooLarge",          "The ordinary file would exceed the size limit for files beside the rows.") \
	X(BATCH_TOO_LARGE,       E2BIG,        400, "InvalidInput",                 "The batch request operation exceeds the maximum 100 changes per change set.") \
	X(RENAME_TOO_LARGE,      E2BIG,        400, "InvalidInput",                 "More than 4,096 documents, or 4 MiB, would have to be written anew with another PartitionKey. Make the new directory and move the rows there instead.") \
	X(BATCH_DUPLICATE,       EINVAL,       400, "InvalidDuplicateRow",          "The batch request contains multiple changes with same row key. An entity can appear only once in a batch request.") \
	X(MESSAGE_TOO_LARGE,     EFBIG,        400, "MessageTooLarge",              "The message exceeds the maximum allowed size.") \
	X(RECEIPT_MISMATCH,      ESTALE,       400, "PopReceiptMismatch",           "The specified pop receipt did not match the pop receipt for a dequeued message.") \
	X(BLOB_RANGE,            EINVAL,       416, "InvalidRange",                 "The range specified is invalid for the current size of the resource.") \
	X(BEHIND_END,            ENXIO,        416, "InvalidRange",                 "Nothing is written from there on.") \
	X(PAGE_RANGE,            EINVAL,       416, "InvalidPageRange",             "The page range specified is invalid.") \
	X(METADATA_INVALID,      EINVAL,       400, "InvalidMetadata",              "The metadata specified is invalid. It has characters that are not permitted.") \
	X(METADATA_TOO_LARGE,    E2BIG,        400, "MetadataTooLarge",             "The size of the specified metadata exceeds the maximum size permitted.") \
	X(NOT_AN_ENTITY,         EBADMSG,      400, "InvalidInput",                 "The content is not an entity.") \
	/* The operation is not allowed on this object. */ \
	X(NOT_PERMITTED,         EPERM,        403, "AuthorizationFailure",         "This request is not authorized to perform this operation.") \
	X(READ_ONLY,             EROFS,        403, "AuthorizationFailure",         "The store is read-only.") \
	X(NOT_SUPPORTED,         EOPNOTSUPP,   501, "NotImplemented",               "The requested operation is not implemented on the specified resource.") \
	X(CROSS_DEVICE,          EXDEV,        501, "NotImplemented",               "The engine cannot move this in one step.") \
	X(NO_ATTRIBUTE,          ENODATA,      404, "ResourceNotFound",             "No such attribute.") \
	X(RANGE,                 ERANGE,       400, "InvalidInput",                 "The buffer is too small.") \
	/* Errors of the REST socket alone. */ \
	X(AUTH_FAILED,             EACCES,       403, "AuthenticationFailed",         "Server failed to authenticate the request. Make sure the value of Authorization header is formed correctly including the signature.") \
	X(AUTH_HEADER,             EACCES,       400, "InvalidAuthenticationInfo",    "The authentication information was not provided in the correct format. Verify the value of Authorization header.") \
	X(AUTH_BEARER,             EACCES,       401, "InvalidAuthenticationInfo",    "Server failed to authenticate the request. Please refer to the information in the www-authenticate header.") \
	X(AUTH_NONE,               EACCES,       401, "NoAuthenticationInformation",  "Server failed to authenticate the request. Please refer to the information in the www-authenticate header.") \
	X(SAS_PERMISSION,          EACCES,       403, "AuthorizationPermissionMismatch", "This request is not authorized to perform this operation using this permission.") \
	X(SAS_SERVICE,             EACCES,       403, "AuthorizationServiceMismatch", "This request is not authorized to perform this operation using this service.") \
	X(SAS_RESOURCE_TYPE,       EACCES,       403, "AuthorizationResourceTypeMismatch", "This request is not authorized to perform this operation using this resource type.") \
	X(SAS_PROTOCOL,            EACCES,       403, "AuthorizationProtocolMismatch", "This request is not authorized to perform this operation using this protocol.") \
	X(SAS_IP,                  EACCES,       403, "AuthorizationSourceIPMismatch", "This request is not authorized to perform this operation using this source IP.") \
	X(CORS_FAILED,             EACCES,       403, "CorsPreflightFailure",         "CORS not enabled or no matching rule found for this request.") \
	X(CORS_HEADER,             EINVAL,       400, "InvalidHeaderValue",           "A required CORS header is not present.") \
	X(METHOD_NOT_ALLOWED,      EINVAL,       405, "MethodNotAllowed",             "The requested method is not allowed on the specified resource.") \
	X(URI_INVALID,             EINVAL,       400, "InvalidUri",                   "The requested URI does not represent any resource on the server.") \
	X(HEADER_INVALID,          EINVAL,       400, "InvalidHeaderValue",           "The value for one of the HTTP headers is not in the correct format.") \
	X(HEADER_MISSING,          EINVAL,       400, "MissingRequiredHeader",        "A required HTTP header was not specified.") \
	X(LENGTH_MISSING,          EINVAL,       411, "MissingContentLengthHeader",   "The Content-Length header was not specified.") \
	X(QUERY_VALUE,             EINVAL,       400, "InvalidQueryParameterValue",   "Value for one of the query parameters specified in the request URI is invalid.") \
	X(QUERY_RANGE,             EINVAL,       400, "OutOfRangeQueryParameterValue", "One of the query parameters specified in the request URI is outside the permissible range.") \
	X(XMETHOD_VERB,            EINVAL,       400, "XMethodNotUsingPost",          "The request uses X-HTTP-Method with an HTTP verb other than POST.") \
	X(XMETHOD_VALUE,           EINVAL,       400, "XMethodIncorrectValue",        "The specified X-HTTP-Method is invalid.") \
	X(XMETHOD_COUNT,           EINVAL,       400, "XMethodIncorrectCount",        "More than one X-HTTP-Method is specified.") \
	X(ATOM_NOT_SUPPORTED,      EINVAL,       415, "AtomFormatNotSupported",       "Atom format is not supported.") \
	X(JSON_NOT_SUPPORTED,      EINVAL,       415, "JsonFormatNotSupported",       "JSON format is not supported.") \
	X(JSON_VERBOSE,            EINVAL,       415, "JsonVerboseFormatNotSupported", "JSON Verbose format is not supported.") \
	X(MEDIA_TYPE,              EINVAL,       415, "MediaTypeNotSupported",        "None of the provided media types are supported.") \
	X(XML_INVALID,             EINVAL,       400, "InvalidXmlDocument",           "XML specified is not syntactically valid.") \
	X(XML_VALUE,               EINVAL,       400, "InvalidXmlNodeValue",          "The value provided for one of the XML nodes in the request body was not in the correct format.") \
	X(MD5_INVALID,             EINVAL,       400, "InvalidMd5",                   "The MD5 value specified in the request is invalid. The MD5 value must be 128 bits and Base64-encoded.") \
	X(CRC64_MISMATCH,          EINVAL,       400, "Crc64Mismatch",                "The CRC64 value specified in the request did not match the CRC64 value calculated by the server.") \
	X(MD5_MISMATCH,            EINVAL,       400, "Md5Mismatch",                  "The MD5 value specified in the request did not match the MD5 value calculated by the server.") \
	X(BATCH_PARTITIONS,        EINVAL,       400, "CommandsInBatchActOnDifferentPartitions", "All commands in a batch must operate on same entity group.") \
	/* The store. */ \
	X(NO_SPACE,              ENOSPC,       507, "InsufficientStorage",          "No space is left for the store.") \
	X(PARTITION_TOO_LARGE,   ENOSPC,       507, "PartitionTooLarge",            "The partition has as many rows as a cluster can recover in time; use more partitions.") \
	X(QUOTA,                 ENOSPC,       507, "InsufficientStorage",          "The quota for ordinary files beside the rows is used up.") \
	X(BLOB_SPACE,            ENOSPC,       507, "InsufficientStorage",          "The space for the content of blobs (blob-space) is used up.") \
	X(TABLE_BEING_DELETED,   EBUSY,        409, "TableBeingDeleted",            "The specified table is being deleted.") \
	X(QUEUE_BEING_DELETED,   EBUSY,        409, "QueueBeingDeleted",            "The specified queue is being deleted.") \
	X(CONTAINER_BEING_DELETED, EBUSY,      409, "ContainerBeingDeleted",        "The specified container is being deleted.") \
	X(BUSY,                  EBUSY,        503, "ServerBusy",                   "The store is being served by another process.") \
	X(THROTTLED,             EAGAIN,       503, "ServerBusy",                   "The server is currently unable to receive requests. Please retry your request.") \
	X(TIMED_OUT,             ETIMEDOUT,    500, "OperationTimedOut",            "The operation could not be completed within the permitted time.") \
	X(TOO_MANY_OPEN,         EMFILE,       503, "ServerBusy",                   "Too many files are open.") \
	X(NO_LOCKS,              ENOLCK,       501, "NotImplemented",               "Locks do not reach the other machines that serve this store.") \
	X(TOO_MANY_LOCKS,        ENOLCK,       503, "ServerBusy",                   "Too many locks are held.") \
	X(OUTCOME_UNKNOWN,       EIO,          500, "OperationTimedOut",            "The outcome of the operation is not known.") \
	X(NOT_A_STORE,           EINVAL,       500, "InternalError",                "The file is not a rowfs store.") \
	X(STORE_TOO_NEW,         EINVAL,       500, "InternalError",                "The store was written by a newer rowfs.") \
	X(CORRUPT,               EIO,          500, "InternalError",                "The store is damaged; run rowfs check.") \
	X(ACCESS,                EACCES,       500, "InternalError",                "Permission denied.") \
	X(IO,                    EIO,          500, "InternalError",                "An input/output error occurred.") \
	X(NO_MEMORY,             ENOMEM,       500, "InternalError",                "Out of memory.") \
	X(CANCELLED,             EINTR,        500, "OperationTimedOut",            "The operation was cancelled.")
/* clang-format on */

enum MUST_CHECK err {
#define X(symbol_, errno_, http_, code_, text_) ERR_##symbol_,
	ERR_LIST(X)
#undef X
	ERR_COUNT_
};

/* Details of a failure, for users.  Callers put it on their stack and may pass NULL.
 * Functions take it as their last argument and fill it only on failure. */
struct err_detail {
	size_t op;       /* 0-based index of the operation in a change set */
	size_t offset;   /* 0-based byte in the text; valid if has_offset */
	unsigned line;   /* 1-based; 0: the error has no position in a text */
	unsigned column; /* 1-based, in bytes */
	_Bool has_offset;
	char text[256]; /* one line; "": err_text() says it all */
};

int err_errno(enum err e);          /* positive; 0 for ERR_OK */
int err_http(enum err e);           /* HTTP status */
const char *err_code(enum err e);   /* of the service, such as "TableNotFound" */
const char *err_text(enum err e);   /* of the service */
const char *err_symbol(enum err e); /* such as "TABLE_NOT_FOUND", for logs and tests */

/* Returns the first error of the list with this HTTP status and service code; ERR_COUNT_ without
 * one. */
enum err err_from_code(int http, struct span code);
/* Returns the error for a positive errno; ERR_IO for errnos without one. */
enum err err_from_errno(int code);

/* Fills detail->text unless detail is NULL.  Returns e, so that "return err_set(d, ERR_X, ...)" is
 * one line. */
enum err err_set(struct err_detail *detail, enum err e, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* Also records a position: the byte offset in text, and its line and column. */
enum err err_set_at(struct err_detail *detail, enum err e, const char *text, size_t offset,
	const char *fmt, ...) PRINTF_LIKE(5, 6);

/* Returns detail->text if it is set, else err_text(e). */
const char *err_message(enum err e, const struct err_detail *detail);

#endif
