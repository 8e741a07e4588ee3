/* SPDX-License-Identifier: MIT
 * meanwhile [-r] [-P NAME] HOOK -- COMMAND...: runs COMMAND and, once, HOOK (a line for sh) at
 * the moment right before COMMAND begins to change the file NAME of the current directory.
 * That moment is the system call that truncates, replaces, renames or removes the file, or the
 * first one that writes through a descriptor of it; with -r the first that reads through one.
 * A debugger's interface and not a preloaded library, so that static programs and those that
 * do without libc are held too; a filter lets all other calls run at full speed.
 * Exits as COMMAND does: 128 + number after a signal, 125 if it cannot be run at all. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCH AUDIT_ARCH_AARCH64
#else
#error "which AUDIT_ARCH_ is this?"
#endif

#define CANNOT 125

/* How a call names the file. */
enum how {
	OPEN_AT,   /* directory, path, flags */
	OPEN,      /* path, flags */
	PATH,      /* path */
	PATH_AT,   /* directory, path */
	LINK_AT,   /* text, directory, path */
	TWO_PATHS, /* path, path */
	TWO_AT,    /* directory, path, directory, path */
	WRITES_0,  /* argument 0 is a descriptor that is written to */
	READS_0,   /* and one that is read from */
	COPIES,    /* from argument 0 to argument 2 */
	SENDS,     /* to argument 0 from argument 1 */
	MAPS,      /* protection in 2, flags in 3, descriptor in 4 */
};

struct call {
	long nr;
	enum how how;
};

static const struct call CALLS[] = {
	{ SYS_openat, OPEN_AT },
	{ SYS_unlinkat, PATH_AT },
	{ SYS_renameat2, TWO_AT },
	{ SYS_linkat, TWO_AT },
	{ SYS_truncate, PATH },
	{ SYS_write, WRITES_0 },
	{ SYS_pwrite64, WRITES_0 },
	{ SYS_writev, WRITES_0 },
	{ SYS_pwritev, WRITES_0 },
	{ SYS_pwritev2, WRITES_0 },
	{ SYS_ftruncate, WRITES_0 },
	{ SYS_fchmod, WRITES_0 },
	{ SYS_fchown, WRITES_0 },
	{ SYS_fchmodat, PATH_AT },
	{ SYS_fchownat, PATH_AT },
	{ SYS_utimensat, PATH_AT },
	{ SYS_symlinkat, LINK_AT },
	{ SYS_setxattr, PATH },
	{ SYS_fallocate, WRITES_0 },
	{ SYS_read, READS_0 },
	{ SYS_pread64, READS_0 },
	{ SYS_readv, READS_0 },
	{ SYS_preadv, READS_0 },
	{ SYS_preadv2, READS_0 },
	{ SYS_copy_file_range, COPIES },
	{ SYS_splice, COPIES },
	{ SYS_sendfile, SENDS },
	{ SYS_mmap, MAPS },
#ifdef SYS_renameat
	{ SYS_renameat, TWO_AT },
#endif
#ifdef SYS_open
	{ SYS_open, OPEN },
	{ SYS_creat, PATH },
	{ SYS_unlink, PATH },
	{ SYS_chmod, PATH },
	{ SYS_chown, PATH },
	{ SYS_rename, TWO_PATHS },
	{ SYS_link, TWO_PATHS },
#endif
};
#define N_CALLS (sizeof CALLS / sizeof CALLS[0])

struct watch {
	const char *name;
	const char *hook;
	char path[PATH_MAX]; /* of the file, as /proc/PID/fd shows it */
	struct stat dir;
	bool reads;
	bool done;
};

static _Noreturn void die(const char *what)
{
	fprintf(stderr, "meanwhile: %s: %s\n", what, strerrorname_np(errno));
	_exit(CANNOT);
}

/* The directory of a path as the stopped thread sees it, by way of /proc. */
static bool is_watched_dir(const struct watch *w, pid_t tid, int dirfd, const char *dir)
{
	char at[PATH_MAX + 64];
	struct stat st;
	if (dir[0] == '/')
		snprintf(at, sizeof at, "%s", dir);
	else if (dirfd == AT_FDCWD)
		snprintf(at, sizeof at, "/proc/%d/cwd/%s", tid, dir);
	else
		snprintf(at, sizeof at, "/proc/%d/fd/%d/%s", tid, dirfd, dir);
	return stat(at, &st) == 0 && st.st_dev == w->dir.st_dev && st.st_ino == w->dir.st_ino;
}

