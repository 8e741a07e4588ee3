/* SPDX-License-Identifier: MIT
 * The SAS of a container (sr=c) or of a blob (b, bs). */
#include "base/compiler.h"
#include "codec/access_policy_xml.h"
#include "service/blobs/containers.h"
#include "service/core/accounts.h"
#include "service/sas/sas.h"

static struct span resource(const struct sas *s)
{
	return span_is(s->sr, "c") ? s->container : s->blob;
}

static void add_fields(const struct sas *s, struct buf *out)
{
	const struct span overrides[] = { s->rscc, s->rscd, s->rsce, s->rscl, s->rsct };
	int version = version_parse(s->sv);
	if (!version_has(version, VERSION_CORS))
		return;
	if (version_has(version, VERSION_SAS_RESOURCE)) {
		buf_add_char(out, '\n');
		buf_add_span(out, s->sr);
		buf_add_char(out, '\n');
		buf_add_span(out, s->snapshot);
	}
	if (version_has(version, VERSION_SAS_ENCRYPTION)) {
		buf_add_char(out, '\n');
		buf_add_span(out, s->ses);
	}
	if (sas_is_delegated(s) && version_has(version, VERSION_SAS_REQUEST))
		buf_add_str(out, "\n\n");
	for (size_t i = 0; i < ARRAY_LEN(overrides); i++) {
		buf_add_char(out, '\n');
		buf_add_span(out, overrides[i]);
	}
}

static enum err policies(
	struct service *service, struct span account, struct span container, struct buf *out)
{
	struct item it = { 0 };
	struct collection c = { 0 };
	enum err e = account_find(service, account, &it);
	if (e != ERR_OK)
		return e;
	e = container_find(service, it.id, container, &c);
	item_fini(&it);
	if (e == ERR_CONTAINER_NOT_FOUND)
		return ERR_OK;
	if (e == ERR_OK)
		buf_add_span(out, c.policies);
	collection_fini(&c);
	return e == ERR_OK && !buf_ok(out) ? ERR_NO_MEMORY : e;
}

const struct sas_service sas_blobs = {
	.name = "blob",
	.permissions = POLICY_LETTERS_BLOB,
	.since = VERSION_TABLE_SAS,
	.delegation = VERSION_DELEGATION,
	.resource = resource,
	.add_fields = add_fields,
	.policies = policies,
};
