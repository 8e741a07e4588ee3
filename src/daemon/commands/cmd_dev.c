/* SPDX-License-Identifier: MIT
 * dev: a store to develop with, started and ended by one word.  This process makes what is missing and
 * looks after the server, which is a child: `mount -f`, or `serve` where nothing can be mounted. */
#include "base/crypto.h"
#include "codec/json_build.h"
#include "daemon/control/control.h"
#include "daemon/core/command.h"
#include "daemon/core/path.h"
#include "daemon/core/self.h"
#include "model/emulator.h"
#include "service/core/accounts.h"
#include "store/engines.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define CONNECTION_MAX 4096
#define DEFAULT_DIR "rowfs-dev"

/* The emulator's ports, and one more for the page. */
static const struct {
	const char *option, *serve_option; /* of mount and of serve */
	const char *prefix;                /* of the endpoint */
	uint16_t port;
} services[] = { { "rest", "--rest", "blob=", 10000 }, { "rest", "--rest", "queue=", 10001 },
	{ "rest", "--rest", "", 10002 }, { "page", "--page", "", 10003 } };
#define SERVICES ARRAY_LEN(services)
#define PAGE_WORD "page, once: "
/* Options of the server, as mount and serve have them. */
static const char *const passed[] = { "admin", "blob-space", "oauth", "rest-cert", "rest-key" };
#define PASSED ARRAY_LEN(passed)

struct dev {
	const struct args *args;
	const char *account;
	bool memory, detach, mounted;
	char dir[PATH_MAX / 2]; /* absolute */
	char store[PATH_MAX], mnt[PATH_MAX], log[PATH_MAX];
	char endpoints[SERVICES][32];
	size_t nservices; /* a program needs no page */
	char page[256];   /* the link that opens the page once; "" without a page */
	char connection[CONNECTION_MAX];
	pid_t server;
	int notify; /* gets READY=1; -1: none */
};

static int fail(const char *what, const char *path)
{
	return command_fail(stderr, "dev", "%s '%s': %s", what, path, strerrordesc_np(errno));
}

/* ---- what must be there ---- */

static int make_dirs(struct dev *d)
{
	const char *given = d->args->nwords > 0 ? d->args->words[0] : DEFAULT_DIR;
	char full[PATH_MAX];
	if (d->memory) {
		const char *at = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
		(void)snprintf(full, sizeof(full), "%s/rowfs-dev.XXXXXX", at);
		if (mkdtemp(full) == NULL)
			return fail("cannot make", full);
	} else if (!args_has(d->args, "stop") && mkdir(given, 0700) != 0 && errno != EEXIST) {
		return fail("cannot make", given);
	} else if (!path_absolute(given, full)) {
		return fail("cannot use", given);
	}
	if (strlen(full) >= sizeof(d->dir)) {
		errno = ENAMETOOLONG;
		return fail("cannot use", full);
	}
	memcpy(d->dir, full, strlen(full) + 1);
	(void)snprintf(d->store, sizeof(d->store), "%s/store.rowfs", d->dir);
	(void)snprintf(d->mnt, sizeof(d->mnt), "%s/mnt", d->dir);
	(void)snprintf(d->log, sizeof(d->log), "%s/dev.log", d->dir);
	return EXIT_DONE;
}

static enum err add_account(struct service *s, const char *name, struct err_detail *why)
{
	struct buf key = BUF_INIT(256);
	struct account_keys made;
	bool known = strcmp(name, EMULATOR_ACCOUNT) == 0;
	enum err e = known && !base64_decode(SPAN_LIT(EMULATOR_KEY), &key) ? ERR_NO_MEMORY : ERR_OK;
	struct span given = buf_span(&key);
	if (e == ERR_OK)
		e = account_create(
			s, ORIGIN_COMMAND, span_of(name), known ? &given : NULL, &made, why);
	explicit_bzero(&made, sizeof(made));
	buf_wipe(&key);
	return e == ERR_ACCOUNT_EXISTS ? ERR_OK : e;
}

static int make_store(struct dev *d)
{
	struct err_detail why = { 0 };
	struct store *store;
	struct service *s;
	enum err e = store_create(d->store, &why);
	if (e == ERR_OK || e == ERR_NAME_EXISTS) {
		why = (struct err_detail){ 0 };
		e = store_open(d->store, 0, &store, NULL, &why);
	}
	if (e == ERR_BUSY)
		return command_fail(stderr, "dev",
			"'%s' is in use; end it with Ctrl-C where it runs, or with: rowfs dev "
			"--stop %s",
			d->dir, d->args->nwords > 0 ? d->args->words[0] : "");
	if (e == ERR_OK)
		e = service_new(store, &s);
	if (e == ERR_OK) {
		e = add_account(s, d->account, &why);
		service_free(s);
	}
	return e == ERR_OK
		? EXIT_DONE
		: command_fail(stderr, "dev", "'%s': %s", d->store, err_message(e, &why));
}

