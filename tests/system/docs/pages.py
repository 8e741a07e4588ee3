# SPDX-License-Identifier: MIT
"""What a page of the documentation shows as typed, in the order in which it stands."""

import dataclasses
import re

from conftest import TOP

# What is different each time: a time, an ETag, a rate, an account's key, a request's id, a process.
MASKS = [(re.compile(pattern), word) for pattern, word in (
    (r"\d{4}-\d\d-\d\dT\d\d(:|%3A)\d\d(:|%3A)\d\d(\.\d+)?(Z|%2B00(:|%3A)00)", "TIME"),
    (r"in \d+\.\d s \([\d,]+/s\)", "in SECONDS"),
    (r"\b[A-Za-z0-9+/]{43}=|\b[A-Za-z0-9+/]{86}==", "KEY"),
    (r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", "ID"),
)]


def masked(text):
    for pattern, word in MASKS:
        text = pattern.sub(word, text)
    return text.expandtabs()


@dataclasses.dataclass(frozen=True)
class Command:
    """shown: its answer, as the page has it; None: the page says nothing of it."""
    place: str
    text: str
    shown: str | None


def commands_of_block(place, lines):
    """A block with prompts shows answers; one without is lines to type."""
    prompts = any(line.startswith("$ ") for line in lines)
    while lines:
        line, lines = lines[0], lines[1:]
        if not prompts and not line.strip():
            continue
        assert line.startswith("$ ") or not prompts, f"{place}: neither typed nor an answer: {line}"
        typed = [line[2:] if prompts else line]
        here = re.search(r"<<'?(\w+)'?", line)
        while typed[-1].endswith(("\\", "||", "&&", "|")) or (here and typed[-1] != here[1]):
            typed.append(lines[0])
            lines = lines[1:]
        shown = []
        while prompts and lines and not lines[0].startswith("$ "):
            shown.append(lines[0])
            lines = lines[1:]
        yield Command(place, "\n".join(typed), "\n".join(shown) if prompts else None)


def blocks_of_markdown(lines):
    """(number of the first line, lines) of what is fenced or indented.  A fence that says `text` is a
    picture: nobody types it."""
    block, fenced, picture = None, False, False
    for number, line in enumerate([*lines, ""], 1):
        if line.startswith("```"):
            if fenced and not picture:
                yield block
            block, fenced, picture = (number + 1, []), not fenced, line == "```text"
        elif fenced:
            block[1].append(line)
        elif line.startswith("    ") and (block or not lines[number - 2].strip()):
            block = block or (number, [])
            block[1].append(line[4:])
        else:
            if block and block[1]:
                yield block
            block = None


def plain(text):
    """Of roff, without its escapes."""
    return re.sub(r"\\(\(..|.)", lambda m: ROFF[m[0]], text)


ROFF = {"\\-": "-", "\\e": "\\", "\\&": "", "\\(dq": '"', "\\(aq": "'"}


def blocks_of_manual(lines):
    block = None
    for number, line in enumerate(lines, 1):
        if line.startswith(".Bd -literal"):
            block = (number + 1, [])
        elif line == ".Ed":
            yield block
            block = None
        elif line.startswith(".Dl "):
            yield number, [plain(line[4:])]
        elif block:
            block[1].append(plain(line))


def commands_of(page):
    """Every command that the page shows in a block of its own."""
    lines = (TOP / page).read_text(encoding="utf-8").split("\n")
    blocks = blocks_of_markdown if page.endswith(".md") else blocks_of_manual
    for number, block in blocks(lines):
        yield from commands_of_block(f"{page}:{number}", block)
