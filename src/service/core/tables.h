/* SPDX-License-Identifier: MIT
 * Tables by name. */
#ifndef SERVICE_CORE_TABLES_H
#define SERVICE_CORE_TABLES_H

#include "base/buf.h"
#include "service/core/service.h"

/* Finds a table; the case of its name does not matter.  ERR_ACCOUNT_NOT_FOUND,
 * ERR_TABLE_NOT_FOUND. */
enum err table_find(struct service *s, struct span account, struct span table, struct item *ret);
/* Does the same in an account given by its id. */
enum err table_find_in(struct service *s, uint64_t account_id, struct span table, struct item *ret);
/* Does the same but returns only the id, which is cached. */
enum err table_id(struct service *s, uint64_t account_id, struct span table, uint64_t *ret);
/* Creates a table.  ERR_TABLE_EXISTS, also for the same name in another case; ERR_NAME_INVALID,
 * ERR_NAME_TOO_SHORT, ERR_NAME_TOO_LONG. */
enum err table_create(struct service *s, enum origin origin, uint64_t account_id, struct span name,
	struct item *ret, struct err_detail *detail);
/* Removes a table with all its rows. */
enum err table_delete(
	struct service *s, enum origin origin, uint64_t table_id, struct err_detail *detail);
/* Read and replace the stored access policies of a table, as XML (codec/access_policy_xml.h);
 * empty: none.  ERR_TABLE_NOT_FOUND. */
enum err table_policies_get(struct service *s, uint64_t table_id, struct buf *out);
enum err table_policies_set(struct service *s, enum origin origin, uint64_t table_id,
	struct span xml, struct err_detail *detail);

#endif
