/* SPDX-License-Identifier: MIT
 * The batch parser makes one pass over the lines.  It compares each line with the boundary of the
 * batch and, inside a change set, with that of the change set.  So it still finds the next
 * delimiter if a client left one out. */
#include "codec/multipart.h"

#include "base/text.h"

#include <stdint.h>
#include <string.h>
#include <strings.h>

/* Far above what clients send.  It bounds the memory for headers. */
#define HEADERS_MAX 100
#define BOUNDARY_MAX 256

enum delimiter {
	DELIMITER_NONE,
	DELIMITER_PART,      /* --batch */
	DELIMITER_END,       /* --batch-- */
	DELIMITER_INNER,     /* --changeset */
	DELIMITER_INNER_END, /* --changeset-- */
	DELIMITER_TEXT_END,
};

/* The headers of a part or of a request. */
struct head {
	struct mime_header headers[HEADERS_MAX];
	size_t n;
	size_t offset; /* of its first line */
};

struct parser {
	struct span text;
	size_t pos;          /* at the start of a line */
	size_t mark;         /* start of the line that was examined last */
	struct span outer;   /* the boundaries */
	struct span inner;   /* n is 0 outside of a change set */
	enum delimiter last; /* the last delimiter */
	size_t max_parts, cap;
	struct arena *arena;
	struct batch_body *ret;
	struct err_detail *detail;
};

static struct span skip(struct span s, size_t n)
{
	return span_make(s.p + n, s.n - n);
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static bool same_nocase(struct span a, struct span b)
{
	return a.n == b.n && strncasecmp(a.p, b.p, a.n) == 0;
}

/* For printf's "%.*s". */
static int shown(struct span s)
{
	return s.n < 80 ? (int)s.n : 80;
}

/* ---- header values ---- */

/* s begins with a quote.  Returns the length with the closing quote. */
static size_t quoted_length(struct span s)
{
	size_t i = 1;

	while (i < s.n && s.p[i] != '"')
		i += s.p[i] == '\\' && i + 1 < s.n ? 2 : 1;
	return i < s.n ? i + 1 : s.n;
}

/* Returns the length up to the next ';' outside of quotes. */
static size_t piece_length(struct span s)
{
	size_t i = 0;

	while (i < s.n && s.p[i] != ';')
		i += s.p[i] == '"' ? quoted_length(skip(s, i)) : 1;
	return i;
}

static struct span unquote(struct span s)
{
	if (s.n < 2 || s.p[0] != '"' || s.p[s.n - 1] != '"')
		return s;
	return span_make(s.p + 1, s.n - 2);
}

bool mime_parameter(struct span value, const char *name, struct span *ret)
{
	size_t n = piece_length(value);

	while (n < value.n) {
		value = skip(value, n + 1);
		n = piece_length(value);
		struct span piece = text_trim_line(span_make(value.p, n));
		const char *equals = piece.n == 0 ? NULL : memchr(piece.p, '=', piece.n);
		if (equals == NULL)
			continue;
		size_t at = (size_t)(equals - piece.p);
		if (!same_nocase(text_trim_line(span_make(piece.p, at)), span_of(name)))
			continue;
		*ret = unquote(text_trim_line(skip(piece, at + 1)));
		return true;
	}
	return false;
}

const struct span *mime_header_find(const struct mime_header *headers, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++) {
		if (same_nocase(headers[i].name, span_of(name)))
			return &headers[i].value;
	}
	return NULL;
}

static bool has_type(struct span value, const char *type)
{
	return same_nocase(text_trim_line(span_make(value.p, piece_length(value))), span_of(type));
}

/* ---- lines ---- */

static unsigned line_number(const struct parser *p, size_t offset)
{
	unsigned line = 1;

	for (size_t i = 0; i < offset; i++)
		line += p->text.p[i] == '\n';
	return line;
}

