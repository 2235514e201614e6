use std::collections::{BTreeMap, HashSet};

use super::*;
use crate::company::CADENCE_DAYS;
use crate::id::IdSequence;

const NOW: Time = Time::from_micros(1_780_000_000_000_000);

fn made(settings: &Settings) -> Vec<(Sample, Account)> {
    let mut ids = IdSequence::default();
    let account = |sample: Sample| {
        let account = sample.account(ids.next(NOW, [0; 10]), None, settings, NOW);
        (sample, account)
    };
    all(settings, NOW).into_iter().map(account).collect()
}

fn is_overdue(account: &Account, settings: &Settings) -> bool {
    account.due(settings, NOW).overdue
}

#[test]
fn every_stage_has_accounts_and_some_clients_are_overdue_by_any_cadence() {
    for cadence_days in [*CADENCE_DAYS.start(), 14, 42, 365, *CADENCE_DAYS.end()] {
        let settings = Settings { cadence_days, ..Settings::default() };
        let made = made(&settings);
        assert_eq!(made.len(), COUNT);
        let mut stages = BTreeMap::<Status, usize>::new();
        made.iter().for_each(|(_, account)| *stages.entry(account.status).or_default() += 1);
        assert_eq!(stages.len(), Status::ALL.len());
        let overdue = made.iter().filter(|(_, account)| is_overdue(account, &settings)).count();
        assert!(overdue >= 5, "{overdue} with a cadence of {cadence_days} days");
    }
    let settings = Settings::default();
    let overdue = made(&settings).iter().filter(|(_, account)| is_overdue(account, &settings)).count();
    assert!(overdue < 10, "{overdue}: most clients are looked after");
}

#[test]
fn everything_is_in_the_past_and_in_order() {
    for zone in ["UTC", "Pacific/Auckland", "America/Los_Angeles"] {
        let time_zone = crate::company::parse_time_zone(zone).unwrap();
        let settings = Settings { time_zone, ..Settings::default() };
        for (sample, account) in made(&settings) {
            let name = &account.name;
            let moves: Vec<Time> = sample.moves.iter().map(|step| step.at).collect();
            let times = [vec![sample.created_at], moves, vec![NOW]].concat();
            assert!(times.windows(2).all(|pair| pair[0] < pair[1]), "{name}: {times:?}");
            let logged = sample.contact_times().chain(sample.usage.iter().map(|used| used.last_at));
            let logged: Vec<Time> = logged.chain(sample.note.map(|note| note.at)).collect();
            assert!(logged.iter().all(|at| (sample.created_at..NOW).contains(at)), "{name}: {logged:?}");
            assert!(sample.usage.windows(2).all(|pair| pair[0].day < pair[1].day), "{name}");
            let last = sample.contacts.last().map(|contact| contact.at);
            assert!(last.is_none() || account.last_contact_at == last, "{name}: no message is later");
            assert_eq!((account.updated_at, account.sample), (NOW, true), "{name}");
        }
    }
}

#[test]
fn names_and_addresses_are_different_and_clearly_made_up() {
    let samples = all(&Settings::default(), NOW);
    let names: HashSet<&str> = samples.iter().map(|sample| sample.line.name).collect();
    let addresses: Vec<Email> = samples.iter().map(Sample::address).collect();
    assert_eq!(names.len(), COUNT);
    for address in &addresses {
        assert_eq!(Email::parse(address.as_str()).as_ref(), Ok(address));
        assert!(address.as_str().ends_with(".example"), "{}", address.as_str());
    }
    for channel in &CHANNELS {
        assert_eq!(PromoCode::parse(channel.code), Ok(channel.promo_code()));
        assert!(channel.name.ends_with("(sample)"));
    }
    assert!(samples.iter().filter_map(Sample::channel).all(|place| place < CHANNELS.len()));
}
