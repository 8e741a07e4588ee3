# SPDX-License-Identifier: MIT
"""Rows without a mount: ls, get, put, merge, rm, mv, query and batch take the paths of a mount, and
give its answers, on a store of their own and through the process that serves it."""

import json
import os
import pty
import subprocess

import pytest

from conftest import ENV
from tools import errors, get, put as write, raises


@pytest.fixture(params=["closed", "mounted"])
def db(request, rowfs, store):
    """A store with the account 'acct'; where it is mounted, db.mnt is the mount."""
    rowfs("account", "add", store, "acct")

    class Store(type(store)):
        mnt = None
    found = Store(store)
    if request.param == "mounted":
        found.mnt = request.getfixturevalue("mount")(store)
    return found


def put(rowfs, db, path, text="{}", *more, check=True):
    return rowfs("put", db, path, *more, input=text, check=check)


def names(rowfs, db, *path):
    return rowfs("ls", db, *path).stdout.split("\n")[:-1]


def refused(done, *texts):
    assert done.returncode == 1 and done.stderr.startswith("rowfs ")
    for text in texts:
        assert text in done.stderr
    return done


def test_a_row_is_put_read_listed_and_removed(rowfs, db, work):
    text = '{ "Text":"Hi",\n"Rating":5}\n'
    put(rowfs, db, "acct/Posts/Football/1.json", text)
    (work / "two.json").write_text('{"Rating":7}')
    rowfs("put", db, "/acct/Posts/Football/2.json", work / "two.json")
    assert rowfs("get", db, "acct/Posts/Football/1.json").stdout == text
    if db.mnt:
        assert get(db.mnt / "acct/Posts/Football/1.json") == text.encode()
    both = rowfs("get", db, "acct/Posts/Football/2.json", "acct/Posts/Football/1.json").stdout
    assert both == '{"Rating":7}' + text
    row = json.loads(rowfs("get", "--json", db, "acct/Posts/Football/2.json").stdout)
    assert row.pop("Timestamp").startswith("20")
    assert row == {"PartitionKey": "Football", "RowKey": "2", "Rating": 7,
                   "Timestamp@odata.type": "Edm.DateTime"}
    assert names(rowfs, db) == ["acct/"]
    assert names(rowfs, db, "acct") == ["Posts/"]
    assert names(rowfs, db, "acct/Posts") == ["Football/"]
    assert names(rowfs, db, "acct/Posts/Football/") == ["1.json", "2.json"]
    assert names(rowfs, db, "acct/Posts/Football/1.json") == ["1.json"]
    rowfs("rm", db, "acct/Posts/Football/1.json", "acct/Posts/Football/2.json")
    if db.mnt:
        assert not (db.mnt / "acct/Posts/Football/1.json").exists()
    refused(rowfs("get", db, "acct/Posts/Football/1.json", check=False), "ResourceNotFound")


def test_listings_tell_more_on_request(rowfs, db):
    put(rowfs, db, "acct/Posts/p/1.json", '{"A":1}')
    found = json.loads(rowfs("ls", "--json", db, "acct/Posts/p").stdout)
    assert found.pop("changed").startswith("20")
    assert found.pop("etag").startswith("W/\"datetime'20")
    assert found == {"name": "1.json", "kind": "row", "size": 7}
    table = json.loads(rowfs("ls", "--json", db, "acct").stdout)
    assert (table["name"], table["kind"], table["children"]) == ("Posts", "table", 1)
    line = rowfs("ls", "--long", db, "acct/Posts/p").stdout
    assert line.split()[:2] == ["7", "bytes"] and line.endswith("  1.json\n")
    assert rowfs("ls", "-l", db, "acct").stdout.endswith("  Posts/\n")


def test_a_long_listing_comes_in_pieces(rowfs, db):
    rows = "".join(json.dumps({"PartitionKey": "p", "RowKey": f"{i:05}-{'x' * 60}"}) + "\n"
                   for i in range(3000))
    rowfs("import", db, "acct/Tab", input=rows)
    assert names(rowfs, db, "acct/Tab/p") == [f"{i:05}-{'x' * 60}.json" for i in range(3000)]


