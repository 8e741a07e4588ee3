# SPDX-License-Identifier: MIT
"""Conditions of changes on the mount: `user.rowfs.if_match` of a descriptor that writes a row (L3),
of an ordinary file that is renamed over it (L4), and where it is refused (L5)."""

import errno
import json
import os
import signal
import subprocess
import traceback

import pytest

from tools import (
    EXCHANGE, NOREPLACE, errors, get, need, put, raises, reason, rejected, renameat2,
    sanitized, sh, xattr)

IF_MATCH = "user.rowfs.if_match"
WRITERS, STEPS = 8, 15 if sanitized() else 40
NO_VERSION = b"W/\"datetime'2001-01-01T00%3A00%3A00Z'\""


def etag(path):
    return os.getxattr(path, "user.rowfs.etag")


def older(path, text):
    """An ETag that the row had before it became this."""
    put(path, '{"v":0}')
    old = etag(path)
    put(path, text)
    return old


def overwrite(path, condition, text):
    """Through a descriptor that loaded nothing."""
    fd = os.open(path, os.O_WRONLY | os.O_TRUNC)
    try:
        os.setxattr(fd, IF_MATCH, condition)
        os.write(fd, text)
    finally:
        os.close(fd)


def temporary(path, condition, text):
    put(path, text)
    os.setxattr(path, IF_MATCH, condition)
    return path


# ---- nothing is lost


def count_by_descriptor(row, me):
    seen, n = etag(row), json.loads(get(row))["n"]
    overwrite(row, seen, b'{"n":%d}' % (n + 1))


def count_by_reader(row, me):
    """ETag and content by one descriptor."""
    fd = os.open(row, os.O_RDONLY)
    seen, n = etag(fd), json.loads(os.read(fd, 999))["n"]
    os.close(fd)
    overwrite(row, seen, b'{"n":%d}' % (n + 1))


def count_by_file(row, me):
    seen, n = etag(row), json.loads(get(row))["n"]
    os.rename(temporary(row.parent / f"tmp{me}", seen, b'{"n":%d}' % (n + 1)), row)


def count_by_exchange(row, me):
    """What was found by its path may be the file beside the row (ENODATA) when it is asked."""
    seen, n = etag(row), json.loads(get(row))["n"]
    renameat2(temporary(row.parent / f"tmp{me}", seen, b'{"n":%d}' % (n + 1)), row, EXCHANGE)


def count_by_loading(row, me):
    fd = os.open(row, os.O_RDWR)
    try:
        n = json.loads(os.read(fd, 999))["n"]
        os.pwrite(fd, b'{"n":%d}' % (n + 1), 0)
    finally:
        os.close(fd)


def all_count(row, step):
    children = []
    for me in range(WRITERS):
        pid = os.fork()
        if pid == 0:
            done, code = 0, 1
            try:
                while done < STEPS:
                    try:
                        step(row, me)
                    except OSError as e:
                        if e.errno not in (errno.ESTALE, errno.ENODATA):
                            raise
                    else:
                        done += 1
                code = 0
            except OSError:
                traceback.print_exc()
            finally:
                os._exit(code)
        children.append(pid)
    return [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children]


@pytest.mark.parametrize("step", [count_by_descriptor, count_by_reader])
def test_L3_writers_that_set_it_on_their_descriptors_lose_nothing(part, step):
    put(part / "r.json", '{"n":0}')
    assert all_count(part / "r.json", step) == [0] * WRITERS
    assert json.loads(get(part / "r.json")) == {"n": WRITERS * STEPS}


@pytest.mark.parametrize("step", [count_by_file, count_by_exchange])
def test_L4_writers_that_set_it_on_their_files_lose_nothing(part, step):
    put(part / "r.json", '{"n":0}')
    assert all_count(part / "r.json", step) == [0] * WRITERS
    assert json.loads(get(part / "r.json")) == {"n": WRITERS * STEPS}


def test_L1_writers_that_load_the_row_lose_nothing(part):
    put(part / "r.json", '{"n":0}')
    assert all_count(part / "r.json", count_by_loading) == [0] * WRITERS
    assert json.loads(get(part / "r.json")) == {"n": WRITERS * STEPS}