/* "127.0.0.1:PORT", or any free port where that one is taken. */
static void choose_port(const struct dev *d, size_t service, char ret[32])
{
	uint16_t port = services[service].port;
	const struct sockaddr_in at = { .sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int one = 1;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	bool asked = args_has(d->args, "free-ports");
	bool taken = !asked && bind(fd, (const struct sockaddr *)&at, sizeof(at)) != 0;
	if (taken)
		fprintf(stderr, "rowfs dev: port %u is taken; another one is used\n",
			(unsigned)port);
	(void)snprintf(ret, 32, "%s127.0.0.1:%u", services[service].prefix,
		asked || taken ? 0u : (unsigned)port);
	if (fd >= 0)
		close(fd);
}

/* ---- children ---- */

/* The last line of the log: why a server did not come up. */
static void last_line(const struct dev *d, char *ret, size_t n)
{
	char line[512];
	FILE *f = fopen(d->log, "re");
	ret[0] = 0;
	while (f != NULL && fgets(line, sizeof(line), f) != NULL)
		(void)snprintf(ret, n, "%.*s", (int)strcspn(line, "\n"), line);
	if (f != NULL)
		fclose(f);
}

static bool listen_for_ready(struct dev *d, struct sockaddr_un *at)
{
	*at = (struct sockaddr_un){ .sun_family = AF_UNIX };
	int n = snprintf(at->sun_path + 1, sizeof(at->sun_path) - 1, "rowfs-dev-%d", (int)getpid());
	d->notify = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	return d->notify >= 0 &&
		bind(d->notify, (struct sockaddr *)at,
			(socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n)) == 0;
}

static NORETURN void become_server(const struct dev *d, const char *notify, int out, bool mount)
{
	char options[256] = "", texts[PASSED][PATH_MAX];
	const char *mounting[6 + 2 * PASSED + 1] = { "mount", "-f", d->store, d->mnt, "-o",
		options };
	const char *serving[2 + 2 * SERVICES + PASSED + 1] = { "serve", d->store };
	int log = open(d->log, O_WRONLY | O_CREAT | O_APPEND, 0600);
	int null = open("/dev/null", O_RDWR);
	(void)dup2(null, STDIN_FILENO);
	(void)dup2(out, STDOUT_FILENO);
	(void)dup2(log, STDERR_FILENO);
	(void)close_range(STDERR_FILENO + 1, ~0u, 0);
	/* Ctrl-C is for the process that looks after it. */
	(void)setsid();
	if (!d->detach)
		(void)prctl(PR_SET_PDEATHSIG, SIGTERM);
	(void)setenv("NOTIFY_SOCKET", notify, 1);
	for (size_t i = 0, n = 0; i < d->nservices; i++) {
		n += (size_t)snprintf(options + n, sizeof(options) - n, "%s%s=%s", n > 0 ? "," : "",
			services[i].option, d->endpoints[i]);
		serving[2 + 2 * i] = services[i].serve_option;
		serving[3 + 2 * i] = d->endpoints[i];
	}
	const char **next_mounting = mounting + 6, **next_serving = serving + 2 + 2 * d->nservices;
	for (size_t i = 0; i < PASSED; i++) {
		const char *value = args_value(d->args, passed[i]);
		if (value == NULL)
			continue;
		(void)snprintf(texts[i], sizeof(texts[i]), "--%s=%s", passed[i], value);
		*next_serving++ = texts[i];
		*next_mounting++ = "-o";
		*next_mounting++ = texts[i] + strlen("--");
	}
	self_exec(mount ? mounting : serving);
}

/* The server wrote the link before it was ready. */
static void learn_page(struct dev *d, int out)
{
	char text[PIPE_BUF];
	ssize_t n = d->nservices == SERVICES ? read(out, text, sizeof(text) - 1) : 0;
	text[n > 0 ? n : 0] = 0;
	const char *at = strstr(text, PAGE_WORD);
	if (at != NULL) {
		at += strlen(PAGE_WORD);
		(void)snprintf(d->page, sizeof(d->page), "%.*s", (int)strcspn(at, "\n"), at);
	}
	explicit_bzero(text, sizeof(text));
}

/* Returns when the server answers; false: it ended instead, or a signal came. */
static bool start_server(struct dev *d, bool mount)
{
	struct sockaddr_un at;
	char name[128], text[256];
	int out[2];
	if (!listen_for_ready(d, &at) || pipe2(out, O_CLOEXEC) != 0)
		return false;
	(void)snprintf(name, sizeof(name), "@%s", at.sun_path + 1);
	(void)fflush(NULL);
	d->server = fork();
	if (d->server == 0)
		become_server(d, name, out[1], mount);
	close(out[1]);
	bool ready = false, ended = d->server < 0;
	while (!ready && !ended) {
		struct pollfd p = { .fd = d->notify, .events = POLLIN };
		if (poll(&p, 1, 100) > 0) {
			ssize_t n = recv(d->notify, text, sizeof(text) - 1, 0);
			text[n > 0 ? n : 0] = 0;
			ready = strstr(text, "READY=1") != NULL;
		}
		ended = !ready && waitpid(d->server, NULL, WNOHANG) == d->server;
	}
	close(d->notify);
	if (ready)
		learn_page(d, out[0]);
	close(out[0]);
	if (ended)
		d->server = -1;
	return ready;
}

static int stop_server(struct dev *d)
{
	if (d->server <= 0)
		return EXIT_DONE;
	(void)kill(d->server, SIGTERM);
	return self_wait(d->server);
}

static int start(struct dev *d)
{
	char why[512] = "there is no /dev/fuse that you may use";
	bool fuse = access("/dev/fuse", R_OK | W_OK) == 0;
	if (fuse && mkdir(d->mnt, 0700) != 0 && errno != EEXIST)
		return fail("cannot make", d->mnt);
	d->mounted = fuse && start_server(d, true);
	if (d->mounted)
		return EXIT_DONE;
	if (fuse) {
		last_line(d, why, sizeof(why));
		(void)rmdir(d->mnt);
	}
	if (start_server(d, false)) {
		fprintf(stderr, "rowfs dev: going on without a mount: %s\n", why);
		return EXIT_DONE;
	}
	last_line(d, why, sizeof(why));
	return command_fail(stderr, "dev", "the server did not start: %s", why);
}

/* ---- seeds, connection ---- */

/* TABLE=FILE, or a file that has the table's name. */
static int seed(const struct dev *d, const char *given)
{
	char target[256];
	const char *equals = strchr(given, '='), *file = given, *name = strrchr(given, '/');
	name = name != NULL ? name + 1 : given;
	size_t n = strcspn(name, ".");
	if (equals != NULL) {
		name = given;
		n = (size_t)(equals - given);
		file = equals + 1;
	}
	(void)snprintf(target, sizeof(target), "%s/%.*s", d->account, (int)n, name);
	const char *const argv[] = { "import", d->store, target, "--", file, NULL };
	return self_run(argv, NULL, 0);
}

static int learn_connection(struct dev *d)
{
	static const char word[] = "connect  ";
	char text[CONNECTION_MAX];
	const char *const argv[] = { "account", "keys", d->store, d->account, NULL };
	int code = self_run(argv, text, sizeof(text));
	const char *at = strstr(text, word);
	if (code == EXIT_DONE && at != NULL) {
		at += strlen(word);
		(void)snprintf(
			d->connection, sizeof(d->connection), "%.*s", (int)strcspn(at, "\n"), at);
	}
	explicit_bzero(text, sizeof(text));
	return at != NULL ? code : EXIT_FAILED;
}

static int fill(struct dev *d)
{
	int code = EXIT_DONE;
	for (int i = 0; i < d->args->ngiven && code == EXIT_DONE; i++)
		if (strcmp(d->args->given[i].spec->name, "seed") == 0)
			code = seed(d, d->args->given[i].value);
	return code == EXIT_DONE ? learn_connection(d) : code;
}

static int tell_json(const struct dev *d)
{
	struct json_build b;
	json_begin(&b);
	json_add_str(&b, "store", d->store);
	if (d->mounted)
		json_add_str(&b, "mount", d->mnt);
	json_add_str(&b, "account", d->account);
	json_add_str(&b, "connection_string", d->connection);
	if (d->page[0] != '\0')
		json_add_str(&b, "page", d->page);
	if (json_end_print(&b, stdout) != ERR_OK)
		return command_fail(stderr, "dev", "out of memory");
	(void)fflush(stdout);
	return EXIT_DONE;
}

static int tell(const struct dev *d)
{
	if (args_has(d->args, "json"))
		return tell_json(d);
	printf("connection string:\n  %s\n\ntry:\n", d->connection);
	printf("  echo '{\"Text\":\"Hi\"}' | rowfs put %s %s/Posts/p/1.json\n", d->store,
		d->account);
	printf("  rowfs query %s %s/Posts\n", d->store, d->account);
	if (d->mounted)
		printf("  cat %s/%s/Posts/p/1.json\n", d->mnt, d->account);
	else
		printf("  rowfs ls %s %s/Posts/p\n", d->store, d->account);
	printf("\n");
	if (d->page[0] != '\0')
		printf(PAGE_WORD "%s\n\n", d->page);
	if (d->detach)
		printf("running; end it with: rowfs dev --stop %s\n", d->dir);
	else
		printf("running; Ctrl-C ends it\n");
	(void)fflush(stdout);
	return EXIT_DONE;
}

/* ---- until the end ---- */

static void set_environment(const struct dev *d)
{
	struct span text = span_of(d->connection);
	size_t at = span_find(text, SPAN_LIT("AccountKey="));
	char key[256] = "";
	if (at < text.n)
		(void)snprintf(key, sizeof(key), "%.*s", (int)strcspn(text.p + at + 11, ";"),
			text.p + at + 11);
	(void)setenv("AZURE_STORAGE_CONNECTION_STRING", d->connection, 1);
	(void)setenv("AZURE_STORAGE_ACCOUNT", d->account, 1);
	(void)setenv("AZURE_STORAGE_KEY", key, 1);
	(void)setenv("ROWFS_DEV_STORE", d->store, 1);
	if (d->mounted)
		(void)setenv("ROWFS_DEV_MOUNT", d->mnt, 1);
}

/* Waits for a signal, or for the end of one of the two.  Returns the exit code so far. */
static int wait_until(struct dev *d, const sigset_t *signals, pid_t program)
{
	for (;;) {
		int number = 0, status;
		(void)sigwait(signals, &number);
		if (number != SIGCHLD && program <= 0)
			return EXIT_DONE;
		if (number != SIGCHLD)
			(void)kill(program, number);
		pid_t child;
		while ((child = waitpid(-1, &status, WNOHANG)) > 0) {
			int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
			if (child == program)
				return code;
			if (child == d->server) {
				d->server = -1;
				if (program > 0)
					(void)kill(program, SIGTERM);
				else if (code == EXIT_DONE) /* umount, --stop */
					return EXIT_DONE;
				return command_fail(stderr, "dev",
					"the server ended by itself; see: %s", d->log);
			}
		}
	}
}

static int run_program(struct dev *d, const sigset_t *signals, const char *program)
{
	(void)fflush(NULL);
	pid_t child = fork();
	if (child == 0) {
		sigset_t none;
		sigemptyset(&none);
		(void)sigprocmask(SIG_SETMASK, &none, NULL);
		set_environment(d);
		execl("/bin/sh", "sh", "-c", program, NULL);
		_exit(127);
	}
	return child < 0 ? fail("cannot run", program) : wait_until(d, signals, child);
}

static void forget(const struct dev *d)
{
	char part[PATH_MAX + 8];
	static const char *const ends[] = { "", "-wal", "-shm" };
	for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
		(void)snprintf(part, sizeof(part), "%s%s", d->store, ends[i]);
		(void)unlink(part);
	}
	(void)unlink(d->log);
	(void)rmdir(d->dir);
}

