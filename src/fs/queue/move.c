/* SPDX-License-Identifier: MIT */
#include "fs/queue/move.h"

#include "base/clock.h"
#include "fs/queue/text_file.h"

#include <stdio.h>
#include <string.h>

void queue_found_fini(struct queue_found *f)
{
	if (f->exists)
		message_fini(&f->message);
}

static enum err find_item(struct fs *fs, uint64_t queue, uint64_t item, struct queue_found *ret)
{
	enum err e = message_load(fs, item, WANT_ATTRS, &ret->message);
	if (e == ERR_OK && ret->message.item.parent != queue) {
		message_fini(&ret->message);
		e = ERR_NOT_FOUND;
	}
	ret->exists = e == ERR_OK;
	return e;
}

/* Whether a message is where its name says.  Its taker finds it by the name until another takes
 * it, so that it can end a work that took too long; after that the name is there to be refused. */
static bool is_there(const struct queue_found *f, enum queue_place place)
{
	if (place == QUEUE_PLACE_TAKEN && f->number != 0)
		return f->message.key.taken > 0;
	return f->message.place == place;
}

enum err queue_name_find(struct fs *fs, uint64_t dir, struct span name, struct queue_found *ret)
{
	enum queue_place place = queue_place_of(dir);
	uint64_t queue = nid_id(dir);
	enum err e = ERR_NOT_FOUND;
	*ret = (struct queue_found){ 0 };
	if (queue_names_find(fs->queue_names, queue, place, name, &ret->number, &ret->name)) {
		ret->nid = queue_nid(QUEUE_NODE_NAMED, ret->number);
		if (ret->name.item == 0)
			return ERR_OK;
		e = find_item(fs, queue, ret->name.item, ret);
		ret->taken = ret->name.taken;
	} else if (message_item(name) != 0) {
		e = find_item(fs, queue, message_item(name), ret);
		if (e == ERR_OK && !span_is(name, ret->message.id)) {
			queue_found_fini(ret);
			return ERR_NOT_FOUND;
		}
		ret->nid =
			queue_nid(QUEUE_NODE_VISIBLE_MESSAGE + (unsigned)place, message_item(name));
		ret->taken = e == ERR_OK ? ret->message.key.taken : 0;
	}
	if (e == ERR_OK && !is_there(ret, place)) {
		queue_found_fini(ret);
		e = ERR_NOT_FOUND;
	}
	return e;
}

static enum err not_there(enum err e)
{
	return e == ERR_MESSAGE_NOT_FOUND || e == ERR_QUEUE_NOT_FOUND ? ERR_NOT_FOUND : e;
}

/* ---- removal ---- */

static enum err delete_message(
	struct service *service, const struct queue_found *f, bool taken, struct err_detail *detail)
{
	const struct message *m = &f->message;
	if (taken && m->key.taken != f->taken)
		return message_refuse_lost(detail);
	enum err e = message_delete(service, ORIGIN_MOUNT, m->item.parent, span_of(m->id),
		span_of(m->receipt), false, detail);
	/* Somebody changed it since it was looked at. */
	return taken && e == ERR_MESSAGE_NOT_FOUND ? message_refuse_lost(detail) : not_there(e);
}

enum err queue_name_remove(struct fs *fs, uint64_t dir, struct span name, struct err_detail *detail)
{
	struct queue_found f;
	enum err e = queue_name_find(fs, dir, name, &f);
	if (e != ERR_OK)
		return e;
	if (f.exists)
		e = delete_message(
			fs->service, &f, queue_place_of(dir) == QUEUE_PLACE_TAKEN, detail);
	if (e == ERR_OK && f.number != 0)
		queue_names_drop(fs->queue_names, f.number);
	queue_found_fini(&f);
	return e;
}

/* ---- rename ---- */

struct renaming {
	struct fs *fs;
	const struct vmove *move;
	struct queue_found *f;
	struct queue_name to; /* the new name */
	struct err_detail *detail;
};

/* The name leads to the message from now on.  A message needs none that has its id for a name,
 * except in .taken, where the name says which take it is about. */
static enum err enter(struct renaming *r)
{
	struct fs *fs = r->fs;
	bool own = strcmp(r->to.name, r->f->message.id) == 0;
	if (r->f->number != 0)
		queue_names_drop(fs->queue_names, r->f->number);
	if (own && r->to.place != QUEUE_PLACE_TAKEN)
		return ERR_OK;
	/* Without memory the message is found by its id. */
	(void)queue_names_add(fs->queue_names, &r->to);
	return ERR_OK;
}