static enum err fail_at(struct parser *p, size_t offset, const char *what)
{
	return err_set_at(p->detail, ERR_INVALID_INPUT, p->text.p, offset,
		"The batch is not valid: line %u: %s.", line_number(p, offset), what);
}

static enum err fail(struct parser *p, const char *what)
{
	return fail_at(p, p->mark, what);
}

static bool at_end(const struct parser *p)
{
	return p->pos == p->text.n;
}

/* Returns the line at the cursor without its end.  *ret_next is the start of the next line. */
static struct span peek_line(const struct parser *p, size_t *ret_next)
{
	struct span rest = skip(p->text, p->pos);
	const char *end = rest.n == 0 ? NULL : memchr(rest.p, '\n', rest.n);
	size_t n = end == NULL ? rest.n : (size_t)(end - rest.p);

	*ret_next = p->pos + n + (end != NULL);
	if (n > 0 && rest.p[n - 1] == '\r')
		n--;
	return span_make(rest.p, n);
}

static bool is_delimiter(struct span line, struct span boundary, bool *ret_end)
{
	if (boundary.n == 0 || !span_starts(line, SPAN_LIT("--")))
		return false;
	line = skip(line, 2);
	if (!span_starts(line, boundary))
		return false;
	line = skip(line, boundary.n);
	*ret_end = span_starts(line, SPAN_LIT("--"));
	return text_trim_line(skip(line, *ret_end ? 2 : 0)).n == 0;
}

static enum delimiter classify(const struct parser *p, struct span line)
{
	bool end;

	if (is_delimiter(line, p->inner, &end))
		return end ? DELIMITER_INNER_END : DELIMITER_INNER;
	if (is_delimiter(line, p->outer, &end))
		return end ? DELIMITER_END : DELIMITER_PART;
	return DELIMITER_NONE;
}

/* Returns true at a delimiter or at the end of the text, consumes it and sets p->last.  Else sets
 * *ret_line to the line, which is not consumed. */
static bool take_delimiter(struct parser *p, struct span *ret_line, size_t *ret_next)
{
	p->mark = p->pos;
	if (at_end(p)) {
		p->last = DELIMITER_TEXT_END;
		return true;
	}
	*ret_line = peek_line(p, ret_next);
	p->last = classify(p, *ret_line);
	if (p->last == DELIMITER_NONE)
		return false;
	p->pos = *ret_next;
	return true;
}

/* Consumes everything up to a delimiter, and the delimiter, which is in p->last. */
static void skip_to_delimiter(struct parser *p)
{
	struct span line;
	size_t next;

	while (!take_delimiter(p, &line, &next))
		p->pos = next;
}

/* Skips empty lines, then does what take_delimiter() does. */
static bool skip_empty_lines(struct parser *p, struct span *ret_line, size_t *ret_next)
{
	while (!take_delimiter(p, ret_line, ret_next)) {
		if (text_trim_line(*ret_line).n > 0)
			return false;
		p->pos = *ret_next;
	}
	return true;
}

/* ---- heads ---- */

static bool is_token(struct span s)
{
	for (size_t i = 0; i < s.n; i++) {
		unsigned char c = (unsigned char)s.p[i];
		if (c <= 0x20 || c >= 0x7f || strchr("()<>@,;:\\\"/[]?={}", c) != NULL)
			return false;
	}
	return s.n > 0;
}

static enum err add_header(struct parser *p, struct span line, struct head *ret)
{
	const char *colon = memchr(line.p, ':', line.n);
	struct span name, value;

	if (is_blank(line.p[0]))
		return fail(p, "a header must stand on one line");
	if (colon == NULL)
		return fail(p, "expected a header, \"Name: value\"");
	name = span_make(line.p, (size_t)(colon - line.p));
	value = text_trim_line(skip(line, name.n + 1));
	if (!is_token(name))
		return fail(p, "a header's name is not valid");
	for (size_t i = 0; i < value.n; i++) {
		if ((unsigned char)value.p[i] < 0x20 && value.p[i] != '\t')
			return fail(p, "a header's value holds a control character");
	}
	if (ret->n == HEADERS_MAX)
		return fail(p, "there are too many headers");
	ret->headers[ret->n++] = (struct mime_header){ name, value };
	return ERR_OK;
}

