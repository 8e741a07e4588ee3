# SPDX-License-Identifier: MIT
"""Rows over the REST socket: every change and its conditions, bodies, types, limits."""

import json
import re
import threading
import urllib.parse

import pytest

from rest_client import (ACCOUNT, FULL, MINIMAL, NONE, Client, entity_path, fails, ok,
                         quote_key, says)

INVALID = "One of the request inputs is not valid."
FAULTY = "An error occurred while processing this request."
NO_TABLE = "The table specified does not exist."
NO_ROW = "The specified resource does not exist."
EXISTS = "The specified entity already exists."
CONDITION = "The update condition specified in the request was not satisfied."
NEED_VALUE = "The values are not specified for all properties in the entity."
ETAG = re.compile(r"W/\"datetime'(\d{4}-\d\d-\d\dT\d\d%3A\d\d%3A\d\d(?:\.\d{0,6}[1-9])?)Z'\"")
ROW = {"PartitionKey": "p", "RowKey": "r"}


def own(row):
    """A row without what the server adds."""
    return {k: v for k, v in row.items()
            if not k.startswith("odata.") and k.split("@")[0] not in
            ("PartitionKey", "RowKey", "Timestamp")}


def stamp(etag):
    """The Timestamp that an ETag is made of."""
    found = ETAG.fullmatch(etag)
    assert found, etag
    return found[1].replace("%3A", ":") + "Z"


# ---- R2: each change, and what is answered


def test_R2_insert_get_replace_merge_delete(rest, tab):
    made = ok(rest.insert(tab, {**ROW, "A": 1, "B": "x"}), 201)
    where = f"{rest.base()}{tab}(PartitionKey='p',RowKey='r')"
    assert made.headers["Location"] == where
    assert own(made.json) == {"A": 1, "B": "x"}
    one = ok(rest.get(tab, "p", "r"), 200)
    assert one.etag == made.etag == one.json["odata.etag"]
    assert one.json["Timestamp"] == stamp(made.etag)

    replaced = ok(rest.replace(tab, "p", "r", {"C": 3}), 204)
    assert own(rest.get(tab, "p", "r").json) == {"C": 3}
    merged = ok(rest.merge(tab, "p", "r", {"D": 4}), 204)
    assert own(rest.get(tab, "p", "r").json) == {"C": 3, "D": 4}
    for answer in (replaced, merged):
        assert answer.body == b"" and answer.headers["Content-Length"] == "0"
        assert answer.headers["Location"] is None and answer.headers["Content-Type"] is None
    assert rest.get(tab, "p", "r").etag == merged.etag

    gone = ok(rest.delete(tab, "p", "r"), 204)
    assert gone.headers["ETag"] is None and gone.headers["Content-Length"] == "0"
    fails(rest.get(tab, "p", "r"), 404, "ResourceNotFound", NO_ROW)


def test_R2_upserts_make_and_change(rest, tab):
    ok(rest.upsert(tab, "p", "a", {"A": 1}), 204)
    ok(rest.upsert(tab, "p", "a", {"B": 2}), 204)
    assert own(rest.get(tab, "p", "a").json) == {"B": 2}
    ok(rest.upsert_merge(tab, "p", "b", {"A": 1}), 204)
    etag = ok(rest.upsert_merge(tab, "p", "b", {"B": 2}), 204).etag
    assert own(rest.get(tab, "p", "b").json) == {"A": 1, "B": 2}
    assert rest.get(tab, "p", "b").etag == etag


@pytest.mark.parametrize("method, headers", [
    ("MERGE", {}), ("PATCH", {}), ("POST", {"X-HTTP-Method": "MERGE"}),
    ("POST", {"X-HTTP-Method": "PATCH"})])
def test_every_spelling_of_merge(rest, tab, method, headers):
    ok(rest.insert(tab, {**ROW, "A": 1, "B": "x"}), 201)
    answer = ok(rest.change(method, tab, "p", "r", {"B": 2.5, "C": True, "A": None}, "*",
                            headers), 204)
    assert own(rest.get(tab, "p", "r").json) == {"A": 1, "B": 2.5, "C": True}
    assert rest.get(tab, "p", "r").etag == answer.etag
    ok(rest.change(method, tab, "p", "new", {"C": 1}, None, headers), 204)
    assert own(rest.get(tab, "p", "new").json) == {"C": 1}


def test_tunnelled_put_and_delete(rest, tab):
    ok(rest.change("POST", tab, "p", "r", {"A": 1}, headers={"X-HTTP-Method": "PUT"}), 204)
    assert own(rest.get(tab, "p", "r").json) == {"A": 1}
    ok(rest.change("POST", tab, "p", "r", None, "*", {"X-HTTP-Method": "DELETE"}), 204)
    fails(rest.get(tab, "p", "r"), 404, "ResourceNotFound")


