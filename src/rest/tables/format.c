/* SPDX-License-Identifier: MIT
 * Negotiates formats.  model/versions.h says which versions have which format. */
#include "rest/tables/format.h"

#include "base/text.h"
#include "codec/multipart.h"
#include "model/versions.h"

#include <strings.h>

enum media {
	MEDIA_OTHER,
	MEDIA_ANY, /* the version's default */
	MEDIA_JSON,
	MEDIA_ATOM,
};

static bool same(struct span a, const char *b)
{
	return a.n == strlen(b) && strncasecmp(a.p, b, a.n) == 0;
}

/* Takes the text before `by`, and `by` itself.  The rest stays in *s. */
static struct span take_until(struct span *s, char by)
{
	const char *at = s->n == 0 ? NULL : memchr(s->p, by, s->n);
	size_t n = at == NULL ? s->n : (size_t)(at - s->p);
	struct span head = span_make(s->p, n);
	size_t skip = at == NULL ? n : n + 1;
	*s = span_make(s->p + skip, s->n - skip);
	return head;
}

static enum media media_of(struct span type)
{
	static const struct {
		const char *name;
		enum media media;
	} known[] = {
		{ "application/json", MEDIA_JSON },
		{ "application/atom+xml", MEDIA_ATOM },
		{ "application/atomsvc+xml", MEDIA_ATOM },
		{ "application/xml", MEDIA_ATOM },
		{ "text/xml", MEDIA_ATOM },
		{ "application/*", MEDIA_ANY },
		{ "*/*", MEDIA_ANY },
		{ "*", MEDIA_ANY },
	};
	for (size_t i = 0; i < ARRAY_LEN(known); i++)
		if (same(type, known[i].name))
			return known[i].media;
	return MEDIA_OTHER;
}

static bool speaks_json(int version)
{
	return version_has(version, VERSION_JSON);
}

static bool speaks_atom(int version)
{
	return version_has(version, VERSION_ATOM);
}

const struct format *format_default(int version)
{
	return speaks_atom(version) || !speaks_json(version) ? &format_atom : &format_json;
}

static enum err read_level(struct span odata, enum odata_level *ret, struct err_detail *detail)
{
	if (same(odata, "verbose"))
		return ERR_JSON_VERBOSE;
	if (same(odata, "minimalmetadata"))
		*ret = ODATA_MINIMAL;
	else if (same(odata, "nometadata"))
		*ret = ODATA_NONE;
	else if (same(odata, "fullmetadata"))
		*ret = ODATA_FULL;
	else
		return err_set(detail, ERR_MEDIA_TYPE,
			"'odata=%.*s' is none of nometadata, minimalmetadata, fullmetadata.",
			odata.n < 40 ? (int)odata.n : 40, odata.p);
	return ERR_OK;
}

/* Reads one media type with its parameters.  On an error *ret is unchanged. */
static enum err choose(struct span range, int version, const struct format **ret,
	enum odata_level *ret_level, struct err_detail *detail)
{
	struct span parameters = range, odata;
	enum media media = media_of(text_trim_line(take_until(&parameters, ';')));
	if (media == MEDIA_ANY)
		media = format_default(version) == &format_atom ? MEDIA_ATOM : MEDIA_JSON;
	if (media == MEDIA_OTHER)
		return ERR_MEDIA_TYPE;
	if (media == MEDIA_ATOM && !speaks_atom(version))
		return ERR_ATOM_NOT_SUPPORTED;
	if (media == MEDIA_JSON && !speaks_json(version))
		return ERR_JSON_NOT_SUPPORTED;
	enum odata_level level = ODATA_MINIMAL;
	if (media == MEDIA_JSON && mime_parameter(range, "odata", &odata)) {
		enum err e = read_level(odata, &level, detail);
		if (e != ERR_OK)
			return e;
	}
	*ret = media == MEDIA_ATOM ? &format_atom : &format_json;
	*ret_level = level;
	return ERR_OK;
}

/* Returns the weight of a range in thousandths. */
static int quality(struct span range)
{
	struct span q;
	if (!mime_parameter(range, "q", &q) || q.n == 0)
		return 1000;
	int value = 0, scale = 1000;
	for (size_t i = 0; i < q.n && scale > 0; i++) {
		if (q.p[i] == '.')
			continue;
		if (q.p[i] < '0' || q.p[i] > '9')
			return 0;
		value += (q.p[i] - '0') * scale;
		scale /= 10;
	}
	return value;
}

/* $format has short names. */
static struct span long_form(struct span format)
{
	if (same(format, "json"))
		return SPAN_LIT("application/json");
	return same(format, "atom") ? SPAN_LIT("application/atom+xml") : format;
}

enum err format_negotiate(struct span dollar_format, struct span accept, int version,
	const struct format **ret, enum odata_level *ret_level, struct err_detail *detail)
{
	if (dollar_format.p != NULL && text_trim_line(dollar_format).n > 0)
		return choose(
			long_form(text_trim_line(dollar_format)), version, ret, ret_level, detail);
	if (accept.p == NULL || text_trim_line(accept).n == 0)
		return choose(SPAN_LIT("*/*"), version, ret, ret_level, detail);

	enum err first = ERR_OK;
	struct err_detail of_first = { 0 };
	int best = 0;
	while (accept.n > 0) {
		struct span range = text_trim_line(take_until(&accept, ','));
		const struct format *format;
		enum odata_level level;
		if (range.n == 0)
			continue;
		struct err_detail why = { 0 };
		enum err e = choose(range, version, &format, &level, &why);
		int weight = quality(range);
		if (e == ERR_OK && weight > best) {
			best = weight;
			*ret = format;
			*ret_level = level;
		} else if (e != ERR_OK && first == ERR_OK) {
			first = e;
			of_first = why;
		}
	}
	if (best > 0)
		return ERR_OK;
	*detail = of_first;
	return first != ERR_OK ? first : ERR_MEDIA_TYPE;
}

enum err format_of_body(
	struct span content_type, int version, const struct format **ret, struct err_detail *detail)
{
	struct span type = content_type.p == NULL ? SPAN_LIT("") : content_type;
	type = text_trim_line(take_until(&type, ';'));
	if (type.n == 0)
		type = speaks_json(version) ? SPAN_LIT("application/json")
					    : SPAN_LIT("application/atom+xml");
	switch (media_of(type)) {
	case MEDIA_JSON:
		*ret = &format_json;
		return speaks_json(version) ? ERR_OK : ERR_JSON_NOT_SUPPORTED;
	case MEDIA_ATOM:
		*ret = &format_atom;
		return speaks_atom(version) ? ERR_OK : ERR_ATOM_NOT_SUPPORTED;
	case MEDIA_ANY:
	case MEDIA_OTHER:
		break;
	}
	return err_set(detail, ERR_MEDIA_TYPE,
		"A body of type '%.*s' is not understood; send Content-Type: application/%s.",
		type.n < 80 ? (int)type.n : 80, type.p,
		format_default(version) == &format_atom ? "atom+xml" : "json");
}
