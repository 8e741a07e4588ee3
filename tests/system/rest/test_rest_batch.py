# SPDX-License-Identifier: MIT
"""Entity group transactions over the REST socket: every spelling that clients send, all or
nothing, and the shape of success and failure that their parsers need."""

import json
import re
import threading

import pytest

from rest_client import (FULL, MINIMAL, NONE, batch_body, entity_path, fails, ok,
                         parse_batch, part_fails, says)

NO_CONTENT = {"Prefer": "return-no-content"}
SAME_GROUP = "All commands in a batch must operate on same entity group."
TWICE = ("The batch request contains multiple changes with same row key. An entity can appear "
         "only once in a batch request.")
TOO_MANY = "The batch request operation exceeds the maximum 100 changes per change set."


def insert(tab, rk, pk="p", headers=NO_CONTENT, **row):
    return ("POST", tab, headers, {"PartitionKey": pk, "RowKey": rk, **row})


def change(method, tab, rk, row=None, if_match=None, pk="p", headers=None):
    have = dict(headers or {})
    if if_match is not None:
        have["If-Match"] = if_match
    return (method, entity_path(tab, pk, rk), have, row)


def contents(rest, tab):
    return {r["RowKey"]: {k: v for k, v in r.items() if k not in (
        "PartitionKey", "RowKey", "Timestamp")} for r in rest.query(
            tab, headers={"Accept": NONE}).rows}


# ---- R8


def test_R8_every_kind_of_change_in_one_batch(rest, tab):
    for rk in ("2", "3", "4", "5"):
        ok(rest.insert(tab, {"PartitionKey": "p", "RowKey": rk, "Old": 1}), 201)
    etag = rest.get(tab, "p", "2").etag
    parts = parse_batch(rest.batch([
        insert(tab, "1", A=1),
        change("PUT", tab, "2", {"A": 2}, etag),
        change("PATCH", tab, "3", {"A": 3}, "*"),
        change("DELETE", tab, "4", None, "*"),
        change("PUT", tab, "6", {"A": 6}),
        change("MERGE", tab, "7", {"A": 7}),
        change("POST", tab, "5", {"A": 5}, "*", headers={"X-HTTP-Method": "MERGE"}),
        insert(tab, "8", headers={}, A=8),
    ]))
    assert [p.status for p in parts] == [204] * 7 + [201]
    assert all(p.change_set == 0 for p in parts)
    assert contents(rest, tab) == {
        "1": {"A": 1}, "2": {"A": 2}, "3": {"Old": 1, "A": 3}, "5": {"Old": 1, "A": 5},
        "6": {"A": 6}, "7": {"A": 7}, "8": {"A": 8}}
    for part, rk in zip(parts, "12346758"):
        assert part.headers["X-Content-Type-Options"] == "nosniff"
        assert part.headers["Cache-Control"] == "no-cache"
        if rk == "4":
            assert part.headers["ETag"] is None
        else:
            assert part.etag == rest.get(tab, "p", rk).etag
        if part.status == 204:
            assert part.body == b"" and part.reason == "No Content"
    where = f"{rest.base()}{tab}(PartitionKey='p',RowKey='1')"
    assert parts[0].headers["Location"] == parts[0].headers["DataServiceId"] == where
    assert parts[0].headers["Preference-Applied"] == "return-no-content"
    assert parts[0].headers["DataServiceVersion"] == "3.0;"
    for part in parts[1:7]:
        assert part.headers["DataServiceVersion"] == "1.0;"
        assert part.headers["Location"] is None
    made = parts[7]
    assert made.headers["Location"] == where.replace("'1'", "'8'")
    assert made.headers["DataServiceId"] is None
    assert made.headers["Content-Type"].startswith("application/json;odata=minimalmetadata")
    assert made.json["A"] == 8 and made.json["odata.etag"] == made.etag