@pytest.mark.parametrize("method, value, code, text", [
    ("PUT", "MERGE", "XMethodNotUsingPost",
     "The request uses X-HTTP-Method with an HTTP verb other than POST."),
    ("GET", "MERGE", "XMethodNotUsingPost", None),
    ("POST", "BREW", "XMethodIncorrectValue", "The specified X-HTTP-Method is invalid."),
    ("POST", "", "XMethodIncorrectValue", None),
    ("POST", ["MERGE", "MERGE"], "XMethodIncorrectCount",
     "More than one X-HTTP-Method is specified."),
])
def test_wrong_tunnels(rest, tab, method, value, code, text):
    body = None if method == "GET" else {"A": 1}
    fails(rest.change(method, tab, "p", "r", body, "*", {"X-HTTP-Method": value}), 400, code,
          text)
    assert rest.all(tab) == []


@pytest.mark.parametrize("version", ["2009-04-14", "2009-09-19"])
def test_no_upserts_before_2011(rest, tab, version):
    """Such versions speak ATOM only; whichever rule answers, nothing is made."""
    for method in ("PUT", "MERGE"):
        answer = rest.change(method, tab, "p", "r", {"A": 1}, headers={"x-ms-version": version})
        assert answer.status in (400, 415, 501), answer
    assert rest.all(tab) == []


# ---- R3: bodies of each level


def test_R3_members_of_an_entity_by_level(rest, tab):
    sent = {**ROW, "S": "x", "N@odata.type": "Edm.Int64", "N": "5", "I": 7, "T": True,
            "D": 1.5, "W@odata.type": "Edm.DateTime", "W": "2008-07-10T00:00:00Z",
            "G@odata.type": "Edm.Guid", "G": "C9DA6455-213D-42C9-9A79-3E9149A57833",
            "B@odata.type": "Edm.Binary", "B": "AAEC", "X@odata.type": "Edm.Double", "X": "NaN"}
    made = ok(rest.insert(tab, sent), 201)
    out = {**sent, "G": sent["G"].lower()}
    keys = [("PartitionKey", "p"), ("RowKey", "r")]
    own_annotated = [i for i in out.items() if i[0] not in ROW]
    own_plain = [i for i in own_annotated if "@" not in i[0]]
    for single in (True, False):
        for level in (NONE, MINIMAL, FULL):
            if single:
                answer = ok(rest.get(tab, "p", "r", headers={"Accept": level}), 200)
                have = answer.json
                text = answer.body
            else:
                answer = ok(rest.query(tab, headers={"Accept": level}), 200)
                (have,) = answer.rows
                want = {} if level == NONE else {
                    "odata.metadata": f"{rest.base()}$metadata#{tab}"}
                assert answer.json == {**want, "value": [have]}
                assert list(answer.json) == [*want, "value"]
            want = []
            if single and level != NONE:
                want.append(("odata.metadata", f"{rest.base()}$metadata#{tab}/@Element"))
            path = f"{tab}(PartitionKey='p',RowKey='r')"
            if level == FULL:
                want += [("odata.type", f"{ACCOUNT}.{tab}"), ("odata.id", rest.base() + path)]
            if level != NONE:
                want.append(("odata.etag", made.etag))
            if level == FULL:
                want.append(("odata.editLink", path))
            want += keys
            if level == FULL:
                want.append(("Timestamp@odata.type", "Edm.DateTime"))
            want.append(("Timestamp", stamp(made.etag)))
            want += own_plain if level == NONE else own_annotated
            assert list(have.items()) == want, level
            name = {NONE: "nometadata", MINIMAL: "minimalmetadata", FULL: "fullmetadata"}[level]
            assert answer.headers["Content-Type"] == (
                f"application/json;odata={name};streaming=true;charset=utf-8")
            assert answer.headers["Cache-Control"] == "no-cache"
            assert answer.headers["X-Content-Type-Options"] == "nosniff"
            if single:
                assert answer.etag == made.etag and b"\n" not in text.rstrip(b"\n")
    echo = ok(rest.insert(tab, {**sent, "RowKey": "2"}, headers={"Accept": NONE}), 201)
    assert [k for k in echo.json] == ["PartitionKey", "RowKey", "Timestamp",
                                      *(k for k, _ in own_plain)]


def test_prefer_at_insert(rest, tab):
    none = ok(rest.insert(tab, ROW, headers={"Prefer": "return-no-content"}), 204)
    where = f"{rest.base()}{tab}(PartitionKey='p',RowKey='r')"
    assert none.headers["Location"] == none.headers["DataServiceId"] == where
    assert none.headers["Preference-Applied"] == "return-no-content"
    assert none.headers["Content-Length"] == "0" and none.body == b""
    assert none.etag == rest.get(tab, "p", "r").etag
    content = ok(rest.insert(tab, {**ROW, "RowKey": "s"}, headers={"Prefer": "return-content"}),
                 201)
    assert content.headers["Preference-Applied"] == "return-content" and content.json
    again = fails(rest.insert(tab, ROW, headers={"Prefer": "return-no-content"}), 409,
                  "EntityAlreadyExists", EXISTS)
    assert again.headers["Preference-Applied"] == "return-no-content"
    put = ok(rest.upsert(tab, "p", "r", {}, headers={"Prefer": "return-content"}), 204)
    assert put.headers["Preference-Applied"] is None and put.body == b""


