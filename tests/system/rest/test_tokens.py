# SPDX-License-Identifier: MIT
"""Bearer tokens over TLS and on a Unix socket: which are accepted, what their roles allow, and what a refused one
is answered with.  tests/unit/test_oauth.c has the single claims, keys and limits."""

import os
import time
import urllib.parse
import xml.etree.ElementTree as ET

import certificates
import conftest
import pytest
import rest_client
from blob_client import Blobs
from issuer import CONTRIBUTOR, READER, Bearer, Issuer, claims, jwt, unsigned
from queue_client import string_to_sign
from rest_client import fails, ok

INVALID, DENIED = "InvalidAuthenticationInfo", "AuthorizationPermissionMismatch"
CHALLENGE = ("Bearer authorization_uri=https://login.microsoftonline.com/00000000-0000-0000-0000-000000000000"
             "/oauth2/authorize resource_id=https://storage.azure.com")


@pytest.fixture
def secure(rest_store, serve, work):
    """A factory: secure("--oauth=basic") -> Bearer, a client of a server with TLS."""
    certificates.make_certificate(work, "a")
    clients = []

    def make(*options):
        server = serve(rest_store, f"--rest-cert={work}/a.pem", f"--rest-key={work}/a.key", *options)
        client = Bearer(server.port, work / "a.pem")
        client.server = server
        clients.append(client)
        return client

    yield make
    for client in clients:
        client.close()


@pytest.fixture
def keys(secure, work):
    """A client of a server that knows the issuer's keys, and the issuer; its file is keys.json."""
    issuer = Issuer()
    client = secure(f"--oauth=jwks:{issuer.write(work / 'keys.json')}")
    client.file = work / "keys.json"
    return client, issuer


def invalid(answer, text):
    fails(answer, 401, INVALID)
    assert text in answer.message, answer.message
    assert answer.headers["www-authenticate"] == CHALLENGE
    return answer


def test_OA1_without_the_option_every_token_is_refused(secure):
    client = secure()
    invalid(client.ask(unsigned(), "GET", "/Tables"), "not accepted here")
    invalid(client.ask(unsigned(), "GET", "/?comp=list", "blob"), "not accepted here")


def test_OA2_basic_checks_the_claims_and_gives_every_operation(secure):
    client, now = secure("--oauth=basic"), int(time.time())
    good = unsigned()
    ok(client.ask(good, "POST", "/Tables", body={"TableName": "Blogs"}))
    ok(client.ask(good, "GET", "/?restype=service&comp=properties"))
    ok(client.ask(good, "PUT", "/jobs", "queue"))
    ok(client.ask(good, "PUT", "/box?restype=container", "blob"))
    fails(client.ask(good, "GET", "/Blogs?comp=acl"), 403, DENIED)
    fails(client.ask(good, "GET", "/box?restype=container&comp=acl", "blob"), 403, DENIED)
    forged = jwt.encode(claims(), "not the key of the issuer, but one of 32 bytes", algorithm="HS256")
    ok(client.ask(forged, "GET", "/Tables"))
    for text, token in (
            ("expired", unsigned(nbf=1, exp=now - 60)), ("not valid yet", unsigned(nbf=now + 60)),
            ("'iat'", unsigned(iat=None)), ("Issuer", unsigned(iss="https://sts.example/")),
            ("Issuer", unsigned(iss=None)), ("Audience", unsigned(aud="https://vault.azure.net")),
            ("three parts", "a.b"), ("three parts", "")):
        invalid(client.ask(token, "GET", "/Tables"), text)


def test_OA3_the_signature_decides(keys):
    client, issuer = keys
    reader = READER.format("Table")
    ok(client.ask(issuer.token(reader), "GET", "/Tables"))
    ok(client.ask(issuer.token(reader, curve=True), "GET", "/Tables"))
    for text, token in (
            ("No key has", issuer.token(reader, kid="r2")),
            ("is ES256", issuer.token(reader, kid="e1")),
            ("No key has", unsigned(roles=[reader])),
            ("Signature verification failed", Issuer().token(reader)),
            ("Signature verification failed", issuer.token(reader).rpartition(".")[0] + "."),
            ("is RS256", jwt.encode(claims(roles=[reader]), "x" * 32, headers={"kid": "r1"}))):
        invalid(client.ask(token, "GET", "/Tables"), text)


