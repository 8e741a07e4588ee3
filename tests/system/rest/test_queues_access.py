# SPDX-License-Identifier: MIT
"""Who may do what with queues over REST: SAS by every operation, TLS, CORS, properties."""

import re
import shutil
import ssl

import pytest
import rest_client
from queue_client import Queues, code
from rest_client import ACCOUNT, KEY, VERSION, account_sas_fields, iso, sign
from test_tls import make_certificate

SERVE_OPTIONS = ["--rest=queue=127.0.0.1:0"]
BODY = b"<QueueMessage><MessageText>x</MessageText></QueueMessage>"
ID = "/nope/messages/00000000-0000-0001-0000-000000000001"
RECEIPT = {"popreceipt": "0" * 31 + "1"}
ACL = b"<SignedIdentifiers/>"
PROPERTIES = b"<StorageServiceProperties/>"
SERVICE = {"restype": "service"}

# name, method, path, query, body, account SAS: srt, any of these sp ("" never), queue SAS: sp.
# What would change something names the queue nope, which is not there.
OPERATIONS = [
    ("ListQueues", "GET", "/", {"comp": "list"}, None, "s", "l", ""),
    ("GetProperties", "GET", "/", {**SERVICE, "comp": "properties"}, None, "s", "r", ""),
    ("SetProperties", "PUT", "/", {**SERVICE, "comp": "properties"}, PROPERTIES, "s", "w", ""),
    ("GetStats", "GET", "/", {**SERVICE, "comp": "stats"}, None, "s", "r", ""),
    ("CreateQueue", "PUT", "/made", {}, None, "c", "cw", ""),
    ("DeleteQueue", "DELETE", "/nope", {}, None, "c", "d", ""),
    ("GetMetadata", "GET", "/nope", {"comp": "metadata"}, None, "c", "r", "r"),
    ("SetMetadata", "PUT", "/nope", {"comp": "metadata"}, None, "c", "w", ""),
    ("GetAcl", "GET", "/nope", {"comp": "acl"}, None, "", "", ""),
    ("SetAcl", "PUT", "/nope", {"comp": "acl"}, ACL, "", "", ""),
    ("PutMessage", "POST", "/nope/messages", {}, BODY, "o", "a", "a"),
    ("GetMessages", "GET", "/nope/messages", {}, None, "o", "p", "p"),
    ("PeekMessages", "GET", "/nope/messages", {"peekonly": "true"}, None, "o", "r", "r"),
    ("UpdateMessage", "PUT", ID, {**RECEIPT, "visibilitytimeout": "1"}, BODY, "o", "u", "u"),
    ("DeleteMessage", "DELETE", ID, RECEIPT, None, "o", "p", "p"),
    ("ClearMessages", "DELETE", "/nope/messages", {}, None, "o", "d", ""),
]
ACCOUNT_LETTERS, QUEUE_LETTERS = "rwdlacup", "raup"


@pytest.fixture
def queues(module_server):
    return Queues(module_server.port)


def queue_sas(queue, **fields):
    """The parameters of a service SAS."""
    f = {"sv": VERSION, **fields}
    if "si" not in f:
        f.setdefault("se", iso(3600))
    f["sig"] = sign(KEY, "\n".join([*(f.get(k, "") for k in ("sp", "st", "se")),
                                    f"/queue/{ACCOUNT}/{queue}",
                                    *(f.get(k, "") for k in ("si", "sip", "spr", "sv"))]))
    return f


@pytest.mark.parametrize("name,method,path,query,body,types,letters,own", OPERATIONS,
                         ids=[o[0] for o in OPERATIONS])
def test_a_sas_allows_what_its_letters_say(
        queues, name, method, path, query, body, types, letters, own):
    def ask(token):
        answer = queues.ask(method, path, {**query, **token}, body, auth=False)
        return None if answer.status != 403 else code(answer)[1]

    def of_account(sp=ACCOUNT_LETTERS, srt="sco", ss="q"):
        return ask(account_sas_fields(ACCOUNT, KEY, sp=sp, srt=srt, ss=ss))

    assert (of_account() is None) == (letters != "")
    if letters == "":
        assert of_account() == "AuthorizationFailure"
    else:
        for letter in ACCOUNT_LETTERS:
            assert of_account(sp=letter) == (
                None if letter in letters else "AuthorizationPermissionMismatch"), letter
            assert of_account(sp=ACCOUNT_LETTERS.replace(letter, "")) == (
                None if letter != letters else "AuthorizationPermissionMismatch"), letter
        for kind in "sco":
            assert of_account(srt=kind) == (
                None if kind == types else "AuthorizationResourceTypeMismatch"), kind
        for service in "btf":
            assert of_account(ss=service) == "AuthorizationServiceMismatch"
        assert of_account(ss="btqf") is None
    queue = path.split("/")[1]
    for letter in QUEUE_LETTERS:
        want = None if letter == own else \
            "AuthorizationPermissionMismatch" if own else "AuthorizationFailure"
        assert ask(queue_sas(queue, sp=letter)) == want, letter
    assert (ask(queue_sas(queue, sp=QUEUE_LETTERS)) is None) == (own != "")
    if queue:
        assert ask(queue_sas("another", sp=QUEUE_LETTERS)) == "AuthenticationFailed"


