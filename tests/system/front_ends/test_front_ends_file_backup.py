# SPDX-License-Identifier: MIT
"""BK11: rsync and tar of a mount bring tables, queues and blobs into a new store."""

import re
import subprocess

import pytest
from blob_client import blobs_of
from conftest import add_accounts
from everything import add_blobs, add_messages
from queue_client import Queues
from rest_client import ACCOUNT, Client, ok

SOCKETS = ("rest=127.0.0.1:0", "rest=blob=127.0.0.1:0")
RSYNC = "rsync -aX {old}/ {kept}/ && rsync -aX {kept}/ {new}/"
TAR = "tar --format=posix --xattrs -SC {old} -cf {kept}/all.tar . && " \
    "tar --xattrs --xattrs-include=user.* -C {new} -xf {kept}/all.tar"
BLOBS = "small", "a/b/large", "blocks", "log", "disk", "empty"
KEPT = re.compile(r"x-ms-meta-|content-(type|length|language|encoding|disposition)|cache-control", re.I)


def fill(m, store):
    """Rows, messages and blobs, with properties, and one without a byte."""
    with Client(m.port) as client:
        ok(client.create_table("Blogs"), 201)
        for i in range(20):
            ok(client.upsert("Blogs", f"p {i % 3}", f"{i}%", {
                "N": i, "Long@odata.type": "Edm.Int64", "Long": "5", "Text": "\U0001f600"}), 204)
    add_messages(m)
    add_blobs(m, store)
    rest = blobs_of(m, store)
    assert rest.put("/photos/empty", b"", x_ms_meta_of="nothing").status == 201
    assert rest.ask("PUT", "/photos/blocks", {"comp": "properties"}, headers={
        "x-ms-blob-content-type": "text/plain", "x-ms-blob-content-language": "de"}).status == 200


def seen(m, store):
    """What a backup of files keeps, as REST shows it."""
    blobs, queues = blobs_of(m, store), Queues(m.port, host=f"{ACCOUNT}.queue.localhost")
    found = {"container": blobs.ask("GET", "/photos", {"restype": "container"}).headers["x-ms-meta-kind"]}
    with Client(m.port) as client:
        found["tables"] = [t["TableName"] for t in client.tables().json["value"]]
        found["rows"] = [{k: v for k, v in row.items() if not k.startswith("odata.") and k != "Timestamp"}
                         for row in client.all("Blogs")]
    found["messages"] = [e["MessageText"] for e in queues.get("jobs", peekonly="true", numofmessages=32)]
    for name in BLOBS:
        blob = blobs.get(f"/photos/{name}")
        found[name] = blob.body, sorted(h for h in blob.headers.items() if KEPT.match(h[0]))
    return found


@pytest.mark.parametrize("tools", [RSYNC, TAR], ids=["rsync", "tar"])
def test_BK11_a_backup_of_files_restores_all_three_services(rowfs, rest_store, mount, work, tools):
    m = mount(rest_store, *SOCKETS)
    fill(m, rest_store)
    before = seen(m, rest_store)
    assert len(before["rows"]) == 20 and len(before["messages"]) == 5
    other = work / "other.rowfs"
    rowfs("init", other)
    add_accounts(rowfs, other)
    restored = mount(other, *SOCKETS)
    (work / "kept").mkdir()
    subprocess.run(tools.format(old=m / ACCOUNT, new=restored / ACCOUNT, kept=work / "kept"),
                   shell=True, check=True)
    after = seen(restored, other)
    types = {n: blobs_of(restored, other).ask("HEAD", f"/photos/{n}").headers["x-ms-blob-type"] for n in BLOBS}
    assert types == dict.fromkeys(BLOBS, "BlockBlob")
    for part in before:
        assert after[part] == before[part], part
