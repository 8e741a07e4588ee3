/* SPDX-License-Identifier: MIT
 * The snapshots of the store (service/view/views.h): which there are, making and removing one. */
#include "base/clock.h"
#include "rest/page/page_data.h"
#include "service/view/views.h"

static void add_snapshot(struct json_build *b, const struct view_info *info)
{
	char made[CLOCK_TEXT_MAX];
	(void)clock_format(info->made, made);
	json_open_object(b, NULL);
	json_add_str(b, "name", info->name);
	json_add_count(b, "number", info->number);
	json_add_str(b, "made", made);
	json_add_count(b, "log_bytes", info->log_bytes);
	json_close(b);
}

enum err page_snapshots_add(const struct page_ask *ask, struct json_build *b)
{
	struct views *views = service_views(ask->service);
	struct view_info info;
	json_open_array(b, "snapshots");
	for (uint32_t last = 0; snapshot_next(views, last, &info) == ERR_OK; last = info.number)
		add_snapshot(b, &info);
	json_close(b);
	return ERR_OK;
}

enum err page_snapshots_change(const struct page_ask *ask, struct json_build *b)
{
	(void)b;
	struct views *views = service_views(ask->service);
	struct view_info info;
	struct span name = SPAN_LIT("");
	(void)query_params_find(&ask->params, "name", &name);
	if (ask->removes)
		return snapshot_drop(views, name);
	if (service_is_read_only(ask->service) || service_can(ask->service, STORE_READ_ONLY))
		return ERR_READ_ONLY;
	return snapshot_make(views, name, &info, ask->detail);
}
