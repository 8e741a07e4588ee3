# SPDX-License-Identifier: MIT
"""Filters and the rows that they find: every front end must agree on them."""

GUID = "c9da6455-213d-42c9-9a79-3e9149a57833"
# One row for each type, and some more, by row key.
ROWS = {
    "s1": {"S": "abc"}, "s2": {"S": "abd"}, "s3": {"S": ""}, "s4": {"S": "O'Brien"},
    "s5": {"S": "ABC"}, "s6": {"S": "ü"},
    "i1": {"I": 5}, "i2": {"I": -7}, "i3": {"I": 2147483647},
    "l1": {"L@odata.type": "Edm.Int64", "L": "7"},
    "l2": {"L@odata.type": "Edm.Int64", "L": "9223372036854775807"},
    "l3": {"L@odata.type": "Edm.Int64", "L": "-5"},
    "d1": {"D": 1.5}, "d2": {"D": -2.0}, "d3": {"D@odata.type": "Edm.Double", "D": "NaN"},
    "d4": {"D@odata.type": "Edm.Double", "D": "Infinity"},
    "b1": {"B": True}, "b2": {"B": False},
    "t1": {"T@odata.type": "Edm.DateTime", "T": "2008-07-10T00:00:00Z"},
    "t2": {"T@odata.type": "Edm.DateTime", "T": "2020-01-01T12:00:00.5Z"},
    "g1": {"G@odata.type": "Edm.Guid", "G": GUID},
    "g2": {"G@odata.type": "Edm.Guid", "G": "00000000-0000-0000-0000-000000000001"},
    "x1": {"X@odata.type": "Edm.Binary", "X": "AAEC"},
    "x2": {"X@odata.type": "Edm.Binary", "X": "AAE="},
    "x3": {"X@odata.type": "Edm.Binary", "X": "/w=="},
    "m1": {"S": "abc", "I": 5, "B": True},
}

