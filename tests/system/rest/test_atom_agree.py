# SPDX-License-Identifier: MIT
"""Two formats and a file say the same: random rows over every type and awkward text, written
through one front end, read through the others.  The same rows in each run, and others besides;
ROWFS_SEED=S takes those of a run that failed."""

import json
import os
import random
import traceback
import uuid

import pytest

import atom
import rest_client
from atom import Feed, read_entry, string, typed
from rest_client import ok

SEED = os.environ.get("ROWFS_SEED")
SEEDS = [8, None] if SEED is None else [int(SEED)]  # None: another one in each run
ROWS = 300
AWKWARD = [
    "", " ", "   ", "\t", "\n", "\r", "\r\n", "\n\r", " a", "a ", "\ta\n", "a\rb", "a\r\nb", "]]>",
    "]]", "]]&gt;", "<![CDATA[x]]>", "<!-- x -->", "<?x?>", "<a b='c'/>", "&", "&amp;", "&#x1;",
    "&#1;", "&lt;", "&nosuch;", "'", '"', "''", "<", ">", "\\", "\\u0001", "%41", "+", "{}", "[1]",
    "null", "true", "NaN", "1", "1.0", "-0", "2008-07-10T00:00:00Z", "\x01", "a\x01b",
    "\x08\x0b\x0c", "\x1f", "".join(map(chr, range(1, 32))), "\x7f", "\x80\x85\x9f", "\xa0a\xa0",
    "\u2028\u2029", "\ufeff", "\ufeffa", "a\ufeff", "\ufffe", "\uffff", "\ufdd0",
    "\ud7ff\ue000", "\uf8ff", "\x01" + "".join(map(chr, range(127, 161))),
    "\x01" + "".join(chr(c) + "ABCabcxyz" for c in [*range(127, 161), 0xe000, 0xf8ff, 0xfffd]),
    "\uf8ff1;", "\U00010000", "\U0001f600", "\U0001fffe\U0010ffff", "e\u0301\u00e9", "\u202eabc",
    "\u65e5\u672c\u8a9e", "x" * 32768, "\U0001f600" * 16384, " " * 1000, "\x01" * 1000, "&" * 5000,
    "]]>" * 1000,
]
NUMBERS = ["0", "-0.0", "0.1", "-1.5", "3.0", "100", "1e300", "-1e-300", "5e-324",
           "2.2250738585072014e-308", "1.7976931348623157e308", "-1.7976931348623157e308",
           "9007199254740993", "1e15", "1e16", "123456789.123456789", "NaN", "INF", "-INF"]
TIMES = ["1601-01-01T00:00:00Z", "9999-12-31T23:59:59.9999999Z", "2008-02-29T12:00:00.1Z",
         "2008-07-10T00:00:00.1234567Z", "1970-01-01T00:00:00Z", "2026-12-31T23:59:59.0000001Z"]
CHARACTERS = ["a", "b", " ", "\t", "\n", "\r", "&", "<", ">", "]", "'", '"', ";", "#", "x", "1",
              "\x01", "\x1f", "\x7f", "\x85", "\u00e9", "\u2028", "\ud7ff", "\ue000", "\ufffd",
              "\ufffe", "\uffff", "\U00010000", "\U0001f600", "\U0010ffff"]
NAMES = ["A", "b", "_", "_1", "Text", "XmlName", "a\u00e9", "\u65e5\u672c", "\u0391", "x" * 255,
         "C0", "d", "m", "type", "null", "entry", "Id", "\u00aa", "a\u00b5\u00ba", "_x00AA_",
         "_x005F_x00BA_", "_x005F\u00ba", "_x00AA\u00ba", "_x005Fx", "_x0041_", "_x00AA",
         "__x00B5__"]


def random_text(rng):
    if rng.random() < 0.5:
        return rng.choice(AWKWARD)
    return "".join(rng.choice(CHARACTERS) for _ in range(rng.randrange(1, 40)))


def random_value(rng):
    kind = rng.choice([atom.STRING] * 4 + ["Edm.Boolean", "Edm.Int32", "Edm.Int64", "Edm.Double",
                                           "Edm.DateTime", "Edm.Guid", "Edm.Binary"])
    if kind == atom.STRING:
        return kind, random_text(rng)
    if kind == "Edm.Boolean":
        return kind, rng.choice(["true", "false"])
    if kind in ("Edm.Int32", "Edm.Int64"):
        bits = 31 if kind == "Edm.Int32" else 63
        return kind, str(rng.choice([0, 1, -1, 2**bits - 1, -2**bits,
                                     rng.randrange(-2**bits, 2**bits)]))
    if kind == "Edm.Double":
        return kind, rng.choice(NUMBERS) if rng.random() < 0.7 else repr(rng.uniform(-1e9, 1e9))
    if kind == "Edm.DateTime":
        return kind, rng.choice(TIMES)
    if kind == "Edm.Guid":
        text = str(uuid.UUID(int=rng.getrandbits(128)))
        return kind, text.upper() if rng.random() < 0.3 else text
    return kind, rng.choice(["", "AA==", "AAE=", "AAEC", "/+8=", "AAAA" * 1000])


