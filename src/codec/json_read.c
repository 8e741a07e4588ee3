/* SPDX-License-Identifier: MIT
 * jansson limits the depth too, but to 2,048 levels, each of which costs it stack.  So the depth is
 * counted before. */
#include "codec/json_read.h"

#include <jansson.h>

/* Also counts brackets in a text that is no JSON; it ends in any case. */
static bool too_deep(struct span text, unsigned depth)
{
	unsigned open = 0;
	bool quoted = false;
	for (size_t i = 0; i < text.n; i++) {
		char c = text.p[i];
		if (quoted && c == '\\')
			i++;
		else if (c == '"')
			quoted = !quoted;
		else if (!quoted && (c == '{' || c == '['))
			open++;
		else if (!quoted && (c == '}' || c == ']') && open > 0)
			open--;
		if (open > depth)
			return true;
	}
	return false;
}

enum err json_read(struct span text, unsigned depth, struct json_t **ret)
{
	json_error_t why;
	if (text.n == 0 || too_deep(text, depth))
		return ERR_INVALID_INPUT;
	json_t *j = json_loadb(text.p, text.n, JSON_REJECT_DUPLICATES, &why);
	if (j == NULL)
		return json_error_code(&why) == json_error_out_of_memory ? ERR_NO_MEMORY
									 : ERR_INVALID_INPUT;
	if (!json_is_object(j)) {
		json_decref(j);
		return ERR_INVALID_INPUT;
	}
	*ret = j;
	return ERR_OK;
}

void json_read_free(struct json_t *object)
{
	json_decref(object);
}

static struct span text_of(const json_t *value)
{
	return json_is_string(value)
		? span_make(json_string_value(value), json_string_length(value))
		: (struct span){ 0 };
}

bool json_read_has(const struct json_t *object, const char *name)
{
	return json_object_get(object, name) != NULL;
}

struct span json_read_text(const struct json_t *object, const char *name)
{
	return text_of(json_object_get(object, name));
}

bool json_read_is_array(const struct json_t *object, const char *name)
{
	return json_is_array(json_object_get(object, name));
}

/* jansson's iterators take objects that can change, and change none. */
const char *json_read_next(const struct json_t *object, const char *name)
{
	json_t *o = (json_t *)(uintptr_t)object;
	void *at = name == NULL ? json_object_iter(o)
				: json_object_iter_next(o, json_object_iter_at(o, name));
	return at != NULL ? json_object_iter_key(at) : NULL;
}

bool json_read_number(const struct json_t *object, const char *name, int64_t *ret)
{
	const json_t *value = json_object_get(object, name);
	double real = json_real_value(value); /* 0 for an integer */
	if (!json_is_number(value) || !(real > -9e18 && real < 9e18))
		return false;
	*ret = json_is_real(value) ? (int64_t)real : json_integer_value(value);
	return true;
}

size_t json_read_count(const struct json_t *object, const char *name)
{
	const json_t *value = json_object_get(object, name);
	return json_is_string(value) ? 1 : json_array_size(value);
}

struct span json_read_item(const struct json_t *object, const char *name, size_t i)
{
	const json_t *value = json_object_get(object, name);
	if (json_is_string(value) && i == 0)
		return text_of(value);
	return text_of(json_array_get(value, i));
}

const struct json_t *json_read_object(const struct json_t *object, const char *name, size_t i)
{
	const json_t *value = json_array_get(json_object_get(object, name), i);
	return json_is_object(value) ? value : NULL;
}
