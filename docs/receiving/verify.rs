use ring::hmac;

pub fn is_genuine(secret: &str, signature: &str, body: &[u8]) -> bool {
    let Some(hex) = signature.strip_prefix("sha256=") else { return false };
    let Ok(tag) = data_encoding::HEXLOWER.decode(hex.as_bytes()) else { return false };
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
    hmac::verify(&key, body, &tag).is_ok()
}
