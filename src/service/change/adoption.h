/* SPDX-License-Identifier: MIT
 * What a mount leaves under digest names, until a document or a request tells their keys: folders
 * that wait for a partition, and empty files that wait for a row. */
#ifndef SERVICE_CHANGE_ADOPTION_H
#define SERVICE_CHANGE_ADOPTION_H

#include "service/core/service.h"

/* Makes the folder, which is in a table, the partition pk_order.  The empty files in it become empty
 * rows where their names tell their keys.  ret may be NULL.  ERR_GONE: it is not where it was. */
enum err adopt_folder(struct service *s, enum origin origin, const struct item *folder,
	struct span pk_order, struct item *ret, struct err_detail *detail);
/* Makes the empty file an empty row of the partition; removes it where there is a row.  ret, which may
 * be NULL, is the empty row, or of kind ITEM_NONE.  ERR_GONE: the file is not what it was. */
enum err adopt_file(struct service *s, enum origin origin, const struct item *file,
	uint64_t partition, struct span rk_order, struct item *ret);

#endif
