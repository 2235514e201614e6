use super::*;
use rapport_app::dispatch::Manual;
use rapport_domain::event::Kind;
use rapport_domain::id::{DeliveryId, EventId, RedeliveryId};

fn item(company: i64, webhook: u8) -> Item {
    let dispatch = Dispatch {
        company: CompanyId(company),
        webhook: WebhookId::from_bytes([webhook; 16]),
        delivery: DeliveryId::from_bytes([0; 16]),
        event: EventId::from_bytes([0; 16]),
        kind: Kind::AccountCreated,
        number: 1,
        payload: "".into(),
        manual: None,
    };
    Item { dispatch, place: Place::uncounted() }
}

fn test(company: i64, webhook: u8) -> Item {
    let mut item = item(company, webhook);
    item.dispatch.kind = Kind::WebhookTest;
    item
}

fn bulk(company: i64, webhook: u8) -> Item {
    let mut item = item(company, webhook);
    let id = RedeliveryId::from_bytes([1; 16]);
    item.dispatch.manual = Some(Manual { id, bulk: Some(id) });
    item
}

fn key(company: i64, webhook: u8) -> Key {
    (CompanyId(company), WebhookId::from_bytes([webhook; 16]))
}

const ROOM: fn(CompanyId, Standing) -> bool = |_, _| true;

/// Lanes and a clock that moves only when told to.
struct Stage {
    lanes: Lanes,
    now: Instant,
}

impl Stage {
    fn new(total: usize) -> Self {
        Self { lanes: Lanes::new(Slots { total }), now: Instant::now() }
    }

    fn push(&mut self, items: impl IntoIterator<Item = Item>) {
        items.into_iter().for_each(|item| self.lanes.push(item));
    }

    fn sent(&mut self) -> Vec<(Ticket, Key)> {
        let (lanes, now) = (&mut self.lanes, self.now);
        std::iter::from_fn(|| lanes.next(now)).map(|(ticket, item)| (ticket, item.key())).collect()
    }

    fn keys(&mut self) -> Vec<Key> {
        self.sent().into_iter().map(|(_, key)| key).collect()
    }

    fn succeed(&mut self, ticket: Ticket) {
        self.lanes.answered(ticket, true, self.now);
    }

    fn fail(&mut self, ticket: Ticket) {
        self.lanes.answered(ticket, false, self.now);
        self.lanes.ended(ticket);
    }

    fn pass(&mut self, time: Duration) {
        self.now += time;
        self.lanes.set_slow_aside(self.now);
    }

    /// Makes a webhook proven.
    fn prove(&mut self, company: i64, webhook: u8) {
        self.push([item(company, webhook)]);
        let sent = self.sent();
        assert_eq!(sent.len(), 1);
        self.succeed(sent[0].0);
    }
}

#[test]
fn a_new_webhook_has_one_request_under_way() {
    let mut stage = Stage::new(100);
    stage.push((0..10).map(|_| item(1, 1)));
    let first = stage.sent();
    assert_eq!(first.len(), 1);
    stage.succeed(first[0].0);
    let two = stage.sent();
    assert_eq!(two.len(), 2, "a success doubles the window");
    stage.lanes.answered(two[0].0, false, stage.now);
    assert!(stage.sent().is_empty(), "nothing is sent until the failure is recorded");
    stage.lanes.ended(two[0].0);
    assert!(stage.sent().is_empty(), "a failure shrinks the window to one, and one is in progress");
    stage.fail(two[1].0);
    assert_eq!(stage.sent().len(), 1);
}

#[test]
fn companies_take_turns_and_then_their_webhooks() {
    let mut stage = Stage::new(100);
    stage.push([item(1, 1), item(1, 2), item(1, 3), item(2, 9)]);
    assert_eq!(stage.keys(), [key(1, 1), key(2, 9), key(1, 2), key(1, 3)]);
}

