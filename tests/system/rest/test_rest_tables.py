# SPDX-License-Identifier: MIT
"""Tables over the REST socket: create, get, query, delete, at every metadata level."""

import threading

import pytest

from conftest import OTHER_ACCOUNT, OTHER_KEY
from rest_client import FULL, MINIMAL, NONE, REQUEST_ID, ACCOUNT, fails, ok

LEVELS = {NONE: "nometadata", MINIMAL: "minimalmetadata", FULL: "fullmetadata"}


def element(rest, level, name, single=True):
    """A table as an answer shows it, members in order."""
    have = {}
    if single and level != NONE:
        have["odata.metadata"] = f"{rest.base()}$metadata#Tables/@Element"
    if level == FULL:
        have["odata.type"] = f"{ACCOUNT}.Tables"
        have["odata.id"] = f"{rest.base()}Tables('{name}')"
        have["odata.editLink"] = f"Tables('{name}')"
    have["TableName"] = name
    return have


def same(have, want):
    """Equal, and the members in the same order."""
    assert have == want
    assert list(have) == list(want)


# ---- R1: tables


def test_R1_a_table_is_made_listed_and_removed(rest):
    made = ok(rest.create_table("Blogs"), 201)
    same(made.json, element(rest, MINIMAL, "Blogs"))
    assert made.headers["Location"] == f"{rest.base()}Tables('Blogs')"
    assert made.headers["Cache-Control"] == "no-cache"
    assert made.headers["X-Content-Type-Options"] == "nosniff"
    assert made.headers["Preference-Applied"] is None
    assert made.headers["ETag"] is None
    assert {"TableName": "Blogs"} in ok(rest.tables(), 200).rows
    same(ok(rest.request("GET", "Tables('Blogs')"), 200).json, element(rest, MINIMAL, "Blogs"))
    gone = ok(rest.delete_table("Blogs"), 204)
    assert gone.body == b"" and gone.headers["Content-Length"] == "0"
    assert {"TableName": "Blogs"} not in ok(rest.tables(), 200).rows
    fails(rest.request("GET", "Tables('Blogs')"), 404, "ResourceNotFound")
    fails(rest.delete_table("Blogs"), 404, "ResourceNotFound",
          "The specified resource does not exist.")
    ok(rest.create_table("Blogs"), 201)  # at once: no "is being deleted"
    ok(rest.delete_table("Blogs"), 204)


def test_R1_a_removed_table_takes_its_rows_and_policies(rest, tab):
    ok(rest.insert(tab, {"PartitionKey": "p", "RowKey": "r"}), 201)
    policy = ("<SignedIdentifiers><SignedIdentifier><Id>x</Id></SignedIdentifier>"
              "</SignedIdentifiers>")
    ok(rest.request("PUT", f"{tab}?comp=acl", policy), 204)
    ok(rest.delete_table(tab), 204)
    fails(rest.query(tab), 404, "TableNotFound")
    ok(rest.create_table(tab), 201)
    assert rest.all(tab) == []
    assert b"<Id>" not in ok(rest.request("GET", f"{tab}?comp=acl"), 200).body


@pytest.mark.parametrize("level", LEVELS)
def test_bodies_of_each_level(rest, level):
    headers = {"Accept": level}
    name = f"Lev{LEVELS[level]}"
    made = ok(rest.create_table(name, headers=headers), 201)
    same(made.json, element(rest, level, name))
    kind = f"application/json;odata={LEVELS[level]};streaming=true;charset=utf-8"
    assert made.headers["Content-Type"] == kind
    one = ok(rest.request("GET", f"Tables('{name}')", headers=headers), 200)
    same(one.json, element(rest, level, name))
    assert one.headers["Content-Type"] == kind
    listed = ok(rest.request("GET", f"Tables?$filter=TableName%20eq%20'{name}'",
                             headers=headers), 200)
    want = {"odata.metadata": f"{rest.base()}$metadata#Tables"} if level != NONE else {}
    want["value"] = [element(rest, level, name, single=False)]
    same(listed.json, want)
    same(listed.rows[0], want["value"][0])
    assert listed.headers["Content-Type"] == kind
    ok(rest.delete_table(name), 204)


