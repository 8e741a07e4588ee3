/* SPDX-License-Identifier: MIT
 * rowfs creates the listening sockets itself, not MHD.  So it can explain errors, choose port 0,
 * and give a Unix socket its mode from the start. */
#include "rest/http/listen.h"

#include "base/compiler.h"
#include "base/span.h"
#include "base/text.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define UNIX_PREFIX "unix:"
/* Tries for "localhost:0": the second address must get the same port as the first. */
#define PORT_TRIES 16
/* A numeric address, with the interface of a link-local one. */
#define NUMERIC_HOST_MAX 80

struct where {
	bool is_unix;
	const char *path;
	char host[256];
	char port[8];
};

static enum err parse_port(
	struct span text, const char *endpoint, struct where *ret, struct err_detail *detail)
{
	uint64_t port;
	if (text.n == 0 || text.n > 5 || !text_to_u64(text, &port) || port > UINT16_MAX)
		return err_set(detail, ERR_INVALID_INPUT,
			"'%s': the port must be a number from 0 to 65535", endpoint);
	memcpy(ret->port, text.p, text.n);
	ret->port[text.n] = '\0';
	return ERR_OK;
}

/* Parses HOST:PORT or [IPV6]:PORT. */
static enum err parse_tcp(const char *endpoint, struct where *ret, struct err_detail *detail)
{
	const char *colon = strrchr(endpoint, ':');
	struct span host = span_make(endpoint, colon != NULL ? (size_t)(colon - endpoint) : 0);
	bool brackets = host.n >= 2 && host.p[0] == '[' && host.p[host.n - 1] == ']';
	if (brackets)
		host = span_make(host.p + 1, host.n - 2);
	if (colon == NULL || host.n == 0 || memchr(host.p, '/', host.n) != NULL)
		return err_set(detail, ERR_INVALID_INPUT,
			"'%s' is neither HOST:PORT nor unix:/PATH", endpoint);
	if (!brackets && memchr(host.p, ':', host.n) != NULL)
		return err_set(detail, ERR_INVALID_INPUT,
			"'%s': an IPv6 address is written in brackets, as in [::1]:10002",
			endpoint);
	if (host.n >= sizeof(ret->host))
		return err_set(
			detail, ERR_INVALID_INPUT, "'%.40s...': the name is too long", endpoint);
	memcpy(ret->host, host.p, host.n);
	ret->host[host.n] = '\0';
	return parse_port(span_of(colon + 1), endpoint, ret, detail);
}

static enum err parse(const char *endpoint, struct where *ret, struct err_detail *detail)
{
	*ret = (struct where){ 0 };
	if (!span_starts(span_of(endpoint), SPAN_LIT(UNIX_PREFIX)))
		return parse_tcp(endpoint, ret, detail);
	ret->is_unix = true;
	ret->path = endpoint + strlen(UNIX_PREFIX);
	if (ret->path[0] != '/')
		return err_set(detail, ERR_INVALID_INPUT,
			"'%s': the path of a Unix socket begins with /", endpoint);
	if (strlen(ret->path) >= sizeof(((struct sockaddr_un *)0)->sun_path))
		return err_set(detail, ERR_INVALID_INPUT,
			"'%.40s...': the path of a Unix socket has at most %zu bytes", endpoint,
			sizeof(((struct sockaddr_un *)0)->sun_path) - 1);
	return ERR_OK;
}

enum err endpoint_check(const char *endpoint, struct err_detail *detail)
{
	struct where p;
	return parse(endpoint, &p, detail);
}

static enum err cannot(const char *endpoint, int code, struct err_detail *detail)
{
	enum err e = err_from_errno(code);
	switch (code) {
	case EADDRINUSE:
		return err_set(detail, ERR_BUSY,
			"'%s' is in use by another process (see: ss -ltnp); end it, or choose other "
			"endpoints with rest= (port 0: any that is free)",
			endpoint);
	case EACCES:
	case EPERM:
		return err_set(detail, ERR_ACCESS,
			"'%s': %s; ports below 1024 need root, or choose another", endpoint,
			strerrordesc_np(code));
	case EADDRNOTAVAIL:
		return err_set(detail, ERR_INVALID_INPUT, "'%s' is not an address of this machine",
			endpoint);
	default:
		return err_set(detail, e, "'%s': %s", endpoint, strerrordesc_np(code));
	}
}

/* ---- TCP ---- */

