# SPDX-License-Identifier: MIT
"""Credentials crossed in every way.

What a shared access signature allows is computed here a second time, from the protocol's
tables, for every combination of version, kind, permission, range, policy, time and operation;
server and oracle must agree on each, and what is refused must leave no trace.  Each account's
data is asked for through every spelling of a path with every other account's credentials.
"""

import itertools

import pytest
from conftest import OTHER_ACCOUNT, OTHER_KEY
from rest_client import (ACCOUNT, KEY, account_sas_fields, canonical_resource,
                         encode_fields, entity_path, iso, now, ok, parse_batch, query_string,
                         sign, table_sas_fields)

VERSIONS = ["2012-02-12", "2014-02-14", "2015-02-21", "2015-04-05", "2019-02-02", "2024-08-04"]
# A row that is inside of every range but those that hold nothing near it, one that is not.
INSIDE, OUTSIDE = ("m", "5"), ("w", "5")


def operations(tab):
    """name: (method, path, body, headers, keys it touches, permissions all of which it takes,
    status when it is done)."""
    out = {}
    for where, (pk, rk) in (("in", INSIDE), ("out", OUTSIDE)):
        path, keys = entity_path(tab, pk, rk), (pk, rk)
        exact = f"PartitionKey eq '{pk}' and RowKey eq '{rk}'"
        out |= {
            f"get {where}": ("GET", path, None, {}, keys, "r", 200),
            f"find {where}": ("GET", f"{tab}()?{query_string(filter=exact)}", None, {}, None,
                              "r", 200),
            f"insert {where}": ("POST", tab, {"PartitionKey": pk, "RowKey": rk}, {}, keys, "a",
                                409),
            f"replace {where}": ("PUT", path, {"A": 2}, {"If-Match": "*"}, keys, "u", 204),
            f"merge {where}": ("PATCH", path, {"A": 2}, {"If-Match": "*"}, keys, "u", 204),
            f"upsert {where}": ("PUT", path, {"A": 2}, {}, keys, "au", 204),
            f"upsert merge {where}": ("MERGE", path, {"A": 2}, {}, keys, "au", 204),
            # A condition that is never met: allowed, and changes nothing.
            f"delete {where}": ("DELETE", path, None,
                                {"If-Match": "W/\"datetime'2001-01-01T00%3A00%3A00Z'\""}, keys,
                                "d", 412),
        }
    out["all"] = ("GET", f"{tab}()", None, {}, None, "r", 200)
    out["acl"] = ("GET", f"{tab}?comp=acl", None, {}, None, None, 200)
    out["tables"] = ("GET", "Tables", None, {}, None, None, 200)
    return out


PERMISSIONS = ["".join(c) for n in range(1, 5) for c in itertools.combinations("raud", n)]
RANGES = {
    "none": ({}, lambda pk, rk: True),
    "partition": ({"spk": "m", "epk": "m"}, lambda pk, rk: pk == "m"),
    "row": ({"spk": "m", "srk": "5", "epk": "m", "erk": "5"}, lambda pk, rk: (pk, rk) == INSIDE),
    "from": ({"spk": "m", "srk": "5"}, lambda pk, rk: (pk, rk) >= INSIDE),
    "to": ({"epk": "m", "erk": "5"}, lambda pk, rk: (pk, rk) <= INSIDE),
    "first": ({"spk": "", "epk": ""}, lambda pk, rk: pk == ""),
    "nothing": ({"spk": "z", "epk": "a"}, lambda pk, rk: False),
}
# Where the times stand; whether they hold now.
TIMES = {"now": (-60, 60, True), "expired": (-120, -2, False), "not yet": (60, 120, False),
         "turned round": (60, -60, False)}


def allowed(op, sp, inside):
    """Whether a table's token with these permissions and this range lets the operation be."""
    _, _, _, _, keys, needs, _ = op
    return needs is not None and set(needs) <= set(sp) and (keys is None or inside(*keys))


