/* SPDX-License-Identifier: MIT
 * model/filename.h. */
#include "base/text.h"
#include "check.h"
#include "model/filename.h"
#include "model/key.h"

static const char *encode(struct span key, enum filename_kind kind)
{
	static char out[LIMIT_NAME_BYTES + 1];
	size_t n = filename_encode(key, kind, out);

	CHECK_EQ_INT(n, strlen(out));
	return out;
}

static const char *row(const char *key)
{
	return encode(span_of(key), FILENAME_ROW);
}

static const char *partition(const char *key)
{
	return encode(span_of(key), FILENAME_PARTITION);
}

static enum err decode(const char *name, enum filename_kind kind, struct filename *f)
{
	return filename_decode(span_of(name), kind, f, NULL);
}

static void is_refused(const char *name, enum filename_kind kind, enum err want)
{
	struct filename f;
	enum err got = decode(name, kind, &f);

	if (got != want || (got == ERR_OK && f.form == FILENAME_ORDINARY)) {
		check_fail(__FILE__, __LINE__, name);
		CHECK_ERR(got, want);
	}
}

static void round_trips(struct span key, enum filename_kind kind)
{
	struct filename f;
	const char *name = encode(key, kind);

	CHECK_ERR(decode(name, kind, &f), ERR_OK);
	CHECK_EQ_INT(f.form, FILENAME_KEY);
	if (!span_eq(span_make(f.key, f.key_len), key))
		check_fail(__FILE__, __LINE__, name);
	CHECK_EQ_INT(f.key[f.key_len], 0);
}

TEST(plain_keys_are_their_names)
{
	CHECK_EQ_STR(row("a"), "a.json");
	CHECK_EQ_STR(partition("a"), "a");
	CHECK_EQ_STR(partition("a b'~+\xc3\xa9"), "a b'~+\xc3\xa9");
	CHECK_EQ_STR(row("x.json"), "x.json.json");
	CHECK_EQ_STR(partition("x.json"), "x.json");
}

TEST(percent_and_a_leading_dot_are_escaped)
{
	CHECK_EQ_STR(row("100%"), "100%25.json");
	CHECK_EQ_STR(row("."), "%2E.json");
	CHECK_EQ_STR(partition(".."), "%2E.");
	CHECK_EQ_STR(partition(".batch"), "%2Ebatch");
	CHECK_EQ_STR(row("a.b."), "a.b..json");
	CHECK_EQ_STR(partition("%2E"), "%252E");
	CHECK_EQ_STR(partition("%_"), "%25_");
	CHECK_EQ_STR(row(".json"), "%2Ejson.json");
}

TEST(the_empty_key_has_a_name)
{
	CHECK_EQ_STR(row(""), "%_.json");
	CHECK_EQ_STR(partition(""), "%_");
	round_trips(SPAN_LIT(""), FILENAME_ROW);
	round_trips(SPAN_LIT(""), FILENAME_PARTITION);
}

TEST(other_names_beside_the_rows_are_ordinary)
{
	static const char *const names[] = { "a", "a.jso", "a.JSON", "json", ".json", ".a.json",
		"a.json~", "a.json.tmp", "4913", ".%zz.json", "%zz", "\xff", ".rows.ndjson" };
	struct filename f;
	char name[256];

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		CHECK_ERR(decode(names[i], FILENAME_ROW, &f), ERR_OK);
		CHECK_EQ_INT(f.form, FILENAME_ORDINARY);
	}
	memset(name, 'o', sizeof(name));
	CHECK_ERR(filename_decode(span_make(name, 255), FILENAME_ROW, &f, NULL), ERR_OK);
	CHECK_ERR(filename_decode(span_make(name, 256), FILENAME_ROW, &f, NULL), ERR_NAME_TOO_LONG);
}