def test_merge_keeps_what_is_not_given(rowfs, db):
    put(rowfs, db, "acct/Posts/p/1.json", '{"A":1,"B":2}')
    rowfs("merge", db, "acct/Posts/p/1.json", input='{"B":3}')
    assert json.loads(rowfs("get", db, "acct/Posts/p/1.json").stdout) == {"A": 1, "B": 3}
    rowfs("merge", db, "acct/Posts/p/new.json", input='{"C":1}')
    assert json.loads(rowfs("get", db, "acct/Posts/p/new.json").stdout) == {"C": 1}


def test_conditions_hold_or_refuse(rowfs, db):
    path = "acct/Posts/p/1.json"
    first = json.loads(put(rowfs, db, path, '{"A":1}', "--if-match=", "--json").stdout)["etag"]
    unmet = "UpdateConditionNotSatisfied"
    refused(put(rowfs, db, path, "{}", "--if-match=", check=False), unmet)
    second = json.loads(put(rowfs, db, path, '{"A":2}', "--if-match", first, "--json").stdout)
    assert second == {"path": path, "etag": json.loads(
        rowfs("ls", "--json", db, path).stdout)["etag"]}
    refused(put(rowfs, db, path, "{}", "--if-match", first, check=False), unmet)
    refused(rowfs("merge", db, path, "--if-match", first, input="{}", check=False), unmet)
    refused(rowfs("rm", db, path, "--if-match", first, check=False), unmet)
    rowfs("merge", db, path, "--if-match=*", input='{"B":1}')
    refused(put(rowfs, db, "acct/Posts/p/2.json", "{}", "--if-match=*", check=False), unmet)
    refused(rowfs("merge", db, "acct/Posts/p/2.json", "--if-match=*", input="{}", check=False),
            unmet)
    assert json.loads(rowfs("get", db, path).stdout) == {"A": 2, "B": 1}
    etag = json.loads(rowfs("ls", "--json", db, path).stdout)["etag"]
    rowfs("rm", db, path, "--if-match", etag)
    done = put(rowfs, db, path, "{}", "--if-match=nonsense", check=False)
    assert done.returncode == 2 and "--if-match is an ETag" in done.stderr


WRONG = [
    ("acct/Posts/p/1.json", '{"A":1', "InvalidInput: The document is not complete. (line 1"),
    ("acct/Posts/p/1.json", "", "InvalidInput"),
    ("acct/Posts/p/1.json", '{"RowKey":"2"}', "RowKey in the document is not the RowKey of"),
    ("acct/Posts/p/1.json", '{"PartitionKey":"q"}', "is not the PartitionKey of"),
    ("acct/Posts/p/1.json", '{"A b":1}', "PropertyNameInvalid"),
    ("acct/Posts/p/1", "{}", "not the name of a row"),
    ("acct/Posts/p", "{}", "not the name of a row"),
    ("acct/Posts/.q/1.json", "{}", "ResourceNotFound"),
    ("acct/P-/p/1.json", "{}", "InvalidResourceName"),
    ("acct/Posts/a%5Cb/1.json", "{}", "InvalidResourceName"),
    ("nobody/Posts/p/1.json", "{}", "rowfs account add"),
]


def test_a_wrong_row_is_refused_with_the_reason(rowfs, db):
    for path, text, code in WRONG:
        refused(put(rowfs, db, path, text, check=False), code)
    assert names(rowfs, db, "acct/Posts") == []


def test_the_reason_is_the_one_of_the_mount(rowfs, store, mount):
    rowfs("account", "add", store, "acct")
    mnt = mount(store)
    os.makedirs(mnt / "acct/Posts/p")
    for text in ('{"A":', '{"RowKey":"2"}', '{"A@odata.type":"Edm.Guid","A":"x"}'):
        with raises("EINVAL"):
            write(mnt / "acct/Posts/p/1.json", text)
        message = errors(mnt)[-1]["message"]
        refused(put(rowfs, store, "acct/Posts/p/1.json", text, check=False), message)


