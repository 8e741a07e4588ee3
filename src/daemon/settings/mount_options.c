/* SPDX-License-Identifier: MIT */
#include "daemon/settings/mount_options.h"

#include "base/compiler.h"
#include "base/text.h"
#include "daemon/core/path.h"
#include "service/view/views.h"

#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#define URL_SECONDS_MAX 86400
#define URL_RPS_MAX 1000000

enum option_kind {
	OPTION_ALLOW_OTHER,
	OPTION_CACHE,
	OPTION_CA_FILE,
	OPTION_CONNECTION_STRING,
	OPTION_CONTROL,
	OPTION_FLAG,     /* sets the flag of mount(2) */
	OPTION_FLAG_OFF, /* clears it */
	OPTION_GID,
	OPTION_HARD,
	OPTION_IGNORED, /* means something to fstab, mount(8) or systemd only */
	OPTION_KERNEL,  /* goes on as it is */
	OPTION_MAX_RPS,
	OPTION_REFUSED,
	OPTION_REMOUNT,
	OPTION_REST, /* with serve: of the socket */
	OPTION_RO,
	OPTION_RW,
	OPTION_SHARED, /* with serve: of the process */
	OPTION_SHOWN,  /* what the kernel shows of a mount, and mount(8) says again at a remount */
	OPTION_SNAPSHOT_LIFETIME,
	OPTION_SNAPSHOT_LOG,
	OPTION_SOFT,
	OPTION_SOURCE,
	OPTION_SUBTYPE,
	OPTION_SYNC,
	OPTION_TIMEOUT,
	OPTION_TRASH,
	OPTION_TRASH_AGE,
	OPTION_UID,
	OPTION_UMASK,
};