TEST(a_temporary_file_of_rows_is_no_partition)
{
	struct filename f;
	static const char *const names[] = { "tmp_.rows.ndjson", "tmp_.rows.csv" };

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		char shown[32];
		CHECK(decode(names[i], FILENAME_PARTITION, &f) == ERR_OK);
		CHECK(f.form == FILENAME_ORDINARY);
		(void)snprintf(shown, sizeof(shown), "%%74%s", names[i] + 1);
		CHECK_EQ_STR(partition(names[i]), shown);
		round_trips(span_of(names[i]), FILENAME_PARTITION);
		round_trips(span_of(names[i]), FILENAME_ROW);
	}
	CHECK_EQ_STR(partition("tmp_.rows"), "tmp_.rows");
	is_refused("%74mp_.rows", FILENAME_PARTITION, ERR_NAME_INVALID);
	is_refused("a%74", FILENAME_PARTITION, ERR_NAME_INVALID);
}

TEST(other_spellings_of_a_key_are_refused)
{
	static const char *const stems[] = { "%61", "%2e", "%2Ea%2E", "a%2E", "%", "%2", "a%",
		"a%2", "%25%", "%zz", "%2G", "%5c", "%7e", "%C3%A9", "%__", "a%_", "%_a", "%_%_",
		"%~", "%~a", "a%~a", "%2525%2", "%20", "%3F%", "% 25", "%+25" };

	for (size_t i = 0; i < ARRAY_LEN(stems); i++) {
		char name[64];
		is_refused(stems[i], FILENAME_PARTITION, ERR_NAME_INVALID);
		(void)snprintf(name, sizeof(name), "%s.json", stems[i]);
		is_refused(name, FILENAME_ROW, ERR_NAME_INVALID);
	}
	is_refused(".a", FILENAME_PARTITION, ERR_NAME_INVALID);
	is_refused("", FILENAME_PARTITION, ERR_NAME_INVALID);
	is_refused("", FILENAME_ROW, ERR_NAME_INVALID);
}

TEST(names_of_illegal_keys_are_refused)
{
	static const char *const stems[] = { "%2F", "a%2Fb", "%00", "%1F", "%7F", "a\\b", "a#", "?",
		"a\nb", "\xc2\x80" };

	for (size_t i = 0; i < ARRAY_LEN(stems); i++)
		is_refused(stems[i], FILENAME_PARTITION, ERR_KEY_INVALID);
	is_refused("a%2Fb.json", FILENAME_ROW, ERR_KEY_INVALID);
	is_refused("\xff.json", FILENAME_ROW, ERR_NAME_NOT_UTF8);
	is_refused("a\xc3", FILENAME_PARTITION, ERR_NAME_NOT_UTF8);
}

TEST(a_name_has_at_most_240_bytes)
{
	char key[241];
	struct filename f;

	memset(key, 'k', sizeof(key));
	round_trips(span_make(key, 240), FILENAME_PARTITION);
	round_trips(span_make(key, 235), FILENAME_ROW);
	CHECK(!filename_is_long(span_make(key, 240), FILENAME_PARTITION));
	CHECK(filename_is_long(span_make(key, 241), FILENAME_PARTITION));
	CHECK(!filename_is_long(span_make(key, 235), FILENAME_ROW));
	CHECK(filename_is_long(span_make(key, 236), FILENAME_ROW));
	CHECK_ERR(filename_decode(span_make(key, 241), FILENAME_PARTITION, &f, NULL),
		ERR_NAME_TOO_LONG);
	/* 239 characters, one of them escaped: 241 bytes. */
	key[100] = '%';
	CHECK(filename_is_long(span_make(key, 239), FILENAME_PARTITION));
	CHECK(!filename_is_long(span_make(key, 238), FILENAME_PARTITION));
	round_trips(span_make(key, 238), FILENAME_PARTITION);
}