def test_what_clients_echo_back_is_ignored(rest, tab):
    """Read, change, write, with every odata member of the fullest form."""
    ok(rest.insert(tab, {**ROW, "A": 1}), 201)
    row = ok(rest.get(tab, "p", "r", headers={"Accept": FULL}), 200).json
    row.update({"A": 2, "Timestamp": "2000-01-01T00:00:00Z",
                "PartitionKey@odata.type": "Edm.String"})
    ok(rest.replace(tab, "p", "r", row), 204)
    have = rest.get(tab, "p", "r").json
    assert own(have) == {"A": 2} and have["Timestamp"] > "2020"
    ok(rest.insert(tab, {**row, "RowKey": "s", "Timestamp": "nonsense"}), 201)


@pytest.mark.parametrize("path", ["{}", "{}()", "{}/", "{}( )"])
def test_where_an_insert_may_go(rest, tab, path):
    answer = rest.request("POST", path.format(tab).replace(" ", "%20"), ROW)
    if path in ("{}", "{}()"):
        ok(answer, 201)
    else:
        assert answer.status in (201, 400, 404, 405), answer


# ---- keys


KEYS = ["plain", "", " ", "a b", "O'Brien", "''", "a+b", "a%20b", "100%", "ü", "日本語", "\U0001f600",
        "\ue000", "a&b=c", "a,b", "(a)", "=", "{x}", '"', "a;b", "@", "$", "!*~", "^`|<>[]",
        ".hidden", "x.json", "%_", "e\u0301", "é", "a:b", "x" * 512, "\U0001f600" * 256]


def test_keys_of_every_kind(rest, tab):
    for key in KEYS:
        made = ok(rest.insert(tab, {"PartitionKey": key, "RowKey": key, "K": key}), 201)
        where = made.headers["Location"]
        assert where.startswith(rest.base()) and "{" not in where and "}" not in where
        assert '"' not in where and " " not in where and where.isascii()
        one = ok(rest.get(tab, key, key), 200)
        assert (one.json["PartitionKey"], one.json["RowKey"], one.json["K"]) == (key, key, key)
        # The Location leads to the row.
        path = "/" + where.split("/", 3)[3]
        assert ok(rest.request("GET", path), 200).etag == made.etag
        ok(rest.merge(tab, key, key, {"M": 1}), 204)
        ok(rest.replace(tab, key, key, {"PartitionKey": key, "RowKey": key}), 204)
        ok(rest.delete(tab, key, key), 204)
        fails(rest.get(tab, key, key), 404, "ResourceNotFound")
    assert rest.all(tab) == []


@pytest.mark.parametrize("form", [
    "{t}(PartitionKey='p',RowKey='r')", "{t}(RowKey='r',PartitionKey='p')",
    "{t}(PartitionKey='p',%20RowKey='r')", "{t}(PartitionKey=%27p%27,RowKey=%27r%27)",
    "{t}(PartitionKey='%70',RowKey='%72')", "%54{u}(PartitionKey='p',RowKey='r')"])
def test_spellings_of_one_row(rest, tab, form):
    ok(rest.insert(tab, ROW), 201)
    ok(rest.request("GET", form.format(t=tab, u=tab[1:])), 200)


@pytest.mark.parametrize("form", [
    "{t}(PartitionKey='p')", "{t}(RowKey='r')", "{t}('p','r')", "{t}(partitionkey='p',rowkey='r')",
    "{t}(PartitionKey='p',RowKey='r'", "{t}(PartitionKey='p',RowKey='r)",
    "{t}(PartitionKey='p',RowKey=r)", "{t}(PartitionKey='p',RowKey='r',X='y')",
    "{t}(PartitionKey='p',PartitionKey='p')", "{t}(PartitionKey='p',RowKey='r')x",
    "{t}(PartitionKey='p'RowKey='r')", "{t}(PartitionKey='O'Brien',RowKey='r')",
    "{t}(,)", "{t}(PartitionKey=,RowKey=)", "{t}(PartitionKey='%ZZ',RowKey='r')",
    "{t}(PartitionKey='%',RowKey='r')", "{t}(PartitionKey='%FF',RowKey='r')",
    "{t}(PartitionKey='%C3',RowKey='r')", "{t}(PartitionKey='%ED%A0%80',RowKey='r')"])
def test_key_syntax_that_is_wrong(rest, tab, form):
    answer = rest.request("GET", form.format(t=tab))
    fails(answer, 400, ("InvalidInput", "InvalidUri", "RequestUrlFailedToParse"))


BAD_CHARACTERS = ["/", "\\", "#", "?", "\0", "\x01", "\t", "\n", "\x1f", "\x7f", "\x80", "\x9f"]


@pytest.mark.parametrize("character", BAD_CHARACTERS, ids=ascii)
@pytest.mark.parametrize("which", ["PartitionKey", "RowKey"])
def test_characters_that_keys_may_not_hold(rest, tab, which, character):
    row = {**ROW, which: f"a{character}b"}
    answer = fails(rest.insert(tab, row), 400, "OutOfRangeInput")
    if character in "/\\#?":
        assert says(answer.message,
                    f"The '{which}' parameter of value 'a{character}b' is out of range.")
    answer = rest.upsert(tab, row["PartitionKey"], row["RowKey"], {})
    fails(answer, 400, ("OutOfRangeInput", "InvalidInput", "InvalidUri"))
    assert rest.all(tab) == []


