"""Checks that a receiver verifies the deliveries of a running service, and refuses what isn't one.

./scripts/clients runs it with each receiver of docs/receiving/ that uses a published library:
    scripts/deliveries.py COMMAND…      COMMAND starts the receiver
"""

import base64
import hashlib
import hmac
import http.client
import json
import os
import signal
import ssl
import subprocess
import sys
import time
import urllib.parse
import urllib.request

URL = os.environ["RAPPORT_URL"]
# If the receiver has said nothing after this, something hangs.
PATIENCE_SECONDS = 60
TOO_OLD_SECONDS = 3600

tls = ssl.create_default_context(cafile=os.environ["AUTHORITY"])


def call(method, path, body=None):
    """Calls the API and returns the JSON that it answers."""
    headers = {"Authorization": f"Bearer {os.environ['RAPPORT_TOKEN']}"}
    data = None
    if body is not None:
        headers["Content-Type"] = "application/json"
        data = json.dumps(body).encode()
    with urllib.request.urlopen(urllib.request.Request(URL + path, data, headers, method=method)) as response:
        return json.load(response)


class Receiver:
    """A program that prints its address, and then a line for each request."""

    def __init__(self, secret):
        environment = {**os.environ, "WEBHOOK_SECRET": secret, "PORT": "0"}
        self.process = subprocess.Popen(sys.argv[1:], env=environment, stdout=subprocess.PIPE, text=True)
        self.url = self.line().removeprefix("Listening on ")

    def line(self):
        signal.alarm(PATIENCE_SECONDS)
        line = self.process.stdout.readline().strip()
        signal.alarm(0)
        assert line, "the receiver ended"
        return line

    def expect(self, expected):
        line = self.line()
        assert line == expected, f"the receiver said {line!r}, not {expected!r}"

    def expect_refusal(self, reason):
        line = self.line()
        assert line.startswith("refused") and reason in line, f"the receiver said {line!r}, not {reason!r}"

    def post(self, secret, event, timestamp, body, signed=None):
        """Posts a request that is signed with the secret as it is shown, and returns the status."""
        message = f"{event}.{timestamp}.{signed or body}".encode()
        digest = hmac.new(secret.encode(), message, hashlib.sha256).digest()
        headers = {
            "webhook-id": event,
            "webhook-timestamp": str(timestamp),
            "webhook-signature": "v1," + base64.b64encode(digest).decode(),
        }
        connection = http.client.HTTPSConnection(urllib.parse.urlsplit(self.url).netloc, context=tls)
        connection.request("POST", "/hooks", body, headers)
        status = connection.getresponse().status
        connection.close()
        return status

    def stop(self):
        self.process.kill()
        self.process.wait()


def test(webhook):
    """Sends a test event, and returns its delivery."""
    return call("POST", f"/api/webhooks/{webhook}/test/")


# Nothing listens there yet. The receiver needs the secret first.
made = call("POST", "/api/webhooks/", {"url": "https://127.0.0.1:1/hooks", "events": ["account.created"]})
webhook, secret = made["id"], made["secret"]
receiver = Receiver(made["standard_secret"])
call("PATCH", f"/api/webhooks/{webhook}/", {"url": receiver.url + "hooks"})

# A test, an event and a redelivery. The redelivery has the id of the first attempt, and a timestamp of its own.
delivery = test(webhook)
receiver.expect(f"handled {delivery['event_id']} webhook.test")
call("POST", "/api/accounts/", {"name": "Ōkubo & Søn", "imported_id": "crm-1"})
created = call("GET", "/api/deliveries/?type=account.created")["items"][0]
receiver.expect(f"handled {created['event_id']} account.created")
call("POST", f"/api/deliveries/{delivery['id']}/redeliver/")
receiver.expect(f"repeated {delivery['event_id']} webhook.test")

# The secret as it is shown makes the same signature. What somebody changed or recorded is refused.
now, body = int(time.time()), '{"id": "evt_1", "type": "account.created"}'
assert receiver.post(secret, "evt_1", now, body) == 204
receiver.expect("handled evt_1 account.created")
assert receiver.post(secret, "evt_1", now, body.replace("created", "deleted"), signed=body) == 400
receiver.expect_refusal("No matching signature")
assert receiver.post(secret, "evt_1", now - TOO_OLD_SECONDS, body) == 400
receiver.expect_refusal("too old")
assert receiver.post(secret, "evt_1", now + TOO_OLD_SECONDS, body) == 400
receiver.expect_refusal("too new")
assert receiver.post("whs_other", "evt_1", now, body) == 400
receiver.expect_refusal("No matching signature")

# After a rotation, the old secret verifies nothing, and the new one verifies another attempt.
rotated = call("POST", f"/api/webhooks/{webhook}/rotate/")
refused = test(webhook)
receiver.expect_refusal("No matching signature")
receiver.stop()
receiver = Receiver(rotated["standard_secret"])
call("PATCH", f"/api/webhooks/{webhook}/", {"url": receiver.url + "hooks"})
call("POST", f"/api/deliveries/{refused['id']}/redeliver/")
receiver.expect(f"handled {refused['event_id']} webhook.test")
receiver.stop()