COUNTER = """
for ((i = 0; i < %d; i++)); do
    until
        etag=$(getfattr --only-values -n user.rowfs.etag r.json) &&
        IFS=':}' read -r _ n _ < r.json && echo "{\\"n\\":$((n + 1))}" > tmp.$$ &&
        setfattr -n user.rowfs.if_match -v "$etag" tmp.$$ && mv tmp.$$ r.json
    do [ -e r.json ] || exit 1; done 2>> $TMPDIR/err.$$
done
"""


def test_L4_shells_that_set_it_on_their_files_lose_nothing(part, work):
    need("setfattr")
    put(part / "r.json", '{"n":0}\n')
    running = [subprocess.Popen(["bash", "-c", COUNTER % STEPS], cwd=part,
                                env={**os.environ, "TMPDIR": str(work)}) for _ in range(WRITERS)]
    assert [p.wait() for p in running] == [0] * WRITERS
    assert json.loads(get(part / "r.json")) == {"n": WRITERS * STEPS}
    said = "".join(p.read_text() for p in work.glob("err.*"))
    assert all("Stale file handle" in line for line in said.splitlines())


# ---- descriptors


def test_L3_a_descriptor_that_does_not_match_changes_nothing_and_keeps_the_bytes(mnt, part):
    old = older(part / "r.json", '{"v":1}')
    with raises("ESTALE"):
        overwrite(part / "r.json", old, b'{"v":2}')
    assert get(part / "r.json") == b'{"v":1}'
    assert b'{"v":2}' in rejected(mnt).values()
    assert "UpdateConditionNotSatisfied" in reason(part / "r.json")
    assert "read it again" in errors(mnt)[-1]["message"]
    overwrite(part / "r.json", etag(part / "r.json"), b'{"v":2}')
    assert get(part / "r.json") == b'{"v":2}'


@pytest.mark.parametrize("condition,code", [(b"*", None), (b"", "ESTALE"), (NO_VERSION, "ESTALE"),
                                            (b'W/"0"', "ESTALE"), (b"nonsense", "EINVAL")])
def test_L3_what_a_descriptor_may_ask_of_a_row(part, condition, code):
    put(part / "r.json", '{"v":1}')
    if code:
        with raises(code):
            overwrite(part / "r.json", condition, b'{"v":2}')
    else:
        overwrite(part / "r.json", condition, b'{"v":2}')
    assert get(part / "r.json") == (b'{"v":1}' if code else b'{"v":2}')


@pytest.mark.parametrize("condition", [b"*", NO_VERSION])
@pytest.mark.parametrize("flags", [0, os.O_EXCL, os.O_TRUNC])
def test_L3_a_new_row_meets_only_that_there_is_none(part, condition, flags):
    for text, asked in ((b'{"v":1}', condition), (b'{"v":2}', b"")):
        fd = os.open(part / "n.json", os.O_WRONLY | os.O_CREAT | flags)
        os.setxattr(fd, IF_MATCH, asked)
        os.write(fd, text)
        if asked:
            with raises("ESTALE"):
                os.close(fd)
            assert get(part / "n.json") == b""  # the name stays (W13)
            os.unlink(part / "n.json")
        else:
            os.close(fd)
    assert get(part / "n.json") == b'{"v":2}'


def test_L3_a_new_row_is_not_made_over_another_one(part):
    fds = []
    for _ in range(2):
        fds.append(os.open(part / "n.json", os.O_WRONLY | os.O_CREAT))
        os.setxattr(fds[-1], IF_MATCH, b"")
        os.write(fds[-1], b'{"by":%d}' % fds[-1])
    os.close(fds[0])
    with raises("ESTALE"):
        os.close(fds[1])
    assert get(part / "n.json") == b'{"by":%d}' % fds[0]


def test_L3_what_is_set_is_told_and_taken_back(part):
    put(part / "r.json", '{"v":1}')
    fd = os.open(part / "r.json", os.O_WRONLY | os.O_TRUNC)
    with raises("ENODATA"):
        os.getxattr(fd, IF_MATCH)
    with raises("ENODATA"):
        os.removexattr(fd, IF_MATCH)
    for value in (etag(part / "r.json"), b"*", b"", NO_VERSION):
        os.setxattr(fd, IF_MATCH, value)
        assert os.getxattr(fd, IF_MATCH) == value
        with raises("ENODATA"):
            os.getxattr(part / "r.json", IF_MATCH)
    os.removexattr(fd, IF_MATCH)
    os.write(fd, b'{"v":2}')
    os.close(fd)
    assert get(part / "r.json") == b'{"v":2}'


