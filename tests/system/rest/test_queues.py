# SPDX-License-Identifier: MIT
"""The Queue service over REST: operations, limits, errors, signatures, clients."""

import concurrent.futures
import re
import subprocess
import xml.etree.ElementTree as ET

import pytest
import rest_client
from queue_client import Queues, code, messages
from rest_client import ACCOUNT, KEY


@pytest.fixture
def queues(serve, rest_store):
    """A client in path style, at the queues' own socket."""
    server = serve(rest_store, "--rest=127.0.0.1:0", "--rest=queue=127.0.0.1:0")
    text = subprocess.run([str(server.rowfs.program), "account", "keys", str(rest_store), ACCOUNT],
                          capture_output=True, text=True, check=True).stdout
    found = re.search(r"QueueEndpoint=http://127\.0\.0\.1:(\d+)/" + ACCOUNT + ";TableEndpoint=", text)
    assert found, text
    client = Queues(int(found[1]))
    client.table_port, client.connection = server.port, text.splitlines()[-1].split(None, 1)[1]
    assert client.ask("PUT", "/jobs").status == 201
    return client


def test_queues_are_created_listed_and_deleted(queues):
    assert queues.ask("PUT", "/jobs").status == 204
    made = queues.ask("PUT", "/more", headers={"x-ms-meta-Color": "red & blue"})
    assert made.status == 201
    assert queues.ask("PUT", "/more", headers={"x-ms-meta-color": "red & blue"}).status == 204
    assert code(queues.ask("PUT", "/more")) == (409, "QueueAlreadyExists")
    root = ET.fromstring(queues.ask("GET", "/", {"comp": "list", "include": "metadata"}).body)
    assert [q.findtext("Name") for q in root.iter("Queue")] == ["jobs", "more"]
    assert root.find(".//Metadata/color").text == "red & blue"
    first = ET.fromstring(queues.ask("GET", "/", {"comp": "list", "maxresults": "1"}).body)
    assert [q.findtext("Name") for q in first.iter("Queue")] == ["jobs"]
    rest = ET.fromstring(queues.ask("GET", "/", {
        "comp": "list", "marker": first.findtext("NextMarker")}).body)
    assert [q.findtext("Name") for q in rest.iter("Queue")] == ["more"]
    assert not rest.findtext("NextMarker")
    assert queues.ask("DELETE", "/more").status == 204
    assert code(queues.ask("DELETE", "/more")) == (404, "QueueNotFound")
    for name, want in (("Bad", "InvalidResourceName"), ("a", "OutOfRangeInput")):
        assert code(queues.ask("PUT", f"/{name}")) == (400, want)


def test_metadata_and_the_count(queues):
    assert queues.put("jobs", "one").status == 201
    assert queues.ask("PUT", "/jobs", {"comp": "metadata"},
                      headers={"x-ms-meta-Who": "me"}).status == 204
    for method in ("GET", "HEAD"):
        answer = queues.ask(method, "/jobs", {"comp": "metadata"})
        assert answer.status == 200 and answer.headers["x-ms-meta-Who"] == "me"
        assert answer.headers["x-ms-approximate-messages-count"] == "1"
        assert answer.headers["Cache-Control"] == "no-cache"
    bad = queues.ask("PUT", "/jobs", {"comp": "metadata"}, headers={"x-ms-meta-a-b": "x"})
    assert code(bad) == (400, "InvalidMetadata")


def test_a_message_is_taken_updated_and_deleted(queues):
    put = messages(queues.put("jobs", "a &lt;b&gt;"))[0]
    assert list(put) == ["MessageId", "InsertionTime", "ExpirationTime", "PopReceipt",
                         "TimeNextVisible"]
    peeked = messages(queues.ask("GET", "/jobs/messages", {"peekonly": "true"}))[0]
    assert list(peeked) == ["MessageId", "InsertionTime", "ExpirationTime", "DequeueCount",
                            "MessageText"]
    assert peeked["DequeueCount"] == "0" and peeked["MessageText"] == "a <b>"
    taken, = queues.get("jobs")
    assert list(taken) == ["MessageId", "InsertionTime", "ExpirationTime", "PopReceipt",
                           "TimeNextVisible", "DequeueCount", "MessageText"]
    assert taken["DequeueCount"] == "1" and taken["MessageId"] == put["MessageId"]
    assert queues.get("jobs") == []
    at = f"/jobs/messages/{taken['MessageId']}"
    body = b"<QueueMessage><MessageText>new</MessageText></QueueMessage>"
    done = queues.ask("PUT", at, {"popreceipt": taken["PopReceipt"], "visibilitytimeout": "0"}, body)
    assert done.status == 204 and done.headers["x-ms-time-next-visible"].endswith("GMT")
    again, = queues.get("jobs")
    assert again["MessageText"] == "new" and again["DequeueCount"] == "2"
    assert code(queues.delete("jobs", taken)) == (404, "MessageNotFound")
    assert queues.delete("jobs", again).status == 204
    assert code(queues.delete("jobs", again)) == (404, "MessageNotFound")
    for query in ({}, {"popreceipt": "x"}):
        assert code(queues.ask("DELETE", at, query))[0] == 400
    for i in range(3):
        assert queues.put("jobs", i).status == 201
    assert queues.ask("DELETE", "/jobs/messages").status == 204
    assert queues.get("jobs", numofmessages=32) == []


