/* SPDX-License-Identifier: MIT
 * model/entity.h. */
#include "base/clock.h"
#include "check.h"
#include "model/entity.h"

static void add(struct entity *e, const char *name, struct value v)
{
	CHECK_ERR(entity_add(e, span_of(name), &v), ERR_OK);
}

static struct value int32(int32_t i)
{
	return (struct value){ .type = EDM_INT32, .int32 = i };
}

static struct value text(const char *p, size_t n)
{
	return (struct value){ .type = EDM_STRING, .bytes = span_make(p, n) };
}

static struct value binary(const char *p, size_t n)
{
	return (struct value){ .type = EDM_BINARY, .bytes = span_make(p, n) };
}

static void add_numbered(struct entity *e, int i, struct value v)
{
	char name[16];

	(void)snprintf(name, sizeof(name), "p%03d", i);
	CHECK_ERR(entity_add(e, arena_copy(&e->arena, span_of(name)), &v), ERR_OK);
}

/* A property that cannot be, or is just possible, by itself. */
static enum err check_one(const char *name, struct value v)
{
	struct entity e = { 0 };
	enum err err;

	add(&e, name, v);
	err = entity_check(&e, NULL);
	entity_fini(&e);
	return err;
}

TEST(properties_are_found_by_name)
{
	struct entity e = { 0 };

	for (int i = 0; i < 40; i++)
		add_numbered(&e, i, int32(i));
	REQUIRE(entity_find(&e, SPAN_LIT("p039")) != NULL);
	CHECK_EQ_INT(entity_find(&e, SPAN_LIT("p039"))->value.int32, 39);
	CHECK(entity_find(&e, SPAN_LIT("p040")) == NULL);
	CHECK(entity_find(&e, SPAN_LIT("P039")) == NULL);
	entity_reset(&e);
	CHECK_EQ_INT(e.nprops, 0);
	CHECK(e.cap >= 40);
	CHECK(entity_find(&e, SPAN_LIT("p039")) == NULL);
	entity_fini(&e);
}

TEST(the_size_follows_the_formula)
{
	struct entity e = { 0 };

	CHECK_EQ_INT(entity_size(&e), 4);
	e.pk = SPAN_LIT("ab");
	e.rk = SPAN_LIT("\xf0\x9f\x98\x80");
	e.has_pk = e.has_rk = true;
	CHECK_EQ_INT(entity_size(&e), 4 + 2 * (2 + 2));
	add(&e, "ab", text("\xc3\xa9x", 3));
	CHECK_EQ_INT(entity_size(&e), 12 + 8 + 4 + 2 * 2 + 4);
	add(&e, "b", binary("xyz", 3));
	CHECK_EQ_INT(entity_size(&e), 32 + 8 + 2 + 3 + 4);
	add(&e, "c", int32(1));
	CHECK_EQ_INT(entity_size(&e), 49 + 10 + 4);
	add(&e, "d", (struct value){ .type = EDM_GUID });
	CHECK_EQ_INT(entity_size(&e), 63 + 10 + 16);
	add(&e, "e", (struct value){ .type = EDM_BOOLEAN });
	add(&e, "f", (struct value){ .type = EDM_INT64 });
	add(&e, "g", (struct value){ .type = EDM_DOUBLE });
	add(&e, "h", (struct value){ .type = EDM_DATETIME });
	CHECK_EQ_INT(entity_size(&e), 89 + 11 + 3 * 18);
	entity_fini(&e);
}

TEST(an_entity_has_at_most_252_properties)
{
	struct entity e = { 0 };

	for (int i = 0; i < 252; i++)
		add_numbered(&e, i, int32(i));
	CHECK_ERR(entity_check(&e, NULL), ERR_OK);
	add(&e, "one_more", int32(1));
	CHECK_ERR(entity_check(&e, NULL), ERR_TOO_MANY_PROPERTIES);
	entity_fini(&e);
}

TEST(a_property_is_there_once)
{
	struct entity e = { 0 };
	struct err_detail d;

	for (int i = 0; i < 100; i++)
		add_numbered(&e, i, int32(i));
	add(&e, "p050", int32(1));
	CHECK_ERR(entity_check(&e, &d), ERR_PROPERTY_DUPLICATE);
	CHECK(strstr(d.text, "p050") != NULL);
	entity_fini(&e);
}

TEST(a_string_has_at_most_32768_units)
{
	static char s[4 * 16385];

	memset(s, 's', sizeof(s));
	CHECK_ERR(check_one("a", text(s, 32768)), ERR_OK);
	CHECK_ERR(check_one("a", text(s, 32769)), ERR_PROPERTY_TOO_LARGE);
	for (size_t i = 0; i < sizeof(s); i += 4)
		memcpy(s + i, "\xf0\x9f\x98\x80", 4);
	CHECK_ERR(check_one("a", text(s, 4 * 16384)), ERR_OK);
	CHECK_ERR(check_one("a", text(s, 4 * 16385)), ERR_PROPERTY_TOO_LARGE);
}

