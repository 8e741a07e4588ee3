/* SPDX-License-Identifier: MIT */
#include "rest/tables/select.h"

#include "model/versions.h"
#include "query/select.h"

enum err select_read(struct request_context *c, struct odata_style *style)
{
	struct span list;
	struct selection selection;
	if (!version_has(c->version, VERSION_SELECT) || !context_param(c, "$select", &list))
		return ERR_OK;
	enum err e = selection_parse(list, c->arena, &selection, &c->detail);
	if (e != ERR_OK || selection.all)
		return e;
	style->all = false;
	style->select = selection.names;
	style->nselect = selection.n;
	return ERR_OK;
}
