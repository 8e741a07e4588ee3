/* SPDX-License-Identifier: MIT
 * The formats in which rows leave a table and come into one (docs/formats.md). */
#ifndef SERVICE_TRANSFER_TRANSFER_H
#define SERVICE_TRANSFER_TRANSFER_H

enum transfer_format {
	TRANSFER_NDJSON,
	TRANSFER_CSV
};

#endif
