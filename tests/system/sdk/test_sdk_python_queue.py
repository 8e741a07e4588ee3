# SPDX-License-Identifier: MIT
"""azure-storage-queue for Python (Debian's python3-azure) against the queues' REST socket."""

import datetime
import subprocess

import pytest

import sdk

queue = pytest.importorskip("azure.storage.queue", reason="needs Debian's python3-azure")

from azure.core.exceptions import HttpResponseError, ResourceExistsError, ResourceNotFoundError  # noqa: E402

SERVE_OPTIONS = ["--rest=127.0.0.1:0", "--rest=queue=127.0.0.1:0"]
# A failure of the server is to be seen, not to be tried again.
OPTIONS = {"retry_total": 0}


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch):
    monkeypatch.setenv("NO_PROXY", "*")


@pytest.fixture
def connection(rowfs, module_server):
    """Of an account without queues."""
    return sdk.new_account(rowfs, module_server)


@pytest.fixture
def service(connection):
    endpoint = sdk.parts(connection)["QueueEndpoint"].partition("//")[2]
    client = queue.QueueServiceClient.from_connection_string(
        connection, secondary_hostname=f"{endpoint}-secondary", **OPTIONS)
    yield client
    client.close()


@pytest.fixture
def jobs(service):
    return service.create_queue("jobs")


def refused(kind, code, call, *args, **kw):
    with pytest.raises(kind) as e:
        call(*args, **kw)
    assert getattr(e.value.error_code, "value", e.value.error_code) == code, e.value


def texts(messages):
    return [m.content for m in messages]


def test_queues_and_their_lists(service):
    for name in ("apple-1", "apple-2", "pear"):
        service.create_queue(name, metadata={"kind": "fruit"})
    refused(ResourceExistsError, "QueueAlreadyExists", service.create_queue, "pear")
    assert [q.name for q in service.list_queues(name_starts_with="apple")] == ["apple-1", "apple-2"]
    pages = service.list_queues(results_per_page=2, include_metadata=True).by_page()
    assert [[(q.name, q.metadata) for q in page] for page in pages] == [
        [("apple-1", {"kind": "fruit"}), ("apple-2", {"kind": "fruit"})],
        [("pear", {"kind": "fruit"})]]
    service.delete_queue("pear")
    refused(ResourceNotFoundError, "QueueNotFound", service.delete_queue, "pear")
    client = service.get_queue_client("apple-1")
    client.delete_queue()
    client.create_queue()
    assert client.get_queue_properties().approximate_message_count == 0


def test_properties_and_statistics_of_the_service(service):
    rule = queue.CorsRule(["http://a.example"], ["GET"], max_age_in_seconds=60)
    service.set_service_properties(cors=[rule])
    cors, = service.get_service_properties()["cors"]
    assert (cors.allowed_origins, cors.allowed_methods) == ("http://a.example", "GET")
    service.set_service_properties(cors=[])
    assert service.get_service_properties()["cors"] == []
    assert service.get_service_stats()["geo_replication"]["status"] == "live"


def test_metadata(jobs):
    jobs.set_queue_metadata({"one": "1"})
    assert jobs.get_queue_properties().metadata == {"one": "1"}
    jobs.set_queue_metadata()
    assert not jobs.get_queue_properties().metadata


def test_send_peek_receive_update_delete_clear(jobs):
    sent = jobs.send_message("a <b> & ü", time_to_live=-1)
    assert sent.id and sent.pop_receipt
    assert texts(jobs.peek_messages(max_messages=32)) == ["a <b> & ü"]
    taken = jobs.receive_message(visibility_timeout=600)
    assert (taken.id, taken.dequeue_count) == (sent.id, 1)
    assert jobs.receive_message() is None
    changed = jobs.update_message(taken, content="new", visibility_timeout=0)
    refused(ResourceNotFoundError, "MessageNotFound", jobs.delete_message, taken.id,
            taken.pop_receipt)
    again, = jobs.receive_messages()
    assert (again.content, again.dequeue_count, again.id) == ("new", 2, changed.id)
    jobs.delete_message(again)
    for text in "123":
        jobs.send_message(text)
    assert [texts(page) for page in jobs.receive_messages(messages_per_page=2).by_page()][:2] == [
        ["1", "2"], ["3"]]
    jobs.clear_messages()
    assert jobs.get_queue_properties().approximate_message_count == 0


