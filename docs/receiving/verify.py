import hashlib, hmac, os, sys


def is_genuine(secret: str, signature: str, body: bytes) -> bool:
    expected = "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    return hmac.compare_digest(expected, signature)


if __name__ == "__main__":
    genuine = is_genuine(os.environ["WEBHOOK_SECRET"], sys.argv[1], sys.stdin.buffer.read())
    sys.exit(0 if genuine else 1)
