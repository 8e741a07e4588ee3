# SPDX-License-Identifier: MIT
"""The XML operations over the REST socket (access policies, service properties, statistics)
and CORS."""

import re
import xml.etree.ElementTree as ET

import pytest

from conftest import OTHER_ACCOUNT, OTHER_KEY
from rest_client import ACCOUNT, Client, entity_path, fails, ok

PROPERTIES = "?restype=service&comp=properties"
BAD_XML = ("InvalidXmlDocument", "InvalidInput", "InvalidXmlNodeValue", "UnsupportedXmlNode",
           "MissingRequiredXmlNode")
NOT_CORS = "CORS not enabled or no matching rule found for this request."


def xml(answer):
    assert answer.headers["Content-Type"] == "application/xml", answer.headers["Content-Type"]
    assert answer.headers["Cache-Control"] is None
    return ET.fromstring(answer.body.decode("utf-8-sig"))


# ---- access policies


def acl(*policies):
    out = []
    for id_, start, expiry, permission in policies:
        inner = "".join(f"<{t}>{v}</{t}>" for t, v in (
            ("Start", start), ("Expiry", expiry), ("Permission", permission)) if v is not None)
        inner = f"<AccessPolicy>{inner}</AccessPolicy>" if inner else ""
        out.append(f"<SignedIdentifier><Id>{id_}</Id>{inner}</SignedIdentifier>")
    return ('<?xml version="1.0" encoding="utf-8"?><SignedIdentifiers>' + "".join(out)
            + "</SignedIdentifiers>")


def stored(rest, tab):
    root = xml(ok(rest.request("GET", f"{tab}?comp=acl"), 200))
    assert root.tag == "SignedIdentifiers"
    found = []
    for s in root:
        assert s.tag == "SignedIdentifier"
        policy = s.find("AccessPolicy")
        get = lambda t: None if policy is None or policy.find(t) is None else policy.find(t).text
        found.append((s.find("Id").text, get("Start"), get("Expiry"), get("Permission")))
    return found


def same_time(a, b):
    def ticks(t):
        found = re.fullmatch(r"(\d{4}-\d\d-\d\d)(?:T(\d\d:\d\d)(?::(\d\d)(?:\.(\d{1,7}))?)?Z)?", t)
        assert found, t
        return (found[1], found[2] or "00:00", found[3] or "00", (found[4] or "").ljust(7, "0"))
    return a == b or a is not None and b is not None and ticks(a) == ticks(b)


def test_R10_access_policies(rest, tab):
    assert stored(rest, tab) == []
    sent = [("a", "2013-11-26T08:49:37.0000000Z", "2013-11-27T08:49:37.0000000Z", "raud"),
            ("b", None, "2035-01-01T00:00:00Z", "r"), ("c", None, None, None),
            ("d" * 64, "2013-11-26", None, None), ("é&amp;&lt;", None, None, "ra")]
    answer = ok(rest.request("PUT", f"{tab}?comp=acl", acl(*sent)), 204)
    assert answer.body == b"" and answer.headers["Content-Length"] == "0"
    have = stored(rest, tab)
    assert [h[0] for h in have] == ["a", "b", "c", "d" * 64, "é&<"]
    for h, s in zip(have, sent):
        assert same_time(h[1], s[1]) and same_time(h[2], s[2])
        assert h[3] == s[3] or sorted(h[3]) == sorted(s[3])
    # Everything is replaced.
    ok(rest.request("PUT", f"{tab}?comp=acl", acl(("z", None, None, "r"))), 204)
    assert [h[0] for h in stored(rest, tab)] == ["z"]
    for empty in ("", "<SignedIdentifiers/>", acl()):
        ok(rest.request("PUT", f"{tab}?comp=acl", acl(("z", None, None, "r"))), 204)
        ok(rest.request("PUT", f"{tab}?comp=acl", empty), 204)
        assert stored(rest, tab) == []
    head = rest.request("HEAD", f"{tab}?comp=acl")
    assert head.status == 200 and head.body == b""


