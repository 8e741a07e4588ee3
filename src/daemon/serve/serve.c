/* SPDX-License-Identifier: MIT
 * Until it is ready, messages go to the caller's stderr; from then on a background process
 * logs to syslog, or to the file of log=.  The store file itself is never opened
 * here: closing any descriptor of it would drop the locks that SQLite holds. */
#include "daemon/serve/serve.h"

#include "base/log.h"
#include "cloudstore/cloudstore.h"
#include "daemon/control/control.h"
#include "daemon/core/account.h"
#include "daemon/core/command.h"
#include "daemon/core/path.h"
#include "daemon/core/sd_notify.h"
#include "daemon/mount/mountinfo.h"
#include "daemon/mount/watcher.h"
#include "service/blobs/upload.h"
#include "service/core/heat.h"
#include "service/tree/trash.h"
#include "store/engines.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* How long an unmount by force waits for requests that are being worked on. */
#define IDLE_MS 1000
/* How long a mount waits for the end of the one before it. */
#define BUSY_TRIES 200
#define STAND_BY_TRIES 20 /* seconds; the lease of a dead daemon is over by then */
#define BUSY_WAIT_US 25000

struct serving {
	struct serve *serve;
	struct service *service;
	_Atomic(struct control *) control;
	_Atomic(struct rest *) rest;
	atomic_bool ended; /* the loop of requests */
	atomic_bool cut;   /* the end of the loop is our own doing, however it looks */
	struct fs *fs;
	struct trash *trash; /* without a mount */
	unsigned device;     /* of the mount; 0: not known */
	int connection;      /* connection_open() of the mount; -1: none */
	int log_fd;          /* -1: none */
	bool log_made;
	_Atomic bool logs_to_file;
	bool ready;
	/* Copies: a signal can stop the socket before its endpoints are told. */
	struct served served;
	char page_link[REST_PAGE_LINK_TEXT];
	sigset_t signals;
	pthread_t waiter;
};

/* SIGHUP means reload, also where nohup or a shell left it ignored: a terminal that goes ends
 * nobody. */
static void set_signals(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGINT);
	sigaddset(set, SIGTERM);
	sigaddset(set, SIGUSR1); /* ends the waiter itself */
	sigaddset(set, SIGHUP);
	pthread_sigmask(SIG_BLOCK, set, NULL);
	(void)signal(SIGHUP, SIG_DFL); /* an ignored signal is not queued */
}

static bool has_ended(struct serving *s)
{
	for (unsigned ms = 0; ms < IDLE_MS && !atomic_load(&s->ended); ms++)
		usleep(1000);
	return atomic_load(&s->ended);
}

/* What is on top at dir may be somebody else's. */
static bool is_ours(const struct serving *s, const char *dir)
{
	struct mount_entry *m = malloc(sizeof(*m));
	bool ours = s->device == 0 ||
		(m != NULL && mountinfo_find(dir, m) && m->device == s->device &&
			strcmp(m->type, MOUNT_TYPE) == 0);
	free(m);
	return ours;
}

/* The mount point is not ours any more, and yet somebody has the mount: in another namespace,
 * by a mount of a directory in it, or beneath another mount. */
static void end_elsewhere(struct serving *s)
{
	struct mount_entry *m = malloc(sizeof(*m));
	log_warning("'%s' is still mounted elsewhere, and is cut off there", s->serve->store);
	fs_wait_idle(s->fs, IDLE_MS);
	atomic_store(&s->cut, true);
	/* Before the end of the loop: one of its threads may wait, by way of the kernel, for a
	 * client whose next request nobody reads any more. */
	while (m != NULL && mountinfo_of_device(s->device, m) && is_ours(s, m->dir) &&
		mount_detach(m->dir, true) == 0)
		;
	free(m);
	connection_cut(s->connection);
	fs_end(s->fs);
}

/* In this order: what REST has begun is answered, while health checks go on; commands end while the
 * mount still answers (they may wait for it); then an unmount; where somebody has something open
 * there, what is in flight is answered, the connection cut and the mount detached. */
static void stop(struct serving *s)
{
	rest_drain(atomic_load(&s->rest));
	control_stop(atomic_exchange(&s->control, NULL));
	if (s->serve->dir == NULL)
		return;
	int code = is_ours(s, s->serve->dir) ? mount_detach(s->serve->dir, false) : 0;
	if (code == 0) {
		if (!has_ended(s))
			end_elsewhere(s);
		return;
	}
	fs_wait_idle(s->fs, IDLE_MS);
	atomic_store(&s->cut, true);
	code = mount_detach(s->serve->dir, true);
	if (code != 0)
		log_error("'%s' cannot be unmounted: %s", s->serve->dir, strerrordesc_np(code));
	else if (!has_ended(s)) /* nothing cuts it: not root, and no fusectl is mounted */
		fs_end(s->fs);
}

