/* SPDX-License-Identifier: MIT
 * Blobs of blocks: the body of Put Block List, the id of a block, and the key of a block below its blob.
 * What is read can be written and read again. */
#include "base/crypto.h"
#include "fuzz.h"
#include "rest/blobs/block_list_body.h"
#include "service/blobs/staged.h"

static void body(struct span xml)
{
	static const char *const names[] = { "Committed", "Uncommitted", "Latest" };
	struct buf out = BUF_INIT(BLOCK_LIST_BUF_LIMIT), again = BUF_INIT(BLOCK_LIST_BUF_LIMIT);
	struct buf written = BUF_INIT((size_t)1 << 24);
	struct err_detail detail = { 0 };
	enum err e = block_list_body_read(xml, &out, &detail);
	if (e == ERR_OK) {
		const struct block_choice *all = (const void *)out.data;
		buf_add_str(&written, "<BlockList>");
		for (size_t i = 0; i < out.len / sizeof(*all); i++) {
			MUST(all[i].id.n > 0 && all[i].id.n <= BLOCK_ID_BYTES);
			buf_addf(&written, "<%s>", names[all[i].where]);
			base64_encode(span_make(all[i].id.bytes, all[i].id.n), &written);
			buf_addf(&written, "</%s>", names[all[i].where]);
		}
		buf_add_str(&written, "</BlockList>");
		MUST(buf_ok(&written));
		MUST(block_list_body_read(buf_span(&written), &again, NULL) == ERR_OK);
		const struct block_choice *got = (const void *)again.data;
		MUST(out.len == again.len);
		for (size_t i = 0; i < out.len / sizeof(*all); i++)
			MUST(all[i].where == got[i].where &&
				block_id_cmp(&all[i].id, &got[i].id) == 0);
	} else {
		MUST(e == ERR_XML_INVALID || e == ERR_BLOCK_ID || e == ERR_BLOCK_COUNT ||
			e == ERR_BODY_TOO_LARGE);
		MUST(e != ERR_XML_INVALID || detail.text[0] != '\0');
	}
	buf_fini(&written);
	buf_fini(&again);
	buf_fini(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct span text = span_make(data, size);
	char key[STAGED_KEY_CHARS + 1];
	struct block_id id;
	struct staged block;

	body(text);
	if (block_id_read(text, &id) == ERR_OK)
		MUST(id.n > 0 && id.n <= BLOCK_ID_BYTES);
	if (staged_key_read(text, &block))
		MUST(span_eq(staged_key(&block, key), text));
	return 0;
}