@pytest.mark.parametrize("text", [
    '\ufeff<?xml version="1.0" encoding="utf-8"?><SignedIdentifiers/>',
    "<!-- a comment --><SignedIdentifiers> \n </SignedIdentifiers>",
    "<SignedIdentifiers><SignedIdentifier><Id>x</Id><AccessPolicy/></SignedIdentifier>"
    "</SignedIdentifiers>",
    "<SignedIdentifiers><SignedIdentifier><Id>y</Id><AccessPolicy><Permission>dura</Permission>"
    "</AccessPolicy></SignedIdentifier></SignedIdentifiers>",
], ids=["bom", "comment", "empty policy", "letters in another order"])
def test_spellings_of_an_acl(rest, tab, text):
    ok(rest.request("PUT", f"{tab}?comp=acl", text), 204)


@pytest.mark.parametrize("text", [
    acl(*((f"p{i}", None, None, "r") for i in range(6))), acl(("a", None, None, "r"),
                                                              ("a", None, None, "r")),
    acl(("x" * 65, None, None, "r")), acl(("", None, None, "r")),
    acl(("a", "yesterday", None, "r")), acl(("a", None, "2013-13-01", "r")),
    acl(("a", None, None, "x")), acl(("a", None, None, "rw")), "<SignedIdentifiers>",
    "<Other/>", "x", "<SignedIdentifiers></Other>", "{}", "<SignedIdentifiers/><x/>",
    "<SignedIdentifiers><SignedIdentifier/></SignedIdentifiers>",
    '<!DOCTYPE a [<!ENTITY e "x">]><SignedIdentifiers/>',
    '<!DOCTYPE a [<!ENTITY e SYSTEM "file:///etc/passwd">]><SignedIdentifiers>'
    "<SignedIdentifier><Id>&e;</Id></SignedIdentifier></SignedIdentifiers>",
    "<SignedIdentifiers><SignedIdentifier><Id>&e;</Id></SignedIdentifier></SignedIdentifiers>",
    "<SignedIdentifiers>\0</SignedIdentifiers>", "<a>" * 10000,
], ids=lambda t: t[:40].replace("\0", "0"))
def test_R10_access_policies_that_are_refused(rest, tab, text):
    ok(rest.request("PUT", f"{tab}?comp=acl", acl(("kept", None, None, "r"))), 204)
    answer = rest.request("PUT", f"{tab}?comp=acl", text)
    fails(answer, 400, BAD_XML)
    assert answer.body.lstrip(b"\xef\xbb\xbf").startswith(b"<?xml")
    assert [h[0] for h in stored(rest, tab)] == ["kept"]


def test_a_billion_laughs(rest, tab):
    text = '<!DOCTYPE a [<!ENTITY a0 "ha">' + "".join(
        f'<!ENTITY a{i} "{f"&a{i - 1};" * 10}">' for i in range(1, 12)) + (
        "]><SignedIdentifiers><SignedIdentifier><Id>&a11;</Id></SignedIdentifier>"
        "</SignedIdentifiers>")
    fails(rest.request("PUT", f"{tab}?comp=acl", text), 400, BAD_XML)


def test_the_acl_of_no_table(rest):
    for method, body in (("GET", None), ("PUT", "<SignedIdentifiers/>")):
        answer = fails(rest.request(method, "nosuch?comp=acl", body), 404, "TableNotFound",
                       "The table specified does not exist.")
        assert answer.headers["Content-Type"].startswith("application/xml")
        assert answer.body.lstrip(b"\xef\xbb\xbf").startswith(b"<?xml")
        ET.fromstring(answer.body.decode("utf-8-sig"))


@pytest.mark.parametrize("accept", ["application/atom+xml,application/xml", "application/json",
                                    "*/*", None])
@pytest.mark.parametrize("version", ["2012-02-12", "2018-03-28", "2021-12-02"])
def test_R10_xml_is_outside_negotiation(rest, tab, accept, version):
    headers = {"Accept": accept, "x-ms-version": version}
    xml(ok(rest.request("GET", f"{tab}?comp=acl", headers=headers), 200))
    xml(ok(rest.request("GET", PROPERTIES, headers=headers), 200))
    ok(rest.request("PUT", f"{tab}?comp=acl", acl(), {
        **headers, "Content-Type": "application/xml"}), 204)