#[test]
fn new_failing_and_proven_receivers_never_wait_for_each_other() {
    let mut stage = Stage::new(16);
    stage.prove(1, 100);
    // Failing ones fill their pool's share: four of eight, because they belong to one company.
    stage.push((1..=20).map(|webhook| item(1, webhook)));
    loop {
        let sent = stage.sent();
        if sent.is_empty() {
            break;
        }
        sent.into_iter().for_each(|(ticket, _)| stage.fail(ticket));
    }
    stage.push((1..=20).map(|webhook| item(1, webhook)));
    assert_eq!(stage.sent().len(), 4);
    stage.push([item(1, 50)]);
    assert_eq!(stage.keys(), [key(1, 50)], "a new one of the same company is sent at once");
    stage.push([item(1, 100)]);
    assert_eq!(stage.keys(), [key(1, 100)], "so does the proven one");
    stage.push([item(2, 1)]);
    assert_eq!(stage.keys(), [key(2, 1)], "and another company's new one");
}

#[test]
fn new_receivers_that_hang_make_room_for_others() {
    let mut stage = Stage::new(16);
    stage.push((1..=8).map(|webhook| item(1, webhook)));
    assert_eq!(stage.sent().len(), 2, "half of the four slots for new ones");
    assert!(stage.sent().is_empty());
    stage.pass(SLOW_AFTER_UNKNOWN);
    assert_eq!(stage.sent().len(), 2);
}

#[test]
fn a_test_goes_beside_whatever_hangs() {
    let mut stage = Stage::new(32);
    stage.push((1..=100).map(|webhook| item(1, webhook)));
    while !stage.sent().is_empty() {
        stage.pass(SLOW_AFTER_UNKNOWN);
    }
    stage.push([test(1, 200)]);
    assert_eq!(stage.keys(), [key(1, 200)]);
    stage.push([test(1, 1)]);
    assert!(stage.keys().is_empty(), "a company gets one of the two urgent slots");
    stage.pass(SLOW_AFTER_UNKNOWN);
    stage.push([test(2, 1)]);
    assert_eq!(stage.keys(), [key(2, 1)], "another company's test gets the other");
}

#[test]
fn a_proven_receiver_that_hangs_gets_nothing_more_until_it_answers() {
    let mut stage = Stage::new(100);
    stage.prove(1, 1);
    stage.prove(1, 1);
    stage.push((0..20).map(|_| item(1, 1)));
    let sent = stage.sent();
    assert_eq!(sent.len(), 4);
    stage.pass(SLOW_AFTER);
    stage.succeed(sent[0].0);
    assert!(stage.sent().is_empty(), "three others still hang");
    sent[1..].iter().for_each(|(ticket, _)| stage.succeed(*ticket));
    assert!(!stage.sent().is_empty(), "it answers again");
}

#[test]
fn a_receiver_that_always_takes_its_time_is_not_slow() {
    let mut stage = Stage::new(100);
    let usual = Duration::from_secs(2);
    stage.push([item(1, 1)]);
    let first = stage.sent();
    stage.pass(usual);
    stage.succeed(first[0].0);
    stage.push((0..20).map(|_| item(1, 1)));
    let sent = stage.sent();
    assert_eq!(sent.len(), 2);
    stage.pass(usual);
    stage.succeed(sent[0].0);
    assert_eq!(stage.sent().len(), 3, "its window has grown to four");
}

#[test]
fn one_failure_costs_concurrency_and_a_few_the_place_among_the_proven() {
    let mut stage = Stage::new(100);
    stage.prove(1, 1);
    for failures in 1..=FAILING_AFTER {
        stage.push([item(1, 1)]);
        let sent = stage.sent();
        stage.fail(sent[0].0);
        let expected = if failures < FAILING_AFTER { Standing::Proven } else { Standing::Failing };
        assert_eq!(stage.lanes.gate(key(1, 1)).1, expected, "after {failures}");
    }
    stage.prove(1, 1);
    assert_eq!(stage.lanes.gate(key(1, 1)).1, Standing::Proven);
}

