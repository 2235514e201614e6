"""Takes calls in the shape of Segment's HTTP API and passes them on to Rapport.

RAPPORT_URL, RAPPORT_PROJECT, RAPPORT_TOKEN and RAPPORT_INGEST_KEY say where to; WRITE_KEY is what the callers show, and
PORT where to listen. segment-source.md explains it.
"""

import base64
import hmac
import http.server
import json
import os
from datetime import datetime
from typing import Any

from rapport_client import Ingest, RapportError, RetryPolicy, Upserter

# Names of track calls that mean more than the use of a feature.
KINDS = {
    "Application Opened": "app_opened",
    "Trial Started": "trial_started",
    "Subscription Started": "became_customer",
    "Order Completed": "became_customer",
    "Subscription Cancelled": "churned",
}
LARGEST_BODY = 512 * 1024

Call = dict[str, Any]

# The caller waits, and sends again what failed. So don't try for long.
PATIENCE = RetryPolicy(attempts=3, longest_wait=5.0)
URL = os.environ["RAPPORT_URL"]
crm = Upserter(URL, os.environ["RAPPORT_TOKEN"], os.environ["RAPPORT_PROJECT"], retry=PATIENCE)
product = Ingest(URL, os.environ["RAPPORT_INGEST_KEY"], retry=PATIENCE)
AUTHORIZATION = "Basic " + base64.b64encode(f"{os.environ['WRITE_KEY']}:".encode()).decode()


def account_of(call: Call) -> str | None:
    """An account is a company, so the group counts. Without one, the user is the account."""
    group = call.get("groupId") or (call.get("context") or {}).get("groupId")
    return group or call.get("userId")


def record_of(call: Call) -> Call:
    """An upsert for `identify` and `group`: traits become custom fields."""
    traits = dict(call.get("traits") or {})
    record: Call = {"imported_id": account_of(call), "custom_fields": traits}
    if call["type"] == "group" or account_of(call) == call.get("userId"):
        name = traits.pop("name", None)
        if name:
            record["name"] = name
    else:
        # Traits of a person say nothing about their company. The upsert only makes sure that the account exists.
        record["custom_fields"] = {}
    return record


def event_of(call: Call) -> Call:
    """An activity event for `track`. Segment's id makes it safe to send again."""
    name, properties = str(call["event"]), call.get("properties") or {}
    kind = KINDS.get(name, "feature_used")
    event: Call = {"imported_id": account_of(call), "kind": kind, "event_id": f"segment:{call['messageId']}"[:100]}
    if kind == "feature_used":
        event["feature"] = "segment." + name.lower().replace(" ", "_")[:100]
    if kind == "became_customer" and "revenue" in properties:
        event["metadata"] = {"value": str(properties["revenue"]), "currency": properties.get("currency", "USD")}
    if "timestamp" in call:
        event["occurred_at"] = datetime.fromisoformat(call["timestamp"])
    return event


def handle(calls: list[Call]) -> None:
    """Returns when everything is stored. First the accounts, because events need them."""
    known = [call for call in calls if account_of(call)]
    for outcome in crm.upsert_many([record_of(call) for call in known if call["type"] in ("identify", "group")]):
        if outcome.error:
            print(f"refused: {outcome.error.detail}", flush=True)
    report = product.send([event_of(call) for call in known if call["type"] == "track"])
    for rejected in report.rejected:
        print(f"rejected: {rejected.code} at {rejected.field}", flush=True)
    print(f"{report.accepted} accepted, {report.duplicates} repeated, {len(report.unmatched)} unmatched", flush=True)


class Source(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        if length > LARGEST_BODY:
            self.close_connection = True
            return self.answer(413)
        body = self.rfile.read(length)
        if not hmac.compare_digest(self.headers.get("Authorization", "").encode(), AUTHORIZATION.encode()):
            return self.answer(401)
        kind = self.path.removeprefix("/v1/")
        if kind not in ("identify", "group", "track", "page", "screen", "alias", "batch"):
            return self.answer(404)
        try:
            call = json.loads(body)
            calls = call["batch"] if kind == "batch" else [{**call, "type": kind}]
            handle(calls)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            print(f"not understood: {error!r}", flush=True)
            return self.answer(400)
        except RapportError as error:
            # Nothing is lost: the caller sends it again, and what was stored already isn't stored twice.
            print(f"failed: {error}", flush=True)
            return self.answer(503)
        self.answer(200)

    def answer(self, status: int) -> None:
        body = json.dumps({"success": status == 200}).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *values: object) -> None:
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", "8090"))), Source)
print(f"Listening on http://127.0.0.1:{server.server_port}", flush=True)
server.serve_forever()
