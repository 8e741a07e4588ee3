# SPDX-License-Identifier: MIT
"""Workers of the soak that move sums between the rows of a bank by change sets, through every
front end, and those who audit it: Z4, a change set is seen whole."""

import csv
import errno
import io
import json
import os

from rest_client import entity_path, moment, ok, parse_batch
from soak import must, once_more, row_path
from test_exact import read_to_end
from tools import put, xattr

ACCOUNTS, FUNDS = 15, 1000
BANK = "Bank", "bank"


def open_bank(client):
    for i in range(ACCOUNTS):
        ok(client.insert(BANK[0], {"PartitionKey": BANK[1], "RowKey": f"a{i:02}", "N": FUNDS}), 201)


def balance(w, rk):
    """What the row says and the version that says it, or None if that was replaced meanwhile."""
    if w.rng.random() < 0.5:
        found = ok(w.client.get(*BANK, rk), 200)
        return found.json["N"], found.etag
    fd = os.open(row_path(w, *BANK, rk), os.O_RDONLY)
    try:
        n = json.loads(os.read(fd, 1000))["N"]
        etag = once_more(lambda: os.getxattr(fd, "user.rowfs.etag").decode(),
                         errno.ESTALE, errno.ENODATA)
        return etag and (n, etag)
    finally:
        os.close(fd)


def transfer(w):
    while w.go():
        rks = [f"a{i:02}" for i in w.rng.sample(range(ACCOUNTS), w.rng.randint(2, 5))]
        found = [balance(w, rk) for rk in rks]
        if None in found:
            continue
        moved = [w.rng.randint(-50, 50) for _ in rks[1:]]
        moved.append(-sum(moved))
        rows = [(rk, n + d, etag) for rk, (n, etag), d in zip(rks, found, moved)]
        w.rng.choice([transfer_by_file, transfer_by_rest])(w, rows)


def transfer_by_file(w, rows):
    verb = w.rng.choice(["merge", "replace"])
    ops = [{verb: {"PartitionKey": BANK[1], "RowKey": rk, "N": n}, "if_match": etag}
           for rk, n, etag in rows]
    path = w.at / BANK[0] / w.rng.choice([".batch", f"{BANK[1]}/.batch"])
    try:
        put(path, json.dumps(ops))
    except OSError as e:
        must("Z4", e.errno == errno.ESTALE, e)
        return
    for rk, _, etag in rows:
        now = xattr(row_path(w, *BANK, rk), "etag")
        must("Z5", is_later(now, etag), "a change set was acknowledged and is not seen:", rk, "was",
             etag, "and is", now)


def is_later(etag, than):
    return moment(etag) > moment(than)


def transfer_by_rest(w, rows):
    answer = ok(w.client.batch([("PATCH", entity_path(*BANK, rk), {"If-Match": etag}, {"N": n})
                                for rk, n, etag in rows]), 202)
    statuses = {part.status for part in parse_batch(answer)}
    must("Z4", statuses in ({204}, {412}), statuses)


def bank_lines(text):
    return [json.loads(line)["N"] for line in text.decode().splitlines()]


def by_page(w):
    return [r["N"] for r in w.client.all(BANK[0], filter=f"PartitionKey eq '{BANK[1]}'")]


def by_query(w):
    return bank_lines(read_to_end(w.at / BANK[0] / f".query/PartitionKey eq '{BANK[1]}'.ndjson"))


def by_stream(w):
    return bank_lines(read_to_end(w.at / BANK[0] / w.rng.choice(["", BANK[1]]) / ".rows.ndjson"))


def by_csv(w):
    text = read_to_end(w.at / BANK[0] / ".rows.csv").decode()
    return [int(r["N"]) for r in csv.DictReader(io.StringIO(text))]


def by_export(w):
    done = w.tool(w.soak.rowfs.program, "export", w.soak.mount.store,
                  f"{w.client.account}/{BANK[0]}")
    return bank_lines(done.stdout.encode())


def auditor(w):
    ways = [by_page, by_query, by_stream, by_csv] * 4 + [by_export]
    while w.go():
        way = w.rng.choice(ways)
        audit(way(w), way.__name__)


def audit(balances, where):
    must("Z4", len(balances) == ACCOUNTS and sum(balances) == ACCOUNTS * FUNDS,
         f"{where}: {sum(balances)} on {len(balances)} accounts")
