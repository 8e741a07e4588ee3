# SPDX-License-Identifier: MIT
"""ATOM over the REST socket: every operation, in every version that speaks it, with entries as
ADO.NET wrote them and in any other spelling that XML allows."""

import re
import subprocess
import urllib.parse
import xml.etree.ElementTree as ET

import pytest

import atom
import rest_client
from atom import MEDIA, SPELLINGS, Entry, Feed, fails, is_error, read_entry, string, typed
from conftest import ENV
from rest_client import ACCOUNT, entity_path, ok, parse_batch, part_fails
from tools import need

VERSIONS = ["2009-04-14", "2009-09-19", "2011-08-18", "2012-02-12", "2013-08-15", "2015-07-08"]
EXISTS = "The specified entity already exists."
CONDITION = "The update condition specified in the request was not satisfied."
UPDATED = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,7})?Z")
VALUES = {
    "S": string("plain"), "Empty": string(""), "T": ("Edm.Boolean", "true"),
    "F": ("Edm.Boolean", "false"), "I": ("Edm.Int32", "-2147483648"),
    "L": ("Edm.Int64", "9223372036854775807"), "D": ("Edm.Double", "1.5"),
    "W": ("Edm.DateTime", "2008-07-10T00:00:00.1234567Z"),
    "G": ("Edm.Guid", "c9da6455-213d-42c9-9a79-3e9149a57833"), "B": ("Edm.Binary", "AAEC"),
}


@pytest.fixture(params=VERSIONS)
def old(rest, request):
    """A client of each version that speaks ATOM."""
    with atom.Client(rest.port, version=request.param) as client:
        yield client


@pytest.fixture
def one(rest):
    with atom.Client(rest.port, version="2015-07-08") as client:
        yield client


def keys(pk="p", rk="r"):
    return {"PartitionKey": string(pk), "RowKey": string(rk)}


def compared(row):
    return {n: v and typed(*v) for n, v in row.items()}


# ---- each operation


def test_R17_tables(old, rest, tab):
    name = f"{tab}x{old.version.replace('-', '')}"
    made = ok(old.create_table(name), 201)
    assert made.headers["Location"] == f"{old.base()}Tables('{name}')"
    entry = read_entry(made)
    assert entry.row == {"TableName": typed(*string(name))}
    assert (entry.base, entry.id) == (old.base(), f"{old.base()}Tables('{name}')")
    assert (entry.title, entry.href, entry.term) == ("Tables", f"Tables('{name}')",
                                                     f"{ACCOUNT}.Tables")
    assert entry.etag is None and made.headers["ETag"] is None and UPDATED.fullmatch(entry.updated)
    fails(old.create_table(name), 409, "TableAlreadyExists")

    assert read_entry(ok(old.request("GET", f"Tables('{name}')"), 200)).row == entry.row
    feed = Feed(ok(old.tables(filter=f"TableName eq '{name}'"), 200))
    assert (feed.base, feed.title, feed.id) == (old.base(), "Tables", f"{old.base()}Tables")
    assert feed.rows == [entry.row] and UPDATED.fullmatch(feed.updated)
    page = ok(old.tables(top=1), 200)
    assert len(Feed(page).entries) == 1 and list(page.token) == ["NextTableName"]

    assert ok(old.delete_table(name), 204).body == b""
    fails(old.delete_table(name), 404, "ResourceNotFound")
    fails(old.request("GET", f"Tables('{name}')"), 404, "ResourceNotFound")
    assert Feed(ok(old.tables(filter=f"TableName eq '{name}'"), 200)).rows == []