def test_OA4_new_keys_count_at_once_and_a_damaged_file_changes_nothing(keys):
    client, issuer = keys
    reader = READER.format("Table")
    old = issuer.token(reader)
    ok(client.ask(old, "GET", "/Tables"))
    client.file.write_text('{"keys":[')
    ok(client.ask(old, "GET", "/Tables"))
    assert "keeping the old keys" in client.server.log()
    client.file.unlink()
    ok(client.ask(old, "GET", "/Tables"))
    issuer.replace_keys()
    issuer.write(client.file.with_suffix(".part"))
    os.replace(client.file.with_suffix(".part"), client.file)
    invalid(client.ask(old, "GET", "/Tables"), "Signature verification failed")
    ok(client.ask(issuer.token(reader), "GET", "/Tables"))


def test_OA5_the_issuer_of_the_file_is_asked_for(keys):
    client, issuer = keys
    reader = READER.format("Table")
    issuer.write(client.file, issuer="https://login.example/{tenantid}/v2.0")
    invalid(client.ask(issuer.token(reader), "GET", "/Tables"), "Issuer did not match")
    nobody = "https://login.example/00000000-0000-0000-0000-000000000000/v2.0"
    ok(client.ask(issuer.token(reader, iss=nobody), "GET", "/Tables"))


# What each role may do: (service, method, path, body or headers) with the roles that may.
PUT_BLOB = {"x-ms-blob-type": "BlockBlob"}
MESSAGE = "<QueueMessage><MessageText>one</MessageText></QueueMessage>"
TABLES, QUEUES, BLOBS = ({READER.format(s), CONTRIBUTOR.format(s)} for s in ("Table", "Queue", "Blob"))
CHANGES_TABLE, CHANGES_QUEUE, CHANGES_BLOB = (CONTRIBUTOR.format(s) for s in ("Table", "Queue", "Blob"))
PROCESSOR, SENDER = "Storage Queue Data Message Processor", "Storage Queue Data Message Sender"
OWNER, DELEGATOR = "Storage Blob Data Owner", "Storage Blob Delegator"
EVERY = [*sorted(TABLES | QUEUES | BLOBS), PROCESSOR, SENDER, OWNER, DELEGATOR]
USES = [
    ("table", "GET", "/Tables", {}, TABLES),
    ("table", "GET", "/Rows()", {}, TABLES),
    ("table", "POST", "/Rows", {"body": {"PartitionKey": "p", "RowKey": "r"}}, {CHANGES_TABLE}),
    ("table", "MERGE", "/Rows(PartitionKey='p',RowKey='r')", {"body": {"a": 1}}, {CHANGES_TABLE}),
    ("table", "DELETE", "/Rows(PartitionKey='p',RowKey='r')", {"headers": {"if-match": "*"}}, {CHANGES_TABLE}),
    ("table", "POST", "/Tables", {"body": {"TableName": "More"}}, {CHANGES_TABLE}),
    ("table", "DELETE", "/Tables('More')", {}, {CHANGES_TABLE}),
    ("table", "GET", "/?restype=service&comp=properties", {}, set()),
    ("table", "GET", "/Rows?comp=acl", {}, set()),
    ("queue", "GET", "/?comp=list", {}, QUEUES),
    ("queue", "POST", "/jobs/messages", {"body": MESSAGE}, {CHANGES_QUEUE, SENDER}),
    ("queue", "GET", "/jobs/messages?peekonly=true", {}, QUEUES | {PROCESSOR}),
    ("queue", "GET", "/jobs/messages", {}, {CHANGES_QUEUE, PROCESSOR}),
    ("queue", "DELETE", "/jobs/messages", {}, {CHANGES_QUEUE}),
    ("queue", "GET", "/jobs?comp=metadata", {}, QUEUES),
    ("queue", "PUT", "/other", {}, {CHANGES_QUEUE}),
    ("queue", "GET", "/jobs?comp=acl", {}, set()),
    ("blob", "GET", "/?comp=list", {}, BLOBS | {OWNER}),
    ("blob", "GET", "/box?restype=container&comp=list", {}, BLOBS | {OWNER}),
    ("blob", "PUT", "/box/b", {"body": "x", "headers": PUT_BLOB}, {CHANGES_BLOB, OWNER}),
    ("blob", "GET", "/box/kept", {}, BLOBS | {OWNER}),
    ("blob", "DELETE", "/box/b", {}, {CHANGES_BLOB, OWNER}),
    ("blob", "PUT", "/box2?restype=container", {}, {CHANGES_BLOB, OWNER}),
    ("blob", "GET", "/box?restype=container&comp=acl", {}, {OWNER}),
    ("blob", "PUT", "/box?restype=container&comp=acl", {}, {OWNER}),
]