WEEK = 604800
LIMITS = [  # method, path, name, the last good values, bad ones
    ("GET", "/jobs/messages", "numofmessages", (1, 32), (0, 33), (1, 32)),
    ("GET", "/jobs/messages", "visibilitytimeout", (1, WEEK), (0, WEEK + 1), (1, WEEK)),
    ("POST", "/jobs/messages", "visibilitytimeout", (0, WEEK - 1), (-1, WEEK), (0, WEEK - 1)),
    ("POST", "/jobs/messages", "messagettl", (1, -1, 2**31 - 1), (0, -2), (1, 2**31 - 1)),
    ("GET", "/", "maxresults", (1, 5000, 5001), (0,), (1, 2**31 - 1)),
]


@pytest.mark.parametrize("method,path,name,good,bad,bounds", LIMITS)
def test_numbers_have_limits(queues, method, path, name, good, bad, bounds):
    body = b"<QueueMessage><MessageText/></QueueMessage>" if method == "POST" else None
    more = {"comp": "list"} if path == "/" else {}
    for value in good:
        assert queues.ask(method, path, {name: value, **more}, body).status in (200, 201), value
    for value in bad:
        answer = queues.ask(method, path, {name: value, **more}, body)
        assert code(answer) == (400, "OutOfRangeQueryParameterValue")
        root = ET.fromstring(answer.body)
        assert [root.findtext(n) for n in ("QueryParameterName", "QueryParameterValue",
                                           "MinimumAllowed", "MaximumAllowed")] == [
            name, str(value), *map(str, bounds)]
    assert code(queues.ask(method, path, {name: "x", **more}, body)) == (
        400, "InvalidQueryParameterValue")


def test_a_message_has_64_kib(queues):
    assert queues.put("jobs", "x" * 65536).status == 201
    assert queues.put("jobs", "&#65;" * 65536).status == 201
    assert [len(m["MessageText"]) for m in queues.get("jobs", numofmessages=2)] == [65536] * 2
    assert code(queues.put("jobs", "x" * 65537)) == (400, "MessageTooLarge")
    assert code(queues.put("jobs", "x" * (1 << 21))) == (413, "RequestBodyTooLarge")
    for body in (b"", b"x", b"<a/>", b"<QueueMessage/>", b"<QueueMessage><b/></QueueMessage>"):
        assert code(queues.ask("POST", "/jobs/messages", {}, body)) == (400, "InvalidXmlDocument")


def test_policies_and_properties(queues):
    xml = (b"<SignedIdentifiers><SignedIdentifier><Id>p</Id><AccessPolicy>"
           b"<Expiry>2035-01-01</Expiry><Permission>raup</Permission></AccessPolicy>"
           b"</SignedIdentifier></SignedIdentifiers>")
    assert queues.ask("PUT", "/jobs", {"comp": "acl"}, xml).status == 204
    assert b"<Permission>raup</Permission>" in queues.ask("GET", "/jobs", {"comp": "acl"}).body
    bad = queues.ask("PUT", "/jobs", {"comp": "acl"}, xml.replace(b"raup", b"raud"))
    assert code(bad) == (400, "InvalidXmlNodeValue")
    own = {"restype": "service", "comp": "properties"}
    before = queues.ask("GET", "/", own)
    cors = (b"<StorageServiceProperties><Cors><CorsRule><AllowedOrigins>http://a.example"
            b"</AllowedOrigins><AllowedMethods>GET</AllowedMethods><MaxAgeInSeconds>5"
            b"</MaxAgeInSeconds><ExposedHeaders/><AllowedHeaders/></CorsRule></Cors>"
            b"</StorageServiceProperties>")
    assert before.status == 200 and queues.ask("PUT", "/", own, cors).status == 202
    assert b"http://a.example" in queues.ask("GET", "/", own).body
    assert queues.ask("GET", "/", {"restype": "service", "comp": "stats"}).status == 200
    origin = {"Origin": "http://a.example"}
    shown = queues.ask("GET", "/jobs/messages", headers=origin).headers
    assert shown["Access-Control-Allow-Origin"] == "http://a.example"
    with rest_client.Client(queues.table_port) as tables:  # they have their own
        assert b"http://a.example" not in tables.request(
            "GET", "?restype=service&comp=properties").body


