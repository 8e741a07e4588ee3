#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Draws the pictures of the pages: for each ![...](pictures/NAME.svg) of a page in this folder the
block ```text that follows it becomes docs/pictures/NAME.svg.

In the text, runs of - and | with + at their ends are lines, < > ^ v at the end of a line are its
arrowheads, and everything else is text.  Readers need no program: the pages show both.
usage: docs/pictures.py [--check]    --check writes nothing, and fails if a picture is out of date
"""

import glob
import html
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
WIDE, HIGH = 8, 18
PICTURE = re.compile(r"!\[[^\]]*\]\(pictures/([\w-]+\.svg)\)(?:(?!!\[).)*?^```text\n(.*?)^```$",
                     re.M | re.S)
ARROWS = {">": (-1, 0), "<": (1, 0), "v": (0, -1), "^": (0, 1)}  # where its line comes from


class Grid:
    def __init__(self, text):
        self.rows = text.rstrip("\n").split("\n")
        self.width = max(map(len, self.rows))

    def at(self, x, y):
        return self.rows[y][x] if 0 <= y < len(self.rows) and 0 <= x < len(self.rows[y]) else " "

    def horizontal(self, x, y):
        return self.at(x, y) in "-+" and any(self.at(x + d, y) in "-+" for d in (-1, 1)) or \
            self.at(x, y) == "-" and any(self.at(x + d, y) in "<>" for d in (-1, 1))

    def vertical(self, x, y):
        return self.at(x, y) in "|+" and any(self.at(x, y + d) in "|+v^" for d in (-1, 1)) or \
            self.at(x, y) == "|"

    def arrow(self, x, y):
        """Where the line of an arrowhead comes from, or None."""
        dx, dy = ARROWS.get(self.at(x, y), (0, 0))
        line = self.at(x + dx, y + dy)
        return (dx, dy) if (line == "-" and dx) or (line in "|+" and dy) else None

    def drawn(self, x, y):
        return self.horizontal(x, y) or self.vertical(x, y) or self.arrow(x, y)

    def lines(self):
        """(x, y, dx, dy) of half lines from the middle of a cell to its edge."""
        for y, row in enumerate(self.rows):
            for x in range(len(row)):
                here = self.at(x, y)
                for dx, dy, marks in ((-1, 0, "-+"), (1, 0, "-+"), (0, -1, "|+"), (0, 1, "|+")):
                    is_line = self.horizontal(x, y) if dx else self.vertical(x, y)
                    next_to = self.at(x + dx, y + dy)
                    if is_line and (here in marks[0] or next_to in marks):
                        yield x, y, dx, dy
                if self.arrow(x, y):
                    yield (x, y, *self.arrow(x, y))

    def texts(self):
        """(x, y, text) of what is no line, in pieces without two blanks."""
        for y, row in enumerate(self.rows):
            left = "".join(" " if self.drawn(x, y) else c for x, c in enumerate(row))
            for piece in re.finditer(r"\S+(?: \S+)*", left):
                yield piece.start(), y, piece[0]


def middle(x, y):
    return x * WIDE + WIDE / 2, y * HIGH + HIGH / 2


def drawing(text):
    grid = Grid(text)
    width, height = (grid.width + 2) * WIDE, (len(grid.rows) + 1) * HIGH
    path = []
    for x, y, dx, dy in grid.lines():
        mx, my = middle(x, y)
        path.append(f"M{mx:g} {my:g}L{mx + dx * WIDE / 2:g} {my + dy * HIGH / 2:g}")
    for y in range(len(grid.rows)):
        for x in range(grid.width):
            if grid.arrow(x, y):
                (mx, my), (dx, dy) = middle(x, y), grid.arrow(x, y)
                path.append(f"M{mx + 5 * dx + 4 * dy:g} {my + 5 * dy + 4 * dx:g}L{mx:g} {my:g}"
                            f"L{mx + 5 * dx - 4 * dy:g} {my + 5 * dy - 4 * dx:g}")
    words = [f'<text x="{x * WIDE}" y="{y * HIGH + 13}" textLength="{len(text) * WIDE}">'
             f"{html.escape(text)}</text>" for x, y, text in grid.texts()]
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="-{WIDE} -{HIGH // 2} {width} {height}" '
        f'width="{width}" height="{height}" font-family="monospace" font-size="13">',
        f'<rect x="-{WIDE}" y="-{HIGH // 2}" width="{width}" height="{height}" fill="white"/>',
        f'<path d="{"".join(path)}" stroke="black" fill="none"/>', *words, "</svg>", ""])


def main():
    stale = []
    for page in sorted(glob.glob(os.path.join(HERE, "*.md"))):
        with open(page, encoding="utf-8") as f:
            found = PICTURE.findall(f.read())
        for name, text in found:
            path, svg = os.path.join(HERE, "pictures", name), drawing(text)
            have = open(path, encoding="utf-8").read() if os.path.exists(path) else ""
            if have != svg and "--check" not in sys.argv:
                with open(path, "w", encoding="utf-8") as f:
                    f.write(svg)
            elif have != svg:
                stale.append(f"docs/pictures/{name} is not what {os.path.basename(page)} draws: "
                             "run docs/pictures.py")
    print("\n".join(stale), end="\n" if stale else "")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
