/* SPDX-License-Identifier: MIT
 * mount: checks what can be checked, then serves, in a child process that reports through
 * a pipe unless -f.  The caller gets its prompt back when the mount answers; whatever
 * fails before leaves nothing behind. */
#include "cloud/credentials.h"
#include "daemon/core/command.h"
#include "daemon/core/elsewhere.h"
#include "daemon/core/path.h"
#include "daemon/mount/mountinfo.h"
#include "daemon/mount/recover.h"
#include "daemon/mount/remount.h"
#include "daemon/serve/serve.h"
#include "daemon/serve/shadow.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* Both survive until the process ends. */
struct paths {
	char store[PATH_MAX], dir[PATH_MAX];
};

/* Frees the directory of what killed servers left there. */
static int check_mounts(const char *given, const char *dir, const char *store)
{
	struct mount_entry *m = malloc(sizeof(*m));
	enum recovery r = RECOVERY_DONE;
	if (m == NULL)
		return command_fail(stderr, "mount", "out of memory");
	while (r == RECOVERY_DONE)
		r = recover_dir(dir, store, "mount", false, m);
	int code = r == RECOVERY_NOTHING ? EXIT_DONE : EXIT_FAILED;
	if (r == RECOVERY_ALIVE)
		code = command_fail(stderr, "mount",
			"'%s' is a mount of '%s' already; unmount it with: rowfs umount %s", given,
			m->source, given);
	free(m);
	return code;
}

static int check_dir(struct paths *p, const char *given, const char *store)
{
	struct stat st;
	bool resolved = path_absolute_patiently("mount", given, p->dir);
	int code = resolved ? check_mounts(given, p->dir, store) : EXIT_DONE;
	if (code != EXIT_DONE)
		return code;
	if (!resolved || stat(p->dir, &st) != 0) {
		bool missing = errno == ENOENT;
		return command_fail(stderr, "mount", "'%s': %s%s%s", given, strerrordesc_np(errno),
			missing ? "; make it with: mkdir " : "", missing ? given : "");
	}
	if (!S_ISDIR(st.st_mode))
		return command_fail(stderr, "mount", "'%s' is not a directory", given);
	return EXIT_DONE;
}

static int check_store(struct paths *p, const char *given)
{
	if (!path_of_store(given, p->store)) {
		if (errno == ENOENT)
			return command_fail(stderr, "mount",
				"there is no store '%s'; make it with: rowfs init %s", given,
				given);
		return command_fail(stderr, "mount", "'%s': %s", given, strerrordesc_np(errno));
	}
	size_t n = strlen(p->dir);
	if (strncmp(p->store, p->dir, n) == 0 && p->store[n] == '/')
		return command_fail(stderr, "mount",
			"'%s' lies in '%s', where the mount would hide it", given, p->dir);
	return EXIT_DONE;
}

/* The child's side.  Of the caller's descriptors only the first three stay, until the
 * mount answers. */
static NORETURN void become_server(struct serve *s, int ready)
{
	s->ready_fd = STDERR_FILENO + 1;
	if (ready != s->ready_fd && dup3(ready, s->ready_fd, O_CLOEXEC) < 0)
		_exit(EXIT_FAILED);
	(void)close_range((unsigned)s->ready_fd + 1, ~0u, 0);
	(void)setsid();
	if (chdir("/") != 0)
		_exit(EXIT_FAILED);
	int code = serve(s);
	_exit(code);
}

static int exit_code_of(pid_t child)
{
	int status;
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return EXIT_FAILED;
	if (WIFEXITED(status) && WEXITSTATUS(status) != EXIT_DONE)
		return WEXITSTATUS(status);
	return command_fail(stderr, "mount", "the serving process ended before the mount answered");
}

static int in_background(struct serve *s)
{
	int ready[2];
	if (pipe2(ready, O_CLOEXEC) != 0)
		return command_fail(stderr, "mount", "%s", strerrordesc_np(errno));
	(void)fflush(NULL);
	pid_t child = fork();
	if (child < 0)
		return command_fail(stderr, "mount", "cannot start the serving process: %s",
			strerrordesc_np(errno));
	if (child == 0)
		become_server(s, ready[1]);
	close(ready[1]);
	char byte;
	ssize_t n;
	do
		n = read(ready[0], &byte, 1);
	while (n < 0 && errno == EINTR);
	if (n != 1 || byte != 0)
		return exit_code_of(child);
	close(ready[0]);
	int code = mount_ask(s->dir, NULL, "mount");
	if (code == 0)
		return EXIT_DONE;
	(void)kill(child, SIGTERM);
	(void)waitpid(child, NULL, 0);
	return command_fail(stderr, "mount", "'%s' was mounted but does not answer: %s", s->dir,
		strerrordesc_np(code));
}

