# SPDX-License-Identifier: MIT
"""Rules by version: each row of the table in src/model/versions.h (docs/rest.md has it too) is
asked for on both sides of its first version, and of its end if it has one."""

import contextlib
import datetime
import re

import pytest

import blob_client
import queue_client
import rest_client
from conftest import TOP
from rest_client import ACCOUNT, KEY, entity_path, fails, iso, ok, sign

ATOM = "application/atom+xml"
BOTH = f"application/json, {ATOM}"
OLDEST, NEWEST = "2009-04-14", "2026-06-06"
ORIGIN = "http://example.org"
FORMAT = "The value for one of the HTTP headers is not in the correct format."
ENTRY = ('<entry xmlns="http://www.w3.org/2005/Atom" '
         'xmlns:m="http://schemas.microsoft.com/ado/2007/08/dataservices/metadata" '
         'xmlns:d="http://schemas.microsoft.com/ado/2007/08/dataservices">'
         '<content type="application/xml"><m:properties>{}</m:properties></content></entry>')


def date(digits):
    return None if digits == "0" else datetime.date(int(digits[:4]), int(digits[4:6]),
                                                    int(digits[6:]))


RULES = {name: (date(since), date(until)) for name, since, until in re.findall(
    r"^\tX\((\w+), (\d{8}), (\d+),", (TOP / "src/model/versions.h").read_text(), re.M)}


# Of user delegation SAS, which need TLS: test_tokens.py asks about these (OA12, OA15).
DELEGATED = {"DELEGATION", "SAS_AGENTS", "SAS_USERS", "SAS_REQUEST"}


def cases():
    """(rule, version, whether it holds there)"""
    day = datetime.timedelta(days=1)
    for name, (since, until) in RULES.items():
        if name in DELEGATED:
            continue
        if str(since) > OLDEST:
            yield name, str(since - day), False
            yield name, OLDEST, False
        yield name, str(since), True
        yield name, str(until - day) if until else NEWEST, True
        if until:
            yield name, str(until), False
            yield name, NEWEST, False


def row(pk="p", rk="r", **more):
    """(body, Content-Type) of an entry whose properties are strings."""
    more = {"PartitionKey": pk, "RowKey": rk, **more}
    return ENTRY.format("".join(f"<d:{n}>{v}</d:{n}>" for n, v in more.items())), ATOM


def body_for(version, *args, **more):
    """The same in a format that the version speaks."""
    if version >= "2013-08-15":
        more.update(zip(("PartitionKey", "RowKey"), args or ("p", "r")))
        return more, "application/json"
    return row(*args, **more)


def send(client, method, path, version, body=None, **headers):
    headers = {"x-ms-version": version, "Accept": BOTH,
               **{n.replace("_", "-"): v for n, v in headers.items()}}
    if isinstance(body, tuple):
        body, headers["Content-Type"] = body
    return client.request(method, path, body, headers)


# ---- one question for each rule: whether it holds in this version


def batch_is_served(rest, tab, version):
    text = rest_client.batch_body(rest, [
        ("DELETE", entity_path(tab, "p", "r"), {"If-Match": "*"}, None)])
    answer = send(rest, "POST", "$batch", version, text)
    ok(answer, 202)
    return rest_client.parse_batch(answer)[0].status == 404


def atom_is_spoken(rest, tab, version):
    said = [send(rest, "GET", f"{tab}()", version, Accept=a) for a in (ATOM, "*/*", None)]
    said += [send(rest, "POST", tab, version, row("p", str(n)), Accept=a)
             for n, a in enumerate((ATOM, "*/*", None))]
    spoken = said[0].status == 200
    for answer in said[1:3]:
        assert (ATOM in ok(answer, 200).headers["Content-Type"]) == spoken
    for answer in said[3:]:
        if spoken:
            assert ATOM in ok(answer, 201).headers["Content-Type"]
        else:
            fails(answer, 415, "AtomFormatNotSupported")
    if not spoken:
        fails(said[0], 415, "AtomFormatNotSupported")
    return spoken


