# SPDX-License-Identifier: MIT
"""docs/semantics.md: change sets through .batch and .batch-check (B)."""

import errno
import json
import os
import subprocess
import sys
import threading

import pytest

from queue_client import Queues, messages
from rest_client import ACCOUNT, NONE, Client, batch_body, entity_path, ok
from tools import errors, get, put, raises, reason, rejected, rows, sh, xattr

LIMIT = 4 << 20


def doc(*ops):
    return json.dumps(list(ops))


def lines(*ops):
    return "".join(json.dumps(op) + "\n" for op in ops)


def row(rk, **properties):
    return {"RowKey": rk, **properties}


def result(directory, name=".batch"):
    return json.loads(get(directory / name))


def commit(directory, text, name=".batch"):
    put(directory / name, text)
    return result(directory, name)


def refused(directory, text, code, name=".batch"):
    with raises(code):
        put(directory / name, text)
    r = result(directory, name)
    assert r["committed"] is False and r["errno"] == code, r
    return r


def own(directory, rk):
    return json.loads(get(directory / f"{rk}.json"))


class Session:
    """One handle for writing and reading."""

    def __init__(self, directory, name=".batch", flags=0):
        self.fd = os.open(directory / name, os.O_RDWR | flags)

    def write(self, text):
        data = text.encode()
        assert os.write(self.fd, data) == len(data)

    def read(self):
        out = b""
        while piece := os.read(self.fd, 65536):
            out += piece
        return out

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.fd is not None:
            fd, self.fd = self.fd, None
            os.close(fd)


@pytest.fixture
def front_end(rest_mount, rest_store):
    """Both front ends: the mount's table Tab, its partition p, and a client of the socket."""
    class FrontEnd:
        pass

    d = FrontEnd()
    d.mount = rest_mount(rest_store)
    d.table = d.mount / ACCOUNT / "Tab"
    d.table.mkdir()
    d.part = d.table / "p"
    d.part.mkdir()
    d.rest = Client(d.mount.port)
    yield d
    d.rest.close()


# ---- B1: what is accepted, and what it does


OPS = [{"insert": row("1", A=1)}, {"upsert": row("2", A=1)}, {"upsert_merge": row("3", A=1)}]


@pytest.mark.parametrize("text", [
    doc(*OPS), json.dumps(OPS, indent=4) + "\n\n", lines(*OPS), "\n" + lines(*OPS).rstrip("\n"),
    "".join(json.dumps(op, separators=(",", ":")) for op in OPS),
    " [" + "\r\n,\t".join(json.dumps(op) for op in OPS) + "\r\n] "])
def test_B1_an_array_or_lines_are_committed_by_the_close(part, text):
    r = commit(part, text)
    assert r["committed"] is True
    assert [(o["operation"], o["PartitionKey"], o["RowKey"], o["status"])
            for o in r["operations"]] == [
        ("insert", "Channel_19", "1", 201), ("upsert", "Channel_19", "2", 204),
        ("upsert_merge", "Channel_19", "3", 204)]
    assert rows(part) == ["1.json", "2.json", "3.json"]
    for o in r["operations"]:
        assert o["etag"] == xattr(part / f"{o['RowKey']}.json", "etag")


def test_B1_each_operation_on_what_is_there(part):
    commit(part, doc(*({"insert": row(str(i), Old=1)} for i in range(5))))
    r = commit(part, doc(
        {"merge": row("0", New=2)}, {"replace": row("1", New=2)}, {"upsert": row("2", New=2)},
        {"upsert_merge": row("3", New=2)}, {"delete": row("4")}))
    assert "etag" not in r["operations"][4]
    assert own(part, "0") == own(part, "3") == {"Old": 1, "New": 2}
    assert own(part, "1") == own(part, "2") == {"New": 2}
    assert rows(part) == ["0.json", "1.json", "2.json", "3.json"]


def test_B1_a_table_takes_the_key_from_the_first_operation(table):
    r = commit(table, doc({"insert": {"PartitionKey": "Channel_19", "RowKey": "1"}},
                          {"upsert": row("2", Rating=5)},
                          {"upsert": {"PartitionKey": "Channel_19", "RowKey": "3"}}))
    assert {o["PartitionKey"] for o in r["operations"]} == {"Channel_19"}
    assert rows(table) == ["Channel_19"]
    assert rows(table / "Channel_19") == ["1.json", "2.json", "3.json"]


def test_B1_types_and_keys_of_all_kinds(table):
    commit(table, doc({"insert": {
        "PartitionKey": "", "RowKey": "ä b%'\U0001f600", "L": 2147483648,
        "B@odata.type": "Edm.Binary", "B": "AQID"}}))
    [name] = rows(table / "%_")
    assert name == "ä b%25'\U0001f600.json"
    assert json.loads(get(table / "%_" / name)) == {
        "L@odata.type": "Edm.Int64", "L": "2147483648", "B@odata.type": "Edm.Binary", "B": "AQID"}
    key = "k" * 400
    commit(table, doc({"insert": {"PartitionKey": key, "RowKey": key, "A": 1}}))
    [long_part] = [n for n in rows(table) if "%~" in n]
    [long_row] = rows(table / long_part)
    assert json.loads(get(table / long_part / long_row))["RowKey"] == key