# ---- service properties


@pytest.fixture
def fresh(serve, rest_store):
    """A client of a server of its own, whose properties nobody has set."""
    with Client(serve(rest_store).port) as client:
        yield client


RETENTION = "<RetentionPolicy><Enabled>true</Enabled><Days>5</Days></RetentionPolicy>"
NO_RETENTION = "<RetentionPolicy><Enabled>false</Enabled></RetentionPolicy>"
LOGGING = ("<Logging><Version>1.0</Version><Read>true</Read><Write>true</Write>"
           f"<Delete>true</Delete>{RETENTION}</Logging>")
HOUR = ("<HourMetrics><Version>1.0</Version><Enabled>true</Enabled><IncludeAPIs>false"
        f"</IncludeAPIs>{RETENTION}</HourMetrics>")
MINUTE = ("<MinuteMetrics><Version>1.0</Version><Enabled>false</Enabled>"
          f"{NO_RETENTION}</MinuteMetrics>")


def rule(origins="http://a.example", methods="GET", age="10", exposed="x-ms-*", headers="*"):
    return (f"<CorsRule><AllowedOrigins>{origins}</AllowedOrigins><AllowedMethods>{methods}"
            f"</AllowedMethods><MaxAgeInSeconds>{age}</MaxAgeInSeconds><ExposedHeaders>{exposed}"
            f"</ExposedHeaders><AllowedHeaders>{headers}</AllowedHeaders></CorsRule>")


def document(*parts):
    return ('<?xml version="1.0" encoding="utf-8"?><StorageServiceProperties>'
            + "".join(parts) + "</StorageServiceProperties>")


def cors(*rules):
    return document("<Cors>" + "".join(rules) + "</Cors>")


def properties(client):
    return xml(ok(client.request("GET", PROPERTIES), 200))


def texts(element):
    return [(e.tag, (e.text or "").strip()) for e in element.iter()]


def test_R10_the_default_properties(fresh):
    root = properties(fresh)
    assert root.tag == "StorageServiceProperties"
    assert [e.tag for e in root] == ["Logging", "HourMetrics", "MinuteMetrics", "Cors"]
    assert texts(root.find("Logging")) == [
        ("Logging", ""), ("Version", "1.0"), ("Read", "false"), ("Write", "false"),
        ("Delete", "false"), ("RetentionPolicy", ""), ("Enabled", "false")]
    assert texts(root.find("HourMetrics")) == [
        ("HourMetrics", ""), ("Version", "1.0"), ("Enabled", "true"), ("IncludeAPIs", "true"),
        ("RetentionPolicy", ""), ("Enabled", "true"), ("Days", "7")]
    assert texts(root.find("MinuteMetrics")) == [
        ("MinuteMetrics", ""), ("Version", "1.0"), ("Enabled", "false"),
        ("RetentionPolicy", ""), ("Enabled", "false")]
    assert list(root.find("Cors")) == []
    old = ok(fresh.request("GET", PROPERTIES, headers={"x-ms-version": "2012-02-12"}), 200)
    assert [e.tag for e in xml(old)] == ["Logging", "Metrics"]


def test_R10_properties_are_kept_part_by_part(fresh, rowfs):
    def put(*parts):
        answer = ok(fresh.request("PUT", PROPERTIES, document(*parts)), 202)
        assert answer.body == b""

    put(LOGGING, HOUR, MINUTE, "<Cors>" + rule() + "</Cors>")
    root = properties(fresh)
    wanted = ET.fromstring(document(LOGGING, HOUR, MINUTE, "<Cors>" + rule() + "</Cors>"))
    for part in ("Logging", "HourMetrics", "MinuteMetrics", "Cors"):
        assert texts(root.find(part)) == texts(wanted.find(part))
    # What is left out stays; the order is free.
    put("<Cors>" + rule("*", "GET,PUT") + "</Cors>", LOGGING.replace("true", "false", 1))
    root = properties(fresh)
    assert root.find("Logging/Read").text == "false" and root.find("Logging/Write").text == "true"
    assert texts(root.find("HourMetrics")) == texts(wanted.find("HourMetrics"))
    assert [r.find("AllowedOrigins").text for r in root.find("Cors")] == ["*"]
    put("<Cors/>")
    assert list(properties(fresh).find("Cors")) == []
    assert properties(fresh).find("Logging/Write").text == "true"
    # They are the account's.
    with fresh.clone(account=OTHER_ACCOUNT, key=OTHER_KEY) as other:
        assert properties(other).find("Logging/Write").text == "false"


