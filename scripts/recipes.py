"""Runs the recipes of docs/recipes/ on a company of a running service, and checks what they did.

./scripts/clients runs it, with the Python client installed:
    scripts/recipes.py DIRECTORY        the directory for the databases of the recipes
"""

import base64
import hashlib
import hmac
import http.server
import json
import os
import queue
import shutil
import signal
import sqlite3
import ssl
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

URL = os.environ["RAPPORT_URL"]
RECIPES = Path(__file__).resolve().parent.parent / "docs" / "recipes"
WORK = Path(sys.argv[1])
# If something hasn't happened after this, it never will.
PATIENCE_SECONDS = 60


def call(method, path, body=None, headers=None, base=URL):
    """Makes a request and returns the JSON of the response."""
    headers = headers or {"Authorization": f"Bearer {os.environ['RAPPORT_TOKEN']}"}
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(base + path, data, {"Content-Type": "application/json", **headers}, method=method)
    with urllib.request.urlopen(request, timeout=PATIENCE_SECONDS) as response:
        content = response.read()
        return json.loads(content) if content else None


def report(*events):
    """Reports activity, as a product does."""
    key = {"X-Service-Ingest-Key": os.environ["RAPPORT_INGEST_KEY"]}
    reply = call("POST", "/api/pulse/ingest/", {"events": list(events)}, key)
    assert reply["accepted"] == len(events), reply


def account(imported_id):
    (found,) = call("GET", f"/api/accounts/?imported_id={imported_id}")["items"]
    return found


def run(program, *arguments, status=0):
    """Runs a recipe and returns what it printed."""
    command = [sys.executable, str(RECIPES / program), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_SECONDS)
    assert done.returncode == status, f"{program} ended with {done.returncode}:\n{done.stdout}{done.stderr}"
    return done.stdout.strip()


