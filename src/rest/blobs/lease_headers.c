/* SPDX-License-Identifier: MIT */
#include "rest/blobs/lease_headers.h"

#include "base/crypto.h"
#include "codec/edm_text.h"

/* Writes a GUID as ids are compared, in memory of the request. */
static enum err keep(struct request_context *c, const struct value *guid, struct span *ret)
{
	struct buf text = BUF_INIT(64);
	edm_text_format(guid, &text);
	char *copy = buf_ok(&text) ? arena_alloc(c->arena, text.len) : NULL;
	if (copy != NULL)
		memcpy(copy, text.data, text.len);
	*ret = span_make(copy, copy != NULL ? text.len : 0);
	buf_fini(&text);
	return copy != NULL ? ERR_OK : ERR_NO_MEMORY;
}

enum err lease_id_read(struct request_context *c, const char *header, struct span *ret)
{
	struct span s = request_header(c->request, header);
	struct value guid;
	*ret = (struct span){ 0 };
	if (s.n == 0)
		return ERR_OK;
	if (edm_text_parse(EDM_GUID, s, &guid, NULL, NULL) != ERR_OK)
		return err_set(&c->detail, ERR_HEADER_INVALID, "%s is a GUID.", header);
	return keep(c, &guid, ret);
}

enum err lease_id_make(struct request_context *c, struct span *ret)
{
	struct value guid = { .type = EDM_GUID };
	crypto_random(guid.guid, sizeof(guid.guid));
	guid.guid[6] = (guid.guid[6] & 0x0f) | 0x40;
	guid.guid[8] = (guid.guid[8] & 0x3f) | 0x80;
	return keep(c, &guid, ret);
}

static const char *status_of(enum lease_state s)
{
	return lease_is_locked(s) ? "locked" : "unlocked";
}

/* Only a lease in force has one. */
static const char *duration_of(const struct lease *l, enum lease_state s)
{
	return s != LEASE_LEASED ? NULL : l->seconds == LEASE_INFINITE ? "infinite" : "fixed";
}

void lease_headers_add(const struct request_context *c, const struct lease *l, struct response *r)
{
	enum lease_state s = lease_state(l, service_now(c->service));
	response_header_str(r, "x-ms-lease-status", status_of(s));
	response_header_str(r, "x-ms-lease-state", lease_state_name(s));
	if (duration_of(l, s) != NULL)
		response_header_str(r, "x-ms-lease-duration", duration_of(l, s));
}

void lease_xml_add(const struct lease *l, int64_t now, struct buf *out)
{
	enum lease_state s = lease_state(l, now);
	buf_addf(out, "<LeaseStatus>%s</LeaseStatus><LeaseState>%s</LeaseState>", status_of(s),
		lease_state_name(s));
	if (duration_of(l, s) != NULL)
		buf_addf(out, "<LeaseDuration>%s</LeaseDuration>", duration_of(l, s));
}