def version_is_echoed(rest, tab, version):
    said = [send(rest, "GET", f"{tab}()", version), send(rest, "GET", "nosuch()", version),
            send(rest, "POST", tab, version, body_for(version))]
    echoes = {a.headers["x-ms-version"] for a in said}
    assert echoes in ({version}, {None}), echoes
    return echoes == {version}


def is_there(answer):
    if answer.status == 501:
        fails(answer, 501, "NotImplemented")
    else:
        ok(answer, 200)
    return answer.status == 200


def properties_are_there(rest, _, version):
    return is_there(send(rest, "GET", "?restype=service&comp=properties", version))


def stats_are_there(rest, _, version):
    return is_there(send(rest, "GET", "?restype=service&comp=stats", version))


def policies_are_there(rest, tab, version):
    got = is_there(send(rest, "GET", f"{tab}?comp=acl", version))
    put = send(rest, "PUT", f"{tab}?comp=acl", version, ("<SignedIdentifiers/>",
                                                         "application/xml"))
    assert put.status == (204 if got else 501), put
    return got


def upserts_are_served(rest, tab, version):
    said = [send(rest, method, entity_path(tab, "p", "r"), version, body_for(version, S="x"))
            for method in ("PUT", "MERGE", "PATCH")]
    if said[0].status != 204:
        for answer in said:
            fails(answer, 400, "MissingRequiredHeader")
        assert rest.all(tab) == []
        return False
    for answer in said:
        ok(answer, 204)
    return True


def select_is_read(rest, tab, version):
    ok(rest.insert(tab, {"PartitionKey": "p", "RowKey": "r", "A": "is", "B": "hidden"}), 201)
    said = [ok(send(rest, "GET", f"{path}?$select=A", version), 200).body
            for path in (f"{tab}()", entity_path(tab, "p", "r"))]
    hidden = {b"hidden" not in body for body in said}
    assert len(hidden) == 1
    return hidden.pop()


def json_is_spoken(rest, tab, version):
    json = "application/json"
    said = [send(rest, "GET", f"{tab}()", version, Accept=json),
            send(rest, "POST", tab, version, ({"PartitionKey": "p", "RowKey": "r"}, json),
                 Accept=json)]
    spoken = said[0].status == 200
    for answer in said:
        if spoken:
            assert json in ok(answer).headers["Content-Type"]
        else:
            fails(answer, 415, "JsonFormatNotSupported")
    return spoken


def prefer_is_read(rest, tab, version):
    said = send(rest, "POST", tab, version, body_for(version), Prefer="return-no-content")
    assert (ok(said, 201, 204).headers["Preference-Applied"] is not None) == (said.status == 204)
    return said.status == 204


@contextlib.contextmanager
def cors_rule(rest):
    path = "?restype=service&comp=properties"
    cors = ("<CorsRule><AllowedOrigins>*</AllowedOrigins><AllowedMethods>GET</AllowedMethods>"
            "<MaxAgeInSeconds>5</MaxAgeInSeconds><ExposedHeaders/><AllowedHeaders>*"
            "</AllowedHeaders></CorsRule>")
    for rule in (cors, ""):
        ok(send(rest, "PUT", path, NEWEST, (
            f"<StorageServiceProperties><Cors>{rule}</Cors></StorageServiceProperties>",
            "application/xml")), 202)
        if rule:
            yield


def cors_is_there(rest, tab, version):
    with cors_rule(rest):
        got = send(rest, "GET", f"{tab}()", version, Origin=ORIGIN)
        asked = rest.request("OPTIONS", tab, None, {
            "x-ms-version": version, "Origin": ORIGIN, "Access-Control-Request-Method": "GET"},
            sign=None)
    allowed = ok(got, 200).headers["Access-Control-Allow-Origin"] == "*"
    if not allowed:
        fails(asked, 403, "CorsPreflightFailure")
        assert not [n for n in got.headers if n.lower().startswith("access-control-")]
    assert asked.status == (200 if allowed else 403)
    return allowed


def metrics_are_two(rest, _, version):
    with cors_rule(rest):
        answer = send(rest, "GET", "?restype=service&comp=properties", version)
    names = set(re.findall(r"<(Hour|Minute)?(Metrics|CorsRule)>", answer.body.decode()))
    if answer.status == 501 or names == {("", "Metrics")}:
        return False
    assert names == {("Hour", "Metrics"), ("Minute", "Metrics"), ("", "CorsRule")}
    return True


