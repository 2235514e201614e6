"""Signatures: known ones, and those of real deliveries."""

import base64
import hashlib
import hmac
import http.server
import json
import os
import queue
import ssl
import threading
import unittest

from rapport_client import SignatureError, Verifier
from rapport_client.signatures import (
    MalformedHeader,
    MalformedPayload,
    MissingHeader,
    TimestampTooNew,
    TimestampTooOld,
    WrongSignature,
)
from support import PATIENCE_SECONDS, POLL_SECONDS, call, new_id

SECRET = "whs_0123456789abcdef"
STANDARD_SECRET = "whsec_" + base64.b64encode(SECRET.encode()).decode()
SENT_AT = 1_700_000_000
BODY = b'{"id":"evt_1","type":"account.created","created_at":"2026-05-12T08:30:00Z","project":"acme","data":{}}'


def sign(secret: str, body: bytes = BODY, timestamp: int = SENT_AT) -> dict[str, str]:
    """The headers of a delivery."""
    signed = f"evt_1.{timestamp}.".encode() + body
    digest = hmac.new(secret.encode(), signed, hashlib.sha256).digest()
    return {
        "Webhook-Id": "evt_1",
        "Webhook-Timestamp": str(timestamp),
        "Webhook-Signature": "v1," + base64.b64encode(digest).decode(),
        "X-Service-Signature": "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest(),
    }


def verifier(*secrets: str, now: int = SENT_AT) -> Verifier:
    return Verifier(secrets or (SECRET,), now=lambda: now)


class Known(unittest.TestCase):
    def test_the_published_example_of_standard_webhooks(self) -> None:
        body = b'{"test": 2432232314}'
        headers = {
            "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
            "webhook-timestamp": "1614265330",
            "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
        }
        secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
        # The signature is right. Only the body isn't one of our events.
        with self.assertRaises(MalformedPayload):
            Verifier(secret, now=lambda: 1614265330).verify(body, headers)

    def test_both_forms_of_the_secret_verify_both_signatures(self) -> None:
        for secret in (SECRET, STANDARD_SECRET):
            with self.subTest(secret):
                self.assertEqual(verifier(secret).verify(BODY, sign(SECRET))["id"], "evt_1")
                self.assertEqual(
                    verifier(secret).verify_service_signature(BODY, sign(SECRET))["type"], "account.created"
                )

    def test_several_secrets_and_several_signatures(self) -> None:
        both = verifier("whs_new", SECRET)
        self.assertEqual(both.verify(BODY, sign(SECRET))["id"], "evt_1")
        self.assertEqual(both.verify(BODY, sign("whs_new"))["id"], "evt_1")
        self.assertEqual(both.verify_service_signature(BODY, sign(SECRET))["id"], "evt_1")
        with self.assertRaises(WrongSignature):
            both.verify(BODY, sign("whs_older"))
        headers = sign(SECRET)
        headers["Webhook-Signature"] = f"v2,abc {sign('whs_new')['Webhook-Signature']} {headers['Webhook-Signature']}"
        self.assertEqual(verifier().verify(BODY, headers)["id"], "evt_1")

    def test_the_time_may_be_off_by_five_minutes(self) -> None:
        table: list[tuple[int, type[SignatureError] | None]] = [
            (-301, TimestampTooNew),
            (-300, None),
            (0, None),
            (300, None),
            (301, TimestampTooOld),
        ]
        for age, error in table:
            with self.subTest(age=age):
                if error is None:
                    verifier(now=SENT_AT + age).verify(BODY, sign(SECRET))
                else:
                    with self.assertRaises(error):
                        verifier(now=SENT_AT + age).verify(BODY, sign(SECRET))
        Verifier(SECRET, tolerance=1000, now=lambda: SENT_AT + 999).verify(BODY, sign(SECRET))

    def test_what_is_not_genuine(self) -> None:
        table: list[tuple[str, dict[str, str | None], type[SignatureError]]] = [
            ("no id", {"Webhook-Id": None}, MissingHeader),
            ("no time", {"Webhook-Timestamp": None}, MissingHeader),
            ("no signature", {"Webhook-Signature": None}, MissingHeader),
            ("an empty signature", {"Webhook-Signature": ""}, MissingHeader),
            ("another id", {"Webhook-Id": "evt_2"}, WrongSignature),
            ("another time", {"Webhook-Timestamp": str(SENT_AT + 1)}, WrongSignature),
            ("a time that is no number", {"Webhook-Timestamp": "now"}, MalformedHeader),
            ("a negative time", {"Webhook-Timestamp": "-1"}, MalformedHeader),
            ("digits of another script", {"Webhook-Timestamp": "١٧"}, MalformedHeader),
            ("a very long time", {"Webhook-Timestamp": "9" * 5000}, MalformedHeader),
            ("another version", {"Webhook-Signature": "v1a,abc"}, MalformedHeader),
            ("another signature", {"Webhook-Signature": "v1,abc"}, WrongSignature),
            ("letters outside ASCII", {"Webhook-Signature": "v1,é\ud800"}, WrongSignature),
        ]
        for name, changes, error in table:
            with self.subTest(name):
                headers = {key: value for key, value in {**sign(SECRET), **changes}.items() if value is not None}
                with self.assertRaises(error):
                    verifier().verify(BODY, headers)
        with self.assertRaises(WrongSignature):
            verifier().verify(BODY + b" ", sign(SECRET))

    def test_what_is_not_genuine_by_the_service_signature(self) -> None:
        table: list[tuple[str | None, type[SignatureError]]] = [
            (None, MissingHeader),
            ("abc", MalformedHeader),
            ("sha256=abc", WrongSignature),
            (sign("whs_other")["X-Service-Signature"], WrongSignature),
            (sign(SECRET)["X-Service-Signature"].upper(), MalformedHeader),
        ]
        for signature, error in table:
            with self.subTest(signature), self.assertRaises(error):
                verifier().verify_service_signature(
                    BODY, {} if signature is None else {"x-service-signature": signature}
                )

    def test_a_request_without_the_standard_headers_is_not_enough(self) -> None:
        # Somebody who repeats a recorded request could leave out the headers with the time.
        headers = {"X-Service-Signature": sign(SECRET)["X-Service-Signature"]}
        with self.assertRaises(MissingHeader):
            verifier().verify(BODY, headers)

    def test_a_signed_body_that_is_no_event(self) -> None:
        for body in (b"", b"no JSON", b"[]", b"{}", b'{"id":1,"type":"x"}'):
            with self.subTest(body), self.assertRaises(MalformedPayload):
                verifier().verify(body, sign(SECRET, body))

    def test_mistakes_of_the_caller(self) -> None:
        for secrets in ("", (), "whsec_", "whsec_***"):
            with self.subTest(secrets), self.assertRaises(ValueError):
                Verifier(secrets)
        with self.assertRaisesRegex(TypeError, "raw body"):
            verifier().verify(BODY.decode(), sign(SECRET))  # type: ignore[arg-type]


