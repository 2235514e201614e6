//! Writes the rows of the sample data, with times in the past.

use std::collections::BTreeMap;

use rapport_domain::account::Account;
use rapport_domain::activity::Kind;
use rapport_domain::channel::{Attribution, Channel, ChannelCode, ChannelRef};
use rapport_domain::contact::Contact;
use rapport_domain::conversation::{Conversation, EMAIL, Log, Message, Start};
use rapport_domain::history::HistoryEntry;
use rapport_domain::id::{AccountId, ChannelId, IdSequence, RawId};
use rapport_domain::note::Note;
use rapport_domain::pipeline::{Source, Status};
use rapport_domain::sample::{self, CHANNELS, Sample};
use rapport_domain::time::{Day, Time};
use rapport_store::activity::{self, Count, NewActivity, Seen};
use rapport_store::{
    Tx, account, account_address, activity_day, channel, contact, conversation, history, message, note,
    sample as marks,
};

use crate::command::Context;
use crate::error::Error;

/// The latest days of activity that have events of their own.
const DAYS_WITH_EVENTS: usize = 5;

/// Creates the sample channels. One whose name or code the company uses is left out, and so is its attribution.
pub fn channels(tx: &mut Tx, cx: &Context) -> Result<Vec<Option<Attribution>>, Error> {
    CHANNELS.iter().map(|sample| add_channel(tx, cx, sample)).collect()
}

fn add_channel(
    tx: &mut Tx,
    cx: &Context,
    sample: &sample::SampleChannel,
) -> Result<Option<Attribution>, Error> {
    let (id, name, code): (ChannelId, _, _) = (cx.id(), sample.name.to_owned(), sample.promo_code());
    if !channel::insert(tx, &Channel { id, name: name.clone(), created_at: cx.now })? {
        return Ok(None);
    }
    let added = ChannelCode { channel: id, code: code.clone(), archived_at: None, created_at: cx.now };
    if !channel::insert_code(tx, &added)? {
        channel::delete(tx, id)?;
        return Ok(None);
    }
    marks::mark_channel(tx, id)?;
    Ok(Some(Attribution { code, channel: ChannelRef { id, name } }))
}

/// Creates the sample accounts; returns how many.
pub fn accounts(tx: &mut Tx, cx: &Context, channels: &[Option<Attribution>]) -> Result<usize, Error> {
    let samples = sample::all(cx.settings(), cx.now);
    let made: Vec<(Sample, Account)> = samples
        .into_iter()
        .map(|sample| {
            let attribution = sample.channel().and_then(|place| channels[place].as_ref());
            let id = past_id(cx, sample.created_at);
            let account = sample.account(id, attribution, cx.settings(), cx.now);
            (sample, account)
        })
        .collect();
    account::insert(tx, &made.iter().map(|(_, account)| account).collect::<Vec<_>>())?;
    let entries: Vec<HistoryEntry> =
        made.iter().flat_map(|(sample, account)| history_of(cx, sample, account.id)).collect();
    history::insert(tx, &entries)?;
    for (sample, account) in &made {
        account_address::insert(tx, &sample.address(), account.id, sample.created_at)?;
        write_logged(tx, cx, sample, account.id)?;
    }
    write_usage(tx, cx, &made)?;
    Ok(made.len())
}

/// An id that sorts among those of its time. Lists by time read ids.
fn past_id<T: From<RawId>>(cx: &Context, at: Time) -> T {
    IdSequence::default().next(at, cx.random())
}

fn history_of(cx: &Context, sample: &Sample, account: AccountId) -> Vec<HistoryEntry> {
    let entry = |from, to, at, note: Option<&str>| HistoryEntry {
        id: past_id(cx, at),
        account,
        from,
        to,
        source: Source::Operator,
        actor: cx.actor().clone(),
        note: note.map(str::to_owned),
        at,
        happened_at: None,
    };
    let created = entry(None, Status::Prospect, sample.created_at, None);
    let moves = sample.moves.iter().map(|step| entry(Some(step.from), step.to, step.at, step.note));
    std::iter::once(created).chain(moves).collect()
}

/// Writes what people logged: contacts, messages and a note.
fn write_logged(tx: &mut Tx, cx: &Context, sample: &Sample, account: AccountId) -> Result<(), Error> {
    for made in &sample.contacts {
        let contact = Contact {
            id: past_id(cx, made.at),
            account,
            kind: made.kind,
            note: Some(made.note.to_owned()),
            actor: cx.actor().clone(),
            occurred_at: made.at,
            created_at: made.at,
        };
        contact::insert(tx, &contact)?;
    }
    if let Some(first) = sample.messages.first() {
        let start = Start { subject: Some(sample.subject().to_owned()), channel: EMAIL.to_owned() };
        let mut thread = Conversation::new(past_id(cx, first.at), account, start, first.at);
        let message = |sent: &sample::SampleMessage| {
            let (direction, body) = (sent.direction, sent.body.to_owned());
            let log = Log { direction, body, channel: None, subject: None, occurred_at: Some(sent.at) };
            Message::new(past_id(cx, sent.at), &thread, &log, cx.actor(), sent.at)
        };
        let messages: Vec<Message> = sample.messages.iter().map(message).collect();
        messages.iter().for_each(|message| thread.extend(message.occurred_at));
        conversation::insert(tx, &thread)?;
        for message in &messages {
            message::insert(tx, message)?;
        }
    }
    if let Some(written) = sample.note {
        let (id, text) = (past_id(cx, written.at), written.text.to_owned());
        let (pinned, author) = (written.pinned, cx.actor().clone());
        note::insert(tx, &Note { id, account, text, pinned, author, created_at: written.at })?;
    }
    Ok(())
}

fn write_usage(tx: &mut Tx, cx: &Context, made: &[(Sample, Account)]) -> Result<(), Error> {
    let (mut counts, mut seen, mut events) = (Vec::new(), Vec::new(), Vec::new());
    let mut days = BTreeMap::<Day, i64>::new();
    for (sample, account) in made {
        let (Some(first), Some(last)) = (sample.usage.first(), sample.usage.last()) else { continue };
        seen.push(Seen { account: account.id, first: first.last_at, last: last.last_at, day: last.day });
        for used in &sample.usage {
            let (day, feature, count) = (used.day, used.feature, used.count);
            counts.push(Count { account: account.id, day, feature, count, last_used_at: used.last_at });
            *days.entry(day).or_default() += count;
        }
        events.extend(sample.usage.iter().rev().take(DAYS_WITH_EVENTS).map(|used| NewActivity {
            account: account.id,
            occurred_at: used.last_at,
            received_at: cx.now,
            kind: Kind::FeatureUsed.as_str(),
            feature: Some(used.feature),
            metadata: None,
        }));
    }
    counts.sort_unstable_by_key(|count| (count.account, count.day, count.feature));
    seen.sort_unstable_by_key(|seen| seen.account);
    activity::insert(tx, &events)?;
    activity::count(tx, &counts)?;
    activity::see(tx, &seen)?;
    activity_day::add_samples(tx, &days)?;
    Ok(())
}
