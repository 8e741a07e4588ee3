/* SPDX-License-Identifier: MIT */
#include "small_service.h"

#include "fuzz.h"
#include "service/core/accounts.h"
#include "service/core/tables.h"
#include "store/engines.h"

struct service *small_service_new(uint64_t *account)
{
	struct store *store;
	struct service *s;
	struct item item = { 0 };
	MUST(store_open_memory(&store) == ERR_OK);
	MUST(service_new(store, &s) == ERR_OK);
	MUST(account_create(s, ORIGIN_COMMAND, SPAN_LIT("acct"), NULL, NULL, NULL) == ERR_OK);
	MUST(account_find(s, SPAN_LIT("acct"), &item) == ERR_OK);
	MUST(table_create(s, ORIGIN_COMMAND, item.id, SPAN_LIT("tab"), NULL, NULL) == ERR_OK);
	*account = item.id;
	item_fini(&item);
	return s;
}