def test_the_answer_is_written_as_parsers_want_it(rest, tab):
    """Byte for byte, with what differs each time taken out."""
    answer = rest.batch([insert(tab, "{r}\""), change("DELETE", tab, "none", None, "*")][:1])
    text = answer.body.decode()
    assert answer.headers["Cache-Control"] == "no-cache"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.status == 202 and answer.reason == "Accepted"
    etag = rest.get(tab, "p", "{r}\"").etag
    b, c = re.findall(r"(?:batchresponse|changesetresponse)_([0-9a-f-]{16,36})", text)[:2]
    where = f"{rest.base()}{tab}(PartitionKey='p',RowKey='%7Br%7D%22')"
    lines = text.split("\r\n")
    assert lines[:8] == [
        f"--batchresponse_{b}",
        f"Content-Type: multipart/mixed; boundary=changesetresponse_{c}", "",
        f"--changesetresponse_{c}", "Content-Type: application/http",
        "Content-Transfer-Encoding: binary", "", "HTTP/1.1 204 No Content"]
    assert {"X-Content-Type-Options: nosniff",
            f"Location: {where}", f"DataServiceId: {where}", f"ETag: {etag}",
            "Preference-Applied: return-no-content", "DataServiceVersion: 3.0;",
            "Cache-Control: no-cache"} <= set(lines)
    assert [line for line in lines if line][-2:] == [
        f"--changesetresponse_{c}--", f"--batchresponse_{b}--"]
    assert "{" not in text and "}" not in text


@pytest.mark.parametrize("how", [
    {"blank": 2}, {"blank": 4}, {"eol": "\n"}, {"eol": "\n", "length": True, "content_ids": True},
    {"final": False}, {"eol": "\n", "final": False}, {"mime_ids": True, "length": True},
    {"content_ids": True}, {"preamble": "This is a multipart message.\r\n"},
    {"preamble": "\r\n\r\n"}, {"target": lambda p: p},
    {"target": lambda p: "/devstoreaccount1/" + p}, {"length": True},
    {"boundary": "a b", "content_type": 'multipart/mixed; boundary="a b"'},
    {"content_type": 'multipart/mixed;charset="utf-8";boundary=batch_0e1f', "eol": "\n"},
    {"content_type": 'multipart/mixed; boundary="batch_0e1f"'},
    {"content_type": "Multipart/Mixed; Boundary=batch_0e1f"},
    {"defaults": False}, {"boundary": "x" * 70},
], ids=",".join)
def test_R8_spellings_of_a_batch(rest, tab, how):
    ops = [insert(tab, "1", A=1), change("PUT", tab, "2", {"B": "é{}--batch_0e1f"}),
           insert(tab, "3", C=True)]
    if how.get("defaults") is False:
        ops = [(m, p, {**h, "Content-Type": "application/json"}, b) for m, p, h, b in ops]
    parts = parse_batch(rest.batch(ops, **how))
    assert [p.status for p in parts] == [204, 204, 204]
    assert contents(rest, tab) == {"1": {"A": 1}, "2": {"B": "é{}--batch_0e1f"}, "3": {"C": True}}
    if how.get("content_ids") or how.get("mime_ids"):
        assert [p.content_id for p in parts] == ["0", "1", "2"]


def test_headers_of_other_clients_in_the_parts(rest, tab):
    """Host, versions, ids, $format in the URL: as .NET sends them."""
    headers = {**NO_CONTENT, "Host": "127.0.0.1", "x-ms-version": "2019-02-02",
               "x-ms-client-request-id": "abc", "MaxDataServiceVersion": "3.0;NetFx",
               "Content-Type": "application/json;odata=minimalmetadata"}
    parts = parse_batch(rest.batch([
        ("POST", f"{tab}()?$format=application%2Fjson%3Bodata%3Dminimalmetadata", headers,
         {"PartitionKey": "p", "RowKey": "1"}),
        ("PUT", entity_path(tab, "p", "2") + "?timeout=10&sv=nonsense&tn=x&sig=wrong",
         headers, {"A": 1})]))
    assert [p.status for p in parts] == [204, 204]


@pytest.mark.parametrize("accept", ["application/atom+xml", "application/atom+xml,application/xml",
                                    "multipart/mixed", "*/*", None])
def test_the_batch_itself_is_outside_negotiation(rest, tab, accept):
    parts = parse_batch(rest.batch([insert(tab, "1")], headers={"Accept": accept}))
    assert [p.status for p in parts] == [204]


@pytest.mark.parametrize("level", [NONE, MINIMAL, FULL])
def test_levels_in_the_parts(rest, tab, level):
    (part,) = parse_batch(rest.batch([insert(tab, "1", headers={"Accept": level}, A=1)]))
    assert part.status == 201 and part.json["A"] == 1
    assert ("odata.etag" in part.json) == (level != NONE)
    assert ("odata.id" in part.json) == (level == FULL)
    assert part.headers["Content-Type"].startswith(level)
    assert b"\n" not in part.body