def judge(client, name, op, may, inside, sv, context):
    """Sends it and compares; a query is answered with what lies in the range.  To read a row
    outside of it is answered as if it were not there."""
    method, path, body, headers, keys, _, done = op
    answer = client.request(method, path, body, headers)
    if not may:
        unseen = sv < "2015-04-05" or name.startswith("get")
        assert answer.status in ((403, 404) if unseen else (403,)), (context, name, answer)
        assert b"secret" not in answer.body, (context, name, answer)
        return
    assert answer.status == done, (context, name, answer)
    if keys is None:
        rows = [(r["PartitionKey"], r["RowKey"]) for r in answer.rows]
        wanted = {"find in": [INSIDE], "find out": [OUTSIDE]}.get(name, [INSIDE, OUTSIDE])
        assert rows == [k for k in wanted if inside(*k)], (context, name, rows)


@pytest.fixture
def two_rows(rest, tab):
    for pk, rk in (INSIDE, OUTSIDE):
        ok(rest.upsert(tab, pk, rk, {"A": "secret"}), 204)
    return tab


def state(client, tab):
    return [(r["PartitionKey"], r["RowKey"], r["A"]) for r in client.all(tab)]


@pytest.mark.parametrize("sv", VERSIONS)
def test_R9_every_permission_with_every_range_and_operation(rest, two_rows, sv):
    tab, ops = two_rows, operations(two_rows)
    for sp, name in itertools.product(PERMISSIONS, RANGES):
        limits, inside = RANGES[name]
        fields = table_sas_fields(ACCOUNT, KEY, tab, sv=sv, sp=sp, se=iso(600), **limits)
        before, changes = state(rest, tab), False
        with rest.clone(sas=encode_fields(fields)) as c:
            for op in ops:
                may = allowed(ops[op], sp, inside)
                changes = changes or (may and ops[op][6] == 204)
                judge(c, op, ops[op], may, inside, sv, (sp, name))
            # Whether there is a row tells nobody who may not read it.
            if not inside(*OUTSIDE) or "r" not in sp:
                there, not_there = (c.get(tab, OUTSIDE[0], rk) for rk in (OUTSIDE[1], "none"))
                assert (there.status, there.code) == (not_there.status, not_there.code)
        if not changes:
            assert state(rest, tab) == before, (sp, name)
        else:
            for pk, rk in (INSIDE, OUTSIDE):
                ok(rest.upsert(tab, pk, rk, {"A": "secret"}), 204)


@pytest.mark.parametrize("sv", VERSIONS)
def test_R9_every_time_with_every_policy(rest, two_rows, sv):
    """Start, expiry and permissions, each in the token, in its policy, in both, in neither."""
    tab, ops = two_rows, operations(two_rows)
    for when, sp in itertools.product(TIMES, ("r", "ad")):
        start, expiry, holds = TIMES[when]
        terms = {"st": iso(start), "se": iso(expiry), "sp": sp}
        tags = {"st": "Start", "se": "Expiry", "sp": "Permission"}
        for places in itertools.product(("token", "policy", "both", "neither"), repeat=3):
            where = dict(zip(terms, places))
            stored = "".join(f"<{tags[t]}>{v}</{tags[t]}>" for t, v in terms.items()
                             if where[t] in ("policy", "both"))
            ok(rest.request("PUT", f"{tab}?comp=acl",
                            "<SignedIdentifiers><SignedIdentifier><Id>a</Id><AccessPolicy>"
                            f"{stored}</AccessPolicy></SignedIdentifier></SignedIdentifiers>"),
               204)
            given = {t: v for t, v in terms.items() if where[t] in ("token", "both")}
            good = ("both" not in places and where["se"] != "neither" and
                    where["sp"] != "neither")
            # Without a start it has begun.
            in_time = holds or (where["st"] == "neither" and expiry > 0)
            with rest.clone(sas=encode_fields(
                    table_sas_fields(ACCOUNT, KEY, tab, sv=sv, si="a", **given))) as c:
                for op in ("get in", "insert in"):
                    may = good and in_time and allowed(ops[op], sp, lambda *_: True)
                    judge(c, op, ops[op], may, lambda *_: True, sv, (when, where))
    assert state(rest, tab) == [(*INSIDE, "secret"), (*OUTSIDE, "secret")]