def accepted(rest, version, query, path):
    with rest.clone(sas=query) as client:
        answer = send(client, "GET", path, version)
    if answer.status != 200:
        fails(answer, 403, "AuthenticationFailed")
    return answer.status == 200


def table_sas_is_good(rest, tab, version):
    return accepted(rest, version, rest_client.table_sas(ACCOUNT, KEY, tab, sv=version),
                    f"{tab}()")


def account_sas_is_good(rest, _, version):
    return accepted(rest, version, rest_client.account_sas(ACCOUNT, KEY, sv=version), "Tables")


def sas_prefix_is_signed(rest, tab, version):
    """Either with it or without; nothing where there are no tokens."""
    found = []
    for prefix in ("", "/table"):
        lines = ["r", "", (end := iso(3600)), f"{prefix}/{ACCOUNT}/{tab.lower()}", ""]
        lines += ["", ""] if version >= "2015-04-05" else []
        lines += [version, "", "", "", ""]
        query = rest_client.encode_fields({"sv": version, "tn": tab, "sp": "r", "se": end,
                                           "sig": sign(KEY, "\n".join(lines))})
        found.append(accepted(rest, version, query, f"{tab}()"))
    assert found.count(True) == (1 if version >= "2012-02-12" else 0)
    return found[1]


def sas_limits_are_signed(rest, tab, version):
    query = rest_client.table_sas(ACCOUNT, KEY, tab, sv=version, sip="127.0.0.1",
                                  spr="https,http")
    return accepted(rest, version, query, f"{tab}()")


def sas_codes_are_there(rest, tab, version):
    with rest.clone(sas=rest_client.table_sas(ACCOUNT, KEY, tab, sv=version, sp="a")) as client:
        answer = send(client, "GET", f"{tab}()", version)
    if version < "2012-02-12":
        fails(answer, 403, "AuthenticationFailed")
        return False
    if answer.status == 404:
        fails(answer, 404, "ResourceNotFound")
        return False
    fails(answer, 403, "AuthorizationPermissionMismatch")
    return True


def tokens_are_challenged(rest, _, version):
    answer = send(rest, "GET", "Tables", version, authorization="Bearer a.b.c")
    if answer.status == 403:
        fails(answer, 403, "AuthenticationFailed")
        return False
    fails(answer, 401, "InvalidAuthenticationInfo")
    return True


def sas_encryption_is_signed(rest, _, version):
    return accepted(rest, version, rest_client.account_sas(ACCOUNT, KEY, sv=version, ses="x"),
                    "Tables")


# ---- blobs and queues, by the host of the same socket


@contextlib.contextmanager
def a_container(rest):
    client = blob_client.Blobs(rest.port, host=f"{ACCOUNT}.blob.localhost")
    assert client.ask("PUT", "/versions", {"restype": "container"}).status == 201
    try:
        yield client
    finally:
        assert client.ask("DELETE", "/versions", {"restype": "container"}).status == 202


def blobs_are_served(rest, _, version):
    with a_container(rest) as client:
        return client.ask("GET", "/", {"comp": "list"}, version=version).status == 200


def crc64_is_answered(rest, _, version):
    with a_container(rest) as client:
        put = client.ask("PUT", "/versions/x", body=b"x", version=version,
                         headers={"x-ms-blob-type": "BlockBlob"})
        return "x-ms-content-crc64" in put.headers


def sas_resource_is_signed(rest, _, version):
    fields = {"sp": "r", "se": "2036-01-01T00:00:00Z", "sv": version, "sr": "b"}
    text = "\n".join(["r", "", fields["se"], f"/blob/{ACCOUNT}/versions/x", "", "", "", version, "b",
                      "", *([""] if version >= "2020-12-06" else []), "", "", "", "", ""])
    with a_container(rest) as client:
        assert client.put("/versions/x", b"x").status == 201
        return client.ask("GET", "/versions/x", {**fields, "sig": sign(KEY, text)}, auth=False,
                          version=version).status == 200


