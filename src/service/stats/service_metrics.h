/* SPDX-License-Identifier: MIT
 * The figures of a service in Prometheus' text format: operations, store, queues, held views, hot
 * partitions, faults on order.  Front ends add their own figures. */
#ifndef SERVICE_STATS_SERVICE_METRICS_H
#define SERVICE_STATS_SERVICE_METRICS_H

#include "base/buf.h"
#include "service/core/service.h"

/* Held views that have samples of their own, oldest first; all are counted. */
#define SERVICE_METRICS_VIEWS 64

/* Appends the families.  Reads counters and the store; any thread may call it. */
void service_metrics_write(struct service *service, struct buf *out);

#endif