BATCHES = [{}, {"eol": "\n"}, {"blank": 2}, {"length": True, "content_ids": True},
           {"target": lambda p: p}, {"target": lambda p: f"/{ACCOUNT}/{p}"}, {"mime_ids": True},
           {"target": lambda p: f"https://{ACCOUNT}.example.net/{p}"}, {"boundary": "x;y=z"}]


@pytest.mark.parametrize("how", BATCHES, ids=",".join)
def test_B1_a_body_of_the_service_is_accepted_as_it_is(front_end, how):
    commit(front_end.part, doc({"insert": row("3", Old=1)}, {"insert": row("4", Old=1)}))
    ops = [("POST", "Tab", {"Prefer": "return-no-content"},
            {"PartitionKey": "p", "RowKey": "1", "A": 9007199254740993}),
           ("PUT", entity_path("tab", "p", "2"), {}, {"A": "é"}),
           ("PATCH", entity_path("Tab", "p", "3"), {"If-Match": "*"}, {"A": 3}),
           ("DELETE", entity_path("Tab", "p", "4"), {"If-Match": "*"}, None)]
    body, _ = batch_body(front_end.rest, ops, **how)
    put(front_end.table / ".batch", body)
    assert [o["operation"] for o in result(front_end.table)["operations"]] == [
        "insert", "upsert", "merge", "delete"]
    assert rows(front_end.part) == ["1.json", "2.json", "3.json"]
    assert own(front_end.part, "2") == {"A": "é"} and own(front_end.part, "3") == {"Old": 1, "A": 3}
    # The numbers of a body are the service's: what fits no Int32 is a Double there.
    assert own(front_end.part, "1") == {"A": 9007199254740992.0}


def test_B1_whatever_writes_files(part, work):
    for i, how in enumerate(["cp set P/.batch", "cat set > P/.batch", "cat set >> P/.batch",
                             "tee P/.batch < set > /dev/null", "dd if=set of=P/.batch bs=7",
                             "dd if=set of=P/.batch conv=notrunc,fsync", "sh -c 'cat set' > P/.batch",
                             "install -m 644 /dev/null x; cp -f set P/.batch",
                             "head -c 20 set > a; tail -c +21 set > b; cat a b > P/.batch",
                             "{ echo '['; echo; sed 1d set; } > P/.batch",
                             "( exec > P/.batch; cat set )"]):
        (work / "set").write_text("[\n" + json.dumps({"insert": row(str(i))}) + "]\n")
        if not (work / "P").exists():
            (work / "P").symlink_to(part)
        sh(how, cwd=work)
        assert result(part)["operations"][0]["RowKey"] == str(i), how
    assert len(rows(part)) == i + 1


# ---- B2: what fails, and how


def test_B2_the_errno_is_that_of_the_operation_that_fails(part):
    etag = commit(part, doc({"insert": row("1", A=1)}))["operations"][0]["etag"]
    commit(part, doc({"merge": row("1", A=2), "if_match": etag}))
    keep = {"upsert": row("new")}
    for code, service, status, op in [
            ("EEXIST", "EntityAlreadyExists", 409, {"insert": row("1")}),
            ("ENOENT", "ResourceNotFound", 404, {"merge": row("2")}),
            ("ENOENT", "ResourceNotFound", 404, {"replace": row("2"), "if_match": "*"}),
            ("ENOENT", "ResourceNotFound", 404, {"delete": row("2")}),
            ("ESTALE", "UpdateConditionNotSatisfied", 412, {"if_match": etag, "merge": row("1")}),
            ("ESTALE", "UpdateConditionNotSatisfied", 412, {"if_match": etag, "replace": row("1")}),
            ("ESTALE", "UpdateConditionNotSatisfied", 412, {"if_match": etag, "delete": row("1")}),
            ("EINVAL", "InvalidInput", 400, {"if_match": "*", "insert": row("3")}),
            ("EINVAL", "InvalidInput", 400, {"if_match": "x", "merge": row("1")}),
            ("EINVAL", "InvalidInput", 400, {"delete": row("1", A=1)}),
            ("EINVAL", "PropertyNameInvalid", 400, {"insert": row("3", **{"a-": 1})}),
            ("EINVAL", "OutOfRangeInput", 400, {"insert": row("a/b")}),
            ("EINVAL", "PropertiesNeedValue", 400, {"insert": {"A": 1}}),
            ("EINVAL", "InvalidInput", 400, {"insert": {"RowKey": "3", "PartitionKey": "q"}}),
            ("EINVAL", "InvalidDuplicateRow", 400, {"delete": row("new")}),
            ("E2BIG", "TooManyProperties", 400, {"insert": row("3", **{f"P{i}": 1 for i in range(253)})}),
            ("EFBIG", "EntityTooLarge", 400, {"insert": row("3", **{f"P{i}": "x" * 32000 for i in range(17)})}),
    ]:
        r = refused(part, lines(keep, op), code)
        assert (r["index"], r["code"], r["status"], r["line"]) == (1, service, status, 2), r
        assert rows(part) == ["1.json"] and own(part, "1") == {"A": 2}