# ---- failure: one part, with the index, and nothing done


def test_R8_a_failure_undoes_everything(rest, tab):
    ok(rest.insert(tab, {"PartitionKey": "p", "RowKey": "old", "A": 1}), 201)
    etag = rest.get(tab, "p", "old").etag
    cases = [
        (insert(tab, "old"), 409, "EntityAlreadyExists", "The specified entity already exists."),
        (change("PUT", tab, "none", {}, "*"), 404, "ResourceNotFound",
         "The specified resource does not exist."),
        (change("DELETE", tab, "none", None, "*"), 404, "ResourceNotFound",
         "The specified resource does not exist."),
        (change("MERGE", tab, "old", {"A": 3}, "W/\"other\""), 412, "UpdateConditionNotSatisfied",
         "The update condition specified in the request was not satisfied."),
        (change("DELETE", tab, "old", None, "W/\"other\""), 412, "UpdateConditionNotSatisfied",
         "The update condition specified in the request was not satisfied."),
        (insert(tab, "x", pk="q"), 400, "CommandsInBatchActOnDifferentPartitions", SAME_GROUP),
        (insert(tab, "b"), 400, "InvalidDuplicateRow", TWICE),
        (change("DELETE", tab, "b", None, "*"), 400, "InvalidDuplicateRow", TWICE),
        (insert(tab, "x", **{"1a": 1}), 400, "PropertyNameInvalid",
         "The property name is invalid."),
        (insert(tab, "x", V="x" * 32769), 400, "PropertyValueTooLarge", None),
        (insert(tab, "x", **{f"p{i}": 1 for i in range(253)}), 400, "TooManyProperties", None),
        (insert(tab, "a/b"), 400, "OutOfRangeInput", None),
        (("POST", tab, {}, {"PartitionKey": "p"}), 400, "PropertiesNeedValue", None),
        (("POST", tab, {}, "{bad"), 400, "InvalidInput", None),
        (("POST", tab, {}, ""), 400, "InvalidInput", None),
        (change("PUT", tab, "x", {"RowKey": "y"}, "*"), 400, "InvalidInput", None),
    ]
    for op, status, code, text in cases:
        for at in (0, 1, 2):
            ops = [insert(tab, "a"), insert(tab, "b"), insert(tab, "c")]
            if code in ("CommandsInBatchActOnDifferentPartitions", "InvalidDuplicateRow"):
                ops.insert(2, op)
                at = 2
            else:
                ops.insert(at, op)
            answer = rest.batch(ops)
            parts = parse_batch(answer)
            assert len(parts) == 1, answer
            part_fails(parts[0], status, code)
            index, _, said = parts[0].message.partition(":")
            assert index == str(at), parts[0]
            assert text is None or says(said, text), parts[0]
            assert parts[0].headers["Content-Type"].startswith(
                "application/json;odata=minimalmetadata")
            assert parts[0].headers["DataServiceVersion"] == "3.0;"
            assert parts[0].headers["X-Content-Type-Options"] == "nosniff"
            assert parts[0].change_set == 0
            whole = parts[0]._error()[1]
            assert re.search(r"\nRequestId:[0-9a-f-]{36}\nTime:\d{4}-\d\d-\d\dT[\d:]{8}\.\d{7}Z$",
                             whole), whole
            assert contents(rest, tab) == {"old": {"A": 1}}, (op, at)
    assert rest.get(tab, "p", "old").etag == etag


def test_preference_applied_on_failure(rest, tab):
    (part,) = parse_batch(rest.batch([change("DELETE", tab, "none", None, "*"), insert(tab, "a")]))
    assert part.headers["Preference-Applied"] is None
    ok(rest.insert(tab, {"PartitionKey": "p", "RowKey": "a"}), 201)
    (part,) = parse_batch(rest.batch([insert(tab, "a")]))
    assert part.status == 409 and part.headers["Preference-Applied"] == "return-no-content"


def test_a_table_that_is_not_there(rest, tab):
    (part,) = parse_batch(rest.batch([insert("nosuch", "1"), insert("nosuch", "2")]))
    part_fails(part, 404, "TableNotFound", "0:The table specified does not exist.")