def test_R17_entities(old, tab):
    made = ok(old.insert(tab, {**keys(), **VALUES}), 201)
    where = f"{tab}(PartitionKey='p',RowKey='r')"
    assert made.headers["Location"] == old.base() + where
    entry = read_entry(made)
    assert (entry.base, entry.id) == (old.base(), old.base() + where)
    assert (entry.title, entry.href, entry.term) == (tab, where, f"{ACCOUNT}.{tab}")
    assert entry.etag == made.etag and UPDATED.fullmatch(entry.updated)
    assert entry.own == compared(VALUES)
    assert list(entry.row) == ["PartitionKey", "RowKey", "Timestamp", *VALUES]
    stamp = re.fullmatch(r"W/\"datetime'(.*)'\"", made.etag)[1].replace("%3A", ":")
    assert entry.row["Timestamp"] == ("Edm.DateTime", stamp)
    again = ok(old.get(tab, "p", "r"), 200)
    assert again.etag == made.etag and read_entry(again).row == entry.row
    fails(old.insert(tab, keys()), 409, "EntityAlreadyExists", EXISTS)

    put = ok(old.replace(tab, "p", "r", {**keys(), "A": ("Edm.Int32", "1")}, made.etag), 204)
    assert read_entry(old.get(tab, "p", "r")).own == {"A": ("Edm.Int32", 1)}
    fails(old.replace(tab, "p", "r", {"A": None}, made.etag), 412, "UpdateConditionNotSatisfied",
          CONDITION)
    merged = ok(old.change("MERGE", tab, "p", "r", {"B": string("x"), "A": None}, put.etag), 204)
    assert merged.body == b"" and merged.headers["Content-Type"] is None
    assert read_entry(old.get(tab, "p", "r")).own == {"A": ("Edm.Int32", 1), "B": string("x")}
    fails(old.delete(tab, "p", "r", made.etag), 412, "UpdateConditionNotSatisfied")
    ok(old.delete(tab, "p", "r", merged.etag), 204)
    fails(old.get(tab, "p", "r"), 404, "ResourceNotFound")


def test_R17_feeds_and_their_pages(old, tab):
    for n in range(7):
        ok(old.insert(tab, {**keys(rk=str(n)), "N": ("Edm.Int32", str(n % 3))}), 201)
    whole = Feed(ok(old.query(tab), 200))
    assert (whole.base, whole.title, whole.id) == (old.base(), tab, old.base() + tab)
    assert [e.row["RowKey"][1] for e in whole.entries] == list("0123456")
    for e in whole.entries:
        assert e.id == f"{old.base()}{tab}(PartitionKey='p',RowKey='{e.row['RowKey'][1]}')"
        assert e.etag == old.get(tab, "p", e.row["RowKey"][1]).etag
    some = Feed(ok(old.query(tab, filter="N eq 1"), 200))
    assert [e.row["RowKey"][1] for e in some.entries] == ["1", "4"]
    sizes = []
    for page in old.pages(tab, top=3):
        sizes.append(len(Feed(page).entries))
    assert sizes == [3, 3, 1]
    assert Feed(ok(old.query(tab, filter="N eq 9"), 200)).entries == []
    assert Feed(ok(old.request("GET", tab), 200)).rows == whole.rows
    fails(old.query("nosuch"), 404, "TableNotFound")


def test_R17_selected_properties_that_are_missing(one, tab):
    ok(one.insert(tab, {**keys(), "A": ("Edm.Int32", "1")}), 201)
    ok(one.insert(tab, {**keys(rk="s"), "B": string("x")}), 201)
    for version in ("2011-08-18", "2015-07-08"):
        one.version = version
        feed = Feed(ok(one.query(tab, select="RowKey,A,B"), 200))
        assert [e.row for e in feed.entries] == [
            {"RowKey": string("r"), "A": ("Edm.Int32", 1), "B": None},
            {"RowKey": string("s"), "A": None, "B": string("x")}]
        assert all(e.etag for e in feed.entries)
        assert read_entry(ok(one.get(tab, "p", "r", select="B"), 200)).row == {"B": None}


def test_R17_upserts(one, tab):
    ok(one.upsert(tab, "p", "r", {"A": ("Edm.Int32", "1")}), 204)
    ok(one.upsert_merge(tab, "p", "r", {"B": ("Edm.Int32", "2")}), 204)
    assert read_entry(one.get(tab, "p", "r")).own == {"A": ("Edm.Int32", 1), "B": ("Edm.Int32", 2)}
    ok(one.upsert(tab, "p", "r", {}), 204)
    assert read_entry(one.get(tab, "p", "r")).own == {}


def test_R17_prefer(one, tab):
    none = ok(one.insert(tab, keys(), {"Prefer": "return-no-content"}), 204)
    assert none.headers["Preference-Applied"] == "return-no-content" and none.body == b""
    assert none.headers["DataServiceId"] == none.headers["Location"]
    content = ok(one.insert(tab, keys(rk="s"), {"Prefer": "return-content"}), 201)
    assert read_entry(content).row["RowKey"] == string("s")
    again = fails(one.insert(tab, keys(), {"Prefer": "return-no-content"}), 409,
                  "EntityAlreadyExists")
    assert again.headers["Preference-Applied"] == "return-no-content"