static int end(struct dev *d, int code, bool quiet)
{
	int ended = stop_server(d);
	(void)rmdir(d->mnt);
	if (d->memory)
		forget(d);
	else if (!quiet)
		printf("\nthe data is in %s\n", d->store);
	return code == EXIT_DONE ? ended : code;
}

static int run_until_end(struct dev *d)
{
	const char *program = args_value(d->args, "exec");
	sigset_t signals;
	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGHUP);
	sigaddset(&signals, SIGCHLD);
	(void)sigprocmask(SIG_BLOCK, &signals, NULL);
	int code = start(d);
	if (code == EXIT_DONE)
		code = fill(d);
	if (code == EXIT_DONE && program == NULL)
		code = tell(d);
	if (code == EXIT_DONE && d->detach)
		return EXIT_DONE;
	if (code == EXIT_DONE)
		code = program != NULL ? run_program(d, &signals, program)
				       : wait_until(d, &signals, -1);
	return end(d, code, program != NULL || args_has(d->args, "json"));
}

/* ---- --stop ---- */

/* Ends the process that serves the store, and waits for its end. */
static int stop_detached(struct dev *d)
{
	struct stat st;
	struct ucred server;
	if (stat(d->store, &st) != 0)
		return fail("nothing runs in", d->dir);
	int sock = control_connect(d->store, &st, &server);
	if (sock < 0)
		return command_fail(stderr, "dev", "nothing runs in '%s'", d->dir);
	close(sock);
	int process = pidfd_open(server.pid, 0);
	if (process < 0 || kill(server.pid, SIGTERM) != 0)
		return fail("cannot end the server of", d->dir);
	struct pollfd p = { .fd = process, .events = POLLIN };
	while (poll(&p, 1, -1) < 0 && errno == EINTR)
		;
	close(process);
	(void)rmdir(d->mnt);
	printf("the data is in %s\n", d->store);
	return EXIT_DONE;
}