# ---- queues


QUEUE_TEXT = b"<QueueMessage><MessageText>x</MessageText></QueueMessage>"


@contextlib.contextmanager
def a_queue(rest):
    client = queue_client.Queues(rest.port, f"{ACCOUNT}.queue.localhost")
    assert client.ask("PUT", "/versions").status in (201, 204)
    yield client
    assert client.ask("DELETE", "/versions").status == 204


def queues_are_served(rest, _, version):
    with a_queue(rest) as client:
        return client.ask("GET", "/", {"comp": "list"}, version=version).status == 200


def messages_are_updated(rest, _, version):
    """501 before, else 400 without the parameters."""
    with a_queue(rest) as client:
        return client.ask("PUT", "/versions/messages/x", version=version).status == 400 and \
            client.ask("GET", "/versions/messages", {"visibilitytimeout": "7201"},
                       version=version).status == 200


def empty_length_is_signed(rest, _, version):
    with a_queue(rest) as client:
        text = queue_client.string_to_sign
        query, date = {"comp": "metadata"}, rest_client.now()
        have = {"x-ms-date": date, "x-ms-version": version, "content-length": "0"}
        signed = text("PUT", "/versions", query, have, ACCOUNT, "2021-02-12")
        return client.ask("PUT", "/versions", query, version=version, text=signed,
                          headers={"x-ms-date": date}).status == 204


def empty_header_is_signed(rest, _, version):
    with a_queue(rest) as client:
        query, date = {"comp": "list"}, rest_client.now()
        have = {"x-ms-date": date, "x-ms-version": version, "x-ms-empty": ""}
        signed = queue_client.string_to_sign("GET", "/", query, have, ACCOUNT, "2021-02-12")
        return client.ask("GET", "/", query, version=version, text=signed,
                          headers={"x-ms-date": date, "x-ms-empty": ""}).status == 200


def messages_are_answered(rest, _, version):
    with a_queue(rest) as client:
        answer = client.ask("POST", "/versions/messages", {}, QUEUE_TEXT, version=version)
        return answer.status == 201 and answer.body != b""


def messages_may_live_long(rest, _, version):
    with a_queue(rest) as client:
        return client.ask("POST", "/versions/messages", {"messagettl": "-1"}, QUEUE_TEXT,
                          version=version).status == 201


def is_accepted(rest, version, query, size):
    with a_container(rest) as client:
        assert client.ask("PUT", "/versions/log", headers={
            "x-ms-blob-type": "AppendBlob"}).status == 201
        name = "log" if query["comp"] == "appendblock" else "blocks"
        answer = client.ask("PUT", f"/versions/{name}", query, bytes(size), version=version)
        assert answer.status in (201, 413, 400)  # 400: before there are blobs
        return answer.status == 201


def blocks_are_large(rest, _, version):
    return is_accepted(rest, version, {"comp": "block", "blockid": "YQ=="}, (4 << 20) + 1)


def blocks_are_huge(rest, _, version):
    return is_accepted(rest, version, {"comp": "block", "blockid": "YQ=="}, (100 << 20) + 1)


def appends_are_large(rest, _, version):
    return is_accepted(rest, version, {"comp": "appendblock"}, (4 << 20) + 1)


QUESTIONS = {
    "BLOBS": blobs_are_served, "CRC64": crc64_is_answered, "SAS_RESOURCE": sas_resource_is_signed,
    "QUEUES": queues_are_served, "MESSAGE_UPDATE": messages_are_updated,
    "SIGNED_LENGTH": empty_length_is_signed, "SIGNED_EMPTY": empty_header_is_signed,
    "MESSAGE_ANSWER": messages_are_answered, "MESSAGE_TTL": messages_may_live_long,
    "KNOWN": batch_is_served, "ATOM": atom_is_spoken, "ECHO": version_is_echoed,
    "PROPERTIES": properties_are_there, "UPSERT": upserts_are_served, "SELECT": select_is_read,
    "ACL": policies_are_there, "TABLE_SAS": table_sas_is_good, "JSON": json_is_spoken,
    "PREFER": prefer_is_read, "CORS": cors_is_there, "METRICS": metrics_are_two,
    "STATS": stats_are_there, "SAS_PREFIX": sas_prefix_is_signed,
    "SAS_LIMITS": sas_limits_are_signed, "ACCOUNT_SAS": account_sas_is_good,
    "SAS_CODES": sas_codes_are_there, "SAS_ENCRYPTION": sas_encryption_is_signed,
    "BEARER": tokens_are_challenged, "BLOCK_100": blocks_are_large,
    "BLOCK_4000": blocks_are_huge, "APPEND_100": appends_are_large,
}