def test_each_answer_in_the_format_that_it_asked_for(one, rest, tab):
    """Body and answer are negotiated by themselves, and so is an error."""
    one.version = "2013-08-15"
    entry = read_entry(one.request("POST", tab, '{"PartitionKey":"p","RowKey":"1","N":1}',
                                   {"Content-Type": "application/json"}))
    assert entry.own == {"N": ("Edm.Int32", 1)}
    made = ok(one.insert(tab, {**keys(rk="2"), "N": ("Edm.Int32", "2")},
                         {"Accept": rest_client.MINIMAL}), 201)
    assert made.json["N"] == 2
    for accept, format_, is_xml in ((MEDIA, None, True), ("application/atom+xml,application/xml",
                                                          None, True),
                                    (None, None, True), ("*/*", None, True),
                                    (rest_client.FULL, None, False), (MEDIA, "json", False),
                                    (rest_client.NONE, "atom", True),
                                    (f"{rest_client.NONE};q=0.1,{MEDIA}", None, True)):
        path = f"{tab}()" + (f"?$format={format_}" if format_ else "")
        answer = ok(one.request("GET", path, headers={"Accept": accept}), 200)
        assert (len(Feed(answer).entries) if is_xml else len(answer.rows)) == 2
        missing = one.request("GET", f"nosuch{path[len(tab):]}", headers={"Accept": accept})
        assert missing.status == 404 and missing.body.startswith(b"<" if is_xml else b"{")
    rest_client.fails(rest.request("GET", tab, headers={"Accept": MEDIA}), 415,
                      "AtomFormatNotSupported")
    rest_client.fails(rest.insert(tab, atom.entry(keys(rk="3")), {"Content-Type": MEDIA}), 415,
                      "AtomFormatNotSupported")


def test_the_service_document(old):
    """One workspace with one collection, in the namespace of the Atom Publishing Protocol."""
    for accept in (MEDIA, "application/atomsvc+xml", "*/*"):
        answer = ok(old.request("GET", "", headers={"Accept": accept}), 200)
        assert answer.headers["Content-Type"] == "application/atomsvc+xml;charset=utf-8"
        head, app = atom.HEAD.encode(), "{http://www.w3.org/2007/app}"
        assert answer.body.startswith(head + b"<service ")
        root = ET.fromstring(answer.body)
        assert root.tag == f"{app}service" and root.attrib == {
            "{http://www.w3.org/XML/1998/namespace}base": old.base()}
        (workspace,) = root
        title, collection = workspace
        assert workspace.tag == f"{app}workspace" and collection.tag == f"{app}collection"
        assert (title.tag, title.text) == (f"{{{atom.ATOM}}}title", "Default")
        assert collection.attrib == {"href": "Tables"}
        (name,) = collection
        assert (name.tag, name.text) == (title.tag, "Tables")


# ---- what is written


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_R17_every_spelling_of_an_entry(one, tab, spelling):
    odd = " a\tb\r\nc\u00e9\U0001f600]]>&amp; "
    row = {**keys("p & <q>", "it's"), **VALUES, "Odd": string(odd), "Null": None}
    ok(one.insert(tab, atom.entry(row, **SPELLINGS[spelling])), 201)
    del row["Null"]
    have = read_entry(ok(one.get(tab, "p & <q>", "it's"), 200)).row
    del have["Timestamp"]
    assert have == compared(row)
    table = f"{tab}t"
    ok(one.request("POST", "Tables", atom.entry({"TableName": string(table)},
                                                **SPELLINGS[spelling])), 201)
    ok(one.delete_table(table), 204)


@pytest.mark.parametrize("kind, text, want", [
    ("Edm.Boolean", "1", True), ("Edm.Boolean", "0", False), ("Edm.Double", "Infinity", "INF"),
    ("Edm.Double", "-Infinity", "-INF"), ("Edm.Double", "-0", "-0"), ("Edm.Double", "1e3", "1000"),
    ("Edm.Double", "5", "5"), ("Edm.DateTime", "2008-10-01T15:26:04", "2008-10-01T15:26:04Z"),
    ("Edm.DateTime", "2008-10-01T15:26:04+02:00", "2008-10-01T13:26:04Z"),
    ("Edm.Guid", "C9DA6455-213D-42C9-9A79-3E9149A57833", "c9da6455-213d-42c9-9a79-3e9149a57833"),
    ("Edm.Binary", "", "")])
def test_values_in_other_spellings(one, tab, kind, text, want):
    ok(one.insert(tab, {**keys(), "V": (kind, text)}), 201)
    assert read_entry(one.get(tab, "p", "r")).own["V"] == (
        (kind, want) if isinstance(want, bool) else typed(kind, want))


