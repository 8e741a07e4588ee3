/* SPDX-License-Identifier: MIT */
#include "fs/write/stage_check.h"

#include "model/key.h"

#include <stdlib.h>

/* The PartitionKey of a directory that has only a digest for a name, out of the document. */
static enum err pending_key(
	struct stage *s, char pk[LIMIT_KEY_BYTES], size_t *ret_n, struct err_detail *detail)
{
	struct entity entity = { 0 };
	enum err e = entity_json_decode(buf_span(&s->buf), ENTITY_JSON_FILE, &entity, NULL, detail);
	if (e == ERR_OK && !entity.has_pk)
		e = err_set(detail, ERR_KEY_MISSING,
			"the directory's name is a digest: the document must hold PartitionKey");
	if (e == ERR_OK) {
		char name[LIMIT_NAME_BYTES + 1];
		size_t n = filename_encode(entity.pk, FILENAME_PARTITION, name);
		if (!span_eq(span_make(name, n), s->at.dir.key))
			e = err_set(detail, ERR_KEY_MISMATCH,
				"the directory's digest is not that of the document's PartitionKey");
	}
	if (e == ERR_OK) {
		memcpy(pk, entity.pk.p, entity.pk.n);
		*ret_n = entity.pk.n;
	}
	entity_fini(&entity);
	return e;
}

enum err stage__keys(struct fs *fs, struct stage *s, struct row_keys *k, struct err_detail *detail)
{
	enum err e = name_key_from_document(fs, &s->at, buf_span(&s->buf), detail);
	if (e != ERR_OK)
		return e;
	k->rk_n = s->at.key_len;
	key_from_order(s->at.key, s->at.key_len, k->rk);
	if (s->at.pending_dir)
		return pending_key(s, k->pk, &k->pk_n, detail);
	k->pk_n = s->at.dir.key.n;
	key_from_order(s->at.dir.key.p, s->at.dir.key.n, k->pk);
	return ERR_OK;
}

enum err stage__check(struct fs *fs, struct stage *s, struct err_detail *detail)
{
	lock_assert_held(&s->lock);
	if (s->check.len == s->buf.len && s->buf.len > 0)
		return ERR_OK;
	struct row_keys *k = malloc(sizeof(*k));
	if (k == NULL)
		return ERR_NO_MEMORY;
	enum err e = stage__keys(fs, s, k, detail);
	if (e == ERR_OK)
		e = document_check(buf_span(&s->buf), span_make(k->pk, k->pk_n),
			span_make(k->rk, k->rk_n), NULL, &s->check.has_keys, detail);
	if (e == ERR_OK)
		s->check.len = s->buf.len;
	free(k);
	return e;
}

enum err stage__check_so_far(struct fs *fs, struct stage *s, struct err_detail *detail)
{
	lock_assert_held(&s->lock);
	struct json_member member;
	for (;;) {
		switch (json_scan_next(&s->check.scan, buf_span(&s->buf), &member)) {
		case JSON_SCAN_MEMBER:
			break;
		case JSON_SCAN_MORE:
			return ERR_OK;
		case JSON_SCAN_END:
			return stage__check(fs, s, detail);
		case JSON_SCAN_BAD:
			return err_set_at(detail, ERR_INVALID_INPUT, s->buf.data,
				s->check.scan.bad_at, "%s", s->check.scan.why);
		}
	}
}