def test_every_rule_has_its_question():
    assert set(RULES) == set(QUESTIONS) | DELEGATED


@pytest.mark.parametrize("rule, version, holds", cases())
def test_R11_a_rule_holds_from_its_first_version_on(rest, tab, rule, version, holds):
    assert QUESTIONS[rule](rest, tab, version) == holds


@pytest.mark.parametrize("version, status", [(OLDEST, 400), ("2011-08-17", 400),
                                             ("2011-08-18", 204), ("2014-02-14", 204)])
def test_R11_the_parts_of_a_batch_are_of_its_version(rest, tab, version, status):
    body, kind = body_for(version, S="x")
    headers = {"Content-Type": kind, "Accept": BOTH, "x-ms-version": NEWEST}
    for method in ("PUT", "MERGE"):
        batch = rest_client.batch_body(rest, [(method, entity_path(tab, "p", "r"), headers, body)])
        parts = rest_client.parse_batch(send(rest, "POST", "$batch", version, batch))
        assert [p.status for p in parts] == [status]
        assert status == 204 or parts[0].code == "MissingRequiredHeader"
    assert len(rest.all(tab)) == (status == 204)


@pytest.mark.parametrize("name", ["api-version", "sv"])
def test_R11_a_version_in_the_url(rest, tab, name):
    """It counts where the header is not there."""
    old, new = (f"{tab}()?{name}={version}" for version in ("2012-02-12", "2020-12-06"))
    fails(send(rest, "GET", old, None, Accept="application/json"), 415, "JsonFormatNotSupported")
    ok(send(rest, "GET", old, None, Accept=ATOM), 200)
    fails(send(rest, "GET", new, None, Accept=ATOM), 415, "AtomFormatNotSupported")
    ok(send(rest, "GET", old, NEWEST, Accept="application/json"), 200)
    fails(send(rest, "GET", f"{tab}()?{name}=x", None), 400, "InvalidHeaderValue")


@pytest.mark.parametrize("version, accept, good", [
    (OLDEST, None, "atom+xml"), ("2013-08-14", None, "atom+xml"), ("2013-08-15", None, "atom+xml"),
    ("2013-08-15", "application/json", "atom+xml"), ("2015-12-10", None, "atom+xml"),
    ("2015-12-11", None, "json"), (NEWEST, None, "json"), (None, None, "json"),
    (None, ATOM, "atom+xml")])
def test_R11_a_body_of_another_type_is_told_which_to_send(rest, tab, version, accept, good):
    """It is the version's own format, and it is taken."""
    for kind in ("text/plain", "application/x-www-form-urlencoded", "x", "*/*"):
        answer = fails(send(rest, "POST", tab, version, ("PartitionKey=p", kind), Accept=accept),
                       415, "MediaTypeNotSupported")
        assert answer.message == (
            "None of the provided media types are supported. A body of type "
            f"'{kind}' is not understood; send Content-Type: application/{good}.")
    assert rest.all(tab) == []
    body = row()[0] if good == "atom+xml" else {"PartitionKey": "p", "RowKey": "r"}
    ok(send(rest, "POST", tab, version, (body, f"application/{good}"), Accept=accept), 201)


