"""A receiver that verifies deliveries with a library: pip install standardwebhooks

WEBHOOK_SECRET is the secret in the form for libraries (whsec_…); CERTIFICATE and KEY are files in PEM format.
"""

import http.server
import os
import ssl

from standardwebhooks import Webhook, WebhookVerificationError

webhook = Webhook(os.environ["WEBHOOK_SECRET"])
# Keep these in your database, together with what you do for an event, and delete them after 90 days.
handled: set[str] = set()


class Receiver(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        try:
            # Checks the signature, and that the timestamp is at most five minutes off.
            event = webhook.verify(body, dict(self.headers))
        except WebhookVerificationError as error:
            print("refused", error, flush=True)
            # Not 401, which ends the delivery: after you have fixed the secret, a retry can succeed.
            self.answer(400)
            return
        print("repeated" if event["id"] in handled else "handled", event["id"], event["type"], flush=True)
        handled.add(event["id"])
        self.answer(204)

    def answer(self, status: int) -> None:
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", "9443"))), Receiver)
tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
tls.load_cert_chain(os.environ["CERTIFICATE"], os.environ["KEY"])
server.socket = tls.wrap_socket(server.socket, server_side=True)
print(f"Listening on https://127.0.0.1:{server.server_port}/", flush=True)
server.serve_forever()
