/* SPDX-License-Identifier: MIT
 * The body of Put and Update Message: <QueueMessage><MessageText>…</MessageText></QueueMessage>. */
#ifndef REST_QUEUES_MESSAGE_BODY_H
#define REST_QUEUES_MESSAGE_BODY_H

#include "base/buf.h"
#include "base/err.h"
#include "base/span.h"

/* More than any message needs, with each character as a reference. */
#define MESSAGE_BODY_LIMIT ((size_t)1 << 20)

/* Appends the text to an empty buffer.  Markup inside of it is dropped.  ERR_XML_INVALID: another
 * document.  ERR_MESSAGE_TOO_LARGE.  ERR_NO_MEMORY. */
enum err message_body_read(struct span body, struct buf *out, struct err_detail *detail);

#endif
