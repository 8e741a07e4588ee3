# SPDX-License-Identifier: MIT
"""Queues in the mount: messages are files that shells put, take, change and delete."""

import os
import re
import stat
import subprocess
import sys
import time

import pytest
from queue_client import Queues, messages
from rest_client import ACCOUNT
from tools import errors, get, put, raises, reason, sh, xattr, wait_for

ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
TAKES = """
import os, sys
for name in sorted(os.listdir('.')):
    if name.startswith('.'):
        continue
    try:
        os.rename(name, '.taken/' + name)
    except FileNotFoundError:
        continue
    print(open('.taken/' + name).read())
    os.unlink('.taken/' + name)
"""


@pytest.fixture
def jobs(mount, store):
    """An empty queue."""
    m = mount(store)
    os.mkdir(m / "acct")
    os.mkdir(m / "acct/.queue/jobs")
    return m / "acct/.queue/jobs"


def text_of(path):
    return get(path).decode()


def visible(queue):
    return [n for n in os.listdir(queue) if not n.startswith(".")]


def set_attribute(path, name, value):
    os.setxattr(path, f"user.rowfs.{name}", str(value).encode())


def take(queue, name):
    os.rename(queue / name, queue / ".taken" / name)


def test_MQ1_a_queue_is_made_listed_and_removed(mount, store):
    m = mount(store)
    os.mkdir(m / "acct")
    assert os.listdir(m / "acct") == [] and os.listdir(m / "acct/.queue") == []
    os.mkdir(m / "acct/.queue/jobs")
    os.mkdir(m / "acct/.queue/other")
    assert os.listdir(m / "acct") == [".queue"]
    assert os.listdir(m / "acct/.queue") == ["jobs", "other"]
    with raises("EEXIST"):
        os.mkdir(m / "acct/.queue/jobs")
    with raises("EINVAL"):
        os.mkdir(m / "acct/.queue/Jobs")
    assert "queue" in reason(m / "acct/.queue")
    with raises("EPERM"):
        os.rename(m / "acct/.queue/jobs", m / "acct/.queue/more")
    with raises("EPERM"):
        (m / "acct/.queue/file").write_text("x")
    with raises("ENOTEMPTY"):
        os.rmdir(m / "acct/.queue")
    os.rmdir(m / "acct/.queue/jobs")
    os.rmdir(m / "acct/.queue/other")
    os.rmdir(m / "acct/.queue")
    assert os.listdir(m / "acct") == []
    os.mkdir(m / "acct/.queue/jobs")
    with raises("ENOTEMPTY"):
        os.rmdir(m / "acct")


def test_MQ1_a_directory_in_which_somebody_is_can_be_removed_and_used_again(mount, store):
    """The kernel takes no more names in the inode that was removed."""
    m = mount(store)
    os.mkdir(m / "acct")
    fd = os.open(m / "acct/.queue", os.O_RDONLY)
    for _ in range(2):
        os.rmdir(m / "acct/.queue")
        os.mkdir(m / "acct/.queue/jobs")
        assert os.listdir(m / "acct") == [".queue"] and os.listdir(m / "acct/.queue") == ["jobs"]
        os.rmdir(m / "acct/.queue/jobs")
    os.close(fd)


def test_MQ1_rm_r_of_an_account_with_queues(jobs):
    for i in range(30):
        put(jobs / "new", f"{i}")
    for name in visible(jobs)[:3]:
        take(jobs, name)
    set_attribute(jobs / visible(jobs)[0], "visibility", 600)
    assert os.listdir(jobs)[:2] == [".taken", ".hidden"]
    with raises("ENOTEMPTY"):
        os.rmdir(jobs)
    sh(f"rm -r {jobs.parent.parent}")
    assert not os.path.exists(jobs.parent.parent)


def test_MQ2_a_file_that_is_written_is_a_message(jobs):
    sh("echo one > new; echo two > new; printf three > /tmp/$$; cp /tmp/$$ .; rm /tmp/$$;"
       "echo four >> new; { echo five; cat /dev/null; } > new", cwd=jobs)
    names = visible(jobs)
    assert all(ID.fullmatch(n) for n in names) and names == sorted(names)
    assert [text_of(jobs / n) for n in names] == ["one\n", "two\n", "three", "four\n", "five\n"]
    info = os.stat(jobs / names[2])
    assert info.st_size == 5 and abs(info.st_mtime - time.time()) < 60
    assert stat.S_ISREG(info.st_mode) and text_of(jobs / "new") == "five\n"


def test_MQ2_an_empty_message(jobs):
    sh(": > a; touch b", cwd=jobs)
    wait_for(lambda: len(visible(jobs)) == 2)
    assert [os.stat(jobs / n).st_size for n in visible(jobs)] == [0, 0]


def test_MQ2_nothing_is_put_before_the_close(jobs):
    with open(jobs / "new", "w") as f:
        f.write("text")
        f.flush()
        assert visible(jobs) == [] and os.stat(jobs / "new").st_size == 4
    assert len(visible(jobs)) == 1
    fd = os.open(jobs / "gone", os.O_CREAT | os.O_WRONLY)
    os.write(fd, b"never")
    os.unlink(jobs / "gone")
    os.close(fd)
    assert len(visible(jobs)) == 1


