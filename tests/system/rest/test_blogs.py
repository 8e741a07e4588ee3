# SPDX-License-Identifier: MIT
"""examples/blogs, as a user would run it: what it says, and request by request what it sends
and is answered; and its module with values that are easily lost."""

import datetime
import os
import re
import sys

import pytest

import atom
import rest_client
from atom import string, typed
from conftest import TOP
from tools import run_example

sys.path.append(str(TOP / "examples" / "blogs"))
import table2009  # noqa: E402

SAID = """\
Creating tables:
  Channels, Blogs, Jobs
Inserting a blog:
  'Hello', rated 3
  The same keys once more: 409 EntityAlreadyExists
Querying blogs:
  Rated 3: Hello
Updating a blog:
  The second of two: 412 UpdateConditionNotSatisfied
  'Hi there again', rated 4
Deleting a blog:
  Afterwards: 404 ResourceNotFound
Several changes at once:
  Blog 1: 2, Blog 2: 2, Blog 3: 3, Blog 4: 4
  Operation 1: 412 UpdateConditionNotSatisfied
  4 rows, as before; alone in a batch: Blog 2
Top N, and what follows:
  The first 3: News 0, News 1, News 2
  In pages of 10: [10, 10, 5]
What comes between two pages:
  04a Among those read: not seen
  09a Right behind the last: not seen
  10a Further on: seen
Two tables that agree:
  The first worker dies: 3 blogs, 1 channels, 1 jobs
  The second worker dies: 3 blogs, 1 channels, 1 jobs
  The third worker is done: 0 blogs, 0 channels, 0 jobs
The newest first:
  2521793591999999999 The newer, 2521794455999999999 The older
  After October 1st, 10:00: The newer
Sizes of partitions:
  October 2008: 10/2008
  2008: 10/2008, 9/2008
Keys that begin alike:
  All that begin with PDC: About PDC2008, About PDC2009
Several kinds in one table:
  Photo: Sea
  Blog: Hello
  Comment: Hi, Joe
  Only photos: http://joe/1.jpg
Other properties:
  Added to new rows: RowKey=A Text=Old Rating=1; RowKey=B Text=New Rating=2 Version=2 Category=life
  Deleted: RowKey=A Text=Old Rating=1; RowKey=B Text=New Rating=2 Version=2
  Another type: RowKey=A Text=Old Stars=1.5; RowKey=B Text=New Rating=2 Version=2
  Rating gt 1.2: Old
"""
FILES = """\
$ ls Blogs
Channel9
Channel_19
Football
Football_7991_03
Football_7991_04
Football_7992_01
News
PDC2008
PDC2009
PDZ
$ cat Blogs/Football_7991_03/*
{"Text":"10/2008","Rating":0}
"""
BLOG = "Blogs(PartitionKey='Channel9',RowKey='Oct-29')"
OLD = "Upgrades(PartitionKey='c',RowKey='A')"
# Of each chapter the requests, each with its status; * stands for anything.
REQUESTS = {
    "Creating tables": [
        (f"{method} {path}", status) for table in ("Channels", "Blogs", "Jobs")
        for method, path, status in (("GET", f"Tables('{table}')", 404), ("POST", "Tables", 201))],
    "Inserting a blog": [("POST Blogs", 201), ("POST Blogs", 409)],
    "Querying blogs": [("POST Blogs", 201), ("GET Blogs()?$filter=Rating eq 3", 200)],
    "Updating a blog": [(f"GET {BLOG}", 200), (f"GET {BLOG}", 200), (f"PUT {BLOG}", 204),
                        (f"PUT {BLOG}", 412), (f"GET {BLOG}", 200), (f"PUT {BLOG}", 204),
                        (f"MERGE {BLOG}", 204), (f"GET {BLOG}", 200)],
    "Deleting a blog": [(f"GET {BLOG}", 200), (f"DELETE {BLOG}", 204), (f"GET {BLOG}", 404)],
    "Several changes at once": [
        ("POST $batch", 202), ("GET Blogs()?$filter=PartitionKey eq 'Channel_19'", 200),
        ("POST $batch", 202), ("GET Blogs()?$filter=PartitionKey eq 'Channel_19'", 200),
        ("POST $batch", 202), ("GET Blogs()?$filter=PartitionKey eq 'Channel_19'", 200),
        ("POST $batch", 202)],
    "Top N, and what follows": [
        ("POST $batch", 202), ("GET Blogs()?$top=3&$filter=PartitionKey eq 'News'", 200),
        ("GET Blogs()?$top=10&$filter=PartitionKey eq 'News'", 200),
        ("GET Blogs()?$top=10&$filter=PartitionKey eq 'News'&NextPartitionKey=*", 200),
        ("GET Blogs()?$top=10&$filter=PartitionKey eq 'News'&NextPartitionKey=*", 200)],
    "What comes between two pages": [
        ("GET Blogs()?$top=10&$filter=PartitionKey eq 'News'", 200),
        ("POST Blogs", 201), ("POST Blogs", 201), ("POST Blogs", 201),
        ("GET Blogs()?$top=10&$filter=PartitionKey eq 'News'&NextPartitionKey=*", 200),
        ("GET Blogs()?$top=10&$filter=PartitionKey eq 'News'&NextPartitionKey=*", 200),
        ("GET Blogs()?$filter=PartitionKey eq 'News'", 200)],
    "Two tables that agree": None,
    "The newest first": [
        ("POST Blogs", 201), ("POST Blogs", 201),
        ("GET Blogs()?$filter=PartitionKey eq 'Football'", 200),
        ("GET Blogs()?$filter=PartitionKey eq 'Football' and RowKey lt '2521794455999999999'",
         200)],
    "Sizes of partitions": [
        ("POST Blogs", 201), ("POST Blogs", 201), ("POST Blogs", 201),
        ("GET Blogs()?$filter=PartitionKey eq 'Football_7991_03'", 200),
        ("GET Blogs()?$filter=PartitionKey ge 'Football_7991' and PartitionKey lt "
         "'Football_7992'", 200)],
    "Keys that begin alike": [
        ("POST Blogs", 201), ("POST Blogs", 201), ("POST Blogs", 201),
        ("GET Blogs()?$filter=PartitionKey ge 'PDC' and PartitionKey lt 'PDD'", 200)],
    "Several kinds in one table": [
        ("POST Tables", 201), ("POST $batch", 202),
        ("GET SocialNetwork()?$filter=PartitionKey eq 'joe'&$top=100", 200),
        ("GET SocialNetwork()?$filter=PartitionKey eq 'joe' and EntityType eq 'Photo'", 200)],
    "Other properties": [
        ("POST Tables", 201), ("POST Upgrades", 201), ("POST Upgrades", 201),
        ("GET Upgrades()?$filter=PartitionKey eq 'c'", 200),
        ("GET Upgrades()?$filter=PartitionKey eq 'c'", 200), (f"PUT {OLD}", 204),
        ("PUT Upgrades(PartitionKey='c',RowKey='B')", 204),
        ("GET Upgrades()?$filter=PartitionKey eq 'c'", 200),
        ("GET Upgrades()?$filter=PartitionKey eq 'c' and RowKey eq 'A'", 200),
        (f"MERGE {OLD}", 204), (f"PUT {OLD}", 204),
        ("GET Upgrades()?$filter=PartitionKey eq 'c'", 200), (f"MERGE {OLD}", 204),
        ("GET Upgrades()?$filter=Rating gt 1.2", 200)],
}