/* Keep sorted.  A name that ends in '=' takes a value. */
static const struct {
	const char *name;
	enum option_kind kind;
	unsigned long flag; /* of mount(2) */
	const char *why;    /* it is refused */
} table[] = {
	/* clang-format off */
	{ "_netdev", OPTION_IGNORED },
	{ "access-log-format=", OPTION_REST },
	{ "access-log-sample=", OPTION_REST },
	{ "access-log-slow=", OPTION_REST },
	{ "access-log=", OPTION_REST },
	{ "admin-public", OPTION_REST },
	{ "admin=", OPTION_REST },
	{ "allow_other", OPTION_ALLOW_OTHER },
	{ "allow_root", OPTION_REFUSED, .why =
		"is not supported: it would not hold for what the kernel remembers; use allow_other" },
	{ "async", OPTION_SYNC },
	{ "atime", OPTION_FLAG_OFF, MS_NOATIME },
	{ "auto", OPTION_IGNORED },
	{ "auto_unmount", OPTION_KERNEL },
	{ "blkdev", OPTION_REFUSED, .why = "is not supported: a store is no block device" },
	{ "blob-space=", OPTION_SHARED },
	{ "ca-file=", OPTION_CA_FILE },
	{ "cache=", OPTION_CACHE },
	{ "comment=", OPTION_IGNORED },
	{ "connection-string=", OPTION_CONNECTION_STRING },
	{ "context=", OPTION_KERNEL },
	{ "control=", OPTION_CONTROL },
	{ "default_permissions", OPTION_KERNEL },
	{ "defaults", OPTION_IGNORED },
	{ "defcontext=", OPTION_KERNEL },
	{ "dev", OPTION_IGNORED },
	{ "diratime", OPTION_IGNORED },
	{ "dirsync", OPTION_SYNC },
	{ "exec", OPTION_FLAG_OFF, MS_NOEXEC },
	{ "faults=", OPTION_REST },
	{ "fscontext=", OPTION_KERNEL },
	{ "fsname=", OPTION_SOURCE },
	{ "gid=", OPTION_GID },
	{ "group", OPTION_IGNORED },
	{ "group_id=", OPTION_SHOWN },
	{ "hard", OPTION_HARD },
	{ "iversion", OPTION_REFUSED, .why =
		"is not supported: the version of a row is its ETag (user.rowfs.etag)" },
	{ "lazytime", OPTION_IGNORED },
	{ "log-level=", OPTION_SHARED },
	{ "log=", OPTION_SHARED },
	{ "loud", OPTION_IGNORED },
	{ "mand", OPTION_REFUSED, .why = "is not supported: Linux has no mandatory locks any more" },
	{ "max-rps=", OPTION_MAX_RPS },
	{ "max_read=", OPTION_REFUSED, .why = "is not supported: rowfs and the kernel agree on it" },
	{ "noatime", OPTION_FLAG, MS_NOATIME },
	{ "noauto", OPTION_IGNORED },
	{ "nodev", OPTION_IGNORED }, /* it and nosuid hold always */
	{ "nodiratime", OPTION_IGNORED },
	{ "noexec", OPTION_FLAG, MS_NOEXEC },
	{ "nofail", OPTION_IGNORED },
	{ "nogroup", OPTION_IGNORED },
	{ "noiversion", OPTION_IGNORED },
	{ "nolazytime", OPTION_IGNORED },
	{ "nomand", OPTION_IGNORED },
	{ "noowner", OPTION_IGNORED },
	{ "norelatime", OPTION_IGNORED },
	{ "nostrictatime", OPTION_IGNORED },
	{ "nosuid", OPTION_IGNORED },
	{ "nosymfollow", OPTION_IGNORED }, /* there are no symbolic links */
	{ "nouser", OPTION_IGNORED },
	{ "nousers", OPTION_IGNORED },
	{ "oauth=", OPTION_REST },
	{ "owner", OPTION_IGNORED },
	{ "page=", OPTION_REST },
	{ "partition-target=", OPTION_SHARED },
	{ "relatime", OPTION_IGNORED }, /* fusermount3 knows no such option */
	{ "remount", OPTION_REMOUNT },
	{ "remount=", OPTION_REMOUNT },
	{ "rest-cert=", OPTION_REST },
	{ "rest-key=", OPTION_REST },
	{ "rest-tenant=", OPTION_REST },
	{ "rest-tls=", OPTION_REST },
	{ "rest-trust=", OPTION_REST },
	{ "rest=", OPTION_REST },
	{ "ro", OPTION_RO },
	{ "rootcontext=", OPTION_KERNEL },
	{ "rw", OPTION_RW },
	{ "silent", OPTION_IGNORED },
	{ "snapshot-lifetime=", OPTION_SNAPSHOT_LIFETIME },
	{ "snapshot-log=", OPTION_SNAPSHOT_LOG },
	{ "soft", OPTION_SOFT },
	{ "strictatime", OPTION_IGNORED },
	{ "subtype=", OPTION_SUBTYPE },
	{ "suid", OPTION_IGNORED },
	{ "symfollow", OPTION_IGNORED },
	{ "sync", OPTION_SYNC },
	{ "timeout=", OPTION_TIMEOUT },
	{ "trash-age=", OPTION_TRASH_AGE },
	{ "trash=", OPTION_TRASH },
	{ "uid=", OPTION_UID },
	{ "umask=", OPTION_UMASK },
	{ "user", OPTION_IGNORED },
	{ "user=", OPTION_IGNORED },
	{ "user_id=", OPTION_SHOWN },
	{ "users", OPTION_IGNORED },
	/* clang-format on */
};

struct parser {
	struct mount_options *o;
	FILE *err;
};

static bool complain(const struct parser *p, const char *option, const char *what)
{
	fprintf(p->err, "rowfs mount: option '%s' %s\n", option, what);
	return false;
}

static bool number(const struct parser *p, const char *option, const char *text, unsigned base,
	uint32_t max, uint32_t *ret)
{
	uint64_t n = 0;
	bool ok = *text != '\0';
	for (; *text != '\0' && ok; text++) {
		ok = *text >= '0' && *text < '0' + (char)base;
		n = n * base + (uint64_t)(*text - '0');
		ok = ok && n <= max;
	}
	if (!ok)
		return complain(p, option, base == 8 ? "wants an octal number" : "wants a number");
	*ret = (uint32_t)n;
	return true;
}

/* Bytes: a number, perhaps with a K, M, G or T behind it. */
static bool size(const struct parser *p, const char *option, const char *text, uint64_t *ret)
{
	return text_to_size(span_of(text), ret) || complain(p, option, "wants a size, as in 64M");
}

