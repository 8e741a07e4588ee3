/* SPDX-License-Identifier: MIT */
#include "service/core/admission.h"

#include "base/clock.h"
#include "base/text.h"
#include "model/key.h"
#include "service/core/partition_keys.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Bytes of a key in a message. */
#define SHOWN_BYTES 80

enum err admission_entities(struct service *s, uint64_t table_id, struct span pk,
	enum heat_kind kind, size_t n, struct err_detail *detail)
{
	struct heat *h = service_heat(s);
	if (heat_admit(h, clock_mono_coarse_us(), table_id, pk, kind, (uint32_t)n))
		return ERR_OK;
	struct span shown = span_make(pk.p, pk.n < SHOWN_BYTES ? pk.n : SHOWN_BYTES);
	shown.n = utf8_valid_prefix(shown);
	return err_set(detail, ERR_THROTTLED,
		"The partition '%.*s' is at its target of %" PRIu32 " entities a second.",
		(int)shown.n, shown.p, heat_target(h));
}

enum err admission_in(struct service *s, const struct item *dir, enum heat_kind kind, size_t n,
	struct err_detail *detail)
{
	char pk[LIMIT_KEY_BYTES];
	if (dir->kind != ITEM_PARTITION || dir->key.n > sizeof(pk))
		return ERR_OK;
	key_from_order(dir->key.p, dir->key.n, pk);
	return admission_entities(s, dir->parent, span_make(pk, dir->key.n), kind, n, detail);
}

enum err admission_in_id(
	struct service *s, uint64_t dir, enum heat_kind kind, size_t n, struct err_detail *detail)
{
	struct partition_key key;
	if (n == 0 && heat_target(service_heat(s)) == 0)
		return ERR_OK;
	/* The caller reports a missing directory itself. */
	if (partition_keys_get(service_partition_keys(s), dir, &key) != ERR_OK)
		return ERR_OK;
	return admission_entities(s, key.table, span_make(key.pk, key.pk_n), kind, n, detail);
}

void admission_count(
	struct service *s, uint64_t table_id, struct span pk, enum heat_kind kind, size_t n)
{
	heat_count(service_heat(s), clock_mono_coarse_us(), table_id, pk, kind, (uint32_t)n);
}

/* ---- reading ---- */

static bool copy_name(struct span name, char *out, size_t cap)
{
	if (name.n == 0 || name.n >= cap)
		return false;
	memcpy(out, name.p, name.n);
	out[name.n] = '\0';
	return true;
}

/* ERR_NOT_FOUND if the table was removed. */
static enum err find_names(struct store *store, struct hot_partition *p)
{
	struct item table = { 0 }, account = { 0 };
	enum err e = store_get(store, NULL, p->spot.table, WANT_ATTRS, &table);
	if (e == ERR_OK)
		e = store_get(store, NULL, table.parent, WANT_ATTRS, &account);
	if (e == ERR_OK &&
		!(copy_name(table.name, p->table, sizeof(p->table)) &&
			copy_name(account.key, p->account, sizeof(p->account))))
		e = ERR_CORRUPT;
	item_fini(&table);
	item_fini(&account);
	return e;
}

struct hottest *hottest_partitions(struct service *s)
{
	struct hottest *h = calloc(1, sizeof(*h));
	struct hot_spot *spots = calloc(HOTTEST_MAX, sizeof(*spots));
	if (h == NULL || spots == NULL) {
		free(h);
		free(spots);
		return NULL;
	}
	size_t n;
	bool hidden; /* removed tables may have hidden colder partitions */
	do {
		n = heat_hottest(service_heat(s), clock_mono_us(), spots, HOTTEST_MAX);
		hidden = false;
		h->n = 0;
		for (size_t i = 0; i < n; i++) {
			h->partitions[h->n].spot = spots[i];
			enum err e = find_names(service_store(s), &h->partitions[h->n]);
			h->n += e == ERR_OK;
			if (e == ERR_NOT_FOUND) {
				heat_forget(service_heat(s), spots[i].table);
				hidden = n == HOTTEST_MAX;
			}
		}
	} while (hidden);
	free(spots);
	return h;
}
