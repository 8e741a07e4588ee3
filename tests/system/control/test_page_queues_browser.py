# SPDX-License-Identifier: MIT
"""Queues in the page, in Debian's Chromium."""

import pytest

from page_client import browser_at, page_of
from queue_client import Queues
from rest_client import ACCOUNT

pytestmark = pytest.mark.browser


@pytest.fixture
def server(serve, rest_store):
    return serve(rest_store, "--page=127.0.0.1:0")


@pytest.fixture
def queues(server):
    return Queues(server.port, f"{ACCOUNT}.queue.localhost")


@pytest.fixture
def page(chromium, server, queues):
    """A browser that shows the queue jobs with one message."""
    assert queues.ask("PUT", "/jobs").status == 201
    assert queues.put("jobs", "first &amp; &lt;b&gt;").status == 201
    with browser_at(chromium, page_of(server)) as browser:
        browser.click("//nav//a[.='Queues']")
        browser.click("//nav//a[.='jobs']")
        browser.find("//caption[.='jobs: 1 message, 1 of them visible and shown']")
        yield browser


def texts(queues):
    return [m["MessageText"] for m in queues.get("jobs", numofmessages=32, visibilitytimeout=1)]


def test_PG15_a_queue_is_made_and_removed(page, queues):
    page.click("//nav//a[.='Queues']")
    page.type("//input[@id='new-name']", "made\ue007")
    page.find("//caption[starts-with(., 'made: 0 messages')]")
    assert queues.ask("GET", "/made", {"comp": "metadata"}).status == 200
    page.click("//button[.='Delete this queue']")
    page.click("//dialog//button[.='Cancel']")
    assert queues.ask("GET", "/made", {"comp": "metadata"}).status == 200
    page.click("//button[.='Delete this queue']")
    page.click("//dialog//button[.='Delete']")
    page.find("//nav[not(.//a[.='made'])]")
    assert queues.ask("GET", "/made", {"comp": "metadata"}).status == 404


def test_PG15_messages_are_put_and_peeked(page, queues):
    page.find("//tbody[@id='messages']//td[.='first & <b>']")
    page.type("//textarea[@id='message']", "ünf <é> & 'so'")
    page.click("//button[.='Put']")
    page.find("//caption[.='jobs: 2 messages, 2 of them visible and shown']")
    page.click("//label[@for='base64']")
    page.type("//textarea[@id='message']", "käse")
    page.click("//button[.='Put']")
    page.find("//tbody[@id='messages']//td[.='käse']")
    assert texts(queues) == ["first & <b>", "ünf <é> & 'so'", "a8Okc2U="]


def take(page):
    page.type("//input[@id='seconds']", "600")
    page.click("//button[.='Take one']")
    page.find("//tbody[@id='taken']//td[.='first & <b>']")
    page.find("//caption[.='jobs: 1 message, 0 of them visible and shown']")


def test_PG15_a_message_that_was_taken_is_deleted(page, queues):
    take(page)
    assert texts(queues) == []
    page.click("//tbody[@id='taken']//button[.='Delete']")
    page.find("//caption[.='jobs: 0 messages, 0 of them visible and shown']")
    page.click("//button[.='Take one']")
    page.find("//p[@id='status'][.='No message is visible.']")


def test_PG15_a_failed_deletion_keeps_the_receipt(page, queues):
    take(page)
    page.run("window.ask = window.fetch; window.fetch = () => Promise.reject(new TypeError())")
    page.click("//tbody[@id='taken']//button[.='Delete']")
    page.find("//p[@id='status'][contains(., 'does not answer')]")
    page.run("window.fetch = window.ask")
    page.find("//tbody[@id='taken']//td[.='first & <b>']")
    assert queues.ask("DELETE", "/jobs/messages").status == 204
    page.click("//tbody[@id='taken']//button[.='Delete']")
    page.find("//tbody[@id='taken'][not(tr)]")
    page.complained("status of 404")


def test_PG15_a_message_that_was_taken_is_given_back(page, queues):
    take(page)
    page.click("//tbody[@id='taken']//button[.='Give back']")
    page.find("//caption[.='jobs: 1 message, 1 of them visible and shown']")
    assert texts(queues) == ["first & <b>"]