@pytest.mark.parametrize("which", ["PartitionKey", "RowKey"])
@pytest.mark.parametrize("key", ["x" * 513, "\U0001f600" * 256 + "x", "x" * 2048, "é" * 5000],
                         ids=["513", "513 in pairs", "2048", "5000"])
def test_keys_that_are_too_long(rest, tab, which, key):
    row = {**ROW, which: key}
    codes = ("KeyValueTooLarge", "PropertyValueTooLarge")
    fails(rest.insert(tab, row), 400, codes)
    fails(rest.upsert(tab, row["PartitionKey"], row["RowKey"], {}), 400, codes)
    assert rest.all(tab) == []


@pytest.mark.parametrize("body, code, text", [
    ({"PartitionKey": "p"}, "PropertiesNeedValue", NEED_VALUE),
    ({"RowKey": "r"}, "PropertiesNeedValue", NEED_VALUE),
    ({}, "PropertiesNeedValue", NEED_VALUE),
    ({**ROW, "RowKey": None}, "PropertiesNeedValue", NEED_VALUE),
    ({**ROW, "PartitionKey": None}, "PropertiesNeedValue", NEED_VALUE),
    ({**ROW, "RowKey": 5}, ("InvalidInput", "PropertiesNeedValue"), None),
    ({**ROW, "PartitionKey": True}, ("InvalidInput", "PropertiesNeedValue"), None),
    ({**ROW, "PartitionKey": ["p"]}, ("InvalidInput", "PropertiesNeedValue"), None),
    ({"partitionkey": "p", "rowkey": "r"}, "PropertiesNeedValue", NEED_VALUE),
])
def test_inserts_without_keys(rest, tab, body, code, text):
    fails(rest.insert(tab, body), 400, code, text)
    assert rest.all(tab) == []


@pytest.mark.parametrize("method", ["PUT", "PATCH", "MERGE"])
@pytest.mark.parametrize("if_match", [None, "*"])
@pytest.mark.parametrize("keys", [{"PartitionKey": "q"}, {"RowKey": "s"},
                                  {"PartitionKey": "p", "RowKey": "R"}])
def test_keys_in_a_body_that_are_not_those_of_the_url(rest, tab, method, if_match, keys):
    etag = ok(rest.insert(tab, {**ROW, "A": 1}), 201).etag
    fails(rest.change(method, tab, "p", "r", {**keys, "A": 2}, if_match), 400,
          ("InvalidInput", "PartitionKeyPropertyCannotBeUpdated", "KeyMismatch"))
    assert rest.get(tab, "p", "r").etag == etag
    assert len(rest.all(tab)) == 1


# ---- R4: conditions


def test_R4_conditions(rest, tab):
    first = ok(rest.insert(tab, {**ROW, "A": 1}), 201).etag
    second = ok(rest.replace(tab, "p", "r", {"A": 2}, first), 204).etag
    for method in ("PUT", "MERGE", "PATCH", "DELETE"):
        body = None if method == "DELETE" else {"A": 9}
        fails(rest.change(method, tab, "p", "r", body, first), 412,
              "UpdateConditionNotSatisfied", CONDITION)
        fails(rest.change(method, tab, "p", "r", body, "W/\"something else\""), 412,
              "UpdateConditionNotSatisfied", CONDITION)
        fails(rest.change(method, tab, "p", "none", body, "*"), 404, "ResourceNotFound", NO_ROW)
        fails(rest.change(method, tab, "p", "none", body, first), 404, "ResourceNotFound")
        fails(rest.change(method, "nosuch", "p", "r", body, "*"), 404, "TableNotFound", NO_TABLE)
    assert own(rest.get(tab, "p", "r").json) == {"A": 2}
    third = ok(rest.merge(tab, "p", "r", {"B": 1}, second), 204).etag
    assert first < second < third
    ok(rest.delete(tab, "p", "r", third), 204)


@pytest.mark.parametrize("etag", ["x", "W/", 'W/"', "\"\"x", "W/\"a\", W/\"b\"", "datetime'x'",
                                  "**", "W/'x'"])
@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE"])
def test_etags_that_are_none(rest, tab, method, etag):
    before = ok(rest.insert(tab, ROW), 201).etag
    body = None if method == "DELETE" else {"A": 9}
    answer = fails(rest.change(method, tab, "p", "r", body, etag), 400, "InvalidInput")
    assert answer.message == (
        f"The etag value '{etag}' specified in one of the request headers is not valid. "
        "Please make sure only one etag value is specified and is valid.")
    assert rest.get(tab, "p", "r").etag == before


def test_delete_wants_a_condition(rest, tab):
    ok(rest.insert(tab, ROW), 201)
    fails(rest.delete(tab, "p", "r", None), 400, ("MissingRequiredHeader", "InvalidInput"))
    ok(rest.get(tab, "p", "r"), 200)


@pytest.mark.parametrize("method", ["PUT", "DELETE"])
def test_if_none_match_is_refused(rest, tab, method):
    ok(rest.insert(tab, ROW), 201)
    body = None if method == "DELETE" else {"A": 9}
    answer = rest.change(method, tab, "p", "r", body, headers={"If-None-Match": "*"})
    fails(answer, 400, "InvalidInput",
          f"If-None-Match HTTP header cannot be specified for {method} operations.")
    assert own(rest.get(tab, "p", "r").json) == {}


