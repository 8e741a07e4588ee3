# SPDX-License-Identifier: MIT
"""The page for browsers: its link, and requests by HTTP with its session."""

import contextlib
import http.client
import json
import re

from webdriver import Browser


def ask(port, path, method="GET", body=None, **headers):
    """The status, the headers and the body of one request."""
    c = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        c.request(method, path, body=body, headers=headers)
        r = c.getresponse()
        return r.status, r.headers, r.read()
    finally:
        c.close()


class Page:
    """The page whose one-time link is in the text that rowfs printed."""

    def __init__(self, said):
        found = re.search(r"http://127\.0\.0\.1:(\d+)(/\?link=[0-9a-f]{32})(?![^\s])", said)
        self.url, self.port, self.link = found[0], int(found[1]), found[2]

    def open(self):
        """The session's cookie, without its attributes."""
        status, headers, _ = ask(self.port, self.link)
        assert (status, headers["Location"]) == (303, "/")
        return headers["Set-Cookie"].split(";")[0]

    def data(self, path, cookie):
        """The JSON at the path."""
        status, _, body = ask(self.port, path, Cookie=cookie)
        assert status == 200, body
        return json.loads(body)


def page_of(server):
    return Page("\n".join(server.endpoints))


@contextlib.contextmanager
def browser_at(page, work):
    """A browser with the page's session; at the end its console must have no complaints."""
    browser = Browser(work)
    try:
        browser.go(page.url)
        browser.find("//nav")
        yield browser
        assert browser.complaints() == []
    finally:
        browser.close()
