<?php

const TOLERANCE_SECONDS = 300;

function is_genuine(string $secret, string $id, string $timestamp, string $signatures, string $body): bool
{
    if (!ctype_digit($timestamp) || abs(time() - (int) $timestamp) > TOLERANCE_SECONDS) {
        return false; // Somebody may be repeating a request that they recorded.
    }
    $expected = 'v1,' . base64_encode(hash_hmac('sha256', "$id.$timestamp.$body", $secret, true));
    foreach (explode(' ', $signatures) as $signature) {
        if (hash_equals($expected, $signature)) {
            return true;
        }
    }
    return false;
}

[, $id, $timestamp, $signatures] = $argv;
$body = file_get_contents('php://stdin');
exit(is_genuine(getenv('WEBHOOK_SECRET'), $id, $timestamp, $signatures, $body) ? 0 : 1);
