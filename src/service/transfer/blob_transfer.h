/* SPDX-License-Identifier: MIT
 * A blob into another store.  Its record and its list of blocks name extents by their ids, which
 * differ there.  Private to service/transfer. */
#ifndef SERVICE_TRANSFER_BLOB_TRANSFER_H
#define SERVICE_TRANSFER_BLOB_TRANSFER_H

#include "service/transfer/transfer_steps.h"

/* Copies a blob of the container at work with all below it.  One that others change meanwhile is read again; one that is gone
 * is left out. */
enum err transfer_blob(struct transfer *t, const struct item *blob, uint64_t parent);

#endif
