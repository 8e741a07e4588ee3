# SPDX-License-Identifier: MIT
"""ls, get, put, merge, rm and mv with the URL of an account elsewhere give the answers that they give on a
store of this machine."""

import json
import re

import pytest
from rest_client import ACCOUNT
from tools import on_terminal

from test_client import PROGRAM
from test_transfer import Elsewhere, elsewhere, numbered, refused  # noqa: F401

pytestmark = pytest.mark.skipif(not PROGRAM.exists(), reason="needs a build with libcurl")

ROW = '{"N":1,"L@odata.type":"Edm.Int64","L":"9007199254740993","D":-0.0,"S":"ü\'"}\n'


@pytest.fixture
def both(rowfs, elsewhere, work):  # noqa: F811
    """A function that runs a command here and elsewhere, and returns its exit code and output, which are
    the same; of a failure also the error's code."""
    there, here = elsewhere(), work / "here.rowfs"
    rowfs("init", here)
    rowfs("account", "add", here, ACCOUNT)

    def run(command, *words, input=None):
        found = []
        for store, more in ((here, []), (there.url, [f"--connection-string={there.secret}"])):
            done = rowfs(command, store, *(f"{ACCOUNT}/{w[1:]}" if w.startswith("/") else w for w in words), *more,
                         input=input, check=False)
            code = re.match(r"rowfs \w+: .*?: (\w+): ", done.stderr)
            assert bool(done.returncode) == bool(done.stderr), done.stderr
            found.append((done.returncode, done.stdout, code and code[1]))
        assert found[0] == found[1], (command, words)
        return found[0]
    run.there, run.here = there, here
    return run


def test_rows_are_put_merged_and_read(both):
    assert both("put", "/Posts/Football/1.json", input=ROW) == (0, "", None)
    assert json.loads(both("get", "/Posts/Football/1.json")[1])["L"] == "9007199254740993"
    both("merge", "/Posts/Football/1.json", input='{"New":"x"}')
    assert {"N", "New"} <= set(json.loads(both("get", "/Posts/Football/1.json")[1]))
    both("put", "/Posts/Football/1.json", input='{"Only":true}\n')
    assert both("get", "/Posts/Football/1.json")[1] == '{"Only":true}\n'
    both("merge", "/Posts/Chess/9.json", input='{"N":2}\n')
    assert both("get", "/Posts/Chess/9.json", "/Posts/Football/1.json")[1] == '{"N":2}\n{"Only":true}\n'
    for name in ("%_", "50%25.json", "it's.json", "\U0001f600.json", "%2Ehidden.json"):
        path = f"/Posts/{name.removesuffix('.json')}/{name.removesuffix('.json')}.json"
        both("put", path, input='{"A":1}\n')
        assert both("get", path) == (0, '{"A":1}\n', None)
    assert both("ls", "/Posts")[1].splitlines() == \
        ["%_/", "%2Ehidden/", "50%25/", "Chess/", "Football/", "it's/", "\U0001f600/"]
    assert both("ls", "/Posts/Football")[1] == both("ls", "/Posts/Football/1.json")[1] == "1.json\n"
    assert (both("ls", "/")[1], both("ls")[1]) == ("Posts/\n", f"{ACCOUNT}/\n")


@pytest.mark.parametrize("command, words, input, code", [
    ("get", ["/Posts/p/none.json"], None, "ResourceNotFound"), ("get", ["/None/p/r.json"], None, None),
    ("get", ["/Posts/p/a%2Fb.json"], None, "ResourceNotFound"), ("put", ["/Posts/p/a%2Fb.json"], "{}", "OutOfRangeInput"),
    ("get", ["/Posts/p"], None, None), ("get", ["/Posts"], None, None),
    ("put", ["/Posts/p/r.json"], "{", None), ("put", ["/Posts/p/r.json"], '{"RowKey":"x"}', None),
    ("put", ["/Posts/p/r.json"], '{"N":1,"N":2}', None), ("put", ["/Posts/p"], "{}", None),
    ("put", ["/Posts/p/r.json", "--if-match="], "{}", None),
    ("put", ["/Posts/p/none.json", "--if-match=*"], "{}", None),
    ("put", ["/Posts/p/r.json", "--if-match=W/\"datetime'2020-01-01T00%3A00%3A00Z'\""], "{}", None),
    ("merge", ["/Posts/p/none.json", "--if-match=*"], "{}", None),
    ("merge", ["/Posts/p/r.json", "--if-match="], "{}", None),
    ("rm", ["/Posts/p/none.json"], None, None), ("rm", ["/Posts/p"], None, None), ("rm", ["/Posts"], None, None),
    ("rm", ["/Posts/p/r.json", "--if-match=W/\"datetime'2020-01-01T00%3A00%3A00Z'\""], None, None),
    ("rm", ["/Posts/p", "-r", "--if-match=*"], None, None), ("rm", ["/None", "-r"], None, None),
    ("rm", ["/Posts/none", "-r"], None, None),
    ("mv", ["/Posts/p/none.json", "/Posts/p/x.json"], None, None),
    ("ls", ["/Posts/none"], None, None), ("ls", ["/None"], None, None), ("ls", ["/Posts/p/none.json"], None, None)])
