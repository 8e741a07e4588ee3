/* SPDX-License-Identifier: MIT
 * Components of blobs' names as names of files: there and back. */
#include "check.h"
#include "fs/blob/names.h"

#include <stdlib.h>

static void shown(struct span component, bool beside, struct buf *out)
{
	buf_clear(out);
	blob_component_write(component, beside, out);
	CHECK(buf_ok(out));
	CHECK(out->len > 0 && out->len <= LIMIT_FILE_NAME_BYTES);
}

TEST(examples)
{
	static const struct {
		const char *component, *name;
	} examples[] = { { "a.txt", "a.txt" }, { "", "%empty" }, { ".", ".%dot" },
		{ "..", "..%dot" }, { "...", "..." }, { "a%blob", "a%%blob" },
		{ BLOB_SNAPSHOTS, ".%%snapshots" }, { "%%empty", "%%%empty" }, { "100%", "100%" },
		{ "%2F", "%2F" }, { "blob", "blob" },
		{ "x%~0123456789abcdef", "x%%~0123456789abcdef" },
		{ "x%~0123456789abcdeg", "x%~0123456789abcdeg" } };
	struct buf out = BUF_INIT(4096);
	for (size_t i = 0; i < ARRAY_LEN(examples); i++) {
		shown(span_of(examples[i].component), false, &out);
		CHECK(span_is(buf_span(&out), examples[i].name));
	}
	shown(span_of(".."), true, &out);
	CHECK(span_is(buf_span(&out), "..%dot.%blob"));
	buf_fini(&out);
}

TEST(a_snapshot_has_the_name_of_its_blob_and_its_time)
{
	const struct span time = SPAN_LIT("2019-08-14T03:43:53.2866199Z");
	struct buf out = BUF_INIT(4096);
	struct span name, at;
	char component[300];
	memset(component, 'x', sizeof(component));
	for (size_t n = 200; n <= sizeof(component); n++) {
		buf_clear(&out);
		blob_component_write_snapshot(span_make(component, n), time, &out);
		CHECK(out.len <= LIMIT_FILE_NAME_BYTES);
		CHECK(blob_component_split_snapshot(buf_span(&out), &name, &at));
		CHECK(span_eq(at, time) && (name.n == n) == (n <= LIMIT_FILE_NAME_BYTES - 29));
	}
	CHECK(!blob_component_split_snapshot(SPAN_LIT("a@2019"), &name, &at));
	CHECK(!blob_component_split_snapshot(time, &name, &at));
	CHECK(!blob_component_split_snapshot(
		SPAN_LIT("a-2019-08-14T03:43:53.2866199Z"), &name, &at));
	buf_fini(&out);
}

/* Every component comes back from its file's name, and two components never share one. */
TEST(there_and_back)
{
	static const char *const parts[] = { "%", "%", "empty", "dot", "blob", "snapshots", ".",
		"a", "\xc3\xa9", "~0123456789abcdef" };
	struct buf component = BUF_INIT(4096), out = BUF_INIT(4096);
	unsigned seed = 1;
	for (int i = 0; i < 20000; i++) {
		struct blob_component back;
		buf_clear(&component);
		for (int n = rand_r(&seed) % 6; n > 0; n--)
			buf_add_str(&component, parts[(size_t)rand_r(&seed) % ARRAY_LEN(parts)]);
		for (int beside = 0; beside < 2; beside++) {
			shown(buf_span(&component), beside, &out);
			CHECK(blob_component_read(buf_span(&out), &back));
			CHECK(back.is_file == beside && back.hash[0] == '\0');
			CHECK(span_eq(span_make(back.text, back.n), buf_span(&component)));
		}
	}
	buf_fini(&component);
	buf_fini(&out);
}

TEST(length)
{
	struct buf component = BUF_INIT(4096), out = BUF_INIT(4096);
	struct blob_component back;
	for (size_t n = 240; n < 300; n++) {
		buf_clear(&component);
		for (size_t i = 0; i + 1 < n; i += 2)
			buf_add_str(&component, "\xc3\xa9");
		if (n % 2 == 1)
			buf_add_char(&component, 'x');
		for (int beside = 0; beside < 2; beside++) {
			bool is_long = n > 255u - 6u * (unsigned)beside;
			shown(buf_span(&component), beside, &out);
			CHECK(blob_component_read(buf_span(&out), &back));
			CHECK((back.hash[0] != '\0') == is_long && back.is_file == beside);
			CHECK(blob_component_is(&back, buf_span(&component)));
			CHECK(is_long ? back.n == 200 : back.n == n);
			CHECK(!blob_component_is(&back, SPAN_LIT("other")));
		}
	}
	buf_fini(&component);
	buf_fini(&out);
}

TEST(no_component)
{
	static const char *const none[] = { "", "%blob", "a%blob", ".%blob", "a%dot", "a%empty",
		"%dot", "a%dot.%blob", ".", "..", "..%blob", "...%blob" };
	struct blob_component c;
	for (size_t i = 0; i < ARRAY_LEN(none); i++)
		CHECK(!blob_component_read(span_of(none[i]), &c));
}

/* A short component has its own name only, also if its hash is known. */
TEST(a_hash_means_only_a_long_component)
{
	struct buf out = BUF_INIT(4096);
	struct blob_component back;
	char component[256];
	memset(component, 'x', sizeof(component));
	for (size_t n = 255; n <= 256; n++) {
		buf_clear(&out);
		blob_component_write(span_make(component, 256), false, &out);
		CHECK(blob_component_read(buf_span(&out), &back));
		CHECK(blob_component_is(&back, span_make(component, n)) == (n == 256));
	}
	/* Of 255 bytes the name beside a directory has a hash, the name itself has none. */
	buf_clear(&out);
	blob_component_write(span_make(component, 255), true, &out);
	CHECK(blob_component_read(buf_span(&out), &back));
	CHECK(back.is_file && blob_component_is(&back, span_make(component, 255)));
	CHECK(blob_component_read(span_make(out.data, out.len - 6), &back));
	CHECK(!back.is_file && !blob_component_is(&back, span_make(component, 255)));
	buf_fini(&out);
}

RUN_TESTS(T(examples), T(a_snapshot_has_the_name_of_its_blob_and_its_time), T(there_and_back),
	T(length), T(no_component), T(a_hash_means_only_a_long_component))