def nightly_sync():
    database = sqlite3.connect(WORK / "crm.db")
    database.execute(
        "CREATE TABLE customer (id TEXT PRIMARY KEY, name TEXT NOT NULL, stage TEXT NOT NULL, plan TEXT, "
        "seats INTEGER, contract_value TEXT, currency TEXT)"
    )
    rows = [(f"sync-{n:04}", f"Customer {n}", "called", "team", n, None, None) for n in range(700)]
    rows[1] = ("sync-0001", "Nordlys", "offer", "team", 12, "48000.50", "EUR")
    database.executemany("INSERT INTO customer VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
    database.commit()
    printed = run("nightly_sync.py", WORK / "crm.db")
    assert printed == "700 created, 0 changed, 0 unchanged, 0 refused", printed
    nordlys = account("sync-0001")
    assert (nordlys["status"], nordlys["captured_value"]) == ("in_negotiation", "48000.50"), nordlys
    assert nordlys["custom_fields"] == {"plan": "team", "seats": 12}, nordlys

    # A trial began, and the CRM doesn't know. It has another name, no plan any more, and a row that is refused.
    report({"imported_id": "sync-0001", "kind": "trial_started"})
    database.execute("UPDATE customer SET name = 'Nordlys AS', plan = NULL WHERE id = 'sync-0001'")
    database.execute("UPDATE customer SET contract_value = 'a lot', currency = 'EUR' WHERE id = 'sync-0002'")
    database.commit()
    printed = run("nightly_sync.py", WORK / "crm.db", status=1)
    assert printed == "0 created, 1 changed, 698 unchanged, 1 refused", printed
    nordlys = account("sync-0001")
    assert (nordlys["status"], nordlys["name"]) == ("in_trial", "Nordlys AS"), nordlys
    assert nordlys["custom_fields"] == {"seats": 12}, nordlys
    database.close()


def segment_source():
    environment = {**os.environ, "WRITE_KEY": "write-key", "PORT": "0"}
    command = [sys.executable, str(RECIPES / "segment_source.py")]
    source = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
    try:
        signal.alarm(PATIENCE_SECONDS)
        base = source.stdout.readline().strip().removeprefix("Listening on ")
        key = {"Authorization": "Basic " + base64.b64encode(b"write-key:").decode()}

        def send(kind, body):
            assert call("POST", f"/v1/{kind}", body, key, base) == {"success": True}

        group = {"groupId": "seg-1", "userId": "u-7", "traits": {"name": "Fjell Energi", "plan": "team"}}
        send("group", group)
        send("identify", {"userId": "u-8", "traits": {"name": "Ada", "city": "Oslo"}})
        track = {"userId": "u-7", "context": {"groupId": "seg-1"}, "timestamp": "2026-05-12T08:30:00.000Z"}
        started = {**track, "messageId": "m-1", "event": "Trial Started"}
        send("track", started)
        exported = {**track, "type": "track", "messageId": "m-2", "event": "Report Exported"}
        bought = {**track, "type": "track", "messageId": "m-3", "event": "Subscription Started"}
        bought["properties"] = {"revenue": 1200.5, "currency": "EUR"}
        anonymous = {"type": "track", "messageId": "m-4", "anonymousId": "a-1", "event": "Report Exported"}
        batch = {"batch": [exported, {"type": "page", "userId": "u-7"}, bought, anonymous]}
        send("batch", batch)
        # A library that got no response sends the same again.
        send("batch", batch)
        for path, body, headers, status in [
            ("/v1/track", started, {"Authorization": "Basic d3Jvbmc6"}, 401),
            ("/v1/unknown", started, key, 404),
            ("/v1/track", {"userId": "u-7"}, key, 400),
            ("/v1/batch", {"batch": 7}, key, 400),
        ]:
            try:
                call("POST", path, body, headers, base)
            except urllib.error.HTTPError as error:
                assert error.code == status, (path, error.code)
            else:
                raise AssertionError(f"{path} was not refused")
        signal.alarm(0)
    finally:
        source.kill()
        source.wait()
    fjell = account("seg-1")
    assert (fjell["name"], fjell["status"], fjell["captured_value"]) == ("Fjell Energi", "customer", "1200.50"), fjell
    assert fjell["custom_fields"] == {"plan": "team"}, fjell
    assert fjell["last_seen_at"] == "2026-05-12T08:30:00Z", fjell
    pulse = call("GET", f"/api/accounts/{fjell['id']}/pulse/")
    assert [(one["feature"], one["count"]) for one in pulse["features"]] == [("segment.report_exported", 1)], pulse
    ada = account("u-8")
    assert (ada["name"], ada["custom_fields"]) == ("Ada", {"city": "Oslo"}), ada


def warehouse():
    path = WORK / "warehouse.db"

    def copy():
        """Runs the recipe, and returns the copy: the events, and the accounts with their status."""
        printed = run("warehouse.py", path)
        database = sqlite3.connect(path)
        events = database.execute("SELECT id, type FROM event").fetchall()
        accounts = dict(database.execute("SELECT id, status FROM account"))
        database.close()
        return printed, dict(events), accounts

    # An event appears shortly after the request that caused it, so wait until the copy has everything.
    wanted = {one["id"]: one["status"] for one in listed("/api/accounts/")}
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        printed, events, accounts = copy()
        if accounts == wanted and list(events.values()).count("account.created") == len(wanted):
            break
        assert time.monotonic() < deadline, (printed, len(accounts), len(wanted))
    shutil.copy(path, WORK / "backup.db")

    first = account("sync-0003")["id"]
    second = account("sync-0004")["id"]
    call("POST", f"/api/accounts/{first}/status/", {"status": "customer"})
    call("DELETE", f"/api/accounts/{second}/")
    while True:
        printed, later, accounts = copy()
        if accounts.get(first) == "customer" and second not in accounts and len(later) == len(events) + 1:
            break
        assert time.monotonic() < deadline, (printed, len(events), len(later))
    assert copy()[0] == "0 events, 0 accounts"
    # An older copy of the warehouse gets the same again.
    shutil.copy(WORK / "backup.db", path)
    printed, again, restored = copy()
    assert (again, restored) == (later, accounts), printed
    assert printed == "1 events, 1 accounts", printed


def listed(path):
    """All items of a list."""
    page = call("GET", f"{path}?limit=200")
    items = page["items"]
    while page["next_cursor"]:
        page = call("GET", f"{path}?limit=200&cursor={page['next_cursor']}")
        items += page["items"]
    return items


def automation_tool():
    received = queue.Queue()

    class Tool(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            received.put((self.rfile.read(int(self.headers["Content-Length"])), self.headers))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *values):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Tool)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(os.environ["CERTIFICATE"], os.environ["KEY"])
    server.socket = tls.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    environment = {**os.environ, "HOOK_URL": f"https://127.0.0.1:{server.server_port}/hooks"}
    command = ["bash", str(RECIPES / "automation-tool.sh")]
    replies = []
    # The flow runs twice. Nothing happens twice but the webhook, which you create once.
    for _ in range(2):
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=PATIENCE_SECONDS)
        assert done.returncode == 0, done.stdout + done.stderr
        replies.append([json.loads(line) for line in done.stdout.splitlines() if line])
    for upserted, reported, found, webhook, polled in replies:
        assert upserted["created"] and upserted["account"]["imported_id"] == "form-5521", upserted
        assert reported["accepted"] + reported["duplicates"] == 1, reported
        assert found["items"][0]["status"] == "in_trial", found
        assert webhook["secret"].startswith("whs_"), webhook
        assert polled["next_cursor"], polled
    assert replies[1][1]["duplicates"] == 1, replies[1][1]
    secret = replies[0][3]["secret"]
    call("DELETE", f"/api/webhooks/{replies[1][3]['id']}/")

    # The filter lets only some stages through. Check the signature as the page says, and with the shell program.
    account_id = replies[0][0]["account"]["id"]
    call("POST", f"/api/accounts/{account_id}/status/", {"status": "lost"})
    call("POST", f"/api/accounts/{account_id}/status/", {"status": "customer"})
    body, headers = received.get(timeout=PATIENCE_SECONDS)
    assert json.loads(body)["data"]["status"] == "customer", body
    text = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    digest = base64.b64encode(hmac.new(secret.encode(), text, hashlib.sha256).digest()).decode()
    assert headers["webhook-signature"] == f"v1,{digest}", headers
    names = ("webhook-id", "webhook-timestamp", "webhook-signature")
    program = ["sh", str(RECIPES.parent / "receiving" / "standard.sh"), *(headers[name] for name in names)]
    subprocess.run(program, input=body, env={**os.environ, "WEBHOOK_SECRET": secret}, check=True)
    server.shutdown()
    server.server_close()


for recipe in (nightly_sync, segment_source, warehouse, automation_tool):
    recipe()
    print(f"scripts/recipes.py: {recipe.__name__} did what it should", flush=True)