def test_prefer_decides_about_the_body(rest):
    none = ok(rest.create_table("Pref1", headers={"Prefer": "return-no-content"}), 204)
    where = f"{rest.base()}Tables('Pref1')"
    assert none.body == b"" and none.headers["Content-Length"] == "0"
    assert none.headers["Content-Type"] is None
    assert none.headers["Preference-Applied"] == "return-no-content"
    assert none.headers["Location"] == none.headers["DataServiceId"] == where
    content = ok(rest.create_table("Pref2", headers={"Prefer": "return-content"}), 201)
    assert content.headers["Preference-Applied"] == "return-content"
    assert content.json["TableName"] == "Pref2"
    again = fails(rest.create_table("Pref1", headers={"Prefer": "return-no-content"}),
                  409, "TableAlreadyExists", "The table specified already exists.")
    assert again.headers["Preference-Applied"] == "return-no-content"
    # Before 2013-08-15 there is no Prefer.
    for name in ("Pref1", "Pref2"):
        ok(rest.delete_table(name), 204)


@pytest.mark.parametrize("name", ["tab", "a1b2", "Z" * 63, "CaseKept"])
def test_good_names(rest, name):
    ok(rest.create_table(name), 201)
    ok(rest.delete_table(name), 204)


LENGTH = "The specified resource name length is not within the permissible limits."
CHARACTERS = "The specifed resource name contains invalid characters."
INVALID = "One of the request inputs is not valid."


@pytest.mark.parametrize("name, code, text", [
    ("ab", "OutOfRangeInput", LENGTH),
    ("a", "OutOfRangeInput", LENGTH),
    ("a" * 64, "OutOfRangeInput", LENGTH),
    ("a" * 4000, "OutOfRangeInput", LENGTH),
    ("1abc", "InvalidResourceName", CHARACTERS),
    ("a-bc", "InvalidResourceName", CHARACTERS),
    ("a_bc", "InvalidResourceName", CHARACTERS),
    ("ab c", "InvalidResourceName", CHARACTERS),
    ("a'bc", "InvalidResourceName", CHARACTERS),
    ("äbcd", "InvalidResourceName", CHARACTERS),
    ("$MetricsX", "InvalidResourceName", CHARACTERS),
    ("a\0bc", "InvalidResourceName", CHARACTERS),
    ("abc\n", "InvalidResourceName", CHARACTERS),
    ("tables", "InvalidInput", INVALID),
    ("Tables", "InvalidInput", INVALID),
    ("TABLES", "InvalidInput", INVALID),
])
def test_bad_names_at_creation(rest, name, code, text):
    before = rest.tables().rows
    fails(rest.create_table(name), 400, code, text)
    assert rest.tables().rows == before


@pytest.mark.parametrize("body, code", [
    ("{}", ("PropertiesNeedValue", "InvalidInput")),
    ('{"TableName":null}', ("PropertiesNeedValue", "InvalidInput")),
    ('{"TableName":""}', ("OutOfRangeInput", "PropertiesNeedValue", "InvalidInput",
                          "InvalidResourceName")),
    ('{"TableName":5}', ("InvalidInput", "PropertiesNeedValue")),
    ('{"TableName":["abcd"]}', "InvalidInput"),
    ('{"tablename":"abcd"}', ("PropertiesNeedValue", "InvalidInput")),
    ('"abcd"', "InvalidInput"),
    ("[]", "InvalidInput"),
    ("", "InvalidInput"),
    ("{", "InvalidInput"),
    ('{"TableName":"abcd"', "InvalidInput"),
    ('{"TableName":"abcd"}}', "InvalidInput"),
])
def test_bad_bodies_at_creation(rest, body, code):
    fails(rest.request("POST", "Tables", body), 400, code)
    fails(rest.request("GET", "Tables('abcd')"), 404, "ResourceNotFound")


def test_other_members_are_ignored(rest):
    body = ('{"odata.type":"x.Tables","Other":5,"TableName@odata.type":"Edm.String",'
            '"TableName":"Others","N":null}')
    ok(rest.request("POST", "Tables", body), 201)
    ok(rest.delete_table("Others"), 204)