def test_MQ2_64_KiB_are_a_message_and_one_byte_more_is_none(jobs):
    put(jobs / "most", "x" * 65536)
    name, = visible(jobs)
    assert os.stat(jobs / name).st_size == 65536 and text_of(jobs / name) == "x" * 65536
    fd = os.open(jobs / "more", os.O_CREAT | os.O_WRONLY)
    assert os.write(fd, b"x" * 65536) == 65536
    with raises("EFBIG"):
        os.write(fd, b"x")
    with raises("EFBIG"):
        os.close(fd)
    wait_for(lambda: not os.path.exists(jobs / "more"))
    assert visible(jobs) == [name]
    assert "65536 bytes" in errors(jobs.parent.parent.parent)[-1]["message"]


def test_MQ3_a_dotted_name_waits_for_a_rename(jobs):
    put(jobs / ".unfinished", "text")
    assert os.listdir(jobs) == [] and text_of(jobs / ".unfinished") == "text"
    os.rename(jobs / ".unfinished", jobs / "new")
    name, = visible(jobs)
    assert text_of(jobs / name) == "text" and not os.path.exists(jobs / ".unfinished")
    put(jobs / ".unfinished", "text")
    os.unlink(jobs / ".unfinished")
    assert visible(jobs) == [name]


def test_MQ4_a_move_takes_a_message_and_another_gives_it_back(jobs):
    put(jobs / "new", "text")
    name, = visible(jobs)
    take(jobs, name)
    assert os.listdir(jobs) == [".taken"] and os.listdir(jobs / ".taken") == [name]
    assert text_of(jobs / ".taken" / name) == "text"
    assert xattr(jobs / ".taken" / name, "count") == "1"
    assert 28 <= int(xattr(jobs / ".taken" / name, "visibility")) <= 30
    for path in (jobs / name, jobs / "new"):
        with raises("ENOENT"):
            os.stat(path)
    os.rename(jobs / ".taken" / name, jobs / name)
    assert visible(jobs) == [name] and os.listdir(jobs / ".taken") == []
    take(jobs, name)
    assert xattr(jobs / ".taken" / name, "count") == "2"
    os.unlink(jobs / ".taken" / name)
    assert os.listdir(jobs) == []


@pytest.mark.parametrize("workers", [2, 8])
def test_MQ4_of_many_takers_one_gets_a_message(jobs, workers):
    for i in range(200):
        put(jobs / "new", f"m{i}")
    run = [subprocess.Popen([sys.executable, "-c", TAKES], cwd=jobs, stdout=subprocess.PIPE,
                            text=True) for _ in range(workers)]
    took = [line for w in run for line in w.communicate(timeout=120)[0].split()]
    assert sorted(took) == sorted(f"m{i}" for i in range(200))
    assert [w.returncode for w in run] == [0] * workers and os.listdir(jobs) == []


def test_MQ5_a_taken_message_is_changed_and_extended(jobs):
    put(jobs / "new", "text")
    name, = visible(jobs)
    with raises("EPERM"):
        (jobs / name).write_text("no")
    assert "take it first" in reason(jobs / name)
    take(jobs, name)
    taken = jobs / ".taken" / name
    before = xattr(taken, "receipt")
    set_attribute(taken, "visibility", 600)
    assert xattr(taken, "visibility") == "600" and xattr(taken, "receipt") != before
    put(taken, "other")
    assert text_of(taken) == "other" and xattr(taken, "visibility") in ("599", "600")
    with open(taken, "a") as f:
        f.write(" text")
    assert text_of(taken) == "other text"
    os.truncate(taken, 5)
    assert text_of(taken) == "other"
    with raises("EINVAL"):
        set_attribute(taken, "visibility", "soon")
    with raises("EINVAL"):
        set_attribute(taken, "visibility", 604801)
    set_attribute(taken, "visibility", 0)
    assert visible(jobs) == [name]
    for fact in ("visible", "inserted"):
        assert xattr(taken, fact).startswith("20")
    assert xattr(taken, "expires") == "never" and xattr(taken, "id") == name
    assert xattr(jobs, "messages") == "1"


def test_MQ6_who_is_too_late_gets_ESTALE(rest_mount, rest_store):
    m = rest_mount(rest_store)
    client = Queues(m.port, f"{ACCOUNT}.queue.localhost")
    jobs = m / ACCOUNT / ".queue/jobs"
    os.mkdir(jobs)
    put(jobs / "new", "text")
    name, = visible(jobs)
    take(jobs, name)
    taken = jobs / ".taken" / name
    set_attribute(taken, "visibility", 1)
    wait_for(lambda: visible(jobs) == [name])
    assert text_of(taken) == "text"  # nobody has it: the taker may still end its work
    theirs, = client.get("jobs")
    with raises("ESTALE"):
        os.unlink(taken)
    assert "another took" in reason(taken)
    with raises("ESTALE"):
        os.rename(taken, jobs / name)
    with raises("ESTALE"):
        set_attribute(taken, "visibility", 5)
    with raises("ESTALE"):
        taken.write_text("late")
    set_attribute(taken, "receipt", theirs["PopReceipt"])
    os.unlink(taken)
    assert os.listdir(jobs) == [] and client.get("jobs") == []


