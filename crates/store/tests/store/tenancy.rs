//! Two companies with identical keys never see each other's rows.

use rapport_domain::activity::EventMark;
use rapport_domain::audience::{FieldFilter, FieldTest};
use rapport_domain::audit::Filter;
use rapport_domain::campaign::{Aim, Campaign, Goal};
use rapport_domain::channel::{Channel, ChannelCode, ChannelRef, PromoCode};
use rapport_domain::company::Slug;
use rapport_domain::credential::{Credential, Kind, SecretHash};
use rapport_domain::custom_fields::{CustomFields, FieldChange};
use rapport_domain::event::{Occasion, account_created};
use rapport_domain::history::{Actor, HistoryEntry};
use rapport_domain::id::{AuditId, CampaignId, ChannelId, CompanyId, CredentialId, EventId, HistoryId};
use rapport_domain::member::Role;
use rapport_domain::pipeline::{Source, Status};
use rapport_domain::time::Day;
use rapport_store::account::Edit;
use rapport_store::account_list::{AccountFilter, ListAccounts, Sort, count_capped};
use rapport_store::activity::{Count, NewActivity, Seen};
use rapport_store::audit::AuditEntry;
use rapport_store::{
    Error, Query, Snapshot, Tx, account, account_field, activity, audit, campaign, channel, company,
    credential, event, history, member,
};
use serde_json::json;

use crate::support::{account_id, imported_account, on_both_engines, time};

/// 12 May 2026.
const DAY: Day = Day::from_number(20_585);
const CHANNEL: ChannelId = ChannelId::from_bytes([5; 16]);
const HASH: SecretHash = SecretHash::from_bytes([7; 32]);

