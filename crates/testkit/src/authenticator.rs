//! A passkey without a browser: answers challenges as an authenticator and a browser would, or wrongly on request.

use data_encoding::BASE64URL_NOPAD;
use ring::digest::{SHA256, digest};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair as _};
use serde_json::{Value, json};

const CREDENTIAL_BYTES: usize = 16;
/// Bits of the flags in authenticator data.
const PRESENT: u8 = 0x01;
const VERIFIED: u8 = 0x04;
const WITH_CREDENTIAL: u8 = 0x40;

pub struct Authenticator {
    key: EcdsaKeyPair,
    credential: Vec<u8>,
    /// Whom it was made for, in base64url.
    user: String,
    party: String,
    /// The page that asks, as the browser sees it.
    pub origin: String,
    /// Whether it checks a finger or a PIN.
    pub verifies: bool,
    /// Whether it counts its answers. One that is synchronized between devices doesn't.
    pub counts: bool,
    pub counter: u32,
}

#[expect(clippy::disallowed_methods, reason = "the signature of a test need not repeat")]
fn random() -> SystemRandom {
    SystemRandom::new()
}

fn sha256(bytes: &[u8]) -> Vec<u8> {
    digest(&SHA256, bytes).as_ref().to_vec()
}

fn word(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("{value} is not a text")).to_owned()
}

impl Authenticator {
    /// Makes a passkey for a challenge on a page of this origin; also returns what the browser sends.
    pub fn create(options: &Value, origin: &str) -> (Self, String) {
        let asked = &options["publicKey"];
        let pkcs8 = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, &random()).expect("a key");
        let key = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, pkcs8.as_ref(), &random());
        let key = key.expect("the key that was just made");
        let credential = sha256(key.public_key().as_ref())[..CREDENTIAL_BYTES].to_vec();
        let (user, party) = (word(&asked["user"]["id"]), word(&asked["rp"]["id"]));
        let origin = origin.to_owned();
        let made = Self { key, credential, user, party, origin, verifies: true, counts: true, counter: 0 };
        let client = made.client_data("webauthn.create", asked);
        let mut data = made.data(WITH_CREDENTIAL);
        data.extend([0; 16]);
        data.extend(u16::try_from(CREDENTIAL_BYTES).expect("few").to_be_bytes());
        data.extend(&made.credential);
        data.extend(made.public_key());
        // A map of three in CBOR: fmt "none", an empty attStmt, and authData.
        let mut object = b"\xa3\x63fmt\x64none\x67attStmt\xa0\x68authData\x58".to_vec();
        object.push(u8::try_from(data.len()).expect("short"));
        object.extend(&data);
        let response = json!({
            "clientDataJSON": BASE64URL_NOPAD.encode(&client),
            "attestationObject": BASE64URL_NOPAD.encode(&object),
        });
        let sent = made.sent(&response);
        (made, sent)
    }

    /// Answers a challenge; returns what the browser sends.
    pub fn answer(&mut self, options: &Value) -> String {
        self.counter += u32::from(self.counts);
        let client = self.client_data("webauthn.get", &options["publicKey"]);
        let data = self.data(0);
        let signed = [data.clone(), sha256(&client)].concat();
        let signature = self.key.sign(&random(), &signed).expect("a signature");
        let response = json!({
            "clientDataJSON": BASE64URL_NOPAD.encode(&client),
            "authenticatorData": BASE64URL_NOPAD.encode(&data),
            "signature": BASE64URL_NOPAD.encode(signature.as_ref()),
            "userHandle": self.user,
        });
        self.sent(&response)
    }

    fn sent(&self, response: &Value) -> String {
        let id = BASE64URL_NOPAD.encode(&self.credential);
        let sent = json!({
            "id": id, "rawId": id, "type": "public-key", "response": response, "clientExtensionResults": {},
        });
        sent.to_string()
    }

    fn client_data(&self, kind: &str, asked: &Value) -> Vec<u8> {
        let data = json!({
            "type": kind, "challenge": asked["challenge"], "origin": self.origin, "crossOrigin": false,
        });
        data.to_string().into_bytes()
    }

    fn data(&self, more: u8) -> Vec<u8> {
        let verified = if self.verifies { VERIFIED } else { 0 };
        let mut data = sha256(self.party.as_bytes());
        data.push(PRESENT | verified | more);
        data.extend(self.counter.to_be_bytes());
        data
    }

    /// The public key as COSE: a map with the type, the algorithm, the curve and both coordinates.
    fn public_key(&self) -> Vec<u8> {
        let point = self.key.public_key().as_ref();
        let (x, y) = (&point[1..33], &point[33..65]);
        [b"\xa5\x01\x02\x03\x26\x20\x01\x21\x58\x20".as_slice(), x, b"\x22\x58\x20", y].concat()
    }
}