static bool copy(
	const struct parser *p, const char *option, const char *text, char *out, size_t cap)
{
	if (*text == '\0' || strlen(text) >= cap)
		return complain(p, option, *text == '\0' ? "wants a value" : "is too long");
	memcpy(out, text, strlen(text) + 1);
	return true;
}

static bool pass_on(const struct parser *p, const char *option)
{
	size_t used = strlen(p->o->generic), n = strlen(option);
	if (used + n + 2 > sizeof(p->o->generic))
		return complain(p, option, "is one too many");
	if (used > 0)
		p->o->generic[used++] = ',';
	memcpy(p->o->generic + used, option, n + 1);
	return true;
}

/* Absolute: the serving process works in /. */
static bool file(const struct parser *p, const char *option, const char *value, char ret[PATH_MAX])
{
	return (value[0] != '\0' && path_absolute(value, ret)) ||
		complain(p, option, "names no file");
}

enum err mount_options_set_shared(
	struct mount_options *o, const char *name, const char *value, struct err_detail *detail)
{
	uint64_t n;
	const char *wrong = NULL;
	if (strcmp(name, "blob-space") == 0) {
		if (!text_to_size(span_of(value), &o->blob_space))
			wrong = "wants a size, as in 64M";
	} else if (strcmp(name, "log") == 0) {
		if (value[0] == '\0' || !path_absolute(value, o->log))
			wrong = "names no file";
	} else if (strcmp(name, "log-level") == 0) {
		if (!log_level_parse(value, &o->log_level))
			wrong = "is error, warning, info or debug";
	} else if (strcmp(name, "partition-target") == 0) {
		if (!text_to_u64(span_of(value), &n) || n > UINT32_MAX)
			wrong = "wants a number";
		else
			o->partition_target = (uint32_t)n;
	} else {
		return rest_settings_set(&o->rest, name, value, detail);
	}
	return wrong == NULL ? ERR_OK : err_set(detail, ERR_INVALID_INPUT, "%s", wrong);
}

/* Messages about the socket name the option without its value, and tell the value where that helps. */
static bool shared_option(const struct parser *p, size_t row, const char *option, const char *value)
{
	char name[64];
	struct err_detail why = { 0 };
	(void)snprintf(
		name, sizeof(name), "%.*s", (int)strcspn(table[row].name, "="), table[row].name);
	enum err e = mount_options_set_shared(p->o, name, value, &why);
	return e == ERR_OK ||
		complain(p, table[row].kind == OPTION_REST ? table[row].name : option,
			err_message(e, &why));
}

/* One option of the mount of a URL. */
static bool url_option(const struct parser *p, size_t row, const char *option, const char *value)
{
	struct url_options *o = &p->o->url;
	enum option_kind kind = table[row].kind;
	o->given = table[row].name;
	if (kind == OPTION_CA_FILE || kind == OPTION_CONNECTION_STRING)
		return file(p, option, value,
			kind == OPTION_CA_FILE ? o->ca_file : o->connection_string);
	if (kind == OPTION_HARD || kind == OPTION_SOFT) {
		o->hard = kind == OPTION_HARD;
		return true;
	}
	if (kind == OPTION_CACHE)
		return number(p, option, value, 10, URL_SECONDS_MAX, &o->cache_s);
	if (kind == OPTION_MAX_RPS)
		return number(p, option, value, 10, URL_RPS_MAX, &o->rps) &&
			(o->rps > 0 || complain(p, option, "is at least 1"));
	return number(p, option, value, 10, URL_SECONDS_MAX, &o->timeout_s) &&
		(o->timeout_s > 0 || complain(p, option, "is at least 1"));
}

