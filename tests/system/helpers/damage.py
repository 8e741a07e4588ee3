# SPDX-License-Identifier: MIT
"""Damages of a store, one of each kind that its tables, columns and pages can have.

A damage is a name, SQL or a function of the file's path, and a pattern that a finding of
`rowfs check` must match.  SQL is run by SQLite itself on the closed store, with all checksums
of pages made right again: so it plays a mistake of a program.  What damages pages plays a disk.
"""

import contextlib
import sqlite3

import store_pages

PAGE = 4096
ROW = "(SELECT id FROM item WHERE kind=4 AND key=CAST('plain' AS BLOB))"
FILE = "(SELECT id FROM item WHERE kind=5 AND key=CAST('large' AS BLOB))"
SMALL = "(SELECT id FROM item WHERE kind=5 AND key=CAST('small' AS BLOB))"
TABLE = "(SELECT id FROM item WHERE kind=2)"
ACCOUNT = "(SELECT id FROM item WHERE kind=1)"
PARTITION = "(SELECT id FROM item WHERE kind=3 AND key=CAST('p' AS BLOB))"
FOLDER = "(SELECT id FROM item WHERE kind=6 AND key=CAST('.d' AS BLOB))"
INNER = "(SELECT id FROM item WHERE kind=6 AND key=CAST('.e' AS BLOB))"


def body(text, of=ROW):
    return f"UPDATE obj SET body=CAST('{text}' AS BLOB) WHERE id={of}"


def document(text, of=ROW):
    """A document of the right size."""
    return (f"UPDATE item SET size=length(CAST('{text}' AS BLOB)), flags=NULL WHERE id={of};"
            + body(text, of))


def renamed(what, key, blob="CAST('{}' AS BLOB)"):
    """The same name in both tables."""
    value = blob.format(key)
    return (f"UPDATE obj SET key={value} WHERE id={what};"
            f"UPDATE item SET key={value} WHERE id={what}").replace(
                f"WHERE id={what};", f"WHERE id=(SELECT v FROM temp.w);")


def moved(what, to):
    return f"UPDATE obj SET parent={to} WHERE id=(SELECT v FROM temp.w);" \
           f"UPDATE item SET parent={to} WHERE id=(SELECT v FROM temp.w)"


def new_item(columns, values):
    return f"INSERT INTO item({columns}) VALUES({values})"


many = ",".join(f'"P{i}":1' for i in range(253))

