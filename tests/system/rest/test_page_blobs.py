# SPDX-License-Identifier: MIT
"""Page blobs over REST: pages, ranges, sizes, sequence numbers, errors."""

import os
import random
import subprocess
import threading
import xml.etree.ElementTree as ET

import pytest
from blob_client import blobs_of, code
from test_blobs import blobs  # noqa: F401  the fixture

GIB, TIB = 1 << 30, 1 << 40
DISK = "/photos/disk.vhd"


def create(blobs, size, path=DISK, **headers):
    return blobs.ask("PUT", path, headers={"x-ms-blob-type": "PageBlob",
                                           "x-ms-blob-content-length": str(size), **headers})


def write(blobs, first, body, **headers):
    return blobs.ask("PUT", DISK, {"comp": "page"}, body=body,
                     headers={"x-ms-page-write": "update",
                              "x-ms-range": f"bytes={first}-{first + len(body) - 1}", **headers})


def clear(blobs, first, n, **headers):
    return blobs.ask("PUT", DISK, {"comp": "page"},
                     headers={"x-ms-page-write": "clear",
                              "x-ms-range": f"bytes={first}-{first + n - 1}", **headers})


def edit(blobs, path=DISK, **headers):
    return blobs.ask("PUT", path, {"comp": "properties"},
                     headers={k.replace("_", "-"): v for k, v in headers.items()})


def read(blobs, first, n):
    answer = blobs.ask("GET", DISK, headers={"x-ms-range": f"bytes={first}-{first + n - 1}"})
    assert answer.status == 206, answer
    return answer.body


def ask_ranges(blobs, first=None, end=None, **query):
    headers = {} if first is None else {"x-ms-range": f"bytes={first}-{end - 1}"}
    return blobs.ask("GET", DISK, {"comp": "pagelist", **query}, headers=headers)


def parsed(answer):
    assert answer.status == 200, answer
    root = ET.fromstring(answer.body)
    return ([(int(r.findtext("Start")), int(r.findtext("End"))) for r in root.iter("PageRange")],
            root.findtext("NextMarker"))