def test_names_are_those_of_the_mount(rowfs, db):
    long_pk, long_rk = "p" * 300, "r" * 300
    row = json.dumps({"PartitionKey": long_pk, "RowKey": long_rk, "A": 1})
    rowfs("import", db, "acct/Tab", input=row + "\n" + json.dumps(
        {"PartitionKey": "100%", "RowKey": ""}) + "\n")
    short, digest = names(rowfs, db, "acct/Tab")
    assert short == "100%25/" and "%~" in digest
    assert names(rowfs, db, "acct/Tab/100%25") == ["%_.json"]
    name, = names(rowfs, db, "acct/Tab/" + digest)
    path = f"acct/Tab/{digest}{name}"
    if db.mnt:
        assert (db.mnt / path).exists()
    refused(put(rowfs, db, path, '{"A":2}', check=False), "PropertiesNeedValue")
    put(rowfs, db, path, row.replace('"A": 1', '"A": 3'))
    rowfs("rm", db, "-r", "acct/Tab/" + digest)
    put(rowfs, db, path, row)  # the document alone tells both keys
    assert json.loads(rowfs("get", db, path).stdout)["A"] == 1
    refused(rowfs("get", db, "acct/tab/" + digest + name, check=False), "TableNotFound")


def test_a_name_moves_with_its_rows(rowfs, db):
    for key in "12":
        put(rowfs, db, f"acct/Posts/Football/{key}.json", json.dumps({"N": key}))
    if db.mnt:  # the kernel knows the names that go
        assert sorted(os.listdir(db.mnt / "acct/Posts/Football")) == ["1.json", "2.json"]
        assert get(db.mnt / "acct/Posts/Football/1.json") == b'{"N": "1"}'
    rowfs("mv", db, "acct/Posts/Football/1.json", "acct/Posts/Football/3.json")
    if db.mnt:
        assert sorted(os.listdir(db.mnt / "acct/Posts/Football")) == ["2.json", "3.json"]
        assert not (db.mnt / "acct/Posts/Football/1.json").exists()
        assert (db.mnt / "acct/Posts/Football/3.json").exists()
    rowfs("mv", db, "acct/Posts/Football", "acct/Posts/Chess")
    if db.mnt:
        assert os.listdir(db.mnt / "acct/Posts") == ["Chess"]
        assert not (db.mnt / "acct/Posts/Football").exists()
        assert get(db.mnt / "acct/Posts/Chess/3.json") == b'{"N": "1"}'
    put(rowfs, db, "acct/Posts/Go/1.json")
    rowfs("mv", db, "acct/Posts/Chess/2.json", "acct/Posts/Go")
    assert names(rowfs, db, "acct/Posts/Go") == ["1.json", "2.json"]
    refused(rowfs("mv", db, "acct/Posts/Go/7.json", "acct/Posts/Go/8.json", check=False),
            "ResourceNotFound")
    refused(rowfs("mv", db, "acct/Posts/Go/1.json", "acct/Posts/Nope/1.json", check=False),
            "ResourceNotFound")
    refused(rowfs("mv", db, "acct/Posts", "acct/Other", check=False), "in a mount")
    refused(rowfs("mv", db, "acct/Posts/Go/1.json", "acct/Posts/Go/.batch", check=False),
            "live in a partition")


def test_only_r_removes_what_holds_more(rowfs, db):
    put(rowfs, db, "acct/Posts/p/1.json")
    put(rowfs, db, "acct/Other/p/1.json")
    refused(rowfs("rm", db, "acct/Posts/p", check=False), "-r removes")
    rowfs("rm", db, "--recursive", "acct/Posts/p")
    assert names(rowfs, db, "acct/Posts") == []
    put(rowfs, db, "acct/Posts/q/1.json")
    if db.mnt:
        assert get(db.mnt / "acct/Posts/q/1.json") == b"{}"
    rowfs("rm", db, "-r", "acct/Posts")
    assert names(rowfs, db, "acct") == ["Other/"]
    if db.mnt:
        assert not (db.mnt / "acct/Posts/q/1.json").exists()
        write(db.mnt / "acct/Other/p/notes.txt", "x")
        rowfs("rm", db, "acct/Other/p/notes.txt")
        assert os.listdir(db.mnt / "acct/Other/p") == ["1.json"]
    refused(rowfs("rm", db, "-r", "/", check=False), "the whole store")
    rowfs("rm", db, "-r", "acct")
    assert names(rowfs, db) == []


