# SPDX-License-Identifier: MIT
"""What docs/layers.txt says; read by includes.py and calls.py."""

import sys


class Layers:
    def __init__(self, path):
        self.level, self.public_headers, self.owners, self.apart = {}, {}, [], {}
        self.circles = []
        level = 0
        for line in open(path, encoding="utf-8"):
            words = line.split("#")[0].split()
            if not words:
                continue
            kind, rest = words[0], words[1:]
            if kind == "layer":
                for name in rest:
                    self.level[name] = level
                level += 1
            elif kind == "public":
                self.public_headers[rest[0]] = rest[1:]
            elif kind == "owner":
                self.owners.append((rest[0], rest[1:]))
            elif kind == "apart":
                self.apart[rest[0]] = rest[1:]
            elif kind == "circle":
                self.circles.append(sorted(rest))
            else:
                sys.exit(f"{path}: unknown rule: {kind}")

    def module(self, path):
        """The deepest module that holds this file of src/; None: it is in none."""
        folder = path
        while "/" in folder:
            folder = folder.rsplit("/", 1)[0]
            if folder in self.level:
                return folder
        return None

    def highest(self, folder):
        modules = [r for r in self.level if r == folder or r.startswith(folder + "/")]
        return max(modules, key=self.level.get, default=None)

    def is_public(self, header):
        return any(header in headers for headers in self.public_headers.values())

    def may_use(self, mine, theirs):
        return mine == theirs or self.level[theirs] < self.level[mine]
