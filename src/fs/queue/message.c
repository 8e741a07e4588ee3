/* SPDX-License-Identifier: MIT */
#include "fs/queue/message.h"

#include "base/clock.h"
#include "fs/virtual/dir_control.h"
#include "model/limits.h"

#include <inttypes.h>
#include <string.h>

void message_fini(struct message *m)
{
	item_fini(&m->item);
}

enum queue_place queue_place_now(struct service *service, const struct message_key *key)
{
	if (key->visible <= service_now(service))
		return QUEUE_PLACE_VISIBLE;
	return key->taken > 0 ? QUEUE_PLACE_TAKEN : QUEUE_PLACE_HIDDEN;
}

uint64_t message_item(struct span id)
{
	int64_t inserted;
	uint64_t item = 0;
	return message_id_read(id, &inserted, &item) ? item : 0;
}

enum err message_load(struct fs *fs, uint64_t id, unsigned want, struct message *ret)
{
	*ret = (struct message){ 0 };
	enum err e = store_get(fs->store, NULL, id, want, &ret->item);
	if (e == ERR_OK &&
		(ret->item.kind != ITEM_MESSAGE || !message_key_read(ret->item.key, &ret->key) ||
			ret->key.expires <= service_now(fs->service)))
		e = ERR_NOT_FOUND;
	if (e != ERR_OK) {
		message_fini(ret);
		return e;
	}
	message_id_write(ret->key.inserted, id, ret->id);
	message_receipt_write(ret->item.version, id, ret->receipt);
	ret->place = queue_place_now(fs->service, &ret->key);
	return ERR_OK;
}

int64_t message_seconds_left(struct service *service, const struct message *m)
{
	int64_t left = m->key.visible - service_now(service);
	return left > 0 ? (left + TICKS_PER_SECOND - 1) / TICKS_PER_SECOND : 0;
}

enum err message_attr(struct fs *fs, const struct message *m, uint64_t nid, struct stat *ret)
{
	enum err e = collection_attr(fs, ITEM_QUEUE, m->item.parent, nid, S_IFREG | 0666, ret);
	if (e != ERR_OK)
		return e;
	ret->st_size = (off_t)m->item.size;
	ret->st_blocks = (ret->st_size + 511) / 512;
	ret->st_mtim = ret->st_atim = ticks_to_timespec(m->key.inserted);
	ret->st_ctim = ticks_to_timespec(m->item.version);
	return ERR_OK;
}

static void add_time(int64_t ticks, struct buf *out)
{
	char text[CLOCK_TEXT_MAX];
	buf_add(out, text, (size_t)clock_format(ticks, text));
}

enum err message_fact(
	struct service *service, const struct message *m, const char *name, struct buf *out)
{
	if (strcmp(name, "id") == 0)
		buf_add_str(out, m->id);
	else if (strcmp(name, "receipt") == 0)
		buf_add_str(out, m->receipt);
	else if (strcmp(name, "count") == 0)
		buf_addf(out, "%" PRIu32, m->key.taken);
	else if (strcmp(name, "visibility") == 0)
		buf_addf(out, "%" PRId64, message_seconds_left(service, m));
	else if (strcmp(name, "visible") == 0)
		add_time(m->key.visible, out);
	else if (strcmp(name, "inserted") == 0)
		add_time(m->key.inserted, out);
	else if (strcmp(name, "expires") == 0 && m->key.expires == MESSAGE_EXPIRES_NEVER)
		buf_add_str(out, "never");
	else if (strcmp(name, "expires") == 0)
		add_time(m->key.expires, out);
	else
		return ERR_NO_ATTRIBUTE;
	return ERR_OK;
}

enum err message_refuse_lost(struct err_detail *detail)
{
	return err_set(detail, ERR_CONDITION_NOT_MET,
		"The time of this take is over, and another took the message.");
}
