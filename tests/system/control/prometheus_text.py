# SPDX-License-Identifier: MIT
"""Prometheus' text format 0.0.4, by its description and as strictly as it can be read: what
the description calls an error is one here, and so is what it only discourages.

parse() gives {family: Family}; Family.samples maps (name, labels) to a number, labels being
a frozenset of (name, value).
"""

import math
import re

METRIC = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
LABEL = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
# What Go's ParseFloat takes, of what is ever written.
VALUE = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?|[+-]?Inf|NaN")
TYPES = ("counter", "gauge", "histogram", "summary", "untyped")
SUFFIXES = ("_bucket", "_sum", "_count")


class Family:
    def __init__(self, name):
        self.name, self.help, self.type, self.samples = name, None, None, {}

    def get(self, suffix="", **labels):
        return self.samples[self.name + suffix, frozenset(labels.items())]


def unescape(text, allowed):
    out, i = [], 0
    while i < len(text):
        if text[i] == "\\":
            assert i + 1 < len(text) and text[i + 1] in allowed, f"escape in {text!r}"
            out.append({"n": "\n"}.get(text[i + 1], text[i + 1]))
            i += 2
        else:
            out.append(text[i])
            i += 1
    return "".join(out)


def parse_labels(text, line):
    """The labels behind an opening brace, and what is behind the closing one."""
    labels, at = {}, 0
    while text[at:at + 1] != "}":
        name = LABEL.match(text, at)
        assert name, f"no label: {line!r}"
        at = name.end()
        value = re.compile(r'="((?:[^"\\\n]|\\.)*)"').match(text, at)
        assert value, f"no value of a label: {line!r}"
        assert name[0] not in labels, f"a label twice: {line!r}"
        labels[name[0]] = unescape(value[1], '\\"n')
        at = value.end()
        if text[at:at + 1] == ",":
            at += 1
        else:
            assert text[at:at + 1] == "}", f"behind a label: {line!r}"
    return labels, text[at + 1:]


def parse_sample(line):
    name = METRIC.match(line)
    assert name, f"no name: {line!r}"
    labels, rest = {}, line[name.end():]
    if rest.startswith("{"):
        labels, rest = parse_labels(rest[1:], line)
    assert rest[:1] in (" ", "\t"), f"no blank in front of the value: {line!r}"
    words = rest.split()
    assert 1 <= len(words) <= 2 and VALUE.fullmatch(words[0]), f"no value: {line!r}"
    assert len(words) == 1 or re.fullmatch(r"-?\d+", words[1]), f"no time: {line!r}"
    return name[0], frozenset(labels.items()), float(words[0])


def family_of(name, families):
    """A histogram's samples have names of their own."""
    for suffix in SUFFIXES:
        base = name[:-len(suffix)]
        if name.endswith(suffix) and base in families and families[base].type == "histogram":
            return base
    return name


def parse(data):
    text = data.decode("utf-8") if isinstance(data, bytes) else data
    assert text.endswith("\n") and "\r" not in text, "the last line ends with a line feed"
    families, current = {}, None
    for line in text[:-1].split("\n"):
        line = line.strip(" \t")
        words = line.split(None, 3)
        if not words or (words[0] == "#" and words[1:2] not in (["HELP"], ["TYPE"])):
            continue
        if words[0] == "#":
            assert len(words) >= 3 and METRIC.fullmatch(words[2]), line
            name, sample = words[2], None
        else:
            sample = parse_sample(line)
            name = family_of(sample[0], families)
        if name != current:
            assert name not in families, f"the lines of {name} are not in one group"
            families[name] = Family(name)
            current = name
        family = families[name]
        if sample:
            assert sample[:2] not in family.samples, f"a sample twice: {line!r}"
            family.samples[sample[:2]] = sample[2]
            continue
        assert not family.samples, f"behind samples: {line!r}"
        kind = words[1].lower()
        assert getattr(family, kind) is None, f"twice: {line!r}"
        said = words[3] if len(words) == 4 else ""
        assert kind == "help" or said in TYPES, line
        setattr(family, kind, unescape(said, "\\n") if kind == "help" else said)
    for family in families.values():
        check(family)
    return families


def check(family):
    assert family.type and family.help, f"{family.name} has no TYPE or no HELP"
    assert family.name.endswith("_total") == (family.type == "counter"), family.name
    if family.type == "histogram":
        check_histogram(family)
        return
    for (name, labels), value in family.samples.items():
        assert name == family.name and "le" not in dict(labels)
        assert family.type != "counter" or value >= 0
    sets = {frozenset(n for n, _ in labels) for _, labels in family.samples}
    assert len(sets) <= 1, f"{family.name} has samples with other labels"


def check_histogram(family):
    buckets, sums, counts = {}, {}, {}
    for (name, labels), value in family.samples.items():
        rest = frozenset((n, v) for n, v in labels if n != "le")
        if name == family.name + "_bucket":
            buckets.setdefault(rest, []).append((float(dict(labels)["le"]), value))
        else:
            assert rest == labels and name in (family.name + "_sum", family.name + "_count")
            (sums if name.endswith("_sum") else counts)[labels] = value
    assert buckets.keys() == sums.keys() == counts.keys()
    for labels, of in buckets.items():
        bounds = [b for b, _ in of]
        values = [v for _, v in of]
        assert bounds == sorted(set(bounds)) and bounds[-1] == math.inf, (family.name, bounds)
        assert values == sorted(values), f"{family.name} is not cumulative: {values}"
        assert values[-1] == counts[labels], (family.name, labels)
        assert sums[labels] >= 0 and (counts[labels] > 0 or sums[labels] == 0)