def test_refusals_are_the_same(both, command, words, input, code):
    both("put", "/Posts/p/r.json", input='{"N":1}\n')
    done = both(command, *words, input=input)
    assert done[:2] == (1, "") and (code is None or done[2] == code)
    assert both("get", "/Posts/p/r.json")[1] == '{"N":1}\n'


def test_rows_partitions_and_tables_are_removed(both):
    both("import", "/Posts", "--quiet", input=numbered(403, partitions=2))
    both("rm", "/Posts/p0/000000.json", "/Posts/p1/000001.json")
    assert both("query", "/Posts", "--count")[1] == "401\n"
    both("rm", "-r", "/Posts/p0")
    assert both("ls", "/Posts")[1] == "p1/\n"
    assert both("query", "/Posts", "--count")[1] == "200\n"
    both("rm", "-r", "/Posts")
    assert both("ls", "/")[1] == ""
    refused(both.there("rm", "", "-r", check=False), "remove its tables")


def test_a_removal_in_steps_shows_its_progress_on_a_terminal(rowfs, elsewhere, rest_store):  # noqa: F811
    rowfs("import", rest_store, f"{ACCOUNT}/Posts", "--quiet", input=numbered(300))
    there = elsewhere("fault=busy op=entitygroup count=2")
    seen = on_terminal(rowfs, "rm", there.url, f"{ACCOUNT}/Posts/p0", "-ry", f"--connection-string={there.secret}")
    assert re.search(r"\r[12]00 rows ", seen), seen


def test_rows_are_moved(both):
    both("put", "/Posts/p/r.json", input=ROW)
    row = both("get", "/Posts/p/r.json")
    both("put", "/Posts/q/old.json", input="{}")
    for old, new, count in (("p/r.json", "p/s.json", 2), ("p/s.json", "q/old.json", 1),
                            ("q/old.json", "q/old.json", 1)):
        assert both("mv", f"/Posts/{old}", f"/Posts/{new}") == (0, "", None)
        assert both("get", f"/Posts/{new}") == row
        assert both("query", "/Posts", "--count")[1] == f"{count}\n"
    both("put", "/Other/z/keep.json", input="{}")
    both("mv", "/Posts/q/old.json", "/Other/z")
    assert both("ls", "/Other/z")[1] == "keep.json\nold.json\n"
    assert both("query", "/Posts", "--count")[1] == "0\n"
    refused(both.there("mv", "Other/z", f"{ACCOUNT}/Other/y", check=False), "only rows get another name")


def test_etags_are_conditions(both):
    there = both.there
    first = json.loads(there("put", "Posts/p/r.json", "--json", input='{"N":1}').stdout)
    assert first["path"] == f"{ACCOUNT}/Posts/p/r.json"
    listed = json.loads(there("ls", "Posts/p", "--json").stdout)
    assert (listed["etag"], listed["name"], listed["kind"]) == (first["etag"], "r.json", "row")
    second = json.loads(there("merge", "Posts/p/r.json", f"--if-match={first['etag']}", "--json", input='{"M":1}').stdout)
    refused(there("put", "Posts/p/r.json", f"--if-match={first['etag']}", input="{}", check=False),
            "UpdateConditionNotSatisfied")
    there("put", "Posts/p/r.json", f"--if-match={second['etag']}", input="{}")
    refused(there("rm", "Posts/p/r.json", f"--if-match={second['etag']}", check=False), "UpdateConditionNotSatisfied")
    there("rm", "Posts/p/r.json", "--if-match=*")
    there("put", "Posts/p/r.json", "--if-match=", input="{}")


def without_etags(text):
    result = json.loads(text)
    for op in result.get("operations", []):
        op.pop("etag", None)
    return result


@pytest.fixture
def batch(both, rowfs):
    """A function that applies a change set here and elsewhere, with the same result, and returns what
    elsewhere tells."""
    def run(path, text, code):
        here = rowfs("batch", both.here, f"{ACCOUNT}{path}", input=text, check=False)
        there = both.there("batch", path[1:], input=text, check=False)
        assert (here.returncode, there.returncode) == (code, code), here.stderr + there.stderr
        assert without_etags(here.stdout) == without_etags(there.stdout)
        return json.loads(there.stdout)
    return run


SET = [{"insert": {"RowKey": "2", "L": "5", "L@odata.type": "Edm.Int64"}}, {"merge": {"RowKey": "1", "M": 2}},
       {"upsert": {"RowKey": "3", "S": "'ü"}}, {"upsert_merge": {"RowKey": "4"}}, {"delete": {"RowKey": "5"}}]