def test_two_tables_in_one_batch(rest, tab):
    ok(rest.create_table(tab + "b"), 201)
    (part,) = parse_batch(rest.batch([insert(tab, "1"), insert(tab + "b", "1")]))
    part_fails(part, 400, ("CommandsInBatchActOnDifferentPartitions", "InvalidInput"))
    assert part.message.startswith("1:")
    assert contents(rest, tab) == {} == contents(rest, tab + "b")


def test_one_table_in_two_spellings_is_one(rest, tab):
    parts = parse_batch(rest.batch([insert(tab, "1"), insert(tab.upper(), "2"),
                                    insert(tab.lower(), "3")]))
    assert [p.status for p in parts] == [204] * 3


def test_R8_100_operations_and_no_more(rest, tab):
    parts = parse_batch(rest.batch([insert(tab, f"{i:03}") for i in range(100)]))
    assert [p.status for p in parts] == [204] * 100
    assert len(rest.all(tab)) == 100
    answer = rest.batch([change("DELETE", tab, f"{i:03}", None, "*") for i in range(100)]
                        + [insert(tab, "x")])
    parts = parse_batch(answer)
    assert len(parts) == 1
    part_fails(parts[0], 400, "InvalidInput", (f"99:{TOO_MANY}", f"0:{TOO_MANY}",
                                               f"100:{TOO_MANY}"))
    assert len(rest.all(tab)) == 100


