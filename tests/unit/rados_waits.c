/* SPDX-License-Identifier: MIT */
#include "rados_waits.h"

#include "base/may_block.h"
#include "store/rados/functions.h"

static struct librados real;
static bool said; /* by the watched thread, as all below */
static unsigned seen, unsaid;

static void say(enum block how)
{
	said = how == BLOCK_SURE;
}

static void waits(void)
{
	if (may_block_hook != say)
		return;
	seen++;
	unsaid += !said;
	said = false;
}

static int read_bytes(rados_ioctx_t io, const char *object, char *out, size_t n, uint64_t offset)
{
	waits();
	return real.read(io, object, out, n, offset);
}

static int operate_read(rados_read_op_t op, rados_ioctx_t io, const char *object, int flags)
{
	waits();
	return real.read_op_operate(op, io, object, flags);
}

static int operate_write(rados_write_op_t op, rados_ioctx_t io, const char *object,
	struct timespec *mtime, int flags)
{
	waits();
	return real.write_op_operate2(op, io, object, mtime, flags);
}

static int wait_for_complete(rados_completion_t c)
{
	waits();
	return real.aio_wait_for_complete(c);
}

bool rados_waits_watch(void)
{
	if (librados_load(NULL) != ERR_OK)
		return false;
	real = librados;
	librados.read = read_bytes;
	librados.read_op_operate = operate_read;
	librados.write_op_operate2 = operate_write;
	librados.aio_wait_for_complete = wait_for_complete;
	may_block_hook = say;
	return true;
}

unsigned rados_waits_unsaid(void)
{
	return unsaid;
}

unsigned rados_waits_seen(void)
{
	return seen;
}