def test_L3_it_is_of_one_descriptor_and_its_duplicates(part):
    put(part / "r.json", '{"v":1}')
    a = os.open(part / "r.json", os.O_WRONLY | os.O_TRUNC)
    b = os.open(part / "r.json", os.O_WRONLY | os.O_TRUNC)
    other = os.dup(a)
    os.setxattr(other, IF_MATCH, etag(part / "r.json"))
    os.close(other)  # nothing was written yet
    os.write(b, b'{"v":"b"}')
    os.close(b)  # it asked for nothing
    os.write(a, b'{"v":"a"}')
    with raises("ESTALE"):
        os.close(a)
    assert get(part / "r.json") == b'{"v":"b"}'


def test_L3_after_its_commit_a_descriptor_goes_over_its_own_only(part):
    put(part / "r.json", '{"v":1}')
    fd = os.open(part / "r.json", os.O_WRONLY | os.O_TRUNC)
    os.setxattr(fd, IF_MATCH, etag(part / "r.json"))
    for n in b"234":
        os.pwrite(fd, b'{"v":%c}' % n, 0)
        os.fsync(fd)
        with raises("ENODATA"):
            os.getxattr(fd, IF_MATCH)
    put(part / "r.json", '{"w":1}')
    os.pwrite(fd, b"5", 5)
    with raises("ESTALE"):
        os.close(fd)
    assert get(part / "r.json") == b'{"w":1}'


def test_L3_another_condition_is_asked_anew(part):
    old = older(part / "r.json", '{"v":1}')
    fd = os.open(part / "r.json", os.O_WRONLY | os.O_TRUNC)
    os.setxattr(fd, IF_MATCH, old)
    os.write(fd, b'{"v":2}')
    for _ in range(2):
        with raises("ESTALE"):
            os.fsync(fd)
    os.setxattr(fd, IF_MATCH, etag(part / "r.json"))
    os.close(fd)
    assert get(part / "r.json") == b'{"v":2}'


def test_L3_a_descriptor_that_loaded_another_version_meets_none(part):
    put(part / "r.json", '{"v":1}')
    fd = os.open(part / "r.json", os.O_RDWR)
    put(part / "r.json", '{"v":2}')
    os.setxattr(fd, IF_MATCH, etag(part / "r.json"))
    os.pwrite(fd, b"9", 5)
    with raises("ESTALE"):
        os.close(fd)
    fd = os.open(part / "r.json", os.O_RDWR)
    for value in (etag(part / "r.json"), b"*"):
        os.setxattr(fd, IF_MATCH, value)
        os.pwrite(fd, b"3", 5)
        os.fsync(fd)
    os.close(fd)
    assert get(part / "r.json") == b'{"v":3}'


def test_L3_a_shell_sets_it_by_the_number_of_its_descriptor(mnt, part):
    need("setfattr")
    old = older(part / "r.json", '{"v":1}')
    script = 'exec 3> r.json; setfattr -n user.rowfs.if_match -v "$1" /proc/self/fd/3; ' \
             'echo \'{"v":2}\' >&3'
    for seen, now in ((old.decode(), b'{"v":1}'), (etag(part / "r.json").decode(), b'{"v":2}\n')):
        subprocess.run(["bash", "-c", script, "bash", seen], cwd=part, check=True)
        assert get(part / "r.json") == now
    assert b'{"v":2}\n' in rejected(mnt).values()


