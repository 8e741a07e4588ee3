/* SPDX-License-Identifier: MIT */
#include "service/blobs/blob_find.h"

void blob_info_fini(struct blob_info *b)
{
	item_fini(&b->item);
	*b = (struct blob_info){ 0 };
}

struct item_ref blob_place(uint64_t container_id, struct span name)
{
	return (struct item_ref){ .parent = container_id, .class = CLASS_BLOB, .key = name };
}

enum err blob_look(
	struct service *s, uint64_t container_id, struct span name, struct blob_info *ret)
{
	*ret = (struct blob_info){ 0 };
	enum err e = store_child(
		service_store(s), NULL, container_id, CLASS_BLOB, name, WANT_BODY, &ret->item);
	if (e == ERR_OK)
		e = ret->item.kind == ITEM_BLOB ? blob_record_read(ret->item.body, &ret->record)
						: ERR_CORRUPT;
	ret->id = ret->item.id;
	ret->name = ret->item.key;
	if (e != ERR_OK)
		blob_info_fini(ret);
	return e;
}

enum err blob_find(
	struct service *s, uint64_t container_id, struct span name, struct blob_info *ret)
{
	enum err e = blob_look(s, container_id, name, ret);
	if (e == ERR_OK && ret->record.type == BLOB_NONE) {
		blob_info_fini(ret);
		e = ERR_NOT_FOUND;
	}
	return e == ERR_NOT_FOUND ? ERR_BLOB_NOT_FOUND : e;
}