def test_properties_are_there_after_a_restart(serve, rest_store):
    server = serve(rest_store)
    with Client(server.port) as c:
        ok(c.request("PUT", PROPERTIES, document(LOGGING)), 202)
    server.restart()
    with Client(server.port) as c:
        assert properties(c).find("Logging/Read").text == "true"


@pytest.mark.parametrize("text", [
    "", document(), "<StorageServiceProperties/>", "<Other/>", "x", "{}", document("<Logging/>"),
    document(LOGGING.replace("1.0", "7.3")), document(LOGGING.replace("<Read>true</Read>", "")),
    document(LOGGING.replace("<Read>true", "<Read>maybe")),
    document(LOGGING.replace("<Days>5", "<Days>0")),
    document(LOGGING.replace("<Days>5", "<Days>366")),
    document(LOGGING.replace("<Days>5", "<Days>x")),
    document(LOGGING.replace("<Days>5</Days>", "")),
    document(LOGGING.replace(RETENTION, "")),
    document(HOUR.replace("<Enabled>true</Enabled>", "", 1)),
    document("<Nonsense/>"), document(LOGGING, LOGGING), document(LOGGING)[:-1],
    cors(*(rule() for _ in range(6))),
    cors(rule().replace("<AllowedMethods>GET</AllowedMethods>", "")),
    cors(rule(methods="BREW")), cors(rule(age="x")),
    cors(rule(age="-1")), cors(rule(origins=",".join(f"http://h{i}" for i in range(65)))),
    cors(rule(origins="http://" + "x" * 300)),
    cors(rule(headers=",".join(f"h{i}" for i in range(65)))),
    cors(rule(headers="a*,b*,c*")), cors(rule(headers="x" * 257)),
    cors(*(rule(origins="http://" + "x" * 200, headers=",".join(f"{c * 100}" for c in "abcd"))
           for _ in range(4))),
    '<!DOCTYPE a [<!ENTITY e SYSTEM "file:///etc/passwd">]>' + document(LOGGING)[38:],
], ids=lambda t: t[55:90])
def test_R10_properties_that_are_refused(rest, text):
    before = ok(rest.request("GET", PROPERTIES), 200).body
    answer = fails(rest.request("PUT", PROPERTIES, text), 400, BAD_XML)
    ET.fromstring(answer.body.decode("utf-8-sig"))
    assert ok(rest.request("GET", PROPERTIES), 200).body == before


def test_limits_of_cors_from_below(fresh):
    ok(fresh.request("PUT", PROPERTIES, cors(*(rule(f"http://h{i}") for i in range(5)))), 202)
    ok(fresh.request("PUT", PROPERTIES, cors(rule(
        "http://" + "x" * 240, "DELETE,GET,HEAD,MERGE,POST,OPTIONS,PUT", "0", "", ""))), 202)
    ok(fresh.request("PUT", PROPERTIES, cors(rule(headers="a*,b*,c,d"))), 202)


def test_statistics(rest):
    for path in ("?restype=service&comp=stats", f"/{ACCOUNT}-secondary/?restype=service&comp=stats",
                 f"/{ACCOUNT}-secondary/{ACCOUNT}/?restype=service&comp=stats"):
        root = xml(ok(rest.request("GET", path), 200))
        assert root.tag == "StorageServiceStats"
        assert root.find("GeoReplication/Status").text == "live"
        assert re.fullmatch(r"\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT",
                            root.find("GeoReplication/LastSyncTime").text)
    assert rest.request("PUT", "?restype=service&comp=stats", "<x/>").status in (400, 405)