def test_OA6_each_role_allows_what_the_page_says(keys):
    client, issuer = keys
    for service, method, path, what in (
            ("table", "POST", "/Tables", {"body": {"TableName": "Rows"}}), ("queue", "PUT", "/jobs", {}),
            ("blob", "PUT", "/box?restype=container", {}),
            ("blob", "PUT", "/box/kept", {"body": "x", "headers": PUT_BLOB})):
        role = CHANGES_BLOB if service == "blob" else CONTRIBUTOR.format(service.title())
        ok(client.ask(issuer.token(role), method, path, service, **what))
    tokens = {role: issuer.token(role, curve=True) for role in EVERY}
    for service, method, path, what, allowed in USES:
        got = {role for role in EVERY
               if client.ask(tokens[role], method, path, service, **what).code != DENIED}
        assert got == allowed, (service, method, path)


def test_OA7_a_role_is_for_the_account_that_it_names(keys):
    client, issuer = keys
    role = READER.format("Table").replace(" ", "")
    ok(client.ask(issuer.token(f"{role}@{client.account}"), "GET", "/Tables"))
    fails(client.ask(issuer.token(f"{role}@other"), "GET", "/Tables"), 403, DENIED)
    fails(client.ask(issuer.token(), "GET", "/Tables"), 403, DENIED)
    fails(client.ask(issuer.token(role), "GET", "/?comp=list", "queue"), 403, DENIED)


def test_OA16_the_file_assigns_roles_to_claims(keys):
    client, issuer = keys
    issuer.write(client.file, assignments=[
        {"oid": "a-1", "role": READER.format("Table")},
        {"groups": "team", "tid": "t-1", "role": [f"{CHANGES_TABLE}@{client.account}", f"{CHANGES_QUEUE}@other"]}])
    ok(client.ask(issuer.token(oid="a-1"), "GET", "/Tables"))
    fails(client.ask(issuer.token(oid="a-2"), "GET", "/Tables"), 403, DENIED)
    member = issuer.token(groups=["x", "team"], tid="t-1")
    ok(client.ask(member, "POST", "/Tables", body={"TableName": "Rows"}))
    fails(client.ask(member, "PUT", "/jobs", "queue"), 403, DENIED)
    fails(client.ask(issuer.token(groups=["x", "team"]), "GET", "/Tables"), 403, DENIED)
    issuer.write(client.file, assignments=[{"role": READER.format("Table")}])
    ok(client.ask(issuer.token(oid="a-1"), "GET", "/Tables"))
    assert "assignment 1 needs a 'role' and a claim" in client.server.log()


@pytest.mark.parametrize("service, path", [("table", "/Tables"), ("queue", "/?comp=list"), ("blob", "/?comp=list")])
def test_OA8_the_audience_is_storage_or_the_service_of_the_account(keys, service, path):
    client, issuer = keys
    role = READER.format(service.title())
    for aud, good in (("https://storage.azure.com/", True), ("https://cosmos.azure.com", service == "table"),
                      (f"https://{client.account}.{service}.core.windows.net", True),
                      (f"https://{client.account}.file.core.windows.net", False),
                      (f"https://other.{service}.core.windows.net", False)):
        answer = client.ask(issuer.token(role, aud=aud), "GET", path, service)
        assert answer.status == 200 if good else invalid(answer, "Audience"), (aud, answer)


def test_OA9_a_token_needs_tls_or_a_unix_socket(rowfs, rest_store, serve, work):
    bearer = {"authorization": f"Bearer {unsigned()}"}
    done = rowfs("serve", rest_store, "--rest=127.0.0.1:0", "--oauth=basic", check=False)
    assert done.returncode == 2 and "oauth= needs TLS" in done.stderr
    server = serve(rest_store, "--rest=127.0.0.1:0", f"--rest=unix:{work}/s", "--rest-trust=none", "--oauth=basic")
    with rest_client.Client(server.port) as c:
        answer = fails(c.request("GET", "Tables", headers=bearer), 403, "AuthenticationFailed")
        assert "not allowed with HTTP" in answer.message
    with rest_client.Client(None, unix=f"{work}/s") as c:
        ok(c.request("GET", "Tables", headers=bearer))
        fails(c.request("GET", "Tables", sign=None), 401, "NoAuthenticationInformation")