static bool check(const struct args *args, FILE *err)
{
	struct mount_options *o = malloc(sizeof(*o));
	bool ok = o != NULL && mount_options_parse(args, o, err);
	free(o);
	return ok;
}

/* In this process, which still has the caller's environment: finds the credential, and makes the store
 * that keeps what the mount reads. */
static int prepare_url(
	const char *url, struct mount_options *o, struct paths *p, struct endpoint *at)
{
	const char *file = o->url.connection_string;
	struct err_detail why = { 0 };
	if (o->remount)
		return command_fail(stderr, "mount",
			"the mount of a URL cannot be changed; unmount it, and mount it again");
	if (o->rest.options.nendpoints > 0)
		return command_fail(stderr, "mount",
			"rest= is for a store of this machine; use the account's own URL");
	/* So that mount -a finds the line of fstab among the mounts. */
	if (o->source[0] == '\0')
		(void)snprintf(o->source, sizeof(o->source), "%s", url);
	enum err e = credentials_find(file[0] != '\0' ? file : NULL, url, at, &why);
	if (e == ERR_OK)
		e = shadow_prepare(at, p->store, &why);
	return e == ERR_OK ? EXIT_DONE
			   : command_fail(stderr, "mount", "'%s': %s", url, err_message(e, &why));
}

static int run_mount(
	const struct args *args, struct mount_options *o, struct paths *p, struct endpoint *at)
{
	const char *store = args->words[0];
	bool url = elsewhere_is(store);
	if (url) {
		int code = prepare_url(store, o, p, at);
		if (code != EXIT_DONE)
			return code;
		store = p->store;
	} else if (o->url.given != NULL) {
		return command_fail(stderr, "mount",
			"option '%s' is for the URL of an account elsewhere, not for a store",
			o->url.given);
	}
	bool background = !args_has(args, "foreground");
	const char *access_log = o->rest.options.access_log.path;
	if (background && access_log != NULL && strcmp(access_log, "-") == 0)
		return command_fail(stderr, "mount",
			"option 'access-log=-' needs -f: a mount in the background has no standard "
			"output; name a file");
	if (o->remount)
		return remount(args, o);
	bool known = url || path_of_store(store, p->store);
	int code = check_dir(p, args->words[1], known ? p->store : NULL);
	if (code == EXIT_DONE)
		code = url ? EXIT_DONE : check_store(p, store);
	if (code != EXIT_DONE)
		return code;
	recover_store(url ? o->source : p->store, "mount");
	struct serve s = { .command = "mount",
		.store = p->store,
		.at = url ? at : NULL,
		.dir = p->dir,
		.options = o,
		.table = args->table,
		.background = background,
		.ready_fd = -1 };
	return s.background ? in_background(&s) : serve(&s);
}

static int run(const struct args *args)
{
	struct paths *p = malloc(sizeof(*p));
	struct mount_options *o = malloc(sizeof(*o));
	struct endpoint at = { 0 };
	int code = EXIT_FAILED;
	if (p != NULL && o != NULL && mount_options_parse(args, o, stderr))
		code = run_mount(args, o, p, &at);
	endpoint_wipe(&at);
	free(o);
	free(p);
	return code;
}

static const struct option_spec options[] = {
	{ "foreground", 'f', NULL, "stay in the foreground, log to standard error" },
	{ "options", 'o', "OPTION,...", "mount options" },
	{ NULL },
};