/* Opens a new log file after a rename of the old one, which goes on in use if that fails. */
static void reopen_log(const struct serving *s)
{
	const char *path = s->serve->options->log;
	if (s->log_fd < 0 || !s->logs_to_file)
		return;
	int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640);
	if (fd < 0) {
		log_error("reload: going on with the old log file: cannot open '%s': %s", path,
			strerrordesc_np(errno));
		return;
	}
	(void)dup3(fd, s->log_fd, O_CLOEXEC);
	(void)dup2(fd, STDERR_FILENO);
	close(fd);
}

/* SIGHUP.  Connections and the mount are left alone. */
static void reload(struct serving *s)
{
	struct err_detail why = { 0 };
	struct rest *rest = atomic_load(&s->rest);
	reopen_log(s);
	if (rest != NULL && rest_reopen_log(rest, &why) != ERR_OK)
		log_error("reload: going on with the old access log: %s", why.text);
	why = (struct err_detail){ 0 };
	enum err e = rest != NULL ? rest_reload(rest, &why) : ERR_OK;
	if (e == ERR_OK)
		log_info("signal %d: reloaded", SIGHUP);
	else
		log_error("reload: going on with the old certificate: %s", err_message(e, &why));
}

static void *wait_for_signal(void *arg)
{
	struct serving *s = arg;
	int number = 0;
	while (sigwait(&s->signals, &number) == 0 && number != SIGUSR1) {
		if (number == SIGHUP) {
			reload(s);
			continue;
		}
		log_info("signal %d: unmounting '%s'", number, s->serve->dir);
		stop(s);
	}
	return NULL;
}

/* Sends the lines of the log to its file, if it has one. */
static void begin_log_file(struct serving *s)
{
	if (s->log_fd < 0)
		return;
	dup2(s->log_fd, STDERR_FILENO);
	log_set_form(LOG_FORM_TIMED);
	log_set_colour(false);
	s->logs_to_file = true;
}

/* Gives up the caller's descriptors. */
static void leave_caller(struct serving *s)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (s->log_fd < 0)
		log_to_syslog("rowfs");
	dup2(null, STDIN_FILENO);
	dup2(null, STDOUT_FILENO);
	dup2(null, STDERR_FILENO);
	begin_log_file(s);
	close(null);
}

static void log_start(const struct serving *s)
{
	char said[PATH_MAX + 256];
	if (command_upgraded(s->service, s->serve->store, said, sizeof(said)))
		log_info("%s", said);
	for (size_t i = 0; s->served.endpoints[i][0] != '\0'; i++)
		log_info("REST at %s", s->served.endpoints[i]);
}

/* On standard output: the link is a credential, so no log has it. */
static void print_page_link(const struct serving *s)
{
	if (s->page_link[0] != '\0')
		(void)printf("page, once: %s\n", s->page_link);
	if (fflush(stdout) != 0)
		log_warning("standard output: %s", strerrordesc_np(errno));
}

static void on_ready(void *arg)
{
	struct serving *s = arg;
	s->ready = true;
	print_page_link(s);
	if (s->serve->background)
		leave_caller(s);
	/* Only now: when the caller goes on, nothing of its own is held any more. */
	bool heard = s->serve->ready_fd < 0 || write(s->serve->ready_fd, "", 1) == 1;
	if (s->serve->ready_fd >= 0)
		close(s->serve->ready_fd);
	sd_notify_send("READY=1");
	log_info("serving '%s' at '%s'", s->serve->store, s->serve->dir);
	log_start(s);
	/* The command that asked for the mount was stopped before the mount was there. */
	if (!heard)
		(void)mount_detach(s->serve->dir, true);
}

/* A mount that failed before anything was logged leaves no file. */
static void close_log(const struct serving *s)
{
	struct stat st;
	bool unused = s->log_made && !s->ready && fstat(s->log_fd, &st) == 0 && st.st_size == 0;
	if (s->log_fd >= 0)
		close(s->log_fd);
	if (unused)
		(void)unlink(s->serve->options->log);
}

