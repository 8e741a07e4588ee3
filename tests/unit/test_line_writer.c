/* SPDX-License-Identifier: MIT
 * Lines that a thread writes: order, a reader that stops, a file that is full or was renamed. */
#include "base/line_writer.h"
#include "check.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[64], path[80];

static void begin(const char *name)
{
	(void)snprintf(dir, sizeof(dir), "/tmp/rowfs-lines.XXXXXX");
	CHECK(mkdtemp(dir) != NULL);
	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
}

static void end(void)
{
	(void)unlink(path);
	(void)rmdir(dir);
}

/* Sends stderr into a file and returns its descriptor; *ret_old is for restore(). */
static int catch_stderr(int *ret_old)
{
	char name[96];
	(void)snprintf(name, sizeof(name), "%s/stderr", dir);
	int fd = open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	(void)unlink(name);
	*ret_old = dup(STDERR_FILENO);
	(void)dup2(fd, STDERR_FILENO);
	return fd;
}

static void restore(int fd, int old, char *out, size_t n)
{
	ssize_t got = pread(fd, out, n - 1, 0);
	out[got > 0 ? got : 0] = '\0';
	(void)dup2(old, STDERR_FILENO);
	close(old);
	close(fd);
}

static size_t size_of(const char *file)
{
	struct stat st;
	return stat(file, &st) == 0 ? (size_t)st.st_size : 0;
}

TEST(lines_come_into_the_file_in_order)
{
	struct line_writer *w = NULL;
	char line[16], all[4096] = "", got[4096] = "";
	begin("log");
	CHECK_ERR(line_writer_open("test", path, &w, NULL), ERR_OK);
	for (int i = 0; i < 500; i++) {
		int n = snprintf(line, sizeof(line), "%d\n", i);
		line_writer_add(w, span_make(line, (size_t)n));
		(void)snprintf(all + strlen(all), sizeof(all) - strlen(all), "%s", line);
	}
	line_writer_close(w);
	int fd = open(path, O_RDONLY);
	CHECK(read(fd, got, sizeof(got) - 1) > 0);
	CHECK_EQ_STR(got, all);
	close(fd);
	end();
}

TEST(a_reader_that_stops_delays_no_caller_and_lines_are_counted)
{
	static char line[1024], said[4096];
	struct line_writer *w = NULL;
	int old;
	begin("fifo");
	CHECK_ERR(line_writer_open("test", path, &w, NULL), ERR_OK);
	line_writer_close(w);
	(void)unlink(path);
	CHECK_EQ_INT(mkfifo(path, 0600), 0);
	CHECK(line_writer_open("test", path, &w, NULL) != ERR_OK); /* nobody reads it */
	int reader = open(path, O_RDONLY | O_NONBLOCK);
	CHECK_ERR(line_writer_open("test", path, &w, NULL), ERR_OK);
	memset(line, 'x', sizeof(line));
	line[sizeof(line) - 1] = '\n';
	int fd = catch_stderr(&old);
	for (size_t n = 0; n < 4 * LINE_WRITER_ROOM; n += sizeof(line))
		line_writer_add(w, span_make(line, sizeof(line)));
	line_writer_close(w);
	restore(fd, old, said, sizeof(said));
	CHECK(strstr(said, "test: ") != NULL && strstr(said, "lines were left out of '") != NULL);
	CHECK(strstr(said, "it was too slow") != NULL);
	close(reader);
	end();
}

TEST(a_full_file_is_told_with_its_reason)
{
	char said[4096];
	struct line_writer *w = NULL;
	int old;
	begin("none");
	CHECK_ERR(line_writer_open("test", "/dev/full", &w, NULL), ERR_OK);
	int fd = catch_stderr(&old);
	line_writer_add(w, SPAN_LIT("a\nb\n"));
	line_writer_close(w);
	restore(fd, old, said, sizeof(said));
	CHECK(strstr(said, "2 lines were left out of '/dev/full': No space left") != NULL);
	end();
}

TEST(a_renamed_file_is_opened_again)
{
	char older[96];
	struct line_writer *w = NULL;
	struct err_detail why = { 0 };
	begin("log");
	(void)snprintf(older, sizeof(older), "%s.1", path);
	CHECK_ERR(line_writer_open("test", path, &w, NULL), ERR_OK);
	CHECK_EQ_INT(rename(path, older), 0);
	CHECK_ERR(line_writer_reopen(w, &why), ERR_OK);
	line_writer_add(w, SPAN_LIT("new\n"));
	line_writer_close(w);
	CHECK_EQ_INT(size_of(older), 0);
	CHECK_EQ_INT(size_of(path), 4);
	(void)unlink(older);
	end();
}

TEST(without_its_folder_the_old_file_stays)
{
	char moved[96];
	struct line_writer *w = NULL;
	struct err_detail why = { 0 };
	begin("log");
	(void)snprintf(moved, sizeof(moved), "%s.moved", dir);
	CHECK_ERR(line_writer_open("test", path, &w, NULL), ERR_OK);
	CHECK_EQ_INT(rename(dir, moved), 0);
	CHECK_ERR(line_writer_reopen(w, &why), ERR_NOT_FOUND);
	CHECK(strstr(why.text, "cannot open '") != NULL);
	line_writer_add(w, SPAN_LIT("old\n"));
	line_writer_close(w);
	CHECK_EQ_INT(rename(moved, dir), 0);
	CHECK_EQ_INT(size_of(path), 4);
	end();
}

RUN_TESTS(T(lines_come_into_the_file_in_order),
	T(a_reader_that_stops_delays_no_caller_and_lines_are_counted),
	T(a_full_file_is_told_with_its_reason), T(a_renamed_file_is_opened_again),
	T(without_its_folder_the_old_file_stays))