TEST(a_binary_has_at_most_65536_bytes)
{
	static char s[65537];

	CHECK_ERR(check_one("a", binary(s, 65536)), ERR_OK);
	CHECK_ERR(check_one("a", binary(s, 65537)), ERR_PROPERTY_TOO_LARGE);
}

TEST(values_and_names_are_checked)
{
	CHECK_ERR(check_one("a", (struct value){ .type = EDM_DATETIME, .ticks = 0 }), ERR_OK);
	CHECK_ERR(
		check_one("a", (struct value){ .type = EDM_DATETIME, .ticks = TICKS_MAX }), ERR_OK);
	CHECK_ERR(check_one("a", (struct value){ .type = EDM_DATETIME, .ticks = -1 }),
		ERR_OUT_OF_RANGE);
	CHECK_ERR(check_one("a", (struct value){ .type = EDM_DATETIME, .ticks = TICKS_MAX + 1 }),
		ERR_OUT_OF_RANGE);
	CHECK_ERR(check_one("a", text("\xff", 1)), ERR_VALUE_INVALID);
	CHECK_ERR(check_one("a b", int32(1)), ERR_PROPERTY_NAME_INVALID);
	CHECK_ERR(check_one("Timestamp", int32(1)), ERR_PROPERTY_DUPLICATE);
	CHECK_ERR(check_one("timestamp", int32(1)), ERR_OK);
}

TEST(keys_are_checked_where_they_are)
{
	struct entity e = { .pk = SPAN_LIT("a/b"), .rk = SPAN_LIT("ok") };

	CHECK_ERR(entity_check(&e, NULL), ERR_OK);
	e.has_pk = true;
	CHECK_ERR(entity_check(&e, NULL), ERR_KEY_INVALID);
	e.has_pk = false;
	e.has_rk = true;
	CHECK_ERR(entity_check(&e, NULL), ERR_OK);
	entity_fini(&e);
}

TEST(an_entity_has_at_most_one_mebibyte)
{
	static char s[65536];
	struct entity e = {
		.has_pk = true, .has_rk = true, .pk = SPAN_LIT("p"), .rk = SPAN_LIT("r")
	};
	size_t left;

	/* 15 times 8 + 2 * 4 + 4 + 65536, and one that fills the rest. */
	for (int i = 0; i < 15; i++)
		add_numbered(&e, i, binary(s, 65536));
	left = LIMIT_ENTITY_BYTES - entity_size(&e) - (8 + 2 + 4);
	add(&e, "z", binary(s, left));
	CHECK_EQ_INT(entity_size(&e), 1048576);
	CHECK_ERR(entity_check(&e, NULL), ERR_OK);
	e.props[15].value.bytes.n++;
	CHECK_ERR(entity_check(&e, NULL), ERR_ENTITY_TOO_LARGE);
	entity_fini(&e);
}

TEST(merge_replaces_in_place_and_appends_with_copies)
{
	struct entity into = { 0 }, patch = { 0 };
	char name[] = "new", bytes[] = "value";

	add(&into, "a", int32(1));
	add(&into, "b", int32(2));
	add(&patch, "a", text(bytes, 5));
	add(&patch, name, binary(bytes, 5));
	CHECK_ERR(entity_merge(&into, &patch), ERR_OK);
	memset(name, 'x', 3);
	memset(bytes, 'x', 5);
	entity_fini(&patch);
	REQUIRE(into.nprops == 3);
	CHECK(span_is(into.props[0].name, "a"));
	CHECK_EQ_INT(into.props[0].value.type, EDM_STRING);
	CHECK(span_is(into.props[0].value.bytes, "value"));
	CHECK_EQ_INT(into.props[1].value.int32, 2);
	CHECK(span_is(into.props[2].name, "new"));
	CHECK_EQ_INT(into.props[2].value.type, EDM_BINARY);
	entity_fini(&into);
}

RUN_TESTS(T(properties_are_found_by_name), T(the_size_follows_the_formula),
	T(an_entity_has_at_most_252_properties), T(a_property_is_there_once),
	T(a_string_has_at_most_32768_units), T(a_binary_has_at_most_65536_bytes),
	T(values_and_names_are_checked), T(keys_are_checked_where_they_are),
	T(an_entity_has_at_most_one_mebibyte), T(merge_replaces_in_place_and_appends_with_copies))
