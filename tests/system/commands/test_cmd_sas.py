# SPDX-License-Identifier: MIT
"""rowfs sas: the URLs it prints, what it refuses, and that a server takes what it made."""

import base64
import hashlib
import hmac
import urllib.error
import urllib.parse
import urllib.request

import pytest
from queue_client import Queues

KEY = ("Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/"
       "K1SZFPTOtr/KBHBeksoGMGw==")
ACCOUNT = "devstoreaccount1"
TABLE = ACCOUNT + "/mytable"
BASE = "http://127.0.0.1:10002/" + ACCOUNT


@pytest.fixture
def db(rowfs, store):
    rowfs("account", "add", store, ACCOUNT, "--key=" + KEY)
    rowfs("import", store, ACCOUNT + "/MyTable",
          input='{"PartitionKey":"a","RowKey":"1"}\n{"PartitionKey":"b","RowKey":"1"}\n')
    return store


def parts(url):
    split = urllib.parse.urlsplit(url)
    return split._replace(query="").geturl(), dict(
        urllib.parse.parse_qsl(split.query, keep_blank_values=True))


def sas(rowfs, db, *args):
    out = rowfs("sas", db, *args).stdout
    assert out.endswith("\n") and out.count("\n") == 1
    return out[:-1]


def test_the_urls_are_those_of_the_sdks(rowfs, db):
    url = sas(rowfs, db, TABLE, "--permissions=ar", "--start=2020-01-01T00:00:00Z",
              "--expiry=2035-01-01T00:00:00Z", "--from-pk=a", "--from-rk=0", "--to-pk=b",
              "--to-rk=9")
    where, query = parts(url)
    assert where == BASE + "/MyTable"
    assert query == {"sv": "2019-02-02", "tn": "MyTable", "sp": "ra",
                     "st": "2020-01-01T00:00:00Z", "se": "2035-01-01T00:00:00Z",
                     "spk": "a", "srk": "0", "epk": "b", "erk": "9",
                     "sig": "q3W7mdON500Ta88sRSpGAd7aQjq8KMIJMIjj+3HBXj0="}
    where, query = parts(sas(rowfs, db, ACCOUNT, "--permissions=ualdwr",
                             "--resource-types=cos", "--expiry=2035-01-01"))
    assert where == BASE + "/"
    assert query == {"sv": "2019-02-02", "ss": "t", "srt": "sco", "sp": "rwdlau",
                     "se": "2035-01-01T00:00:00Z",
                     "sig": "/dxzvmrSc05VvNKT3SRd+PdMksOe6MIR3stqSrkQrS4="}


def test_the_second_key_signs_where_it_is_asked_for(rowfs, db):
    keys = dict(line.split(None, 1) for line in
                rowfs("account", "keys", db, ACCOUNT).stdout.splitlines())
    _, query = parts(sas(rowfs, db, TABLE, "--permissions=r", "--expiry=+1h", "--key=2",
                         "--ip=10.0.0.1-10.0.0.9", "--https-only"))
    text = "\n".join(["r", "", query["se"], "/table/" + TABLE, "", "10.0.0.1-10.0.0.9",
                      "https", "2019-02-02", "", "", "", ""])
    code = hmac.new(base64.b64decode(keys["key2"]), text.encode(), hashlib.sha256).digest()
    assert query["sig"] == base64.b64encode(code).decode()


def test_the_url_may_be_another(rowfs, db):
    args = (TABLE, "--permissions=r", "--expiry=+1h")
    assert sas(rowfs, db, *args, "--url=https://x.example/t//").startswith(
        "https://x.example/t/MyTable?sv=")
    assert sas(rowfs, db, *args, "--https-only").startswith(
        f"https://127.0.0.1:10002/{ACCOUNT}/MyTable?sv=")


GOOD = ("--permissions=r", "--expiry=+1h")
QUEUE = ("--service=queue",)


