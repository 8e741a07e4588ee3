/* SPDX-License-Identifier: MIT
 * The SAS of a queue: the URL names it. */
#include "codec/access_policy_xml.h"
#include "service/core/accounts.h"
#include "service/queue/queues.h"
#include "service/sas/sas.h"

static void add_nothing(const struct sas *s, struct buf *out)
{
	(void)s;
	(void)out;
}

static enum err policies(
	struct service *service, struct span account, struct span queue, struct buf *out)
{
	struct item it = { 0 };
	struct collection q = { 0 };
	enum err e = account_find(service, account, &it);
	if (e != ERR_OK)
		return e;
	e = queue_find(service, it.id, queue, &q);
	item_fini(&it);
	if (e == ERR_QUEUE_NOT_FOUND)
		return ERR_OK;
	if (e == ERR_OK)
		buf_add_span(out, q.policies);
	collection_fini(&q);
	return e == ERR_OK && !buf_ok(out) ? ERR_NO_MEMORY : e;
}

const struct sas_service sas_queues = {
	.name = "queue",
	.permissions = POLICY_LETTERS_QUEUE,
	.since = VERSION_TABLE_SAS,
	.delegation = VERSION_SAS_USERS,
	.add_fields = add_nothing,
	.policies = policies,
};
