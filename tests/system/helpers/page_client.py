# SPDX-License-Identifier: MIT
"""The page for browsers: its link, and requests by HTTP with its session."""

import contextlib
import http.client
import json
import re
import urllib.parse


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
    """The page of a server, which is its .server."""
    page = Page("\n".join(server.endpoints))
    page.server = server
    return page


def hold(browser, which):
    """Holds the page's requests until let_go(); `which` is a condition in JavaScript of their path and options."""
    browser.run(f"""const ask = window.fetch, held = new Promise((go) => {{ window.letGo = go; }});
        window.fetch = async (path, options) => {{
            if ({which})
                await held;
            return ask(path, options);
        }};""")


def let_go(browser):
    browser.run("letGo()")


@contextlib.contextmanager
def phone(browser, width=360):
    """A phone's screen, in dark mode."""
    browser.cdp("Emulation.setDeviceMetricsOverride", width=width, height=640, deviceScaleFactor=1, mobile=True)
    browser.cdp("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
    try:
        yield
    finally:
        for cmd in "Emulation.clearDeviceMetricsOverride", "Emulation.setEmulatedMedia":
            browser.cdp(cmd)


def nameless_controls(browser):
    """Controls and regions that a screen reader could not name, of those that are displayed."""
    found = browser.call("POST", "/elements", {
        "using": "css selector", "value": "main :is(input, select, button, [role], [tabindex])"})
    paths = [f"/element/{next(iter(element.values()))}" for element in found]
    return [path for path in paths if browser.call("GET", path + "/computedlabel") == ""
            and browser.call("GET", path + "/displayed")]


@contextlib.contextmanager
def browser_at(chromium, page):
    """A browser with the page's session; at the end its console must have no complaints."""
    with chromium.tab() as browser:
        browser.go(page.url)
        browser.find("//nav")
        yield browser
        assert browser.complaints() == []


def go(browser, page, *address):
    """Shows a view as if it was opened anew."""
    fragment = "/".join(urllib.parse.quote(part, safe="") for part in address)
    browser.go("about:blank")
    browser.go(f"http://127.0.0.1:{page.port}/#{fragment}")