def test_R8_4_mib_and_no_more(rest, tab):
    big = {f"v{i}": "x" * 32000 for i in range(15)}
    ops = [insert(tab, str(i), **big) for i in range(8)]
    size = len(batch_body(rest, ops)[0])
    room = 4 * 1024 * 1024 - size
    assert room > 0
    last = {f"w{i}": "x" * 30000 for i in range(room // 30100)}
    ops.append(insert(tab, "last", **last))
    body, kind = batch_body(rest, ops)
    while len(body) > 4 * 1024 * 1024:
        last.popitem()
        ops[-1] = insert(tab, "last", **last)
        body, kind = batch_body(rest, ops)
    parts = parse_batch(rest.request("POST", "$batch", body, {"content-type": kind}))
    assert [p.status for p in parts] == [204] * 9
    assert len(rest.all(tab)) == 9
    too_large, _ = batch_body(rest, [insert(tab, f"n{i}", **big) for i in range(12)])
    assert len(too_large) > 4 * 1024 * 1024
    with rest.clone() as client:
        try:
            answer = client.request("POST", "$batch", too_large, {"content-type": kind})
        except (BrokenPipeError, ConnectionResetError):
            pass  # refused while it was still being sent: the answer may be lost
        else:
            fails(answer, 413, "RequestBodyTooLarge", "The request body is too large and "
                  "exceeds the maximum permissible limit.")
    assert len(rest.all(tab)) == 9


def test_operations_run_in_their_order_and_are_one_moment(rest, tab):
    """Readers see all of a batch or nothing of it."""
    ok(rest.batch([insert(tab, f"{i:02}", N=0) for i in range(20)]), 202)
    stop, torn = threading.Event(), []

    def read():
        with rest.clone() as client:
            while not stop.is_set():
                seen = {r["N"] for r in client.query(tab, filter="PartitionKey eq 'p'").rows}
                if len(seen) != 1:
                    torn.append(seen)

    reader = threading.Thread(target=read)
    reader.start()
    for n in range(1, 25):
        parts = parse_batch(rest.batch([change("PUT", tab, f"{i:02}", {"N": n}, "*")
                                        for i in range(20)]))
        assert [p.status for p in parts] == [204] * 20
    stop.set()
    reader.join()
    assert not torn


# ---- queries


def test_a_get_in_a_batch(rest, tab):
    ok(rest.insert(tab, {"PartitionKey": "p", "RowKey": "r", "A": 1}), 201)
    for eol in ("\r\n", "\n"):
        (part,) = parse_batch(rest.batch([("GET", entity_path(tab, "p", "r"), {}, None)],
                                         change_set=False, eol=eol))
        assert part.status == 200 and part.json["A"] == 1 and part.change_set is None
        assert part.etag == rest.get(tab, "p", "r").etag
        assert part.headers["Content-Type"].startswith("application/json")
        assert part.headers["DataServiceVersion"] == "3.0;"
    (part,) = parse_batch(rest.batch([("GET", entity_path(tab, "p", "none"), {}, None)],
                                     change_set=False))
    part_fails(part, 404, "ResourceNotFound")
    filter_ = "%20and%20".join(["PartitionKey%20eq%20'p'", "RowKey%20eq%20'r'"])
    (part,) = parse_batch(rest.batch([("GET", f"{tab}()?$filter={filter_}", {}, None)],
                                     change_set=False))
    assert part.status == 200 and b'"A":1' in part.body


def refused(answer, code=("InvalidInput", "InvalidUri", "NotImplemented", "MethodNotAllowed")):
    """400 as a whole, or as the only part."""
    if answer.status == 202:
        parts = parse_batch(answer)
        assert len(parts) == 1 and parts[0].status in (400, 405, 501), answer
        assert parts[0].code in code, answer
        return parts[0]
    fails(answer, (400, 405, 501), code)
    return answer


def test_queries_and_changes_do_not_mix(rest, tab):
    ok(rest.insert(tab, {"PartitionKey": "p", "RowKey": "r", "A": 1}), 201)
    get = ("GET", entity_path(tab, "p", "r"), {}, None)
    part = refused(rest.batch([insert(tab, "1"), get]))
    assert "Bad Request - Error in query syntax." in part.message or part.message
    refused(rest.batch([get, insert(tab, "1")]))
    refused(rest.batch([get, get], change_set=False))
    # A change that stands in no change set.
    answer = rest.batch([insert(tab, "1")], change_set=False)
    if "1" not in contents(rest, tab):
        refused(answer)
    assert set(contents(rest, tab)) <= {"r", "1"}


def test_what_may_not_stand_in_a_batch(rest, tab):
    for op in (("POST", "Tables", {}, {"TableName": "InBatch"}),
               ("DELETE", f"Tables('{tab}')", {}, None), ("POST", "$batch", {}, {}),
               ("GET", "Tables", {}, None), ("PUT", f"{tab}?comp=acl", {}, "<x/>"),
               ("BREW", entity_path(tab, "p", "r"), {}, None),
               ("PUT", tab, {}, {"A": 1}), ("PUT", "?restype=service&comp=properties", {}, "<x/>")):
        refused(rest.batch([op]))
        refused(rest.batch([insert(tab, "x"), op]))
    assert contents(rest, tab) == {}
    fails(rest.request("GET", "Tables('InBatch')"), 404, "ResourceNotFound")


@pytest.mark.parametrize("base", ["http://other.some.domain/", "https://nobody.some.domain:1/",
                                  "/other/", "http://127.0.0.1/other/"])
def test_a_part_of_another_account_is_refused(rest, tab, base):
    """Its host names it as its path does; what names the batch's own account is done."""
    put = change("PUT", tab, "1", {"A": 1})
    ok(rest.batch([put], target=lambda p: "http://proxy.some.domain/devstoreaccount1/" + p), 202)
    assert contents(rest, tab) == {"1": {"A": 1}}
    parts = parse_batch(rest.batch([change("PUT", tab, "1", {"A": 2})],
                                   target=lambda p: base + p))
    part_fails(parts[0], 400, "InvalidInput")
    assert "A request in a batch names another account" in parts[0].message
    assert contents(rest, tab) == {"1": {"A": 1}}


def test_two_change_sets(rest, tab):
    """The first is done, the second is refused; or the whole is."""
    first, _ = batch_body(rest, [insert(tab, "1")], inner="changeset_a", final=False)
    second, kind = batch_body(rest, [insert(tab, "2")], inner="changeset_b")
    assert first.endswith(b"--batch_0e1f\r\n") and second.startswith(b"--batch_0e1f\r\n")
    body = first[:-len(b"--batch_0e1f\r\n")] + second
    answer = rest.request("POST", "$batch", body, {"content-type": kind})
    if answer.status == 202:
        parts = parse_batch(answer)
        assert [p.status for p in parts] in ([204, 400], [400])
        assert set(contents(rest, tab)) == ({"1"} if len(parts) == 2 else set())
    else:
        fails(answer, 400, "InvalidInput")
        assert contents(rest, tab) == {}


def test_empty_batches(rest, tab):
    refused(rest.batch([]))
    for body in (b"", b"--batch_0e1f--\r\n", b"--batch_0e1f\r\n", b"\r\n", b"nonsense"):
        refused(rest.request("POST", "$batch", body,
                             {"content-type": "multipart/mixed; boundary=batch_0e1f"}))


@pytest.mark.parametrize("kind", ["multipart/mixed", "multipart/mixed; boundary=",
                                  "multipart/mixed; boundary=other", "application/json",
                                  "text/plain", "multipart/mixed; boundary=\"batch_0e1f", None,
                                  "multipart/mixed; boundary=" + "x" * 5000])
def test_content_types_that_are_none(rest, tab, kind):
    body, _ = batch_body(rest, [insert(tab, "1")])
    answer = rest.request("POST", "$batch", body, {"content-type": kind})
    assert answer.status in (400, 415, 431, 202), answer
    if answer.status == 202:
        refused(answer)
    assert contents(rest, tab) == {}


def test_every_line_of_a_batch_left_out_in_turn(rest, tab):
    """Whatever is missing: done whole, or refused whole, never a 5xx, and the next batch
    works."""
    ops = [insert(tab, "1", A=1), change("PUT", tab, "2", {"B": 2}), insert(tab, "3", C=3)]
    for eol in ("\r\n", "\n"):
        body, kind = batch_body(rest, ops, eol=eol, content_ids=True, length=True)
        lines = body.decode().split(eol)
        for n in range(len(lines)):
            cut = eol.join(lines[:n] + lines[n + 1:]).encode()
            answer = rest.request("POST", "$batch", cut, {"content-type": kind})
            assert answer.status in (202, 400, 404, 405, 411, 415), (n, lines[n], answer)
            have = contents(rest, tab)
            if answer.status == 202:
                parts = parse_batch(answer)
                assert all(p.status < 500 or p.status == 501 for p in parts), answer
                if any(p.status >= 400 for p in parts):
                    assert have == {}, (n, lines[n], answer)
                else:
                    assert len(have) == len(parts)
            else:
                assert have == {}, (n, lines[n], answer)
            for rk in have:
                ok(rest.delete(tab, "p", rk), 204)
    assert [p.status for p in parse_batch(rest.batch(ops))] == [204] * 3


def test_a_batch_cut_at_each_byte(rest, tab):
    ops = [insert(tab, "1", A=1), change("PUT", tab, "2", {"B": 2})]
    body, kind = batch_body(rest, ops)
    for n in range(len(body)):
        answer = rest.request("POST", "$batch", body[:n], {"content-type": kind})
        assert answer.status in (202, 400, 404, 405, 411), (n, answer)
        have = contents(rest, tab)
        if answer.status == 202:
            parts = parse_batch(answer)
            good = [p for p in parts if p.status < 300]
            assert len(good) == len(parts) == len(have) or not have, (n, answer)
            assert all(p.status < 500 or p.status == 501 for p in parts)
        for rk in have:
            ok(rest.delete(tab, "p", rk), 204)
    assert [p.status for p in parse_batch(rest.batch(ops))] == [204] * 2


@pytest.mark.parametrize("version", ["2009-04-14", "2008-10-27"])
def test_old_versions(rest, tab, version):
    """JSON is newer than they are; whatever is answered, no 5xx and nothing done."""
    answer = rest.batch([insert(tab, "1")], headers={"x-ms-version": version})
    if answer.status == 202:
        assert all(p.status in (400, 415) for p in parse_batch(answer))
    else:
        assert answer.status in (400, 415, 501), answer
    assert contents(rest, tab) == {}


def test_methods_of_the_batch(rest):
    for method in ("GET", "PUT", "DELETE", "MERGE"):
        answer = rest.request(method, "$batch", None if method in ("GET", "DELETE") else b"x")
        assert answer.status in (400, 404, 405), answer


def test_a_wrong_signature_is_no_multipart(rest, tab):
    with rest.clone(key="AAAA" + rest.key[4:]) as client:
        answer = client.batch([insert(tab, "1")])
        fails(answer, 403, "AuthenticationFailed")
    assert contents(rest, tab) == {}


def test_a_body_may_be_any_json(rest, tab):
    """Line ends and spaces inside a part's body are the body's."""
    body = json.dumps({"PartitionKey": "p", "RowKey": "1", "A": "x"}, indent=2)
    for eol in ("\r\n", "\n"):
        (part,) = parse_batch(rest.batch([("POST", tab, NO_CONTENT, body.replace("\n", eol))],
                                         eol=eol))
        assert part.status == 204, part
        ok(rest.delete(tab, "p", "1"), 204)