@pytest.mark.parametrize("kind, text", [
    ("Edm.Boolean", "yes"), ("Edm.Boolean", "2"), ("Edm.Int32", "2147483648"), ("Edm.Int32", "1.0"),
    ("Edm.Int32", ""), ("Edm.Int32", "0x1"), ("Edm.Int64", "9223372036854775808"),
    ("Edm.Int64", "x"), ("Edm.Double", "1,5"), ("Edm.Double", ""), ("Edm.DateTime", "yesterday"),
    ("Edm.DateTime", "1600-12-31T23:59:59Z"), ("Edm.Guid", "c9da6455"), ("Edm.Binary", "A"),
    ("Edm.Binary", "AA*="), ("Edm.Decimal", "1"), ("Edm.Nonsense", "1"), ("string", "x"),
    ("Edm.String", "x" * 32769)])
def test_R17_values_that_are_none(one, tab, kind, text):
    answer = one.insert(tab, {**keys(), "V": (kind, text)})
    fails(answer, 400, ("InvalidInput", "OutOfRangeInput", "PropertyValueTooLarge"))
    with one.clone(version="2019-02-02", accept=rest_client.MINIMAL) as json_client:
        same = rest_client.Client.request(
            json_client, "POST", tab,
            {"PartitionKey": "p", "RowKey": "r", "V@odata.type": kind, "V": text})
    assert (same.status, same.code) == (answer.status, answer.code)
    assert Feed(one.query(tab)).rows == []


@pytest.mark.parametrize("row, code", [
    ({"RowKey": string("r")}, "PropertiesNeedValue"),
    ({"PartitionKey": string("p")}, "PropertiesNeedValue"),
    ({**keys(), "PartitionKey": None}, "PropertiesNeedValue"), ({}, "PropertiesNeedValue"),
    (keys("a/b"), "OutOfRangeInput"), (keys("a\tb"), "OutOfRangeInput"),
    (keys(rk="x" * 513), ("KeyValueTooLarge", "PropertyValueTooLarge")),
    ({**keys(), "PartitionKey": ("Edm.Int32", "1")}, "InvalidInput"),
    ({**keys(), "a-b": string("x")}, "PropertyNameInvalid"),
    ({**keys(), "x" * 256: string("x")}, "PropertyNameTooLong"),
    ({**keys(), **{f"P{n}": string("") for n in range(253)}}, "TooManyProperties"),
    ({**keys(), **{f"P{n}": string("x" * 32768) for n in range(17)}}, "EntityTooLarge"),
])
def test_R17_rows_that_are_refused(one, tab, row, code):
    fails(one.insert(tab, row), 400, code)
    assert Feed(one.query(tab)).rows == []


def test_R17_the_limits_from_inside(one, tab):
    ok(one.insert(tab, {**keys("p" * 512, "\U0001f600" * 256),
                        **{f"P{n}": string("") for n in range(251)}, "x" * 255: string("")}), 201)
    ok(one.insert(tab, {**keys(), **{f"P{n}": string("\u20ac" * 32768) for n in range(15)}}), 201)
    assert [len(e.own) for e in Feed(one.query(tab)).entries] == [15, 252]


def test_a_property_twice(one, tab):
    body = atom.entry({**keys(), "A": string("1")})
    twice = body.replace("</m:properties>", "<d:A>2</d:A></m:properties>")
    fails(one.insert(tab, twice), 400, "DuplicatePropertiesSpecified")
    assert Feed(one.query(tab)).rows == []


def test_keys_that_are_not_the_urls(one, tab):
    fails(one.replace(tab, "p", "r", keys("q")), 400, "InvalidInput")
    fails(one.create_table("a b"), 400, ("InvalidResourceName", "InvalidInput"))
    fails(one.request("POST", "Tables", keys()), 400, ("PropertiesNeedValue", "InvalidInput"))


def test_what_a_client_echoes_is_taken(one, tab):
    """Read, changed as text, written: as clients without a model of their own did."""
    ok(one.insert(tab, {**keys(), **VALUES, "N": ("Edm.Int32", "1")}), 201)
    answer = one.get(tab, "p", "r")
    body = answer.body.decode().replace('m:type="Edm.Int32">1<', 'm:type="Edm.Int32">2<')
    ok(one.replace(tab, "p", "r", body, answer.etag), 204)
    assert read_entry(one.get(tab, "p", "r")).own == {**compared(VALUES), "N": ("Edm.Int32", 2)}


