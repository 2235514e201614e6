#!/bin/sh
# For a look by hand: the comparison is not in constant time, so do not build a receiver on it.
expected="sha256=$(openssl dgst -sha256 -hmac "$WEBHOOK_SECRET" -r | cut -d' ' -f1)"
[ "$expected" = "$1" ]
