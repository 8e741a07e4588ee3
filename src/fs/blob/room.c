/* SPDX-License-Identifier: MIT */
#include "fs/blob/room.h"

#include <stdlib.h>

struct blob_room *blob_room_new(void)
{
	struct blob_room *r = calloc(1, sizeof(*r));
	if (r == NULL)
		return NULL;
	r->nodes = blob_nodes_new();
	r->stages = blob_stages_new();
	r->dirs = blob_dirs_new();
	if (r->nodes == NULL || r->stages == NULL || r->dirs == NULL) {
		blob_room_free(r);
		return NULL;
	}
	return r;
}

void blob_room_free(struct blob_room *r)
{
	if (r == NULL)
		return;
	blob_nodes_free(r->nodes);
	blob_stages_free(r->stages);
	blob_dirs_free(r->dirs);
	free(r);
}