static bool check(const struct args *args, FILE *err)
{
	bool alone = args_has(args, "stop"), detach = args_has(args, "detach");
	bool memory = args_has(args, "memory"), program = args_has(args, "exec");
	if ((alone && args->ngiven > 1) || (detach && (memory || program)) ||
		(memory && args->nwords > 0) || (program && args_has(args, "json"))) {
		(void)command_fail(err, "dev",
			"--stop goes alone, --detach without --memory and --exec, --memory "
			"without DIR, --json without --exec");
		return false;
	}
	return true;
}

static int run(const struct args *args)
{
	const char *account = args_value(args, "account");
	struct dev *d = calloc(1, sizeof(*d));
	if (d == NULL)
		return command_fail(stderr, "dev", "out of memory");
	*d = (struct dev){ .args = args,
		.account = account != NULL ? account : EMULATOR_ACCOUNT,
		.memory = args_has(args, "memory"),
		.detach = args_has(args, "detach"),
		.nservices = SERVICES - args_has(args, "exec") };
	int code;
	if (args_has(args, "stop")) {
		code = make_dirs(d);
		if (code == EXIT_DONE)
			code = stop_detached(d);
	} else {
		code = make_dirs(d);
		if (code == EXIT_DONE)
			code = make_store(d);
		if (code == EXIT_DONE) {
			for (size_t i = 0; i < d->nservices; i++)
				choose_port(d, i, d->endpoints[i]);
			code = run_until_end(d);
		} else if (d->memory) {
			forget(d);
		}
	}
	explicit_bzero(d->connection, sizeof(d->connection));
	explicit_bzero(d->page, sizeof(d->page));
	free(d);
	return code;
}

