/* SPDX-License-Identifier: MIT
 * Reads entry > content > m:properties > d:NAME.  Media entries have m:properties directly in the
 * entry; any entry may.
 *
 * Errors give the line of the text that the parser saw.  Hidden references (xml_controls.h) do not
 * change lines. */
#include "codec/atom_entry.h"

#include "codec/xml_controls.h"
#include "codec/xml_events.h"
#include "codec/xml_names.h"
#include "model/limits.h"

/* A row has up to 255 elements, and the entry some more.  libxml2 keeps all names in a table that
 * becomes slow.  So names are bounded: elements here, attributes by xml_scan.h, instructions by
 * xml_events.h. */
#define ELEMENTS_MAX 1000

enum place {
	IN_NOTHING,
	IN_ENTRY,
	IN_CONTENT,
	IN_PROPERTIES,
	IN_PROPERTY,
};

struct entry {
	struct span text; /* as the parser sees it */
	const struct atom_reader *reader;
	struct err_detail *detail;
	enum place at;
	bool in_content; /* m:properties is inside of it */
	bool has_properties;
	size_t elements;
	size_t passing; /* open elements that are skipped */
	bool hidden;    /* the text has hidden references */
	struct buf name, value;
	struct atom_property property;
	size_t offset; /* of the property */
};

/* For printf's "%.*s". */
static int shown(struct span name)
{
	return name.n < 100 ? (int)name.n : 100;
}

static enum err at(struct entry *r, enum err e, size_t offset, const char *message)
{
	return err_set_at(r->detail, e, r->text.p, offset, "%s", message);
}

static bool is(const struct xml_start *s, const char *space, const char *name)
{
	return span_is(s->name, name) && span_is(s->space, space);
}

static enum err not_an_entry(struct entry *r, const struct xml_start *s)
{
	struct err_detail why;
	(void)err_set(&why, ERR_VALUE_INVALID, "The body must be an Atom entry (%s), not '%.*s'.",
		ATOM_SPACE, shown(s->name), s->name.p);
	return at(r, ERR_VALUE_INVALID, s->offset, why.text);
}

static enum err read_type(struct entry *r, const struct xml_start *s)
{
	struct err_detail why;
	struct span type;

	r->property.type = EDM_STRING;
	if (!xml_attribute(s, ATOM_METADATA, "type", &type) || type.n == 0 ||
		edm_from_name(type, &r->property.type))
		return ERR_OK;
	/* Timestamp is dropped, so its type does not matter. */
	if (span_is(s->name, "Timestamp"))
		return ERR_OK;
	(void)err_set(&why, ERR_VALUE_INVALID,
		"'%.*s' is not a type that the property '%.*s' can have.", shown(type), type.p,
		shown(s->name), s->name.p);
	return at(r, ERR_VALUE_INVALID, s->offset, why.text);
}

static enum err read_null(struct entry *r, const struct xml_start *s)
{
	struct span null;

	r->property.is_null = false;
	if (!xml_attribute(s, ATOM_METADATA, "null", &null) || span_is(null, "false") ||
		span_is(null, "0"))
		return ERR_OK;
	r->property.is_null = true;
	return span_is(null, "true") || span_is(null, "1")
		? ERR_OK
		: at(r, ERR_VALUE_INVALID, s->offset, "m:null is either true or false.");
}

static enum err begin_property(struct entry *r, const struct xml_start *s)
{
	r->at = IN_PROPERTY;
	r->offset = s->offset;
	buf_clear(&r->name);
	buf_clear(&r->value);
	buf_add_span(&r->name, s->name);
	enum err e = read_type(r, s);
	return e == ERR_OK ? read_null(r, s) : e;
}

static enum err on_start(void *arg, const struct xml_start *s)
{
	struct entry *r = arg;