def test_B2_other_partitions_and_tables(front_end):
    r = refused(front_end.table, doc({"insert": {"PartitionKey": "p", "RowKey": "1"}},
                                {"insert": {"PartitionKey": "q", "RowKey": "1"}}), "EINVAL")
    assert r["index"] == 1 and r["code"] == "CommandsInBatchActOnDifferentPartitions"
    assert r["PartitionKey"] == "q" and r["operation"] == "insert"
    for op in [("POST", "Other", {}, {"PartitionKey": "p", "RowKey": "1"}),
               ("POST", "Tables", {}, {"TableName": "Other"}),
               ("GET", entity_path("Tab", "p", "1"), {}, None)]:
        body, _ = batch_body(front_end.rest, [op])
        refused(front_end.table, body, "EINVAL")
    body, _ = batch_body(front_end.rest, [("GET", "Tab()", {}, None)], change_set=False)
    assert ".query" in refused(front_end.table, body, "EINVAL")["message"]
    assert rows(front_end.part) == []


@pytest.mark.parametrize("text, line, column", [
    ('{"insert":{"RowKey":"1"}}\n{"insert":{"RowKey":"2",}}', 2, 25), ("null", 1, 1),
    ('[{"insert":{"RowKey":"1"}}]]', 1, 28), ('[{"insert":{"RowKey":"1","A":{}}}]', 1, 30),
    ('[{"put":{"RowKey":"1"}}]', 1, 3), ('\n\n[[]]', 3, 2), ('[{"insert":{},"merge":{}}]', 1, 15),
    ("RowKey,A\n1,2\n", 1, 1), ("\0", 1, 1)])
def test_B2_what_is_no_change_set_is_told_with_line_and_column(part, text, line, column):
    r = refused(part, text, "EINVAL")
    assert (r["line"], r["column"]) == (line, column), r
    assert f"(line {line}, column {column})" in reason(part / ".batch")
    assert rows(part) == []


def test_B2_the_reason_and_the_bytes_are_kept_and_a_success_clears_the_reason(mnt, part):
    text = doc({"merge": row("1", A="refused")})
    refused(part, text, "ENOENT")
    assert reason(part / ".batch").startswith("ResourceNotFound: ")
    assert reason(part) == reason(part / ".batch")
    [(name, data)] = rejected(mnt).items()
    assert data == text.encode() and name in reason(part / ".batch")
    [line] = errors(mnt)
    assert line["path"] == "acct1/Blogs/Channel_19/.batch" and line["call"] == "close"
    assert line["errno"] == errno.ENOENT and line["rejected"] == name
    commit(part, doc({"insert": row("1")}))
    with raises("ENODATA"):
        reason(part / ".batch")
    assert list(rejected(mnt)) == [name]


def test_B2_tools_that_look_at_their_close_say_so(part, work):
    (work / "set").write_text(doc({"merge": row("1")}))
    (work / "P").symlink_to(part)
    for how in ("cp set P/.batch", "cat set > P/.batch", "tee P/.batch < set", "dd if=set of=P/.batch"):
        done = sh(how, cwd=work, check=False)
        assert "No such file or directory" in done.stderr, how
        assert done.returncode == 1, how
        assert result(part)["errno"] == "ENOENT"


def test_B2_a_failure_is_told_at_every_close_until_it_was_read(part):
    fd = os.open(part / ".batch", os.O_RDWR)
    os.write(fd, doc({"merge": row("1")}).encode())
    with raises("ENOENT"):
        os.close(os.dup(fd))
    with raises("ENOENT"):
        os.close(os.dup(fd))
    assert json.loads(os.read(fd, 65536))["errno"] == "ENOENT"
    os.close(os.dup(fd))
    os.close(fd)


def test_B2_a_full_disk_refuses_the_whole_set_and_says_where_the_bytes_are(rowfs, mount, small_disk):
    store = small_disk / "s.rowfs"
    rowfs("init", store)
    m = mount(store)
    m.allow("ENOSPC|No space|NO_SPACE|full|could not be kept")
    part = m / "acct1/Tab/p"
    part.mkdir(parents=True)
    pad = {f"P{k}": "x" * 30000 for k in range(10)}
    for i in range(20):
        try:
            put(part / ".batch", doc({"insert": row(f"{i}a", **pad)}, {"insert": row(f"{i}b")}))
        except OSError as e:
            assert e.errno == errno.ENOSPC
            break
    else:
        pytest.fail("the disk did not fill up")
    r = result(part)
    assert (r["errno"], r["code"], r["committed"]) == ("ENOSPC", "InsufficientStorage", False)
    assert "index" not in r
    assert rows(part) == sorted(f"{k}{c}.json" for k in range(i) for c in "ab")
    for name, data in rejected(m).items():
        assert len(data) > 300000 and name in reason(part / ".batch")
    assert rejected(m) or "rejected.ndjson" in reason(part / ".batch")
    sh(f"mount -o remount,size=32m '{small_disk}'")
    commit(part, doc({"insert": row(f"{i}a", **pad)}, {"insert": row(f"{i}b")}))