# name, SQL, pattern.  temp.w.v is the id that the last column names, where there is one.
SQL = [
    # missing and extra rows
    ("a document row is missing", f"DELETE FROM obj WHERE id={ROW}", r"abc/[Tt]ab/p/plain: it has no document row"),
    ("an item is missing", f"DELETE FROM item WHERE id={ROW}", r"abc/[Tt]ab/p/plain: document row \d+ has no item"),
    ("an item and its document row are missing",
     f"DELETE FROM obj WHERE id={ROW}; DELETE FROM item WHERE kind=4 AND key=CAST('plain' AS BLOB)",
     r"abc/[Tt]ab/p: directory counts"),
    ("a partition is missing", f"DELETE FROM obj WHERE id={PARTITION}; DELETE FROM item WHERE kind=3"
     " AND key=CAST('p' AS BLOB)", r"\(in \d+\)/plain: it has no directory"),
    ("a table is missing", f"DELETE FROM obj WHERE id={TABLE}; DELETE FROM item WHERE kind=2",
     r"it has no directory"),
    ("a fixed folder is missing", "DELETE FROM obj WHERE id=4; DELETE FROM item WHERE id=4",
     r"the folder 4 that every store has is missing"),
    ("a fixed folder is a partition", "UPDATE item SET kind=3, class=0 WHERE id=2",
     r"the folder 2 that every store has"),
    ("an item stands twice", f"INSERT INTO item SELECT parent,class,CAST('again' AS BLOB),id,kind,"
     f"version,edition,size,flags,attrs,name FROM item WHERE id={ROW}", r"abc/[Tt]ab/p/again: it is kept under two places"),
    ("an item stands nowhere", new_item("parent,class,key,id,kind,version", "0,0,x'61',9999,4,1"),
     r"it stands nowhere"),
    ("a document row without place", "INSERT INTO obj VALUES(2000,77,0,x'61',x'7b7d')",
     r"\(in 77\)/a: document row 2000 has no item"),
    # columns of item
    ("a parent is another one", f"UPDATE item SET parent={ACCOUNT} WHERE id={ROW}", r"kept under two places"),
    ("a row stands in an account", moved(ROW, ACCOUNT), r"abc/plain: it may not stand where it does", ROW),
    ("a row stands in a folder", moved(ROW, FOLDER), r"may not stand where it does", ROW),
    ("an item stands in a row", moved(SMALL, ROW), r"may not stand where it does", SMALL),
    ("a partition in a partition", moved("(SELECT id FROM item WHERE kind=3 AND key=CAST('q' AS BLOB))",
     PARTITION), r"may not stand", "(SELECT id FROM item WHERE kind=3 AND key=CAST('q' AS BLOB))"),
    ("a class is another one", f"UPDATE obj SET class=1 WHERE id={ROW}; UPDATE item SET class=1"
     " WHERE kind=4 AND key=CAST('plain' AS BLOB)", r"abc/[Tt]ab/p/plain: it is of the wrong class"),
    ("a class is unknown", f"UPDATE item SET class=7 WHERE id={SMALL}", r"small: it is of the wrong class"),
    ("a kind is another one", f"UPDATE item SET kind=5 WHERE id={ROW}", r"plain"),
    ("a kind is unknown", f"UPDATE item SET kind=13 WHERE id={ROW}", r"plain: it is of no known kind"),
    ("a directory is a file", f"UPDATE item SET kind=5 WHERE id={FOLDER}", r"may not stand where it does"),
    ("an id is another one", f"UPDATE item SET id=id+500 WHERE id={ROW}", r"plain: (it is kept|it has no document)"),
    ("an id is a front end's", new_item("parent,class,key,id,kind,version", f"{FOLDER},1,x'61',77,5,1"),
     r"its id is out of range"),
    ("an id is too large", new_item("parent,class,key,id,kind,version", f"{FOLDER},1,x'61',1<<41,5,1"),
     r"its id is out of range"),
    ("a version is in the future", f"UPDATE item SET version=1<<61 WHERE id={ROW}",
     r"abc/[Tt]ab/p/plain: it is of a version later than any given out"),
    ("a version is negative", f"UPDATE item SET version=-5 WHERE id={ROW}", r"its version is negative"),
    ("a Timestamp is none", f"UPDATE item SET version=0 WHERE id={ROW}", r"abc/[Tt]ab/p/plain: the Timestamp is not a date"),
    ("a generation is negative", f"UPDATE item SET edition=-1 WHERE id={ROW}", r"plain: the number of its generation"),
    ("a directory has a generation", f"UPDATE item SET edition=1 WHERE id={TABLE}", r"abc/[Tt]ab: the number of its generation"),
    ("a size is another one", f"UPDATE item SET size=size+1 WHERE id={ROW}", r"abc/[Tt]ab/p/plain: the row has \d+ bytes"),
    ("a size is negative", f"UPDATE item SET size=-1 WHERE id={ROW}", r"its size is negative"),
    ("a count of rows is wrong", f"UPDATE item SET size=size+1 WHERE id={PARTITION}",
     r"abc/[Tt]ab/p: directory counts 9 children, it has 8"),
    ("a count of tables is wrong", f"UPDATE item SET size=NULL WHERE id={ACCOUNT}", r"abc: directory counts 0"),
    ("a mark of a row is wrong", f"UPDATE item SET flags=flags|2 WHERE id={ROW}",
     r"abc/[Tt]ab/p/plain: the flag for keys in the document is wrong"),
    ("a row has the mark of canonical form", "UPDATE item SET flags=4 WHERE key=CAST('spaced' AS BLOB)",
     r"spaced: the document is not in the form that its flag says"),
    ("a row has a directory's mark", f"UPDATE item SET flags=flags|1 WHERE id={ROW}", r"flags that a row cannot have"),
    ("a partition has a row's mark", f"UPDATE item SET flags=4 WHERE id={PARTITION}", r"flags that a directory cannot have"),
    ("a file has a row's mark", f"UPDATE item SET flags=4 WHERE id={FILE}", r"flags that a file cannot have"),
    ("marks that nothing has", f"UPDATE item SET flags=4096 WHERE id={ROW}", r"marks that nothing has"),
    ("a file that is in pieces is marked as small", f"UPDATE item SET flags=256 WHERE id={FILE}",
     r"large: the small file has \d+ bytes, its document row none"),
    ("a small file is not marked so", f"UPDATE item SET flags=NULL WHERE id={SMALL}", r"small: the small file"),
    ("a row has a condition, as files may", f"UPDATE item SET attrs=zeroblob(36) WHERE id={ROW}", r"mode, owner and times cannot be read"),
    ("attributes are cut off", f"UPDATE item SET attrs=x'00' WHERE id={ROW}", r"mode, owner and times cannot be read"),
    ("a row has a table's name", f"UPDATE item SET name=x'41' WHERE id={ROW}", r"a name that only tables have"),
    ("a table's name is another one", f"UPDATE item SET name=CAST('Other' AS BLOB) WHERE id={TABLE}",
     r"the key is not the name in lower case"),
    ("a table has no name", f"UPDATE item SET name=NULL WHERE id={TABLE}", r"name"),
    # keys and names
    ("a RowKey is not UTF-8", renamed(ROW, "ff", "x'{}'"), r"abc/[Tt]ab/p", ROW),
    ("a RowKey has a slash", renamed(ROW, "x/y"), r"abc/[Tt]ab/p", ROW),
    ("a PartitionKey has a control character", renamed(PARTITION, "7001", "x'{}'"), r"abc/[Tt]ab", PARTITION),
    ("a RowKey is too long", renamed(ROW, "1600", "zeroblob({})"), r"longer than a key may be", ROW),
    ("an account's name breaks the rule", renamed(ACCOUNT, "A"), r"A: ", ACCOUNT),
    ("a file's name has a slash", renamed(SMALL, "x/y"), r"the name of an ordinary file is not allowed", SMALL),
    ("a file's name is two dots", renamed(SMALL, ".."), r"the name of an ordinary file is not allowed", SMALL),
    ("a file's name is empty", renamed(SMALL, "", "x'{}'"), r"the name of an ordinary file is not allowed", SMALL),
    ("a folder has a row's name", renamed(FOLDER, "x.json"), r"the name of an ordinary file is not allowed", FOLDER),
    ("a file has a name that means nothing", renamed(SMALL, "%61.json"),
     r"the name of an ordinary file is not allowed", SMALL),
    ("a folder stands in a table", moved(FOLDER, TABLE) + ";" + "".join(
        f"UPDATE {t} SET key=CAST('sub' AS BLOB) WHERE id=(SELECT v FROM temp.w);"
        for t in ("obj", "item")),
     r"the name of an ordinary file is not allowed", FOLDER),
    # bodies
    ("a document is gone", f"UPDATE obj SET body=NULL WHERE id={ROW}", r"plain: the row has \d+ bytes, its document none"),
    ("a document is cut off", f"UPDATE obj SET body=substr(body,1,3) WHERE id={ROW}", r"the row has"),
    ("a document is no JSON", document("{\"A\":"), r"abc/[Tt]ab/p/plain: "),
    ("a document is empty", f"UPDATE item SET size=0 WHERE id={ROW};" + body("", ROW), r"abc/[Tt]ab/p/plain: "),
    ("a document has no type", document('{"A@odata.type":"Edm.None","A":"1"}'), r"abc/[Tt]ab/p/plain: "),
    ("a document has too many properties", document("{" + many + "}"), r"abc/[Tt]ab/p/plain: .*more properties"),
    ("a document has a property twice", document('{"A":1,"A":2}'), r"abc/[Tt]ab/p/plain: "),
    ("a document has a name that is none", document('{"A B":1}'), r"abc/[Tt]ab/p/plain: "),
    ("a document has another row's keys",
     document('{"RowKey":"other","A":1}') + f"; UPDATE item SET flags=2 WHERE id={ROW}",
     r"the keys in the document are not the row's"),
    ("a long key's document has no keys",
     "UPDATE obj SET body=x'7b7d' WHERE id IN (SELECT id FROM item WHERE kind=4 AND length(key)>250);"
     "UPDATE item SET size=2, flags=NULL WHERE kind=4 AND length(key)>250",
     r"the document of a long key does not hold its keys"),
    ("a partition has a document", f"UPDATE obj SET body=x'7b7d' WHERE id={PARTITION}", r"abc/[Tt]ab/p: it has a document"),
    ("a policy is no XML", body("<SignedIdentifiers><", TABLE), r"abc/[Tt]ab: its access policies cannot be read"),
    ("a policy is another XML", body("<Other/>", TABLE), r"abc/[Tt]ab: its access policies cannot be read"),
    ("an account has no keys", f"UPDATE obj SET body=NULL WHERE id={ACCOUNT}", r"abc: the account.s keys cannot be read"),
    ("an account's keys are no base64", body("key1=!\nkey2=!\n", ACCOUNT), r"abc: the account.s keys cannot be read"),
    ("service properties are no XML",
     f"UPDATE obj SET body=CAST(body||CAST('properties=PGE+\n' AS BLOB) AS BLOB) WHERE id={ACCOUNT}",
     r"abc: its service properties cannot be read"),
    # content of ordinary files
    ("a piece belongs to nobody", "INSERT INTO chunk VALUES(99999,0,x'00')", r"belongs to no file: id 99999"),
    ("a piece belongs to a row", f"INSERT INTO chunk VALUES({ROW},0,x'00')", r"belongs to no file"),
    ("a piece too many", f"INSERT INTO chunk VALUES({FILE},99,x'00')", r"large: the file has content behind its end"),
    ("a piece is too long", f"UPDATE chunk SET data=zeroblob(20000) WHERE n=0", r"a piece of content of a wrong size"),
    ("a piece is empty", f"UPDATE chunk SET data=x'' WHERE n=0", r"a piece of content of a wrong size"),
    ("a piece has no number", f"UPDATE chunk SET n=-1 WHERE n=0", r"a piece of content of a wrong size"),
    ("a small file has a piece", f"INSERT INTO chunk VALUES({SMALL},0,x'00')", r"belongs to no file"),
    ("a small file's content is longer", f"UPDATE obj SET body=zeroblob(999) WHERE id={SMALL}", r"small: the small file has"),
    ("the sum of the files is wrong", "UPDATE item SET name=CAST('1' AS BLOB) WHERE id=3", r"the files have \d+ bytes"),
    # cross-links
    ("a folder stands in itself", moved(FOLDER, INNER), r"the folder cannot be reached", FOLDER),
    ("a folder is its own parent", moved(FOLDER, FOLDER), r"the folder cannot be reached", FOLDER),
    ("a place in a document row is another's", f"UPDATE obj SET key=CAST('spaced' AS BLOB) WHERE id={ROW}",
     r"plain: it is kept under two places"),
    # counters and the database
    ("an id was not given out", "UPDATE meta SET value=1030 WHERE name='next_id'", r"still to be given out"),
    ("the counter of ids is out of range", "UPDATE meta SET value=1<<50 WHERE name='next_id'", r"out of range"),
    ("a version was not given out", "UPDATE meta SET value=5 WHERE name='version_high'", r"later than any given out"),
    ("a counter too many", "INSERT INTO meta VALUES('x',1)", r"a counter that is not of rowfs: x"),
    ("a counter is missing", "DELETE FROM meta WHERE name='next_id'", r"the counter next_id is missing"),
    ("a table too many", "CREATE TABLE other(x)", r"that is not of rowfs: other"),
    ("an index too many", "CREATE INDEX i ON item(kind)", r"that is not of rowfs: i"),
    ("a trigger", "CREATE TRIGGER t AFTER INSERT ON obj BEGIN DELETE FROM item; END", r"that is not of rowfs: t"),
    ("the table of pieces is missing", "DROP TABLE chunk", r"not rowfs's: no such table"),
    ("the table of items is missing", "DROP TABLE item", r"not rowfs's: no such table: item"),
    ("it is of another program", "PRAGMA application_id=7", r"not a rowfs store"),
    ("it is of a newer rowfs", "PRAGMA user_version=99", r"schema version 99"),
    ("it was never finished", "PRAGMA user_version=0", r"unfinished"),
]


