import base64, hashlib, hmac, os, sys, time

TOLERANCE_SECONDS = 300


def is_genuine(secret: str, webhook_id: str, timestamp: str, signatures: str, body: bytes) -> bool:
    if not timestamp.isdecimal() or abs(time.time() - int(timestamp)) > TOLERANCE_SECONDS:
        return False  # Somebody may be repeating a request that they recorded.
    signed = f"{webhook_id}.{timestamp}.".encode() + body
    digest = hmac.new(secret.encode(), signed, hashlib.sha256).digest()
    expected = b"v1," + base64.b64encode(digest)
    return any(hmac.compare_digest(expected, signature.encode()) for signature in signatures.split(" "))


if __name__ == "__main__":
    genuine = is_genuine(os.environ["WEBHOOK_SECRET"], *sys.argv[1:4], sys.stdin.buffer.read())
    sys.exit(0 if genuine else 1)
