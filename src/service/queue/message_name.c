/* SPDX-License-Identifier: MIT */
#include "service/queue/message_name.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct span message_key_write(const struct message_key *k, char out[MESSAGE_KEY_CHARS + 1])
{
	int n = snprintf(out, MESSAGE_KEY_CHARS + 1,
		"%016" PRIx64 "%016" PRIx64 "%016" PRIx64 "%08" PRIx32, (uint64_t)k->visible,
		(uint64_t)k->inserted, (uint64_t)k->expires, k->taken);
	return span_make(out, (size_t)n);
}

/* Reads n hexadecimal digits. */
static bool digits(const char *p, size_t n, bool upper, uint64_t *ret)
{
	*ret = 0;
	for (size_t i = 0; i < n; i++) {
		char c = p[i];
		unsigned digit;
		if (c >= '0' && c <= '9')
			digit = (unsigned)(c - '0');
		else if (c >= 'a' && c <= 'f')
			digit = (unsigned)(c - 'a' + 10);
		else if (upper && c >= 'A' && c <= 'F')
			digit = (unsigned)(c - 'A' + 10);
		else
			return false;
		*ret = *ret << 4 | digit;
	}
	return true;
}

/* Reads 16 digits of a number that is not negative. */
static bool time_of(const char *p, bool upper, int64_t *ret)
{
	uint64_t n;
	bool ok = digits(p, 16, upper, &n) && n <= INT64_MAX;
	*ret = ok ? (int64_t)n : 0;
	return ok;
}

bool message_key_read(struct span key, struct message_key *ret)
{
	uint64_t taken;
	if (key.n != MESSAGE_KEY_CHARS || !time_of(key.p, false, &ret->visible) ||
		!time_of(key.p + 16, false, &ret->inserted) ||
		!time_of(key.p + 32, false, &ret->expires) || !digits(key.p + 48, 8, false, &taken))
		return false;
	ret->taken = (uint32_t)taken;
	return true;
}

void message_id_write(int64_t inserted, uint64_t item, char out[MESSAGE_ID_CHARS + 1])
{
	uint64_t a = (uint64_t)inserted;
	(void)snprintf(out, MESSAGE_ID_CHARS + 1,
		"%08" PRIx64 "-%04" PRIx64 "-%04" PRIx64 "-%04" PRIx64 "-%012" PRIx64, a >> 32,
		a >> 16 & 0xffff, a & 0xffff, item >> 48 & 0xffff, item & UINT64_C(0xffffffffffff));
}

bool message_id_read(struct span id, int64_t *ret_inserted, uint64_t *ret_item)
{
	static const unsigned char lengths[] = { 8, 4, 4, 4, 12 };
	char plain[33];
	size_t from = 0, to = 0;
	if (id.n != MESSAGE_ID_CHARS)
		return false;
	for (size_t i = 0; i < sizeof(lengths); i++) {
		if (i > 0 && id.p[from++] != '-')
			return false;
		memcpy(plain + to, id.p + from, lengths[i]);
		from += lengths[i];
		to += lengths[i];
	}
	return time_of(plain, true, ret_inserted) && digits(plain + 16, 16, true, ret_item);
}

void message_receipt_write(int64_t version, uint64_t item, char out[MESSAGE_RECEIPT_CHARS + 1])
{
	(void)snprintf(out, MESSAGE_RECEIPT_CHARS + 1, "%016" PRIx64 "%016" PRIx64,
		(uint64_t)version, item);
}

bool message_receipt_read(struct span receipt, int64_t *ret_version, uint64_t *ret_item)
{
	return receipt.n == MESSAGE_RECEIPT_CHARS && time_of(receipt.p, false, ret_version) &&
		digits(receipt.p + 16, 16, false, ret_item);
}