@pytest.mark.parametrize("code, args, text", [
    (2, (TABLE, "--permissions=rx", "--expiry=+1h"), "one or more of 'raud', not 'rx'"),
    (2, (TABLE, "--permissions=", "--expiry=+1h"), "one or more of 'raud'"),
    (2, (TABLE, "--expiry=+1h"), "--permissions is missing"),
    (2, (TABLE, "--permissions=r"), "--expiry is missing"),
    (2, (TABLE, "--permissions=r", "--expiry=2020-01-01"), "has passed"),
    (2, (TABLE, "--permissions=r", "--expiry=+1w"), "is a time such as"),
    (2, (TABLE, "--permissions=r", "--expiry=+-1h"), "is a time such as"),
    (2, (TABLE, "--permissions=r", "--expiry=+99999999999d"), "is a time such as"),
    (2, (TABLE, "--permissions=r", "--expiry=tomorrow"), "is a time such as"),
    (2, (TABLE, *GOOD, "--start=+2h"), "is not before"),
    (2, (TABLE, *GOOD, "--ip=10.0.0"), "--ip is an address"),
    (2, (TABLE, *GOOD, "--ip=10.0.0.2-10.0.0.1"), "--ip is an address"),
    (2, (TABLE, *GOOD, "--key=3"), "--key is 1 or 2"),
    (2, (TABLE, *GOOD, "--from-rk=1"), "--from-rk needs --from-pk"),
    (2, (TABLE, *GOOD, "--to-rk=1"), "--to-rk needs --to-pk"),
    (2, (TABLE, *GOOD, "--to-pk="), "cannot be empty"),
    (2, (TABLE, *GOOD, "--to-pk=a", "--to-rk="), "cannot be empty"),
    (2, (TABLE, *GOOD, "--from-pk=b", "--to-pk=a"), "ends before it begins"),
    (2, (TABLE, *GOOD, "--from-pk=a\nb"), "without line breaks"),
    (2, (TABLE, *GOOD, "--resource-types=o"), "does not go with"),
    (2, (TABLE, *GOOD, "--url=ftp://x"), "--url begins with"),
    (2, (TABLE, *GOOD, "--url=http://x?y"), "--url begins with"),
    (2, (TABLE, *GOOD, "--url=http://x", "--https-only"), "--https-only is of no use"),
    (2, (TABLE, *GOOD, "--service=file"), "--service is table, queue or blob, not 'file'"),
    (2, (TABLE, *GOOD, "--service="), "--service is table, queue or blob, not ''"),
    (2, (TABLE, *QUEUE, "--permissions=d", "--expiry=+1h"), "one or more of 'raup', not 'd'"),
    (2, (TABLE, *QUEUE, *GOOD, "--from-pk=a"), "--from-pk does not go with"),
    (2, (ACCOUNT, *QUEUE, "--permissions=q", "--expiry=+1h", "--resource-types=o"), "'rwdlacup'"),
    (1, (ACCOUNT + "/nope", *QUEUE, *GOOD), "nope: The specified queue does not exist"),
    (1, ("nobody/jobs", *QUEUE, *GOOD), "there is no account 'nobody'"),
    (2, ("a/b/c", *QUEUE, *GOOD), "'a/b/c' is not ACCOUNT/QUEUE"),
    (2, ("a/", *GOOD, *QUEUE), "'a/' is not ACCOUNT/QUEUE"),
    (2, (TABLE, "--policy="), "--policy is the id"),
    (2, (ACCOUNT, *GOOD), "--resource-types is missing"),
    (2, (ACCOUNT, *GOOD, "--resource-types=x"), "one or more of 'sco'"),
    (2, (ACCOUNT, "--permissions=p", "--expiry=+1h", "--resource-types=o"), "'rwdlacu'"),
    (2, (ACCOUNT, *GOOD, "--resource-types=o", "--policy=p"), "does not go with"),
    (2, (ACCOUNT, *GOOD, "--resource-types=o", "--to-pk=p"), "does not go with"),
    (2, ("a/b/c", *GOOD), "is not ACCOUNT/TABLE"),
    (1, (ACCOUNT + "/nope", *GOOD), "there is no table 'nope'"),
    (1, ("nobody/mytable", *GOOD), "there is no account 'nobody'"),
    (1, ("nobody", *GOOD, "--resource-types=o"), "there is no account 'nobody'"),
    (1, (TABLE, "--policy=nix"), "no stored policy 'nix'"),
])
def test_what_makes_no_sense_is_refused(rowfs, db, code, args, text):
    done = rowfs("sas", db, *args, check=False)
    assert done.returncode == code
    assert text in done.stderr and done.stderr.startswith("rowfs sas: ")
    assert done.stdout == ""


def fetch(url, method="GET", body=None, headers=()):
    request = urllib.request.Request(url, body, dict(headers), method=method)
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as e:
        return e.code, e.read().decode()


