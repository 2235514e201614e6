#!/bin/sh
# For a check by hand only: the comparison is not in constant time, so do not use it in a receiver.
expected="sha256=$(openssl dgst -sha256 -hmac "$WEBHOOK_SECRET" -r | cut -d' ' -f1)"
[ "$expected" = "$1" ]