def test_etags_strictly_increase_and_name_one_state(rest, tab):
    etags = [ok(rest.insert(tab, {**ROW, "N": 0}), 201).etag]
    for n in range(1, 60):
        etags.append(ok(rest.replace(tab, "p", "r", {"N": n}), 204).etag)
    stamps = [stamp(e).rstrip("Z").ljust(27, "0") for e in etags]
    assert stamps == sorted(set(stamps))
    ok(rest.delete(tab, "p", "r"), 204)
    again = ok(rest.insert(tab, {**ROW, "N": 0}), 201).etag
    assert again not in etags


def test_R4_if_match_loses_no_update(rest, tab):
    """Four clients count up one row, each only if nobody was faster."""
    ok(rest.insert(tab, {**ROW, "N": 0}), 201)
    failures = []

    def count():
        try:
            with rest.clone() as client:
                done = 0
                while done < 25:
                    row = ok(client.get(tab, "p", "r"), 200)
                    answer = client.replace(tab, "p", "r", {"N": row.json["N"] + 1}, row.etag)
                    if answer.status == 412:
                        continue
                    ok(answer, 204)
                    done += 1
        except BaseException as e:
            failures.append(e)

    threads = [threading.Thread(target=count) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failures, failures
    assert rest.get(tab, "p", "r").json["N"] == 100


def test_errors_of_rows_that_are_not_there(rest, tab):
    fails(rest.get(tab, "p", "none"), 404, "ResourceNotFound", NO_ROW)
    fails(rest.get("nosuch", "p", "r"), 404, "TableNotFound", NO_TABLE)
    fails(rest.query("nosuch"), 404, "TableNotFound", NO_TABLE)
    fails(rest.insert("nosuch", ROW), 404, "TableNotFound", NO_TABLE)
    fails(rest.upsert("nosuch", "p", "r", {}), 404, "TableNotFound", NO_TABLE)
    fails(rest.delete(tab, "p", "none"), 404, "ResourceNotFound", NO_ROW)
    ok(rest.insert(tab, ROW), 201)
    fails(rest.insert(tab, ROW), 409, "EntityAlreadyExists", EXISTS)
    # The table is looked for before the body is looked at.
    fails(rest.request("POST", "nosuch", "{"), 404, "TableNotFound")


# ---- R5: types


def typed(kind, value):
    return {"V@odata.type": kind, "V": value}


# What is sent, and what comes back at minimal metadata, as JSON text after the Timestamp.
TYPES = [
    ({"V": "x"}, '"V":"x"'),
    (typed("Edm.String", "x"), '"V":"x"'),
    ({"V": ""}, '"V":""'),
    ({"V": 'a"\\/\b\f\n\r\t\u0001é\U0001f600'}, None),
    ({"V": True}, '"V":true'),
    ({"V": False}, '"V":false'),
    (typed("Edm.Boolean", True), '"V":true'),
    (typed("Edm.Boolean", "true"), '"V":true'),
    (typed("Edm.Boolean", "false"), '"V":false'),
    (typed("Edm.Boolean", "TRUE"), '"V":true'),
    (typed("Edm.Boolean", "False"), '"V":false'),
    ({"V": 0}, '"V":0'),
    ({"V": 2147483647}, '"V":2147483647'),
    ({"V": -2147483648}, '"V":-2147483648'),
    (typed("Edm.Int32", "5"), '"V":5'),
    (typed("Edm.Int32", -5), '"V":-5'),
    (typed("Edm.Int64", "5"), '"V@odata.type":"Edm.Int64","V":"5"'),
    (typed("Edm.Int64", 5), '"V@odata.type":"Edm.Int64","V":"5"'),
    (typed("Edm.Int64", "9223372036854775807"),
     '"V@odata.type":"Edm.Int64","V":"9223372036854775807"'),
    (typed("Edm.Int64", "-9223372036854775808"),
     '"V@odata.type":"Edm.Int64","V":"-9223372036854775808"'),
    ({"V": 1.5}, '"V":1.5'),
    (typed("Edm.Double", 3), '"V":3.0'),
    (typed("Edm.Double", "3"), '"V":3.0'),
    (typed("Edm.Double", "1.5"), '"V":1.5'),
    (typed("Edm.Double", "1e3"), '"V":1000.0'),
    (typed("Edm.Double", "NaN"), '"V@odata.type":"Edm.Double","V":"NaN"'),
    (typed("Edm.Double", "Infinity"), '"V@odata.type":"Edm.Double","V":"Infinity"'),
    (typed("Edm.Double", "-Infinity"), '"V@odata.type":"Edm.Double","V":"-Infinity"'),
    ({"V": 0.1}, '"V":0.1'),
    ({"V": 1.7976931348623157e308}, '"V":1.7976931348623157E+308'),
    ({"V": 5e-324}, '"V":5E-324'),
    ({"V": 1.5e24}, '"V":1.5E+24'),
    (typed("Edm.DateTime", "2008-07-10T00:00:00Z"),
     '"V@odata.type":"Edm.DateTime","V":"2008-07-10T00:00:00Z"'),
    (typed("Edm.DateTime", "2008-07-10T01:02:03.1234567Z"),
     '"V@odata.type":"Edm.DateTime","V":"2008-07-10T01:02:03.1234567Z"'),
    (typed("Edm.DateTime", "2008-07-10T01:02:03.120Z"),
     '"V@odata.type":"Edm.DateTime","V":"2008-07-10T01:02:03.12Z"'),
    (typed("Edm.DateTime", "2008-07-10T01:02:03"),
     '"V@odata.type":"Edm.DateTime","V":"2008-07-10T01:02:03Z"'),
    (typed("Edm.DateTime", "2008-07-10T01:02:03+01:30"),
     '"V@odata.type":"Edm.DateTime","V":"2008-07-09T23:32:03Z"'),
    (typed("Edm.DateTime", "1601-01-01T00:00:00Z"),
     '"V@odata.type":"Edm.DateTime","V":"1601-01-01T00:00:00Z"'),
    (typed("Edm.DateTime", "9999-12-31T23:59:59.9999999Z"),
     '"V@odata.type":"Edm.DateTime","V":"9999-12-31T23:59:59.9999999Z"'),
    (typed("Edm.Guid", "C9DA6455-213D-42c9-9A79-3E9149A57833"),
     '"V@odata.type":"Edm.Guid","V":"c9da6455-213d-42c9-9a79-3e9149a57833"'),
    (typed("Edm.Binary", ""), '"V@odata.type":"Edm.Binary","V":""'),
    (typed("Edm.Binary", "AAEC/w=="), '"V@odata.type":"Edm.Binary","V":"AAEC/w=="'),
    ({"V": None}, ""),
]


@pytest.mark.parametrize("sent, want", TYPES, ids=lambda v: None)
def test_R5_types_in_and_out(rest, tab, sent, want):
    ok(rest.insert(tab, {**ROW, **sent}), 201)
    answer = ok(rest.get(tab, "p", "r"), 200)
    if want is None:
        assert answer.json["V"] == sent["V"]
    else:
        tail = answer.body.decode().split('"Timestamp":', 1)[1].split(",", 1)
        assert (tail[1].rstrip("\n}") if len(tail) > 1 else "") == want.rstrip("}")
    # The annotation may follow its property.
    ok(rest.replace(tab, "p", "r", dict(reversed(list(sent.items())))), 204)
    assert own(rest.get(tab, "p", "r").json) == own(answer.json)
    # What was read can be written back.
    ok(rest.replace(tab, "p", "r", answer.json), 204)
    assert own(rest.get(tab, "p", "r").json) == own(answer.json)


def test_numbers_without_annotation(rest, tab):
    """Past Int32 it is a number anyway: a Double for SDKs, an Int64 in rowfs's own files."""
    ok(rest.request("POST", tab, '{"PartitionKey":"p","RowKey":"r","A":3.0,"B":1E2,"C":-0.0,'
                                 '"D":2147483648,"E":1.0E+2}'), 201)
    text = rest.get(tab, "p", "r").body.decode()
    assert '"A":3.0' in text and '"B":100.0' in text and '"E":100.0' in text
    assert '"C":0.0' in text or '"C":-0.0' in text
    assert '"D":2147483648.0' in text or '"D@odata.type":"Edm.Int64","D":"2147483648"' in text


@pytest.mark.parametrize("sent", [
    typed("Edm.Int32", "x"), typed("Edm.Int32", 2147483648), typed("Edm.Int32", "1.5"),
    typed("Edm.Int32", True), typed("Edm.Int32", ""),
    typed("Edm.Int64", "9223372036854775808"), typed("Edm.Int64", "x"), typed("Edm.Int64", 1.5),
    typed("Edm.Double", "x"), typed("Edm.Double", ""), typed("Edm.Double", True),
    typed("Edm.Boolean", "yes"), typed("Edm.Boolean", 2), typed("Edm.Boolean", "TRUE "),
    typed("Edm.DateTime", "yesterday"), typed("Edm.DateTime", "2008-13-10T00:00:00Z"),
    typed("Edm.DateTime", "2008-02-30T00:00:00Z"), typed("Edm.DateTime", 5),
    typed("Edm.Guid", "c9da6455"), typed("Edm.Guid", "c9da6455-213d-42c9-9a79-3e9149a5783g"),
    typed("Edm.Binary", "A"), typed("Edm.Binary", "====") , typed("Edm.Binary", "A*=="),
    typed("Edm.Binary", 5), typed("Edm.String", 5), typed("Edm.Nothing", "x"), typed("String", "x"),
    typed("", "x"), {"V@odata.type": 5, "V": "x"}, {"V": {"a": 1}}, {"V": [1]}, {"V": []},
], ids=json.dumps)
def test_values_that_are_not_of_their_type(rest, tab, sent):
    for answer in (rest.insert(tab, {**ROW, **sent}), rest.upsert(tab, "p", "r", sent),
                   rest.upsert_merge(tab, "p", "r", sent)):
        fails(answer, 400, ("InvalidInput", "InvalidValueType", "PropertyNameInvalid"))
        assert answer.message in (FAULTY, INVALID, "The value specified is invalid.") or (
            answer.code == "InvalidInput"), answer
    assert rest.all(tab) == []


@pytest.mark.parametrize("value", ["1600-12-31T23:59:59Z", "0001-01-01T00:00:00Z",
                                   "1601-01-01T00:00:00+00:01"])
def test_times_that_are_out_of_range(rest, tab, value):
    answer = fails(rest.insert(tab, {**ROW, **typed("Edm.DateTime", value)}), 400,
                   "OutOfRangeInput")
    assert answer.message.startswith("The 'V' parameter of value '"), answer
    assert "' is out of range." in answer.message, answer
    if value.startswith("0001"):
        assert "'01/01/0001 00:00:00'" in answer.message


# ---- R6: limits, from both sides


def test_R6_the_number_of_properties(rest, tab):
    row = {f"p{i}": i for i in range(252)}
    ok(rest.insert(tab, {**ROW, **row}), 201)
    ok(rest.merge(tab, "p", "r", {"p0": 5}), 204)
    many = ("The entity contains more properties than allowed. Each entity can include up to "
            "252 properties to store data. Each entity also has 3 system properties.")
    before = rest.get(tab, "p", "r").body
    fails(rest.merge(tab, "p", "r", {"p252": 5}), 400, "TooManyProperties", many)
    fails(rest.replace(tab, "p", "r", {**row, "p252": 1}), 400, "TooManyProperties", many)
    fails(rest.insert(tab, {**ROW, "RowKey": "s", **row, "p252": 1}), 400, "TooManyProperties",
          many)
    assert rest.get(tab, "p", "r").body == before
    # Nulls are no properties.
    ok(rest.insert(tab, {**ROW, "RowKey": "t", **row, "p252": None}), 201)


TOO_LARGE = ("The property value exceeds the maximum allowed size (64KB). If the property value "
             "is a string, it is UTF-16 encoded and the maximum number of characters should be "
             "32K or less.")


@pytest.mark.parametrize("good, bad", [
    ({"V": "x" * 32768}, {"V": "x" * 32769}),
    ({"V": "é" * 32768}, {"V": "é" * 32769}),
    ({"V": "\U0001f600" * 16384}, {"V": "\U0001f600" * 16384 + "x"}),
    (typed("Edm.Binary", "AAAA" * 21845 + "AA=="), typed("Edm.Binary", "AAAA" * 21845 + "AAA=")),
], ids=["ascii", "two bytes", "pairs", "binary"])
def test_R6_the_size_of_a_value(rest, tab, good, bad):
    ok(rest.insert(tab, {**ROW, **good}), 201)
    assert rest.get(tab, "p", "r").json["V"] == good["V"]
    fails(rest.replace(tab, "p", "r", bad), 400, "PropertyValueTooLarge", TOO_LARGE)
    fails(rest.insert(tab, {**ROW, "RowKey": "s", **bad}), 400, "PropertyValueTooLarge",
          TOO_LARGE)


@pytest.mark.parametrize("name, code", [
    ("a", None), ("_", None), ("_a1", None), ("é", None), ("日本", None), ("A" * 255, None),
    ("a" * 256, "PropertyNameTooLong"), ("é" * 256, "PropertyNameTooLong"),
    ("1a", "PropertyNameInvalid"), ("a-b", "PropertyNameInvalid"), ("a b", "PropertyNameInvalid"),
    ("", "PropertyNameInvalid"), ("a$", "PropertyNameInvalid"), ("a\0", "PropertyNameInvalid"),
    ("\u0301a", "PropertyNameInvalid"), ("a/b", "PropertyNameInvalid"),
], ids=lambda v: ascii(v)[:20])
def test_R6_names_of_properties(rest, tab, name, code):
    answer = rest.insert(tab, {**ROW, name: 1})
    if code is None:
        ok(answer, 201)
        assert own(rest.get(tab, "p", "r").json) == {name: 1}
    else:
        text = ("The property name is invalid." if code == "PropertyNameInvalid" else
                "The property name exceeds the maximum allowed length (255).")
        fails(answer, 400, code, text)


def test_names_differ_by_case(rest, tab):
    ok(rest.insert(tab, {**ROW, "a": 1, "A": 2, "partitionkey": "x", "timestamp": "y"}), 201)
    assert own(rest.get(tab, "p", "r").json) == {"a": 1, "A": 2, "partitionkey": "x",
                                                 "timestamp": "y"}


@pytest.mark.parametrize("body", [
    '{"PartitionKey":"p","RowKey":"r","A":1,"A":2}',
    '{"PartitionKey":"p","RowKey":"r","A":1,"A":null}',
    '{"PartitionKey":"p","PartitionKey":"p","RowKey":"r"}',
    '{"PartitionKey":"p","RowKey":"r","A":"1","A@odata.type":"Edm.Int64",'
    '"A@odata.type":"Edm.Int64"}',
    '{"PartitionKey":"p","RowKey":"r","A":1,"\\u0041":2}'])
def test_R6_no_property_twice(rest, tab, body):
    fails(rest.request("POST", tab, body), 400, ("DuplicatePropertiesSpecified", "InvalidInput"))
    assert rest.all(tab) == []


def entity_of(size, pk="p", rk="r"):
    """Properties that make an entity of exactly this (even) size by the service's formula."""
    size -= 4 + 2 * (len(pk) + len(rk))
    row = {}
    while size > 0:
        take = size if size <= 60000 else min(60000, size - 1000)
        name = f"v{len(row):03}"
        row[name] = "x" * ((take - 8 - 2 * len(name) - 4) // 2)
        size -= take
    return row


def test_R6_the_size_of_an_entity(rest, tab):
    row = entity_of(1 << 20)
    ok(rest.insert(tab, {**ROW, **row}), 201)
    assert own(rest.get(tab, "p", "r").json) == row
    text = "The entity is larger than the maximum allowed size (1MB)."
    more = {**row, "v001": row["v001"] + "x"}
    fails(rest.replace(tab, "p", "r", more), 400, "EntityTooLarge", text)
    fails(rest.insert(tab, {**ROW, "RowKey": "s", **more}), 400, "EntityTooLarge", text)
    # A merge counts what is there already.
    fails(rest.merge(tab, "p", "r", {"z": 1}), 400, "EntityTooLarge", text)
    assert own(rest.get(tab, "p", "r").json) == row


def test_R6_the_size_of_a_body(rest, tab):
    start = '{"PartitionKey":"p","RowKey":"r"'
    body = start + " " * (4 * 1024 * 1024 - len(start) - 1) + "}"
    answer = rest.request("POST", tab, body)
    assert answer.status in (201, 413), answer
    rest.close()
    for extra in (1024 * 1024, 8 * 1024 * 1024):
        with rest.clone() as client:
            try:
                answer = client.request("POST", tab, body[:-1] + " " * extra + "}")
            except (BrokenPipeError, ConnectionResetError):
                continue  # refused while it was still being sent: the answer may be lost
            fails(answer, 413, "RequestBodyTooLarge",
                  "The request body is too large and exceeds the maximum permissible limit.")
    ok(rest.query(tab), 200)


# ---- $select of one row


def test_select_of_one_row(rest, tab):
    ok(rest.insert(tab, {**ROW, "A": 1, "B": "x", "N@odata.type": "Edm.Int64", "N": "5"}), 201)
    have = ok(rest.get(tab, "p", "r", select="A,Missing,N"), 200)
    assert own(have.json) == {"A": 1, "Missing": None, "N@odata.type": "Edm.Int64", "N": "5"}
    assert "PartitionKey" not in have.json and "Timestamp" not in have.json
    assert have.json["odata.etag"] == have.etag
    have = ok(rest.get(tab, "p", "r", select="RowKey, A ,A", headers={"Accept": NONE}), 200)
    assert have.json == {"RowKey": "r", "A": 1}
    have = ok(rest.get(tab, "p", "r", select="*"), 200)
    assert own(have.json) == {"A": 1, "B": "x", "N@odata.type": "Edm.Int64", "N": "5"}
    assert have.json["PartitionKey"] == "p" and "Timestamp" in have.json


def test_the_wire_form_of_the_keys_is_signed(rest, tab):
    """What is percent-encoded otherwise than usual is signed as it was sent."""
    ok(rest.insert(tab, {"PartitionKey": "a b", "RowKey": "c'd"}), 201)
    for path in (f"{tab}(PartitionKey='a%20b',RowKey='c%27%27d')",
                 f"{tab}%28PartitionKey%3D%27a%20b%27%2CRowKey%3D%27c%27%27d%27%29",
                 f"{tab}(PartitionKey='%61 b',RowKey='c''d')".replace(" ", "%20")):
        for scheme in ("lite", "full"):
            ok(rest.request("GET", path, sign=scheme), 200)
    # A plus in a path is a plus.
    fails(rest.request("GET", f"{tab}(PartitionKey='a+b',RowKey='c%27%27d')"), 404,
          "ResourceNotFound")


def test_head_is_get_without_body(rest, tab):
    made = ok(rest.insert(tab, ROW), 201)
    head = rest.request("HEAD", entity_path(tab, "p", "r"))
    assert head.status in (200, 405) and head.body == b""
    if head.status == 200:
        assert head.etag == made.etag
    head = rest.request("HEAD", entity_path(tab, "p", "none"))
    assert head.status in (404, 405) and head.body == b""
    ok(rest.get(tab, "p", "r"), 200)


@pytest.mark.parametrize("quote", [urllib.parse.quote, quote_key, lambda k: "".join(
    f"%{b:02x}" for b in k.encode())])
def test_any_way_to_percent_encode(rest, tab, quote):
    ok(rest.insert(tab, {"PartitionKey": "ü~!", "RowKey": "ß"}), 201)
    ok(rest.request("GET", f"{tab}(PartitionKey='{quote('ü~!')}',RowKey='{quote('ß')}')"), 200)


def test_many_clients_at_once(rest, tab):
    """Each has its own rows; all are there in the end."""
    failures = []

    def work(k):
        try:
            with Client(rest.port) as client:
                for i in range(40):
                    ok(client.insert(tab, {"PartitionKey": f"p{k}", "RowKey": f"{i:03}", "N": i}),
                       201)
                    assert client.get(tab, f"p{k}", f"{i:03}").json["N"] == i
        except BaseException as e:
            failures.append(e)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(12)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failures, failures
    rows = [(r["PartitionKey"], r["RowKey"]) for r in rest.all(tab)]
    assert rows == sorted((f"p{k}", f"{i:03}") for k in range(12) for i in range(40))
