/* SPDX-License-Identifier: MIT */
#include "codec/xml_scan.h"

#include "base/compiler.h"

size_t xml_verbatim(struct span s)
{
	static const struct {
		struct span begin, end;
	} kinds[] = {
		{ SPAN_LIT("<![CDATA["), SPAN_LIT("]]>") },
		{ SPAN_LIT("<!--"), SPAN_LIT("-->") },
		{ SPAN_LIT("<?"), SPAN_LIT("?>") },
	};
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		struct span begin = kinds[i].begin, end = kinds[i].end;
		if (!span_starts(s, begin))
			continue;
		size_t at = begin.n + span_find(span_make(s.p + begin.n, s.n - begin.n), end);
		return at == s.n ? s.n : at + end.n;
	}
	return 0;
}

/* s begins with the < of a tag.  Returns its length and counts the quoted values. */
static size_t take_tag(struct span s, size_t *ret_quoted)
{
	size_t i = 1;

	*ret_quoted = 0;
	for (; i < s.n && s.p[i] != '>'; i++) {
		if (s.p[i] != '"' && s.p[i] != '\'')
			continue;
		const char *end = memchr(s.p + i + 1, s.p[i], s.n - i - 1);
		if (end == NULL)
			return s.n;
		++*ret_quoted;
		i = (size_t)(end - s.p);
	}
	return i;
}

bool xml_tags_are_small(struct span document, size_t *ret_offset)
{
	for (struct span s = document;;) {
		const char *p = s.n == 0 ? NULL : memchr(s.p, '<', s.n);
		if (p == NULL)
			return true;
		s = span_make(p, s.n - (size_t)(p - s.p));
		size_t quoted = 0, n = xml_verbatim(s);
		if (n == 0)
			n = take_tag(s, &quoted);
		if (quoted > XML_ATTRIBUTES_MAX) {
			*ret_offset = (size_t)(s.p - document.p);
			return false;
		}
		s = span_make(s.p + n, s.n - n);
	}
}
