<?php

function is_genuine(string $secret, string $signature, string $body): bool
{
    return hash_equals('sha256=' . hash_hmac('sha256', $body, $secret), $signature);
}

exit(is_genuine(getenv('WEBHOOK_SECRET'), $argv[1], file_get_contents('php://stdin')) ? 0 : 1);