@pytest.mark.parametrize("version, format_, code, xml", [
    (OLDEST, "json", "JsonFormatNotSupported", True),
    ("2013-08-14", "application/json;odata=nometadata", "JsonFormatNotSupported", True),
    ("2013-08-14", "nonsense", "MediaTypeNotSupported", True),
    ("2013-08-15", "nonsense", "MediaTypeNotSupported", True),
    ("2013-08-15", "application/json;odata=verbose", "JsonVerboseFormatNotSupported", True),
    ("2015-12-10", "application/json;odata=x", "MediaTypeNotSupported", True),
    ("2015-12-11", "nonsense", "MediaTypeNotSupported", False),
    ("2015-12-11", "atom", "AtomFormatNotSupported", False),
    (NEWEST, "application/atom+xml", "AtomFormatNotSupported", False),
    (None, "nonsense", "MediaTypeNotSupported", False)])
def test_R11_a_format_that_is_refused_is_told_in_the_versions_own(rest, tab, version, format_,
                                                                   code, xml):
    """Accept does not count where $format is: not for what is asked, not for the refusal."""
    quoted = rest_client.urllib.parse.quote(format_, safe="")
    accepts = [None, "application/json", "application/json;odata=fullmetadata", "*/*"]
    for accept in accepts + [BOTH, ATOM] * (version is not None):
        answer = fails(send(rest, "GET", f"{tab}()?$format={quoted}", version, Accept=accept),
                       415, code)
        assert answer.headers["Content-Type"].startswith(
            "application/xml" if xml else "application/json"), (accept, answer.headers.items())
        assert answer.body.startswith(b"<?xml" if xml else b'{"odata.error":')


# ---- versions that are none


@pytest.mark.parametrize("version", [
    "2009-04-13", "2008-10-27", "1999-01-01", "0000-00-00", "2019-02-29", "2019-13-01",
    "2019-2-2", "20190202", "2019-02-02x", " x", "2019/02/02", "x", "", "-"])
def test_R11_a_version_that_is_none(rest, tab, version):
    for path in ("Tables", f"{tab}()", f"{tab}?comp=acl", "?restype=service&comp=stats"):
        answer = fails(send(rest, "GET", path, version), 400, "InvalidHeaderValue", FORMAT)
        assert answer.headers["x-ms-version"] is None
    answer = send(rest, "GET", "Tables", version, Accept=ATOM)
    assert fails(answer, 400, "InvalidHeaderValue", FORMAT).body.startswith(b"<?xml")
    # What a version is, is told to those who have a key.
    with rest.clone(sign=None) as client:
        fails(send(client, "GET", "Tables", version), 403, "AuthenticationFailed")


@pytest.mark.parametrize("version", ["2026-06-07", "2031-12-31", "9999-12-31"])
def test_R11_a_version_to_come_is_served_as_todays(rest, tab, version):
    answer = ok(send(rest, "PUT", entity_path(tab, "p", "r"), version, body_for(version)), 204)
    assert answer.headers["x-ms-version"] == version
    assert "json" in ok(send(rest, "GET", f"{tab}()", version), 200).headers["Content-Type"]


# ---- no version


def unversioned(rest, method, path, body=None, **headers):
    answer = send(rest, method, path, None, body, **headers)
    assert answer.headers["x-ms-version"] is None
    return answer


@pytest.mark.parametrize("accept", [
    None, "*/*", "application/json", "application/json;odata=nometadata",
    "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"])
def test_R11_no_version_is_todays(rest, tab, accept):
    json = ({"PartitionKey": "p", "RowKey": "r", "S": "x"}, "application/json")
    made = ok(unversioned(rest, "POST", tab, json, Accept=accept, Prefer="return-no-content"), 204)
    assert made.headers["Preference-Applied"] == "return-no-content"
    ok(unversioned(rest, "PUT", entity_path(tab, "p", "u"), ({}, json[1]), Accept=accept), 204)
    answer = ok(unversioned(rest, "GET", f"{tab}()?$select=S", Accept=accept), 200)
    assert "json" in answer.headers["Content-Type"] and answer.rows[0]["S"] == "x"
    assert "json" in fails(unversioned(rest, "GET", "nosuch()", Accept=accept), 404,
                           "TableNotFound").headers["Content-Type"]