static bool is_watched_path(const struct watch *w, pid_t tid, uint64_t dirfd, uint64_t address)
{
	char path[PATH_MAX], mem_path[64];
	snprintf(mem_path, sizeof mem_path, "/proc/%d/mem", tid);
	int mem = open(mem_path, O_RDONLY | O_CLOEXEC);
	if (mem < 0)
		return false;
	ssize_t n = pread(mem, path, sizeof path, (off_t)address);
	close(mem);
	if (n <= 0 || !memchr(path, 0, (size_t)n))
		return false;
	char *slash = strrchr(path, '/');
	if (strcmp(slash ? slash + 1 : path, w->name) != 0)
		return false;
	if (!slash)
		return is_watched_dir(w, tid, (int)dirfd, ".");
	slash[1] = 0;
	return is_watched_dir(w, tid, (int)dirfd, path);
}

static bool is_watched_fd(const struct watch *w, pid_t tid, uint64_t fd)
{
	char at[64], path[PATH_MAX];
	snprintf(at, sizeof at, "/proc/%d/fd/%d", tid, (int)fd);
	ssize_t n = readlink(at, path, sizeof path - 1);
	if (n < 0)
		return false;
	path[n] = 0;
	return strcmp(path, w->path) == 0;
}

static bool replaces(uint64_t flags)
{
	return flags & O_TRUNC || (flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL);
}

static bool shared_writing(const uint64_t *arg)
{
	return arg[2] & PROT_WRITE && (arg[3] & MAP_TYPE) != MAP_PRIVATE;
}

static bool is_change(const struct watch *w, pid_t tid, enum how how, const uint64_t *arg)
{
	uint64_t cwd = (uint64_t)AT_FDCWD;
	switch (how) {
	case OPEN_AT:
		return replaces(arg[2]) && is_watched_path(w, tid, arg[0], arg[1]);
	case OPEN:
		return replaces(arg[1]) && is_watched_path(w, tid, cwd, arg[0]);
	case PATH:
		return is_watched_path(w, tid, cwd, arg[0]);
	case PATH_AT: /* without a path: the descriptor itself */
		return arg[1] ? is_watched_path(w, tid, arg[0], arg[1])
			      : is_watched_fd(w, tid, arg[0]);
	case LINK_AT:
		return is_watched_path(w, tid, arg[1], arg[2]);
	case TWO_PATHS:
		return is_watched_path(w, tid, cwd, arg[0]) || is_watched_path(w, tid, cwd, arg[1]);
	case TWO_AT:
		return is_watched_path(w, tid, arg[0], arg[1]) ||
			is_watched_path(w, tid, arg[2], arg[3]);
	case WRITES_0:
	case SENDS:
		return is_watched_fd(w, tid, arg[0]);
	case COPIES:
		return is_watched_fd(w, tid, arg[2]);
	case MAPS:
		return shared_writing(arg) && is_watched_fd(w, tid, arg[4]);
	case READS_0:
		return false;
	}
	return false;
}

static bool is_read(const struct watch *w, pid_t tid, enum how how, const uint64_t *arg)
{
	if (how == READS_0 || how == COPIES)
		return is_watched_fd(w, tid, arg[0]);
	if (how == SENDS)
		return is_watched_fd(w, tid, arg[1]);
	return how == MAPS && is_watched_fd(w, tid, arg[4]);
}

static void run_hook(const char *hook)
{
	pid_t pid = fork();
	if (pid == 0) {
		execl("/bin/sh", "sh", "-c", hook, (char *)NULL);
		die("/bin/sh");
	}
	if (pid < 0 || waitpid(pid, NULL, 0) != pid)
		die("the hook");
}

