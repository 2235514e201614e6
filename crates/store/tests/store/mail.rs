//! Mail, digests and invitations of two companies with the same keys stay separate, and each is written once.

use rapport_domain::credential::SecretHash;
use rapport_domain::digest::Week;
use rapport_domain::id::{InvitationId, MailId};
use rapport_domain::invitation::Invitation;
use rapport_domain::mail::Kind;
use rapport_domain::member::{Email, Role};
use rapport_store::mail::{Content, NewMail, Settled};
use rapport_store::{Error, Snapshot, Tx, digest, invitation, mail};

use crate::support::{on_both_engines, time};

const MAIL: MailId = MailId::from_bytes([1; 16]);
const INVITATION: InvitationId = InvitationId::from_bytes([1; 16]);
const HASH: SecretHash = SecretHash::from_bytes([7; 32]);
const WEEK: Week = Week { year: 2026, number: 3 };

fn email() -> Email {
    Email::parse("ana@acme.test").expect("an address")
}

/// Writes one of each, with the same keys in either company; `mark` tells them apart.
fn fill(tx: &mut Tx, mark: &str) -> Result<(), Error> {
    let text = |what: &str| format!("{what} of {mark}");
    let secret = Some(mark.as_bytes().to_vec());
    mail::insert_content(
        tx,
        &Content { id: MAIL, subject: text("subject"), plain: text("plain"), html: text("html"), secret },
    )?;
    mail::insert(
        tx,
        &[NewMail {
            id: MAIL,
            kind: Kind::Invitation,
            person: None,
            recipient: email(),
            content: MAIL,
            not_after: time(100),
            created_at: time(0),
        }],
    )?;
    assert!(digest::insert(tx, WEEK, MAIL, 5, time(0))?, "{mark}");
    assert!(!digest::insert(tx, WEEK, MAIL, 6, time(1))?, "one digest per week");
    digest::set_schedule_since(tx, time(0))?;
    assert!(invitation::insert(tx, &HASH, &invited(mark))?, "{mark}");
    let again = Invitation { id: InvitationId::from_bytes([2; 16]), ..invited(mark) };
    assert!(!invitation::insert(tx, &SecretHash::from_bytes([8; 32]), &again)?, "one invitation per address");
    Ok(())
}

fn invited(mark: &str) -> Invitation {
    Invitation {
        id: INVITATION,
        email: email(),
        role: Role::Admin,
        invited_by: Some(mark.to_owned()),
        created_at: time(0),
        expires_at: time(7),
        name: None,
        by_mail: true,
    }
}

/// Everything a company can read, as text.
fn everything(snapshot: &mut Snapshot) -> Result<Vec<String>, Error> {
    Ok(vec![
        format!("{:?}", mail::list(snapshot, None, 10)?.items),
        format!("{:?}", mail::content(snapshot, MAIL)?),
        format!("{:?}", mail::counts(snapshot, MAIL)?),
        format!("{:?}", digest::list(snapshot, None, 10)?.items),
        format!("{:?}", digest::get(snapshot, WEEK)?),
        format!("{:?}", digest::schedule_since(snapshot)?),
        format!("{:?}", invitation::list(snapshot)?),
        format!("{:?}", invitation::get(snapshot, INVITATION)?),
        format!("{:?}", invitation::by_hash(snapshot, &HASH)?),
        format!("{:?}", invitation::by_email(snapshot, &email())?),
    ])
}

fn take_everything_away(tx: &mut Tx) -> Result<(), Error> {
    let due = mail::lock_due(tx, time(1), 10)?;
    assert_eq!(due.len(), 1, "only its own mail");
    mail::take(tx, &[MAIL], time(300))?;
    assert!(mail::lock_due(tx, time(299), 10)?.is_empty(), "it is claimed");
    assert!(!mail::settle(tx, MAIL, 0, Settled::Sent, time(2))?, "that is not the latest attempt");
    assert!(mail::settle(tx, MAIL, 1, Settled::Retry { at: time(3), error: "later" }, time(2))?);
    mail::withdraw(tx, Kind::PasswordReset, &email(), "another kind", time(3))?;
    assert_eq!(mail::counts(tx, MAIL)?.waiting, 1);
    mail::withdraw(tx, Kind::Invitation, &email(), "revoked", time(3))?;
    assert_eq!(mail::content(tx, MAIL)?.expect("kept").secret, None);
    digest::set_schedule_since(tx, time(9))?;
    digest::prune(tx, time(1))?;
    let renewed = Invitation { expires_at: time(9), ..invited("renewed") };
    invitation::renew(tx, &renewed, &SecretHash::from_bytes([9; 32]))?;
    invitation::prune(tx, time(8))?;
    assert!(invitation::delete(tx, INVITATION)?);
    assert!(!invitation::delete(tx, INVITATION)?);
    while mail::prune(tx, time(100_000_000), 10)? > 0 {}
    Ok(())
}

#[test]
fn companies_with_the_same_keys_never_meet() {
    on_both_engines(|world| {
        let (one, other) = (world.company("one"), world.company("other"));
        world.write(one, |tx| fill(tx, "one")).expect("filled");
        let alone = world.read(one, everything);
        world.write(other, |tx| fill(tx, "other")).expect("the same keys are free in another company");
        assert_eq!(world.read(one, everything), alone, "unchanged by the other company");
        let others = world.read(other, everything);
        assert!(
            others.iter().all(|text| !text.contains("of one") && !text.contains("\"one\"")),
            "{others:?}"
        );
        world.write(one, take_everything_away).expect("gone");
        assert_eq!(world.read(other, everything), others, "unchanged by the first company's deletion");
        assert!(world.read(one, |snapshot| mail::content(snapshot, MAIL)).is_none());
    });
}