KILLED = """
import os, sys, signal
fd = os.open("r.json", os.O_WRONLY | os.O_TRUNC)
os.setxattr(fd, "user.rowfs.if_match", os.fsencode(sys.argv[1]))
os.write(fd, os.fsencode(sys.argv[2]))
with open("tmp", "w") as f:
    f.write('{"t":1}')
os.setxattr("tmp", "user.rowfs.if_match", os.fsencode(sys.argv[1]))
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("text", ['{"v":', '{"v":9}'])
def test_L3_a_program_that_was_killed_refuses_nobody(part, text):
    old = older(part / "r.json", '{"v":1}')
    done = subprocess.run(["python3", "-c", KILLED, old.decode(), text], cwd=part)
    assert done.returncode == -signal.SIGKILL
    put(part / "r.json", '{"v":2}')
    overwrite(part / "r.json", etag(part / "r.json"), b'{"v":3}')
    put(part / "tmp2", '{"v":4}')
    os.rename(part / "tmp2", part / "r.json")
    assert get(part / "r.json") == b'{"v":4}'
    # Its own file asks for what it asked for, as long as it is there.
    with raises("ESTALE"):
        os.rename(part / "tmp", part / "r.json")
    os.unlink(part / "tmp")
    os.unlink(part / "r.json")


# ---- ordinary files


def test_L4_a_file_that_does_not_match_changes_nothing_and_stays(mnt, part):
    old = older(part / "r.json", '{"v":1}')
    temporary(part / "tmp", old, '{"v":2}')
    for _ in range(2):
        with raises("ESTALE"):
            os.rename(part / "tmp", part / "r.json")
    assert get(part / "r.json") == b'{"v":1}' and get(part / "tmp") == b'{"v":2}'
    assert "UpdateConditionNotSatisfied" in reason(part / "r.json")
    assert "read it again" in errors(mnt)[-1]["message"]
    os.setxattr(part / "tmp", IF_MATCH, etag(part / "r.json"))
    os.rename(part / "tmp", part / "r.json")
    assert get(part / "r.json") == b'{"v":2}'
    with raises("ENODATA"):
        reason(part / "r.json")
    put(part / "r.json", '{"v":3}')  # it was of that file
    assert get(part / "r.json") == b'{"v":3}'


@pytest.mark.parametrize("there", [False, True])
@pytest.mark.parametrize("flags", [0, NOREPLACE])
@pytest.mark.parametrize("condition", [b"*", b"", NO_VERSION, b'W/"0"'])
def test_L4_what_a_file_may_ask_of_a_row(part, there, condition, flags):
    if there:
        put(part / "r.json", '{"v":1}')
    temporary(part / "tmp", condition, '{"v":2}')
    met = condition == (b"*" if there else b"")
    if met and not (there and flags):
        renameat2(part / "tmp", part / "r.json", flags)
        assert get(part / "r.json") == b'{"v":2}' and not (part / "tmp").exists()
    else:
        with raises("EEXIST" if there and flags else "ESTALE"):
            renameat2(part / "tmp", part / "r.json", flags)
        assert get(part / "tmp") == b'{"v":2}' and (part / "r.json").exists() == there


def test_L4_it_stays_with_the_file_and_is_not_copied(mnt, part):
    old = older(part / "r.json", '{"v":1}')
    tmp = part / "tmp"
    fd = os.open(tmp, os.O_WRONLY | os.O_CREAT)
    os.setxattr(fd, IF_MATCH, old)  # before there is any content
    os.write(fd, b'{"v":2}')
    os.close(fd)
    assert os.getxattr(tmp, IF_MATCH) == old
    os.rename(tmp, part / "tmp2")
    put(part / "tmp2", '{"v":3}')
    os.chmod(part / "tmp2", 0o600)
    assert os.getxattr(part / "tmp2", IF_MATCH) == old
    mnt.remount()
    assert os.getxattr(part / "tmp2", IF_MATCH) == old
    with raises("ESTALE"):
        os.rename(part / "tmp2", part / "r.json")
    sh("cp -a tmp2 tmp3", cwd=part)
    with raises("ENODATA"):
        os.getxattr(part / "tmp3", IF_MATCH)
    os.rename(part / "tmp3", part / "r.json")
    assert get(part / "r.json") == b'{"v":3}'
    os.removexattr(part / "tmp2", IF_MATCH)
    with raises("ENODATA"):
        os.removexattr(part / "tmp2", IF_MATCH)
    os.rename(part / "tmp2", part / "r.json")
    # A row that becomes a file brings none along.
    os.rename(part / "r.json", part / "tmp")
    with raises("ENODATA"):
        os.getxattr(part / "tmp", IF_MATCH)
    temporary(part / "left", old, "{}")  # for `rowfs check`


def test_L4_an_exchange_asks_in_either_order(part):
    old = older(part / "r.json", '{"v":1}')
    for a, b in (("tmp", "r.json"), ("r.json", "tmp")):
        temporary(part / "tmp", old, '{"v":2}')
        with raises("ESTALE"):
            renameat2(part / a, part / b, EXCHANGE)
        assert get(part / "r.json") == b'{"v":1}'
        os.setxattr(part / "tmp", IF_MATCH, etag(part / "r.json"))
        renameat2(part / a, part / b, EXCHANGE)
        assert get(part / "r.json") == b'{"v":2}' and get(part / "tmp") == b'{"v":1}'
        with raises("ENODATA"):
            os.getxattr(part / "tmp", IF_MATCH)
        put(part / "r.json", '{"v":1}')


def test_L4_an_empty_file_waits_only_where_no_row_is_asked_for(part):
    for condition, code in ((b"*", "ESTALE"), (NO_VERSION, "ESTALE"), (b"", None)):
        temporary(part / "tmp", condition, "")
        if code:
            with raises(code):
                os.rename(part / "tmp", part / "n.json")
        else:
            os.rename(part / "tmp", part / "n.json")
    put(part / "n.json", '{"v":1}')
    assert get(part / "n.json") == b'{"v":1}'


def test_L4_rejected_bytes_and_what_was_removed_come_back_only_over_what_was_read(mnt, part):
    old = older(part / "r.json", '{"v":1}')
    with raises("ESTALE"):
        overwrite(part / "r.json", old, b'{"v":2}')
    [name] = rejected(mnt)
    kept = mnt / ".rowfs/rejected" / name
    os.setxattr(kept, IF_MATCH, old)
    with raises("ESTALE"):
        os.rename(kept, part / "r.json")
    os.setxattr(kept, IF_MATCH, etag(part / "r.json"))
    os.rename(kept, part / "r.json")
    assert get(part / "r.json") == b'{"v":2}'
    os.unlink(part / "r.json")
    put(part / "r.json", '{"v":3}')
    [name] = os.listdir(mnt / ".rowfs/trash")
    os.setxattr(mnt / ".rowfs/trash" / name, IF_MATCH, b"")
    with raises("ESTALE"):
        os.rename(mnt / ".rowfs/trash" / name, part / "r.json")
    os.unlink(part / "r.json")


# ---- where there is none


def test_L5_by_the_path_of_a_row_none_can_be_set(mnt, part):
    put(part / "r.json", '{"v":1}')
    put(part / "empty.json", "")
    reader = os.open(part / "r.json", os.O_RDONLY)
    for what in (part / "r.json", reader, part / "empty.json"):
        with raises("EPERM"):
            os.setxattr(what, IF_MATCH, etag(part / "r.json"))
        with raises("ENODATA"):
            os.getxattr(what, IF_MATCH)
        with raises("ENODATA"):
            os.removexattr(what, IF_MATCH)
    os.close(reader)
    for name in ("r.json", "empty.json"):
        assert "rename that over the row" in reason(part / name)
    last = errors(mnt)[-1]
    assert last["call"] == "setxattr" and last["errno"] == errno.EPERM
    for what in (part, mnt.path, part.parent, mnt / ".rowfs"):
        with raises("EPERM"):
            os.setxattr(what, IF_MATCH, b"*")
    with raises("EPERM"):
        os.setxattr(part / "r.json", "user.rowfs.etag", b"*")
    put(part / "r.json", '{"v":2}')
    with raises("ENODATA"):
        reason(part / "r.json")


def test_L5_a_thread_that_replaces_row_after_row_sets_none_by_their_paths_either(part):
    for i in range(4):
        put(part / f"{i}.json", "{}")
        put(part / f"{i}.json", "{}")
    for i in range(4):
        with raises("EPERM"):
            os.setxattr(part / f"{i}.json", IF_MATCH, b"*")
        put(part / f"{i}.json", '{"v":1}')


def test_L5_a_removal_under_a_condition_is_a_change_set(part):
    old = older(part / "r.json", '{"v":1}').decode()
    delete = {"delete": {"RowKey": "r"}, "if_match": old}
    with raises("ESTALE"):
        put(part / ".batch", json.dumps([delete]))
    assert get(part / "r.json") == b'{"v":1}'
    delete["if_match"] = xattr(part / "r.json", "etag")
    put(part / ".batch", json.dumps([delete]))
    assert not (part / "r.json").exists()