@pytest.mark.parametrize("path", ["?restype=service&comp=nonsense", "?restype=x&comp=properties",
                                  "?comp=properties", "?restype=service", "Tables?comp=acl"])
def test_parameters_that_are_none(rest, path):
    answer = rest.request("GET", path)
    assert answer.status in (200, 400, 404, 405), answer


# ---- CORS


@pytest.fixture(scope="module")
def cors_server(module_server):
    """The second account's rules, and a table with a row."""
    with Client(module_server.port, OTHER_ACCOUNT, OTHER_KEY) as c:
        ok(c.request("PUT", PROPERTIES, cors(
            rule("http://a.example,http://b.example", "GET,PUT", "200",
                 "x-ms-request-id,etag,x-ms-meta*",
                 "x-ms-*,content-type,Accept"),
            rule("http://a.example", "DELETE", "5", "", ""),
            rule("http://c.example", "GET,MERGE,POST", "0", "*", "*"),
            rule("http://a.example", "POST", "7", "x-ms-version", "*"))), 202)
        ok(c.create_table("Cors"), 201)
        ok(c.insert("Cors", {"PartitionKey": "p", "RowKey": "r"}), 201)
    return module_server


@pytest.fixture
def browser(cors_server, rest):
    with Client(rest.port, OTHER_ACCOUNT, OTHER_KEY) as c:
        yield c


def preflight(c, origin, method, headers=None, path="Cors()"):
    sent = {"Origin": origin, "Access-Control-Request-Method": method,
            "Access-Control-Request-Headers": headers}
    return c.request("OPTIONS", path, headers=sent, sign=None)


@pytest.mark.parametrize("origin, method, headers, age", [
    ("http://a.example", "GET", None, "200"),
    ("http://b.example", "PUT", "x-ms-version,X-MS-Date,content-type", "200"),
    ("http://a.example", "GET", "ACCEPT", "200"),
    ("http://a.example", "DELETE", None, "5"),
    ("http://c.example", "MERGE", "anything,else", "0"),
    ("http://a.example", "POST", "anything", "7"),
])
def test_R10_preflight(browser, origin, method, headers, age):
    for path in ("Cors()", "", "Tables", entity_path("Cors", "p", "r"), "nosuch", "$batch"):
        answer = ok(preflight(browser, origin, method, headers, path), 200)
        assert answer.headers["Access-Control-Allow-Origin"] == origin
        assert answer.headers["Access-Control-Allow-Methods"] == method
        assert answer.headers["Access-Control-Allow-Headers"] == headers
        assert answer.headers["Access-Control-Max-Age"] == age
        assert answer.headers["Access-Control-Allow-Credentials"] == "true"
        assert answer.headers["x-ms-request-id"] and answer.body == b""


@pytest.mark.parametrize("origin, method, headers", [
    ("http://z.example", "GET", None), ("http://A.example", "GET", None),
    ("http://a.example", "MERGE", None), ("http://a.example", "GET", "authorization"),
    # The first rule whose origin and method match decides, also where a later one would do.
    ("http://a.example", "DELETE", "x-ms-version"), ("http://b.example", "POST", None),
    ("http://a.example", "BREW", None), ("null", "GET", None), ("http://a.example:80", "GET", None),
])
def test_R10_preflight_refused(browser, origin, method, headers):
    answer = fails(preflight(browser, origin, method, headers), 403, "CorsPreflightFailure",
                   NOT_CORS)
    assert answer.headers["Access-Control-Allow-Origin"] is None


def test_preflight_without_its_headers(browser, rest):
    for headers in ({}, {"Origin": "http://a.example"}, {"Access-Control-Request-Method": "GET"}):
        fails(browser.request("OPTIONS", "Cors()", headers=headers, sign=None), 400,
              "InvalidHeaderValue", "A required CORS header is not present.")
    # No rules at all; and an account that is not there.
    fails(preflight(rest, "http://a.example", "GET"), 403, "CorsPreflightFailure", NOT_CORS)
    answer = browser.request("OPTIONS", "/nosuch/Tables", sign=None, headers={
        "Origin": "http://a.example", "Access-Control-Request-Method": "GET"})
    fails(answer, (403, 404), ("CorsPreflightFailure", "ResourceNotFound"))