def test_names_are_equal_without_case_and_keep_theirs(rest):
    ok(rest.create_table("MyTable"), 201)
    fails(rest.create_table("MYTABLE"), 409, "TableAlreadyExists")
    ok(rest.insert("mytable", {"PartitionKey": "p", "RowKey": "r"}), 201)
    assert len(rest.all("MyTABLE")) == 1
    # Listed with the case of its making; echoed with that of the request.
    assert {"TableName": "MyTable"} in rest.tables().rows
    assert rest.query("mYtAbLe").json["odata.metadata"].endswith("$metadata#mYtAbLe")
    ok(rest.request("GET", "Tables('mytable')"), 200)
    ok(rest.delete_table("myTABLE"), 204)
    fails(rest.query("MyTable"), 404, "TableNotFound")


@pytest.mark.parametrize("name", ["nosuch", "a", "a-b", "tables", "1abc", "x" * 64])
def test_deleting_what_is_not_there(rest, name):
    fails(rest.delete_table(name), 404, "ResourceNotFound")


@pytest.mark.parametrize("path", [
    "Tables('{}')", "Tables(%27{}%27)", "Tables( '{}' )"])
def test_spellings_of_one_table(rest, tab, path):
    answer = rest.request("GET", path.format(tab).replace(" ", "%20"))
    if " " in path:
        assert answer.status in (200, 400), answer
    else:
        assert ok(answer, 200).json["TableName"] == tab


def test_the_list_has_other_spellings(rest, tab):
    assert {"TableName": tab} in ok(rest.request("GET", "Tables()"), 200).rows
    ok(rest.request("POST", "Tables()", {"TableName": "Spelt"}), 201)
    ok(rest.request("DELETE", "Tables(%27Spelt%27)"), 204)


# ---- the list: order, filter, pages


@pytest.fixture
def many(serve, rest_store):
    """A client of a server with 25 tables in mixed case."""
    from rest_client import Client
    with Client(serve(rest_store).port) as client:
        client.names = sorted((f"{'Ab'[i % 2]}bc{i:02}" for i in range(25)), key=str.lower)
        for name in reversed(client.names):
            ok(client.create_table(name), 201)
        yield client


def test_the_order_is_without_case(many):
    assert [r["TableName"] for r in many.tables().rows] == many.names
    assert many.tables().token == {}