def random_row(rng):
    names = rng.sample(NAMES, rng.randrange(1, len(NAMES)))
    row, size = {}, 0
    for name in names:
        value = random_value(rng)
        size += 2 * len(value[1]) + 600
        if size < 900000:
            row[name] = value
    return row


def compared(row):
    return {n: typed(*v) for n, v in row.items()}


def own(row):
    return {n: v for n, v in row.items() if n not in ("PartitionKey", "RowKey", "Timestamp")}


class FrontEnds:
    """One table through both formats and as files."""

    def __init__(self, rest_mount, rest_store, table):
        self.mnt = rest_mount(rest_store)
        self.table = table
        self.json = rest_client.Client(self.mnt.port)
        self.atom = atom.Client(self.mnt.port, version="2015-07-08")
        ok(self.json.create_table(table), 201)
        self.folder = self.mnt / rest_client.ACCOUNT / table

    def write_json(self, rk, row):
        ok(self.json.insert(self.table, {"PartitionKey": "p", "RowKey": rk, **atom.to_json(row)}),
           201)

    def write_atom(self, rk, row, **spelling):
        ok(self.atom.insert(self.table, atom.entry(
            {"PartitionKey": string("p"), "RowKey": string(rk), **row}, **spelling)), 201)

    def write_file(self, rk, row):
        (self.folder / "p").mkdir(exist_ok=True)
        (self.folder / "p" / f"{rk}.json").write_text(
            json.dumps(atom.to_json(row), ensure_ascii=False), "utf-8")

    def read(self, rk):
        """The row through each front end, by the front end's name."""
        by_json = ok(self.json.get(self.table, "p", rk), 200)
        by_atom = read_entry(ok(self.atom.get(self.table, "p", rk), 200))
        assert by_atom.etag == by_json.etag
        text = (self.folder / "p" / f"{rk}.json").read_bytes().decode("utf-8")
        return {"JSON": own(atom.of_json(atom.json_rows(by_json.body))), "ATOM": by_atom.own,
                "file": own(atom.of_json(atom.json_rows(text)))}

    def all_read(self, rk, row):
        for front_end, have in self.read(rk).items():
            assert have == compared(row), (front_end, rk)


@pytest.fixture
def front_ends(rest_mount, rest_store):
    d = FrontEnds(rest_mount, rest_store, "Agree")
    yield d
    d.json.close()
    d.atom.close()


def by_row_key(rows, plain):
    return {plain(r["RowKey"]): own(r) for r in rows}


def test_R18_awkward_text_in_every_format(front_ends):
    texts = [{"V": string(text), "W": string(f"x{text[:100]}y")} for text in AWKWARD]
    by_json = [("POST", "Agree", {}, {"PartitionKey": "p", "RowKey": f"j{n}", **atom.to_json(row)})
               for n, row in enumerate(texts)]
    key = {"PartitionKey": string("p")}
    by_atom = [("POST", "Agree", {}, {**key, "RowKey": string(f"a{n}"), **row})
               for n, row in enumerate(texts)]
    for answer in (front_ends.json.batch(by_json, length=True),
                   front_ends.atom.batch_of(by_atom, length=True)):
        parts = rest_client.parse_batch(answer)
        assert [p.status for p in parts] == [201] * len(texts)
    rows = {f"{front_end}{n}": row for n, row in enumerate(texts) for front_end in "ja"}
    seen = by_row_key([e.row for page in front_ends.atom.pages("Agree") for e in Feed(page).entries],
                      lambda key: key[1])
    assert seen == rows
    seen = by_row_key([atom.of_json(e) for page in front_ends.json.pages("Agree")
                       for e in atom.json_rows(page.body)["value"]], lambda key: key[1])
    assert seen == rows
    for rk, row in rows.items():
        text = (front_ends.folder / "p" / f"{rk}.json").read_bytes().decode("utf-8")
        assert own(atom.of_json(atom.json_rows(text))) == row