def test_R9_one_second_on_each_side_of_a_tokens_time(rest, two_rows):
    """Seconds are what tokens have: one that ends now is not valid any more."""
    ops = operations(two_rows)
    for start, expiry, may in ((-1, 30, True), (30, 60, False), (-30, -1, False), (-30, 0, False),
                               (-30, 30, True)):
        for kind in ("table", "account"):
            times = {"st": iso(start), "se": iso(expiry)}
            fields = (table_sas_fields(ACCOUNT, KEY, two_rows, sp="r", **times)
                      if kind == "table" else account_sas_fields(ACCOUNT, KEY, sp="r", **times))
            with rest.clone(sas=encode_fields(fields)) as c:
                judge(c, "get in", ops["get in"], may, lambda *_: True, "2019-02-02",
                      (kind, start, expiry))


@pytest.mark.parametrize("scheme", ["lite", "full"])
def test_R9_signatures_replayed(rest, two_rows, scheme):
    """The window of 15 minutes on both sides, and a recorded request for anything else."""
    path = entity_path(two_rows, *INSIDE)
    for offset, status in ((-890, 200), (890, 200), (-910, 403), (910, 403), (-10 ** 8, 403),
                           (10 ** 8, 403)):
        assert rest.request("GET", path, headers={"x-ms-date": now(offset)},
                            sign=scheme).status == status, offset
    signed = rest.headers_for("GET", rest.target(path), None, {}, scheme)
    keep = {k: signed[k] for k in ("x-ms-date", "authorization")}
    ok(rest.request("GET", path, headers=keep), 200)
    # The same signature with another date, resource or account; Lite leaves the method out.
    for method, other, headers in (
            ("GET", path, {"x-ms-date": now(-1)}),
            ("GET", entity_path(two_rows, *OUTSIDE), {}),
            ("GET", f"{two_rows}()", {}), ("GET", "Tables", {}),
            ("GET", f"{two_rows}?comp=acl", {}),
            ("GET", f"/{OTHER_ACCOUNT}/{path}", {}),
            ("GET", path, {"authorization": keep["authorization"].replace(ACCOUNT,
                                                                          OTHER_ACCOUNT)})):
        answer = rest.request(method, other, headers={**keep, **headers})
        assert answer.status == 403, (method, other, answer)
    if scheme == "full":
        for method in ("DELETE", "PUT", "POST"):
            body = {} if method != "DELETE" else None
            assert rest.request(method, path, body, {**keep, "If-Match": "*"}).status in (
                403, 405)
    assert state(rest, two_rows) == [(*INSIDE, "secret"), (*OUTSIDE, "secret")]


# ---- other accounts


@pytest.fixture
def neighbour(rest, tab):
    """A table of the same name in the other account, with a secret row."""
    with rest.clone(account=OTHER_ACCOUNT, key=OTHER_KEY) as other:
        ok(other.create_table(tab), 201)
        ok(other.upsert(tab, *INSIDE, {"A": "secret"}), 204)
        ok(rest.upsert(tab, *INSIDE, {"A": "mine"}), 204)
        yield other
        assert state(other, tab) == [(*INSIDE, "secret")], "the neighbour's data was changed"