static bool apply(const struct parser *p, size_t row, const char *option)
{
	struct mount_options *o = p->o;
	enum option_kind kind = table[row].kind;
	const char *equals = strchr(option, '=');
	const char *value = equals != NULL ? equals + 1 : "";
	uint32_t n = 0;
	bool ok = true;
	switch (kind) {
	case OPTION_ALLOW_OTHER:
		o->fs.allow_other = true;
		break;
	case OPTION_GID:
		ok = number(p, option, value, 10, UINT32_MAX - 1, &n);
		o->fs.gid = n;
		break;
	case OPTION_IGNORED:
		break;
	case OPTION_KERNEL:
		return pass_on(p, option);
	case OPTION_FLAG:
		o->flags_set |= table[row].flag;
		o->flags_clear &= ~table[row].flag;
		break;
	case OPTION_FLAG_OFF:
		o->flags_set &= ~table[row].flag;
		o->flags_clear |= table[row].flag;
		break;
	case OPTION_CONTROL:
		if (strcmp(value, "list") != 0 && strcmp(value, "hide") != 0)
			return complain(p, option, "is control=list or control=hide");
		p->o->fs.list_controls = strcmp(value, "list") == 0;
		return true;
	case OPTION_CA_FILE:
	case OPTION_CACHE:
	case OPTION_CONNECTION_STRING:
	case OPTION_HARD:
	case OPTION_MAX_RPS:
	case OPTION_SOFT:
	case OPTION_TIMEOUT:
		return url_option(p, row, option, value);
	case OPTION_REFUSED:
		return complain(p, option, table[row].why);
	case OPTION_REMOUNT:
		o->remount = true;
		o->remount_check = strcmp(value, "check") == 0;
		return equals == NULL || o->remount_check || complain(p, option, "is not known");
	case OPTION_RO:
	case OPTION_RW:
		o->fs.read_only = kind == OPTION_RO;
		o->access_given = true;
		break;
	case OPTION_REST:
	case OPTION_SHARED:
		return shared_option(p, row, option, value);
	case OPTION_SHOWN:
		o->shown = true;
		break;
	case OPTION_SNAPSHOT_LIFETIME:
		ok = number(p, option, value, 10, UINT32_MAX, &n);
		o->fs.snapshot_lifetime_s = n;
		break;
	case OPTION_SNAPSHOT_LOG:
		return size(p, option, value, &o->fs.snapshot_log);
	case OPTION_SOURCE:
		return copy(p, option, value, o->source, sizeof(o->source));
	case OPTION_SUBTYPE:
		return strcmp(value, "rowfs") == 0 || complain(p, option, "can only be rowfs");
	case OPTION_SYNC:
		o->sync = strcmp(option, "async") != 0;
		break;
	case OPTION_TRASH:
		return size(p, option, value, &o->fs.trash.bytes);
	case OPTION_TRASH_AGE:
		ok = number(p, option, value, 10, UINT32_MAX, &n);
		o->fs.trash.age_ticks = n * TICKS_PER_SECOND;
		break;
	case OPTION_UID:
		ok = number(p, option, value, 10, UINT32_MAX - 1, &n);
		o->fs.uid = n;
		break;
	case OPTION_UMASK:
		ok = number(p, option, value, 8, 0777, &n);
		o->fs.umask = n;
		break;
	}
	return ok;
}

/* The row of the table, ARRAY_LEN(table) where there is none. */
static size_t find(const char *option)
{
	const char *equals = strchr(option, '=');
	size_t n = equals != NULL ? (size_t)(equals - option) + 1 : strlen(option);
	size_t i = 0;
	while (i < ARRAY_LEN(table) &&
		(strlen(table[i].name) != n || memcmp(table[i].name, option, n) != 0))
		i++;
	return i;
}

/* What is wrong with an option that is not in the table. */
static const char *unknown(const char *option)
{
	char other[64];
	int n = (int)strcspn(option, "=");
	bool valued = option[n] == '=';
	int len = snprintf(other, sizeof(other), "%.*s%s", n, option, valued ? "" : "=");
	if (len < (int)sizeof(other) && find(other) < ARRAY_LEN(table))
		return valued ? "takes no value" : "wants a value; see: rowfs help mount";
	return "is not known; see: rowfs help mount";
}

static bool means_nothing(const char *option)
{
	return strncmp(option, "x-", 2) == 0 || strncmp(option, "X-", 2) == 0;
}

static bool one_option(void *arg, const char *option)
{
	const struct parser *p = arg;
	if (means_nothing(option))
		return true;
	size_t row = find(option);
	return row < ARRAY_LEN(table) ? apply(p, row, option)
				      : complain(p, option, unknown(option));
}