#[test]
fn what_a_receiver_has_shown_outlives_idleness() {
    let mut stage = Stage::new(100);
    stage.prove(1, 1);
    stage.push([item(1, 2), item(1, 3)]);
    let sent = stage.sent();
    stage.fail(sent[0].0);
    stage.lanes.ended(sent[1].0);
    stage.lanes.forget_idle();
    let standings = [1, 2, 3].map(|webhook| stage.lanes.gate(key(1, webhook)).1);
    assert_eq!(standings, [Standing::Proven, Standing::Failing, Standing::New]);
    assert_eq!(stage.lanes.webhooks.len(), 2, "a webhook about which nothing is known is forgotten");
    stage.lanes.remember(key(1, 9), Standing::Failing);
    assert_eq!(stage.lanes.gate(key(1, 9)).1, Standing::Failing);
    stage.lanes.forget(key(1, 1));
    stage.lanes.forget_idle();
    assert!(!stage.lanes.webhooks.contains_key(&key(1, 1)), "a deleted webhook is forgotten");
}

#[test]
fn a_backlog_is_claimed_when_there_is_room() {
    let mut lanes = Lanes::new(Slots { total: 8 });
    let at = Time::from_micros;
    lanes.due(key(1, 1), at(11));
    lanes.due(key(1, 1), at(13));
    assert!(lanes.claims(at(10), ROOM).is_empty());
    assert!(lanes.claims(at(11), |_, _| false).is_empty(), "there is no room in memory");
    assert_eq!(
        lanes.claims(at(11), ROOM),
        [(key(1, 1), CLAIM_PER_WINDOW)],
        "it is claimed once there is room"
    );
    assert!(lanes.claims(at(12), ROOM).is_empty(), "one claim at a time");
    lanes.claimed(key(1, 1), false, Some(at(50)));
    assert!(lanes.claims(at(49), ROOM).is_empty());
    assert_eq!(lanes.claims(at(50), ROOM).len(), 1);
    lanes.has_backlog(key(1, 1));
    lanes.claimed(key(1, 1), false, None);
    assert_eq!(lanes.claims(at(10), ROOM).len(), 1, "what arrived during a claim is claimed next");
}

#[test]
fn more_is_claimed_when_what_was_claimed_is_on_its_way() {
    let mut stage = Stage::new(8);
    stage.lanes.has_backlog(key(1, 1));
    assert_eq!(stage.lanes.claims(Time::from_micros(1), ROOM).len(), 1);
    stage.push([item(1, 1)]);
    stage.lanes.claimed(key(1, 1), true, None);
    assert!(stage.lanes.claims(Time::from_micros(1), ROOM).is_empty(), "one waits");
    assert_eq!(stage.sent().len(), 1);
    assert_eq!(stage.lanes.claims(Time::from_micros(1), ROOM).len(), 1);
}

#[test]
fn what_was_asked_for_stays_when_a_webhook_is_switched_off() {
    let mut stage = Stage::new(8);
    stage.push([item(1, 1), bulk(1, 1), item(1, 1), test(1, 1)]);
    assert_eq!(stage.lanes.bulk_waiting(CompanyId(1)), 1);
    assert_eq!(stage.lanes.drain(key(1, 1)).len(), 3);
    assert_eq!(stage.keys(), [key(1, 1)]);
    assert_eq!(stage.lanes.bulk_waiting(CompanyId(1)), 0);
}

#[test]
fn what_could_not_be_sent_is_next_again() {
    let mut stage = Stage::new(8);
    let (mut first, second) = (item(1, 1), item(1, 1));
    first.dispatch.number = 7;
    stage.push([first, second]);
    let (ticket, item) = stage.lanes.next(stage.now).unwrap();
    stage.lanes.put_back(ticket, item);
    let (_, again) = stage.lanes.next(stage.now).unwrap();
    assert_eq!(again.dispatch.number, 7);
}