def test_B2_the_directory_was_removed_meanwhile(mnt, part):
    text = doc({"insert": row("1")})
    with raises("ESTALE"), Session(part) as s:
        s.write(text)
        part.rmdir()
    assert not part.exists()
    assert list(rejected(mnt).values()) == [text.encode()]


def test_B2_a_renamed_directory_is_followed(table, part):
    with Session(part) as s:
        s.write(doc({"insert": row("1")}))
        part.rename(table / "Other")
        assert json.loads(s.read())["operations"][0]["PartitionKey"] == "Other"
    assert rows(table / "Other") == ["1.json"] and rows(table) == ["Other"]


def test_B2_a_mount_that_only_reads_commits_nothing(mount, store):
    m = mount(store)
    (m / "acct1/Tab/p").mkdir(parents=True)
    m.umount()
    m = mount(store, "ro")
    with raises("EROFS"):
        os.open(m / "acct1/Tab/p/.batch", os.O_RDWR)


# ---- B3: limits


def test_B3_a_hundred_operations(part):
    for n in (99, 100):
        assert len(commit(part, doc(*({"upsert": row(str(i), N=n)} for i in range(n))))
                   ["operations"]) == n
    r = refused(part, lines(*({"upsert": row(str(i), N=101)} for i in range(101))), "E2BIG")
    assert r["line"] == 101 and "100" in r["message"]
    assert own(part, "0") == {"N": 100} and len(rows(part)) == 100


def sized(n):
    """A set of exactly n bytes."""
    text = doc(*({"upsert": row(str(i), **{f"P{k}": "x" * 30000 for k in range(13)})}
                 for i in range(10)))
    assert len(text) < n
    return text + " " * (n - len(text))


def test_B3_four_mebibytes(mnt, part):
    for n in (LIMIT - 1, LIMIT):
        commit(part, sized(n))
    commit(part, doc(*({"delete": row(str(i))} for i in range(10))))
    fd = os.open(part / ".batch", os.O_RDWR)
    data = sized(LIMIT + 1).encode()
    with raises("EFBIG"):
        while data:
            data = data[os.write(fd, data):]
    with raises("EFBIG"):
        os.write(fd, b" ")
    with raises("EFBIG"):
        os.close(fd)
    assert result(part)["code"] == "RequestBodyTooLarge" and rows(part) == []
    assert len(rejected(mnt)) == 1 and len(errors(mnt)) == 1
    with raises("EFBIG"):
        fd = os.open(part / ".batch", os.O_WRONLY)
        try:
            os.pwrite(fd, b"[", 0)
            os.pwrite(fd, b"]", LIMIT)
        finally:
            with raises("EFBIG"):
                os.close(fd)


# ---- B4: what is not complete applies nothing


def cuts(table, part, name, data, wholes):
    for n in range(1, len(data) + 1):
        if n in wholes:
            put(table / name, data[:n])
            [os.unlink(part / f) for f in os.listdir(part)]
        else:
            with raises("EINVAL"):
                put(table / name, data[:n])
            assert os.listdir(part) == [], data[:n]


def test_B4_an_array_is_whole_at_its_end_only(table, part):
    data = doc({"insert": row("1", A="é")}, {"upsert": row("2", A=-1.5)}).encode()
    cuts(part, part, ".batch", data, {len(data)})
    r = refused(part, data[:-1], "EINVAL")
    assert r["message"] == "The change set is not complete." and "index" not in r


def test_B4_a_batch_body_is_whole_at_its_closing_delimiter_only(front_end):
    body, _ = batch_body(front_end.rest, [("POST", "Tab", {}, {"PartitionKey": "p", "RowKey": "1"})])
    end = len(body.rstrip())
    cuts(front_end.table, front_end.part, ".batch", body, set(range(end, len(body) + 1)))


def test_B4_lines_are_whole_behind_each_operation(part):
    first = lines({"insert": row("1")}).encode()
    data = first + lines({"insert": row("2")}).encode()
    cuts(part, part, ".batch", data, {len(first) - 1, len(first), len(data) - 1, len(data)})


def test_B4_the_handle_of_an_incomplete_set_can_be_completed(mnt, part):
    text = doc({"insert": row("1")}, {"insert": row("2")})
    with Session(part) as s:
        s.write(text[:20])
        with raises("EINVAL"):
            os.close(os.dup(s.fd))
        with raises("EINVAL"):
            os.close(os.dup(s.fd))
        with raises("EINVAL"):
            os.read(s.fd, 100)
        assert list(rejected(mnt).values()) == [text[:20].encode()]
        s.write(text[20:])
        assert json.loads(s.read())["committed"] is True
    assert rows(part) == ["1.json", "2.json"] and rejected(mnt) == {}