# What they find, as row keys; None: too many to name.
FILTERS = [
    # another type than the literal's is less
    ("D lt ''", "d1 d2 d3 d4"), ("'' gt T", "t1 t2"), ("D gt ''", ""), ("I le 'a'", "i1 i2 i3 m1"),
    ("PartitionKey lt 5 and S eq ''", "s3"), ("PartitionKey gt 5", ""), ("B lt ''", "b1 b2 m1"),
    # constants
    ("false", ""), ("not True", ""), ("I eq 5 and false", ""), ("true and S eq 'abc'", "m1 s1"),
    ("(False or PartitionKey eq 'p') and S eq ''", "s3"),
    # strings: ordinal, quotes doubled
    ("S eq 'abc'", "m1 s1"), ("'abc' eq S", "m1 s1"), ("S eq 'O''Brien'", "s4"),
    ("S eq ''", "s3"), ("S gt 'abc'", "s2 s6"), ("S ge 'abc'", "m1 s1 s2 s6"),
    ("S lt 'abc'", "s3 s4 s5"), ("S le 'abc'", "m1 s1 s3 s4 s5"),
    ("S ne 'abc'", "s2 s3 s4 s5 s6"), ("'abc' lt S", "s2 s6"), ("'abc' ge S", "m1 s1 s3 s4 s5"),
    ("S eq 'ü'", "s6"), ("S eq 'abc '", ""), ("S ge 'a' and S lt 'b'", "m1 s1 s2"),
    # Int32, and what its literals look like
    ("I eq 5", "i1 m1"), ("I gt 5", "i3"), ("I lt 0", "i2"), ("I eq -7", "i2"),
    ("I ne 5", "i2 i3"), ("5 eq I", "i1 m1"), ("5 lt I", "i3"), ("I ge 2147483647", "i3"),
    ("I eq 05", "i1 m1"),
    # Int64: plain digits as the JavaScript SDK sends them, or with L
    ("L eq 7", "l1"), ("L eq 7L", "l1"), ("L eq 7l", "l1"), ("L eq -5", "l3"),
    ("L eq 9223372036854775807", "l2"), ("L eq 9223372036854775807L", "l2"),
    ("L gt 7L", "l2"), ("L lt 7", "l3"), ("L ge 7", "l1 l2"), ("7L gt L", "l3"),
    # Double: every spelling, and integers widen
    ("D eq 1.5", "d1"), ("D eq 15e-1", "d1"), ("D eq 1.5d", "d1"), ("D eq 1.5D", "d1"),
    ("D eq 1.5E0", "d1"), ("D eq -2.0", "d2"), ("D eq -2", "d2"), ("D eq -2L", "d2"),
    ("D lt 1.5", "d2"), ("D gt 1.5", "d4"), ("D gt 1000000", "d4"), ("D ge -2", "d1 d2 d4"),
    # Boolean
    ("B eq true", "b1 m1"), ("B eq false", "b2"), ("B ne true", "b2"), ("B", "b1 m1"),
    ("not B", None), ("B and I eq 5", "m1"), ("B lt true", "b2"), ("true eq B", "b1 m1"),
    # DateTime
    ("T eq datetime'2008-07-10T00:00:00Z'", "t1"), ("T eq datetime'2008-07-10T00:00:00'", "t1"),
    ("T eq datetime'2008-07-10T02:00:00+02:00'", "t1"),
    ("T gt datetime'2008-07-10T00:00:00Z'", "t2"), ("T le datetime'2008-07-10T00:00:00Z'", "t1"),
    ("T eq datetime'2020-01-01T12:00:00.5000000Z'", "t2"),
    ("T eq datetime'2020-01-01T12:00:00.5Z'", "t2"), ("T lt datetime'1999-01-01T00:00:00Z'", ""),
    ("datetime'2010-01-01T00:00:00Z' lt T", "t2"),
    # Guid, Binary
    (f"G eq guid'{GUID}'", "g1"), (f"G eq guid'{GUID.upper()}'", "g1"),
    (f"G ne guid'{GUID}'", "g2"), (f"G lt guid'{GUID}'", "g2"), (f"guid'{GUID}' gt G", "g2"),
    ("X eq X'000102'", "x1"), ("X eq x'000102'", "x1"), ("X eq binary'000102'", "x1"),
    ("X eq X'ff'", "x3"), ("X eq X'FF'", "x3"), ("X lt X'000102'", "x2"),
    ("X gt X'0001'", "x1 x3"), ("X eq X''", ""),
    # and, or, not, parentheses
    ("I eq 5 and S eq 'abc'", "m1"), ("I eq -7 or D eq 1.5", "d1 i2"),
    ("I eq 5 and S eq 'abc' or B eq false", "b2 m1"),
    ("B eq false or I eq 5 and S eq 'abc'", "b2 m1"),
    ("(B eq false or I eq 5) and S eq 'abc'", "m1"), ("((I eq 5))", "i1 m1"),
    ("( I eq 5 )", "i1 m1"), ("(I eq 5) and (B eq true)", "m1"),
    ("not (RowKey ge 'd')", "b1 b2"), ("not(RowKey ge 'd')", "b1 b2"),
    ("not RowKey ge 'd'", "b1 b2"), ("not not RowKey lt 'd'", "b1 b2"),
    ("not (RowKey ge 'd') or RowKey eq 'x1'", "b1 b2 x1"),
    ("  I   eq    5  ", "i1 m1"), ("not (not (I eq 5))", "i1 m1"),
    # keys
    ("PartitionKey eq 'p' and RowKey eq 'i1'", "i1"), ("PartitionKey eq 'q'", ""),
    ("PartitionKey eq 'p' and RowKey ge 's' and RowKey lt 't'", "s1 s2 s3 s4 s5 s6"),
    ("PartitionKey gt 'o' and PartitionKey lt 'q' and RowKey eq 'g2'", "g2"),
    ("RowKey eq 'x1' or RowKey eq 'b1'", "b1 x1"), ("RowKey lt 'b1'", ""),
    ("PartitionKey eq 'p' and (RowKey eq 'b2' or RowKey eq 'b1' or RowKey ge 'x2')",
     "b1 b2 x2 x3"),
    ("'x2' le RowKey", "x2 x3"), ("RowKey ne 'x1' and RowKey gt 't'", "t1 t2 x2 x3"),
    ("PartitionKey eq 'p' and PartitionKey eq 'q'", ""),
    # what is missing: any comparison is false, ne too, and not turns that round
    ("Missing eq 1", ""), ("Missing ne 1", ""), ("Missing lt 1", ""), ("Missing", ""),
]


def random_filter(rng, depth=0):
    """(text, predicate of a row)."""
    kind = rng.randrange(6 if depth < 3 else 3)
    if kind >= 4:
        (a, f), (b, g) = random_filter(rng, depth + 1), random_filter(rng, depth + 1)
        if rng.random() < 0.5:
            return f"({a}) and ({b})", lambda r: f(r) and g(r)
        return f"({a}) or ({b})", lambda r: f(r) or g(r)
    if kind == 3:
        a, f = random_filter(rng, depth + 1)
        return f"not ({a})", lambda r: not f(r)
    if rng.random() < 0.1:
        constant = rng.choice([True, False])
        return str(constant).lower(), lambda r: constant
    name = rng.choice(["PartitionKey", "RowKey", "RowKey", "I", "S", "PartitionKey"])
    op, compare = rng.choice([
        ("eq", lambda x, y: x == y), ("ne", lambda x, y: x != y), ("gt", lambda x, y: x > y),
        ("ge", lambda x, y: x >= y), ("lt", lambda x, y: x < y), ("le", lambda x, y: x <= y)])
    if name == "I":
        value = rng.randrange(-2, 8)
        text = str(value)
    else:
        value = rng.choice(["", "a", "b", "b0", "c", "d'", "p"])
        text = "'" + value.replace("'", "''") + "'"
    if rng.random() < 0.25:
        op = {"gt": "lt", "lt": "gt", "ge": "le", "le": "ge"}.get(op, op)
        text, name_text = name, text
    else:
        name_text = name
    return f"{name_text} {op} {text}", lambda r: name in r and compare(r[name], value)