@pytest.mark.parametrize("accept", [ATOM, f"{ATOM},application/xml", f"{ATOM};type=feed"])
def test_R11_no_version_and_atom_is_the_oldest(rest, tab, accept):
    made = ok(unversioned(rest, "POST", tab, row(S="hidden"), Accept=accept,
                          Prefer="return-no-content"), 201)
    assert ATOM in made.headers["Content-Type"]
    fails(unversioned(rest, "PUT", entity_path(tab, "p", "r"), row(), Accept=accept), 400,
          "MissingRequiredHeader")
    ok(unversioned(rest, "MERGE", entity_path(tab, "p", "r"), row(T="y"), Accept=accept,
                   If_Match=made.etag), 204)
    answer = ok(unversioned(rest, "GET", f"{tab}()?$select=T", Accept=accept), 200)
    assert ATOM in answer.headers["Content-Type"] and b"hidden" in answer.body
    assert fails(unversioned(rest, "GET", "nosuch()", Accept=accept), 404,
                 "TableNotFound").body.startswith(b"<?xml")
    # What is XML in every version says nothing of the version.
    for path in ("?restype=service&comp=stats", f"{tab}?comp=acl"):
        ok(unversioned(rest, "GET", path, Accept=accept), 200)


def test_R11_atom_is_also_named_by_a_body_and_by_format(rest, tab):
    made = ok(unversioned(rest, "POST", tab, row(), Accept=None), 201)
    assert ATOM in made.headers["Content-Type"]
    for name in ("atom", "application%2Fatom%2Bxml"):
        answer = ok(unversioned(rest, "GET", f"{tab}()?$format={name}", Accept=None), 200)
        assert ATOM in answer.headers["Content-Type"]


# ---- clients of that age


@pytest.mark.parametrize("version", [None, "2009-04-14", "2009-07-17", "2009-09-19", "2011-08-18"])
@pytest.mark.parametrize("scheme", ["lite", "full"])
@pytest.mark.parametrize("header", ["x-ms-date", "date"])
def test_R11_old_signatures(rest, tab, version, scheme, header):
    """SharedKeyLite and SharedKey, over x-ms-date or Date, and what an answer has."""
    dates = {"x-ms-date": None, header: rest_client.now()}
    with rest.clone(sign=scheme, accept=f"{ATOM},application/xml") as client:
        body, kind = row()
        answers = [
            client.request("POST", tab, body, {"x-ms-version": version, "Content-Type": kind,
                                               "DataServiceVersion": "1.0;NetFx",
                                               "MaxDataServiceVersion": "1.0;NetFx", **dates}),
            client.request("GET", entity_path(tab, "p", "r"), None,
                           {"x-ms-version": version, **dates}),
            client.request("DELETE", entity_path(tab, "p", "r"), None,
                           {"x-ms-version": version, "If-Match": "*", **dates})]
        dates[header] = rest_client.now(-16 * 60)
        fails(client.request("GET", "Tables", None, {"x-ms-version": version, **dates}), 403,
              "AuthenticationFailed")
    assert [a.status for a in answers] == [201, 200, 204]
    for answer in answers:
        echo = version if version and version >= "2009-09-19" else None
        assert answer.headers["x-ms-version"] == echo
        assert answer.headers["Server"] == "rowfs"
        assert answer.headers["DataServiceVersion"] is None
        assert answer.headers["Cache-Control"] == "no-cache"
        assert rest_client.REQUEST_ID.fullmatch(answer.headers["x-ms-request-id"])


@pytest.mark.parametrize("sent", ["1.0", "1.0;NetFx", "2.0;NetFx", "3.0;", "9.9", "x", ""])
def test_data_service_versions_are_not_looked_at(rest, tab, sent):
    for name in ("DataServiceVersion", "MaxDataServiceVersion"):
        for version in (OLDEST, NEWEST):
            ok(rest.request("GET", f"{tab}()", None,
                            {"x-ms-version": version, "Accept": BOTH, name: sent}), 200)


def test_R11_what_is_refused_early_speaks_the_format_too(rest):
    """A URL that is none, a request without a length: an old client can read why."""
    for method, path, headers in (("GET", "Tables('a'", {}),
                                  ("POST", "Tables", {"content-length": None})):
        answer = rest.request(method, path, None, {"x-ms-version": "2011-08-18",
                                                   "Accept": ATOM, **headers})
        assert answer.status in (400, 411) and answer.body.startswith(b"<?xml"), answer
