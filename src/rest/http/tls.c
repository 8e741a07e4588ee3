/* SPDX-License-Identifier: MIT
 * A replaced certificate is kept until the end.  A handshake may still use it, and GnuTLS does not
 * tell when it is finished. */
#include "rest/http/tls.h"

#include "rest/http/connection.h"
#include "rest/http/current_socket.h"
#include "rest/http/tls_files.h"

#include <dlfcn.h>
#include <gnutls/abstract.h>
#include <gnutls/gnutls.h>
#include <stdatomic.h>
#include <stdlib.h>

#define CHAIN_MAX 16

struct pair {
	struct pair *older;
	gnutls_pcert_st chain[CHAIN_MAX];
	unsigned n;
	gnutls_privkey_t key;
};

static _Atomic(struct pair *) current;

static const char forward_secrecy[] =
	"NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2:-KX-ALL:+ECDHE-ECDSA:+ECDHE-RSA:"
	"-CIPHER-ALL:+AES-256-GCM:+CHACHA20-POLY1305:+AES-128-GCM:-MAC-ALL:+AEAD";
static const char old_clients[] = "NORMAL:-VERS-TLS1.0:-VERS-TLS1.1";

/* ---- a certificate and its key ---- */

static gnutls_datum_t datum(const struct buf *b)
{
	return (gnutls_datum_t){ (unsigned char *)b->data, (unsigned)b->len };
}

/* GnuTLS checks only in credentials that both belong together. */
static int check_pair(const gnutls_datum_t *cert, const gnutls_datum_t *key)
{
	gnutls_certificate_credentials_t c;
	int code = gnutls_certificate_allocate_credentials(&c);
	if (code < 0)
		return code;
	code = gnutls_certificate_set_x509_key_mem(c, cert, key, GNUTLS_X509_FMT_PEM);
	gnutls_certificate_free_credentials(c);
	return code;
}

static void pair_free(struct pair *p)
{
	for (unsigned i = 0; i < p->n; i++)
		gnutls_pcert_deinit(&p->chain[i]);
	if (p->key != NULL)
		gnutls_privkey_deinit(p->key);
	free(p);
}

static int pair_fill(struct pair *p, const struct tls_files *files)
{
	gnutls_datum_t cert = datum(&files->cert), key = datum(&files->key);
	unsigned n = CHAIN_MAX;
	int code = check_pair(&cert, &key);
	if (code < 0)
		return code;
	code = gnutls_pcert_list_import_x509_raw(p->chain, &n, &cert, GNUTLS_X509_FMT_PEM, 0);
	if (code < 0)
		return code;
	p->n = n;
	code = gnutls_privkey_init(&p->key);
	return code < 0
		? code
		: gnutls_privkey_import_x509_raw(p->key, &key, GNUTLS_X509_FMT_PEM, NULL, 0);
}

enum err tls_load(const char *cert, const char *key, struct err_detail *detail)
{
	struct tls_files files;
	struct pair *p = calloc(1, sizeof(*p));
	if (p == NULL)
		return ERR_NO_MEMORY;
	enum err e = tls_files_read(cert, key, &files, detail);
	if (e != ERR_OK) {
		pair_free(p);
		return e;
	}
	int code = pair_fill(p, &files);
	tls_files_fini(&files);
	if (code < 0) {
		pair_free(p);
		return err_set(detail, ERR_INVALID_INPUT,
			"cannot serve with the certificate '%s' and the key '%s' (are they a pair?): "
			"%s",
			cert, key, gnutls_strerror(code));
	}
	p->older = atomic_load(&current);
	atomic_store(&current, p);
	return ERR_OK;
}

void tls_unload(void)
{
	struct pair *older;
	for (struct pair *p = atomic_exchange(&current, NULL); p != NULL; p = older) {
		older = p->older;
		pair_free(p);
	}
}

/* ---- what the library calls, see current_socket.h ---- */

#ifdef STATIC_PROGRAM
/* These are the linker's names, see --wrap in meson.build. */
#define OURS(name) __wrap_##name
#define REAL(name) __real_##name
ssize_t __real_gnutls_record_recv(gnutls_session_t, void *, size_t);
ssize_t __real_gnutls_record_send(gnutls_session_t, const void *, size_t);
ssize_t __wrap_gnutls_record_recv(gnutls_session_t, void *, size_t);
ssize_t __wrap_gnutls_record_send(gnutls_session_t, const void *, size_t);
#else
#define OURS(name) name
#define REAL(name) ((__typeof__(&name))real(&address_of_##name, #name))
static _Atomic(void *) address_of_gnutls_record_recv, address_of_gnutls_record_send;

static void *real(_Atomic(void *) *address, const char *name)
{
	void *found = atomic_load_explicit(address, memory_order_relaxed);
	if (found == NULL)
		atomic_store(address, found = dlsym(RTLD_NEXT, name));
	return found;
}
#endif

ssize_t OURS(gnutls_record_recv)(gnutls_session_t session, void *data, size_t n)
{
	current_socket_set(gnutls_transport_get_int(session));
	return REAL(gnutls_record_recv)(session, data, n);
}

ssize_t OURS(gnutls_record_send)(gnutls_session_t session, const void *data, size_t n)
{
	current_socket_set(gnutls_transport_get_int(session));
	return REAL(gnutls_record_send)(session, data, n);
}

void tls_send(void *session, struct span text)
{
	(void)gnutls_record_send(session, text.p, text.n);
	(void)gnutls_bye(session, GNUTLS_SHUT_WR);
}

/* ---- what the library asks for ---- */

static int retrieve(gnutls_session_t session, const struct gnutls_cert_retr_st *info,
	gnutls_pcert_st **chain, unsigned *n, gnutls_ocsp_data_st **ocsp, unsigned *n_ocsp,
	gnutls_privkey_t *key, unsigned *flags)
{
	struct pair *p = atomic_load(&current);
	(void)session;
	(void)info;
	*ocsp = NULL;
	*n_ocsp = *flags = 0; /* GnuTLS must not free them */
	*chain = p->chain;
	*n = p->n;
	*key = p->key;
	return 0;
}

void tls_options(bool legacy, struct MHD_OptionItem *ret)
{
	union {
		const char *text;
		void *pointer;
	} priorities = { legacy ? old_clients : forward_secrecy };
	ret[0] = (struct MHD_OptionItem){ MHD_OPTION_HTTPS_CERT_CALLBACK2, 0, (void *)retrieve };
	ret[1] = (struct MHD_OptionItem){ MHD_OPTION_HTTPS_PRIORITIES, 0, priorities.pointer };
}
