/* SPDX-License-Identifier: MIT
 * An open message.  A reader has the text of the moment of its open.  A writer's text is put as
 * a new message, or becomes the text of a taken one, when the file is closed. */
#ifndef FS_QUEUE_TEXT_FILE_H
#define FS_QUEUE_TEXT_FILE_H

#include "fs/core/virtual.h"
#include "fs/queue/message.h"
#include "fs/queue/names.h"

/* Opens the message for reading, and takes it over. */
enum err text_file_read(struct fs *fs, struct message *m, struct vfile **ret);
/* Opens a new message, which the number names, for writing; flags: open(2)'s. */
enum err text_file_new(struct fs *fs, uint64_t queue, uint64_t number, int flags,
	const struct caller *call, struct vfile **ret);
/* Opens a message for writing that was taken `taken` times when the caller got it. */
enum err text_file_change(struct fs *fs, const struct message *m, uint32_t taken, int flags,
	const struct caller *call, struct vfile **ret);

/* Changes the text of a message as text_file_change() does.  ERR_CONDITION_NOT_MET: it is
 * another take by now.  text NULL: only the visibility changes. */
enum err message_change(struct service *service, const struct message *m, uint32_t taken,
	int64_t visibility_s, const struct span *text, bool durable, struct err_detail *detail);
/* Puts a message under the name. */
enum err message_put_named(struct fs *fs, uint64_t number, struct queue_name *n, struct span text,
	bool durable, struct err_detail *detail);

#endif
