# SPDX-License-Identifier: MIT
"""Drives Chromium by WebDriver, with the standard library alone."""

import contextlib
import http.client
import json
import re
import subprocess
import tempfile

from tools import wait_for

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
OPTIONS = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
           "--disable-background-networking", "--no-first-run"]


class Chromium:
    """One browser for one test after the other: to start it takes a CPU two seconds."""

    def __init__(self):
        self.idle = None

    @contextlib.contextmanager
    def tab(self):
        """A browser with one new tab, and without cookies and messages of tests before."""
        browser, self.idle = self.idle or Browser(), None
        try:
            yield browser
            browser.renew()
        except BaseException:
            browser.close()
            raise
        self.close()
        self.idle = browser

    def close(self):
        if self.idle is not None:
            self.idle.close()


class Browser:
    """A browser with its files in a folder of its own.  End it with close()."""

    def __init__(self, width=1200, height=800):
        self.work = tempfile.TemporaryDirectory(prefix="rowfs-test-")
        work = self.work.name
        self.driver = subprocess.Popen(
            ["chromedriver", "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            text=True, env={"PATH": "/usr/bin:/bin", "HOME": str(work), "TMPDIR": str(work)})
        try:
            port = next(m[1] for line in self.driver.stdout
                        if (m := re.search(r"successfully on port (\d+)", line)))
            self.http = http.client.HTTPConnection("127.0.0.1", int(port), timeout=60)
            self.session = ""
            options = {"args": [*OPTIONS, f"--window-size={width},{height}"]}
            made = self.call("POST", "/session", {"capabilities": {"alwaysMatch": {
                "browserName": "chrome", "goog:chromeOptions": options,
                "goog:loggingPrefs": {"browser": "ALL"}}}})
            self.session = "/session/" + made["sessionId"]
            self.call("POST", "/timeouts", {"implicit": 20000, "script": 20000})
        except BaseException:
            self.driver.kill()
            self.driver.wait()
            self.work.cleanup()
            raise

    def call(self, method, path, body=None):
        self.http.request(method, self.session + path,
                          body=None if body is None else json.dumps(body))
        answer = self.http.getresponse()
        value = json.loads(answer.read())["value"]
        assert answer.status == 200, value
        return value

    def close(self):
        try:
            self.call("DELETE", "")
        finally:
            self.driver.terminate()
            self.driver.wait()
            self.driver.stdout.close()
            self.work.cleanup()

    def cdp(self, command, **params):
        """A command of the DevTools protocol."""
        self.call("POST", "/goog/cdp/execute", {"cmd": command, "params": params})

    def renew(self):
        tab = self.call("POST", "/window/new", {"type": "tab"})["handle"]
        self.call("DELETE", "/window")
        self.call("POST", "/window", {"handle": tab})
        self.cdp("Network.clearBrowserCookies")
        self.cdp("Browser.setDownloadBehavior", behavior="default")
        self.complaints()

    def go(self, url):
        self.call("POST", "/url", {"url": url})

    def find(self, xpath):
        """Waits for the element; fails if it does not come."""
        return self.call("POST", "/element", {"using": "xpath", "value": xpath})[ELEMENT]

    def click(self, xpath):
        self.call("POST", f"/element/{self.find(xpath)}/click", {})

    def type(self, xpath, text):
        """Types into the element; "\\ue007" is Enter."""
        element = self.find(xpath)
        self.call("POST", f"/element/{element}/clear", {})
        self.call("POST", f"/element/{element}/value", {"text": text})

    def run(self, script):
        return self.call("POST", "/execute/sync", {"script": script, "args": []})

    def answer(self, question, what):
        """Waits for the browser's own question with this text, and gives "accept" or "dismiss"."""
        def asked():
            try:
                return question in self.call("GET", "/alert/text")
            except AssertionError:
                return False
        wait_for(asked)
        self.call("POST", f"/alert/{what}", {})

    def complained(self, text):
        """Waits until the console has a complaint with this text, which the test provoked, and drops it."""
        wait_for(lambda: any(text in line for line in self.complaints()))

    def complaints(self):
        """What the console got: errors of scripts, of loading, of the security policy."""
        return [m["message"] for m in self.call("POST", "/se/log", {"type": "browser"})]
