/* SPDX-License-Identifier: MIT
 * Account and table names are ASCII.  Property names are identifiers in any script and need the
 * Unicode tables. */
#include "model/names.h"

#include "base/text.h"
#include "model/unicode_ident.h"

#include <stdbool.h>

static bool is_lower(char c)
{
	return c >= 'a' && c <= 'z';
}

static bool is_upper(char c)
{
	return c >= 'A' && c <= 'Z';
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static char lower(char c)
{
	return is_upper(c) ? (char)(c - 'A' + 'a') : c;
}

static enum err check_length(
	struct span name, size_t min, size_t max, const char *what, struct err_detail *detail)
{
	if (name.n >= min && name.n <= max)
		return ERR_OK;
	enum err e = name.n < min ? ERR_NAME_TOO_SHORT : ERR_NAME_TOO_LONG;
	return err_set(detail, e, "The name of %s has %zu to %zu characters.", what, min, max);
}

enum err account_name_check(struct span name, struct err_detail *detail)
{
	for (size_t i = 0; i < name.n; i++) {
		if (!is_lower(name.p[i]) && !is_digit(name.p[i]))
			return err_set(detail, ERR_NAME_INVALID,
				"The name of an account has lower-case letters and digits only.");
	}
	return check_length(
		name, LIMIT_ACCOUNT_NAME_MIN, LIMIT_ACCOUNT_NAME_MAX, "an account", detail);
}

static bool is_reserved(struct span name)
{
	static const char reserved[] = "tables";

	if (name.n != sizeof(reserved) - 1)
		return false;
	for (size_t i = 0; i < name.n; i++) {
		if (lower(name.p[i]) != reserved[i])
			return false;
	}
	return true;
}

enum err table_name_check(struct span name, struct err_detail *detail)
{
	for (size_t i = 0; i < name.n; i++) {
		char c = name.p[i];
		if (!is_lower(c) && !is_upper(c) && (i == 0 || !is_digit(c)))
			return err_set(detail, ERR_NAME_INVALID,
				"The name of a table has ASCII letters and digits only, and begins with a letter.");
	}
	if (is_reserved(name))
		return err_set(detail, ERR_INVALID_INPUT, "%s The name \"tables\" is reserved.",
			err_text(ERR_INVALID_INPUT));
	return check_length(name, LIMIT_TABLE_NAME_MIN, LIMIT_TABLE_NAME_MAX, "a table", detail);
}

void table_name_fold(struct span name, char *out)
{
	for (size_t i = 0; i < name.n; i++)
		out[i] = lower(name.p[i]);
}

/* what: with its article */
static enum err check_hyphenated(struct span name, const char *what, struct err_detail *detail)
{
	bool dash = true; /* so that none comes first */
	for (size_t i = 0; i < name.n; i++) {
		char c = name.p[i];
		if (!is_lower(c) && !is_digit(c) && (c != '-' || dash))
			return err_set(detail, ERR_NAME_INVALID,
				"The name of %s has lower-case letters and digits, with single hyphens between them.",
				what);
		dash = c == '-';
	}
	if (dash && name.n > 0)
		return err_set(
			detail, ERR_NAME_INVALID, "The name of %s cannot end with a hyphen.", what);
	return check_length(name, LIMIT_QUEUE_NAME_MIN, LIMIT_QUEUE_NAME_MAX, what, detail);
}

enum err queue_name_check(struct span name, struct err_detail *detail)
{
	return check_hyphenated(name, "a queue", detail);
}

enum err container_name_check(struct span name, struct err_detail *detail)
{
	if (span_is(name, "$root") || span_is(name, "$logs") || span_is(name, "$web"))
		return ERR_OK;
	return check_hyphenated(name, "a container", detail);
}

enum err blob_name_check(struct span name, struct err_detail *detail)
{
	size_t segments = 1;
	if (!utf8_valid(name))
		return ERR_NAME_NOT_UTF8;
	for (size_t i = 0; i < name.n; i++) {
		unsigned char c = (unsigned char)name.p[i];
		if (c < 0x20 || c == 0x7f)
			return err_set(detail, ERR_NAME_INVALID,
				"The name of a blob has no control characters.");
		segments += c == '/';
	}
	if (segments > LIMIT_BLOB_SEGMENTS)
		return err_set(detail, ERR_NAME_TOO_LONG,
			"The name of a blob has at most %d segments.", LIMIT_BLOB_SEGMENTS);
	if (name.n == 0)
		return ERR_NAME_TOO_SHORT;
	return utf16_len(name) <= LIMIT_BLOB_NAME_UNITS
		? ERR_OK
		: err_set(detail, ERR_NAME_TOO_LONG,
			  "The name of a blob has at most %d characters.", LIMIT_BLOB_NAME_UNITS);
}

static bool in_ranges(const struct cp_range *r, size_t n, uint32_t cp)
{
	size_t from = 0, to = n;

	while (from < to) {
		size_t mid = from + (to - from) / 2;
		if (cp > r[mid].last)
			from = mid + 1;
		else
			to = mid;
	}
	return from < n && cp >= r[from].first;
}

static bool is_ident_ascii(char c, bool first)
{
	return is_lower(c) || is_upper(c) || c == '_' || (!first && is_digit(c));
}

/* cp is not ASCII. */
static bool is_ident(uint32_t cp, bool first)
{
	if (in_ranges(ident_start, ARRAY_LEN(ident_start), cp))
		return true;
	return !first && in_ranges(ident_part, ARRAY_LEN(ident_part), cp);
}

static bool is_identifier(struct span name)
{
	for (size_t i = 0; i < name.n;) {
		uint32_t cp;
		size_t n = 1;
		if ((unsigned char)name.p[i] < 0x80) {
			if (!is_ident_ascii(name.p[i], i == 0))
				return false;
		} else {
			n = utf8_decode(span_make(name.p + i, name.n - i), &cp);
			if (n == 0 || !is_ident(cp, i == 0))
				return false;
		}
		i += n;
	}
	return name.n > 0;
}

enum err property_name_check(struct span name, struct err_detail *detail)
{
	int shown = name.n < 100 ? (int)name.n : 100;

	if (name.n > LIMIT_PROPERTY_NAME && utf16_len(name) > LIMIT_PROPERTY_NAME)
		return err_set(detail, ERR_PROPERTY_NAME_LONG,
			"The property name '%.*s...' is longer than %d characters.", shown, name.p,
			LIMIT_PROPERTY_NAME);
	if (!is_identifier(name))
		return err_set(detail, ERR_PROPERTY_NAME_INVALID,
			"The property name '%.*s' is invalid: a letter or _, then letters, digits or _.",
			shown, name.n > 0 ? name.p : "");
	return ERR_OK;
}
