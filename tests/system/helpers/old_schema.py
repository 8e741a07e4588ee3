# SPDX-License-Identifier: MIT
"""Stores as an older rowfs has left them."""

import contextlib
import os
import sqlite3

import store_pages


def as_version_1(store):
    """What a rowfs of schema version 1 would have written: no checksums, all content of files in
    pieces, the sum of their sizes among the counters, and an empty file for a name that waits for its
    document."""
    old = store.with_name("older")
    with contextlib.closing(sqlite3.connect(old)) as db, db:
        db.execute("ATTACH ? AS s", (str(store),))
        for (sql,) in db.execute("SELECT sql FROM s.sqlite_schema WHERE type='table'").fetchall():
            db.execute(sql)
        for table in ("item", "obj", "chunk", "meta"):
            db.execute(f"INSERT INTO {table} SELECT * FROM s.{table}")
        db.commit()
        small = "(SELECT id FROM item WHERE kind=5 AND flags&256)"
        db.executescript(f"""
            INSERT INTO meta SELECT 'file_bytes',ifnull(sum(size),0) FROM item WHERE kind=5;
            UPDATE item SET name=NULL WHERE id=3 OR kind IN (4,5);
            INSERT INTO chunk SELECT i.id,0,o.body FROM item i JOIN obj o
                ON o.id=i.id&549755813887 WHERE i.id IN {small};
            UPDATE obj SET body=NULL WHERE id IN (SELECT id&549755813887 FROM item WHERE id IN {small});
            UPDATE item SET flags=NULL WHERE kind=5;
            UPDATE obj SET class=1,key=CAST(CAST(key AS TEXT)||'.json' AS BLOB),body=NULL
                WHERE id IN (SELECT id FROM item WHERE kind=4 AND ifnull(size,0)=0);
            UPDATE item SET class=1,key=CAST(CAST(key AS TEXT)||'.json' AS BLOB),kind=5,edition=NULL
                WHERE kind=4 AND ifnull(size,0)=0;
            UPDATE item SET flags=flags&~8 WHERE kind=3;
            PRAGMA application_id={0x726F7766}; PRAGMA user_version=1; PRAGMA journal_mode=WAL""")
    os.chmod(old, 0o600)
    os.rename(old, store)


def without_maps(store):
    """What a rowfs of schema version 5 wrote at first: a file that says nowhere who points to a page."""
    with contextlib.closing(sqlite3.connect(store)) as db:
        db.execute("PRAGMA auto_vacuum=NONE")
        db.execute("VACUUM")
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    store_pages.seal(store)