/* Splits at commas; a backslash takes the next byte as it is.  False where fn says so, or
 * after a message. */
static bool list(const char *text, bool (*fn)(void *arg, const char *option), void *arg, FILE *err)
{
	char option[PATH_MAX + 64];
	size_t n = 0;
	for (;; text++) {
		bool ends = *text == ',' || *text == '\0';
		if (ends) {
			option[n] = '\0';
			if (n > 0 && !fn(arg, option))
				return false;
			n = 0;
			if (*text == '\0')
				return true;
			continue;
		}
		if (*text == '\\' && text[1] != '\0')
			text++;
		if (n + 1 == sizeof(option)) {
			option[40] = '\0';
			return complain(&(struct parser){ NULL, err }, option, "is too long");
		}
		option[n++] = *text;
	}
}

static bool each(
	const struct args *args, bool (*fn)(void *arg, const char *option), void *arg, FILE *err)
{
	for (int i = 0; i < args->ngiven; i++)
		if (strcmp(args->given[i].spec->name, "options") == 0 &&
			!list(args->given[i].value, fn, arg, err))
			return false;
	return true;
}

struct search {
	const char *wanted;
};

/* Stops at the option that is looked for. */
static bool is_other(void *arg, const char *option)
{
	const struct search *s = arg;
	return strcmp(option, s->wanted) != 0;
}

struct comparison {
	const struct mount_options *now;
	struct parser parser;
};

static bool can_be_said(void *arg, const char *option)
{
	const struct comparison *c = arg;
	size_t row = find(option);
	if (means_nothing(option) || row == ARRAY_LEN(table) || table[row].flag != 0)
		return true;
	enum option_kind kind = table[row].kind;
	if (kind == OPTION_IGNORED || kind == OPTION_REMOUNT || kind == OPTION_RO ||
		kind == OPTION_RW || kind == OPTION_SHOWN)
		return true;
	if (kind == OPTION_SYNC && c->now->sync == (strcmp(option, "async") != 0))
		return true;
	if (c->now->fs.allow_other && strcmp(option, "default_permissions") == 0)
		return true;
	struct search search = { option };
	if (kind != OPTION_SYNC && !each(c->now->args, is_other, &search, c->parser.err))
		return true;
	return complain(&c->parser, option,
		"is not one of this mount and cannot become one: unmount it, and mount it again");
}

bool mount_options_unchanged(const struct mount_options *now, const struct args *wanted, FILE *err)
{
	struct comparison c = { now, { NULL, err } };
	return each(wanted, can_be_said, &c, err);
}

/* Only those that are set: libfuse 3.17 does not know "atime". */
static bool pass_flags(const struct parser *p)
{
	for (size_t i = 0; i < ARRAY_LEN(table); i++)
		if (table[i].kind == OPTION_FLAG && (p->o->flags_set & table[i].flag) != 0 &&
			!pass_on(p, table[i].name))
			return false;
	return true;
}

bool mount_options_parse(const struct args *args, struct mount_options *ret, FILE *err)
{
	*ret = (struct mount_options){ 0 };
	ret->fs.uid = geteuid();
	ret->fs.gid = getegid();
	ret->fs.umask = 022;
	ret->fs.version = ROWFS_VERSION;
	ret->fs.trash = (struct trash_limits)TRASH_LIMITS_USUAL;
	ret->fs.snapshot_log = VIEWS_LOG_BYTES;
	ret->args = args;
	ret->log_level = LOG_LEVEL_INFO;
	ret->url.cache_s = 1;
	ret->url.timeout_s = 10;
	struct parser p = { ret, err };
	if (!each(args, one_option, &p, err) || !pass_flags(&p))
		return false;
	if (ret->shown && !ret->remount)
		return complain(
			&p, "user_id, group_id", "are the kernel's words; see: rowfs help mount");
	ret->fs.generic = ret->generic[0] != '\0' ? ret->generic : NULL;
	struct err_detail why = { 0 };
	enum err e = rest_settings_finish(&ret->rest, &why);
	if (e != ERR_OK) {
		fprintf(err, "rowfs mount: %s\n", err_message(e, &why));
		return false;
	}
	return true;
}