static const struct option_spec options_[] = {
	{ "account", 0, "NAME", "an account of its own instead of " EMULATOR_ACCOUNT },
	{ "admin", 0, "ENDPOINT", "/metrics and /health there, as of serve" },
	{ "blob-space", 0, "SIZE", "the content of all blobs has up to so many bytes" },
	{ "detach", 0, NULL, "go on in the background" },
	{ "exec", 0, "PROGRAM", "run it in a shell, end with it, and exit with its status" },
	{ "free-ports", 0, NULL, "any free ports instead of 10000 to 10003" },
	{ "json", 0, NULL, "print an object: store, mount, account, connection_string, page" },
	{ "memory", 0, NULL, "forget everything at the end" },
	{ "oauth", 0, "basic|jwks:FILE", "accept bearer tokens, as serve does; needs TLS" },
	{ "rest-cert", 0, "FILE", "certificate (PEM): TCP with TLS" },
	{ "rest-key", 0, "FILE", "its key (PEM)" },
	{ "seed", 0, "[TABLE=]FILE", "import the file first; may be given again" },
	{ "stop", 0, NULL, "end what --detach left running" },
	{ NULL },
};

const struct command command_dev = {
	.name = "dev",
	.topic = TOPIC_START,
	.synopsis = "[DIR] [--exec=PROGRAM] [--memory] [--seed=FILE] [--detach] "
		    "[--json] [--stop]",
	.summary = "Starts a store to develop with, and ends it",
	.help = "Makes DIR (default: " DEFAULT_DIR
		") with a store and the emulator's account, serves its\n"
		"tables, queues and blobs, mounts it at DIR/mnt where that is possible, and\n"
		"prints the connection string and a link that opens the page.  PROGRAM finds in its\n"
		"environment AZURE_STORAGE_CONNECTION_STRING, AZURE_STORAGE_ACCOUNT,\n"
		"AZURE_STORAGE_KEY, ROWFS_DEV_STORE and ROWFS_DEV_MOUNT.\n",
	.options = options_,
	.max_words = 1,
	.check = check,
	.local = run,
};