static int open_log(struct serving *s)
{
	const char *path = s->serve->options->log;
	s->log_fd = -1;
	if (path[0] == '\0')
		return EXIT_DONE;
	int flags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC;
	s->log_fd = open(path, flags | O_EXCL, 0640);
	s->log_made = s->log_fd >= 0;
	if (!s->log_made)
		s->log_fd = open(path, flags, 0640);
	if (s->log_fd >= 0)
		return EXIT_DONE;
	return command_fail(stderr, s->serve->command, "cannot open the log file '%s': %s", path,
		strerrordesc_np(errno));
}

/* umount(8) returns before the process that served the mount has closed the store: where it
 * is held but not mounted any more, its end is waited for.  A store in a cluster may be held on
 * another machine: this process stands by until that one is dead, or as long as a user who waits
 * for the prompt will bear. */
static enum err open_patiently(const struct serve *serve, unsigned flags, const sigset_t *signals,
	struct store **ret, struct err_detail *why)
{
	const char *path = serve->store;
	bool remote = store_is_remote(path);
	const struct timespec wait = { .tv_sec = remote,
		.tv_nsec = remote ? 0 : BUSY_WAIT_US * 1000L };
	unsigned tries_max = !remote ? BUSY_TRIES : serve->background ? STAND_BY_TRIES : UINT_MAX;
	enum err e = ERR_BUSY;
	for (unsigned tries = 0; tries < tries_max && e == ERR_BUSY; tries++) {
		int number = tries > 0 ? sigtimedwait(signals, NULL, &wait) : 0;
		if (number == SIGINT || number == SIGTERM)
			return err_set(
				why, ERR_CANCELLED, "cancelled while another process has it");
		*why = (struct err_detail){ 0 };
		e = store_open(path, flags, ret, NULL, why);
		if (e == ERR_BUSY && mountinfo_shows(path))
			break;
		if (e == ERR_BUSY && remote && tries == 0)
			fprintf(stderr, "rowfs %s: standing by: %s\n", serve->command, why->text);
	}
	return e;
}

/* Of a store that is mounted: where, and how that ends. */
static int cannot_open(
	const char *command, const char *path, enum err e, const struct err_detail *why)
{
	struct mount_entry *m = e == ERR_BUSY ? malloc(sizeof(*m)) : NULL;
	bool mounted = m != NULL && mountinfo_of_store(path, 0, m);
	int code = command_fail(stderr, command, "cannot open the store '%s': %s%s%s%s", path,
		err_message(e, why), mounted ? "; unmount it with: rowfs umount '" : "",
		mounted ? m->dir : "", mounted ? "'" : "");
	free(m);
	return code;
}

/* Nobody uses the store yet.  Closes it if it cannot limit them. */
static enum err limit_blobs(struct store *store, uint64_t bytes, struct err_detail *why)
{
	if (bytes == 0 || store_set_piece_limit(store, bytes))
		return ERR_OK;
	store_close(store);
	return err_set(why, ERR_NOT_SUPPORTED, "blob-space needs a store in a file");
}

/* Puts the account elsewhere over its shadow. */
static enum err open_url(const struct serve *serve, struct store **store, struct err_detail *why)
{
	const struct url_options *url = &serve->options->url;
	struct cloudstore_options o = { .cache_ms = url->cache_s * 1000,
		.rps = url->rps,
		.hard = url->hard,
		.client = { .response_ms = url->timeout_s * 1000,
			.connect_ms = url->timeout_s * 1000,
			.tries = 3,
			.ca_file = url->ca_file[0] != '\0' ? url->ca_file : NULL } };
	struct store *shadow = *store;
	enum err e = cloudstore_open(shadow, serve->at, &o, store, why);
	if (e != ERR_OK)
		store_close(shadow);
	return e;
}

static int open_service(struct serving *s)
{
	struct err_detail why = { 0 };
	struct store *store;
	const char *path = s->serve->store;
	bool shadow = s->serve->at != NULL, ro = s->serve->options->fs.read_only;
	unsigned flags = ro && !shadow ? STORE_OPEN_READ_ONLY : 0;
	enum err e = open_patiently(s->serve, flags, &s->signals, &store, &why);
	if (e == ERR_NOT_FOUND)
		return command_fail(stderr, s->serve->command,
			"there is no store '%s'; make it with: rowfs init %s", path, path);
	if (e == ERR_READ_ONLY && s->serve->dir == NULL)
		return command_fail(stderr, s->serve->command,
			"'%s' cannot be written; to serve it read-only: rowfs serve --read-only %s",
			path, path);
	if (e == ERR_READ_ONLY)
		return command_fail(stderr, "mount",
			"'%s' cannot be written; to mount it read-only: rowfs mount -o ro %s %s",
			path, path, s->serve->dir);
	if (e == ERR_OK && shadow)
		e = open_url(s->serve, &store, &why);
	if (e == ERR_OK)
		e = limit_blobs(store, s->serve->options->blob_space, &why);
	if (e == ERR_OK)
		e = service_new(store, &s->service);
	if (e == ERR_OK) {
		command_name_operations(s->serve->table, s->service);
		if (s->serve->options->sync)
			service_set_sync(s->service);
		/* Another daemon may have uploads under way. */
		if (!s->serve->options->fs.read_only && !service_can(s->service, STORE_SHARED))
			(void)blob_uploads_drop(s->service);
		heat_set_target(service_heat(s->service), s->serve->options->partition_target);
		return EXIT_DONE;
	}
	return cannot_open(s->serve->command, path, e, &why);
}