class Deliveries(unittest.TestCase):
    """A receiver with TLS that keeps what it gets."""

    def setUp(self) -> None:
        received: queue.Queue[tuple[bytes, dict[str, str]]] = queue.Queue()

        class Receiver(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                received.put((body, dict(self.headers.items())))
                self.send_response(204)
                self.end_headers()

            def log_message(self, *values: object) -> None:
                pass

        self.received = received
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(os.environ["CERTIFICATE"], os.environ["KEY"])
        server.socket = tls.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, args=(POLL_SECONDS,), daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        url = f"https://127.0.0.1:{server.server_port}/hooks"
        self.webhook = call("POST", "/api/webhooks/", {"url": url, "events": ["account.created"]})
        self.addCleanup(call, "DELETE", f"/api/webhooks/{self.webhook['id']}/")

    def next(self) -> tuple[bytes, dict[str, str]]:
        return self.received.get(timeout=PATIENCE_SECONDS)

    def test_real_deliveries_verify(self) -> None:
        imported_id = new_id()
        call("POST", "/api/accounts/", {"name": "Ōkubo & Søn", "imported_id": imported_id})
        body, headers = self.next()
        for secret in (self.webhook["secret"], self.webhook["standard_secret"]):
            event = Verifier(secret).verify(body, headers)
            self.assertEqual(event["type"], "account.created")
            self.assertEqual(event["data"]["account"]["imported_id"], imported_id)
            self.assertEqual(Verifier(secret).verify_service_signature(body, headers), event)
        changed = json.dumps({**event, "project": "other"}).encode()
        with self.assertRaises(WrongSignature):
            Verifier(self.webhook["secret"]).verify(changed, headers)

    def test_a_rotation_with_both_secrets_misses_nothing(self) -> None:
        call("POST", f"/api/webhooks/{self.webhook['id']}/test/")
        before = self.next()
        rotated = call("POST", f"/api/webhooks/{self.webhook['id']}/rotate/")
        call("POST", f"/api/webhooks/{self.webhook['id']}/test/")
        after = self.next()
        both = Verifier([rotated["secret"], self.webhook["secret"]])
        self.assertEqual(both.verify(*before)["type"], "webhook.test")
        self.assertEqual(both.verify(*after)["type"], "webhook.test")
        with self.assertRaises(WrongSignature):
            Verifier(self.webhook["secret"]).verify(*after)


if __name__ == "__main__":
    unittest.main()