def test_OA10_versions_before_tokens_refuse_them(secure):
    client = secure("--oauth=basic")
    ok(client.ask(unsigned(), "GET", "/?comp=list", "blob", version="2017-11-09"))
    fails(client.ask(unsigned(), "GET", "/?comp=list", "blob", version="2017-11-08"), 403, "AuthenticationFailed")
    invalid(client.ask("a.b.c", "GET", "/?comp=list", "blob", version="2017-11-09"), "The token")


def test_OA11_the_longest_and_deepest_token_is_accepted(keys):
    client, issuer = keys
    role = READER.format("Table")
    deep, text = "x", "x" * 11500
    for _ in range(7):
        deep = [deep]
    longest = issuer.token(role, filler=text)
    while len(issuer.token(role, filler=text)) <= 16384:
        longest, text = issuer.token(role, filler=text), text + "x"
    assert len(longest) > 16380
    ok(client.ask(longest, "GET", "/Tables"))
    invalid(client.ask(issuer.token(role, filler=text), "GET", "/Tables"), "longer than 16 KiB")
    ok(client.ask(issuer.token(role, filler=deep), "GET", "/Tables"))
    invalid(client.ask(issuer.token(role, filler=[deep]), "GET", "/Tables"), "no JSON object")
    ok(client.ask(issuer.token(role, *["other"] * 255), "GET", "/Tables"))
    invalid(client.ask(issuer.token(role, *["other"] * 256), "GET", "/Tables"), "256 roles")


def moment(seconds):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + seconds))


def key_info(start, expiry):
    return f"<KeyInfo><Start>{start}</Start><Expiry>{expiry}</Expiry></KeyInfo>"


def ask_key(client, token, service="blob", body=None, version="2026-06-06"):
    return client.ask(token, "POST", "/?restype=service&comp=userdelegationkey", service, version=version,
                      body=body or key_info(moment(-60), moment(600)))


def key_of(answer):
    """Its fields by the names that they have in a SAS, and its value."""
    root = ET.fromstring(ok(answer).body)
    have = {e.tag: e.text for e in root}
    names = {"skoid": "SignedOid", "sktid": "SignedTid", "skt": "SignedStart", "ske": "SignedExpiry",
             "sks": "SignedService", "skv": "SignedVersion"}
    assert set(have) == {*names.values(), "Value"}
    return {k: have[v] for k, v in names.items()}, have["Value"]


def delegated(client, key, service, resource, sv, **changes):
    """The query of a SAS as the documents of its version say; changes come before the signature."""
    fields, value = key
    have = {"sv": sv, "sp": "r", "se": moment(300), **({"sr": "b"} if service == "blob" else {}), **fields, **changes}
    lines = [have["sp"], have.get("st", ""), have["se"], f"/{service}/{client.account}/{resource}",
             *[have[k] for k in ("skoid", "sktid", "skt", "ske", "sks", "skv")]]
    lines += [""] * 3 if service == "blob" and sv >= "2020-02-10" else []
    lines += [""] * 2 if sv >= "2025-07-05" else []
    lines += [have.get("sip", ""), have.get("spr", ""), sv]
    if service == "blob":
        lines += [have["sr"], ""] + [""] * (sv >= "2020-12-06") + [""] * (2 * (sv >= "2026-04-06")) + [""] * 5
    have["sig"] = rest_client.sign(value, "\n".join(lines))
    return urllib.parse.urlencode(have)


def get_with(client, path, sas, service="blob"):
    return client.ask(None, "GET", path + ("&" if "?" in path else "?") + sas, service, version="2026-06-06",
                      headers={"authorization": None})


@pytest.fixture
def shared(keys):
    """The client and the issuer, with the blob box/one and the queue jobs."""
    client, issuer = keys
    token = issuer.token(CHANGES_BLOB, CHANGES_QUEUE)
    ok(client.ask(token, "PUT", "/box?restype=container", "blob"))
    ok(client.ask(token, "PUT", "/box/one", "blob", body="hello", headers=PUT_BLOB))
    ok(client.ask(token, "PUT", "/jobs", "queue"))
    return client, issuer


@pytest.mark.parametrize("sv", ["2018-11-09", "2019-12-12", "2020-02-10", "2020-12-06", "2025-05-05", "2025-07-05",
                                "2026-02-06", "2026-04-06", "2026-06-06"])
