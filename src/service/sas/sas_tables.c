/* SPDX-License-Identifier: MIT
 * The SAS of a table: its name and the range of keys are in the token. */
#include "base/compiler.h"
#include "codec/access_policy_xml.h"
#include "service/core/tables.h"
#include "service/sas/sas.h"

static void add_range(const struct sas *s, struct buf *out)
{
	const struct span range[] = { s->spk, s->srk, s->epk, s->erk };

	for (size_t i = 0; i < ARRAY_LEN(range); i++) {
		buf_add_char(out, '\n');
		buf_add_span(out, range[i]);
	}
}

static enum err policies(
	struct service *service, struct span account, struct span table, struct buf *out)
{
	struct item it = { 0 };
	enum err e = table_find(service, account, table, &it);

	if (e == ERR_OK)
		e = table_policies_get(service, it.id, out);
	item_fini(&it);
	return e == ERR_TABLE_NOT_FOUND ? ERR_OK : e;
}

const struct sas_service sas_tables = {
	.name = "table",
	.permissions = POLICY_LETTERS_TABLE,
	.since = VERSION_TABLE_SAS,
	.names_resource = true,
	.add_fields = add_range,
	.policies = policies,
};
