//! What each role may do: the one table of rights. docs/identity.md repeats it, and a test compares the two.
//!
//! Roles are ordered, so a right belongs to the lowest role that has it and to all higher ones. Who may export and who
//! may delete is up to the company.

use serde_json::Value;

use crate::invalid::{Fault, as_str};
use crate::member::Role;
use crate::schema::words;

/// Something that a caller needs to be allowed to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Right {
    Read,
    Own,
    Work,
    Correct,
    Export,
    Delete,
    Import,
    Channels,
    Webhooks,
    Keys,
    Members,
    Settings,
    Audit,
    AccountData,
    Owners,
    Factors,
    Sso,
    Company,
}

/// The lowest role that has a right.
enum Least {
    Fixed(Role),
    /// What the company grants.
    Granted(fn(Grants) -> Grant),
}

impl Right {
    pub const ALL: [Self; 18] = [
        Self::Read,
        Self::Own,
        Self::Work,
        Self::Correct,
        Self::Export,
        Self::Delete,
        Self::Import,
        Self::Channels,
        Self::Webhooks,
        Self::Keys,
        Self::Members,
        Self::Settings,
        Self::Audit,
        Self::AccountData,
        Self::Owners,
        Self::Factors,
        Self::Sso,
        Self::Company,
    ];

    /// The table: the word in the OpenAPI document, what the right allows, and the lowest role that has it.
    const fn row(self) -> (&'static str, &'static str, Least) {
        use Least::{Fixed, Granted};
        match self {
            Self::Read => ("read", "see accounts, clients, campaigns and dashboards", Fixed(Role::Viewer)),
            Self::Own => ("own", "change their own profile and saved views", Fixed(Role::Viewer)),
            Self::Work => ("work", "work with accounts and campaigns", Fixed(Role::Member)),
            // Who wrote an entry may correct it without this right.
            Self::Correct => ("correct", "edit and delete what others logged", Fixed(Role::Admin)),
            Self::Export => ("export", "export data", Granted(|grants| grants.export)),
            Self::Delete => ("delete", "delete accounts and erase payloads", Granted(|grants| grants.delete)),
            Self::Import => ("import", "import accounts", Fixed(Role::Admin)),
            Self::Channels => ("channels", "manage channels and promo codes", Fixed(Role::Admin)),
            Self::Webhooks => ("webhooks", "manage webhooks and deliveries", Fixed(Role::Admin)),
            Self::Keys => ("keys", "manage API tokens and keys", Fixed(Role::Admin)),
            Self::Members => ("members", "manage members and invitations", Fixed(Role::Admin)),
            Self::Settings => ("settings", "manage settings, the digest and mail", Fixed(Role::Admin)),
            Self::Audit => ("audit", "see and export the audit log", Fixed(Role::Admin)),
            // It has the account's deliveries and its entries of the audit log.
            Self::AccountData => ("account_data", "export everything about an account", Fixed(Role::Admin)),
            Self::Owners => ("owners", "manage owners", Fixed(Role::Owner)),
            Self::Factors => ("factors", "reset second factors of members", Fixed(Role::Owner)),
            Self::Sso => ("sso", "set up single sign-on", Fixed(Role::Owner)),
            Self::Company => ("company", "export all data and delete the company", Fixed(Role::Owner)),
        }
    }

    /// Its word, which is the scope of a token in the OpenAPI document.
    pub const fn as_str(self) -> &'static str {
        self.row().0
    }

    /// What it allows, as the end of a sentence: "they can …".
    pub const fn allows(self) -> &'static str {
        self.row().1
    }

    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|right| right.as_str() == word)
    }

    /// Whether the company decides who has it.
    pub const fn is_granted(self) -> bool {
        matches!(self.row().2, Least::Granted(_))
    }

    /// The lowest role that has it.
    pub fn least_role(self, grants: Grants) -> Role {
        match self.row().2 {
            Least::Fixed(role) => role,
            Least::Granted(chosen) => chosen(grants).least_role(),
        }
    }

    pub fn is_held_by(self, role: Role, grants: Grants) -> bool {
        role >= self.least_role(grants)
    }

    /// Who has it, for those who don't: "only admins and owners can …".
    pub fn needed(self, grants: Grants) -> String {
        let least = self.least_role(grants);
        let who = match least {
            Role::Viewer => "people who belong to the company",
            Role::Member => "members, admins and owners",
            Role::Admin => "admins and owners",
            Role::Owner => "owners",
        };
        let hint = if self.is_granted() && least > Role::Member {
            "; the company settings can allow members too"
        } else {
            ""
        };
        format!("only {who} can {}{hint}", self.allows())
    }
}

/// Who gets a right that a company grants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Grant {
    #[default]
    Admins,
    /// Members too.
    Members,
}

impl Grant {
    pub const ALL: [Self; 2] = [Self::Admins, Self::Members];

    /// The lowest role that gets it.
    pub const fn least_role(self) -> Role {
        match self {
            Self::Admins => Role::Admin,
            Self::Members => Role::Member,
        }
    }

    pub const fn as_str(self) -> &'static str {
        self.least_role().as_str()
    }

    pub const fn label(self) -> &'static str {
        match self {
            Self::Admins => "Admins and owners",
            Self::Members => "Members, admins and owners",
        }
    }

    pub fn parse(text: &str) -> Result<Self, Fault> {
        Self::ALL
            .into_iter()
            .find(|grant| grant.as_str() == text)
            .ok_or_else(|| Fault::not_one_of("unknown_role", Self::ALL.map(Self::as_str)))
    }

    pub fn from_json(value: &Value) -> Result<Self, Fault> {
        Self::parse(as_str(value)?)
    }
}

