/* SPDX-License-Identifier: MIT
 * Speaks with systemd: readiness (Type=notify) is one datagram, and the journal is a stream. */
#ifndef DAEMON_CORE_SD_NOTIFY_H
#define DAEMON_CORE_SD_NOTIFY_H

#include <stdbool.h>

/* "READY=1", "STOPPING=1".  Does nothing where nobody listens. */
void sd_notify_send(const char *state);
/* Returns true if standard error is the journal: $JOURNAL_STREAM names its device and inode. */
bool sd_stderr_is_journal(void);

#endif
