//! The verification programs of `docs/receiving/`, each run against a known signature if its interpreter is
//! installed, and `rapport listen` as the sender sees it.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::UNIX_EPOCH;

#[path = "../../../../docs/receiving/standard.rs"]
mod standard;
#[path = "../../../../docs/receiving/verify.rs"]
mod verify;

const SECRET: &str = "whs_0123456789abcdefghjkmnpqrstvwxyz";
const BODY: &str = r#"{"id":"evt_1","type":"account.created","data":{"name":"Ōkubo & Søn"}}"#;

fn signature() -> String {
    let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, SECRET.as_bytes());
    let tag = ring::hmac::sign(&key, BODY.as_bytes());
    format!("sha256={}", data_encoding::HEXLOWER.encode(tag.as_ref()))
}

const EVENT: &str = "evt_1";

fn unix_seconds() -> i64 {
    i64::try_from(UNIX_EPOCH.elapsed().expect("after 1970").as_secs()).unwrap()
}

/// The signature of Standard Webhooks.
fn standard_signature(timestamp: i64) -> String {
    let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, SECRET.as_bytes());
    let tag = ring::hmac::sign(&key, format!("{EVENT}.{timestamp}.{BODY}").as_bytes());
    format!("v1,{}", data_encoding::BASE64.encode(tag.as_ref()))
}

/// Whether the program accepts the body as genuine; `None` if it cannot run here.
fn accepts(program: &str, arguments: &[&str], file: &str, headers: &[&str], body: &str) -> Option<bool> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/receiving").join(file);
    assert!(path.exists(), "{} is missing", path.display());
    let mut command = Command::new(program);
    command.args(arguments).arg(path).args(headers).env("WEBHOOK_SECRET", SECRET);
    let spawned = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let mut child = spawned.ok()?;
    child.stdin.take().unwrap().write_all(body.as_bytes()).unwrap();
    Some(child.wait().unwrap().success())
}

#[test]
fn every_verification_program_tells_genuine_from_forged() {
    let programs: [(&str, &[&str], &str); 5] = [
        ("python3", &[], "verify.py"),
        ("node", &[], "verify.js"),
        ("go", &["run"], "verify.go"),
        ("php", &[], "verify.php"),
        ("sh", &[], "verify.sh"),
    ];
    let genuine = signature();
    let forged = genuine.replace(&genuine[10..12], if &genuine[10..12] == "00" { "11" } else { "00" });
    let mut ran = 0;
    for (program, arguments, file) in programs {
        let accepts = |signature: &str, body: &str| accepts(program, arguments, file, &[signature], body);
        let Some(accepted) = accepts(&genuine, BODY) else {
            println!("{program} is not installed: {file} was not run");
            continue;
        };
        ran += 1;
        assert!(accepted, "{file} accepts a genuine signature");
        assert_eq!(accepts(&forged, BODY), Some(false), "{file} refuses a forged one");
        let other = BODY.replace("evt_1", "evt_2");
        assert_eq!(accepts(&genuine, &other), Some(false), "{file}: another body");
    }
    assert!(ran > 0, "a shell is on every machine");
}

#[test]
fn the_rust_verification_tells_genuine_from_forged() {
    assert!(verify::is_genuine(SECRET, &signature(), BODY.as_bytes()));
    assert!(!verify::is_genuine("whs_other", &signature(), BODY.as_bytes()));
    assert!(!verify::is_genuine(SECRET, "sha256=zz", BODY.as_bytes()));
}

#[test]
fn every_program_for_standard_webhooks_refuses_replays_too() {
    let programs: [(&str, &[&str], &str); 5] = [
        ("python3", &[], "standard.py"),
        ("node", &[], "standard.js"),
        ("go", &["run"], "standard.go"),
        ("php", &[], "standard.php"),
        ("sh", &[], "standard.sh"),
    ];
    let now = unix_seconds();
    let genuine = standard_signature(now);
    let several = format!("v1,{} {genuine}", data_encoding::BASE64.encode(&[0; 32]));
    let other = BODY.replace("evt_1", "evt_2");
    let table: [(&str, i64, &str, &str, bool); 7] = [
        (EVENT, now, &genuine, BODY, true),
        (EVENT, now, &several, BODY, true),
        (EVENT, now, &genuine, &other, false),
        ("evt_2", now, &genuine, BODY, false),
        (EVENT, now - 1, &genuine, BODY, false),
        (EVENT, now - 3_600, &standard_signature(now - 3_600), BODY, false),
        (EVENT, now + 3_600, &standard_signature(now + 3_600), BODY, false),
    ];
    let mut ran = 0;
    for (program, arguments, file) in programs {
        for (id, timestamp, signatures, body, expected) in table {
            let accepted = accepts(program, arguments, file, &[id, &timestamp.to_string(), signatures], body);
            let Some(accepted) = accepted else {
                println!("{program} is not installed: {file} was not run");
                break;
            };
            ran += 1;
            assert_eq!(accepted, expected, "{file}: {id} {timestamp} {signatures} {body}");
        }
    }
    assert!(ran > 0, "a shell is on every machine");
    for (id, timestamp, signatures, body, expected) in table {
        let accepted =
            standard::is_genuine(SECRET, id, &timestamp.to_string(), signatures, body.as_bytes(), now);
        assert_eq!(accepted, expected, "standard.rs: {id} {timestamp} {signatures} {body}");
    }
}

#[test]
fn the_guide_names_every_program() {
    let docs = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let guide = std::fs::read_to_string(docs.join("receiving-webhooks.md")).unwrap();
    for entry in std::fs::read_dir(docs.join("receiving")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(guide.contains(&format!("(receiving/{name})")), "{name}");
    }
}
