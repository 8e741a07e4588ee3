/* SPDX-License-Identifier: MIT
 * Tells systemd (Type=notify) how we are: the protocol is one datagram. */
#ifndef DAEMON_CORE_SD_NOTIFY_H
#define DAEMON_CORE_SD_NOTIFY_H

/* "READY=1", "STOPPING=1".  Does nothing where nobody listens. */
void sd_notify_send(const char *state);

#endif