/* Reads headers up to an empty line, or up to a delimiter in p->last if that line is missing. */
static enum err read_head(struct parser *p, struct head *ret)
{
	struct span line;
	size_t next;

	ret->n = 0;
	ret->offset = p->pos;
	while (!take_delimiter(p, &line, &next)) {
		if (line.n == 0) {
			p->pos = next;
			return ERR_OK;
		}
		enum err e = add_header(p, line, ret);
		if (e != ERR_OK)
			return e;
		p->pos = next;
	}
	return ERR_OK;
}

/* Reads the head of a part; a body must follow it. */
static enum err read_part_head(struct parser *p, struct head *ret, struct span *ret_type)
{
	const struct span *type;
	enum err e = read_head(p, ret);

	if (e != ERR_OK)
		return e;
	if (p->last != DELIMITER_NONE)
		return fail(p, "the empty line after the headers of a part is missing");
	type = mime_header_find(ret->headers, ret->n, "Content-Type");
	if (type == NULL)
		return fail_at(p, ret->offset, "the Content-Type of a part is missing");
	*ret_type = *type;
	return ERR_OK;
}

static enum err keep_headers(struct parser *p, const struct head *head, struct batch_part *part)
{
	const struct span *id = mime_header_find(head->headers, head->n, "Content-ID");

	part->headers = arena_alloc(p->arena, head->n * sizeof(*part->headers));
	if (part->headers == NULL)
		return ERR_NO_MEMORY;
	if (head->n > 0)
		memcpy(part->headers, head->headers, head->n * sizeof(*part->headers));
	part->nheaders = head->n;
	if (id != NULL)
		part->content_id = *id;
	return ERR_OK;
}

/* ---- requests ---- */

/* Reads "POST http://host/acct/t HTTP/1.1".  The target may contain spaces. */
static enum err read_request_line(struct parser *p, struct batch_part *part)
{
	struct span line;
	size_t next, first, last;

	if (skip_empty_lines(p, &line, &next))
		return fail(p, "the request of a part is missing");
	line = text_trim_line(line);
	for (first = 0; first < line.n && line.p[first] != ' ';)
		first++;
	for (last = line.n; last > first && line.p[last - 1] != ' ';)
		last--;
	part->method = span_make(line.p, first);
	if (!is_token(part->method))
		return fail(p, "expected a request, \"METHOD target HTTP/1.1\"");
	if (!span_starts(skip(line, last), SPAN_LIT("HTTP/")))
		return fail(p, "the HTTP version after the target is missing");
	part->target = text_trim_line(span_make(line.p + first, last - first));
	if (part->target.n == 0)
		return fail(p, "the target of a request is missing");
	p->pos = next;
	return ERR_OK;
}

/* Reads up to the delimiter.  The line end before the delimiter belongs to it. */
static void read_body_to_delimiter(struct parser *p, size_t start, struct span *ret)
{
	struct span line;
	size_t next, end = start;

	while (!take_delimiter(p, &line, &next)) {
		end = (size_t)(line.p - p->text.p) + line.n;
		p->pos = next;
	}
	*ret = span_make(p->text.p + start, end - start);
}

static bool parse_length(struct span s, size_t *ret)
{
	*ret = 0;
	for (size_t i = 0; i < s.n; i++) {
		if (s.p[i] < '0' || s.p[i] > '9' || *ret > SIZE_MAX / 16)
			return false;
		*ret = *ret * 10 + (size_t)(s.p[i] - '0');
	}
	return s.n > 0;
}

