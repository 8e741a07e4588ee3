# SPDX-License-Identifier: MIT
"""Changes of rows in the page, in Debian's Chromium."""

import pytest

from page_client import browser_at, hold, let_go, page_of
from rest_client import FULL, Client, ok

pytestmark = pytest.mark.browser
ROW = {"PartitionKey": "o'neil", "RowKey": "1 ü%", "Age": 40, "Half": 2.0, "Name": "<b>Ann</b>\n",
       "Big": str(1 << 60), "Big@odata.type": "Edm.Int64", "Open": True,
       "Lines": "a\r\nb\rc\n", "Minus": -0.0, "__proto__": "own",
       "Born": "1999-12-31T23:59:59.1234567Z", "Born@odata.type": "Edm.DateTime"}


class Rows:
    """The table People in a client and in a browser."""

    def __init__(self, client, browser):
        self.client, self.browser = client, browser
        self.find, self.click, self.type = browser.find, browser.click, browser.type

    def row(self, key=ROW["RowKey"]):
        """The row without what the service adds; None if it is not there."""
        found = self.client.get("People", ROW["PartitionKey"], key, headers={"Accept": FULL})
        if found.status == 404:
            return None
        return {name: value for name, value in ok(found).json.items()
                if "odata." not in name.replace("@odata.type", "") and not name.startswith("Timestamp")
                and name != "PartitionKey@odata.type"}

    def open(self, key=ROW["RowKey"]):
        self.click(f"//td//button[.='{key}']")
        self.find("//dialog[@open]")

    def value(self, name):
        """The XPath of the field that has the value of a property."""
        names = self.browser.run("return [...document.querySelectorAll('.properties [aria-label=Name]')].map((f) => f.value)")
        return f"(//ul[@class='properties']/li)[{names.index(name) + 1}]//*[@aria-label='Value']"

    def set(self, name, text):
        self.type(self.value(name), text)

    def save(self):
        self.click("//dialog//button[@type='submit']")

    def closed(self):
        self.find("//dialog[not(@open)]")

    def refused(self):
        """The browser logged a refused request, which the test made."""
        self.browser.complained("status of 4")


@pytest.fixture
def people(chromium, serve, rest_store):
    server = serve(rest_store, "--page=127.0.0.1:0")
    with Client(server.port) as client:
        ok(client.create_table("People"))
        ok(client.insert("People", ROW))
        with browser_at(chromium, page_of(server)) as browser:
            browser.click("//nav//a[.='People']")
            browser.find("//caption[.='People: 1 row']")
            yield Rows(client, browser)


def test_PG11_a_browser_that_would_change_types_changes_no_row(people):
    people.browser.call("POST", "/goog/cdp/execute", {
        "cmd": "Page.addScriptToEvaluateOnNewDocument", "params": {"source": "delete JSON.rawJSON"}})
    people.find("//button[.='New row']")
    people.browser.call("POST", "/refresh", {})
    people.find("//p[contains(., 'This browser is too old')]")
    people.find(f"//tr[td[.='{ROW['RowKey']}']][not(.//button[contains(@class, 'row-key')])]")
    people.find("//main[not(.//button[.='New row' or .='Import' or .='Export'] or .//*[@id='collect'])]")


@pytest.mark.parametrize("answer", ["Cancel", "Delete"])
def test_PG20_a_table_is_deleted_after_a_question_that_names_it(people, answer):
    people.click("//button[.='Delete this table']")
    people.find("//dialog[@open]//p[.='Delete People with all that it holds? It cannot be taken back.']")
    people.click(f"//dialog[@open]//button[.='{answer}']")
    if answer == "Delete":
        people.find("//nav[not(.//a[.='People'])]")
        people.find("//label[.='New table']")
    else:
        people.find("//caption[.='People: 1 row']")
    assert (people.row() is None) == (answer == "Delete")


def test_PG12_a_late_answer_closes_no_other_row(people):
    """The answer to the first change comes while the second row is open."""
    ok(people.client.insert("People", {"PartitionKey": ROW["PartitionKey"], "RowKey": "2", "Age": 5}))
    people.click("//button[.='Show']")
    people.find("//caption[.='People: 2 rows']")
    hold(people.browser, "options.method === 'PUT'")
    people.open()
    people.set("Age", "41")
    people.save()
    people.click("//dialog//button[.='Cancel']")
    people.open("2")
    let_go(people.browser)
    people.find("//td[.='41']")
    people.find("//dialog[@open]")
    assert people.browser.run("return document.getElementById('edit-rk').value") == "2"


@pytest.mark.parametrize("name, why", [("RowKey", "name of a key"), ("Age", "two properties")])
def test_PG11_a_property_has_a_name_of_its_own(people, name, why):
    before = people.row()
    people.open()
    people.click("//button[.='Add a property']")
    people.type("//ul[@class='properties']/li[last()]//*[@aria-label='Name']", name)
    people.save()
    people.find(f"//dialog//*[@role='alert'][contains(., '{why}')]")
    assert people.row() == before


def test_PG11_an_edit_keeps_the_types_and_the_other_properties(people):
    before = people.row()
    people.open()
    people.set("Age", "41")
    people.click("//button[.='Add a property']")
    people.type("//ul[@class='properties']/li[last()]//*[@aria-label='Name']", "Id")
    people.find("//button[@aria-label='Remove property Id']")
    people.click("//ul[@class='properties']/li[last()]//option[.='Int64']")
    people.type("//ul[@class='properties']/li[last()]//*[@aria-label='Value']", "7")
    people.save()
    people.closed()
    people.find("//td[.='41']")
    assert people.row() == {**before, "Age": 41, "Id": "7", "Id@odata.type": "Edm.Int64"}