def check_closed(blobs):
    done = subprocess.run([str(blobs.server.rowfs.program), "check", str(blobs.store)],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "clean" in done.stdout, done.stdout + done.stderr


def check(blobs):
    """The store is sound when the server has ended."""
    blobs.server.stop()
    check_closed(blobs)


def test_pages_are_written_cleared_and_listed(blobs):  # noqa: F811
    made = create(blobs, 8 * TIB, **{"x-ms-blob-sequence-number": "7", "x-ms-meta-os": "x"})
    assert made.status == 201
    head = blobs.ask("HEAD", DISK).headers
    assert head["x-ms-blob-type"] == "PageBlob" and head["x-ms-blob-sequence-number"] == "7"
    assert int(head["Content-Length"]) == 8 * TIB and head["x-ms-meta-os"] == "x"
    assert parsed(ask_ranges(blobs)) == ([], None)
    put = write(blobs, 1024, b"a" * 512)
    assert put.status == 201 and put.headers["x-ms-content-crc64"] == "u661BimQ84c="
    assert put.headers["x-ms-blob-sequence-number"] == "7"
    assert put.headers["ETag"] > made.headers["ETag"]
    # Zeros that were written are valid, and adjacent pages are one range.
    assert write(blobs, 1536, bytes(8192)).status == 201
    assert write(blobs, 8 * TIB - 512, b"z" * 512).status == 201
    assert read(blobs, 1000, 1000) == bytes(24) + b"a" * 512 + bytes(464)
    assert read(blobs, 8 * TIB - 600, 600) == bytes(88) + b"z" * 512
    answer = ask_ranges(blobs)
    assert parsed(answer) == ([(1024, 9727), (8 * TIB - 512, 8 * TIB - 1)], None)
    assert int(answer.headers["x-ms-blob-content-length"]) == 8 * TIB
    # Ranges are cut at the range that is asked for.
    assert parsed(ask_ranges(blobs, 1536, 4096))[0] == [(1536, 4095)]
    assert parsed(ask_ranges(blobs, 0, 1024))[0] == []
    assert clear(blobs, 2048, 512).status == 201
    assert clear(blobs, 1 * TIB, 6 * TIB).status == 201
    assert parsed(ask_ranges(blobs, 0, TIB))[0] == [(1024, 2047), (2560, 9727)]
    assert "PageBlob" in blobs.ask("GET", "/photos", {"restype": "container", "comp": "list"}
                                   ).body.decode()
    check(blobs)


def test_a_list_has_pages(blobs):  # noqa: F811
    create(blobs, GIB)
    for i in range(7):
        assert write(blobs, i * 10240, b"x" * 512).status == 201
    whole = parsed(ask_ranges(blobs))[0]
    assert len(whole) == 7
    for size in (1, 2, 6, 7, 8, 20000):
        found, marker, pages = [], "", 0
        while True:
            more, after = parsed(ask_ranges(blobs, maxresults=str(size), marker=marker))
            found, marker, pages = found + more, after, pages + 1
            assert len(more) <= size
            if not marker:
                break
        assert found == whole and pages == max(1, -(-7 // size)) and marker == ""
    # The seed's loop over segments: a range over a border comes in two pieces.
    write(blobs, 4096 * 3, bytes(8192))
    joined = []
    for first in range(0, 1 << 17, 4096 * 4):
        joined += parsed(ask_ranges(blobs, first, first + 4096 * 4))[0]
    assert (12288, 16383) in joined and (16384, 20991) in joined
    for bad, want in (("0", "OutOfRangeQueryParameterValue"), ("x", "InvalidQueryParameterValue")):
        assert code(ask_ranges(blobs, maxresults=bad)) == (400, want)
    assert code(ask_ranges(blobs, marker="!")) == (400, "InvalidQueryParameterValue")
    assert code(ask_ranges(blobs, GIB, GIB + 512)) == (416, "InvalidRange")


def test_limits_and_errors_of_pages(blobs):  # noqa: F811
    for size, want in ((8 * TIB, None), (8 * TIB + 512, "InvalidHeaderValue"), (0, None),
                       (511, "InvalidHeaderValue"), (-512, "InvalidHeaderValue")):
        answer = create(blobs, size)
        assert answer.status == 201 if want is None else code(answer) == (400, want)
    answer = blobs.ask("PUT", DISK, headers={"x-ms-blob-type": "PageBlob"})
    assert code(answer) == (400, "MissingRequiredHeader")
    assert code(create(blobs, 512, **{"x-ms-blob-sequence-number": "-1"})
                ) == (400, "InvalidHeaderValue")
    size = 8 << 20
    create(blobs, size)
    body = os.urandom(4 << 20)
    assert write(blobs, 512, body).status == 201 and read(blobs, 512, 4 << 20) == body
    assert code(write(blobs, 0, body + bytes(512))) == (413, "RequestBodyTooLarge")
    for first, n in ((1, 512), (0, 511), (0, 513), (size, 512), (size - 512, 1024)):
        assert code(write(blobs, first, bytes(n))) == (416, "InvalidPageRange"), (first, n)
        assert code(clear(blobs, first, n)) == (416, "InvalidPageRange"), (first, n)
    short = blobs.ask("PUT", DISK, {"comp": "page"}, body=bytes(512),
                      headers={"x-ms-page-write": "update", "x-ms-range": "bytes=0-1023"})
    assert code(short) == (416, "InvalidPageRange")
    none = blobs.ask("PUT", DISK, {"comp": "page"}, body=bytes(512),
                     headers={"x-ms-page-write": "update"})
    assert code(none) == (400, "MissingRequiredHeader")
    assert code(write(blobs, 0, bytes(512), **{"x-ms-page-write": "other"})
                ) == (400, "InvalidHeaderValue")
    assert code(write(blobs, 0, bytes(512), **{"Content-MD5": "AAAAAAAAAAAAAAAAAAAAAA=="})
                ) == (400, "Md5Mismatch")
    assert code(write(blobs, 0, bytes(512), **{"If-Match": '"0x1"'})) == (412, "ConditionNotMet")
    assert read(blobs, 0, 512) == bytes(512) and size == 8 << 20
    blobs.put("/photos/text", b"1")
    for answer in (blobs.ask("GET", "/photos/text", {"comp": "pagelist"}),
                   edit(blobs, "/photos/text", x_ms_blob_content_length="512")):
        assert code(answer) == (409, "InvalidBlobType")
    assert code(blobs.ask("GET", "/photos/none", {"comp": "pagelist"})) == (404, "BlobNotFound")
    check(blobs)


def test_sequence_numbers_decide_and_count(blobs):  # noqa: F811
    create(blobs, 4096, **{"x-ms-blob-sequence-number": "5"})
    for word, right, wrong in (("le", 5, 4), ("lt", 6, 5), ("eq", 5, 6)):
        header = "x-ms-if-sequence-number-" + word
        assert write(blobs, 0, bytes(512), **{header: str(right)}).status == 201
        assert clear(blobs, 0, 512, **{header: str(right)}).status == 201
        for call in (lambda h: write(blobs, 0, bytes(512), **h), lambda h: clear(blobs, 0, 512, **h)):
            assert code(call({header: str(wrong)})) == (412, "SequenceNumberConditionNotMet")

    def act(action, number=None):
        extra = {} if number is None else {"x_ms_blob_sequence_number": str(number)}
        answer = edit(blobs, x_ms_sequence_number_action=action, **extra)
        return int(answer.headers["x-ms-blob-sequence-number"]) if answer.status == 200 \
            else code(answer)

    assert act("max", 3) == 5 and act("max", 9) == 9 and act("update", 2) == 2
    assert act("increment") == 3 and act("update", 2**63 - 1) == 2**63 - 1
    assert act("increment") == (409, "SequenceNumberIncrementTooLarge")
    assert act("update") == (400, "MissingRequiredHeader")
    assert act("increment", 4) == (400, "InvalidHeaderValue")
    assert act("other", 4) == (400, "InvalidHeaderValue")
    assert act("update", 2**63) == (400, "InvalidHeaderValue")


def test_a_size_changes_what_is_behind_it(blobs):  # noqa: F811
    create(blobs, 1 << 20, **{"x-ms-blob-content-type": "x/y"})
    write(blobs, 0, b"a" * (1 << 20))
    assert edit(blobs, x_ms_blob_content_length="1536").status == 200
    assert parsed(ask_ranges(blobs))[0] == [(0, 1535)]
    assert code(write(blobs, 1536, bytes(512))) == (416, "InvalidPageRange")
    assert edit(blobs, x_ms_blob_content_length=str(1 << 20)).status == 200
    assert parsed(ask_ranges(blobs))[0] == [(0, 1535)]
    assert read(blobs, 1024, 1024) == b"a" * 512 + bytes(512)
    # Size and number alone leave the other properties.
    assert blobs.ask("HEAD", DISK).headers["Content-Type"] == "x/y"
    for size in (511, 8 * TIB + 512):
        assert code(edit(blobs, x_ms_blob_content_length=str(size))) == (400, "InvalidHeaderValue")
    # Other content takes the place of all pages.
    assert blobs.put(DISK, b"text").status == 201
    assert create(blobs, 4096).status == 201 and parsed(ask_ranges(blobs))[0] == []
    check(blobs)


def test_a_clear_and_a_shrink_of_many_pieces(blobs):  # noqa: F811
    """A commit changes up to 1,025 pieces of 4 KiB, so both take several."""
    size, part = 16 << 20, 4 << 20
    data = bytearray(random.Random(1).randbytes(size))
    create(blobs, size)
    for first in range(0, size, part):
        assert write(blobs, first, bytes(data[first:first + part])).status == 201
    first, end = 1536, 13 * (1 << 20) + 512
    assert clear(blobs, first, end - first).status == 201
    data[first:end] = bytes(end - first)
    assert parsed(ask_ranges(blobs))[0] == [(0, first - 1), (end, size - 1)]
    assert blobs.get(DISK).body == data
    for at in range(0, size, part):
        assert write(blobs, at, bytes(part)).status == 201
    assert edit(blobs, x_ms_blob_content_length="2560").status == 200
    assert parsed(ask_ranges(blobs))[0] == [(0, 2559)]
    check(blobs)


def many(count, work):
    """Runs work(0) to work(count - 1) at once, and raises the first failure."""
    failures = []

    def run(i):
        try:
            work(i)
        except BaseException as e:
            failures.append(e)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(count)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(120)
    assert not failures, failures[0]


def killed_under_writers(blobs, work, enough):
    """Runs four writers until enough is set, kills the server, checks the store and serves it again.
    Returns a client."""
    def end(_):
        assert enough.wait(60)
        blobs.server.kill9()

    many(5, lambda i: work(i) if i < 4 else end(i))
    check_closed(blobs)
    blobs.server.restart()
    return blobs_of(blobs.server, blobs.store)


def test_writers_of_one_blob_do_not_lose_pages_of_each_other(blobs):  # noqa: F811
    """Eight writers, each with one page of every piece."""
    create(blobs, 16 * 4096)

    def work(i):
        for piece in range(16):
            body = bytes([i + 1]) * 512
            assert write(blobs, piece * 4096 + i * 512, body).status == 201

    many(8, work)
    assert blobs.get(DISK).body == b"".join(bytes([i + 1]) * 512 for i in range(8)) * 16
    assert parsed(ask_ranges(blobs))[0] == [(0, 16 * 4096 - 1)]
    check(blobs)


def test_a_page_that_was_acknowledged_outlives_a_kill(blobs):  # noqa: F811
    create(blobs, TIB)
    kept, enough = {}, threading.Event()

    def work(i):
        rng = random.Random(i)
        while True:
            at = (rng.randrange(1 << 28) * 8 + i) * 512
            try:
                if write(blobs, at, bytes([i + 1]) * 512).status != 201:
                    return
            except OSError:
                return  # the server has been killed
            kept[at] = i + 1
            if len(kept) > 100:
                enough.set()

    again = killed_under_writers(blobs, work, enough)
    for at, byte in kept.items():
        assert read(again, at, 512) == bytes([byte]) * 512
    valid = {at for a, b in parsed(ask_ranges(again))[0] for at in range(a, b + 1, 512)}
    assert valid >= kept.keys() and len(valid) <= len(kept) + 4  # four were under way


def test_a_page_of_the_list_has_at_most_10000_ranges(blobs):  # noqa: F811
    count = 10001
    create(blobs, 8 * TIB)
    many(8, lambda i: [write(blobs, n * 8192, b"x" * 512) for n in range(i, count, 8)])
    for size, want in ((9999, 9999), (10000, 10000), (10001, 10000)):
        found, marker = parsed(ask_ranges(blobs, maxresults=str(size)))
        assert len(found) == want and marker == str(want * 8192)
    assert len(parsed(ask_ranges(blobs))[0]) == count


@pytest.mark.parametrize("seed", range(2))
def test_random_changes_agree_with_a_bytearray(blobs, seed):  # noqa: F811
    rng = random.Random(seed)
    data, valid = bytearray(64 * 512), bytearray(64)
    create(blobs, len(data))
    for _ in range(150):
        pages = len(valid)
        first = rng.randrange(pages)
        n = rng.randint(1, min(pages - first, rng.choice((1, 3, 20, 64))))
        what = rng.choice("wwwcr")
        if what == "w":
            body = rng.randbytes(n * 512)
            assert write(blobs, first * 512, body).status == 201
            data[first * 512:(first + n) * 512], valid[first:first + n] = body, b"\1" * n
        elif what == "c":
            assert clear(blobs, first * 512, n * 512).status == 201
            data[first * 512:(first + n) * 512], valid[first:first + n] = bytes(n * 512), bytes(n)
        else:
            size = rng.randint(1, 64)
            assert edit(blobs, x_ms_blob_content_length=str(size * 512)).status == 200
            data = data[:size * 512].ljust(size * 512, b"\0")
            valid = valid[:size].ljust(size, b"\0")
        assert blobs.get(DISK).body == data
        found = bytearray(len(valid))
        for a, b in parsed(ask_ranges(blobs))[0]:
            found[a // 512:(b + 1) // 512] = b"\1" * ((b + 1 - a) // 512)
            assert a == 0 or not valid[a // 512 - 1]
        assert found == valid
    check(blobs)