def spellings(tab):
    """Paths that somebody could take for the other account's row, or table list."""
    row = f"{tab}(PartitionKey='m',RowKey='5')"
    for rest_of in (row, f"{tab}()", "Tables", f"{tab}?comp=acl"):
        yield f"/{OTHER_ACCOUNT}/{rest_of}"
        for up in ("..", "%2e%2e", "%2E.", ".%2e", "..%2f", "%2e%2e%2f", "..;", "..%00", "..%5c",
                   "%252e%252e", "....//"):
            yield f"/{ACCOUNT}/{up}/{OTHER_ACCOUNT}/{rest_of}"
            yield f"/{ACCOUNT}/{tab}/{up}/{up}/{OTHER_ACCOUNT}/{rest_of}"
        yield f"/{ACCOUNT}/../{OTHER_ACCOUNT}/{rest_of}"
        yield f"/{ACCOUNT}%2f..%2f{OTHER_ACCOUNT}/{rest_of}"
        yield f"/{ACCOUNT}%2f{OTHER_ACCOUNT}/{rest_of}"
        yield f"//{OTHER_ACCOUNT}/{rest_of}"
        yield f"/./{OTHER_ACCOUNT}/{rest_of}"
        yield f"/{OTHER_ACCOUNT.upper()}/{rest_of}"
        yield f"/%6fther/{rest_of}"
        yield f"/{OTHER_ACCOUNT}-secondary/{rest_of}"
        yield f"/{ACCOUNT}/{OTHER_ACCOUNT}/{rest_of}"
        yield f"/{ACCOUNT}-secondary/{OTHER_ACCOUNT}/{rest_of}"
        yield f"http://{OTHER_ACCOUNT}.table.localhost/{rest_of}"
        yield f"http://localhost/{OTHER_ACCOUNT}/{rest_of}"
    for key in ("../other", "..%2fother", "%2e%2e%2f%2e%2e%2fother", "..%5cother"):
        yield f"/{ACCOUNT}/{tab}(PartitionKey='{key}',RowKey='5')"
        yield f"/{ACCOUNT}/Tables('{key}')"


def test_R9_no_spelling_leads_to_another_account(rest, tab, neighbour):
    """Signed with our key for both our account and theirs, over the path as it is sent, and
    with tokens of ours."""
    tokens = [encode_fields(table_sas_fields(ACCOUNT, KEY, tab, sp="raud", se=iso(600))),
              encode_fields(account_sas_fields(ACCOUNT, KEY))]
    tried = 0
    for path in spellings(tab):
        for host in (None, f"{ACCOUNT}.table.localhost", f"{OTHER_ACCOUNT}.table.localhost"):
            for account in (ACCOUNT, OTHER_ACCOUNT):
                headers = {"x-ms-date": now()}
                if host:
                    headers["host"] = host
                target = path if path.startswith("/") else path[path.index("/", 7):]
                text = f"{headers['x-ms-date']}\n{canonical_resource(account, target)}"
                headers["authorization"] = f"SharedKeyLite {account}:{sign(KEY, text)}"
                answer = rest.request("GET", path, headers=headers)
                assert b"secret" not in answer.body, (path, host, account, answer)
                tried += 1
            for token in tokens:
                with rest.clone(sign=None) as c:
                    answer = c.request("GET", f"{path}{'&' if '?' in path else '?'}{token}",
                                       headers={"host": host} if host else {})
                assert b"secret" not in answer.body, (path, host, answer)
                tried += 1
    assert tried > 1000