static void set_port(struct sockaddr *address, in_port_t port)
{
	if (address->sa_family == AF_INET)
		((struct sockaddr_in *)(void *)address)->sin_port = port;
	else
		((struct sockaddr_in6 *)(void *)address)->sin6_port = port;
}

/* Returns the port in network order. */
static in_port_t port_of(int fd)
{
	struct sockaddr_in6 any = { 0 }; /* the port is at the same offset in both */
	socklen_t n = sizeof(any);
	if (getsockname(fd, (struct sockaddr *)&any, &n) != 0)
		return 0;
	return any.sin6_port;
}

/* Returns a listening socket, or -1 with errno. */
static int open_tcp(const struct addrinfo *a, in_port_t port, bool only_v6)
{
	struct sockaddr_storage address;
	memcpy(&address, a->ai_addr, a->ai_addrlen);
	if (port != 0)
		set_port((struct sockaddr *)&address, port);
	int fd = socket(a->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -1;
	int one = 1;
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (a->ai_family == AF_INET6 && only_v6)
		(void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one));
	if (bind(fd, (struct sockaddr *)&address, a->ai_addrlen) == 0 && listen(fd, SOMAXCONN) == 0)
		return fd;
	int code = errno;
	close(fd);
	errno = code;
	return -1;
}

static void describe_tcp(struct listener *l, const struct addrinfo *a, bool tls)
{
	char host[NUMERIC_HOST_MAX];
	if (getnameinfo(a->ai_addr, a->ai_addrlen, host, sizeof(host), NULL, 0, NI_NUMERICHOST) !=
		0)
		(void)snprintf(host, sizeof(host), "?");
	bool v6 = a->ai_family == AF_INET6;
	(void)snprintf(l->text, sizeof(l->text), "%s://%s%s%s:%u", tls ? "https" : "http",
		v6 ? "[" : "", host, v6 ? "]" : "", (unsigned)ntohs(port_of(l->fd)));
}

/* Binds both addresses of a name to one port.  An address that the machine lacks, such as an IPv6
 * one, is skipped. */
static int open_pair(const struct addrinfo *a, struct listener out[2], size_t *n, bool tls)
{
	int code = 0;
	*n = 0;
	for (; a != NULL && *n < 2; a = a->ai_next) {
		if (a->ai_family != AF_INET && a->ai_family != AF_INET6)
			continue;
		in_port_t port = *n > 0 ? port_of(out[0].fd) : 0;
		int fd = open_tcp(a, port, true);
		if (fd >= 0) {
			out[*n] = (struct listener){ .fd = fd };
			describe_tcp(&out[(*n)++], a, tls);
		} else if (errno != EADDRNOTAVAIL && errno != EAFNOSUPPORT) {
			code = errno;
			break;
		}
	}
	if (code == 0)
		return *n > 0 ? 0 : EADDRNOTAVAIL;
	while (*n > 0)
		close(out[--*n].fd);
	return code;
}

static enum err listen_tcp(const char *endpoint, const struct where *p, bool tls,
	struct listener *list, size_t *n, struct err_detail *detail)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM,
		.ai_flags = AI_PASSIVE | AI_NUMERICSERV };
	struct addrinfo *found = NULL;
	int gai = getaddrinfo(p->host, p->port, &hints, &found);
	if (gai != 0)
		return err_set(detail, ERR_INVALID_INPUT, "'%s': %s", endpoint,
			gai == EAI_SYSTEM ? strerrordesc_np(errno) : gai_strerror(gai));
	size_t added = 0;
	int code = EADDRINUSE;
	if (strcmp(p->host, "localhost") == 0) {
		bool any_port = strcmp(p->port, "0") == 0;
		for (int i = 0; code == EADDRINUSE && i < (any_port ? PORT_TRIES : 1); i++)
			code = open_pair(found, list + *n, &added, tls);
	} else {
		int fd = open_tcp(found, 0, false);
		code = fd < 0 ? errno : 0;
		if (fd >= 0) {
			list[*n] = (struct listener){ .fd = fd };
			describe_tcp(&list[*n], found, tls);
			added = 1;
		}
	}
	freeaddrinfo(found);
	if (code != 0)
		return cannot(endpoint, code, detail);
	*n += added;
	return ERR_OK;
}

/* ---- Unix sockets ---- */