def test_OA12_each_version_of_a_user_delegation_sas(shared, sv):
    client, issuer = shared
    role = READER.format("Blob")
    key = key_of(ask_key(client, issuer.token(role)))
    assert key[0]["skoid"] == claims()["oid"] and key[0]["sktid"] == claims()["tid"]
    assert ok(get_with(client, "/box/one", delegated(client, key, "blob", "box/one", sv))).body == b"hello"
    listing = "/box?restype=container&comp=list"
    ok(get_with(client, listing, delegated(client, key, "blob", "box", sv, sp="rl", sr="c")))
    for changes in ({"skoid": "x"}, {"sktid": "x"}, {"skt": moment(-3600)}, {"ske": moment(3600)}, {"skv": "2020-02-10"},
                    {"sp": "rw"}):
        sas = delegated(client, key, "blob", "box/one", sv)
        wrong = urllib.parse.urlencode({**dict(urllib.parse.parse_qsl(sas)), **changes})
        fails(get_with(client, "/box/one", wrong), 403, "AuthenticationFailed")
    queue = key_of(ask_key(client, issuer.token(READER.format("Queue")), "queue"))
    answer = get_with(client, "/jobs/messages?peekonly=true", delegated(client, queue, "queue", "jobs", sv), "queue")
    assert answer.status == (200 if sv >= "2025-07-05" else 403), answer


def test_OA13_a_user_delegation_sas_allows_no_more_than_the_roles(shared):
    client, issuer = shared

    def tries(role, sp="rwdl"):
        key = key_of(ask_key(client, issuer.token(role)))
        sas = delegated(client, key, "blob", "box/one", "2026-04-06", sp=sp)
        put = client.ask(None, "PUT", f"/box/one?{sas}", "blob", body="hello", headers={**PUT_BLOB, "authorization": None})
        return get_with(client, "/box/one", sas).status, put.status
    assert tries(DELEGATOR) == (403, 403)
    assert tries(READER.format("Blob")) == (200, 403)
    assert tries(CHANGES_BLOB) == tries(OWNER) == (200, 201)
    assert tries(CHANGES_BLOB, "r") == (200, 403)
    for role in (CONTRIBUTOR.format("Table"), CHANGES_QUEUE):
        fails(ask_key(client, issuer.token(role)), 403, DENIED)
    fails(ask_key(client, issuer.token(DELEGATOR + "@other")), 403, DENIED)


def test_OA14_a_key_counts_for_its_service_account_and_time(shared, rowfs):
    client, issuer = shared
    reader = issuer.token(READER.format("Blob"), READER.format("Queue"))
    key = key_of(ask_key(client, reader))
    sas = delegated(client, key, "queue", "jobs", "2026-04-06")
    answer = fails(get_with(client, "/jobs/messages?peekonly=true", sas, "queue"), 403, "AuthenticationFailed")
    assert "another service" in answer.message
    other = Bearer(client.port, client.pem, conftest.OTHER_ACCOUNT)
    fails(get_with(other, "/box/one", delegated(other, key, "blob", "box/one", "2026-04-06")), 403, "AuthenticationFailed")
    other.close()
    future = key_of(ask_key(client, reader, body=key_info(moment(60), moment(600))))
    fails(get_with(client, "/box/one", delegated(client, future, "blob", "box/one", "2026-04-06")), 403, "AuthenticationFailed")
    ok(get_with(client, "/box/one", delegated(client, key, "blob", "box/one", "2026-04-06")))
    fails(get_with(client, "/box/one", delegated(client, key, "blob", "box/one", "2026-04-06", si="policy")),
          403, "AuthenticationFailed")
    sas = delegated(client, key, "blob", "box/one", "2026-04-06")
    rowfs("account", "regenerate", client.server.store, client.account, "--which=1")
    fails(get_with(client, "/box/one", sas), 403, "AuthenticationFailed")


def test_OA1_without_the_option_a_user_delegation_sas_is_refused(shared, secure):
    client, issuer = shared
    sas = delegated(client, key_of(ask_key(client, issuer.token(READER.format("Blob")))), "blob", "box/one", "2026-04-06")
    ok(get_with(client, "/box/one", sas))
    client.server.stop()
    fails(get_with(secure(), "/box/one", sas), 403, "AuthenticationFailed")