@pytest.mark.parametrize("key", [
    "it's", "''", '"', "a b", " a ", "a+b", "a%b", "%41", "&amp;", "<p>", "{x}", "a;b=c,d",
    "\u00e9", "\U0001f600", "\u65e5\u672c", "]]>", "~!@$^*()_-", ""])
def test_R17_awkward_keys(one, tab, key):
    made = ok(one.insert(tab, keys(key, key)), 201)
    entry = read_entry(made)
    assert entry.row["PartitionKey"] == entry.row["RowKey"] == string(key)
    assert entry.id == made.headers["Location"] == one.base() + entry.href
    quoted = key.replace("'", "''")
    assert urllib.parse.unquote(entry.href) == f"{tab}(PartitionKey='{quoted}',RowKey='{quoted}')"
    answer = ok(one.request("GET", entry.href), 200)
    assert read_entry(answer).row == entry.row
    ok(one.request("DELETE", entry.href, headers={"If-Match": entry.etag}), 204)


# ---- batches


def parts_of(answer):
    return parse_batch(answer)


def is_empty_part(part, if_etag=True):
    assert part.status == 204 and part.body == b"" and bool(part.headers["ETag"]) == if_etag
    assert part.headers["DataServiceVersion"] == "1.0;"


def test_R17_batches(old, tab):
    ok(old.insert(tab, {**keys(rk="1"), "A": string("x")}), 201)
    etag = old.get(tab, "p", "1").etag
    parts = parts_of(old.batch_of([
        ("POST", tab, {}, {**keys(rk="2"), "A": string("]]>")}),
        ("PUT", entity_path(tab, "p", "1"), {"If-Match": etag}, {"B": ("Edm.Int64", "1")}),
    ], content_ids=True, length=True))
    assert [p.status for p in parts] == [201, 204] and [p.content_id for p in parts] == ["0", "1"]
    is_empty_part(parts[1])
    made = Entry(atom.parse(parts[0].body))
    assert made.own == {"A": string("]]>")} and made.etag == parts[0].etag
    atom.is_atom(parts[0])
    assert parts[0].headers["Location"] == old.base() + entity_path(tab, "p", "2")
    parts = parts_of(old.batch_of([
        ("MERGE", entity_path(tab, "p", "1"), {"If-Match": "*"}, {"C": string("y")}),
        ("DELETE", entity_path(tab, "p", "2"), {"If-Match": parts[0].etag}, None)], eol="\n"))
    is_empty_part(parts[0])
    is_empty_part(parts[1], False)
    assert Feed(old.query(tab)).rows == [{"B": ("Edm.Int64", 1), "C": string("y")}]


def test_R17_a_batch_that_fails(old, tab):
    ok(old.insert(tab, keys(rk="1")), 201)
    for op, status, code in (
            (("POST", tab, {}, keys(rk="1")), 409, "EntityAlreadyExists"),
            (("POST", tab, {}, {**keys(rk="3"), "N": ("Edm.Int32", "x")}), 400, "InvalidInput"),
            (("POST", tab, {}, keys("q")), 400, "CommandsInBatchActOnDifferentPartitions"),
            (("PUT", entity_path(tab, "p", "9"), {"If-Match": "*"}, {}), 404, "ResourceNotFound"),
            (("PUT", entity_path(tab, "p", "1"), {"If-Match": "W/\"datetime'2008'\""}, {}), 412,
             "UpdateConditionNotSatisfied")):
        (part,) = parts_of(old.batch_of([("POST", tab, {}, keys(rk="2")), op], content_ids=True))
        part_fails(part, status, code)
        assert part.message.startswith("1:"), part
        assert is_error(part.body, code).startswith("1:")
        assert part.headers["Content-Type"].startswith("application/xml")
        assert part.headers["DataServiceVersion"] == "1.0;"
        assert len(Feed(old.query(tab)).entries) == 1


def test_R17_a_query_in_a_batch(old, tab):
    ok(old.insert(tab, {**keys(), "A": string("x")}), 201)
    (part,) = parts_of(old.batch_of([("GET", entity_path(tab, "p", "r"), {}, None)],
                                    change_set=False))
    assert part.status == 200 and Entry(atom.parse(part.body)).own == {"A": string("x")}
    assert part.headers["DataServiceVersion"] == "1.0;"
    (part,) = parts_of(old.batch_of([("GET", entity_path(tab, "p", "x"), {}, None)],
                                    change_set=False))
    part_fails(part, 404, "ResourceNotFound")
    is_error(part.body, "ResourceNotFound")


