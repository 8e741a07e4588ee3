/* SPDX-License-Identifier: MIT
 * Tables by name. */
#ifndef SERVICE_CORE_TABLES_H
#define SERVICE_CORE_TABLES_H

#include "base/buf.h"
#include "service/core/service.h"

/* ERR_ACCOUNT_NOT_FOUND, ERR_TABLE_NOT_FOUND.  Any case of the name finds the table. */
enum err table_find(struct service *s, struct span account, struct span table, struct item *ret);
/* The same where the account is known by its id. */
enum err table_find_in(struct service *s, uint64_t account_id, struct span table, struct item *ret);
/* Only its id, remembered for the next request. */
enum err table_id(struct service *s, uint64_t account_id, struct span table, uint64_t *ret);
/* ERR_TABLE_EXISTS (also for a case variant), ERR_NAME_INVALID, ERR_NAME_TOO_LONG. */
enum err table_create(struct service *s, enum origin origin, uint64_t account_id, struct span name,
	struct item *ret, struct err_detail *detail);
/* With all its rows. */
enum err table_delete(
	struct service *s, enum origin origin, uint64_t table_id, struct err_detail *detail);
/* The stored access policies of a table as XML (codec/access_policy_xml.h); empty: none.
 * ERR_TABLE_NOT_FOUND. */
enum err table_policies_get(struct service *s, uint64_t table_id, struct buf *out);
enum err table_policies_set(struct service *s, enum origin origin, uint64_t table_id,
	struct span xml, struct err_detail *detail);

#endif