def test_a_server_takes_them(rowfs, db, serve):
    server = serve(db)
    base = f"--url={server.url(ACCOUNT)}"
    # the command works through the process that serves the store
    status, text = fetch(sas(rowfs, db, TABLE, *GOOD, base))
    assert status == 200 and text.count('"RowKey"') == 2
    status, text = fetch(sas(rowfs, db, TABLE, *GOOD, base, "--from-pk=b", "--key=2"))
    assert status == 200 and text.count('"RowKey"') == 1
    status, text = fetch(sas(rowfs, db, TABLE, *GOOD, base, "--ip=10.1.2.3"))
    assert status == 403 and "AuthorizationSourceIPMismatch" in text
    status, text = fetch(sas(rowfs, db, TABLE, *GOOD, base).replace("sp=r", "sp=ra"))
    assert status == 403 and "AuthenticationFailed" in text
    url = sas(rowfs, db, ACCOUNT, "--permissions=l", "--resource-types=s", "--expiry=+1h", base)
    status, text = fetch(url.replace("/?", "/Tables?"))
    assert status == 200 and "MyTable" in text
    rowfs("account", "regenerate", db, ACCOUNT)
    assert fetch(url.replace("/?", "/Tables?"))[0] == 403


@pytest.fixture
def queues(db, serve):
    """A client of the server's queues, where the queue jobs is."""
    server = serve(db, "--rest=127.0.0.1:0", "--rest=queue=127.0.0.1:0")
    ports = [urllib.parse.urlsplit(e).port for e in server.endpoints]
    client = Queues(next(p for p in ports if p != server.port))
    assert client.ask("PUT", "/jobs").status == 201
    return client


def test_the_url_of_a_queue(rowfs, db, queues):
    args = (ACCOUNT + "/jobs", *QUEUE, "--permissions=paur", "--expiry=2035-01-01")
    where, query = parts(sas(rowfs, db, *args))
    assert where == f"http://127.0.0.1:{queues.port}/{ACCOUNT}/jobs"
    text = "\n".join(["raup", "", "2035-01-01T00:00:00Z", f"/queue/{ACCOUNT}/jobs", "", "", "",
                      "2019-02-02"])
    sig = hmac.new(base64.b64decode(KEY), text.encode(), hashlib.sha256).digest()
    assert query == {"sv": "2019-02-02", "sp": "raup", "se": "2035-01-01T00:00:00Z",
                     "sig": base64.b64encode(sig).decode()}
    assert sas(rowfs, db, *args, "--https-only").startswith(f"https://127.0.0.1:{queues.port}/")
    assert sas(rowfs, db, *args, "--url=http://q.example").startswith("http://q.example/jobs?")


def test_the_url_of_all_queues(rowfs, db, serve):
    """By the emulator's port, if no process serves the store."""
    args = (ACCOUNT, *QUEUE, *GOOD, "--resource-types=o")
    assert sas(rowfs, db, *args).startswith(f"http://127.0.0.1:10001/{ACCOUNT}/?sv=")
    serve(db, "--rest=127.0.0.1:0")
    done = rowfs("sas", db, *args, check=False)
    assert done.returncode == 1 and "no endpoint for service 'queue'" in done.stderr
    assert "--url=URL" in done.stderr


def test_a_server_takes_those_of_queues(rowfs, db, queues):
    def messages(url, **more):
        return fetch(url.replace("?", "/messages?", 1), **more)
    body = b"<QueueMessage><MessageText>x</MessageText></QueueMessage>"
    jobs = (ACCOUNT + "/jobs", *QUEUE)
    put = sas(rowfs, db, *jobs, "--permissions=a", "--expiry=+1h")
    assert messages(put, method="POST", body=body)[0] == 201
    status, text = messages(put)
    assert status == 403 and "AuthorizationPermissionMismatch" in text
    status, text = messages(sas(rowfs, db, *jobs, *GOOD) + "&peekonly=true")
    assert status == 200 and "<MessageText>x</MessageText>" in text
    xml = (b"<SignedIdentifiers><SignedIdentifier><Id>mine</Id><AccessPolicy><Expiry>2035-01-01"
           b"</Expiry><Permission>p</Permission></AccessPolicy></SignedIdentifier>"
           b"</SignedIdentifiers>")
    assert queues.ask("PUT", "/jobs", {"comp": "acl"}, xml).status == 204
    done = rowfs("sas", db, *jobs, "--policy=nix", check=False)
    assert done.returncode == 1 and "no stored policy 'nix'" in done.stderr
    status, text = messages(sas(rowfs, db, *jobs, "--policy=mine"))
    assert status == 200 and "<MessageText>x</MessageText>" in text
    account = (ACCOUNT, *QUEUE, "--expiry=+1h")
    url = sas(rowfs, db, *account, "--permissions=l", "--resource-types=s")
    assert parts(url)[1]["ss"] == "q"
    status, text = fetch(url + "&comp=list")
    assert status == 200 and "<Name>jobs</Name>" in text
    url = sas(rowfs, db, *account, "--permissions=p", "--resource-types=o")
    assert messages(url.replace("/?", "/jobs?"))[0] == 200