def at_terminal(rowfs, answer, *args):
    """What a command says to a person who types the answer."""
    person, terminal = pty.openpty()
    running = subprocess.Popen([rowfs.program, *args], stdin=terminal, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, env=ENV, text=True)
    os.write(person, answer)
    _, err = running.communicate(timeout=60)
    os.close(person)
    os.close(terminal)
    return running.returncode, err


def test_a_person_is_asked_first(rowfs, db):
    put(rowfs, db, "acct/Posts/p/1.json")
    remove = ("rm", "-r", db, "acct/Posts/p")
    for answer in (b"n\n", b"\x04", b"\n"):
        code, err = at_terminal(rowfs, answer, *remove)
        assert code == 1 and "remove 'acct/Posts/p' with all below? [y/N]" in err
        assert names(rowfs, db, "acct/Posts") == ["p/"]
    assert at_terminal(rowfs, b"y\n", *remove)[0] == 0
    assert names(rowfs, db, "acct/Posts") == []
    assert at_terminal(rowfs, b"", "rm", "-r", "--yes", db, "acct/Posts") == (0, "")
    assert names(rowfs, db, "acct") == []


def test_a_query_selects_and_explains(rowfs, db):
    rows = [{"PartitionKey": p, "RowKey": str(i), "N": i, "T": f"t{i}"}
            for p in "ab" for i in range(5)]
    rowfs("import", db, "acct/Tab", input="".join(json.dumps(r) + "\n" for r in rows))

    def query(*args):
        return rowfs("query", db, *args).stdout
    assert len(query("acct/Tab").splitlines()) == 10
    assert len(query("acct/Tab/a").splitlines()) == 5
    found = [json.loads(line) for line in query("acct/Tab", "N ge 3", "--select=T").splitlines()]
    assert found[0] == {"PartitionKey": "a", "RowKey": "3", "T": "t3"} and len(found) == 4
    assert query("acct/Tab", "N ge 3", "--count") == "4\n"
    assert len(json.loads(query("acct/Tab", "--top=3", "--format=json"))) == 3
    assert query("acct/Tab/b", "N eq 4", "--select=N", "--format=csv") == \
        "PartitionKey,RowKey,N,N@type\r\nb,4,4,Edm.Int32\r\n"
    plan = json.loads(query("acct/Tab", "PartitionKey eq 'a' and N eq 1", "--explain"))
    assert (plan["plan"], plan["looked_at"], plan["matched"]) == ("partition range", 5, 1) or \
        (plan["plan"], plan["looked_at"], plan["matched"]) == ("row range", 5, 1)
    assert query("acct/Tab", "N eq 4", "--select=N,T", "--format=table").splitlines() == [
        "PartitionKey  RowKey  N  T", "a             4       4  t4", "b             4       4  t4"]
    assert rowfs("export", db, "acct/Tab", "--filter=N eq 4").stdout.count("\n") == 2


def test_a_terminal_shows_columns(rowfs, db):
    put(rowfs, db, "acct/Tab/p/1.json", '{"A":"x\\u001b[31m\\ny","B":"' + "l" * 90 + '"}')
    person, terminal = pty.openpty()
    subprocess.run([rowfs.program, "query", db, "acct/Tab", "--select=A,B"], check=True,
                   stdin=subprocess.DEVNULL, stdout=terminal, timeout=60, env=ENV)
    os.close(terminal)
    shown = os.read(person, 65536).decode().replace("\r\n", "\n").split("\n")
    os.close(person)
    assert shown[0].split() == ["PartitionKey", "RowKey", "A", "B"]
    assert shown[1] == "p             1       x [31m y  " + "l" * 48 and shown[2] == ""


SENSELESS = [
    (("acct/Tab", "N ge"), 2, "Syntax error"), (("acct/Tab", "--top=0"), 2, "top is a number"),
    (("acct/Tab", "--format=xml"), 2, "one of --format=table"),
    (("acct/Tab", "--count", "--explain"), 2, "one of --format=table"),
    (("acct/Nope",), 1, "TableNotFound"), (("acct",), 1, "not ACCOUNT/TABLE"),
    (("acct/Tab/nope",), 1, "ResourceNotFound"),
]