class Message:
    """Lines of one side of an exchange."""

    def __init__(self, lines):
        self.first, self.headers = lines[0], {}
        empty = lines.index("")
        for line in lines[1:empty]:
            name, _, text = line.partition(": ")
            self.headers[name.lower()] = text
        self.body = "\n".join(lines[empty + 1:]).encode()

    @property
    def status(self):
        return int(self.first.split()[1])

    @property
    def request(self):
        """Without what depends on where it runs, decoded for reading."""
        method, target, _ = self.first.split(" ")
        target = rest_client.urllib.parse.unquote(target.removeprefix("/example/"))
        return re.sub(r"(NextPartitionKey=).*", r"\1*", f"{method} {target}")


def read_exchanges(text):
    """Chapter by chapter the pairs of request and answer that --show has shown."""
    chapters, title, side = {}, None, None
    for line in text.split("\n"):
        if line[:1] in ("<", ">") and line[1:2] in ("", " "):
            if line[0] != side:
                side = line[0]
                chapters[title].append([])
            elif re.match(r"> [A-Z]+ /\S+ HTTP/1\.1$", line):
                chapters[title].append([])
            chapters[title][-1].append(line[2:])
        elif line[:-1] in REQUESTS and line.endswith(":"):
            title, side = line[:-1], None
            chapters[title] = []
    return {title: list(zip(*[(Message(m) for m in messages)] * 2))
            for title, messages in chapters.items()}


def test_R17_each_request_of_the_example(work):
    out = run_example(work, "blogs", "--show")
    assert SAID in re.sub("^[<>]( .*)?\n", "", out, flags=re.M)
    if os.access("/dev/fuse", os.R_OK | os.W_OK):
        assert FILES in out
    else:
        assert "No /dev/fuse here" in out
    chapters = read_exchanges(out)
    assert list(chapters) == list(REQUESTS)
    for title, expected in REQUESTS.items():
        have = [(q.request, a.status) for q, a in chapters[title]]
        assert expected is None or have == expected, title
    for question, answer in (pair for c in chapters.values() for pair in c):
        asks_and_answers_as_in_2009(question, answer)
    tables(chapters["Creating tables"])
    rows(chapters["Inserting a blog"], chapters["Querying blogs"])
    conflict(chapters["Updating a blog"])
    batches(chapters["Several changes at once"])
    pages(chapters["Top N, and what follows"])
    between_pages(chapters["What comes between two pages"])
    walk_through(chapters["Two tables that agree"])
    retyped(chapters["Other properties"])


