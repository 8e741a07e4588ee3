/* SPDX-License-Identifier: MIT */
#include "rest/core/signature.h"

#include "base/compiler.h"
#include "base/crypto.h"

#include <string.h>

#define SHOWN_MAX 168 /* of a string to sign; the detail has some more text */

bool signature_parse(struct span text, uint8_t out[SIGNATURE_BYTES])
{
	return base64_decode_exact(text, out, SIGNATURE_BYTES);
}

bool signature_matches(
	const struct account_keys *keys, struct span text, const uint8_t signature[SIGNATURE_BYTES])
{
	uint8_t right[SIGNATURE_BYTES];
	bool found = false;

	/* Stopping at the first matching key reveals nothing about the keys. */
	for (size_t i = 0; i < ARRAY_LEN(keys->key) && !found; i++) {
		/* Anybody could sign with an empty key. */
		if (keys->len[i] == 0)
			continue;
		crypto_hmac_sha256(span_make(keys->key[i], keys->len[i]), text, right);
		found = crypto_equal(right, signature, sizeof(right));
	}
	explicit_bzero(right, sizeof(right));
	return found;
}

/* Writes the text as one line of ASCII. */
static void show(struct span text, char out[SHOWN_MAX])
{
	size_t n = 0;

	for (size_t i = 0; i < text.n; i++) {
		char c = text.p[i];
		if (n + sizeof("\\n...") > SHOWN_MAX) {
			memcpy(out + n, "...", 3);
			n += 3;
			break;
		}
		if (c == '\n')
			out[n++] = '\\';
		out[n++] = (char)(c == '\n' ? 'n' : c < 0x20 || c > 0x7e ? '?' : c);
	}
	out[n] = '\0';
}

enum err signature_mismatch(
	const char *service, struct span string_to_sign, struct err_detail *detail)
{
	char shown[SHOWN_MAX];

	show(string_to_sign, shown);
	return err_set(detail, ERR_AUTH_FAILED,
		"The signature does not match. The service is '%s'; the string to sign is '%s'.",
		service, shown);
}