def test_R9_a_batch_reaches_no_further_than_its_credential(rest, tab, neighbour):
    """Parts with URIs of another account, another host, another table; each refused, or taken
    for ours by what it says of the table alone, but never done to the neighbour."""
    ok(rest.create_table(tab + "b"), 201)
    row = entity_path(tab, *INSIDE)
    elsewhere = [lambda p: f"http://127.0.0.1/{OTHER_ACCOUNT}/{p}",
                 lambda p: f"http://{OTHER_ACCOUNT}.table.localhost/{p}",
                 lambda p: f"/{OTHER_ACCOUNT}/{p}", lambda p: f"../{OTHER_ACCOUNT}/{p}",
                 lambda p: f"/{ACCOUNT}/../{OTHER_ACCOUNT}/{p}",
                 lambda p: f"http://127.0.0.1/{ACCOUNT}/%2e%2e/{OTHER_ACCOUNT}/{p}",
                 lambda p: f"//{OTHER_ACCOUNT}/{p}"]
    for target in elsewhere:
        for op in (("PUT", row, {}, {"A": "stolen"}), ("DELETE", row, {"If-Match": "*"}, None)):
            rest.batch([op], target=target)
            ok(rest.upsert(tab, *INSIDE, {"A": "mine"}), 204)
        answer = rest.batch([("GET", row, {}, None)], change_set=False, target=target)
        assert b"secret" not in answer.body, answer
    # A token for one table, and a part about another one of the same account.
    for fields in (table_sas_fields(ACCOUNT, KEY, tab + "b", sp="raud", se=iso(600)),
                   table_sas_fields(ACCOUNT, KEY, tab, sp="raud", se=iso(600), spk="x", epk="z"),
                   table_sas_fields(OTHER_ACCOUNT, OTHER_KEY, tab, sp="raud", se=iso(600))):
        with rest.clone(sas=encode_fields(fields)) as c:
            for op in (("PUT", row, {}, {"A": "stolen"}),
                       ("MERGE", row, {"If-Match": "*"}, {"A": "stolen"}),
                       ("DELETE", row, {"If-Match": "*"}, None)):
                answer = c.batch([op])
                statuses = ([p.status for p in parse_batch(answer)] if answer.status == 202
                            else [answer.status])
                assert set(statuses) <= {403, 404}, answer
            answer = c.batch([("GET", row, {}, None)], change_set=False)
            assert b"mine" not in answer.body, answer
    assert state(rest, tab) == [(*INSIDE, "mine")]


def test_R9_a_batch_that_mixes_what_is_allowed_with_what_is_not_does_nothing(rest, tab):
    fields = table_sas_fields(ACCOUNT, KEY, tab, sp="a", se=iso(600), spk="m", srk="1", epk="m",
                              erk="5")
    good = [("POST", tab, {}, {"PartitionKey": "m", "RowKey": rk}) for rk in "123"]
    bad = [("POST", tab, {}, {"PartitionKey": "m", "RowKey": "6"}),
           ("PUT", entity_path(tab, "m", "4"), {}, {"A": 1}),
           ("DELETE", entity_path(tab, "m", "4"), {"If-Match": "*"}, None),
           ("POST", tab + "b", {}, {"PartitionKey": "m", "RowKey": "4"})]
    with rest.clone(sas=encode_fields(fields)) as c:
        for one in bad:
            for at in range(4):
                c.batch(good[:at] + [one] + good[at:])
                assert rest.all(tab) == [], (one, at)
        assert [p.status for p in parse_batch(c.batch(good))] == [201] * 3


def test_R9_continuation_tokens_of_others_lead_nowhere(rest, tab, neighbour):
    """A position from the neighbour's listing, or an invented one, only ever leads into what
    the credential gives."""
    for i in range(5):
        ok(rest.upsert(tab, "m", f"{i}", {"A": "mine"}), 204)
        ok(neighbour.upsert(tab, "n", f"{i}", {"A": "secret"}), 204)
    token = ok(neighbour.query(tab, top=2), 200).token
    values = [token, {"NextPartitionKey": "1!8!Li4vb3RoZXI-", "NextRowKey": "1!4!NQ--"},
              {"NextPartitionKey": "../other", "NextRowKey": "5"},
              {"NextTableName": f"1!{len(tab)}!../other"}]
    fields = table_sas_fields(ACCOUNT, KEY, tab, sp="r", se=iso(600), spk="m", srk="1", epk="m",
                              erk="3")
    for value in values:
        assert b"secret" not in rest.query(tab, **value).body, value
        with rest.clone(sas=encode_fields(fields)) as c:
            answer = c.query(tab, **value)
            assert answer.status in (200, 400), answer
            if answer.status == 200:
                assert {r["RowKey"] for r in answer.rows} <= set("123"), answer
    for i in range(5):
        ok(neighbour.delete(tab, "n", f"{i}"), 204)