/* Reads so many bytes.  Some clients count characters instead of bytes, so the length can be too
 * small.  If text follows, the delimiter ends the body instead. */
static enum err read_body_of_length(
	struct parser *p, size_t start, struct span length, struct span *ret)
{
	struct span line;
	size_t n, next;

	if (!parse_length(length, &n))
		return fail_at(p, start, "the Content-Length of this request is not a number");
	if (n > p->text.n - start)
		return fail_at(p, start, "this body is shorter than its Content-Length");
	*ret = span_make(p->text.p + start, n);
	p->pos = start + n;
	if (skip_empty_lines(p, &line, &next))
		return ERR_OK;
	p->pos = start;
	read_body_to_delimiter(p, start, ret);
	return ret->n >= n ? ERR_OK
			   : fail_at(p, start, "this body is shorter than its Content-Length");
}

/* Afterwards p->last is the delimiter behind the request. */
static enum err read_body(struct parser *p, struct batch_part *part)
{
	const struct span *length =
		mime_header_find(part->headers, part->nheaders, "Content-Length");
	struct span line;
	size_t next;

	if (length != NULL && span_is(*length, "0"))
		length = NULL;
	if (skip_empty_lines(p, &line, &next))
		return length == NULL ? ERR_OK
				      : fail(p, "a request has a Content-Length but no body");
	if (length != NULL)
		return read_body_of_length(p, p->pos, *length, &part->body);
	read_body_to_delimiter(p, p->pos, &part->body);
	return ERR_OK;
}

static enum err add_part(struct parser *p, const struct batch_part *part)
{
	struct batch_body *b = p->ret;

	if (b->nparts == p->cap) {
		size_t cap = p->cap == 0 ? 8 : p->cap * 2;
		struct batch_part *grown = arena_alloc(p->arena, cap * sizeof(*grown));
		if (grown == NULL)
			return ERR_NO_MEMORY;
		if (b->nparts > 0)
			memcpy(grown, b->parts, b->nparts * sizeof(*grown));
		b->parts = grown;
		p->cap = cap;
	}
	b->parts[b->nparts++] = *part;
	return ERR_OK;
}

static enum err too_many(struct parser *p)
{
	enum err e = err_set_at(p->detail, ERR_BATCH_TOO_LARGE, p->text.p, p->pos,
		"The batch request operation exceeds the maximum %zu changes per change set.",
		p->max_parts);

	if (p->detail != NULL)
		p->detail->op = p->max_parts > 0 ? p->max_parts - 1 : 0;
	return e;
}

/* Reads a request behind the head of its part. */
static enum err read_request(struct parser *p, const struct head *outside)
{
	struct batch_part part = { .in_change_set = p->inner.n > 0,
		.change_set = p->inner.n > 0 ? p->ret->nchange_sets - 1 : 0,
		.body = SPAN_LIT("") };
	const struct span *id = mime_header_find(outside->headers, outside->n, "Content-ID");
	struct head head;
	enum err e;

	if (p->ret->nparts == p->max_parts)
		return too_many(p);
	if (id != NULL)
		part.content_id = *id;
	e = read_request_line(p, &part);
	if (e == ERR_OK)
		e = read_head(p, &head);
	if (e == ERR_OK && p->last == DELIMITER_TEXT_END)
		e = fail(p, "the text ends in the headers of a request");
	if (e == ERR_OK)
		e = keep_headers(p, &head, &part);
	if (e == ERR_OK && p->last == DELIMITER_NONE)
		e = read_body(p, &part);
	return e == ERR_OK ? add_part(p, &part) : e;
}

/* ---- parts ---- */

static enum err read_boundary(struct parser *p, struct span type, size_t offset, struct span *ret)
{
	if (!mime_parameter(type, "boundary", ret) || ret->n == 0)
		return fail_at(p, offset, "the boundary in the Content-Type is missing");
	if (ret->n > BOUNDARY_MAX)
		return fail_at(p, offset, "the boundary is too long");
	return ERR_OK;
}