def asks_and_answers_as_in_2009(question, answer):
    assert question.headers["x-ms-version"] == "2009-04-14"
    assert re.fullmatch("SharedKeyLite example:[A-Za-z0-9+/]{43}=",
                        question.headers["authorization"])
    assert "x-ms-version" not in answer.headers  # told since 2009-09-19
    assert rest_client.REQUEST_ID.fullmatch(answer.headers["x-ms-request-id"])
    if question.first.startswith("POST /example/$batch"):
        assert answer.headers["content-type"].startswith("multipart/mixed; boundary=")
    elif answer.status >= 400:
        assert answer.headers["content-type"].startswith("application/xml")
        atom.is_error(answer.body, answer.headers["x-ms-error-code"])
    elif answer.status == 204:
        assert answer.body == b"" and answer.headers["content-length"] == "0"
    else:
        assert answer.headers["content-type"].startswith(atom.MEDIA)
        assert atom.parse(answer.body).tag in (f"{{{atom.ATOM}}}entry", f"{{{atom.ATOM}}}feed")


def entry_of(message):
    return atom.Entry(atom.parse(message.body))


def entries_of(message):
    return [atom.Entry(e) for e in atom.parse(message.body).findall(f"{{{atom.ATOM}}}entry")]


def tables(chapter):
    for question, answer in chapter[1::2]:
        made = entry_of(answer)
        assert answer.headers["location"] == made.id and made.href in made.id
        assert made.row["TableName"][1].encode() in question.body


def rows(inserting, querying):
    made = entry_of(inserting[0][1])
    assert made.etag == inserting[0][1].headers["etag"]
    assert made.own == {"Text": string("Hello"), "Rating": ("Edm.Int32", 3)}
    assert (made.title, made.term) == ("Blogs", "example.Blogs")
    (found,) = entries_of(querying[1][1])
    assert (found.id, found.etag, found.row) == (made.id, made.etag, made.row)


def conflict(chapter):
    first, second, done, refused, again, retried, merged, last = chapter
    etags = [entry_of(m[1]).etag for m in (first, second, again, last)]
    assert etags[0] == etags[1] == done[0].headers["if-match"] == refused[0].headers["if-match"]
    assert refused[1].headers["x-ms-error-code"] == "UpdateConditionNotSatisfied"
    assert done[1].headers["etag"] == etags[2] == retried[0].headers["if-match"] != etags[0]
    assert merged[0].headers["if-match"] == "*" and merged[1].headers["etag"] == etags[3]
    seen = [etags[0], etags[2], retried[1].headers["etag"], etags[3]]
    assert len(set(seen)) == 4, seen


def parts_of(answer):
    """Of a batch's answer, whose CRs the reading of lines has lost."""
    whole = rest_client.Response(answer.status, "", {
        "Content-Type": answer.headers["content-type"]}, answer.body.replace(b"\n", b"\r\n"))
    return rest_client.parse_batch(whole)


def batches(chapter):
    assert [p.status for p in parts_of(chapter[0][1])] == [201] * 4
    assert [p.status for p in parts_of(chapter[2][1])] == [201, 204, 204]
    (failed,) = parts_of(chapter[4][1])
    assert failed.status == 412 and failed.headers["Content-Type"].startswith("application/xml")
    assert atom.is_error(failed.body, "UpdateConditionNotSatisfied").startswith("1:")
    assert [e.row for e in entries_of(chapter[3][1])] == [e.row for e in entries_of(chapter[5][1])]
    (single,) = parts_of(chapter[6][1])
    assert single.status == 200 and entry_of(single).own["Text"] == string("Blog 2")


def pages(chapter):
    tokens = [answer.headers.get("x-ms-continuation-nextpartitionkey") for _, answer in chapter]
    assert [t is not None for t in tokens] == [False, True, True, True, False]
    for n in (3, 4):
        assert f"NextPartitionKey={tokens[n - 1]}".replace("!", "%21") in chapter[n][0].first
    keys = [e.row["RowKey"][1] for _, answer in chapter[2:] for e in entries_of(answer)]
    assert keys == [f"{n:02}" for n in range(25)]


def between_pages(chapter):
    """The second page begins where it was to begin when the first was read."""
    first, second, third, whole = ([e.row["RowKey"][1] for e in entries_of(answer)]
                                   for question, answer in chapter if "GET" in question.first)
    old = [f"{n:02}" for n in range(25)]
    assert (first, second, third) == (old[:10], ["10", "10a", *old[11:19]], old[19:])
    assert whole == sorted([*old, "04a", "09a", "10a"])