def test_B4_fsync_of_an_incomplete_set_is_EIO(part):
    fd = os.open(part / ".batch", os.O_WRONLY)
    os.write(fd, b"[")
    with raises("EIO"):
        os.fsync(fd)
    os.write(fd, doc({"insert": row("1")})[1:].encode())
    os.fsync(fd)
    assert rows(part) == ["1.json"]
    os.close(fd)


def test_B4_what_a_killed_writer_leaves_is_decided_too(mnt, part):
    script = ("import os, sys\nfd = os.open(sys.argv[1], os.O_WRONLY)\n"
              "os.write(fd, sys.argv[2].encode())\nos.kill(os.getpid(), 9)\n")
    for text in (doc({"insert": row("1")}), doc({"insert": row("2")})[:-1]):
        subprocess.run([sys.executable, "-c", script, str(part / ".batch"), text])
    assert rows(part) == ["1.json"]
    assert b"".join(rejected(mnt).values()) == doc({"insert": row("2")})[:-1].encode()


def test_B4_a_close_in_another_process_decides_nothing(part):
    with Session(part) as s:
        sh(f"printf '[' >&{s.fd}; printf '' >&{s.fd}", pass_fds=[s.fd])
        s.write(doc({"insert": row("1")})[1:])
        sh(":", pass_fds=[s.fd])
        assert rows(part) == []
    assert rows(part) == ["1.json"]


# ---- B5: reading


def test_B5_a_shell_reads_the_result_on_its_own_handle(part, work):
    (work / "set").write_text(doc({"insert": row("1")}))
    done = sh("exec 3<>.batch; cat ../../../../set >&3; cat <&3; cat <&3 | wc -c", cwd=part)
    first, _, rest = done.stdout.rpartition("}\n")
    assert json.loads(first + "}")["committed"] is True and rest.strip() == "0"
    done = sh("exec 3<>.batch; cat ../../../../set >&3; cat <&3; exec 3>&-", cwd=part)
    assert json.loads(done.stdout)["code"] == "EntityAlreadyExists"


def test_B5_one_handle_set_after_set(part):
    with Session(part) as s:
        for i in range(3):
            s.write(doc({"insert": row(str(i))}))
            r = json.loads(s.read())
            assert r["operations"][0]["RowKey"] == str(i)
        s.write(doc({"insert": row("0")}))
        assert json.loads(s.read())["errno"] == "EEXIST"
        s.write(doc({"insert": row("3")}))
    assert len(rows(part)) == 4


def test_B5_it_is_seekable(part):
    text = doc({"insert": row("1")})
    with Session(part) as s:
        s.write(text)
        assert os.lseek(s.fd, 0, os.SEEK_CUR) == len(text)
        behind = s.read()
        os.lseek(s.fd, 0, os.SEEK_SET)
        assert s.read() == behind
        assert os.pread(s.fd, 10, 5) == behind[5:15]
        os.lseek(s.fd, 0, os.SEEK_SET)
        s.write(doc({"delete": row("1")}))
        os.lseek(s.fd, 0, os.SEEK_SET)
        assert json.loads(s.read())["operations"][0]["operation"] == "delete"
    assert rows(part) == []


def test_B5_pythons_files(part):
    path = part / ".batch"
    with open(path, "r+") as f:
        f.write(doc({"insert": row("1")}))
        f.seek(0)
        assert json.load(f)["committed"] is True
    with open(path, "w+") as f:
        f.write(doc({"insert": row("2")}))
        f.flush()
        assert json.loads(f.read())["committed"] is True
    with open(path, "a+") as f:
        f.write(doc({"insert": row("3")}))
        f.seek(0)
        assert json.load(f)["operations"][0]["RowKey"] == "3"
    with raises("EEXIST"), open(path, "w") as f:
        f.write(doc({"insert": row("3")}))


def test_B5_a_fresh_open_reads_the_last_result_of_its_directory(table, part):
    assert get(part / ".batch") == get(table / ".batch") == get(part / ".batch-check") == b""
    commit(part, doc({"insert": row("1")}))
    commit(table, doc({"insert": {"PartitionKey": "q", "RowKey": "1"}}))
    commit(part, doc({"insert": row("2")}), ".batch-check")
    assert result(part)["operations"][0]["RowKey"] == "1"
    assert result(table)["operations"][0]["PartitionKey"] == "q"
    assert result(part, ".batch-check")["would_commit"] is True
    with open(part / ".batch") as reader:
        commit(part, doc({"insert": row("3")}))
        assert json.load(reader)["operations"][0]["RowKey"] == "1"
    assert os.stat(part / ".batch").st_size == 0


def test_B5_results_of_256_directories_are_kept(table):
    for i in range(257):
        (table / f"p{i:03}").mkdir()
        commit(table / f"p{i:03}", doc({"insert": row(str(i))}))
    assert get(table / "p000/.batch") == b""
    assert result(table / "p001")["operations"][0]["RowKey"] == "1"


