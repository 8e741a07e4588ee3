# SPDX-License-Identifier: MIT
"""Change sets of the page, in Debian's Chromium: collected, and sent as one transaction."""

import pytest

from page_client import browser_at, hold, let_go, page_of
from rest_client import Client, ok

pytestmark = pytest.mark.browser


class Table:
    def __init__(self, client, browser):
        self.client, self.browser = client, browser
        self.find, self.click, self.type = browser.find, browser.click, browser.type

    def rows(self):
        return {(row["PartitionKey"], row["RowKey"]): row["N"] for row in self.client.all("Sums")}

    def edit(self, key, n):
        self.click(f"//td//button[.='{key}']")
        self.type("//dialog//*[@aria-label='Value']", str(n))
        self.click("//dialog//button[@type='submit']")
        self.find("//dialog[not(@open)]")

    def collect(self):
        """Collects an update of row 0, the deletion of row 1 and a new row."""
        self.click("//label[@for='collect']")
        self.edit("0", 10)
        self.click("//td//button[.='1']")
        self.click("//dialog//button[.='Delete']")
        self.click("//button[.='New row']")
        self.type("//input[@id='edit-pk']", "p")
        self.type("//input[@id='edit-rk']", "new")
        self.click("//button[.='Add a property']")
        self.type("//dialog//li//*[@aria-label='Name']", "N")
        self.click("//dialog//li//option[.='Int32']")
        self.type("//dialog//li//*[@aria-label='Value']", "7")
        self.click("//dialog//button[@type='submit']")


BEFORE = {("p", "0"): 0, ("p", "1"): 1, ("q", "2"): 2}


@pytest.fixture
def table(chromium, serve, rest_store):
    server = serve(rest_store, "--page=127.0.0.1:0")
    with Client(server.port) as client:
        ok(client.create_table("Sums"))
        for (pk, rk), n in BEFORE.items():
            ok(client.insert("Sums", {"PartitionKey": pk, "RowKey": rk, "N": n}))
        with browser_at(chromium, page_of(server)) as browser:
            browser.click("//nav//a[.='Sums']")
            browser.find("//caption[.='Sums: 3 rows']")
            yield Table(client, browser)


def test_PG14_changes_are_sent_together(table):
    table.collect()
    table.find("//section[@aria-label='Change set']//p[starts-with(., 'Partition p: 3 changes')]")
    assert table.rows() == BEFORE
    table.click("//button[.='Send 3 changes']")
    table.find("//p[@id='status'][.='3 changes are in the store.']")
    assert table.rows() == {("p", "0"): 10, ("p", "new"): 7, ("q", "2"): 2}


def test_PG14_a_refused_change_leaves_all_rows_and_is_named(table):
    table.collect()
    ok(table.client.merge("Sums", "p", "1", {"N": 5}))
    table.click("//button[.='Send 3 changes']")
    table.find("//li[2][contains(., 'Delete 1')]//*[@role='alert'][contains(., 'Nothing was changed')]")
    assert table.rows() == {**BEFORE, ("p", "1"): 5}
    table.click("//button[.='Compare']")
    table.find("//table[@class='compare']//tr[th='N']/td[2]/mark[starts-with(., '5')]")
    table.click("//button[.='Delete it all the same']")
    table.find("//dialog[not(@open)]")
    table.click("//button[.='Send 3 changes']")
    table.find("//p[@id='status'][.='3 changes are in the store.']")
    assert table.rows() == {("p", "0"): 10, ("p", "new"): 7, ("q", "2"): 2}


def test_PG14_a_change_collected_meanwhile_stays(table):
    hold(table.browser, "path.endsWith('/$batch')")
    table.click("//label[@for='collect']")
    table.edit("0", 10)
    table.click("//button[.='Send']")
    table.find("//button[.='Send'][@disabled]")
    table.edit("1", 11)
    let_go(table.browser)
    table.find("//p[@id='status'][.='1 change is in the store.']")
    table.find("//section[@aria-label='Change set']//li//button[.='Update 1']")
    assert table.rows() == {**BEFORE, ("p", "0"): 10}
    table.click("//button[.='Send']")
    table.find("//section[@aria-label='Change set'][not(.//li)]")
    assert table.rows() == {**BEFORE, ("p", "0"): 10, ("p", "1"): 11}


def test_PG14_unsent_changes_are_left_only_if_the_user_agrees(table):
    table.click("//label[@for='collect']")
    table.edit("0", 10)
    assert table.browser.run("""const event = new Event("beforeunload", { cancelable: true });
        return !window.dispatchEvent(event)""")
    table.click("//nav//a[.='Queues']")
    table.browser.answer("not sent", "dismiss")
    table.find("//section[@aria-label='Change set']//li//button[.='Update 0']")
    assert table.browser.run("return location.hash").endswith("/Sums")
    table.click("//nav//a[.='Queues']")
    table.browser.answer("not sent", "accept")
    table.find("//label[.='New queue']")
    table.click("//nav//a[.='Tables']")
    table.find("//label[.='New table']")


def test_PG14_a_lost_answer_says_that_nothing_is_known(table):
    table.click("//label[@for='collect']")
    table.edit("0", 10)
    table.browser.run("window.fetch = () => Promise.reject(new TypeError())")
    table.click("//button[.='Send']")
    table.find("//section[@aria-label='Change set']//*[@role='alert'][contains(., 'It is not known')]")
    table.find("//section[@aria-label='Change set'][not(contains(., 'Nothing was changed'))]//li")


def test_PG14_a_corrected_insert_replaces_the_collected_one(table):
    table.collect()
    table.click("//button[.='Insert new']")
    table.type("//input[@id='edit-rk']", "better")
    table.click("//dialog//button[@type='submit']")
    table.find("//li//button[.='Insert better']")
    table.click("//button[.='Send 3 changes']")
    table.find("//p[@id='status'][.='3 changes are in the store.']")
    assert table.rows() == {("p", "0"): 10, ("p", "better"): 7, ("q", "2"): 2}


def test_PG14_a_set_has_one_partition_and_one_change_of_a_row(table):
    table.click("//label[@for='collect']")
    table.edit("0", 10)
    table.edit("0", 11)
    table.find("//section[@aria-label='Change set']//p[starts-with(., 'Partition p: 1 change,')]")
    table.click("//td//button[.='2']")
    table.click("//dialog//button[.='Delete']")
    table.find("//dialog//*[@role='alert'][contains(., 'of one partition, here p')]")
    table.click("//dialog//button[.='Cancel']")
    table.click("//button[.='Send']")
    table.find("//p[@id='status'][.='1 change is in the store.']")
    assert table.rows() == {**BEFORE, ("p", "0"): 11}


def test_PG14_a_set_has_at_most_100_changes(table):
    table.browser.run("""
        import("/change_set.js").then(({ ChangeSet }) => {
            const set = new ChangeSet({}, {});
            const add = (n) => set.add({ kind: "insert", row: { PartitionKey: "p", RowKey: String(n) } });
            for (let n = 0; n < 100; n++)
                add(n);
            add(5);
            try {
                add(100);
            } catch (error) {
                document.title = `${set.changes.length}: ${error.message}`;
            }
        });""")
    table.find("//title[.='100: A set has at most 100 changes. Send these first.']")
