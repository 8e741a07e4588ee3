# SPDX-License-Identifier: MIT
"""Queues beside the tables: export and import of messages (BK7), and check, backup and salvage."""

import json
import re
import time

import pytest

import damage
from queue_client import Queues
from rest_client import ACCOUNT

QUEUE = f"{ACCOUNT}/.queue/jobs"
NEVER = "9999-12-31T23:59:59.9999999Z"
LATER = "2035-01-01T00:00:00.0000001Z"
TEXTS = ["", "plain", "ä\U0001f600\"\\\n", "\x01\x7f</a>&amp;", "x" * 65536, "\0" * 65536]


def line(text, **members):
    return json.dumps({"MessageText": text, **members}) + "\n"


def exported(rowfs, store, queue=QUEUE):
    """The messages without their ids, which are new after an import."""
    out = [json.loads(x) for x in rowfs("export", store, queue).stdout.splitlines()]
    assert all(re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", m.pop("MessageId"))
               for m in out)
    return out


@pytest.fixture
def filled(rowfs, rest_store):
    """The six texts in their order, the last two invisible; one was taken three times."""
    rowfs("import", rest_store, QUEUE, input="".join([
        line(TEXTS[0]), line(TEXTS[1], ExpirationTime=NEVER), line(TEXTS[2], DequeueCount=3),
        line(TEXTS[3]),
        line(TEXTS[4], TimeNextVisible=LATER, ExpirationTime=NEVER,
             InsertionTime="2026-01-02T03:04:05.1234567Z", DequeueCount=2**32 - 1),
        line(TEXTS[5], TimeNextVisible="2036-01-01T00:00:00Z", ExpirationTime=NEVER)]))
    return rest_store


def test_BK7_messages_come_back_as_they_were(rowfs, filled, rest_mount):
    want = exported(rowfs, filled)
    assert [m["MessageText"] for m in want] == TEXTS
    assert want[4] == {"MessageText": TEXTS[4], "TimeNextVisible": LATER, "ExpirationTime": NEVER,
                       "InsertionTime": "2026-01-02T03:04:05.1234567Z",
                       "DequeueCount": 2**32 - 1}
    assert [m["DequeueCount"] for m in want] == [0, 0, 3, 0, 2**32 - 1, 0]
    text = rowfs("export", filled, QUEUE).stdout
    done = rowfs("import", filled, f"{ACCOUNT}/.queue/more", input=text)
    assert "6 messages imported" in done.stderr
    m = rest_mount(filled)
    assert exported(rowfs, filled, f"{ACCOUNT}/.queue/more") == exported(rowfs, filled) == want
    # The other front end has the same.
    queues = Queues(m.port, f"{ACCOUNT}.queue.localhost")
    for name in ("jobs", "more"):
        got = queues.get(name, numofmessages=32)
        assert [g["MessageText"] for g in got] == TEXTS[:3] + ["\x7f</a>&amp;"]
        assert [g["DequeueCount"] for g in got] == ["1", "1", "4", "1"]
        assert got[1]["ExpirationTime"].startswith("Fri, 31 Dec 9999")
        assert queues.delete(name, got[0]).status == 204
    left = exported(rowfs, filled)
    assert sorted(x["MessageText"] for x in left) == sorted(TEXTS[1:])
    assert sorted(x["DequeueCount"] for x in left) == [0, 1, 1, 4, 2**32 - 1]


def test_BK7_a_message_that_is_there_is_refused_and_an_expired_one_left_out(rowfs, filled):
    text = rowfs("export", filled, QUEUE).stdout
    done = rowfs("import", filled, QUEUE, input=text + line("new"), check=False)
    assert done.returncode == 1 and "1 message imported, 6 refused" in done.stderr
    assert "standard input:3: ResourceAlreadyExists: This message is in the queue already." in (
        done.stderr)
    assert len(exported(rowfs, filled)) == 7
    soon = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 2))
    rowfs("import", filled, QUEUE, input=line("over soon", ExpirationTime=soon))
    assert len(exported(rowfs, filled)) == 8
    end = time.monotonic() + 60
    while len(exported(rowfs, filled)) == 8:
        assert time.monotonic() < end
    assert "over soon" not in rowfs("export", filled, QUEUE).stdout


@pytest.mark.parametrize("bad,column,said", [
    (line("x" * 65537), 17, "MessageTooLarge"),
    ('{"MessageText":"x"', 19, "InvalidInput: The line is not complete"),
    ("x", 1, "InvalidInput"),
    ("[]", 1, "InvalidInput"),
    ("{}", 1, "InvalidInput: MessageText is missing"),
    ('{"MessageText":1}', 16, "InvalidInput: expected a string"),
    ('{"MessageText":"x","MessageBytes":"eA=="}', 20, "The message has two texts"),
    ('{"MessageBytes":"%"}', 17, "expected base64"),
    ('{"MessageText":"x","Text":1}', 20, "A message has no such member"),
    (line("x", DequeueCount=2**32), 38, "expected a count"),
    (line("x", DequeueCount=-1), 38, "expected a count"),
    (line("x", InsertionTime="yesterday"), 39, "expected a time"),
    (line("x", ExpirationTime="1500-01-01T00:00:00Z"), 40, "expected a time"),
    (line("x", InsertionTime=LATER), 1, "InsertionTime is not over yet"),
    (line("x", ExpirationTime="2020-01-01T00:00:00Z"), 1, "The message has expired"),
    (" " * (1 << 20) + "{}", None, "The line has more than 1048576 bytes"),
])
def test_BK7_a_line_that_is_refused_is_named(rowfs, rest_store, bad, column, said):
    text = line("first") + "\r\n\n" + bad.rstrip("\n") + "\n" + line("x" * 65536)
    done = rowfs("import", rest_store, QUEUE, input=text, check=False)
    where = "standard input:4:" + (f"{column}: " if column else " ")
    assert where in done.stderr and said in done.stderr, done.stderr
    assert done.returncode == 1 and "2 messages imported, 1 refused" in done.stderr
    assert [len(m["MessageText"]) for m in exported(rowfs, rest_store)] == [5, 65536]
    stopped = rowfs("import", rest_store, f"{ACCOUNT}/.queue/stop", "--stop", input=text, check=False)
    assert stopped.returncode == 1 and "1 message imported, 1 refused" in stopped.stderr