def test_a_change_set_is_one_transaction(both, batch):
    both("import", "/Posts", "--quiet", input="".join(
        f'{{"PartitionKey":"p","RowKey":"{k}","N":1}}\n' for k in "15"))
    done = batch("/Posts/p", json.dumps(SET), 0)
    assert done["committed"] is True and [op["status"] for op in done["operations"]] == [201, 204, 204, 204, 204]
    assert both("ls", "/Posts/p")[1].split() == ["1.json", "2.json", "3.json", "4.json"]
    for key in "1234":
        both("get", f"/Posts/p/{key}.json")
    listed = [json.loads(line)["etag"] for line in both.there("ls", "Posts/p", "--json").stdout.splitlines()]
    told = {op["RowKey"]: op.get("etag") for op in done["operations"]}
    assert [told[k] for k in "1234"] == listed and told["5"] is None
    assert batch("/Posts", '[{"replace":{"PartitionKey":"p","RowKey":"4","N":4}}]', 0)["committed"] is True


@pytest.mark.parametrize("index, ops", [
    (1, [{"upsert": {"RowKey": "9"}}, {"insert": {"RowKey": "1"}}]),
    (0, [{"merge": {"RowKey": "none"}}, {"upsert": {"RowKey": "9"}}]), (0, [{"insert": {"RowKey": "1"}}]),
    (1, [{"upsert": {"RowKey": "9"}}, {"delete": {"RowKey": "1"}, "if_match": "W/\"datetime'2020-01-01T00%3A00%3A00Z'\""}]),
    (0, [{"upsert": {"RowKey": "9", "N": 1, "N@odata.type": "Edm.Guid"}}])])
def test_a_change_set_that_is_refused_changes_nothing(both, batch, index, ops):
    both("put", "/Posts/p/1.json", input='{"N":1}\n')
    refusal = batch("/Posts/p", json.dumps(ops), 1)
    assert refusal["committed"] is False and refusal["index"] == index and refusal["line"] == 1
    assert both("ls", "/Posts/p")[1] == "1.json\n" and both("get", "/Posts/p/1.json")[1] == '{"N":1}\n'


def test_a_condition_of_a_change_set_is_the_services(both):
    there = both.there
    etag = json.loads(there("put", "Posts/p/1.json", "--json", input='{"N":1}').stdout)["etag"]
    ops = json.dumps([{"replace": {"RowKey": "1", "N": 2}, "if_match": etag}, {"upsert": {"RowKey": "2"}}])
    there("batch", "Posts/p", input=ops)
    refused(there("batch", "Posts/p", input=ops, check=False), "UpdateConditionNotSatisfied", "line 1")
    assert json.loads(there("get", "Posts/p/1.json").stdout) == {"N": 2}


def test_what_a_change_set_elsewhere_cannot_do(both):
    both("put", "/Posts/p/1.json", input="{}")
    for path, ops, more, texts in (
            ("Posts/p", [{"upsert": {"RowKey": "2"}}], ["--check"], ["only commit a change set"]),
            ("Posts/p", [{"upsert": {"RowKey": "2"}}, {"put_message": {"queue": "jobs", "text": "x"}}], [], ["put_message needs a store"]),
            ("Posts/p", [{"upsert": {"RowKey": str(i)}} for i in range(101)], [], ["InvalidInput"]),
            ("None/p", [{"upsert": {"RowKey": "2"}}], [], ["TableNotFound"]),
            ("", [{"upsert": {"RowKey": "2"}}], [], ["not ACCOUNT/TABLE"])):
        refused(both.there("batch", path, *more, input=json.dumps(ops), check=False), *texts)
    assert both.there("ls", "Posts/p").stdout == "1.json\n"


def test_a_listing_of_partitions_asks_once_for_each(both):
    """And long listings say what the service does not tell."""
    both("import", "/Posts", "--quiet", input=numbered(1200, partitions=30))
    assert len(both("ls", "/Posts")[1].splitlines()) == 30
    assert both("ls", "/Posts/p7")[1].splitlines() == [f"{i:06}.json" for i in range(7, 1200, 30)]
    assert all(line.split()[0] == "-" for line in both.there("ls", "Posts", "-l").stdout.splitlines())


@pytest.mark.parametrize("fault", ["lost", "closed", "busy"])
def test_a_lost_answer_is_no_failure(elsewhere, fault):  # noqa: F811
    for op, command, words in (("insertorreplace", "put", ["Posts/p/new.json"]), ("deleteentity", "rm", ["Posts/p/r.json"]),
                               ("entitygroup", "mv", ["Posts/p/r.json", f"{ACCOUNT}/Posts/p/s.json"]),
                               ("entitygroup", "batch", ["Posts/p"])):
        there = elsewhere(f"fault={fault} op={op} count=1")
        there("merge", "Posts/p/r.json", input='{"N":1}')
        there(command, *words, input={"put": "{}", "batch": json.dumps([{"insert": {"RowKey": k}} for k in "ab"])}.get(command))
        there.server.stop()


def test_names_that_are_digests_are_told(both):
    both("import", "/Posts", "--quiet", input=json.dumps({"PartitionKey": "x" * 300, "RowKey": "r"}))
    name = both("ls", "/Posts")[1].strip()
    assert "%~" in name
    for command in ("ls", "get", "query"):
        refused(both.there(command, f"Posts/{name}", check=False), "digest")
