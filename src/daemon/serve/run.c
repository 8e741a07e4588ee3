/* SPDX-License-Identifier: MIT
 * Opens the files of the command first.  So a wrong name is told before anything happens, and the
 * serving process does not open them with its own rights. */
#include "daemon/serve/run.h"

#include "base/new_file.h"
#include "daemon/control/control.h"
#include "daemon/control/execute.h"
#include "daemon/core/elsewhere.h"
#include "daemon/core/path.h"
#include "daemon/core/signals.h"
#include "daemon/core/user.h"
#include "daemon/serve/mounted.h"
#include "daemon/serve/salvaged.h"
#include "store/engines.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BUSY_TRIES 40 /* a store that opens or closes just now */
#define BUSY_WAIT_US 50000

struct files {
	int *fds;
	size_t n;
	const char *output;     /* --output; NULL: standard output */
	char *final;            /* the plain file that it is; owned */
	char partial[PATH_MAX]; /* what is written until it is complete; "": it was not made */
	bool fresh;             /* the output was not there before */
	dev_t fresh_dev;        /* what was made for it */
	ino_t fresh_ino;
	bool made, force; /* final: it is new, or to be replaced only with force; synced */
};

static void close_files(struct files *f)
{
	for (size_t i = 0; i < f->n; i++)
		if (f->fds[i] >= 0)
			close(f->fds[i]);
	free(f->fds);
}

static bool add(struct files *f, const struct command *c, const char *name, int fd)
{
	if (fd >= 0) {
		f->fds[f->n++] = fd;
		return true;
	}
	if (errno == EMFILE)
		(void)command_fail(stderr, c->name,
			"too many files at once; try: cat FILE... | rowfs %s ...", c->name);
	else
		(void)command_fail(
			stderr, c->name, "cannot open '%s': %s", name, strerrordesc_np(errno));
	return false;
}

/* The output is written beside the file that it replaces, so that a command that fails leaves
 * the old one as it was.  Whatever is not a plain file of one name that can be made anew is
 * written through. */