def test_BK7_many_messages_in_order(rowfs, rest_store, rest_mount):
    """More than a page of the export and than a commit of the import."""
    m = rest_mount(rest_store)
    texts = [f"{i:05}" + "x" * (i % 500) for i in range(3300)]
    rowfs("import", rest_store, QUEUE, input="".join(map(line, texts)))
    assert [x["MessageText"] for x in exported(rowfs, rest_store)] == texts
    m.umount()
    copied = rowfs("export", rest_store, QUEUE).stdout
    rowfs("import", rest_store, f"{ACCOUNT}/.queue/copy", input="\ufeff" + copied.rstrip("\n"))
    assert exported(rowfs, rest_store, f"{ACCOUNT}/.queue/copy") == exported(rowfs, rest_store)


def test_what_names_no_queue_and_what_a_queue_does_not_take(rowfs, filled):
    for args, said in [
            (("export", f"{ACCOUNT}/.queue/none"), "there is no queue 'none' in account"),
            (("export", "nobody/.queue/jobs"), "there is no account 'nobody'"),
            (("import", "nobody/.queue/jobs"), "there is no account 'nobody'"),
            (("import", f"{ACCOUNT}/.queue/No"), "The name of a queue has lower-case letters"),
            (("export", f"{ACCOUNT}/.queue/"), "is not ACCOUNT/.queue/QUEUE"),
            (("export", f"{ACCOUNT}/.queue/a/b"), "is not ACCOUNT/.queue/QUEUE"),
            (("export", QUEUE, "p"), "a queue is written whole"),
            (("export", QUEUE, "--format=ndjson"), "a queue is written whole"),
            (("export", QUEUE, "--skip-damaged"), "a queue is written whole"),
            (("import", QUEUE, "--mode=upsert"), "takes no --mode"),
            (("import", QUEUE, "--format=csv"), "takes no --mode"),
            (("sas", QUEUE), "")]:
        command, *rest = args
        done = rowfs(command, filled, *rest, input="", check=False)
        assert done.returncode != 0 and said in done.stderr, (args, done.stderr)


# ---- check, backup, salvage


def test_a_backup_has_the_queues(rowfs, filled, rest_mount, work):
    want = rowfs("export", filled, QUEUE).stdout
    rowfs("backup", filled, work / "alone")
    m = rest_mount(filled)
    queues = Queues(m.port, f"{ACCOUNT}.queue.localhost")
    assert queues.ask("PUT", "/meta", headers={"x-ms-meta-colour": "red"}).status == 201
    rowfs("backup", filled, work / "served")
    m.umount()
    for name in ("alone", "served"):
        assert rowfs("export", work / name, QUEUE).stdout == want  # the ids too
        assert "6 messages: clean" in rowfs("check", work / name).stdout
    m = rest_mount(work / "served")
    queues = Queues(m.port, f"{ACCOUNT}.queue.localhost")
    assert queues.ask("GET", "/meta", {"comp": "metadata"}).headers["x-ms-meta-colour"] == "red"


def test_a_salvage_keeps_the_messages_whose_pages_are_sound(rowfs, filled, work):
    rowfs("salvage", filled, work / "whole")
    assert rowfs("export", work / "whole", QUEUE).stdout == rowfs("export", filled, QUEUE).stdout
    want = exported(rowfs, filled)
    damage.patch(damage.PAGE + 200, b"\xff" * 8)(filled)
    rowfs("salvage", filled, work / "new", check=False)
    got = exported(rowfs, work / "new")
    assert got and all(m in want for m in got)
    assert "clean" in rowfs("check", work / "new").stdout


MESSAGE = "(SELECT id FROM item WHERE kind=8 ORDER BY key LIMIT 1)"
KEY = f"SET key=CAST('x' AS BLOB) WHERE id={MESSAGE}"


@pytest.mark.parametrize("sql,said", [
    (damage.body("of another size", MESSAGE), "the size of the message is wrong"),
    (f"UPDATE obj {KEY}; UPDATE item {KEY}", "the key of the message cannot be read"),
    (damage.body("no metadata", "(SELECT id FROM item WHERE kind=7)"), "its metadata cannot be read"),
])
def test_check_finds_a_damaged_message_and_queue(rowfs, filled, sql, said):
    damage.by_sql(filled, sql)
    done = rowfs("check", filled, check=False)
    assert done.returncode == 1 and said in done.stdout, done.stdout
    assert "jobs" in done.stdout
