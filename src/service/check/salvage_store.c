/* SPDX-License-Identifier: MIT
 * Checks documents, messages, pieces of blobs and account keys during a salvage; the engine cannot. */
#include "codec/entity_json.h"
#include "service/blobs/blobs.h"
#include "service/check/salvage.h"
#include "service/core/accounts.h"
#include "service/queue/messages.h"

struct judge {
	struct store_salvage *to;
	struct entity entity;
};

/* ITEM_CANONICAL comes from an intact page.  A row without its flags is decoded like any
 * document. */
static bool on_row(void *arg, const struct item *row, uint32_t *flags)
{
	struct judge *j = arg;
	struct entity_json_facts facts = { 0 };
	if (row->kind == ITEM_PIECE)
		return blob_item_wrong(row) == NULL;
	if (row->kind == ITEM_MESSAGE) {
		*flags = 0;
		return message_item_wrong(row) == NULL;
	}
	if (entity_json_decode(row->body, ENTITY_JSON_FILE, &j->entity, &facts, NULL) != ERR_OK)
		return false;
	*flags = (row->flags & ITEM_CANONICAL) | (facts.has_keys ? ITEM_KEYS_INSIDE : 0);
	return true;
}

static enum err on_account(void *arg, struct span body, struct buf *fresh)
{
	struct account_secrets secrets;
	(void)arg;
	if (fresh != NULL)
		return account_fresh_body(fresh);
	enum err e = account_secrets_read(body, &secrets);
	if (e == ERR_OK)
		account_secrets_fini(&secrets);
	return e;
}

static void on_lost(void *arg, const struct store_loss *loss)
{
	struct judge *j = arg;
	j->to->lost(j->to->arg, loss);
}

static bool on_progress(void *arg, uint64_t done, uint64_t total)
{
	struct judge *j = arg;
	return j->to->progress == NULL || j->to->progress(j->to->arg, done, total);
}

enum err service_salvage_store(
	const char *from, const char *to, struct store_salvage *s, struct err_detail *detail)
{
	struct judge j = { .to = s };
	struct store_salvage inner = *s;
	inner.row = on_row;
	inner.account = on_account;
	inner.lost = on_lost;
	inner.progress = on_progress;
	inner.arg = &j;
	enum err e = store_salvage(from, to, &inner, detail);
	entity_fini(&j.entity);
	inner.row = s->row;
	inner.account = s->account;
	inner.lost = s->lost;
	inner.progress = s->progress;
	inner.arg = s->arg;
	*s = inner;
	return e;
}
