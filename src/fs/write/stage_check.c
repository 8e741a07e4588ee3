/* SPDX-License-Identifier: MIT */
#include "fs/write/stage_check.h"

#include <stdlib.h>

enum err stage__check(struct fs *fs, struct stage *s, struct err_detail *detail)
{
	lock_assert_held(&s->lock);
	if (s->check.len == s->buf.len && s->buf.len > 0)
		return ERR_OK;
	struct row_keys *k = malloc(sizeof(*k));
	if (k == NULL)
		return ERR_NO_MEMORY;
	enum err e = resolved_name_keys(&s->at, buf_span(&s->buf), k, detail);
	if (e == ERR_OK)
		e = document_check(buf_span(&s->buf), span_make(k->pk, k->pk_n),
			span_make(k->rk, k->rk_n), NULL, &s->check.flags, detail);
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