def test_a_query_that_makes_no_sense_is_refused(rowfs, db):
    put(rowfs, db, "acct/Tab/p/1.json")
    for args, code, text in SENSELESS:
        done = rowfs("query", db, *args, check=False)
        assert done.returncode == code and text in done.stderr and not done.stdout


def test_a_change_set_is_applied_or_not_at_all(rowfs, db, work):
    put(rowfs, db, "acct/Tab/p/1.json", '{"A":1}')
    (work / "set").write_text('[{"insert":{"RowKey":"2"}},{"merge":{"RowKey":"1","B":2}}]')
    done = json.loads(rowfs("batch", db, "acct/Tab/p", work / "set", "--check").stdout)
    assert done["committed"] is False and names(rowfs, db, "acct/Tab/p") == ["1.json"]
    assert json.loads(rowfs("batch", db, "acct/Tab/p", work / "set").stdout)["committed"] is True
    assert names(rowfs, db, "acct/Tab/p") == ["1.json", "2.json"]
    done = refused(rowfs("batch", db, "acct/Tab/p", work / "set", check=False),
                   "EntityAlreadyExists")
    result = json.loads(done.stdout)
    assert result["committed"] is False and result["index"] == 0
    rowfs("batch", db, "acct/Tab",
          input='[{"delete":{"PartitionKey":"p","RowKey":"1"}}]')
    assert names(rowfs, db, "acct/Tab/p") == ["2.json"]
    refused(rowfs("batch", db, "acct", work / "set", check=False), "not ACCOUNT/TABLE")


def test_a_change_set_makes_its_partition(rowfs, db, work):
    put(rowfs, db, "acct/Tab/p/1.json", '{"A":1}')
    ops = '[{"insert":{"RowKey":"1"}}]'
    assert json.loads(rowfs("batch", db, "acct/Tab/50%25", input=ops).stdout)["operations"][0]["PartitionKey"] == "50%"
    assert names(rowfs, db, "acct/Tab/50%25") == ["1.json"]
    refused(rowfs("batch", db, "acct/None/new", input=ops, check=False), "TableNotFound")
    for path in ("acct/Tab/.folder", "acct/Tab/new/1.json", "acct/Tab/%~nothing"):
        assert rowfs("batch", db, path, input=ops, check=False).returncode == 1
    refused(rowfs("batch", db, "acct/Tab/new", input="[", check=False), "InvalidInput")
    assert names(rowfs, db, "acct/Tab") == ["50%25/", "p/"]


def test_refusals_say_what_to_do(rowfs, db):
    put(rowfs, db, "acct/Tab/p/1.json", '{"A":1}')
    refused(rowfs("put", db, "acct/Tab/p/1.json", input="", check=False), "the input is empty", "is {}")
    refused(rowfs("mv", db, "acct/Tab/p/1.json", "acct/Tab/q/1.json", check=False), "its partition does not exist")


def test_readers_may_have_had_enough(rowfs, db):
    rowfs("import", db, "acct/Tab", input="".join(
        json.dumps({"PartitionKey": "p", "RowKey": str(i), "T": "x" * 1000}) + "\n"
        for i in range(2000)))
    done = subprocess.run(["sh", "-c", '"$0" query "$1" acct/Tab | head -n1', rowfs.program, db],
                          capture_output=True, text=True, timeout=60, env=ENV)
    assert done.stdout.count("\n") == 1 and done.stderr == ""


def test_a_read_only_store_is_read(rowfs, store, mount):
    rowfs("account", "add", store, "acct")
    put(rowfs, store, "acct/Tab/p/1.json")
    mount(store, "ro")
    assert names(rowfs, store, "acct/Tab/p") == ["1.json"]
    for args in (("put", store, "acct/Tab/p/2.json"), ("rm", store, "acct/Tab/p/1.json"),
                 ("mv", store, "acct/Tab/p/1.json", "acct/Tab/p/2.json")):
        done = refused(rowfs(*args, input="{}", check=False))
        assert "read-only" in done.stderr.lower()
