//! Replays the plan with the real commands, on a clock that is moved from step to step.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use anyhow::{Context as _, anyhow};
use rapport_app::account::{ChangeStatus, CreateAccount, PatchAccount};
use rapport_app::campaign::CreateCampaign;
use rapport_app::channel::{AddCode, ArchiveCode, CreateChannel};
use rapport_app::company::{CreateCompany, OwnerLogin};
use rapport_app::contact::RecordContact;
use rapport_app::conversation::{LogMessage, StartConversation};
use rapport_app::credential::CreateToken;
use rapport_app::import::{Purpose, Runner, Stepped, Upload, UploadOptions};
use rapport_app::ingest::Ingest;
use rapport_app::invitation::{Invite, Offer};
use rapport_app::session::Proven;
use rapport_app::settings::PatchSettings;
use rapport_app::upsert::Upsert;
use rapport_app::webhook::CreateWebhook;
use rapport_app::{Access, App, Clock, Command, Error, Needs, digest, password};
use rapport_domain::account::{self, Patch, StatusChange};
use rapport_domain::activity::parse_batch;
use rapport_domain::campaign::Draft;
use rapport_domain::channel::PromoCode;
use rapport_domain::company::Slug;
use rapport_domain::contact::NewContact;
use rapport_domain::conversation::{Log, Start};
use rapport_domain::credential::{self, Kind, TokenRequest};
use rapport_domain::id::{AccountId, CompanyId, ConversationId, PersonId};
use rapport_domain::import::Request;
use rapport_domain::invalid::Fault;
use rapport_domain::member::{Email, Role};
use rapport_domain::time::Time;
use rapport_domain::webhook;
use rapport_store::member;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use super::deliveries::PastSender;
use super::lives::{self, Deed, Step};
use super::story;
use super::unhurried::Unhurried;
use crate::commands::explained;

/// Delivery history is kept for 90 days: earlier deliveries would be pruned immediately.
const WEBHOOK_DAYS: i64 = 85;
/// Digests are written for the last few weeks, so that there are some to read.
const DIGEST_DAYS: i64 = 36;
const IMPORT_DAYS: i64 = 20;
const CAMPAIGN_DAYS: i64 = 60;
/// A session that nobody uses for two weeks expires.
const LOG_IN_DAYS: i64 = 7;
/// Reminders and digests are due at this hour of each day, before people start work.
const ROUND_HOUR: i64 = 7;

/// A clock that stays where it is set, and never goes back.
#[derive(Clone)]
pub struct PastClock(Arc<AtomicI64>);

impl PastClock {
    pub fn at(time: Time) -> Self {
        Self(Arc::new(AtomicI64::new(time.as_micros())))
    }

    pub fn forward_to(&self, time: Time) {
        self.0.fetch_max(time.as_micros(), Ordering::SeqCst);
    }
}

impl Clock for PastClock {
    fn now(&self) -> Time {
        Time::from_micros(self.0.load(Ordering::SeqCst))
    }
}

/// What the visitor needs to look around.
pub struct Credentials {
    pub password: String,
    pub api_token: String,
    pub ingest_key: String,
    pub webhook_secrets: Vec<String>,
}

/// Replays the two years before `now`. Returns `None` if it was asked to stop.
pub async fn replay(
    app: &App,
    clock: &PastClock,
    now: Time,
    receiver: &str,
    stop: &CancellationToken,
) -> anyhow::Result<Option<Credentials>> {
    let mut past = Past::begin(app, clock, now, receiver).await?;
    let mut steps = lives::plan(now).into_iter().peekable();
    for days_ago in (0..=story::DAYS).rev() {
        if stop.is_cancelled() {
            return Ok(None);
        }
        past.round(days_ago).await.context("failed to do the made-up company's daily work")?;
        let end = past.day(days_ago - 1);
        while let Some(step) = steps.next_if(|step| step.at < end) {
            clock.forward_to(step.at);
            past.live(step).await.context("failed to replay the made-up company's past")?;
        }
    }
    Ok(Some(past.credentials))
}

struct Past {
    app: App,
    clock: PastClock,
    now: Time,
    /// The URL that the webhooks point to.
    receiver: String,
    company: CompanyId,
    owner: Access,
    ingest_key: Access,
    crm: Access,
    /// The owner and their colleagues.
    people: Vec<PersonId>,
    sellers: Vec<Access>,
    accounts: Vec<Option<AccountId>>,
    conversations: HashMap<usize, ConversationId>,
    digests: digest::Made,
    sender: PastSender,
    credentials: Credentials,
}

