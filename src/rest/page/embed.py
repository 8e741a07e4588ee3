#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes the files of the page as C.  usage: embed.py OUTPUT FILE...

The path of each in a URL is that below the folder `files`."""

import os
import sys

TYPES = {"": "text/plain", ".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}


def main(output, *paths):
    with open(output, "w", encoding="ascii") as out:
        out.write('#include "base/compiler.h"\n#include "rest/page/page_files.h"\n\n')
        for i, path in enumerate(paths):
            with open(path, "rb") as f:
                data = f.read()
            out.write(f"static const unsigned char bytes{i}[] = {{\n")
            for at in range(0, len(data), 20):
                out.write(",".join(map(str, data[at:at + 20])) + ",\n")
            out.write("};\n")
        out.write("const struct page_file page_files[] = {\n")
        for i, path in enumerate(paths):
            name = path.rsplit("/files/", 1)[1]
            kind = TYPES[os.path.splitext(name)[1]]
            name = "" if name == "index.html" else name
            out.write(f'\t{{ "/{name}", "{kind}; charset=utf-8", bytes{i}, sizeof(bytes{i}) }},\n')
        out.write("};\nconst size_t page_nfiles = ARRAY_LEN(page_files);\n")


main(*sys.argv[1:])