def test_both_formats_in_one_batch(one, tab):
    one.version = "2013-08-15"
    parts = parts_of(one.batch([
        ("POST", tab, {"Content-Type": MEDIA}, atom.entry({**keys(rk="1"), "A": string("x")})),
        ("POST", tab, {"Content-Type": "application/json", "Accept": rest_client.NONE},
         {"PartitionKey": "p", "RowKey": "2", "A": "y"})]))
    assert Entry(atom.parse(parts[0].body)).own == {"A": string("x")}
    assert parts[1].json["A"] == "y"
    assert Feed(one.query(tab)).rows == [{"A": string("x")}, {"A": string("y")}]


# ---- a client without a library


def test_R17_curl_with_files(rest, tab, work):
    """Entries written by hand, signed as SharedKeyLite was: with the date and the path alone."""
    need("curl")
    client = atom.Client(rest.port, version="2009-04-14")

    def curl(method, path, file=None, *headers):
        target = client.target(path)
        sent = client.headers_for(method, target, None, {"content-length": None}, "lite")
        line = ["curl", "-sSg", "-i", "--noproxy", "*", "-X", method]
        for name, value in sent.items():
            line += ["-H", f"{name}: {value}"]
        for header in headers:
            line += ["-H", header]
        if file:
            line += ["-H", f"Content-Type: {MEDIA}", "--data-binary", f"@{file}"]
        done = subprocess.run([*line, f"http://127.0.0.1:{rest.port}{target}"], env=ENV,
                              capture_output=True, timeout=60)
        assert done.returncode == 0, done.stderr
        head, _, body = done.stdout.partition(b"\r\n\r\n")
        found = dict(line.decode().lower().split(": ", 1) for line in head.split(b"\r\n")[1:]
                     if b": " in line)
        return int(head.split()[1]), found, body

    table, row, other = work / "table.xml", work / "row.xml", work / "other.xml"
    table.write_text(f"""<?xml version="1.0" encoding="utf-8" standalone="yes"?>
<entry xmlns:d="{atom.D}"
       xmlns:m="{atom.M}"
       xmlns="{atom.ATOM}">
  <title />
  <updated>2009-03-18T11:48:34.9840639-07:00</updated>
  <author><name/></author>
  <id/>
  <content type="application/xml">
    <m:properties>
      <d:TableName>{tab}curl</d:TableName>
    </m:properties>
  </content>
</entry>
""")
    row.write_text(f"""<entry xmlns="{atom.ATOM}" xmlns:d="{atom.D}" xmlns:m="{atom.M}">
  <content type="application/xml">
    <m:properties>
      <d:PartitionKey>Channel9</d:PartitionKey>
      <d:RowKey>Oct-29</d:RowKey>
      <d:Text>Hello &amp; good morning</d:Text>
      <d:Rating m:type="Edm.Int32">3</d:Rating>
      <d:Nothing m:null="true" />
    </m:properties>
  </content>
</entry>""")
    other.write_text(row.read_text().replace(">3<", ">4<"))
    status, headers, body = curl("POST", "Tables", table)
    assert status == 201 and headers["content-type"].startswith(MEDIA) and b"<d:TableName>" in body
    status, headers, body = curl("POST", f"{tab}curl", row)
    etag = headers["etag"]
    made = Entry(atom.parse(body))
    assert status == 201 and made.etag.lower() == etag
    assert made.own == {"Text": string("Hello & good morning"), "Rating": ("Edm.Int32", 3)}
    where = f"{tab}curl(PartitionKey='Channel9',RowKey='Oct-29')"
    assert curl("PUT", where, other, f"If-Match: {made.etag}")[0] == 204
    status, _, body = curl("PUT", where, other, f"If-Match: {made.etag}")
    assert status == 412 and is_error(body, "UpdateConditionNotSatisfied")
    status, _, body = curl("GET", where)
    assert status == 200 and Entry(atom.parse(body)).own["Rating"] == ("Edm.Int32", 4)
    status, _, body = curl("GET", f"{tab}curl()?$filter=Rating%20eq%204&$top=1")
    assert status == 200 and body.count(b"<entry") == 1
    assert curl("DELETE", where, None, "If-Match: *")[0] == 204
    status, _, body = curl("GET", where)
    assert status == 404 and is_error(body, "ResourceNotFound")
    client.close()
