#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The micro-blogging case of the paper that described the Table service in 2009: channels,
and blogs in them.  Each chapter is one thing that the paper teaches.

    AZURE_STORAGE_CONNECTION_STRING=... blogs.py [--show]    --show: requests and answers too
"""

import datetime
import os
import sys

from table2009 import Refused, Tables

UTC = datetime.timezone.utc
LAST_TICK = 3155378975999999999  # of the year 9999, in units of 100 ns since the year 1


def date(*parts):
    return datetime.datetime(*parts, tzinfo=UTC)


def newest_first(when):
    """A RowKey that is the less the later the moment is; of fixed length, as keys are text."""
    since = when - date(1, 1, 1)
    ticks = (since.days * 86400 + since.seconds) * 10**7 + since.microseconds * 10
    return f"{LAST_TICK - ticks:019}"


def blog(channel, row, text, rating, **more):
    return {"PartitionKey": channel, "RowKey": row, "Text": text, "Rating": rating, **more}


def texts(rows):
    return ", ".join(r["Text"] for r in rows)


def create(t):
    # Looking first is cheaper than being refused; and creating tables is the set-up's business.
    for table in ("Channels", "Blogs", "Jobs"):
        if not t.has_table(table):
            t.create_table(table)
    print("  Channels, Blogs, Jobs")


def insert(t):
    made = t.insert("Blogs", blog("Channel9", "Oct-29", "Hello", 3))
    print(f"  {made['Text']!r}, rated {made['Rating']}")
    try:
        t.insert("Blogs", blog("Channel9", "Oct-29", "Hello again", 1))
    except Refused as e:
        print(f"  The same keys once more: {e}")


def ask(t):
    t.insert("Blogs", blog("Channel9", "Oct-30", "Good morning", 5))
    print("  Rated 3:", texts(t.query("Blogs", filter="Rating eq 3")))


def update(t):
    # Two readers, who both change what they have read.
    mine, yours = (t.get("Blogs", "Channel9", "Oct-29") for _ in range(2))
    t.replace("Blogs", {**mine, "Text": "Hi there"}, mine.etag)
    try:
        t.replace("Blogs", {**yours, "Text": "Hi there again"}, yours.etag)
    except Refused as e:
        print(f"  The second of two: {e}")
    # Read what there is now, change that, and try again.
    yours = t.get("Blogs", "Channel9", "Oct-29")
    t.replace("Blogs", {**yours, "Text": yours["Text"] + " again"}, yours.etag)
    # A merge names what changes; the etag * is any version.
    t.merge("Blogs", {"PartitionKey": "Channel9", "RowKey": "Oct-29", "Rating": 4}, "*")
    now = t.get("Blogs", "Channel9", "Oct-29")
    print(f"  {now['Text']!r}, rated {now['Rating']}")


def delete(t):
    row = t.get("Blogs", "Channel9", "Oct-29")
    t.delete("Blogs", row, row.etag)
    try:
        t.get("Blogs", "Channel9", "Oct-29")
    except Refused as e:
        print(f"  Afterwards: {e}")


def batch(t):
    t.batch(*(("POST", "Blogs", blog("Channel_19", str(n), f"Blog {n}", n)) for n in range(4)))
    old = list(t.query("Blogs", filter="PartitionKey eq 'Channel_19'"))
    t.batch(("POST", "Blogs", blog("Channel_19", "4", "Blog 4", 4)),
            ("DELETE", "Blogs", old[0], old[0].etag),
            ("PUT", "Blogs", {**old[1], "Rating": old[1]["Rating"] + 1}, old[1].etag))
    new = list(t.query("Blogs", filter="PartitionKey eq 'Channel_19'"))
    print("  ", ", ".join(f"{r['Text']}: {r['Rating']}" for r in new), sep="")
    # The refusal says which operation it was, and none of them is done.
    try:
        t.batch(("POST", "Blogs", blog("Channel_19", "5", "Blog 5", 5)),
                ("PUT", "Blogs", {**old[1], "Rating": 5}, old[1].etag),
                ("POST", "Blogs", blog("Channel_19", "6", "Blog 6", 6)))
    except Refused as e:
        print(f"  Operation {e.index}: {e}")
    count = len(list(t.query("Blogs", filter="PartitionKey eq 'Channel_19'")))
    print(f"  {count} rows, as before; alone in a batch:",
          t.get_in_batch("Blogs", "Channel_19", "2")["Text"])


def pages(t):
    t.batch(*(("POST", "Blogs", blog("News", f"{n:02}", f"News {n}", 0)) for n in range(25)))
    news = "PartitionKey eq 'News'"
    print("  The first 3:", texts(t.page("Blogs", top=3, filter=news)[0]))
    rows, token = t.page("Blogs", top=10, filter=news)
    sizes = [len(rows)]
    while token:  # the same query, and from where on
        rows, token = t.page("Blogs", token, top=10, filter=news)
        sizes.append(len(rows))
    print("  In pages of 10:", sizes)


def between(t):
    """Each page is what the partition was at one moment; all of them together are not.  The
    token is where the next page begins, whatever comes before that meanwhile."""
    news = "PartitionKey eq 'News'"
    rows, token = t.page("Blogs", top=10, filter=news)
    for row, text in (("04a", "Among those read"), ("09a", "Right behind the last"),
                      ("10a", "Further on")):
        t.insert("Blogs", blog("News", row, text, 0))
    seen = list(rows)
    while token:
        rows, token = t.page("Blogs", token, top=10, filter=news)
        seen += rows
    for row in t.query("Blogs", filter=news):
        if len(row["RowKey"]) == 3:
            print(f"  {row['RowKey']} {row['Text']}:", "seen" if row in seen else "not seen")


def consistency(t):
    """A channel goes with all of its blogs, which no change set reaches together.  What is to
    be done is written down first; a worker may die anywhere, and another one goes on."""
    channel = {"PartitionKey": "Gossip", "RowKey": "", "Owner": "Joe",
               "CreatedOn": date(2008, 10, 1)}
    t.insert("Channels", channel)
    t.batch(*(("POST", "Blogs", blog("Gossip", str(n), f"Rumour {n}", 0)) for n in range(5)))
    t.insert("Jobs", {"PartitionKey": "DeleteChannelAndBlogs", "RowKey": "Gossip"})

    def work(steps):
        """Takes the jobs up; dies after so many steps."""
        def step(what):
            nonlocal steps
            if steps == 0:
                raise InterruptedError
            steps -= 1
            what()

        for job in t.query("Jobs", filter="PartitionKey eq 'DeleteChannelAndBlogs'"):
            name = job["RowKey"]
            row = {"PartitionKey": name, "RowKey": ""}
            left = list(t.query("Channels", filter=f"PartitionKey eq '{name}'"))
            if left:  # from here on nobody reads the channel
                step(lambda: t.merge("Channels", {**row, "Valid": False}, "*"))
            while rows := t.page("Blogs", filter=f"PartitionKey eq '{name}'", top=2)[0]:
                step(lambda: t.batch(*(("DELETE", "Blogs", r, "*") for r in rows)))
            if left:
                step(lambda: t.delete("Channels", row, "*"))
            step(lambda: t.delete("Jobs", job, "*"))

    for worker, steps in (("first", 2), ("second", 1), ("third", 10)):
        end = "is done"
        try:
            work(steps)
        except InterruptedError:
            end = "dies"
        blogs = len(list(t.query("Blogs", filter="PartitionKey eq 'Gossip'")))
        channels, jobs = (len(list(t.query(table))) for table in ("Channels", "Jobs"))
        print(f"  The {worker} worker {end}: {blogs} blogs, {channels} channels, {jobs} jobs")


def latest(t):
    for day, text in ((1, "The older"), (2, "The newer")):
        when = date(2008, 10, day, 10)
        t.insert("Blogs", blog("Football", newest_first(when), text, 0, CreatedOn=when))
    rows = list(t.query("Blogs", filter="PartitionKey eq 'Football'"))
    print("  ", ", ".join(f"{r['RowKey']} {r['Text']}" for r in rows), sep="")
    after = newest_first(date(2008, 10, 1, 10))
    print("  After October 1st, 10:00:", texts(t.query(
        "Blogs", filter=f"PartitionKey eq 'Football' and RowKey lt '{after}'")))


def partitions(t):
    """A channel in partitions of a month each, the latest first: <9999 - year>_<13 - month>."""
    for year, month in ((2008, 9), (2008, 10), (2007, 12)):
        when = date(year, month, 5)
        t.insert("Blogs", blog(f"Football_{9999 - year}_{13 - month:02}", newest_first(when),
                               f"{month}/{year}", 0))
    print("  October 2008:", texts(t.query(
        "Blogs", filter="PartitionKey eq 'Football_7991_03'")))
    print("  2008:", texts(t.query("Blogs", filter="PartitionKey ge 'Football_7991' "
                                   "and PartitionKey lt 'Football_7992'")))


def prefixes(t):
    for channel in ("PDC2008", "PDC2009", "PDZ"):
        t.insert("Blogs", blog(channel, "1", f"About {channel}", 0))
    print("  All that begin with PDC:", texts(t.query(
        "Blogs", filter="PartitionKey ge 'PDC' and PartitionKey lt 'PDD'")))


def kinds(t):
    """What is read together is kept together, whatever it is; EntityType tells what."""
    t.create_table("SocialNetwork")

    def thing(kind, day, **properties):
        when = date(2008, 10, day)
        return {"PartitionKey": "joe", "RowKey": f"{newest_first(when)}_{kind}",
                "EntityType": kind, "CreatedOn": when, **properties}

    hello = thing("Blog", 1, Text="Hello", Category="life")
    comment = {"PartitionKey": "joe", "RowKey": f"{hello['RowKey']}_1", "EntityType": "Comment",
               "Comment": "Hi, Joe", "Rating": 5}
    t.batch(("POST", "SocialNetwork", hello), ("POST", "SocialNetwork", comment),
            ("POST", "SocialNetwork", thing("Photo", 2, Uri="http://joe/1.jpg", Caption="Sea")))
    for row in t.query("SocialNetwork", filter="PartitionKey eq 'joe'", top=100):
        tell = {"Blog": "Text", "Photo": "Caption", "Comment": "Comment"}[row["EntityType"]]
        print(f"  {row['EntityType']}: {row[tell]}")
    print("  Only photos:", ", ".join(r["Uri"] for r in t.query(
        "SocialNetwork", filter="PartitionKey eq 'joe' and EntityType eq 'Photo'")))


def schema(t):
    """Tables have no schema, so old and new rows live together until the last is upgraded."""
    t.create_table("Upgrades")
    t.insert("Upgrades", blog("c", "A", "Old", 1))
    t.insert("Upgrades", blog("c", "B", "New", 2, Version=2, Category="life"))  # adding one

    def tell(what):
        rows = t.query("Upgrades", filter="PartitionKey eq 'c'")
        print(f"  {what}:", "; ".join(" ".join(
            f"{n}={v}" for n, v in r.items() if n not in ("PartitionKey", "Timestamp"))
            for r in rows))

    tell("Added to new rows")
    # Deleting one: the row without it, by PUT.  A merge would keep it.
    for row in t.query("Upgrades", filter="PartitionKey eq 'c'"):
        row.pop("Category", None)
        t.replace("Upgrades", row, row.etag)
    tell("Deleted")
    # Another type: a new property by MERGE, then without the old one by PUT.
    for row in t.query("Upgrades", filter="PartitionKey eq 'c' and RowKey eq 'A'"):
        stars = row.pop("Rating") + 0.5
        etag = t.merge("Upgrades", {"PartitionKey": "c", "RowKey": "A", "Stars": stars}, row.etag)
        t.replace("Upgrades", {**row, "Stars": stars}, etag)
    tell("Another type")
    # Or the same name: a filter passes by what is of another type.
    t.merge("Upgrades", {"PartitionKey": "c", "RowKey": "A", "Rating": 2.5}, "*")
    print("  Rating gt 1.2:", texts(t.query("Upgrades", filter="Rating gt 1.2")))


CHAPTERS = (
    ("Creating tables", create), ("Inserting a blog", insert), ("Querying blogs", ask),
    ("Updating a blog", update), ("Deleting a blog", delete),
    ("Several changes at once", batch), ("Top N, and what follows", pages),
    ("What comes between two pages", between),
    ("Two tables that agree", consistency), ("The newest first", latest),
    ("Sizes of partitions", partitions), ("Keys that begin alike", prefixes),
    ("Several kinds in one table", kinds), ("Other properties", schema))


def main(argv):
    show = print if "--show" in argv else None
    t = Tables(os.environ["AZURE_STORAGE_CONNECTION_STRING"], show)
    for title, chapter in CHAPTERS:
        print(f"{title}:")
        chapter(t)


if __name__ == "__main__":
    main(sys.argv)