TEST(long_keys_take_the_digest_form)
{
	char key[512];
	struct filename f;
	const char *name;

	memset(key, 'k', sizeof(key));
	name = encode(span_make(key, sizeof(key)), FILENAME_ROW);
	CHECK_EQ_INT(strlen(name), 240);
	CHECK(memcmp(name + 181, "%~", 2) == 0);
	/* printf 'k%.0s' $(seq 512) | sha256sum | xxd -r -p | base32 */
	CHECK_EQ_STR(name + 183, "PCNET7H6EDOM3WYPSJTDIWMJVZI4GMZYI7PTXRCUADI3AQBTUVSQ.json");
	CHECK_ERR(decode(name, FILENAME_ROW, &f), ERR_OK);
	CHECK_EQ_INT(f.form, FILENAME_DIGEST);
	CHECK_EQ_INT(f.key_len, 181);
	name = encode(span_make(key, sizeof(key)), FILENAME_PARTITION);
	CHECK_EQ_INT(strlen(name), 240);
	CHECK_ERR(decode(name, FILENAME_PARTITION, &f), ERR_OK);
	CHECK_EQ_INT(f.key_len, 186);
}

TEST(the_cut_is_at_a_character)
{
	/* Four-byte characters and escapes behind 0 to 3 bytes: every remainder. */
	for (size_t lead = 0; lead < 4; lead++) {
		char key[4 * 250];
		struct filename f;
		size_t n = lead;
		memset(key, 'a', lead);
		for (; n + 4 <= 900; n += 4)
			memcpy(key + n, "\xf0\x9f\x98\x80", 4);
		const char *name = encode(span_make(key, n), FILENAME_PARTITION);
		size_t prefix = lead + (186 - lead) / 4 * 4;
		CHECK_EQ_INT(strlen(name), prefix + 54);
		CHECK_ERR(decode(name, FILENAME_PARTITION, &f), ERR_OK);
		CHECK_EQ_INT(f.key_len, prefix);
		memset(key + lead, '%', sizeof(key) - lead);
		name = encode(span_make(key, 500), FILENAME_PARTITION);
		CHECK_EQ_INT(strlen(name), lead + (186 - lead) / 3 * 3 + 54);
		CHECK_ERR(decode(name, FILENAME_PARTITION, &f), ERR_OK);
		CHECK_EQ_INT(f.key_len, lead + (186 - lead) / 3);
	}
}

/* prefix bytes of 'k', "%~", 51 times digit, last. */
static enum err decode_digest(size_t prefix, char digit, char last, enum filename_kind kind)
{
	char name[300];
	struct filename f;
	size_t n = prefix;

	memset(name, 'k', n);
	memcpy(name + n, "%~", 2);
	memset(name + n + 2, digit, 51);
	name[n + 53] = last;
	n += 54;
	if (kind == FILENAME_ROW) {
		memcpy(name + n, ".json", 5);
		n += 5;
	}
	return filename_decode(span_make(name, n), kind, &f, NULL);
}

TEST(a_digest_name_has_its_exact_form)
{
	CHECK_ERR(decode_digest(186, 'A', 'Q', FILENAME_PARTITION), ERR_OK);
	CHECK_ERR(decode_digest(181, '7', 'A', FILENAME_ROW), ERR_OK);
	CHECK_ERR(decode_digest(183, 'A', 'A', FILENAME_PARTITION), ERR_OK);
	CHECK_ERR(decode_digest(182, 'A', 'A', FILENAME_PARTITION), ERR_NAME_INVALID);
	CHECK_ERR(decode_digest(187, 'A', 'A', FILENAME_PARTITION), ERR_NAME_INVALID);
	CHECK_ERR(decode_digest(182, 'A', 'A', FILENAME_ROW), ERR_NAME_INVALID);
	CHECK_ERR(decode_digest(177, 'A', 'A', FILENAME_ROW), ERR_NAME_INVALID);
	CHECK_ERR(decode_digest(178, 'A', 'A', FILENAME_ROW), ERR_OK);
	CHECK_ERR(decode_digest(1, 'A', 'A', FILENAME_ROW), ERR_NAME_INVALID);
	CHECK_ERR(decode_digest(0, 'A', 'A', FILENAME_PARTITION), ERR_NAME_INVALID);
	CHECK_ERR(decode_digest(186, '1', 'A', FILENAME_PARTITION), ERR_NAME_INVALID);
	CHECK_ERR(decode_digest(186, 'a', 'A', FILENAME_PARTITION), ERR_NAME_INVALID);
	CHECK_ERR(decode_digest(186, 'A', 'B', FILENAME_PARTITION), ERR_NAME_INVALID);
}