static void start_control(struct serving *s)
{
	struct stat st;
	struct control *control = NULL;
	enum err e = path_stat_store(s->serve->store, &st)
		? control_start(s->service, &st, s->serve->table, &s->served, &control)
		: err_from_errno(errno);
	atomic_store(&s->control, control);
	/* Another daemon of a shared store takes the commands. */
	if (e == ERR_NAME_EXISTS && service_can(s->service, STORE_SHARED))
		return;
	/* The mount is of use without it. */
	if (e != ERR_OK)
		log_warning("commands will not reach this store while it is %s: %s",
			s->serve->dir != NULL ? "mounted" : "served",
			e == ERR_NAME_EXISTS ? "the name of its socket is taken" : err_text(e));
}

/* Before the mount, so that an address in use leaves nothing mounted. */
static int start_rest(struct serving *s)
{
	struct err_detail why = { 0 };
	struct rest *rest = NULL;
	const struct rest_options *options = &s->serve->options->rest.options;
	if (options->nendpoints == 0)
		return EXIT_DONE;
	enum err e = rest_start(s->service, options, &rest, &why);
	if (e != ERR_OK)
		return command_fail(stderr, s->serve->command, "cannot open the REST socket: %s",
			err_message(e, &why));
	const char *endpoint;
	for (size_t i = 0; (endpoint = rest_endpoint(rest, i)) != NULL; i++)
		(void)snprintf(
			s->served.endpoints[i], sizeof(s->served.endpoints[i]), "%s", endpoint);
	if (!rest_page_link(rest, s->page_link))
		s->page_link[0] = '\0';
	atomic_store(&s->rest, rest);
	return EXIT_DONE;
}

static unsigned device_at(const char *dir)
{
	struct mount_entry *m = malloc(sizeof(*m));
	bool found = m != NULL && mountinfo_find(dir, m) && strcmp(m->type, MOUNT_TYPE) == 0;
	unsigned device = found ? m->device : 0;
	free(m);
	return device;
}

static pid_t start_watcher(const struct serving *s)
{
	pid_t watcher = watcher_start(s->connection);
	if (watcher < 0)
		log_warning("if this process is killed, it and clients of '%s' may hang until the "
			    "next rowfs mount or umount: nothing can cut the connection: %s",
			s->serve->dir, strerrordesc_np(errno));
	return watcher;
}

static void stop_watcher(const struct serving *s, pid_t watcher)
{
	watcher_stop(watcher);
	if (s->connection >= 0)
		close(s->connection);
}

static int serve_mount(struct serving *s)
{
	struct err_detail why = { 0 };
	struct fs_options *options = &s->serve->options->fs;
	options->source =
		s->serve->options->source[0] != '\0' ? s->serve->options->source : s->serve->store;
	options->store = s->serve->store;
	options->on_ready = on_ready;
	options->arg = s;
	if (start_rest(s) != EXIT_DONE)
		return EXIT_FAILED;
	enum err e = fs_new(s->service, s->serve->dir, options, &s->fs, &why);
	if (e != ERR_OK) {
		rest_stop(atomic_exchange(&s->rest, NULL));
		return command_fail(stderr, "mount", "cannot mount at '%s': %s", s->serve->dir,
			err_message(e, &why));
	}
	s->device = device_at(s->serve->dir);
	s->connection = connection_open(s->device);
	pid_t watcher = start_watcher(s);
	if (pthread_create(&s->waiter, NULL, wait_for_signal, s) != 0) {
		stop_watcher(s, watcher);
		rest_stop(atomic_exchange(&s->rest, NULL));
		fs_free(s->fs);
		return command_fail(
			stderr, "mount", "cannot mount at '%s': " FS_NO_THREADS, s->serve->dir);
	}
	start_control(s);
	e = fs_run(s->fs);
	atomic_store(&s->ended, true);
	if (atomic_load(&s->cut))
		e = ERR_OK;
	sd_notify_send("STOPPING=1");
	/* First: it may be reloading what is stopped here. */
	pthread_kill(s->waiter, SIGUSR1);
	pthread_join(s->waiter, NULL);
	rest_stop(atomic_exchange(&s->rest, NULL));
	control_stop(atomic_exchange(&s->control, NULL));
	fs_free(s->fs);
	stop_watcher(s, watcher);
	if (e != ERR_OK && !s->ready)
		return command_fail(stderr, "mount", "cannot mount at '%s': %s", s->serve->dir,
			e == ERR_NO_MEMORY ? FS_NO_THREADS : err_text(e));
	if (e != ERR_OK)
		log_error("serving '%s' ended: %s", s->serve->store, err_text(e));
	return e == ERR_OK ? EXIT_DONE : EXIT_FAILED;
}

