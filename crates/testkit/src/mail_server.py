"""The mail server of the tests: takes mail over SMTP, and writes down each message as a line of JSON.

Arguments: security (tls, starttls or plain), port, directory. The directory holds cert.pem and key.pem; into it go
messages.jsonl, and from it is read, at every recipient, refuse.txt: the answer to give instead of accepting.
"""

import asyncio
import email
import email.policy
import json
import os
import ssl
import sys

from aiosmtpd.smtp import SMTP, AuthResult, LoginPassword

USER, PASSWORD = b"rapport", b"p:ss/w@rd%"


class Handler:
    def __init__(self, directory):
        self.directory = directory

    async def handle_RCPT(self, server, session, envelope, address, options):
        try:
            with open(os.path.join(self.directory, "refuse.txt")) as refuse:
                answer = refuse.read()
        except FileNotFoundError:
            answer = ""
        if answer:
            return answer
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server, session, envelope):
        message = email.message_from_bytes(envelope.content, policy=email.policy.default)
        part = lambda kind: next((p.get_content() for p in message.walk() if p.get_content_type() == kind), None)
        line = json.dumps({
            "from": envelope.mail_from,
            "to": envelope.rcpt_tos,
            "authenticated": session.authenticated is True,
            "encrypted": session.ssl is not None or server.transport.get_extra_info("sslcontext") is not None,
            "headers": [[name, str(value)] for name, value in message.items()],
            "type": message.get_content_type(),
            "plain": part("text/plain"),
            "html": part("text/html"),
            "raw": envelope.content.decode("utf-8", "replace"),
        })
        with open(os.path.join(self.directory, "messages.jsonl"), "a") as messages:
            messages.write(line + "\n")
        return "250 OK"


def authenticate(server, session, envelope, mechanism, data):
    known = isinstance(data, LoginPassword) and (data.login, data.password) == (USER, PASSWORD)
    # `handled` would mean that we have answered; the server's own 535 is fine.
    return AuthResult(success=known, handled=known)


async def main(security, port, directory):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(os.path.join(directory, "cert.pem"), os.path.join(directory, "key.pem"))
    options = {"enable_SMTPUTF8": True, "hostname": "mail.test", "authenticator": authenticate}
    if security == "starttls":
        options |= {"tls_context": context, "require_starttls": True, "auth_required": True}
    elif security == "tls":
        options |= {"auth_required": True, "auth_require_tls": False}
    loop = asyncio.get_running_loop()
    server = await loop.create_server(
        lambda: SMTP(Handler(directory), **options),
        "127.0.0.1",
        port,
        ssl=context if security == "tls" else None,
    )
    print(server.sockets[0].getsockname()[1], flush=True)
    # The process that started it holds the other end: it ends with that process, however that ends.
    await loop.run_in_executor(None, sys.stdin.read)
    os._exit(0)


asyncio.run(main(sys.argv[1], int(sys.argv[2]), sys.argv[3]))