def test_signatures(queues):
    assert queues.ask("GET", "/jobs", {"comp": "metadata"}, lite=True).status == 200
    wrong = queues.ask("GET", "/jobs/messages", text="something else")
    assert code(wrong) == (403, "AuthenticationFailed")
    assert code(queues.ask("GET", "/jobs/messages", auth=False)) == (
        401, "NoAuthenticationInformation")
    assert code(queues.ask("GET", "/jobs/messages/a/b")) == (400, "InvalidUri")
    assert code(queues.ask("PATCH", "/jobs"))[0] == 405


def test_a_host_names_the_service_on_every_socket(queues):
    by_host = Queues(queues.table_port, f"{ACCOUNT}.queue.localhost")
    assert queues.put("jobs", "hello").status == 201
    assert by_host.get("jobs")[0]["MessageText"] == "hello"


def test_a_client_of_tables_is_told_that_queues_are_served_here(queues):
    with rest_client.Client(queues.port) as tables:
        answer = tables.tables()
    assert answer.status == 403 and b"The service is 'queue'" in answer.body
    assert answer.headers["x-ms-error-code"] == "AuthenticationFailed"
    for path, want in (("/Tables", 405), ("/T(PartitionKey='a',RowKey='b')", 405), ("/a/b", 400)):
        answer = queues.ask("GET", path)
        assert answer.status == want and b"The service is 'queue'" in answer.body
    backwards = Queues(queues.table_port).ask("GET", "/jobs", {"comp": "metadata"})
    assert backwards.status == 403 and b"The service is 'table'" in backwards.body


def test_fifty_consumers_take_each_message_once(queues):
    count = 300
    for i in range(count):
        assert queues.put("jobs", i).status == 201

    def consume(_):
        mine = []
        while found := queues.get("jobs", numofmessages=4, visibilitytimeout=600):
            for m in found:
                assert m["DequeueCount"] == "1"
                assert queues.delete("jobs", m).status == 204
                mine.append(int(m["MessageText"]))
        return mine

    with concurrent.futures.ThreadPoolExecutor(50) as pool:
        taken = sorted(n for mine in pool.map(consume, range(50)) for n in mine)
    assert taken == list(range(count))


def test_debians_python_client(queues):
    queue = pytest.importorskip("azure.storage.queue")
    service = queue.QueueServiceClient.from_connection_string(queues.connection)
    assert [q.name for q in service.list_queues()] == ["jobs"]
    client = service.get_queue_client("jobs")
    client.send_message("hello <you>", time_to_live=-1)
    assert [m.content for m in client.peek_messages()] == ["hello <you>"]
    message = next(iter(client.receive_messages(visibility_timeout=60)))
    assert message.dequeue_count == 1
    message = client.update_message(message, content="changed", visibility_timeout=0)
    message = next(iter(client.receive_messages()))
    assert message.content == "changed"
    client.delete_message(message)
    assert client.get_queue_properties().approximate_message_count == 0
    sas = queue.generate_queue_sas(ACCOUNT, "jobs", KEY, permission="ap", expiry="2035-01-01")
    limited = queue.QueueClient.from_queue_url(f"{client.url}?{sas}")
    limited.send_message("by a token")
    assert [m.content for m in limited.receive_messages()] == ["by a token"]
    with pytest.raises(Exception) as refused:
        limited.clear_messages()
    assert "AuthorizationFailure" in str(refused.value)
    with pytest.raises(Exception) as refused:
        limited.peek_messages()
    assert "AuthorizationPermissionMismatch" in str(refused.value)
