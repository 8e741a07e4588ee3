/* SPDX-License-Identifier: MIT
 * The socket that the HTTP library is serving in this thread.  The library logs errors without
 * naming the connection; malformed.c finds it by this descriptor. */
#ifndef REST_HTTP_CURRENT_SOCKET_H
#define REST_HTTP_CURRENT_SOCKET_H

/* Each callback of the library must set it.  Between callbacks, the library's calls of recv(2),
 * send(2) and GnuTLS set it. */
void current_socket_set(int fd);
/* Returns the descriptor that was set last in this thread, or -1. */
int current_socket(void);

#endif