static uint32_t state = 4711;

static uint32_t below(uint32_t n)
{
	state = state * 1664525u + 1013904223u;
	return (state >> 8) % n;
}

TEST(random_keys_have_one_name_and_come_back)
{
	static const uint32_t from[] = { '%', '.', 'a', '%', '2', 'E', '_', '~', ' ', 0xe9, 0x4e00,
		0x1f600 };

	for (int round = 0; round < 20000; round++) {
		char key[LIMIT_KEY_BYTES];
		size_t n = 0;
		struct filename f;
		for (uint32_t left = below(round % 2 == 0 ? 12 : 300); left > 0; left--)
			n += utf8_write(from[below(ARRAY_LEN(from))], key + n);
		struct span k = span_make(key, n);
		for (int kind = 0; kind < 2; kind++) {
			if (!filename_is_long(k, (enum filename_kind)kind)) {
				round_trips(k, (enum filename_kind)kind);
				continue;
			}
			CHECK_ERR(decode(encode(k, (enum filename_kind)kind),
					  (enum filename_kind)kind, &f),
				ERR_OK);
			CHECK_EQ_INT(f.form, FILENAME_DIGEST);
			CHECK(span_starts(k, span_make(f.key, f.key_len)));
		}
	}
}

TEST(random_names_mean_a_key_only_in_its_own_spelling)
{
	static const char from[] = "%%%25E_~.Fa";
	unsigned keys = 0;

	for (int round = 0; round < 200000; round++) {
		char name[16], again[LIMIT_NAME_BYTES + 1];
		struct filename f;
		size_t n = 1 + below(8);
		for (size_t i = 0; i < n; i++)
			name[i] = from[below(sizeof(from) - 1)];
		if (filename_decode(span_make(name, n), FILENAME_PARTITION, &f, NULL) != ERR_OK)
			continue;
		keys++;
		size_t m = filename_encode(span_make(f.key, f.key_len), FILENAME_PARTITION, again);
		if (!span_eq(span_make(again, m), span_make(name, n))) {
			check_fail(__FILE__, __LINE__, again);
			return;
		}
	}
	CHECK(keys > 1000);
}

TEST(a_name_that_needs_an_escape_is_refused_without)
{
	is_refused("a/b.json", FILENAME_ROW, ERR_KEY_INVALID);
	is_refused("a\x7f", FILENAME_PARTITION, ERR_KEY_INVALID);
	is_refused(".a", FILENAME_PARTITION, ERR_NAME_INVALID);
}

TEST(bytes_that_are_no_utf8_pass_one_by_one)
{
	CHECK_EQ_STR(encode(SPAN_LIT("a\xff\xfe"), FILENAME_PARTITION), "a\xff\xfe");
}

RUN_TESTS(T(plain_keys_are_their_names), T(percent_and_a_leading_dot_are_escaped),
	T(the_empty_key_has_a_name), T(other_names_beside_the_rows_are_ordinary),
	T(a_temporary_file_of_rows_is_no_partition), T(other_spellings_of_a_key_are_refused),
	T(names_of_illegal_keys_are_refused), T(a_name_has_at_most_240_bytes),
	T(long_keys_take_the_digest_form), T(the_cut_is_at_a_character),
	T(a_digest_name_has_its_exact_form), T(random_keys_have_one_name_and_come_back),
	T(random_names_mean_a_key_only_in_its_own_spelling),
	T(a_name_that_needs_an_escape_is_refused_without),
	T(bytes_that_are_no_utf8_pass_one_by_one))