/// Writes one of everything, with the same keys in either company; `mark` tells them apart.
fn fill(tx: &mut Tx, mark: &str) -> Result<(), Error> {
    let name = format!("Partners of {mark}");
    assert!(channel::insert(tx, &Channel { id: CHANNEL, name: name.clone(), created_at: time(0) })?);
    let code = PromoCode::parse("SPRING").expect("a code");
    assert!(channel::insert_code(
        tx,
        &ChannelCode { channel: CHANNEL, code: code.clone(), archived_at: None, created_at: time(0) }
    )?);
    let aim = Aim { goal: Goal::Announcement, include_trials: false, filters: AccountFilter::default() };
    let (id, at) = (CampaignId::from_bytes([1; 16]), time(0));
    let spring = Campaign { id, name: format!("Spring of {mark}"), aim, created_at: at, updated_at: at };
    assert!(campaign::insert(tx, &spring)?);
    let mut new = imported_account(1, "crm-1");
    new.custom_fields = CustomFields::from_stored(format!(r#"{{"name":"of {mark}","plan":"Pro"}}"#));
    new.last_contact_at = Some(time(0));
    new.campaign_hold = true;
    new.name = format!("Keller of {mark}");
    new.channel = Some(ChannelRef { id: CHANNEL, name });
    assert!(account::insert(tx, &[&new])?);
    let seen = Seen { account: new.id, first: time(0), last: time(1), day: DAY };
    activity::see(tx, &[seen])?;
    activity::count(
        tx,
        &[Count { account: new.id, day: DAY, feature: mark, count: 1, last_used_at: time(0) }],
    )?;
    activity::insert(
        tx,
        &[NewActivity {
            account: new.id,
            occurred_at: time(0),
            received_at: time(0),
            kind: "custom",
            feature: Some(mark),
            metadata: None,
        }],
    )?;
    assert_eq!(activity::take_marks(tx, &[EventMark::of("event")], time(0))?.len(), 1, "{mark}");
    history::insert(
        tx,
        &[HistoryEntry {
            id: HistoryId::from_bytes([1; 16]),
            account: new.id,
            from: None,
            to: Status::Prospect,
            source: Source::Upsert,
            actor: Actor::System,
            note: Some(mark.to_owned()),
            at: time(0),
            happened_at: None,
        }],
    )?;
    let project = Slug::parse(mark).expect("a slug");
    let occasion = Occasion { id: EventId::from_bytes([1; 16]), now: time(0), project: &project };
    event::insert(tx, &[account_created(occasion, &new, Source::Upsert)])?;
    let credential = Credential {
        id: CredentialId::from_bytes([1; 16]),
        kind: Kind::ApiToken,
        name: mark.to_owned(),
        role: Role::Admin,
        shown: String::new(),
        created_at: time(0),
        last_used_at: None,
        person: None,
        expires_at: None,
        rate_limit: None,
    };
    credential::insert(tx, &HASH, &credential)?;
    audit::insert(
        tx,
        &AuditEntry {
            id: AuditId::from_bytes([1; 16]),
            actor: Actor::CommandLine,
            action: mark.to_owned(),
            target: None,
            detail: "{}".to_owned(),
            at: time(0),
            address: None,
            request_id: None,
        },
    )
}

/// Everything a company can read, as text.
fn everything(snapshot: &mut Snapshot) -> Result<Vec<String>, Error> {
    let id = account_id(1);
    let mut all = vec![
        format!("{:?}", account::get(snapshot, id)?),
        format!("{:?}", account::ids_by_imported_id(snapshot, &["crm-1"])?),
        format!("{:?}", account::existing(snapshot, &[id])?),
        format!("{:?}", activity::seen(snapshot, id)?),
        format!("{:?}", activity::days(snapshot, id, DAY)?),
        format!("{:?}", activity::features(snapshot, id)?),
        // Without its number, which is shared by all companies.
        format!("{:?}", activity::list(snapshot, id, None, 10)?.items.first().map(|event| &event.feature)),
        format!("{:?}", history::of_account(snapshot, id, None, 10)?),
        format!("{:?}", channel::list(snapshot)?),
        format!("{:?}", channel::all_codes(snapshot)?),
        format!("{:?}", channel::codes(snapshot, CHANNEL)?),
        format!("{:?}", channel::attributions(snapshot, &["spring".to_owned()])?),
        format!("{:?}", channel::is_in_use(snapshot, CHANNEL)?),
        format!("{:?}", credential::callers(snapshot, &[HASH])?.known),
        format!("{:?}", credential::tokens(snapshot)?),
        format!("{:?}", credential::list(snapshot, Kind::ApiToken)?),
        format!("{:?}", event::of_account(snapshot, id)?),
        format!("{:?}", event::get(snapshot, EventId::from_bytes([1; 16]))?),
        format!("{:?}", audit::list(snapshot, &Filter::default(), None, 10)?),
        format!("{:?}", member::list(snapshot)?),
        format!("{:?}", account_field::names(snapshot, None, 10)?),
        format!("{:?}", campaign::list(snapshot, None, 10)?),
        format!("{:?}", campaign::get(snapshot, CampaignId::from_bytes([1; 16]))?),
    ];
    let field = |key: &str, test| FieldFilter { key: key.to_owned(), test };
    let any = AccountFilter::default;
    for filter in [
        any(),
        AccountFilter { q: Some("kell".to_owned()), ..any() },
        AccountFilter { imported_id: Some("crm-1".to_owned()), ..any() },
        AccountFilter { channels: vec![CHANNEL], ..any() },
        AccountFilter { channels: vec![CHANNEL, ChannelId::from_bytes([9; 16])], ..any() },
        AccountFilter { fields: vec![field("plan", FieldTest::Is(vec!["pro".to_owned()]))], ..any() },
        AccountFilter { fields: vec![field("plan", FieldTest::BeginsWith("p".to_owned()))], ..any() },
        AccountFilter { fields: vec![field("plan", FieldTest::Exists)], ..any() },
        AccountFilter { contacted_after: Some(time(-5)), ..any() },
        AccountFilter { campaign_hold: Some(true), ..any() },
        AccountFilter { statuses: vec![Status::Prospect, Status::Lost], ..any() },
        AccountFilter { seen_after: Some(time(-5)), ..any() },
        AccountFilter { overdue: Some(false), ..any() },
    ] {
        all.push(format!("{:?}", count_capped(snapshot, &filter, time(0), 100)?));
        for sort in Sort::all() {
            let list = ListAccounts { filter: filter.clone(), sort, cursor: None, limit: 50, now: time(0) };
            all.push(format!("{:?}", list.run(snapshot)?));
        }
    }
    Ok(all)
}

#[test]
fn companies_with_the_same_keys_never_meet() {
    on_both_engines(|world| {
        let (one, other) = (world.company("one"), world.company("other"));
        world.write(one, |tx| fill(tx, "one")).expect("filled");
        let alone = world.read(one, everything);
        assert!(
            alone.iter().all(|text| !text.contains("items: []")),
            "a filter that finds nothing proves nothing"
        );
        world.write(other, |tx| fill(tx, "other")).expect("the same keys are free in another company");
        assert_eq!(world.read(one, everything), alone, "unchanged by the other company");
        let others = world.read(other, everything);
        for (one, other) in alone.iter().zip(&others) {
            assert_eq!(&other.replace("other", "one"), one, "the same except for the name");
            assert!(!other.contains("of one") && !other.contains("\"one\""), "{other}");
        }

        world.write(one, take_everything_away).expect("gone");
        assert_eq!(world.read(other, everything), others, "unchanged by the first company's deletion");
        let nobody = world.read(CompanyId(99), |snapshot| account::get(snapshot, account_id(1)));
        assert_eq!(nobody, None);
    });
}

/// Changes and removes everything that `fill` wrote.
fn take_everything_away(tx: &mut Tx) -> Result<(), Error> {
    let id = account_id(1);
    let before = account::lock(tx, &[id])?.remove(0);
    let mut account = before.clone();
    "Changed".clone_into(&mut account.name);
    account.imported_id = None;
    let fields = json!({"plan": null, "other": 1});
    let fields = FieldChange::parse(fields.as_object().expect("an object")).expect("fields");
    account.custom_fields = account.custom_fields.merged(&fields).expect("merged");
    account::update(tx, &[Edit { before: &before, after: &account }])?;
    assert!(campaign::delete(tx, CampaignId::from_bytes([1; 16]))?);
    account::replace_words(tx, &account)?;
    activity::see(
        tx,
        &[Seen { account: id, first: time(-9), last: time(9), day: Day::from_number(30_000) }],
    )?;
    assert!(activity::take_marks(tx, &[EventMark::of("event")], time(0))?.is_empty());
    account::delete(tx, id, time(9))?;
    let code = PromoCode::parse("spring").expect("a code");
    assert!(channel::archive_code(tx, CHANNEL, &code, Some(time(1)))?);
    assert!(channel::rename(tx, CHANNEL, "Changed")?);
    channel::delete(tx, CHANNEL)?;
    let credential = CredentialId::from_bytes([1; 16]);
    credential::touch(tx, credential, time(5))?;
    assert!(credential::delete(tx, credential, Kind::ApiToken)?);
    credential::delete_kind(tx, Kind::ApiToken)?;
    let settings = company::lock(tx)?.expect("there").settings;
    company::update_settings(tx, &rapport_domain::company::Settings { cadence_days: 1, ..settings })
}