	if (++r->elements > ELEMENTS_MAX)
		return at(r, ERR_VALUE_INVALID, s->offset, "The entry has too many elements.");
	if (r->passing > 0) {
		r->passing++;
		return ERR_OK;
	}
	if (r->at == IN_NOTHING) {
		r->at = IN_ENTRY;
		return is(s, ATOM_SPACE, "entry") ? ERR_OK : not_an_entry(r, s);
	}
	if (r->at == IN_PROPERTY)
		return at(r, ERR_VALUE_INVALID, s->offset, "A property must not contain elements.");
	/* Skipping a wrong namespace would make a row without properties. */
	if (r->at == IN_PROPERTIES)
		return span_is(s->space, ATOM_DATA)
			? begin_property(r, s)
			: at(r, ERR_VALUE_INVALID, s->offset,
				  "A property must have the namespace " ATOM_DATA ".");
	if (r->at == IN_ENTRY && is(s, ATOM_SPACE, "content")) {
		r->at = IN_CONTENT;
	} else if (is(s, ATOM_METADATA, "properties")) {
		r->in_content = r->at == IN_CONTENT;
		r->has_properties = true;
		r->at = IN_PROPERTIES;
	} else {
		r->passing = 1;
	}
	return ERR_OK;
}

static enum err end_property(struct entry *r)
{
	struct err_detail why = { 0 };

	r->at = IN_PROPERTIES;
	if (!buf_ok(&r->name) || !buf_ok(&r->value))
		return ERR_NO_MEMORY;
	r->name.len = xml_name_show(r->name.data, r->name.len);
	r->property.name = buf_span(&r->name);
	if (r->hidden && r->value.len > 0)
		r->value.len = xml_controls_show(r->value.data, r->value.len);
	r->property.text = r->value.len > 0 ? buf_span(&r->value) : SPAN_LIT("");
	enum err e = r->reader->take(r->reader->arg, &r->property, &why);
	if (e == ERR_OK || e == ERR_NO_MEMORY)
		return e;
	return at(r, e, r->offset, err_message(e, &why));
}

static enum err on_end(void *arg)
{
	struct entry *r = arg;

	if (r->passing > 0)
		r->passing--;
	else if (r->at == IN_PROPERTY)
		return end_property(r);
	else if (r->at == IN_PROPERTIES)
		r->at = r->in_content ? IN_CONTENT : IN_ENTRY;
	else
		r->at = IN_ENTRY; /* nothing follows the entry */
	return ERR_OK;
}

static enum err on_text(void *arg, struct span text)
{
	struct entry *r = arg;

	if (r->at == IN_PROPERTY)
		buf_add_span(&r->value, text);
	return ERR_OK;
}

/* An entry with wrong namespaces would otherwise be an update without properties. */
static enum err check_whole(const struct entry *r)
{
	if (!r->has_properties)
		return err_set(r->detail, ERR_VALUE_INVALID,
			"The entry has no element 'properties' of %s.", ATOM_METADATA);
	return ERR_OK;
}

static const struct xml_handler handler = { on_start, on_end, on_text };

enum err atom_entry_read(
	struct span text, const struct atom_reader *reader, struct err_detail *detail)
{
	struct buf out = BUF_INIT(2 * LIMIT_DOCUMENT_BYTES);
	struct entry r = { .text = text,
		.reader = reader,
		.detail = detail,
		.name = BUF_INIT(LIMIT_DOCUMENT_BYTES),
		.value = BUF_INIT(2 * LIMIT_DOCUMENT_BYTES) };

	if (text.n > LIMIT_DOCUMENT_BYTES)
		return ERR_BODY_TOO_LARGE;
	r.hidden = xml_controls_hide(text, &out);
	if (r.hidden)
		r.text = buf_span(&out);
	enum err e = buf_ok(&out)
		? xml_events(r.text, 2 * LIMIT_DOCUMENT_BYTES, &handler, &r, detail)
		: ERR_NO_MEMORY;
	if (e == ERR_OK)
		e = check_whole(&r);
	buf_fini(&out);
	buf_fini(&r.name);
	buf_fini(&r.value);
	/* The service has one message for all unreadable input. */
	return e == ERR_XML_INVALID ? ERR_VALUE_INVALID : e;
}
