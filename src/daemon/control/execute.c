/* SPDX-License-Identifier: MIT */
#include "daemon/control/execute.h"

#include "base/clock.h"
#include "daemon/core/stream.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void execute_inputs(const struct command *c, const struct args *args, const char *const **ret_names,
	size_t *ret_n)
{
	bool some = c->first_input > 0 && args->nwords > c->first_input;
	*ret_names = some ? args->words + c->first_input : NULL;
	*ret_n = some ? (size_t)(args->nwords - c->first_input) : 0;
}

/* Makes env->inputs of the descriptors; those taken over are set to -1. */
static bool open_inputs(struct cmd_env *env, const struct command *c, const struct args *args,
	int *fds, size_t nfds)
{
	const char *const *names;
	size_t nnames;
	execute_inputs(c, args, &names, &nnames);
	env->inputs = calloc(nfds + 1, sizeof(*env->inputs));
	if (env->inputs == NULL)
		return false;
	for (size_t i = EXECUTE_INPUTS; i < nfds; i++) {
		size_t k = i - EXECUTE_INPUTS;
		bool named = k < nnames && strcmp(names[k], "-") != 0;
		int fd = fds[i];
		FILE *f = stream_open(fd, "r", env->cancelled, env->cancel_arg);
		fds[i] = -1;
		if (f == NULL)
			return false;
		env->inputs[env->ninputs++] =
			(struct cmd_input){ named ? names[k] : "standard input", f, fd };
	}
	return true;
}

static enum metrics_end end_of(int code)
{
	return code == EXIT_DONE     ? METRICS_DONE
		: code == EXIT_USAGE ? METRICS_REFUSED
				     : METRICS_FAILED;
}

static int run(const struct command_table *table, struct cmd_env *env, int argc, char *const *argv,
	int *fds, size_t nfds)
{
	int words;
	env->terminal = terminal_take(&argc, &argv);
	const struct command *c = command_find(table, argc, argv, &words);
	if (c == NULL || c->data == NULL) {
		fprintf(env->err, "rowfs: the process that serves the store does not know '%s'\n",
			argc > 0 ? argv[0] : "");
		return EXIT_USAGE;
	}
	struct args args;
	int code = EXIT_USAGE;
	uint64_t start = clock_mono_us();
	if (command_parse(c, argc - words, argv + words, &args, env->err)) {
		env->store = args.words[0];
		code = open_inputs(env, c, &args, fds, nfds)
			? c->data(env, &args)
			: command_fail(env->err, c->name, "out of memory");
	}
	if (fflush(env->out) != 0 && errno != EPIPE && code == EXIT_DONE)
		code = command_fail(
			env->err, c->name, "cannot write the output: %s", strerrordesc_np(errno));
	args_fini(&args);
	if (ferror(env->out) && code == EXIT_DONE)
		code = EXIT_FAILED;
	if (env->service != NULL)
		command_count(table, env->service, c, clock_mono_us() - start, end_of(code));
	return code;
}

static void close_all(struct cmd_env *env, const int *fds, size_t nfds)
{
	for (size_t i = 0; i < env->ninputs; i++)
		(void)fclose(env->inputs[i].file);
	free(env->inputs);
	if (env->out != NULL)
		(void)fclose(env->out);
	if (env->err != NULL)
		(void)fclose(env->err);
	for (size_t i = 0; i < nfds; i++)
		if (fds[i] >= 0)
			close(fds[i]);
}

static FILE *take(const struct cmd_env *env, int *fd)
{
	FILE *f = stream_open(*fd, "w", env->cancelled, env->cancel_arg);
	*fd = -1;
	return f;
}

int execute(const struct command_table *table, const struct cmd_env *at, int argc,
	char *const *argv, int *fds, size_t nfds)
{
	struct cmd_env env = *at;
	env.out_fd = fds[EXECUTE_OUT];
	env.err_fd = fds[EXECUTE_ERR];
	int code = EXIT_FAILED;
	env.out = take(&env, &fds[EXECUTE_OUT]);
	env.err = take(&env, &fds[EXECUTE_ERR]);
	if (env.out != NULL && env.err != NULL) {
		(void)setvbuf(env.err, NULL, _IOLBF, BUFSIZ);
		code = run(table, &env, argc, argv, fds, nfds);
	}
	close_all(&env, fds, nfds);
	return code;
}