def test_B5_nothing_written_changes_nothing(part):
    commit(part, doc({"insert": row("1")}))
    before = get(part / ".batch")
    sh(": > .batch; touch .batch; truncate -s 0 .batch; cat .batch > /dev/null; : >> .batch", cwd=part)
    assert get(part / ".batch") == before and rows(part) == ["1.json"]


# ---- B6: .batch-check


def test_B6_a_check_judges_all_and_keeps_nothing(mnt, part):
    r = commit(part, doc({"insert": row("1", A=1)}, {"upsert": row("2")}), ".batch-check")
    assert r["committed"] is False and r["would_commit"] is True
    assert [o["status"] for o in r["operations"]] == [201, 204]
    assert all("etag" not in o for o in r["operations"]) and rows(part) == []
    commit(part, doc({"insert": row("1", A=1)}))
    etag = xattr(part / "1.json", "etag")
    for code, op in [("EEXIST", {"insert": row("1")}), ("ENOENT", {"merge": row("9")}),
                     ("ESTALE", {"merge": row("1"), "if_match": "W/\"x\""})]:
        r = refused(part, doc({"upsert": row("3")}, op), code, ".batch-check")
        assert r["would_commit"] is False and r["index"] == 1
        assert reason(part / ".batch-check").startswith(r["code"])
    commit(part, doc({"delete": row("1")}), ".batch-check")
    assert rows(part) == ["1.json"] and xattr(part / "1.json", "etag") == etag
    assert rejected(mnt) == {}
    with raises("ENODATA"):
        reason(part / ".batch-check")
    with Session(part, ".batch-check") as s:
        s.write(doc({"delete": row("1")}))
        os.fsync(s.fd)
        assert json.loads(s.read())["would_commit"] is True
    assert rows(part) == ["1.json"]


# ---- B7: both front ends


def test_B7_both_front_ends_see_it_at_once_with_hot_caches(front_end):
    names = ["same", "gone", "new", "merged"]
    commit(front_end.part, doc(*({"insert": row(n, V=0)} for n in names if n != "new")))
    for i in range(1, 20):
        for n in names:
            with open(front_end.part / f"{n}.json") if n != "new" else open(os.devnull) as f:
                f.read()
            (front_end.part / f"{n}.json").exists()
        r = commit(front_end.part, doc(
            {"replace": row("same", V=i)}, {"delete": row("gone")},
            {"insert": row("new", V=i)}, {"merge": row("merged", V=i)}))
        assert own(front_end.part, "same") == own(front_end.part, "new") == own(front_end.part, "merged") == {"V": i}
        assert not (front_end.part / "gone.json").exists()
        assert rows(front_end.part) == ["merged.json", "new.json", "same.json"]
        for o in r["operations"]:
            answer = front_end.rest.get("Tab", "p", o["RowKey"], headers={"Accept": NONE})
            if o["operation"] == "delete":
                assert answer.status == 404
            else:
                assert answer.etag == o["etag"] and ok(answer).json["V"] == i
                assert os.stat(front_end.part / f"{o['RowKey']}.json").st_size == len(
                    get(front_end.part / f"{o['RowKey']}.json"))
        commit(front_end.part, doc({"delete": row("new")}, {"insert": row("gone", V=i)}))
        assert not (front_end.part / "new.json").exists() and (front_end.part / "gone.json").exists()


def watch(stop, problems, look):
    while not stop.is_set():
        try:
            look()
        except BaseException as e:
            problems.append(repr(e))
            return


def write_files(front_end, n):
    put(front_end.part / ".batch", doc({"replace": row("a", N=n)}, {"upsert": row("b", N=n)},
                                  {"insert": row(f"c{n}")}, {"insert": row(f"d{n}")}))
    with raises("EEXIST"):
        put(front_end.part / ".batch", doc({"replace": row("a", N=-1)}, {"insert": row("b")}))


def write_message(front_end, n):
    put(front_end.part / ".batch", doc(message(str(n)), *(
        {"upsert": row(rk, N=n)} for rk in ("a", "b", f"c{n}", f"d{n}"))))


def write_rest(front_end, n):
    ops = [("PUT", entity_path("Tab", "p", rk), {"If-Match": "*"}, {"N": n}) for rk in "ab"]
    ops += [("PUT", entity_path("Tab", "p", f"{rk}{n}"), {}, {"N": n}) for rk in "cd"]
    ok(front_end.rest.batch(ops), 202)


