/* SPDX-License-Identifier: MIT
 * The result of a change set as JSON, which reading .batch returns. */
#include "base/compiler.h"
#include "codec/change_set_json.h"
#include "model/etag.h"
#include "service/change/change_set.h"
#include "service/queue/message_name.h"

#include <string.h>

static const char *kind_text(enum entity_op_kind kind)
{
	static const enum change_verb verbs[] = {
		[ENTITY_INSERT] = CHANGE_VERB_INSERT,
		[ENTITY_UPSERT] = CHANGE_VERB_UPSERT,
		[ENTITY_UPSERT_MERGE] = CHANGE_VERB_UPSERT_MERGE,
		[ENTITY_REPLACE] = CHANGE_VERB_REPLACE,
		[ENTITY_MERGE] = CHANGE_VERB_MERGE,
		[ENTITY_DELETE] = CHANGE_VERB_DELETE,
		[ENTITY_MESSAGE] = CHANGE_VERB_PUT_MESSAGE,
	};
	return change_verb_text(verbs[kind]);
}

static void add_text(struct buf *out, const char *name, struct span text)
{
	buf_addf(out, "\"%s\":", name);
	buf_add_json(out, text);
}

/* Adds the members that identify the operation. */
static void add_subject(struct buf *out, const struct entity_op *op)
{
	add_text(out, "operation", span_of(kind_text(op->kind)));
	if (op->message != NULL && op->message->queue.p == NULL)
		return;
	buf_add_char(out, ',');
	if (op->message != NULL) {
		add_text(out, "queue", op->message->queue);
		return;
	}
	add_text(out, "PartitionKey", op->pk);
	buf_add_char(out, ',');
	add_text(out, "RowKey", op->rk);
}

static void add_done(struct buf *out, const struct entity_op *op, bool checked)
{
	char etag[ETAG_MAX];
	buf_add_char(out, '{');
	add_subject(out, op);
	buf_addf(out, ",\"status\":%d",
		op->kind == ENTITY_INSERT || op->kind == ENTITY_MESSAGE ? 201 : 204);
	if (op->kind == ENTITY_MESSAGE && !checked) {
		char id[MESSAGE_ID_CHARS + 1];
		message_id_write(op->version, op->id, id);
		buf_addf(out, ",\"id\":\"%s\"", id);
	} else if (op->kind != ENTITY_DELETE && !checked &&
		(op->etag.p == NULL || op->etag.n > 0)) {
		etag_format(op->version, etag);
		buf_add_char(out, ',');
		add_text(out, "etag", op->etag.p != NULL ? op->etag : span_of(etag));
	}
	buf_add_char(out, '}');
}

static void add_failed(
	struct buf *out, const struct change_set *set, enum err e, const struct err_detail *detail)
{
	if (set->blames)
		buf_addf(out, ",\"index\":%zu", detail->op);
	if (set->blames && detail->op < set->n &&
		(set->ops[detail->op].pk.p != NULL || set->ops[detail->op].message != NULL)) {
		buf_add_char(out, ',');
		add_subject(out, &set->ops[detail->op]);
	}
	buf_addf(out, ",\"status\":%d,\"code\":\"%s\",", err_http(e), err_code(e));
	add_text(out, "message", span_of(err_message(e, detail)));
	if (detail->line != 0)
		buf_addf(out, ",\"line\":%u,\"column\":%u", detail->line, detail->column);
	buf_addf(out, ",\"errno\":\"%s\"}\n", strerrorname_np(err_errno(e)));
}

void change_set_result(const struct change_set *set, enum err e, const struct err_detail *detail,
	bool checked, struct buf *out)
{
	const char *committed = e == ERR_OUTCOME_UNKNOWN ? "null"
		: e == ERR_OK && !checked                ? "true"
							 : "false";
	buf_addf(out, "{\"committed\":%s", committed);
	if (checked)
		buf_addf(out, ",\"would_commit\":%s", e == ERR_OK ? "true" : "false");
	if (e != ERR_OK) {
		add_failed(out, set, e, detail);
		return;
	}
	buf_add_str(out, ",\"operations\":[\n");
	for (size_t i = 0; i < set->n; i++) {
		add_done(out, &set->ops[i], checked);
		buf_add_str(out, i + 1 < set->n ? ",\n" : "\n");
	}
	buf_add_str(out, "]}\n");
}