def by_sql(path, sql, what=None):
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as db:
        if what is not None:
            db.execute(f"CREATE TEMP TABLE w AS SELECT {what} v")
        db.executescript(sql)
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    store_pages.seal(path)


def patch(offset, data, seal=False):
    def do(path):
        with open(path, "r+b") as f:
            f.seek(offset)
            f.write(data)
        if seal:
            store_pages.seal(path)
    return do


def cut(size):
    def do(path):
        with open(path, "r+b") as f:
            f.truncate(size if size >= 0 else f.seek(0, 2) + size)
    return do


def swap_pages(a, b):
    def do(path):
        with open(path, "r+b") as f:
            f.seek(a * PAGE)
            one = f.read(PAGE)
            f.seek(b * PAGE)
            two = f.read(PAGE)
            f.seek(a * PAGE)
            f.write(two)
            f.seek(b * PAGE)
            f.write(one)
    return do


def free_pages(path):
    """Makes some, and a list of them."""
    by_sql(path, "CREATE TABLE z(x); INSERT INTO z SELECT zeroblob(9000) FROM item; DROP TABLE z")


def bad_free_list(path):
    free_pages(path)
    patch(36, b"\0\0\0\x01", seal=True)(path)


def bad_free_page(path):
    free_pages(path)
    with open(path, "rb") as f:
        f.seek(32)
        trunk = int.from_bytes(f.read(4), "big")
    patch((trunk - 1) * PAGE, b"\xff" * 8, seal=True)(path)


# name, function, pattern
PAGES = [
    ("the end is missing", cut(-PAGE), r"damaged"),
    ("half of the last page is missing", cut(-PAGE // 2), r"damaged"),
    ("all but the first page is missing", cut(PAGE), r"damaged"),
    ("most of the first page is missing", cut(50), r"not a rowfs store"),
    ("it is empty", cut(0), r"empty file"),
    ("two pages are swapped", swap_pages(2, 3), r"damaged"),
    ("the magic is gone", patch(0, b"\0" * 16), r"not a rowfs store"),
    ("the header says nothing of checksums", patch(20, b"\0"), r"damaged"),
    ("the first page's tree is damaged", patch(100, b"\xff" * 8), r"damaged"),
    ("the list of free pages counts wrong", bad_free_list, r"damaged"),
    ("the list of free pages leads nowhere", bad_free_page, r"damaged"),
]