def test_limits(jobs):
    jobs.send_message("x" * 65536)
    refused(HttpResponseError, "MessageTooLarge", jobs.send_message, "x" * 65537)
    refused(HttpResponseError, "OutOfRangeQueryParameterValue", jobs.send_message, "x",
            visibility_timeout=604801)


@pytest.mark.parametrize("encode, decode", [
    (queue.TextBase64EncodePolicy(), queue.TextBase64DecodePolicy()),
    (queue.BinaryBase64EncodePolicy(), queue.BinaryBase64DecodePolicy())])
def test_texts_in_base64(connection, jobs, encode, decode):
    client = queue.QueueClient.from_connection_string(
        connection, "jobs", message_encode_policy=encode, message_decode_policy=decode, **OPTIONS)
    text = "ü" if isinstance(encode, queue.TextBase64EncodePolicy) else b"\0\xff"
    client.send_message(text)
    assert client.receive_message().content == text
    client.close()


def test_a_sas_by_its_own_terms_and_by_a_stored_policy(connection, jobs):
    end = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(hours=1)
    part = sdk.parts(connection)
    jobs.set_queue_access_policy({"readers": queue.AccessPolicy("r", end, None)})
    assert jobs.get_queue_access_policy()["readers"].permission == "r"

    def by(**terms):
        token = queue.generate_queue_sas(part["AccountName"], "jobs", part["AccountKey"], **terms)
        return queue.QueueClient.from_queue_url(f"{jobs.url}?{token}", **OPTIONS)

    by(permission=queue.QueueSasPermissions(add=True), expiry=end).send_message("by a token")
    assert texts(by(policy_id="readers").peek_messages()) == ["by a token"]
    refused(HttpResponseError, "AuthorizationPermissionMismatch",
            by(policy_id="readers").send_message, "x")
    token = queue.generate_account_sas(
        part["AccountName"], part["AccountKey"], queue.ResourceTypes(service=True),
        queue.AccountSasPermissions(list=True), end)
    client = queue.QueueServiceClient(part["QueueEndpoint"], credential=token, **OPTIONS)
    assert [q.name for q in client.list_queues()] == ["jobs"]


# ---- what the clients can do, against what the tests call

# They ask a service for OAuth that rowfs is not, or sign without a request.
NOT_CALLED = {"getUserDelegationKey", "generateUserDelegationSasUrl",
              "generateUserDelegationStringToSign", "generateSasStringToSign"}
METHODS = """
const [module, ...makes] = process.argv.slice(1);
const sdk = require(module), found = new Set();
for (const make of makes) {
	const one = make.startsWith("create") ? Object.getPrototypeOf(sdk[make]("a", "YQ=="))
		: sdk[make].prototype;
	for (const [name, d] of Object.entries(Object.getOwnPropertyDescriptors(one)))
		if (typeof d.value === "function" && !/^_|^constructor$/.test(name)) found.add(name);
}
console.log([...found].join(" "));
"""
# Inner functions that the library does not hide.
INNER = {"getMessageIdContext", "listQueuesSegment", "listSegments", "listItems",
         "getQueueNameFromUrl"}


def calls_of(*scripts):
    return "".join((sdk.SDK / s).read_text("utf-8") for s in scripts)


def without_a_call(names, source):
    return {n for n in names if f".{n}(" not in source}


@pytest.mark.parametrize("package, made_by, scripts", [
    ("@azure/storage-queue", ["QueueServiceClient", "QueueClient"],
     ["storage-queue/client.mjs", "storage-queue/queues.mjs", "storage-queue/messages.mjs", "storage-queue/sas.mjs"]),
    ("azure-storage", ["createQueueService"], ["azure-storage/queues.mjs"])])
def test_every_operation_of_the_npm_clients_is_called(package, made_by, scripts):
    run = [*sdk.need_node(package), "-e", METHODS, package, *made_by]
    names = subprocess.run(run, cwd=sdk.SDK, capture_output=True, text=True, check=True).stdout
    assert len(names.split()) > 20
    assert without_a_call(names.split(), calls_of(*scripts)) - NOT_CALLED - INNER == set()


def test_every_operation_of_the_python_client_is_called():
    with open(__file__, encoding="utf-8") as f:
        source = f.read()
    names = {n for c in (queue.QueueServiceClient, queue.QueueClient) for n in dir(c)
             if n[0] != "_" and callable(getattr(c, n))}
    assert without_a_call(names, source.replace("service.create_queue,", "")) == set()