impl Past {
    async fn begin(app: &App, clock: &PastClock, now: Time, receiver: &str) -> anyhow::Result<Self> {
        clock.forward_to(lives::midnight(now).plus_days(-story::DAYS));
        let password = password::generate(app.services());
        let password_hash = password::hash(app.services(), &password).map_err(explained)?;
        let command = CreateCompany {
            slug: Slug::parse(story::PROJECT).map_err(told)?,
            name: story::COMPANY.to_owned(),
            owner: Email::parse(story::OWNER.0).map_err(told)?,
            owner_name: story::OWNER.1.to_owned(),
            owner_login: OwnerLogin::Chosen { password_hash: password_hash.clone() },
        };
        let created = app.write(&Access::NO_COMPANY, Unhurried(command)).await.map_err(explained)?;
        let owner = presented(Kind::ApiToken, &created.api_token)?;
        let company = owner.company();
        let mut past = Self {
            app: app.clone(),
            clock: clock.clone(),
            now,
            receiver: receiver.to_owned(),
            company,
            ingest_key: presented(Kind::IngestKey, &created.ingest_key)?,
            crm: owner.clone(),
            owner,
            people: vec![owner_of(app, company).await?],
            sellers: Vec::new(),
            accounts: vec![None; story::ACCOUNTS],
            conversations: HashMap::new(),
            digests: digest::Made::new(),
            sender: PastSender::new(app, clock, company, receiver),
            credentials: Credentials {
                password,
                api_token: created.api_token,
                ingest_key: created.ingest_key,
                webhook_secrets: Vec::new(),
            },
        };
        past.furnish(&password_hash).await.context("failed to create the made-up company")?;
        Ok(past)
    }

    /// Adds people, tokens, settings and channels.
    async fn furnish(&mut self, password_hash: &str) -> anyhow::Result<()> {
        for (address, name, role) in story::COLLEAGUES {
            let email = Email::parse(address).map_err(told)?;
            let role = Role::parse(role).map_err(told)?;
            let invited = self.as_owner(Invite { email, name: Some(name.to_owned()), role }).await?;
            let link = invited.link.context("an invitation to hand over")?;
            let token = link.rsplit('/').next().unwrap_or_default();
            let offer = Offer::look(&self.app, token).await.map_err(explained)?;
            let access = offer.access();
            let joined = self.write(&access, offer.join_with(None, password_hash.to_owned())).await?;
            self.people.push(joined.person);
        }
        self.crm = self.token("CRM sync").await?;
        self.log_in().await?;
        let settings = json!({"time_zone": "Europe/Berlin", "default_currency": "EUR"});
        self.as_owner(PatchSettings(object(settings))).await?;
        for (number, (name, codes)) in story::CHANNELS.into_iter().enumerate() {
            let channel = self.as_owner(CreateChannel { name: name.to_owned() }).await?.id;
            let archived = Some(story::ARCHIVED).filter(|(of, _)| *of == number).map(|(_, code)| code);
            for code in codes.iter().copied().chain(archived) {
                let code = PromoCode::parse(code).map_err(told)?;
                self.as_owner(AddCode { channel, code, archived: false }).await?;
            }
            if let Some(code) = archived {
                let code = PromoCode::parse(code).map_err(told)?;
                self.as_owner(ArchiveCode { channel, code, archived: true }).await?;
            }
        }
        Ok(())
    }

    /// Starts a new session for everybody, as people do now and then.
    async fn log_in(&mut self) -> anyhow::Result<()> {
        let mut sessions = Vec::new();
        for person in &self.people {
            let proven = Proven { person: *person, company: self.company };
            let text = self.write(&proven.access(), proven.begin(Some(story::BROWSER))).await?;
            sessions.push(presented(Kind::Session, &text)?);
        }
        self.owner = sessions.remove(0);
        self.sellers = sessions;
        Ok(())
    }

    async fn token(&self, name: &str) -> anyhow::Result<Access> {
        let made = self.as_owner(CreateToken(TokenRequest::of_company(name, Role::Member))).await?;
        presented(Kind::ApiToken, &made.text)
    }

    /// When a day began.
    fn day(&self, days_ago: i64) -> Time {
        lives::midnight(self.now).plus_days(-days_ago)
    }

    /// Does what happens automatically at the beginning of a day.
    async fn round(&mut self, days_ago: i64) -> anyhow::Result<()> {
        // Stays behind the real clock, which takes over in the end, with a margin for the time that sending takes.
        let latest = self.now.plus_seconds(-60);
        self.clock.forward_to(self.day(days_ago).plus_seconds(ROUND_HOUR * 3600).min(latest));
        if days_ago % LOG_IN_DAYS == 0 {
            self.log_in().await?;
        }
        match days_ago {
            WEBHOOK_DAYS => self.set_up_webhooks().await?,
            CAMPAIGN_DAYS => self.set_up_campaigns().await?,
            IMPORT_DAYS => self.import().await?,
            _ => {}
        }
        while rapport_app::cadence::step(&self.app, self.company).await.map_err(explained)?.more {}
        if days_ago <= DIGEST_DAYS {
            digest::make_due(&self.app, &mut self.digests).await.map_err(explained)?;
        }
        self.sender.send(days_ago).await
    }

    async fn set_up_webhooks(&mut self) -> anyhow::Result<()> {
        for (path, description, events) in story::WEBHOOKS {
            let url = format!("{}{path}", self.receiver);
            let body = object(json!({"url": url, "events": events, "description": description}));
            let create = webhook::Create::parse(&body)?;
            let command = CreateWebhook::checked(self.app.services(), create).await?;
            let made = self.as_owner(command).await?;
            self.sender.webhooks.push(made.webhook.id);
            self.credentials.webhook_secrets.push(made.secret);
        }
        Ok(())
    }