def random_rows(front_ends, rng):
    spellings = list(atom.SPELLINGS.values())
    rows = {}
    for n in range(ROWS):
        row = rows[f"{n:03}"] = random_row(rng)
        write = rng.choice([front_ends.write_json, front_ends.write_atom, front_ends.write_atom, front_ends.write_file])
        spelling = rng.choice(spellings) if write == front_ends.write_atom else {}
        write(f"{n:03}", row, **spelling)
        front_ends.all_read(f"{n:03}", row)
    # What ATOM gave goes back in as it is, and the pages are of the same rows.
    for rk, row in rows.items():
        if rng.random() < 0.3:
            answer = front_ends.atom.get("Agree", "p", rk)
            ok(front_ends.atom.replace("Agree", "p", rk, answer.body.decode("utf-8"), answer.etag), 204)
            front_ends.all_read(rk, row)
    seen = []
    for page in front_ends.atom.pages("Agree", top=13):
        seen += [(e.row["RowKey"][1], e.own) for e in Feed(page).entries]
    assert seen == [(rk, compared(row)) for rk, row in rows.items()]
    answers = [atom.of_json(e) for page in front_ends.json.pages("Agree") for e in
               atom.json_rows(page.body)["value"]]
    assert [own(r) for r in answers] == [r for _, r in seen]


@pytest.mark.parametrize("seed", SEEDS, ids=lambda seed: "fresh" if seed is None else str(seed))
def test_R18_random_rows_in_every_format(front_ends, seed):
    if seed is None:
        seed = random.randrange(1 << 32)
    try:
        random_rows(front_ends, random.Random(seed))
    except (Exception, pytest.fail.Exception) as e:  # whatever was answered, and read of it
        pytest.fail(f"ROWFS_SEED={seed}: {type(e).__name__}: {str(e)[:2000]}\n"
                    + "".join(traceback.format_tb(e.__traceback__)[-3:]), pytrace=False)


@pytest.fixture
def both(rest, tab):
    """Clients of one server, without a mount: (JSON, ATOM, table)."""
    with atom.Client(rest.port, version="2015-07-08") as by_atom:
        yield rest, by_atom, tab


def test_R18_names_that_xml_does_not_have(both):
    by_json, by_atom, tab = both
    row = {name: ("Edm.Int32", str(n)) for n, name in enumerate(NAMES)}
    key = {"PartitionKey": string("p")}
    ok(by_json.insert(tab, atom.to_json({**key, "RowKey": string("j"), **row})), 201)
    ok(by_atom.insert(tab, {**key, "RowKey": string("a"), **row}), 201)
    assert Feed(by_atom.query(tab)).rows == [compared(row)] * 2
    answer = atom.json_rows(by_json.query(tab).body)["value"]
    assert [own(atom.of_json(r)) for r in answer] == [compared(row)] * 2


def test_R18_selected_nulls_in_both_formats(both):
    by_json, by_atom, tab = both
    ok(by_json.insert(tab, {"PartitionKey": "p", "RowKey": "r", "A": 1}), 201)
    row = atom.of_json(atom.json_rows(by_json.get(tab, "p", "r", select="A,B").body))
    assert row == {"A": ("Edm.Int32", 1), "B": None}
    assert read_entry(by_atom.get(tab, "p", "r", select="A,B")).row == row


@pytest.mark.parametrize("in_json, in_atom", [
    (b"\\ud800", b"&#xD800;"), (b"\\udfff", b"&#57343;"), (b"\xed\xa0\x80", b"\xed\xa0\x80"),
    (b"\\ude00\\ud83d", b"&#xDE00;&#xD83D;"), (b"\xff", b"\xff"), (b"\xc0\x80", b"\xc0\x80"),
    (b"\xf4\x90\x80\x80", b"&#x110000;")], ids=ascii)
def test_R18_text_that_is_none_is_refused_by_both(both, in_json, in_atom):
    """Halves of a surrogate pair, and bytes that are no UTF-8."""
    by_json, by_atom, tab = both
    rest_client.fails(by_json.insert(
        tab, b'{"PartitionKey":"p","RowKey":"r","V":"' + in_json + b'"}'), 400, "InvalidInput")
    body = atom.entry({"PartitionKey": string("p"), "RowKey": string("r"), "V": string("@")})
    atom.fails(by_atom.insert(tab, body.encode().replace(b"@", in_atom)), 400, "InvalidInput")
    assert by_json.all(tab) == []


def test_R18_nul_is_text_in_both(both):
    by_json, by_atom, tab = both
    ok(by_json.insert(tab, b'{"PartitionKey":"p","RowKey":"1","V":"a\\u0000b"}'), 201)
    body = atom.entry({"PartitionKey": string("p"), "RowKey": string("2"), "V": string("a@b")})
    ok(by_atom.insert(tab, body.replace("@", "&#0;")), 201)
    assert Feed(by_atom.query(tab)).rows == [{"V": string("a\0b")}] * 2
    assert [r["V"] for r in by_json.all(tab)] == ["a\0b"] * 2
