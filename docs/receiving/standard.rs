use ring::hmac;

const TOLERANCE_SECONDS: i64 = 300;

/// `now` is the time in seconds since 1970.
pub fn is_genuine(secret: &str, id: &str, timestamp: &str, signatures: &str, body: &[u8], now: i64) -> bool {
    let is_recent = |seconds: i64| (now - seconds).abs() <= TOLERANCE_SECONDS;
    if !timestamp.parse().is_ok_and(is_recent) {
        return false; // Somebody may be repeating a request that they recorded.
    }
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
    let signed = [id.as_bytes(), b".", timestamp.as_bytes(), b".", body].concat();
    let tags = signatures.split(' ').filter_map(|signature| signature.strip_prefix("v1,"));
    let mut tags = tags.filter_map(|base64| data_encoding::BASE64.decode(base64.as_bytes()).ok());
    tags.any(|tag| hmac::verify(&key, &signed, &tag).is_ok())
}