static int open_output(struct files *f)
{
	struct stat st;
	int made = open(f->output, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	if (made >= 0) {
		f->fresh = fstat(made, &st) == 0;
		f->fresh_dev = st.st_dev;
		f->fresh_ino = st.st_ino;
		close(made);
	}
	f->final = realpath(f->output, NULL);
	bool plain = f->final != NULL && stat(f->final, &st) == 0 && S_ISREG(st.st_mode) &&
		st.st_nlink == 1;
	char name[PATH_MAX];
	int n = plain ? snprintf(name, sizeof(name), "%s.XXXXXX", f->final) : 0;
	int fd = plain && n < (int)sizeof(name) ? mkostemp(name, O_CLOEXEC) : -1;
	if (fd >= 0)
		memcpy(f->partial, name, (size_t)n + 1);
	if (fd >= 0 && fchown(fd, st.st_uid, st.st_gid) == 0 && fchmod(fd, st.st_mode & 07777) == 0)
		return fd;
	if (fd >= 0) {
		close(fd);
		(void)unlink(f->partial);
	}
	f->partial[0] = 0;
	return open(f->output, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
}

/* COMMAND_MAKES_FILE: beside its place, so that it is whole or not there. */
static int make_file(struct files *f, const char *path)
{
	f->output = path;
	f->final = strdup(path);
	char name[PATH_MAX];
	int n = snprintf(name, sizeof(name), "%s.part-%d", path, (int)getpid());
	bool fits = f->final != NULL && n > 0 && n < (int)sizeof(name);
	int fd = fits ? open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600) : -1;
	if (fd >= 0)
		memcpy(f->partial, name, (size_t)n + 1);
	if (!fits)
		errno = f->final != NULL ? ENAMETOOLONG : ENOMEM;
	f->made = true;
	return fd;
}

/* An export over the store that it comes from would leave neither. */
static bool is_store(const char *output, const char *store)
{
	struct stat a, b;
	return stat(output, &a) == 0 && stat(store, &b) == 0 && a.st_dev == b.st_dev &&
		a.st_ino == b.st_ino;
}

/* "PATH-wal" or "PATH-shm", and PATH is there: of whatever store, that name is not ours to give. */
static bool is_part(const char *path)
{
	char stem[PATH_MAX];
	size_t n = strlen(path);
	if (n < 5 || n >= sizeof(stem) ||
		(strcmp(path + n - 4, "-wal") != 0 && strcmp(path + n - 4, "-shm") != 0))
		return false;
	(void)snprintf(stem, sizeof(stem), "%.*s", (int)(n - 4), path);
	return access(stem, F_OK) == 0;
}

/* "PATH-wal" is there: the log of a store that is served, or was not closed. */
static bool has_log(const char *path)
{
	char log[PATH_MAX];
	int n = snprintf(log, sizeof(log), "%s-wal", path);
	return n < 0 || n >= (int)sizeof(log) || access(log, F_OK) == 0;
}

static bool may_make(const struct command *c, const char *path, const char *store, bool force)
{
	struct stat st;
	bool there = lstat(path, &st) == 0;
	if (there && is_store(path, store))
		(void)command_fail(stderr, c->name, "'%s' is the store itself", path);
	else if (is_part(path))
		(void)command_fail(stderr, c->name,
			"'%s' is the name of a part of a store; take another one", path);
	else if (there && !force)
		(void)command_fail(stderr, c->name,
			"'%s' exists already, and is left as it is; --force replaces it", path);
	else if (there && !S_ISREG(st.st_mode))
		(void)command_fail(stderr, c->name, "'%s' is not a plain file", path);
	else if (has_log(path))
		(void)command_fail(stderr, c->name,
			"there is '%s-wal', the log of a store that is in use or was not closed; take "
			"another name",
			path);
	else
		return true;
	return false;
}

static int finish_made(const struct command *c, const struct files *f, int code)
{
	enum err e = code == EXIT_DONE ? new_file_place(f->partial, f->final, f->force) : ERR_OK;
	if (e != ERR_OK || code != EXIT_DONE)
		(void)unlink(f->partial);
	else if (new_file_sync_name(f->final) != ERR_OK)
		return command_fail(stderr, c->name,
			"'%s' is there and whole, but its name may not survive a power cut",
			f->output);
	return e == ERR_OK ? code
			   : command_fail(stderr, c->name, "cannot make '%s': %s", f->output,
				     e == ERR_NAME_EXISTS ? "it exists by now" : err_text(e));
}

static int finish_output(const struct command *c, const struct files *f, int code)
{
	if (f->partial[0] == 0)
		return code;
	if (f->made)
		return finish_made(c, f, code);
	if (code == EXIT_DONE && rename(f->partial, f->final) == 0)
		return EXIT_DONE;
	if (code == EXIT_DONE)
		code = command_fail(stderr, c->name, "cannot write '%s': %s", f->output,
			strerrordesc_np(errno));
	(void)unlink(f->partial);
	return code;
}

/* Only what this command made: another one that was quicker may have put its output there. */
static void remove_fresh(const struct files *f)
{
	struct stat st;
	if (f->fresh && lstat(f->output, &st) == 0 && st.st_dev == f->fresh_dev &&
		st.st_ino == f->fresh_ino)
		(void)unlink(f->output);
}

/* Before the process is ended because somebody does not answer. */
static void drop_output(void *arg)
{
	const struct files *f = arg;
	if (f->partial[0] != 0)
		(void)unlink(f->partial);
	remove_fresh(f);
}

static int duplicate(int fd)
{
	return fcntl(fd, F_DUPFD_CLOEXEC, 3);
}

static bool add_output(struct files *f, const struct command *c, const struct args *args)
{
	const char *output = (c->flags & COMMAND_OUTPUT) != 0 ? args_value(args, "output") : NULL;
	f->output = output != NULL && strcmp(output, "-") != 0 ? output : NULL;
	if (f->output == NULL)
		return add(f, c, "standard output", duplicate(STDOUT_FILENO));
	/* It may be in a mount whose server does not answer; so may inputs. */
	signals_wait_file(output);
	bool is_part_of_store = is_store(output, args->words[0]) || is_part(output);
	int fd = is_part_of_store ? -1 : open_output(f);
	signals_go_on();
	if (!is_part_of_store)
		return add(f, c, output, fd);
	(void)command_fail(stderr, c->name, "'%s' is the store itself, or a part of one", output);
	return false;
}

static bool add_input(struct files *f, const struct command *c, const char *name)
{
	if (strcmp(name, "-") == 0)
		return add(f, c, name, duplicate(STDIN_FILENO));
	signals_wait_file(name);
	int fd = open(name, O_RDONLY | O_CLOEXEC);
	signals_go_on();
	return add(f, c, name, fd);
}

static bool open_files(const struct command *c, const struct args *args, struct files *f)
{
	const char *const *names;
	size_t n;
	execute_inputs(c, args, &names, &n);
	f->fds = calloc(n + EXECUTE_INPUTS + 1, sizeof(*f->fds));
	if (f->fds == NULL || !add_output(f, c, args) ||
		!add(f, c, "standard error", duplicate(STDERR_FILENO)))
		return false;
	if ((c->flags & COMMAND_MAKES_FILE) != 0) {
		f->force = args_has(args, "force");
		return may_make(c, names[0], args->words[0], f->force) &&
			add(f, c, names[0], make_file(f, names[0]));
	}
	for (size_t i = 0; i < n; i++)
		if (!add_input(f, c, names[i]))
			return false;
	if (n == 0 && c->first_input > 0)
		return add(f, c, "standard input", duplicate(STDIN_FILENO));
	return true;
}

static enum err try_open(
	const struct command *c, const char *path, struct store **ret, struct err_detail *why)
{
	enum err e = ERR_READ_ONLY;
	/* Else a log that waits to be replayed: the store is recovered, as by any opening. */
	if ((c->flags & COMMAND_ONLY_READS) != 0)
		e = store_open(path, STORE_OPEN_READ_ONLY, ret, NULL, why);
	if (e == ERR_READ_ONLY) {
		*why = (struct err_detail){ 0 };
		e = store_open(path, 0, ret, NULL, why);
	}
	bool reads = (c->flags & COMMAND_READS) != 0;
	if (reads &&
		(e == ERR_READ_ONLY || e == ERR_ACCESS || e == ERR_NO_SPACE || e == ERR_CORRUPT)) {
		*why = (struct err_detail){ 0 };
		e = store_open(path, STORE_OPEN_READ_ONLY, ret, NULL, why);
	}
	return e;
}

static int run_here(const struct command *c, const struct args *args, struct store *store,
	const struct store_salvage *salvaged, int argc, char *const *argv, struct files *f)
{
	struct service *s;
	const char *path = args->words[0];
	enum err e = service_new(store, &s);
	if (e != ERR_OK)
		return command_fail(stderr, c->name, "cannot open '%s': %s", path, err_text(e));
	char said[PATH_MAX + 256];
	if (command_upgraded(s, path, said, sizeof(said)))
		(void)command_fail(stderr, c->name, "%s", said);
	/* Others work through this process meanwhile: rowfs export S A/T | rowfs import S A/U. */
	struct control *control = NULL;
	struct stat st;
	if (salvaged == NULL && path_stat_store(path, &st))
		(void)control_start(s, &st, args->table, NULL, &control);
	const struct cmd_env at = {
		.service = s, .salvaged = salvaged, .cancelled = signals_cancelled
	};
	int code = execute(args->table, &at, argc, argv, f->fds, f->n);
	/* The reader of our output must see its end before we wait for the reader. */
	close(STDOUT_FILENO);
	control_finish(control);
	service_free(s);
	return code;
}

/* False: nothing happened, try again.  *silent: the server that did not take the last try, or 0.  A server of an older
 * build hangs up on a description of the terminal, so its second try is without. */
static bool run_there(const struct command *c, const char *path, int sock,
	const struct ucred *server, int argc, char *const *argv, const struct files *f,
	pid_t *silent, int *ret_code)
{
	if (server->pid == *silent)
		(void)terminal_take(&argc, &argv);
	*silent = server->pid;
	switch (control_call(sock, server, path, argc, argv, f->fds, f->n, ret_code)) {
	case CONTROL_DONE:
		return true;
	case CONTROL_NOT_TAKEN:
		return false;
	case CONTROL_REFUSED:
		*ret_code = user_refused(c->name, path, server);
		return true;
	case CONTROL_LOST:
		break;
	}
	*ret_code = command_fail(stderr, c->name,
		"the process that serves '%s' went away before it was done; try again", path);
	return true;
}

/* Runs the command on a temporary store that is salvaged from the damaged one. */
static enum err run_salvaged(const struct command *c, const struct args *args, int argc,
	char *const *argv, struct files *f, int *ret_code, struct err_detail *why)
{
	struct salvaged s;
	struct store *store;
	enum err e = salvaged_make(&s, c->name, args->words[0], args->words[1], why);
	if (e == ERR_OK) {
		e = store_open(s.scratch.path, STORE_OPEN_READ_ONLY, &store, NULL, why);
		if (e == ERR_OK)
			*ret_code = run_here(c, args, store, &s.salvage, argc, argv, f);
	}
	salvaged_remove(&s);
	return e;
}

static enum err run_unserved(const struct command *c, const struct args *args, int argc,
	char *const *argv, struct files *f, int *ret_code, struct err_detail *why)
{
	struct store *store;
	if ((c->flags & COMMAND_SALVAGES) != 0 && args_has(args, "skip-damaged"))
		return run_salvaged(c, args, argc, argv, f, ret_code, why);
	enum err e = try_open(c, args->words[0], &store, why);
	if (e == ERR_OK)
		*ret_code = run_here(c, args, store, NULL, argc, argv, f);
	return e;
}

/* The process that serves a store is not asked: the credential is the caller's. */
static int run_elsewhere(const struct command *c, const struct args *args, int argc,
	char *const *argv, struct files *f)
{
	struct cmd_env at = { .cancelled = signals_cancelled };
	if ((c->flags & COMMAND_ELSEWHERE) == 0)
		return command_fail(stderr, c->name,
			"this command takes a store of this machine, not the URL '%s'",
			args->words[0]);
	if (!elsewhere_open(c, args, &at, stderr))
		return EXIT_FAILED;
	int code = execute(args->table, &at, argc, argv, f->fds, f->n);
	client_free(at.client);
	return code;
}

static int run_on_store(const struct command *c, const struct args *args, int argc,
	char *const *argv, struct files *f)
{
	const char *path = args->words[0];
	struct err_detail why = { 0 };
	enum err e = ERR_BUSY;
	pid_t silent = 0;
	for (int tries = 0; tries < BUSY_TRIES; tries++) {
		struct stat st;
		signals_wait_file(path);
		bool found = path_stat_store(path, &st);
		signals_go_on();
		if (!found) {
			if (errno == ENOENT)
				return command_fail(stderr, c->name,
					"there is no store '%s'; make it with: rowfs init %s", path,
					path);
			return command_fail(
				stderr, c->name, "'%s': %s", path, strerrordesc_np(errno));
		}
		struct ucred server;
		int sock = control_connect(path, &st, &server);
		int code;
		if (sock >= 0 && run_there(c, path, sock, &server, argc, argv, f, &silent, &code))
			return code;
		if (signals_cancelled(NULL))
			return command_fail(stderr, c->name, "cancelled");
		if (sock >= 0) {
			usleep(BUSY_WAIT_US);
			continue;
		}
		why = (struct err_detail){ 0 };
		e = run_unserved(c, args, argc, argv, f, &code, &why);
		if (e == ERR_OK)
			return code;
		if (e != ERR_BUSY)
			break;
		usleep(BUSY_WAIT_US);
	}
	return command_fail(
		stderr, c->name, "cannot open the store '%s': %s", path, err_message(e, &why));
}

/* Puts the words that describe the caller's terminal before the command.  Returns the new number of
 * words; ret has room for one more than argc. */
static int with_terminal(int argc, char *const *argv, char **ret)
{
	const struct terminal here = terminal_here();
	const char *word = terminal_word(&here);
	int n = word != NULL;
	ret[0] = (char *)(uintptr_t)word;
	memcpy(ret + n, argv, (size_t)argc * sizeof(*argv));
	return argc + n;
}

int run_data_command(
	const struct command *c, const struct args *args, int nwords, char *const *words)
{
	struct files f = { 0 };
	int code = EXIT_FAILED;
	if (!elsewhere_check(c, args, stderr))
		return EXIT_USAGE;
	if (c->ask != NULL && !c->ask(args))
		return EXIT_FAILED;
	char **argv = calloc((size_t)nwords + 1, sizeof(*argv));
	if (argv == NULL)
		return command_fail(stderr, c->name, "out of memory");
	int argc = with_terminal(nwords, words, argv);
	signals_catch(c->name);
	signals_at_end(drop_output, &f);
	char path[PATH_MAX];
	bool found = true;
	if ((c->flags & COMMAND_MOUNTED) != 0) {
		found = mounted_store(c->name, args->words[0], path);
		args->words[0] = path;
	}
	if (found && open_files(c, args, &f))
		code = (elsewhere_is(args->words[0]) ? run_elsewhere : run_on_store)(
			c, args, argc, argv, &f);
	signals_wait_end("'%s'", f.output != NULL ? f.output : "standard output");
	close_files(&f);
	code = finish_output(c, &f, code);
	if (code != EXIT_DONE)
		remove_fresh(&f);
	signals_go_on();
	signals_at_end(NULL, NULL);
	free(f.final);
	free(argv);
	return code;
}