@pytest.mark.parametrize("write", [write_files, write_rest, write_message])
def test_B7_readers_see_all_of_a_set_or_nothing(jobs, write):
    front_end = jobs
    commit(front_end.part, doc({"insert": row("a", N=0)}, {"insert": row("b", N=0)}))
    stop, problems, seen, writing = threading.Event(), [], set(), [0]

    def look_rest():
        found = [r["N"] for r in reader.query("Tab", filter="RowKey lt 'c'",
                                              headers={"Accept": NONE}).rows]
        assert len(found) == 2 and found[0] == found[1], found
        seen.add(found[0])

    # What is read second is never of an earlier set than what was read first.
    def look_files():
        for one, two in (("a", "b"), ("b", "a")):
            n = own(front_end.part, one)["N"]
            assert own(front_end.part, two)["N"] >= n
            assert n == 0 or (front_end.part / f"c{n}.json").exists()

    def look_stat():
        n = writing[0]
        a, b = front_end.part / f"c{n}.json", front_end.part / f"d{n}.json"
        there = os.stat(front_end.part / "a.json").st_mtime_ns
        assert os.stat(front_end.part / "b.json").st_mtime_ns >= there
        if a.exists():
            assert b.exists()
        if b.exists():
            assert a.exists()

    reader = front_end.rest.clone()
    threads = [threading.Thread(target=watch, args=(stop, problems, look))
               for look in (look_rest, look_files, look_stat)]
    for t in threads:
        t.start()
    try:
        for n in range(1, 300):
            writing[0] = n
            write(front_end, n)
    finally:
        stop.set()
        for t in threads:
            t.join()
        reader.close()
    assert problems == [] and len(seen) > 1


def test_B7_sets_beside_those_who_make_and_remove_names(front_end):
    """The kernel's locks on the directory are held by others while names are dropped."""
    stop, problems = threading.Event(), []

    def churn(i):
        path = front_end.part / f"churn{i}.json"
        put(path, "{}")
        os.rename(path, front_end.part / f"churn{i}x.json")
        os.unlink(front_end.part / f"churn{i}x.json")

    threads = [threading.Thread(target=watch, args=(stop, problems, lambda i=i: churn(i)))
               for i in range(4)]
    for t in threads:
        t.start()
    try:
        for n in range(60):
            put(front_end.part / ".batch", doc(*({"upsert": row(f"r{i}", N=n)} for i in range(20))))
            assert own(front_end.part, "r19") == {"N": n}
    finally:
        stop.set()
        for t in threads:
            t.join()
    assert problems == []