    async fn set_up_campaigns(&self) -> anyhow::Result<()> {
        for (name, goal, include_trials, filters) in story::CAMPAIGNS {
            let filters: Value = serde_json::from_str(filters)?;
            let body = json!({
                "name": name, "goal": goal, "include_trials": include_trials, "filters": filters,
            });
            self.write(&self.sellers[0], CreateCampaign(Draft::parse(&object(body))?)).await?;
        }
        Ok(())
    }

    async fn import(&self) -> anyhow::Result<()> {
        let filename = story::FAIR_LIST_NAME.to_owned();
        let options = UploadOptions { filename, ..UploadOptions::default() };
        let mut upload = Upload::begin(&self.app, &self.owner, options).await.map_err(explained)?;
        upload.take(story::FAIR_LIST.as_bytes()).await.map_err(explained)?;
        let import = upload.finish().await.map_err(explained)?;
        let mut runner = Runner::new(&self.app, self.company, import.id);
        let purpose = (Purpose::Run, Some(runner.id()));
        let begun =
            rapport_app::import::begin(&self.app, &self.owner, import.id, Request::default(), purpose);
        begun.await.map_err(explained)?;
        while !matches!(runner.step().await.map_err(explained)?, Stepped::Ended) {}
        Ok(())
    }

    async fn live(&mut self, step: Step) -> anyhow::Result<()> {
        let Step { at, account, deed } = step;
        let seller = &self.sellers[account % self.sellers.len()];
        let id = || self.accounts[account].ok_or_else(|| anyhow!("account {account} does not exist yet"));
        let conversation = || self.conversations.get(&account).copied();
        // The others raise no event.
        let is_news = !matches!(deed, Deed::Contact(_) | Deed::Begin(_) | Deed::Patch(_));
        match deed {
            Deed::Upsert(body) => {
                let upsert = Upsert(account::Upsert::parse(&object(body))?);
                let id = self.write(&self.crm, upsert).await?.account.id;
                self.accounts[account] = Some(id);
            }
            Deed::Create(body) => {
                let create = CreateAccount(account::Create::parse(&object(body))?);
                let id = self.write(seller, create).await?.reply.id;
                self.accounts[account] = Some(id);
            }
            Deed::Move(body) => {
                let change = StatusChange::parse(&object(body))?;
                self.write(seller, ChangeStatus { id: id()?, change }).await?;
            }
            Deed::Patch(body) => {
                let (patch, promo_code) = Patch::parse(&object(body))?;
                self.write(seller, PatchAccount { id: id()?, patch, promo_code }).await?;
            }
            Deed::Contact(body) => {
                let contact = NewContact::parse(&object(body), at)?;
                self.write(seller, RecordContact { account: id()?, contact }).await?;
            }
            Deed::Begin(body) => {
                let start = StartConversation { account: id()?, request: Start::parse(&object(body))? };
                let begun = self.write(seller, start).await?.id;
                self.conversations.insert(account, begun);
            }
            Deed::Say(body) => {
                let conversation =
                    conversation().ok_or_else(|| anyhow!("account {account} has no conversation"))?;
                let log = Log::parse(&object(body), at)?;
                self.write(seller, LogMessage { conversation, log }).await?;
            }
            Deed::Ingest(events) => {
                let body = json!({ "events": events });
                let bytes = body.to_string().len();
                let batch = parse_batch(&object(body), at).map_err(|error| anyhow!("{error:?}"))?;
                self.write(&self.ingest_key, Ingest { batch, received_at: at, bytes }).await?;
            }
        }
        if is_news { self.sender.send(self.now.whole_days_since(at)).await } else { Ok(()) }
    }

    async fn as_owner<C: Command>(&self, command: C) -> anyhow::Result<C::Reply> {
        self.write(&self.owner, command).await
    }

    async fn write<C: Command>(&self, access: &Access, command: C) -> anyhow::Result<C::Reply> {
        self.app.write(access, Unhurried(command)).await.map_err(|error| match error {
            Error::Invalid(invalid) => anyhow!("{invalid:?}"),
            other => explained(other),
        })
    }
}

async fn owner_of(app: &App, company: CompanyId) -> anyhow::Result<PersonId> {
    let found = app.read(&Access::System(company), Needs::Server, |snapshot, _| member::list(snapshot)).await;
    let members = found.map_err(explained)?.reply;
    members.first().map(|member| member.person).context("the company has no owner")
}

fn presented(kind: Kind, text: &str) -> anyhow::Result<Access> {
    let presented =
        credential::read(kind, text).map_err(|_| anyhow!("a new credential cannot be read back"))?;
    Ok(Access::Credential(presented))
}

fn told(fault: Fault) -> anyhow::Error {
    anyhow!(fault.detail)
}

/// Turns anything but an object into an empty one, which is then refused for its missing members.
fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}