/* A thread is stopped at a call that the filter let through to here. */
static void at_call(struct watch *w, pid_t tid)
{
	struct __ptrace_syscall_info info = { 0 };
	if (w->done || ptrace(PTRACE_GET_SYSCALL_INFO, tid, sizeof info, &info) <= 0 ||
		info.op != PTRACE_SYSCALL_INFO_SECCOMP)
		return;
	for (size_t i = 0; i < N_CALLS; i++) {
		if ((uint64_t)CALLS[i].nr != info.seccomp.nr)
			continue;
		uint64_t arg[6];
		for (size_t k = 0; k < 6; k++)
			arg[k] = info.seccomp.args[k];
		if (w->reads ? is_read(w, tid, CALLS[i].how, arg)
			     : is_change(w, tid, CALLS[i].how, arg)) {
			w->done = true;
			run_hook(w->hook);
		}
		return;
	}
}

static void install_filter(void)
{
	struct sock_filter code[N_CALLS + 5];
	size_t n = 0;
	code[n++] = (struct sock_filter)BPF_STMT(
		BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch));
	code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCH, 0, N_CALLS + 1);
	code[n++] = (struct sock_filter)BPF_STMT(
		BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
	for (size_t i = 0; i < N_CALLS; i++)
		code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
			(uint32_t)CALLS[i].nr, (uint8_t)(N_CALLS - i), 0);
	code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE);
	struct sock_fprog program = { .len = (unsigned short)n, .filter = code };
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0)
		return;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
		prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
		die("the filter");
}

/* The child stops itself once, so that nothing of the command escapes. */
static pid_t start(char **command)
{
	pid_t pid = fork();
	if (pid < 0)
		die("fork");
	if (pid == 0) {
		raise(SIGSTOP);
		install_filter();
		execvp(command[0], command);
		die(command[0]);
	}
	int status;
	if (waitpid(pid, &status, WUNTRACED) != pid || !WIFSTOPPED(status))
		die("the command");
	long options = PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE |
		PTRACE_O_TRACEEXEC | PTRACE_O_TRACESECCOMP | PTRACE_O_EXITKILL;
	if (ptrace(PTRACE_SEIZE, pid, 0, options) != 0)
		die("ptrace");
	kill(pid, SIGCONT);
	return pid;
}

static bool is_group_stop(int event, int signo)
{
	return event == PTRACE_EVENT_STOP &&
		(signo == SIGSTOP || signo == SIGTSTP || signo == SIGTTIN || signo == SIGTTOU);
}

static int follow(struct watch *w, pid_t command)
{
	int status, exit_status = CANNOT;
	for (pid_t tid; (tid = waitpid(-1, &status, __WALL)) > 0 || errno == EINTR;) {
		if (tid < 0)
			continue;
		if (tid == command && WIFEXITED(status))
			exit_status = WEXITSTATUS(status);
		else if (tid == command && WIFSIGNALED(status))
			exit_status = 128 + WTERMSIG(status);
		if (!WIFSTOPPED(status))
			continue;
		int event = status >> 16, signo = WSTOPSIG(status);
		if (event == PTRACE_EVENT_SECCOMP)
			at_call(w, tid);
		if (is_group_stop(event, signo))
			ptrace(PTRACE_LISTEN, tid, 0, 0);
		else
			ptrace(PTRACE_CONT, tid, 0, event ? 0L : (long)signo);
	}
	return exit_status;
}

int main(int argc, char **argv)
{
	struct watch w = { .name = "r.json" };
	for (int c; (c = getopt(argc, argv, "+rP:")) != -1;) {
		if (c == 'r')
			w.reads = true;
		else if (c == 'P')
			w.name = optarg;
		else
			return CANNOT;
	}
	if (argc - optind < 3 || strcmp(argv[optind + 1], "--") != 0) {
		fputs("usage: meanwhile [-r] [-P NAME] HOOK -- COMMAND...\n", stderr);
		return CANNOT;
	}
	w.hook = argv[optind];
	char cwd[PATH_MAX / 2];
	if (!getcwd(cwd, sizeof cwd) || stat(".", &w.dir) != 0)
		die("the current directory");
	snprintf(w.path, sizeof w.path, "%s/%.255s", cwd, w.name);
	return follow(&w, start(argv + optind + 2));
}