static bool on_taken(void *arg, const struct queue_message *m)
{
	((struct renaming *)arg)->to.taken = m->taken;
	return true;
}

static enum err take(struct renaming *r)
{
	enum err e = message_take_one(r->fs->service, ORIGIN_MOUNT, r->to.queue,
		span_of(r->f->message.id), QUEUE_TAKE_SECONDS, false, on_taken, r, r->detail);
	return e == ERR_OK ? enter(r) : not_there(e);
}

static enum err give_back(struct renaming *r)
{
	enum err e = message_change(
		r->fs->service, &r->f->message, r->f->taken, 0, NULL, false, r->detail);
	return e == ERR_OK ? enter(r) : e;
}

/* Text that waits for a name without a dot becomes a message. */
static enum err rename_unput(struct renaming *r)
{
	struct fs *fs = r->fs;
	struct queue_name n = r->f->name;
	struct buf text = BUF_INIT(LIMIT_MESSAGE_BYTES);
	memcpy(n.name, r->to.name, sizeof(n.name));
	n.place = r->to.place;
	enum err e = ERR_OK;
	queue_names_set(fs->queue_names, r->f->number, &n);
	if (n.name[0] != '.' && queue_names_waits(fs->queue_names, r->f->number)) {
		e = queue_names_text(fs->queue_names, r->f->number, &text);
		if (e == ERR_OK)
			e = message_put_named(
				fs, r->f->number, &n, buf_span(&text), false, r->detail);
		if (e != ERR_OK)
			queue_names_set(fs->queue_names, r->f->number, &r->f->name);
	}
	buf_fini(&text);
	return not_there(e);
}

static enum err refuse(struct renaming *r, const char *why)
{
	return err_set(r->detail, ERR_NOT_PERMITTED, "%s", why);
}

static enum err perform(struct renaming *r)
{
	enum queue_place from = queue_place_of(r->move->from), to = r->to.place;
	if (!r->f->exists)
		return rename_unput(r);
	r->to.item = r->f->message.item.id;
	r->to.taken = r->f->taken;
	if (from == to)
		return enter(r);
	if (to == QUEUE_PLACE_HIDDEN)
		return refuse(
			r, "A message becomes hidden by its attribute user.rowfs.visibility.");
	if (from == QUEUE_PLACE_HIDDEN && to == QUEUE_PLACE_TAKEN)
		return refuse(r, "A hidden message cannot be taken; move it to its queue first.");
	return to == QUEUE_PLACE_TAKEN ? take(r) : give_back(r);
}

/* A message that stands there already is not replaced, except by the name of an earlier put or
 * take. */
static enum err check_destination(struct renaming *r)
{
	struct queue_found there;
	enum err e = queue_name_find(r->fs, r->move->to, r->move->to_name, &there);
	if (e != ERR_OK)
		return e == ERR_NOT_FOUND ? ERR_OK : e;
	bool same = there.exists && r->f->exists && there.message.item.id == r->f->message.item.id;
	if (there.number == 0 && !same)
		e = refuse(r, "A message is not replaced: remove it, or choose another name.");
	queue_found_fini(&there);
	return e;
}

enum err queue_name_move(struct fs *fs, const struct vmove *move, struct err_detail *detail)
{
	struct queue_found f;
	struct renaming r = { .fs = fs, .move = move, .f = &f, .detail = detail };
	if (!queue_nid_is_place(move->from) || !queue_nid_is_place(move->to) ||
		nid_id(move->from) != nid_id(move->to))
		return ERR_CROSS_DEVICE;
	if ((move->flags & RENAME_EXCHANGE) != 0)
		return err_set(detail, ERR_INVALID_INPUT, "Messages do not change places.");
	if (move->to_name.n >= sizeof(r.to.name))
		return ERR_NAME_TOO_LONG;
	r.to.queue = nid_id(move->to);
	r.to.place = queue_place_of(move->to);
	r.to.made = service_now(fs->service);
	memcpy(r.to.name, move->to_name.p, move->to_name.n);
	enum err e = queue_name_find(fs, move->from, move->name, &f);
	if (e != ERR_OK)
		return e;
	e = check_destination(&r);
	if (e == ERR_OK)
		e = perform(&r);
	queue_found_fini(&f);
	return e;
}