def test_MQ7_both_front_ends_see_the_same_queue(rest_mount, rest_store):
    m = rest_mount(rest_store)
    client = Queues(m.port, f"{ACCOUNT}.queue.localhost")
    assert client.ask("PUT", "/jobs").status == 201
    jobs = m / ACCOUNT / ".queue/jobs"
    assert ".queue" in os.listdir(m / ACCOUNT) and os.listdir(jobs) == []
    assert client.put("jobs", "by rest").status == 201
    first, = visible(jobs)
    assert text_of(jobs / first) == "by rest"
    put(jobs / "new", "by mount")
    theirs, ours = client.get("jobs")[0], client.get("jobs")[0]
    assert (theirs["MessageText"], ours["MessageText"]) == ("by rest", "by mount")
    assert theirs["MessageId"] == first and visible(jobs) == []
    assert sorted(os.listdir(jobs / ".taken")) == sorted([first, ours["MessageId"]])
    os.unlink(jobs / ".taken" / first)
    gone = client.ask("DELETE", f"/jobs/messages/{first}", {"popreceipt": theirs["PopReceipt"]})
    assert gone.status == 404
    assert client.ask("POST", "/jobs/messages", {"visibilitytimeout": "600"},
                      b"<QueueMessage><MessageText>later</MessageText></QueueMessage>").status == 201
    hidden, = os.listdir(jobs / ".hidden")
    with raises("EPERM"):
        os.rename(jobs / ".hidden" / hidden, jobs / ".taken" / hidden)
    os.rename(jobs / ".hidden" / hidden, jobs / hidden)
    assert messages(client.ask("GET", "/jobs/messages", {"peekonly": "true"}))[0]["MessageText"] == "later"
    assert client.ask("DELETE", "/jobs").status == 204
    with raises("ENOENT"):
        os.stat(jobs)
    assert ".queue" not in os.listdir(m / ACCOUNT)


def test_MQ7_messages_outlive_a_kill_of_the_server(mount, store):
    m = mount(store)
    os.mkdir(m / "acct")
    jobs = m / "acct/.queue/jobs"
    os.mkdir(jobs)
    put(jobs / "new", "one")
    put(jobs / "new", "two")
    first, second = visible(jobs)
    take(jobs, first)
    set_attribute(jobs / ".taken" / first, "visibility", 600)
    m.kill9()
    m.remount()
    assert visible(jobs) == [second] and os.listdir(jobs / ".taken") == [first]
    os.unlink(jobs / ".taken" / first)
    os.unlink(jobs / second)
    assert os.listdir(jobs) == []


def test_MQ8_a_copy_of_an_account_has_the_messages(jobs):
    account = jobs.parent.parent
    for text in ("one", "two"):
        put(jobs / "new", text)
    os.mkdir(account.parent / "second")
    sh("cp -a acct/. second/; rsync -a acct/ third; mkdir fourth; tar -C acct -c . | tar -C fourth -x",
       cwd=account.parent)
    for name in ("second", "third", "fourth"):
        queue = account.parent / name / ".queue/jobs"
        assert [text_of(queue / n) for n in visible(queue)] == ["one", "two"]


def test_MQ8_messages_are_moved_between_queues_by_a_copy(jobs):
    other = jobs.parent / "other"
    os.mkdir(other)
    put(jobs / "new", "text")
    name, = visible(jobs)
    with raises("EXDEV"):
        os.rename(jobs / name, other / name)
    sh(f"mv {jobs}/{name} {other}/")
    assert visible(jobs) == [] and [text_of(other / n) for n in visible(other)] == ["text"]


def test_MQ8_a_listing_of_a_long_queue_while_it_is_emptied(jobs):
    for i in range(3000):
        put(jobs / "new", f"{i}")
    seen = set()
    with os.scandir(jobs) as entries:
        for entry in entries:
            seen.add(entry.name)
            os.unlink(entry.path)
    assert len(seen) == 3000 and visible(jobs) == []


def test_MQ9_a_read_only_mount_shows_queues_and_changes_none(mount, store):
    m = mount(store)
    os.mkdir(m / "acct")
    os.mkdir(m / "acct/.queue/jobs")
    put(m / "acct/.queue/jobs/new", "text")
    m.umount()
    m = mount(store, "ro")
    jobs = m / "acct/.queue/jobs"
    name, = visible(jobs)
    assert text_of(jobs / name) == "text"
    for change in (lambda: os.unlink(jobs / name), lambda: take(jobs, name),
                   lambda: (jobs / "new").write_text("x"), lambda: os.rmdir(jobs)):
        with raises("EROFS"):
            change()