static enum err read_change(struct parser *p)
{
	struct head head;
	struct span type;
	enum err e = read_part_head(p, &head, &type);

	if (e != ERR_OK)
		return e;
	if (has_type(type, "multipart/mixed"))
		return fail_at(p, head.offset, "a change set must not contain a change set");
	if (!has_type(type, "application/http"))
		return fail_at(p, head.offset, "a part in a change set is not application/http");
	return read_request(p, &head);
}

/* Reads the parts behind delimiters of this kind.  The text may end behind a delimiter: some
 * clients omit the closing one. */
static enum err read_each(struct parser *p, enum delimiter kind, enum err (*read)(struct parser *p))
{
	struct span line;
	size_t next;

	while (p->last == kind) {
		if (skip_empty_lines(p, &line, &next))
			return p->last == kind ? fail(p, "a part is empty") : ERR_OK;
		enum err e = read(p);
		if (e != ERR_OK)
			return e;
	}
	return ERR_OK;
}

static enum err read_change_set(struct parser *p, const struct head *head, struct span type)
{
	enum err e = read_boundary(p, type, head->offset, &p->inner);

	if (e != ERR_OK)
		return e;
	p->ret->nchange_sets++;
	skip_to_delimiter(p);
	if (p->last == DELIMITER_TEXT_END)
		return fail_at(p, head->offset, "the change set's first delimiter is missing");
	e = read_each(p, DELIMITER_INNER, read_change);
	p->inner.n = 0;
	/* Text between the end of a change set and the next part is ignored. */
	if (e == ERR_OK && p->last == DELIMITER_INNER_END)
		skip_to_delimiter(p);
	return e;
}

static enum err read_part(struct parser *p)
{
	struct head head;
	struct span type;
	enum err e = read_part_head(p, &head, &type);

	if (e != ERR_OK)
		return e;
	if (has_type(type, "multipart/mixed"))
		return read_change_set(p, &head, type);
	if (has_type(type, "application/http"))
		return read_request(p, &head);
	return fail_at(p, head.offset, "a part is neither multipart/mixed nor application/http");
}

static enum err read_outer_boundary(struct parser *p, struct span content_type)
{
	if (!has_type(content_type, "multipart/mixed"))
		return err_set(p->detail, ERR_INVALID_INPUT,
			"The Content-Type of a batch must be multipart/mixed, not '%.*s'.",
			shown(content_type), content_type.n > 0 ? content_type.p : "");
	if (!mime_parameter(content_type, "boundary", &p->outer) || p->outer.n == 0)
		return err_set(p->detail, ERR_INVALID_INPUT,
			"The boundary in the Content-Type of the batch is missing.");
	if (p->outer.n > BOUNDARY_MAX)
		return err_set(p->detail, ERR_INVALID_INPUT,
			"The boundary in the Content-Type of the batch is too long.");
	return ERR_OK;
}

enum err batch_body_parse(struct span content_type, struct span body, size_t max_parts,
	struct arena *arena, struct batch_body *ret, struct err_detail *detail)
{
	struct parser p = {
		.text = body, .max_parts = max_parts, .arena = arena, .ret = ret, .detail = detail
	};
	enum err e = read_outer_boundary(&p, content_type);

	*ret = (struct batch_body){ 0 };
	if (e != ERR_OK)
		return e;
	skip_to_delimiter(&p);
	if (p.last == DELIMITER_TEXT_END)
		return fail(&p, "the batch's first delimiter is missing");
	return read_each(&p, DELIMITER_PART, read_part);
}

bool batch_body_is_closed(struct span content_type, struct span body)
{
	struct parser p = { .text = body };

	if (read_outer_boundary(&p, content_type) != ERR_OK)
		return false;
	do
		skip_to_delimiter(&p);
	while (p.last == DELIMITER_PART);
	return p.last == DELIMITER_END;
}