def test_a_queue_sas_has_its_bounds(queues):
    assert queues.ask("PUT", "/bound").status in (201, 204)
    xml = (b"<SignedIdentifiers><SignedIdentifier><Id>p</Id><AccessPolicy><Expiry>2035-01-01"
           b"</Expiry><Permission>a</Permission></AccessPolicy></SignedIdentifier>"
           b"</SignedIdentifiers>")
    assert queues.ask("PUT", "/bound", {"comp": "acl"}, xml).status == 204

    def put(**fields):
        token = queue_sas("bound", **fields)
        answer = queues.ask("POST", "/bound/messages", token, BODY, auth=False)
        return answer.status if answer.status == 201 else code(answer)[1]

    assert put(sp="a") == 201
    assert put(sp="a", st=iso(-60)) == 201
    assert put(sp="a", st=iso(60)) == "AuthenticationFailed"
    assert put(sp="a", se=iso(-60)) == "AuthenticationFailed"
    assert put(sp="a", sip="127.0.0.1") == 201
    assert put(sp="a", sip="10.0.0.1") == "AuthorizationSourceIPMismatch"
    assert put(sp="a", spr="https,http") == 201
    assert put(sp="a", spr="https") == "AuthorizationProtocolMismatch"
    assert put(si="p") == 201
    assert put(si="nix") == "AuthenticationFailed"
    assert put(si="p", sp="a") == "AuthenticationFailed"  # the policy has the letters already
    assert put(sp="d") == "AuthenticationFailed"          # no letter of queues


def test_each_policy_has_the_letters_of_queues(queues):
    assert queues.ask("PUT", "/letters").status in (201, 204)

    def policies(*permissions):
        one = "".join(f"<SignedIdentifier><Id>p{i}</Id><AccessPolicy><Permission>{p}</Permission>"
                      "</AccessPolicy></SignedIdentifier>" for i, p in enumerate(permissions))
        xml = f"<SignedIdentifiers>{one}</SignedIdentifiers>".encode()
        answer = queues.ask("PUT", "/letters", {"comp": "acl"}, xml)
        return answer.status if answer.status == 204 else code(answer)

    for good in (*QUEUE_LETTERS, "raup", "ap"):
        assert policies(good) == 204, good
    for bad in (*"dwlcx", "raupd", "R"):
        assert policies(bad) == (400, "InvalidXmlNodeValue"), bad
    assert policies(*["r"] * 5) == 204
    assert policies(*["r"] * 6)[0] == 400
    assert queues.ask("GET", "/letters", {"comp": "acl"}).body.count(b"<Id>") == 5


def rule(origin="http://a.example", method="GET", headers="x-ms-*"):
    return (f"<CorsRule><AllowedOrigins>{origin}</AllowedOrigins><AllowedMethods>{method}"
            f"</AllowedMethods><MaxAgeInSeconds>5</MaxAgeInSeconds><ExposedHeaders>x-ms-request-id"
            f"</ExposedHeaders><AllowedHeaders>{headers}</AllowedHeaders></CorsRule>")


def test_cors_and_properties_of_queues(queues):
    def set_rules(*rules):
        xml = ("<StorageServiceProperties><Cors>" + "".join(rules)
               + "</Cors></StorageServiceProperties>").encode()
        return queues.ask("PUT", "/", {**SERVICE, "comp": "properties"}, xml)

    def preflight(origin, method, headers="x-ms-date"):
        return queues.ask("OPTIONS", "/jobs/messages", auth=False, headers={
            "Origin": origin, "Access-Control-Request-Method": method,
            "Access-Control-Request-Headers": headers})

    assert set_rules(*[rule()] * 5).status == 202
    assert set_rules(*[rule()] * 6).status == 400
    assert set_rules(rule(), rule("http://b.example", "PUT,DELETE")).status == 202
    good = preflight("http://a.example", "GET")
    assert good.status == 200 and good.headers["Access-Control-Allow-Origin"] == "http://a.example"
    assert preflight("http://b.example", "DELETE").status == 200
    for bad in (("http://a.example", "PUT"), ("http://c.example", "GET"),
                ("http://a.example", "GET", "content-type")):
        assert code(preflight(*bad)) == (403, "CorsPreflightFailure")
    assert set_rules().status == 202
    assert preflight("http://a.example", "GET").status == 403


@pytest.mark.parametrize("way", ["serve", "mount"])
def test_todays_python_library_over_tls(rowfs, rest_store, serve, mount, work, way):
    queue = pytest.importorskip("azure.storage.queue")
    if not shutil.which("openssl"):
        pytest.skip("needs openssl")
    make_certificate(work, "tls", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-addext",
                     "subjectAltName=IP:127.0.0.1")
    options = ("rest=queue=127.0.0.1:0", "rest=127.0.0.1:0", f"rest-cert={work}/tls.pem",
               f"rest-key={work}/tls.key")
    if way == "serve":
        serve(rest_store, *(f"--{o}" for o in options))
    else:
        mount(rest_store, *options)
    said = rowfs("account", "keys", rest_store, ACCOUNT).stdout.splitlines()[-1].split(None, 1)[1]
    assert re.search(r"DefaultEndpointsProtocol=https;.*QueueEndpoint=https://.*TableEndpoint=https://",
                     said)
    service = queue.QueueServiceClient.from_connection_string(
        said, connection_verify=str(work / "tls.pem"))
    client = service.create_queue("safe")
    client.send_message("hello")
    assert [m.content for m in client.receive_messages()] == ["hello"]
    port = int(re.search(r"QueueEndpoint=https://127\.0\.0\.1:(\d+)/", said)[1])
    with pytest.raises((ssl.SSLError, ConnectionError, OSError)):
        with rest_client.Client(port, context=ssl.create_default_context()) as distrustful:
            distrustful.tables()
    url = rowfs("sas", rest_store, f"{ACCOUNT}/safe", "--service=queue", "--permissions=a",
                "--expiry=+1h", "--https-only").stdout.strip()
    assert url.startswith(f"https://127.0.0.1:{port}/{ACCOUNT}/safe?") and "spr=https" in url
    limited = queue.QueueClient.from_queue_url(url, connection_verify=str(work / "tls.pem"))
    limited.send_message("by a token that needs TLS")