def test_OA15_a_key_is_for_seven_days_at_most_and_for_tokens_only(shared):
    client, issuer = shared
    reader, week = issuer.token(READER.format("Blob")), 7 * 24 * 3600
    ok(ask_key(client, reader, body=key_info(moment(-60), moment(week - 30))))
    ok(ask_key(client, reader, body=f"<KeyInfo><Expiry>{moment(60)}</Expiry></KeyInfo>"))
    for start, end in ((-60, week + 30), (-60, -30), (60, 60), (60, 30)):
        fails(ask_key(client, reader, body=key_info(moment(start), moment(end))), 400, "InvalidXmlNodeValue")
    fails(ask_key(client, reader, body=key_info("x", moment(60))), 400, "InvalidXmlNodeValue")
    for body in ("<KeyInfo></KeyInfo>", "<Key><Expiry>2026-01-01</Expiry></Key>", "<", "<KeyInfo><Expiry>"):
        fails(ask_key(client, reader, body=body), 400, "InvalidXmlDocument")
    fails(ask_key(client, issuer.token(READER.format("Blob"), oid="a b")), 403, "AuthorizationFailure")
    fails(ask_key(client, reader, version="2018-03-28"), 501, "NotImplemented")
    key = {"authorization": None, "x-ms-date": rest_client.now()}
    blobs = Blobs(client.port)
    text = string_to_sign("POST", "/", {"comp": "userdelegationkey", "restype": "service"},
                          {"x-ms-date": key["x-ms-date"], "x-ms-version": "2021-12-02", "content-type": "text/xml",
                           "content-length": str(len(key_info("a", "b")))}, blobs.account, "2021-12-02")
    key["authorization"] = f"SharedKey {blobs.account}:{rest_client.sign(blobs.key, text)}"
    answer = client.ask(None, "POST", "/?restype=service&comp=userdelegationkey", "blob", body=key_info("a", "b"), headers=key)
    fails(answer, 403, "AuthenticationFailed")
    assert "Only authentication scheme Bearer" in answer.message


def test_each_part_of_a_batch_needs_the_role(keys):
    client, issuer = keys
    changes = issuer.token(CHANGES_TABLE)
    ok(client.ask(changes, "POST", "/Tables", body={"TableName": "Rows"}))
    host = f"https://{client.account}.table.localhost:{client.port}"
    part = ("--b\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n{} HTTP/1.1\r\n"
            "Accept: application/json;odata=minimalmetadata\r\n{}\r\n")
    query = part.format(f"GET {host}/Rows()", "") + "--b--\r\n"
    change = ("--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n" +
              part.format(f"POST {host}/Rows", 'Content-Type: application/json\r\n\r\n{"PartitionKey":"p","RowKey":"r"}')
              .replace("--b", "--c") + "--c--\r\n--b--\r\n")
    headers = {"content-type": "multipart/mixed; boundary=b"}
    for role, body, refused in ((READER.format("Table"), query, False), (READER.format("Table"), change, True),
                                (CHANGES_TABLE, change, False)):
        answer = ok(client.ask(issuer.token(role), "POST", "/$batch", body=body, headers=headers))
        assert (DENIED.encode() in answer.body) == refused, (role, answer.body)
        assert b"HTTP/1.1 20" in answer.body or refused, answer.body


def test_a_copy_within_the_account_needs_no_sas_and_one_from_another_does(keys):
    client, issuer = keys
    token = issuer.token(CHANGES_BLOB)
    ok(client.ask(token, "PUT", "/box?restype=container", "blob"))
    ok(client.ask(token, "PUT", "/box/one", "blob", body="x", headers=PUT_BLOB))
    here = f"https://{client.account}.blob.localhost:{client.port}/box/one"
    ok(client.ask(token, "PUT", "/box/two", "blob", headers={"x-ms-copy-source": here}))
    assert ok(client.ask(token, "GET", "/box/two", "blob")).body == b"x"
    there = here.replace(client.account, conftest.OTHER_ACCOUNT)
    fails(client.ask(token, "PUT", "/box/two", "blob", headers={"x-ms-copy-source": there}),
          403, "CannotVerifyCopySource")


def test_a_mount_accepts_tokens_too(mount, rest_store, work):
    mount(rest_store, f"rest=unix:{work}/s", "rest-trust=none", "oauth=basic")
    with rest_client.Client(None, unix=f"{work}/s") as c:
        ok(c.request("GET", "Tables", headers={"authorization": f"Bearer {unsigned()}"}))


def test_options_that_are_none_are_refused(rowfs, rest_store, work):
    (work / "none.json").write_text("{}")
    for option, text in (("Basic", "is basic or jwks:FILE"), ("jwks:", "is basic or jwks:FILE"),
                         (f"jwks:{work}/none.json", "it has no key"), ("jwks:/nowhere.json", "'/nowhere.json': No such file")):
        done = rowfs("serve", rest_store, f"--rest=unix:{work}/s", f"--oauth={option}", check=False)
        assert done.returncode in (1, 2) and text in done.stderr, (option, done.stderr)