def test_R10_actual_requests(browser, rest):
    answer = ok(browser.request("GET", "Cors()", headers={"Origin": "http://a.example"}), 200)
    assert answer.headers["Access-Control-Allow-Origin"] == "http://a.example"
    assert answer.headers["Access-Control-Allow-Credentials"] == "true"
    exposed = answer.headers["Access-Control-Expose-Headers"].lower().split(",")
    assert {"x-ms-request-id", "etag"} <= {e.strip() for e in exposed}
    assert answer.headers["Vary"] == "Origin"
    # Never fails for the sake of CORS, and says nothing then; errors have the headers too.
    answer = ok(browser.request("GET", "Cors()", headers={"Origin": "http://z.example"}), 200)
    assert answer.headers["Access-Control-Allow-Origin"] is None
    assert answer.headers["Vary"] == "Origin"
    answer = fails(browser.request("GET", "nosuch()", headers={"Origin": "http://a.example"}),
                   404, "TableNotFound")
    assert answer.headers["Access-Control-Allow-Origin"] == "http://a.example"
    answer = browser.change("PUT", "Cors", "p", "r", {"A": 1}, headers={
        "Origin": "http://a.example"})
    assert ok(answer, 204).headers["Vary"] is None
    assert answer.headers["Access-Control-Allow-Origin"] == "http://a.example"
    answer = ok(rest.request("GET", "Tables", headers={"Origin": "http://a.example"}), 200)
    assert answer.headers["Access-Control-Allow-Origin"] is None
    assert answer.headers["Vary"] is None


VARY = [
    # Origin sent, rules; then Vary, Allow-Origin, Expose-Headers
    (None, None, None, None, False),
    (None, "exact", "Origin", None, False),
    (None, "star", None, "*", True),
    ("http://a.example", None, None, None, False),
    ("http://a.example", "exact", "Origin", "http://a.example", True),
    ("http://z.example", "exact", "Origin", None, False),
    ("http://a.example", "star", None, "*", True),
]


@pytest.mark.parametrize("origin, rules, vary, allowed, exposes", VARY)
def test_R10_vary(fresh, origin, rules, vary, allowed, exposes):
    if rules:
        ok(fresh.request("PUT", PROPERTIES, cors(rule(
            "*" if rules == "star" else "http://a.example", "GET,HEAD,POST", exposed="etag"))),
            202)
    answer = ok(fresh.request("GET", "Tables", headers={"Origin": origin}), 200)
    assert answer.headers["Vary"] == vary
    assert answer.headers["Access-Control-Allow-Origin"] == allowed
    assert (answer.headers["Access-Control-Expose-Headers"] is not None) == exposes
    if allowed != "http://a.example":
        assert answer.headers["Access-Control-Allow-Credentials"] is None
    answer = ok(fresh.request("POST", "Tables", {"TableName": "Abc"}, {"Origin": origin}), 201)
    assert answer.headers["Vary"] is None


def test_a_rule_with_a_star(fresh):
    ok(fresh.request("PUT", PROPERTIES, cors(rule("*", "GET", "3", "*", "*"))), 202)
    answer = ok(preflight(fresh, "http://any.example", "GET", "a,b"), 200)
    assert answer.headers["Access-Control-Allow-Origin"] == "*"
    assert answer.headers["Access-Control-Allow-Headers"] == "a,b"
    fails(preflight(fresh, "http://any.example", "PUT"), 403, "CorsPreflightFailure")


def test_preflight_wants_no_credential_and_minds_none(browser):
    for headers in ({"authorization": "nonsense"}, {"authorization": "SharedKey other:AAAA"},
                    {"x-ms-version": None}, {"x-ms-date": None}):
        ok(browser.request("OPTIONS", "Cors()?sv=x&sig=y", sign=None, headers={
            "Origin": "http://a.example", "Access-Control-Request-Method": "GET", **headers}), 200)
