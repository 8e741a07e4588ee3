/* SPDX-License-Identifier: MIT */
#include "service/queue/queues.h"

#include "service/queue/message_name.h"
#include "service/queue/messages.h"

enum err queue_create(struct service *s, enum origin origin, uint64_t account_id, struct span name,
	struct span metadata, bool *ret_created, struct err_detail *detail)
{
	struct collection q = { .name = name, .metadata = metadata, .policies = SPAN_LIT("") };
	struct collection there;
	enum err e = collection_create(s, origin, &collection_queue, account_id, &q, detail);
	*ret_created = e == ERR_OK;
	if (e != ERR_QUEUE_EXISTS || queue_find(s, account_id, name, &there) != ERR_OK)
		return e;
	bool equal = metadata_equal(there.metadata, metadata);
	collection_fini(&there);
	return equal ? ERR_OK : e;
}

struct look {
	int64_t now;
	bool live;
};

static bool on_message(void *arg, const struct item *it)
{
	struct look *look = arg;
	struct message_key key;
	look->live = !message_key_read(it->key, &key) || key.expires > look->now;
	return !look->live;
}

enum err queue_delete_empty(
	struct service *s, enum origin origin, uint64_t queue_id, struct err_detail *detail)
{
	struct look look = { .now = service_now(s) };
	enum err e = store_list(service_store(s), NULL, queue_id, CLASS_QUEUE, (struct span){ 0 },
		false, WANT_KEYS, on_message, &look);
	if (e == ERR_OK && look.live)
		return ERR_NOT_EMPTY;
	if (e == ERR_OK)
		e = queue_clear_expired(s, origin, queue_id, detail);
	/* A message may be put meanwhile: the deletion itself refuses then. */
	return e == ERR_OK ? collection_delete(s, origin, &collection_queue, queue_id, NULL, NULL,
				     true, detail)
			   : e;
}
