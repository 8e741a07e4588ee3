# SPDX-License-Identifier: MIT
"""The versions of the Queue service: each serves signed requests, and none before 2009-09-19 does.
test_rest_versions.py has the rules that differ between versions (R11)."""

import pytest

from queue_client import Queues, code, messages
from rest_client import now

SERVE_OPTIONS = ["--rest=queue=127.0.0.1:0"]
BODY = b"<QueueMessage><MessageText>x</MessageText></QueueMessage>"
VERSIONS = [
    "2009-09-19", "2011-08-18", "2012-02-12", "2013-08-15", "2014-02-14", "2015-02-21", "2015-04-05",
    "2015-07-08", "2015-12-11", "2016-05-31", "2017-04-17", "2017-07-29", "2017-11-09", "2018-03-28",
    "2018-11-09", "2019-02-02", "2019-07-07", "2019-12-12", "2020-02-10", "2020-04-08", "2020-06-12",
    "2020-08-04", "2020-10-02", "2020-12-06", "2021-02-12", "2021-04-10", "2021-06-08", "2021-08-06",
    "2021-10-04", "2021-12-02", "2022-11-02", "2023-01-03", "2023-05-03", "2023-08-03", "2023-11-03",
    "2024-02-04", "2024-05-04", "2024-08-04", "2024-11-04", "2025-01-05", "2025-05-05", "2025-07-05",
    "2025-11-05", "2026-02-06", "2026-04-06", "2026-06-06"]


@pytest.fixture
def queues(module_server):
    queues = Queues(module_server.port)
    assert queues.ask("PUT", "/jobs").status in (201, 204)
    assert queues.ask("DELETE", "/jobs/messages").status == 204
    return queues


@pytest.mark.parametrize("lite", [False, True], ids=["SharedKey", "SharedKeyLite"])
@pytest.mark.parametrize("header", ["x-ms-date", "date"])
def test_each_version_serves_signed_requests(queues, header, lite):
    for version in VERSIONS:
        def ask(method, query=None, body=None, at="", date=None):
            answer = queues.ask(method, f"/jobs/messages{at}", query, body, version=version, lite=lite,
                                headers={header: date or now()}, leave="x-ms-date")
            assert answer.headers["x-ms-version"] == version
            assert answer.headers["Server"] == "rowfs" and answer.headers["x-ms-request-id"]
            return answer

        assert ask("POST", {"messagettl": 60}, BODY).status == 201
        assert len(messages(ask("GET", {"peekonly": "true"}))) == 1
        (taken,) = messages(ask("GET", {"numofmessages": 2, "visibilitytimeout": 60}))
        at, receipt = f"/{taken['MessageId']}", {"popreceipt": taken["PopReceipt"]}
        assert ask("DELETE", receipt, at=at).status == 204
        assert code(ask("DELETE", receipt, at=at)) == (404, "MessageNotFound")
        assert ask("DELETE").status == 204  # an empty one has no Content-Length
        late = ask("GET", date=now(-16 * 60))
        assert code(late) == (403, "AuthenticationFailed")


@pytest.mark.parametrize("version", ["2009-09-18", "2009-07-17", "2009-04-14", "2008-10-27", "x", ""])
def test_no_version_before_2009_09_19(queues, version):
    answer = queues.ask("GET", "/jobs/messages", version=version)
    assert code(answer) == (400, "InvalidHeaderValue") and answer.headers["x-ms-version"] is None
    assert queues.ask("POST", "/jobs/messages", {}, BODY, version=version).status == 400
    assert queues.get("jobs") == []


def test_no_version_is_todays(queues):
    answer = queues.ask("POST", "/jobs/messages", {"messagettl": -1}, BODY, leave="x-ms-version")
    assert answer.status == 201 and len(messages(answer)) == 1
    assert answer.headers["x-ms-version"] is None