def walk_through(chapter):
    """Three workers: the channel is marked first, its row goes after its blogs, the job last."""
    changes = [q.request for q, a in chapter if not q.first.startswith("GET")
               and a.status < 300]
    mark = "MERGE Channels(PartitionKey='Gossip',RowKey='')"
    assert changes == [
        "POST Channels", "POST $batch", "POST Jobs", mark, "POST $batch", mark, mark,
        "POST $batch", "POST $batch", "DELETE Channels(PartitionKey='Gossip',RowKey='')",
        "DELETE Jobs(PartitionKey='DeleteChannelAndBlogs',RowKey='Gossip')"]
    channel = entry_of(chapter[0][1])
    assert channel.row["RowKey"] == string("")
    assert channel.own["CreatedOn"] == typed("Edm.DateTime", "2008-10-01T00:00:00Z")


def retyped(chapter):
    have = [[e.own for e in entries_of(a)] for q, a in chapter if q.first.startswith("GET")]
    assert have[0][0] == {"Text": string("Old"), "Rating": ("Edm.Int32", 1)}
    assert have[4][0] == {"Text": string("Old"), "Stars": typed("Edm.Double", "1.5")}
    assert [r["Rating"] for r in have[5]] == [typed("Edm.Double", "2.5")]


# ---- the module, with the values that it could lose


@pytest.fixture
def service(rest):
    account = rest_client.ACCOUNT
    t = table2009.Tables(f"AccountName={account};AccountKey={rest_client.KEY};"
                         f"TableEndpoint=http://127.0.0.1:{rest.port}/{account}")
    yield t
    t.connection.close()


def zone(hours):
    return datetime.timezone(datetime.timedelta(hours=hours))


def stored(rest, tab, row):
    """The property V as JSON tells it."""
    answer = rest_client.ok(rest.get(tab, "p", row), 200)
    return atom.of_json(atom.json_rows(answer.body))["V"]


@pytest.mark.parametrize("zoned, text", [
    (datetime.datetime(2026, 7, 1, 12, 30, tzinfo=zone(2)), "2026-07-01T10:30:00Z"),
    (datetime.datetime(2026, 1, 1, 0, 0, 0, 5, zone(5.5)), "2025-12-31T18:30:00.000005Z"),
    (datetime.datetime(2026, 12, 31, 20, tzinfo=zone(-8)), "2027-01-01T04:00:00Z"),
    (datetime.datetime(2026, 7, 1, 12, 30, tzinfo=zone(0)), "2026-07-01T12:30:00Z"),
    (datetime.datetime(2026, 7, 1, 12, 30), "2026-07-01T12:30:00Z")], ids=str)
def test_a_time_of_any_zone_stays_that_moment(service, rest, tab, zoned, text):
    made = service.insert(tab, {"PartitionKey": "p", "RowKey": "r", "V": zoned})
    assert stored(rest, tab, "r") == typed("Edm.DateTime", text)
    moment = zoned if zoned.tzinfo else zoned.replace(tzinfo=zone(0))
    assert made["V"] == service.get(tab, "p", "r")["V"] == moment


@pytest.mark.parametrize("number, text", [
    (float("inf"), "INF"), (float("-inf"), "-INF"), (float("nan"), "NaN"), (-0.0, "-0.0"),
    (1e300, "1e300"), (5e-324, "5e-324"), (0.1, "0.1")], ids=str)
def test_each_double_as_the_protocol_spells_it(service, rest, tab, number, text):
    assert table2009.to_edm(number) == ("Edm.Double", repr(number) if text[-1].isdigit() else text)
    made = service.insert(tab, {"PartitionKey": "p", "RowKey": "r", "V": number})
    assert stored(rest, tab, "r") == typed("Edm.Double", text)
    assert repr(made["V"]) == repr(service.get(tab, "p", "r")["V"]) == repr(number)


def test_ends_of_lines_stay_what_they_are(service, rest, tab):
    texts = ["a\rb", "\r", "\r\n", "\n\r\r\n", "a\nb", "&#xD;", " \ta\r "]
    rows = [{"PartitionKey": "p", "RowKey": str(n), "V": text} for n, text in enumerate(texts)]
    for row in rows[:4]:
        assert service.insert(tab, row)["V"] == row["V"]
    service.batch(*(("POST", tab, row) for row in rows[4:]))
    for row in rows:
        key = row["RowKey"]
        assert stored(rest, tab, key) == string(row["V"])
        assert service.get(tab, "p", key)["V"] == row["V"]
        assert service.get_in_batch(tab, "p", key)["V"] == row["V"]