const struct command command_mount = {
	.name = "mount",
	.topic = TOPIC_START,
	.synopsis = "STORE DIR [-f] [-o OPTION,...]",
	.summary = "Shows a store as a filesystem; returns when it answers",
	.help = "Options (-o), beside those of mount(8) such as noatime or nosuid:\n"
		"  ro, rw         ro: nothing can be changed; the store file may be read-only\n"
		"  remount        with ro, rw, noexec ...: changes the mount at DIR\n"
		"  sync           every change is on disk before it is acknowledged\n"
		"  allow_other    other users too (needs user_allow_other in /etc/fuse.conf\n"
		"                 where you are not root)\n"
		"  ca-file=FILE, cache=SECONDS, connection-string=FILE, hard, max-rps=N, soft,\n"
		"  timeout=SECONDS\n"
		"                 of a URL: the certificates to trust; how old what is shown may be\n"
		"                 (default 1; 0: the service is always asked); the file with the\n"
		"                 connection string, else AZURE_STORAGE_CONNECTION_STRING; how many\n"
		"                 requests a second at most; how long one response may take (default 10);\n"
		"                 soft (default): EIO after three tries; hard: wait for the service\n"
		"  control=list | hide\n"
		"                 whether .rowfs is shown in a listing of DIR (default hide); it can\n"
		"                 be entered either way\n"
		"  default_permissions\n"
		"                 the kernel checks mode and owner of the files\n"
		"  uid=N, gid=N   owner of everything that was given no other (default: you)\n"
		"  umask=OCTAL    taken from the modes 0666 and 0777 (default 022)\n"
		"  access-log=FILE\n"
		"                 a line for each request of the sockets; with -f also -, the\n"
		"                 standard output\n"
		"  access-log-format=combined | json\n"
		"                 the form of its lines (default combined)\n"
		"  access-log-sample=N, access-log-slow=MS\n"
		"                 only one of N requests; only those that took MS milliseconds or\n"
		"                 more; both: the slow ones, and one of N others\n"
		"  admin=ENDPOINT /metrics and /health there, without credentials; as rest=\n"
		"  admin-public   that may be an address that other machines reach\n"
		"  auto_unmount   fusermount3 unmounts as soon as the server has died\n"
		"  blob-space=SIZE\n"
		"                 the content of all blobs together, as 100G (default 0: the disk)\n"
		"  faults=RULE[;RULE...]\n"
		"                 for testing clients: requests of the REST socket that fail on\n"
		"                 order, as .rowfs/faults has it; fault=busy op=insert count=3\n"
		"  fsname=NAME    shown as the source of the mount (default: the store's path)\n"
		"  log=FILE       log there instead of to syslog\n"
		"  log-level=error | warning | info | debug\n"
		"                 what is logged (default info: no debug)\n"
		"  oauth=basic | jwks:FILE\n"
		"                 the REST socket accepts bearer tokens: with the claims that the\n"
		"                 emulator asks for, or signed by a key of FILE\n"
		"  page=ENDPOINT  a page for browsers, on a loopback address; prints a link that\n"
		"                 opens it once\n"
		"  partition-target=N\n"
		"                 for testing clients: more than N entities a second in one\n"
		"                 partition are refused, with 503 or EAGAIN (default 0: never)\n"
		"  rest=ENDPOINT  serve the Table service's protocol too; may be given again:\n"
		"                 HOST:PORT, as 127.0.0.1:10002 (port 0: any; the log tells\n"
		"                 which), or unix:PATH\n"
		"  rest-cert=FILE, rest-key=FILE\n"
		"                 certificate and key (PEM): TCP with TLS\n"
		"  rest-tenant=UUID\n"
		"                 the tenant that answers to bearer tokens name\n"
		"  rest-tls=strong | legacy\n"
		"                 legacy: also ciphers without forward secrecy, for old clients\n"
		"  rest-trust=UID[:UID...] | none\n"
		"                 users who, like you and root, need no signature on a Unix\n"
		"                 socket; none: everybody needs one\n"
		"  snapshot-lifetime=SECONDS\n"
		"                 a snapshot ends after so long (default 0: never by itself)\n"
		"  snapshot-log=SIZE\n"
		"                 how much the log on disk may grow for a snapshot or an open\n"
		"                 stream before that is ended (default 4G)\n"
		"  trash=SIZE     how many bytes of removed rows .rowfs/trash keeps (default 64M;\n"
		"                 0: none)\n"
		"  trash-age=SECONDS\n"
		"                 how long it keeps them (default 604800: 7 days)\n",
	.options = options,
	.min_words = 2,
	.max_words = 2,
	.check = check,
	.local = run,
	.data = remount_here,
};