/* Calls fn for each account of --print-connection, until one fails. */
static int each_connection(struct serving *s,
	int (*fn)(struct cmd_env *env, const struct args *args, const char *command,
		const char *name))
{
	const struct args *args = s->serve->args;
	struct cmd_env env = { .service = s->service,
		.served = &s->served,
		.store = s->serve->store,
		.out = stdout,
		.err = stderr };
	int code = EXIT_DONE;
	for (int i = 0; i < args->ngiven && code == EXIT_DONE; i++)
		if (strcmp(args->given[i].spec->name, "print-connection") == 0)
			code = fn(&env, args, s->serve->command, args->given[i].value);
	return code;
}

static int announce(struct serving *s)
{
	for (size_t i = 0; s->served.endpoints[i][0] != '\0'; i++)
		(void)printf("serving %s at %s\n", s->serve->store, s->served.endpoints[i]);
	print_page_link(s);
	int code = each_connection(s, account_print_connection);
	if (fflush(stdout) != 0)
		log_warning("standard output: %s", strerrordesc_np(errno));
	return code;
}

static void be_ready(struct serving *s)
{
	begin_log_file(s);
	s->ready = true;
	log_start(s);
	sd_notify_send("READY=1");
}

/* The page moves rows there.  A mount has its own. */
static int open_trash(struct serving *s)
{
	if (service_is_read_only(s->service) || service_can(s->service, STORE_READ_ONLY))
		return EXIT_DONE;
	const struct trash_limits limits = TRASH_LIMITS_USUAL;
	enum err e = trash_new(s->service, &limits, &s->trash);
	return e == ERR_OK ? EXIT_DONE
			   : command_fail(stderr, s->serve->command, "the trash: %s", err_text(e));
}

static int serve_rest(struct serving *s)
{
	int number = 0;
	int code = each_connection(s, account_must_exist);
	if (code == EXIT_DONE)
		code = open_trash(s);
	if (code == EXIT_DONE)
		code = start_rest(s);
	if (code == EXIT_DONE) {
		start_control(s);
		code = announce(s);
	}
	if (code == EXIT_DONE) {
		be_ready(s);
		while (sigwait(&s->signals, &number) == 0 &&
			(number == SIGUSR1 || number == SIGHUP))
			if (number == SIGHUP)
				reload(s);
		log_info("signal %d: closing '%s'", number, s->serve->store);
		sd_notify_send("STOPPING=1");
	}
	stop(s);
	rest_stop(atomic_exchange(&s->rest, NULL));
	trash_free(s->trash);
	return code;
}

/* Before it is ready, a background process talks to the user who started it. */
static void set_log(const struct serve *serve)
{
	const struct terminal here = terminal_here();
	struct palette palette = terminal_palette(&here, STDERR_FILENO);
	log_set_level(serve->options->log_level);
	log_set_colour(palette.off[0] != '\0');
	if (sd_stderr_is_journal())
		log_set_form(LOG_FORM_JOURNAL);
	else if (!serve->background)
		log_set_form(LOG_FORM_TIMED);
}

int serve(struct serve *serve)
{
	struct serving s = { .serve = serve,
		.served.mounted = serve->dir != NULL ? serve->options : NULL };
	set_signals(&s.signals);
	set_log(serve);
	int code = open_log(&s);
	if (code == EXIT_DONE)
		code = open_service(&s);
	if (code == EXIT_DONE)
		code = serve->dir != NULL ? serve_mount(&s) : serve_rest(&s);
	service_free(s.service);
	if (code == EXIT_DONE)
		log_info("'%s' is closed", serve->store);
	close_log(&s);
	return code;
}