words!(Grant, "Grant", "The lowest role that gets a right: `admin`, or `member` for members too.");

impl serde::Serialize for Grant {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// What a company grants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Grants {
    pub export: Grant,
    pub delete: Grant,
}

impl Grants {
    /// Everything that a company can choose.
    pub const ALL: [Self; 4] = [
        Self { export: Grant::Admins, delete: Grant::Admins },
        Self { export: Grant::Members, delete: Grant::Admins },
        Self { export: Grant::Admins, delete: Grant::Members },
        Self { export: Grant::Members, delete: Grant::Members },
    ];
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDENTITY: &str = include_str!("../../../docs/identity.md");

    /// Who has a right, for each role in order: always, if granted, or never.
    fn columns(right: Right) -> [&'static str; 4] {
        Role::ALL.map(|role| {
            let held = Grants::ALL.map(|grants| right.is_held_by(role, grants));
            match held {
                [true, true, true, true] => "yes",
                [false, false, false, false] => "",
                _ => "if granted",
            }
        })
    }

    #[test]
    fn every_role_has_the_rights_that_were_decided() {
        let (yes, no, granted) = ("yes", "", "if granted");
        let table = [
            (Right::Read, [yes, yes, yes, yes]),
            (Right::Own, [yes, yes, yes, yes]),
            (Right::Work, [no, yes, yes, yes]),
            (Right::Correct, [no, no, yes, yes]),
            (Right::Export, [no, granted, yes, yes]),
            (Right::Delete, [no, granted, yes, yes]),
            (Right::Import, [no, no, yes, yes]),
            (Right::Channels, [no, no, yes, yes]),
            (Right::Webhooks, [no, no, yes, yes]),
            (Right::Keys, [no, no, yes, yes]),
            (Right::Members, [no, no, yes, yes]),
            (Right::Settings, [no, no, yes, yes]),
            (Right::Audit, [no, no, yes, yes]),
            (Right::AccountData, [no, no, yes, yes]),
            (Right::Owners, [no, no, no, yes]),
            (Right::Factors, [no, no, no, yes]),
            (Right::Sso, [no, no, no, yes]),
            (Right::Company, [no, no, no, yes]),
        ];
        assert_eq!(table.map(|(right, _)| right), Right::ALL);
        for (right, expected) in table {
            assert_eq!(columns(right), expected, "{right:?}");
            assert_eq!(Right::parse(right.as_str()), Some(right));
        }
        assert_eq!(Right::parse("admin"), None);
    }

    #[test]
    fn each_grant_is_about_its_own_right() {
        let grants = |export, delete| Grants { export, delete };
        let (admins, members) = (Grant::Admins, Grant::Members);
        let table = [
            (grants(admins, admins), [false, false]),
            (grants(members, admins), [true, false]),
            (grants(admins, members), [false, true]),
            (grants(members, members), [true, true]),
        ];
        for (grants, expected) in table {
            let found = [Right::Export, Right::Delete].map(|right| right.is_held_by(Role::Member, grants));
            assert_eq!(found, expected, "{grants:?}");
        }
        assert_eq!(Grants::default(), Grants::ALL[0], "a company grants nothing to members at first");
    }

    #[test]
    fn a_refusal_says_who_is_allowed() {
        let (little, all) = (Grants::ALL[0], Grants::ALL[3]);
        let table = [
            (Right::Work, little, "only members, admins and owners can work with accounts and campaigns"),
            (Right::Webhooks, little, "only admins and owners can manage webhooks and deliveries"),
            (
                Right::Export,
                little,
                "only admins and owners can export data; the company settings can allow members too",
            ),
            (Right::Export, all, "only members, admins and owners can export data"),
            (Right::Owners, all, "only owners can manage owners"),
        ];
        for (right, grants, expected) in table {
            assert_eq!(right.needed(grants), expected);
        }
    }

    #[test]
    fn a_grant_is_a_role_on_the_wire() {
        for grant in Grant::ALL {
            assert_eq!(Grant::parse(grant.as_str()), Ok(grant));
        }
        for bad in ["", "owner", "viewer", "members"] {
            assert_eq!(Grant::parse(bad).map_err(|fault| fault.code), Err("unknown_role"), "{bad}");
        }
    }

    #[test]
    fn the_documented_table_is_this_one() {
        let row = |right: Right| {
            let allows = right.allows();
            let (first, rest) = allows.split_at(1);
            let cells: Vec<String> = columns(right)
                .iter()
                .map(|cell| if cell.is_empty() { " |".to_owned() } else { format!(" {cell} |") })
                .collect();
            format!("| `{}` | {}{rest} |{}", right.as_str(), first.to_uppercase(), cells.concat())
        };
        let head = "| Right | What it allows | Viewer | Member | Admin | Owner |\n|---|---|---|---|---|---|";
        let rows: Vec<String> = Right::ALL.into_iter().map(row).collect();
        let expected = format!("{head}\n{}\n\n", rows.join("\n"));
        assert!(IDENTITY.contains(&expected), "the table in docs/identity.md must be:\n{expected}");
    }
}
