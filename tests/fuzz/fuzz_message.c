/* SPDX-License-Identifier: MIT
 * Messages of queues: the body of Put Message, and the texts that name a message.  A body that is read
 * can be written and read again; a key, an id or a receipt that is read is written as it was. */
#include "codec/xml.h"
#include "fuzz.h"
#include "model/limits.h"
#include "rest/queues/message_body.h"
#include "service/queue/message_name.h"

#include <string.h>
#include <strings.h>

static void body(struct span xml)
{
	struct buf text = BUF_INIT(LIMIT_MESSAGE_BYTES + 1),
		   again = BUF_INIT(LIMIT_MESSAGE_BYTES + 1);
	struct buf written = BUF_INIT(1 << 20);
	struct err_detail detail = { 0 };
	enum err e = message_body_read(xml, &text, &detail);
	if (e == ERR_OK) {
		buf_add_str(&written, "<QueueMessage><MessageText>");
		xml_add_message(&written, buf_span(&text));
		buf_add_str(&written, "</MessageText></QueueMessage>");
		MUST(buf_ok(&written) && text.len <= LIMIT_MESSAGE_BYTES);
		MUST(message_body_read(buf_span(&written), &again, NULL) == ERR_OK);
		MUST(span_eq(buf_span(&text), buf_span(&again)));
	} else {
		MUST(e == ERR_XML_INVALID || e == ERR_MESSAGE_TOO_LARGE || e == ERR_BODY_TOO_LARGE);
		MUST(e != ERR_XML_INVALID || detail.text[0] != '\0');
	}
	buf_fini(&written);
	buf_fini(&again);
	buf_fini(&text);
}

static void names(struct span s)
{
	char key[MESSAGE_KEY_CHARS + 1], id[MESSAGE_ID_CHARS + 1];
	char receipt[MESSAGE_RECEIPT_CHARS + 1];
	struct message_key k;
	int64_t ticks;
	uint64_t item;

	if (message_key_read(s, &k)) {
		MUST(k.visible >= 0 && k.inserted >= 0 && k.expires >= 0);
		MUST(span_eq(message_key_write(&k, key), s));
	}
	if (message_id_read(s, &ticks, &item)) {
		message_id_write(ticks, item, id);
		MUST(ticks >= 0 && s.n == MESSAGE_ID_CHARS && strncasecmp(id, s.p, s.n) == 0);
	}
	if (message_receipt_read(s, &ticks, &item)) {
		message_receipt_write(ticks, item, receipt);
		MUST(ticks >= 0 && span_is(s, receipt));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct span text = span_make(data, size);

	body(text);
	names(text);
	return 0;
}