@pytest.mark.parametrize("top", [1, 7, 24, 25, 26, 1000])
def test_pages_of_tables(many, top):
    found, token, pages = [], {}, 0
    while True:
        page = ok(many.tables(top=top, **token), 200)
        assert len(page.rows) <= top
        found += [r["TableName"] for r in page.rows]
        token, pages = page.token, pages + 1
        assert set(token) <= {"NextTableName"}
        if not token:
            break
        assert len(page.rows) == top
    assert found == many.names
    assert pages == -(-25 // top)


def test_a_page_that_names_a_removed_table_goes_on_after_it(many):
    page = many.tables(top=3)
    ok(many.delete_table(many.names[3]), 204)
    assert [r["TableName"] for r in many.tables(**page.token).rows] == many.names[4:]


@pytest.mark.parametrize("text, want", [
    ("TableName eq 'Abc04'", lambda n: n == "Abc04"),
    ("TableName gt 'Abc04'", None),
    ("TableName ge 'bbc'", None),
    ("TableName eq 'Abc04' or TableName eq 'bbc05'", lambda n: n in ("Abc04", "bbc05")),
    ("TableName ge 'bbc05' and TableName lt 'bbc11'", lambda n: "bbc05" <= n.lower() < "bbc11"),
    ("not (TableName eq 'Abc04')", lambda n: n != "Abc04"),
    ("'Abc04' eq TableName", lambda n: n == "Abc04"),
    ("TableName eq 'nosuch'", lambda n: False),
    ("", lambda n: True),
    ("true", lambda n: True),
    ("false", lambda n: False),
    ("(false or TableName eq 'Abc04') and not false", lambda n: n == "Abc04"),
])
def test_filters_of_tables(many, text, want):
    found = [r["TableName"] for r in ok(many.tables(filter=text), 200).rows]
    if want:
        assert found == [n for n in many.names if want(n)]
    else:  # whether the order of this comparison knows case is not told anywhere
        assert set(found) <= set(many.names) and found == sorted(found, key=str.lower)


@pytest.mark.parametrize("text, status, code", [
    ("aaa bbb ccc", 400, "InvalidInput"),
    ("TableName eq", 400, "InvalidInput"),
    ("TableName eq 'a", 400, "InvalidInput"),
    ("Other eq 'a'", 400, "InvalidInput"),
    ("PartitionKey eq 'a'", 400, "InvalidInput"),
    ("TableName ne null", 400, "InvalidInput"),
    ("true and Other eq 'a'", 400, "InvalidInput"),
    ("TableName eq TableName", 501, "NotImplemented"),
    ("startswith(TableName,'a')", 501, "NotImplemented"),
])
def test_bad_filters_of_tables(rest, text, status, code):
    fails(rest.tables(filter=text), status, code)


@pytest.mark.parametrize("top", ["-1", "x", "1001", "1.5", "99999999999999999999", ""])
def test_bad_tops_of_tables(rest, top):
    answer = rest.request("GET", f"Tables?$top={top}")
    if top == "":
        assert answer.status in (200, 400), answer
    else:
        fails(answer, 400, "InvalidInput", INVALID)


def test_top_0_is_empty(rest, tab):
    assert ok(rest.tables(top=0), 200).rows == []


@pytest.mark.parametrize("token", ["x", "1!4!abc", "1!3!%3D%3D%3D", "%FF", "1!", "!!!", "2!4!YWJj"])
def test_tokens_that_are_not_ours(rest, token):
    fails(rest.request("GET", f"Tables?NextTableName={token}"), 400, "InvalidInput")


def test_accounts_do_not_see_each_other(rest, tab):
    with rest.clone(account=OTHER_ACCOUNT, key=OTHER_KEY) as other:
        assert other.tables().rows == []
        fails(other.query(tab), 404, "TableNotFound")
        made = ok(other.create_table(tab, headers={"Accept": FULL}), 201)
        assert made.json["odata.type"] == f"{OTHER_ACCOUNT}.Tables"
        ok(other.insert(tab, {"PartitionKey": "p", "RowKey": "r"}), 201)
        assert rest.all(tab) == []
        ok(other.delete_table(tab), 204)
    ok(rest.request("GET", f"Tables('{tab}')"), 200)


@pytest.mark.parametrize("method, path", [
    ("PUT", "Tables"), ("MERGE", "Tables"), ("DELETE", "Tables"), ("PATCH", "Tables"),
    ("PUT", "Tables('abcd')"), ("MERGE", "Tables('abcd')"), ("POST", "Tables('abcd')"),
    ("PATCH", "Tables('abcd')")])
def test_methods_that_tables_do_not_have(rest, method, path):
    body = None if method == "DELETE" else {"TableName": "abcd"}
    fails(rest.request(method, path, body), (405, 400),
          ("MethodNotAllowed", "UnsupportedHttpVerb", "InvalidInput", "InvalidHttpVerb"))


def test_one_of_many_creators_wins(rest):
    answers, gate = [], threading.Barrier(8)

    def create():
        with rest.clone() as client:
            gate.wait()
            answers.append(client.create_table("Raced"))

    threads = [threading.Thread(target=create) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert sorted(a.status for a in answers) == [201] + [409] * 7
    assert all(REQUEST_ID.fullmatch(a.headers["x-ms-request-id"]) for a in answers)
    ok(rest.delete_table("Raced"), 204)


def test_tables_and_rows_are_there_after_a_kill(serve, rest_store):
    from rest_client import Client
    server = serve(rest_store)
    client = Client(server.port)
    ok(client.create_table("Kept"), 201)
    ok(client.insert("Kept", {"PartitionKey": "p", "RowKey": "r", "N": 1}), 201)
    etag = client.get("Kept", "p", "r").etag
    server.kill9()
    client.close()
    server.start()
    client = Client(server.port)
    row = ok(client.get("Kept", "p", "r"), 200)
    assert row.json["N"] == 1 and row.etag == etag
    client.close()