@pytest.mark.parametrize("kind, bad, good", [
    ("Int32", "2147483648", "2147483647"), ("Int64", str(1 << 63), str((1 << 63) - 1)),
    ("Double", "1e999", "-Infinity"), ("Guid", "c9da6455", "c9da6455-213d-42c9-9a79-3e9149a57833"),
    ("DateTime", "yesterday", "2026-01-31T12:00:00Z"), ("Binary", "abc", "YWJj")])
def test_PG11_a_value_must_fit_its_type(people, kind, bad, good):
    people.click("//button[.='New row']")
    people.type("//input[@id='edit-rk']", "new")
    people.click("//button[.='Add a property']")
    people.type("//li//*[@aria-label='Name']", "New")
    people.click(f"//li//option[.='{kind}']")
    people.set("New", bad)
    people.save()
    people.find("//dialog//*[@role='alert'][contains(., 'New: It must be')]")
    people.find("//li//*[@aria-label='Value'][@aria-invalid='true']")
    assert people.row("new") is None
    people.set("New", good)
    people.save()
    people.closed()
    found = people.row("new")
    assert str(found["New"]) == good
    assert found.get("New@odata.type", "Edm.Int32") == "Edm." + kind


def change_meanwhile(people):
    people.open()
    people.set("Age", "41")
    ok(people.client.merge("People", ROW["PartitionKey"], ROW["RowKey"], {"Name": "Eve"}))
    people.save()
    people.find("//*[@role='alert'][contains(., 'Somebody changed this row meanwhile')]")
    people.refused()


def test_PG12_a_change_meanwhile_is_shown_side_by_side(people):
    change_meanwhile(people)
    for title in "When you opened it", "In the store", "Yours":
        people.find(f"//table[@class='compare']//th[.='{title}']")
    people.find("//table[@class='compare']//tr[th='Name']/td[2]/mark[starts-with(., 'Eve')]")
    people.find("//table[@class='compare']//tr[th='Age']/td[3]/mark[starts-with(., '41')]")
    assert people.browser.run("return document.querySelectorAll('.compare tbody tr').length") == 2
    assert people.row()["Age"] == 40


@pytest.mark.parametrize("button, age, name", [
    ("Overwrite with yours", 41, ROW["Name"]), ("Take the row of the store", 40, "Eve")])
def test_PG12_the_user_chooses_between_the_versions(people, button, age, name):
    change_meanwhile(people)
    people.click(f"//button[.='{button}']")
    if age == 40:
        people.save()
    people.closed()
    assert (people.row()["Age"], people.row()["Name"]) == (age, name)


def test_PG12_a_row_that_is_there_or_gone_is_said(people):
    people.click("//button[.='New row']")
    people.type("//input[@id='edit-rk']", ROW["RowKey"])
    people.save()
    people.find("//*[@role='alert'][contains(., 'There is such a row already')]")
    people.refused()
    assert people.row()["Age"] == 40
    people.click("//dialog//button[.='Cancel']")
    people.open()
    ok(people.client.delete("People", ROW["PartitionKey"], ROW["RowKey"]))
    people.set("Age", "41")
    people.save()
    people.find("//*[@role='alert'][contains(., 'Somebody deleted this row meanwhile')]")
    people.click("//button[.='Insert it anew']")
    people.closed()
    people.refused()
    assert people.row()["Age"] == 41


def test_PG13_a_deletion_is_taken_back_whole(people):
    before = people.row()
    people.open()
    people.click("//dialog//button[.='Delete']")
    people.find("//caption[.='People: 0 rows']")
    assert people.row() is None
    people.browser.run("const asked = window.fetch; window.seen = [];"
                       " window.fetch = (to, options) => { seen.push(String(to)); return asked(to, options) }")
    people.click("//*[@id='offer']//button[.='Undo']")
    people.find("//caption[.='People: 1 row']")
    assert people.row() == before
    seen = people.browser.run("return window.seen")
    assert "/trash/" in seen[0] and "file=" in seen[0], seen


def test_PG13_a_row_that_the_trash_dropped_is_inserted_anew(people):
    before = people.row()
    people.open()
    people.click("//dialog//button[.='Delete']")
    people.find("//caption[.='People: 0 rows']")
    people.browser.run("const asked = window.fetch; window.fetch = (to, options) =>"
                       " String(to).includes('/trash/') ? Promise.resolve(new Response('', { status: 404 }))"
                       " : asked(to, options)")
    people.click("//*[@id='offer']//button[.='Undo']")
    people.find("//caption[.='People: 1 row']")
    assert people.row() == before


def test_PG13_undo_overwrites_no_row_that_was_made_meanwhile(people):
    people.open()
    people.click("//dialog//button[.='Delete']")
    people.find("//caption[.='People: 0 rows']")
    ok(people.client.insert("People", {**ROW, "Age": 1}))
    people.click("//*[@id='offer']//button[.='Undo']")
    people.find("//p[@id='status'][string-length(.) > 0]")
    people.refused()
    assert people.row()["Age"] == 1