static socklen_t unix_address(const char *path, struct sockaddr_un *ret)
{
	*ret = (struct sockaddr_un){ .sun_family = AF_UNIX };
	memcpy(ret->sun_path, path, strlen(path) + 1);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path) + 1);
}

/* Removes a socket file on which no process listens.  Other files stay. */
static enum err clear_stale(const char *endpoint, const char *path, struct err_detail *detail)
{
	struct stat st;
	struct sockaddr_un address;
	if (lstat(path, &st) != 0)
		return errno == ENOENT ? ERR_OK : cannot(endpoint, errno, detail);
	if (!S_ISSOCK(st.st_mode))
		return err_set(detail, ERR_NAME_EXISTS,
			"'%s': a file of that name exists and is not a socket; it stays", endpoint);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return cannot(endpoint, errno, detail);
	socklen_t n = unix_address(path, &address);
	int code = connect(fd, (struct sockaddr *)&address, n) == 0 ? 0 : errno;
	close(fd);
	if (code == ENOENT)
		return ERR_OK;
	/* EAGAIN: a process listens, and its queue is full. */
	if (code == 0 || code == EAGAIN)
		return err_set(detail, ERR_BUSY,
			"'%s' is in use by another process (see: ss -lxp); end it, or choose another "
			"path",
			endpoint);
	if (code != ECONNREFUSED)
		return err_set(
			detail, err_from_errno(code), "'%s': %s", endpoint, strerrordesc_np(code));
	if (unlink(path) == 0 || errno == ENOENT)
		return ERR_OK;
	return err_set(detail, err_from_errno(errno), "'%s' is stale and cannot be removed: %s",
		endpoint, strerrordesc_np(errno));
}

static int open_unix(struct listener *l, bool open_to_all)
{
	struct sockaddr_un address;
	struct stat st;
	socklen_t n = unix_address(l->path, &address);
	l->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (l->fd < 0)
		return errno;
	/* The file gets the mode of the socket, less the umask, so it never has more. */
	if (fchmod(l->fd, 0600) == 0 && bind(l->fd, (struct sockaddr *)&address, n) == 0) {
		if (lstat(l->path, &st) == 0 && chmod(l->path, open_to_all ? 0666 : 0600) == 0 &&
			listen(l->fd, SOMAXCONN) == 0) {
			l->device = st.st_dev;
			l->inode = st.st_ino;
			return 0;
		}
		int late = errno;
		(void)unlink(l->path);
		errno = late;
	}
	int code = errno;
	close(l->fd);
	l->fd = -1;
	return code;
}

static enum err listen_unix(const char *endpoint, const struct where *p, bool open_to_all,
	struct listener *list, size_t *n, struct err_detail *detail)
{
	struct listener l = { .fd = -1, .is_unix = true };
	memcpy(l.path, p->path, strlen(p->path) + 1);
	(void)snprintf(l.text, sizeof(l.text), UNIX_PREFIX "%s", p->path);
	enum err e = clear_stale(endpoint, l.path, detail);
	if (e != ERR_OK)
		return e;
	int code = open_unix(&l, open_to_all);
	if (code != 0)
		return err_set(
			detail, err_from_errno(code), "'%s': %s", endpoint, strerrordesc_np(code));
	list[(*n)++] = l;
	return ERR_OK;
}

enum err listen_at(const char *endpoint, bool tls, bool open_to_all, struct listener *list,
	size_t *n, struct err_detail *detail)
{
	struct where p;
	enum err e = parse(endpoint, &p, detail);
	if (e != ERR_OK)
		return e;
	return p.is_unix ? listen_unix(endpoint, &p, open_to_all, list, n, detail)
			 : listen_tcp(endpoint, &p, tls, list, n, detail);
}

bool listener_is_local(const struct listener *l)
{
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	} at = { 0 };
	socklen_t n = sizeof(at);
	if (l->is_unix)
		return true;
	if (getsockname(l->fd, &at.any, &n) != 0)
		return false;
	return at.any.sa_family == AF_INET ? ntohl(at.v4.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET
					   : IN6_IS_ADDR_LOOPBACK(&at.v6.sin6_addr);
}

void listener_close(struct listener *l)
{
	struct stat st;
	if (l->fd < 0)
		return;
	if (l->is_unix && lstat(l->path, &st) == 0 && st.st_dev == l->device &&
		st.st_ino == l->inode)
		(void)unlink(l->path);
	close(l->fd);
	l->fd = -1;
}