def test_B7_many_writers_of_one_file_each_have_their_own_set(part):
    problems = []

    def write(i):
        try:
            for n in range(20):
                with Session(part) as s:
                    s.write(doc({"insert": row(f"{i}-{n}")}))
                    assert json.loads(s.read())["operations"][0]["RowKey"] == f"{i}-{n}"
        except BaseException as e:
            problems.append(repr(e))

    threads = [threading.Thread(target=write, args=(i,)) for i in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert problems == [] and len(rows(part)) == 120


def test_B7_a_set_after_fsync_survives_the_daemons_death(mnt, part):
    with Session(part) as s:
        s.write(doc({"insert": row("1")}, {"insert": row("2")}))
        os.fsync(s.fd)
        mnt.kill9()
        with raises("ENOTCONN", "ECONNABORTED"):
            s.write("x")
        fd, s.fd = s.fd, None
        try:
            os.close(fd)
        except OSError:
            pass
    mnt.start()
    assert rows(part) == ["1.json", "2.json"]


# ---- B8: where it is, and what it is not


def test_B8_it_is_not_listed_and_stands_in_tables_and_partitions_only(mnt, account, table, part):
    commit(part, doc({"insert": row("1")}))
    assert rows(table) == ["Channel_19"] and rows(part) == ["1.json"]
    assert sh("find . ; ls -A", cwd=table).stdout.count("batch") == 0
    for directory in (mnt.path, account, mnt / ".rowfs"):
        with raises("ENOENT"):
            os.stat(directory / ".batch")
    (part / ".dir").mkdir()
    put(part / ".dir/.batch", "the user's own")
    assert rows(part / ".dir") == [".batch"] and get(part / ".dir/.batch") == b"the user's own"


@pytest.mark.parametrize("name", [".batch", ".batch-check"])
def test_B8_it_cannot_be_removed_renamed_or_replaced(part, name):
    put(part / "1.json", "{}")
    for change in (lambda: os.unlink(part / name), lambda: os.rename(part / name, part / "x"),
                   lambda: os.rename(part / "1.json", part / name),
                   lambda: os.link(part / name, part / "y"), lambda: os.rename(part / name, part / "1.json")):
        with raises("EPERM"):
            change()
    with raises("EEXIST"):
        os.mkdir(part / name)
    with raises("ENODATA"):
        os.getxattr(part / name, "user.rowfs.etag")
    assert rows(part) == ["1.json"]
    sh("rm -r .", cwd=part, check=False)
    sh("rm -rf Channel_19", cwd=part.parent)
    assert not part.exists()


# ---- B9: messages of queues in a set


@pytest.fixture
def jobs(front_end):
    """The queue `jobs` of the account, by REST."""
    q = Queues(front_end.rest.port, host=f"{ACCOUNT}.queue.localhost")
    assert q.ask("PUT", "/jobs").status == 201
    front_end.queues = q
    return front_end


def message(text, queue="jobs", **times):
    return {"put_message": {"queue": queue, "text": text, **times}}


def waiting(front_end, queue="jobs"):
    return messages(front_end.queues.ask("GET", f"/{queue}/messages",
                                    {"peekonly": "true", "numofmessages": "32"}))


def test_B9_a_message_is_put_with_the_rows_of_a_set(jobs):
    commit(jobs.part, doc({"insert": row("1")}))
    r = commit(jobs.part, doc({"delete": row("1")}, message("row 1 \u00e4 is gone"),
                              {"insert": row("2")}))
    assert [o["operation"] for o in r["operations"]] == ["delete", "put_message", "insert"]
    assert rows(jobs.part) == ["2.json"]
    [m] = waiting(jobs)
    told = r["operations"][1]
    assert told == {"operation": "put_message", "queue": "jobs", "status": 201,
                    "id": m["MessageId"]}
    assert m["MessageText"] == "row 1 \u00e4 is gone" and m["DequeueCount"] == "0"


def test_B9_a_set_may_hold_messages_alone(jobs):
    assert jobs.queues.ask("PUT", "/more").status == 201
    r = commit(jobs.table, lines(message("a"), message("b", "more", messagettl=-1),
                                 message("c", visibilitytimeout=3600)))
    assert r["committed"] is True
    [a], [b] = waiting(jobs), waiting(jobs, "more")
    assert (a["MessageText"], b["MessageText"]) == ("a", "b")
    assert a["MessageId"] == r["operations"][0]["id"]
    assert b["ExpirationTime"].startswith("Fri, 31 Dec 9999")


def test_B9_all_or_nothing_whatever_fails(jobs):
    commit(jobs.part, doc({"insert": row("1")}))
    for bad, code, errno_ in [
            ({"insert": row("1")}, "EntityAlreadyExists", "EEXIST"),
            (message("x", "none"), "QueueNotFound", "ENOENT"),
            (message("x" * 65537), "MessageTooLarge", "EFBIG"),
            (message("x", visibilitytimeout=604801, messagettl=-1),
             "OutOfRangeQueryParameterValue", "EINVAL"),
            (message("x", messagettl=0), "OutOfRangeQueryParameterValue", "EINVAL"),
            ({"put_message": {"queue": "jobs"}}, "InvalidInput", "EINVAL")]:
        r = refused(jobs.part, doc(message("first"), {"upsert": row("2")}, bad), errno_)
        assert (r["index"], r["code"]) == (2, code)
        assert r["operation"] == next(iter(bad))
        assert rows(jobs.part) == ["1.json"] and waiting(jobs) == []
    commit(jobs.part, doc(message("x" * 65536),
                          message("y", visibilitytimeout=604800, messagettl=604801)))
    assert [len(m["MessageText"]) for m in waiting(jobs)] == [65536]


def test_B9_a_check_judges_messages_and_puts_none(jobs):
    r = commit(jobs.part, doc({"insert": row("1")}, message("x")), ".batch-check")
    assert (r["committed"], r["would_commit"]) == (False, True)
    assert r["operations"][1] == {"operation": "put_message", "queue": "jobs", "status": 201}
    refused(jobs.part, doc({"insert": row("1")}, message("x", "none")), "ENOENT", ".batch-check")
    assert rows(jobs.part) == [] and waiting(jobs) == []


def test_B9_messages_count_among_the_100_operations_and_4_MiB(jobs):
    many = [message(str(i)) for i in range(99)]
    commit(jobs.part, doc({"insert": row("1")}, *many))
    refused(jobs.part, doc({"insert": row("2")}, {"insert": row("3")}, *many), "E2BIG")
    assert rows(jobs.part) == ["1.json"]
    assert jobs.queues.ask("DELETE", "/jobs/messages").status == 204
    text = doc({"insert": row("2")}, *(message("x" * 65536) for _ in range(63)))
    commit(jobs.part, text + " " * (LIMIT - len(text)))
    assert len(waiting(jobs)) == 32
    with raises("EFBIG"):
        put(jobs.part / ".batch", text.replace('"2"', '"3"') + " " * (LIMIT - len(text) + 1))
    assert rows(jobs.part) == ["1.json", "2.json"]


def test_B9_readers_see_the_row_with_the_message_or_neither(jobs):
    """A consumer that has a message always finds its row."""
    stop, wrong = threading.Event(), []

    def consume():
        while not stop.is_set() or jobs.queues.get("jobs", numofmessages="1", peekonly="true"):
            for m in jobs.queues.get("jobs", numofmessages="32"):
                if not (jobs.part / f"{m['MessageText']}.json").exists():
                    wrong.append(m["MessageText"])
                assert jobs.queues.delete("jobs", m).status == 204

    threads = [threading.Thread(target=consume) for _ in range(2)]
    for t in threads:
        t.start()
    for i in range(100):
        commit(jobs.part, doc(message(str(i)), {"insert": row(str(i))}, {"upsert": row("n", N=i)}))
    stop.set()
    for t in threads:
        t.join()
    assert wrong == [] and len(rows(jobs.part)) == 101
