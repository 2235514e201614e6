//! Companies: created on the command line or at first run, with their owner and first credentials.

use rapport_domain::audit::Action;
use rapport_domain::company::{Settings, Slug};
use rapport_domain::credential::{Kind, TokenRequest};
use rapport_domain::member::{Email, Role};
use rapport_store::member::NewPerson;
use rapport_store::{Tx, company, member};
use serde_json::json;

use crate::access::Needs;
use crate::audit;
use crate::command::{Command, Context};
use crate::credential;
use crate::error::Error;
use crate::invitation::{self, Invite, Invited};

pub struct CreateCompany {
    pub slug: Slug,
    pub name: String,
    pub owner: Email,
    pub owner_name: String,
    pub owner_login: OwnerLogin,
}

/// How the owner gets in.
pub enum OwnerLogin {
    /// The owner creates the company, and chose a password. It was hashed beforehand, because that takes longer than a
    /// transaction should.
    Chosen { password_hash: String },
    /// Somebody else creates the company, and the owner accepts it.
    Invited,
}

/// The secrets and ids shown once, when a company is created.
pub struct CreatedCompany {
    pub slug: Slug,
    pub api_token: String,
    pub ingest_key: String,
    /// The invitation of an owner who has to accept the company first.
    pub invited: Option<Invited>,
}

impl Command for CreateCompany {
    type Reply = CreatedCompany;
    const NEEDS: Needs = Needs::Server;

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<CreatedCompany, Error> {
        let created = company::create(tx, &self.slug, &self.name, &Settings::default(), cx.now)?;
        let Some(id) = created else {
            let detail = format!("the company {} already exists", self.slug.as_str());
            return Err(Error::conflict("project_taken", detail));
        };
        let token = TokenRequest::of_company("First token", Role::Owner);
        let token = credential::make(tx, cx, id, Kind::ApiToken, &token)?;
        let ingest = TokenRequest::of_company(Kind::IngestKey.as_str(), Role::Member);
        let ingest = credential::make(tx, cx, id, Kind::IngestKey, &ingest)?;
        let detail = json!({ "project": self.slug.as_str(), "owner": self.owner.as_str() });
        audit::record(tx, cx, Action::CompanyCreated, None, &detail)?;
        let invited = self.admit_owner(tx, cx)?;
        Ok(CreatedCompany {
            slug: self.slug.clone(),
            api_token: token.text,
            ingest_key: ingest.text,
            invited,
        })
    }
}

impl CreateCompany {
    fn admit_owner(&self, tx: &mut Tx, cx: &Context) -> Result<Option<Invited>, Error> {
        let (email, name, role) = (&self.owner, &self.owner_name, Role::Owner);
        match &self.owner_login {
            OwnerLogin::Chosen { password_hash } => {
                let id = cx.id();
                let person = NewPerson { id, email, name, password_hash, is_proven: false };
                member::insert_person(tx, &person, cx.now)?;
                member::insert(tx, id, role, cx.now)?;
                Ok(None)
            }
            OwnerLogin::Invited => {
                let created = company::get(tx)?.ok_or(Error::NotFound("company"))?;
                let invite = Invite { email: email.clone(), name: Some(name.clone()), role };
                invitation::make(tx, &cx.within(created), &invite).map(Some)
            }
        }
    }
}
