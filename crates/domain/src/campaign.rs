//! Campaigns: a goal and filters that together decide which accounts are included.
//!
//! `exclusion` is the rule for one account. The lists and counts in storage are derived from it, so a
//! campaign's members, count and export always agree.

use serde_json::{Map, Value};

use crate::audience::Filter;
use crate::caps;
use crate::id::CampaignId;
use crate::invalid::{Fault, Invalid, Members, as_bool, as_object, as_str, as_text};
use crate::pipeline::Status;
use crate::schema::words;
use crate::text::Length;
use crate::time::Time;

pub const MAX_NAME: Length = Length::up_to(120);
/// Counting stops here; a larger count is shown as "more than".
pub const MAX_COUNT: i64 = caps::IN_A_LIST;

/// The purpose of a campaign.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Goal {
    Acquisition,
    Reactivation,
    Expansion,
    Announcement,
}

impl Goal {
    pub const ALL: [Self; 4] = [Self::Acquisition, Self::Reactivation, Self::Expansion, Self::Announcement];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Acquisition => "acquisition",
            Self::Reactivation => "reactivation",
            Self::Expansion => "expansion",
            Self::Announcement => "announcement",
        }
    }

    pub fn parse(text: &str) -> Result<Self, Fault> {
        let found = Self::ALL.into_iter().find(|goal| goal.as_str() == text);
        found.ok_or_else(|| Fault::not_one_of("unknown_goal", Self::ALL.map(Self::as_str)))
    }

    fn from_json(value: &Value) -> Result<Self, Fault> {
        Self::parse(as_str(value)?)
    }
}

words!(
    Goal,
    "CampaignGoal",
    "The purpose of a campaign. `acquisition` and `reactivation` exclude customers, and also accounts In trial unless \
     `include_trials` is true. `expansion` includes only customers, `announcement` everyone."
);

/// Why an account that matches the filters is excluded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Rule {
    /// Accounts in Do not contact are never in a campaign.
    DoNotContact,
    /// Reactivated from Do not contact by activity: excluded until an operator moves it.
    CampaignHold,
    /// The goal targets accounts that aren't customers.
    Customers,
    /// Accounts In trial are treated as customers, unless the campaign includes them.
    Trials,
    /// The goal targets customers only.
    NotCustomers,
}

impl Rule {
    pub const ALL: [Self; 5] =
        [Self::DoNotContact, Self::CampaignHold, Self::Customers, Self::Trials, Self::NotCustomers];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::DoNotContact => "do_not_contact",
            Self::CampaignHold => "campaign_hold",
            Self::Customers => "customers",
            Self::Trials => "trials",
            Self::NotCustomers => "not_customers",
        }
    }
}

words!(Rule, "CampaignRule", "Why an account that matches the filters is excluded.");

/// The first rule that excludes an account; `None` if it is included.
pub fn exclusion(goal: Goal, include_trials: bool, status: Status, campaign_hold: bool) -> Option<Rule> {
    if status == Status::DoNotContact {
        return Some(Rule::DoNotContact);
    }
    if campaign_hold {
        return Some(Rule::CampaignHold);
    }
    match goal {
        Goal::Acquisition | Goal::Reactivation => match status {
            Status::Customer => Some(Rule::Customers),
            Status::InTrial if !include_trials => Some(Rule::Trials),
            _ => None,
        },
        Goal::Expansion => (status != Status::Customer).then_some(Rule::NotCustomers),
        Goal::Announcement => None,
    }
}

/// Everything that decides who is included.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Aim {
    pub goal: Goal,
    /// Includes accounts In trial even though the goal excludes customers.
    pub include_trials: bool,
    pub filters: Filter,
}

impl Aim {
    pub fn exclusion(&self, status: Status, campaign_hold: bool) -> Option<Rule> {
        exclusion(self.goal, self.include_trials, status, campaign_hold)
    }

    /// The filter for the included accounts; `None` if there can't be any.
    pub fn members(&self) -> Option<Filter> {
        // Accounts on hold are always excluded, so there is at most one such filter.
        self.filters_for(None).pop()
    }

    /// The rules that can exclude accounts from a campaign with this goal, whatever its filters.
    pub fn rules(&self) -> Vec<Rule> {
        let excludes = |rule: &Rule| {
            let standings = Status::ALL.into_iter().flat_map(|status| [(status, false), (status, true)]);
            standings.into_iter().any(|(status, hold)| self.exclusion(status, hold) == Some(*rule))
        };
        Rule::ALL.into_iter().filter(excludes).collect()
    }

    /// The accounts that match the filters but are excluded by the rule, in disjoint parts.
    pub fn excluded_by(&self, rule: Rule) -> Vec<Filter> {
        self.filters_for(Some(rule))
    }

    fn filters_for(&self, outcome: Option<Rule>) -> Vec<Filter> {
        let statuses = |hold: bool| -> Vec<Status> {
            Status::ALL.into_iter().filter(|status| self.exclusion(*status, hold) == outcome).collect()
        };
        let (free, held) = (statuses(false), statuses(true));
        if free == held {
            return self.filters.narrowed(&free, None).into_iter().collect();
        }
        let parts = [self.filters.narrowed(&free, Some(false)), self.filters.narrowed(&held, Some(true))];
        parts.into_iter().flatten().collect()
    }

    fn read(members: &mut Members) -> Option<Self> {
        let goal = members.required("goal", Goal::from_json);
        let include_trials = members.optional("include_trials", as_bool).unwrap_or(false);
        let filters = read_filters(members).unwrap_or_default();
        goal.map(|goal| Self { goal, include_trials, filters })
    }

    /// Parses a campaign for a preview: a goal and filters without a name.
    pub fn parse(body: &Map<String, Value>) -> Result<Self, Invalid> {
        let mut members = Members::of(body);
        let aim = Self::read(&mut members);
        members.refuse_unknown();
        members.build(|| aim)
    }
}

fn read_filters(members: &mut Members) -> Option<Filter> {
    let filters = members.optional("filters", as_object)?;
    Filter::parse(filters, "/filters").map_err(|invalid| members.absorb(invalid)).ok()
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Campaign {
    pub id: CampaignId,
    pub name: String,
    pub aim: Aim,
    pub created_at: Time,
    pub updated_at: Time,
}

/// A new campaign.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Draft {
    pub name: String,
    pub aim: Aim,
}

impl Draft {
    pub fn parse(body: &Map<String, Value>) -> Result<Self, Invalid> {
        let mut members = Members::of(body);
        let name = members.required("name", |value| as_text(value, MAX_NAME));
        let aim = Aim::read(&mut members);
        members.refuse_unknown();
        members.build(|| Some(Self { name: name?, aim: aim? }))
    }
}

/// A change to a campaign; filters are replaced as a whole.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Patch {
    pub name: Option<String>,
    pub goal: Option<Goal>,
    pub include_trials: Option<bool>,
    pub filters: Option<Filter>,
}

impl Patch {
    pub fn parse(body: &Map<String, Value>) -> Result<Self, Invalid> {
        let mut members = Members::of(body);
        let patch = Self {
            name: members.replaceable("name", |value| as_text(value, MAX_NAME)),
            goal: members.replaceable("goal", Goal::from_json),
            include_trials: members.replaceable("include_trials", as_bool),
            filters: read_filters(&mut members)
                .or_else(|| members.is_cleared("filters").then(Filter::default)),
        };
        members.refuse_unknown();
        members.finish().map(|()| patch)
    }
}

impl Campaign {
    /// Returns the campaign after a change, and the names of the members that changed.
    pub fn patched(&self, patch: &Patch, now: Time) -> (Self, Vec<&'static str>) {
        let mut new = self.clone();
        let mut changed = Vec::new();
        set(&mut new.name, patch.name.as_ref(), "name", &mut changed);
        set(&mut new.aim.goal, patch.goal.as_ref(), "goal", &mut changed);
        set(&mut new.aim.include_trials, patch.include_trials.as_ref(), "include_trials", &mut changed);
        set(&mut new.aim.filters, patch.filters.as_ref(), "filters", &mut changed);
        if !changed.is_empty() {
            new.updated_at = now;
        }
        (new, changed)
    }
}

fn set<T: Clone + PartialEq>(
    place: &mut T,
    value: Option<&T>,
    member: &'static str,
    changed: &mut Vec<&'static str>,
) {
    if let Some(value) = value
        && value != place
    {
        place.clone_from(value);
        changed.push(member);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Every goal, with and without trials, and every status: the rule that excludes an account.
    #[test]
    fn the_rule_is_this_table() {
        use Rule::{Customers, DoNotContact, NotCustomers, Trials};
        let no = |rule| Some(rule);
        // prospect, contacted, in_negotiation, in_trial, customer, lost, do_not_contact
        let without_customers = [None, None, None, no(Trials), no(Customers), None, no(DoNotContact)];
        let and_trials = [None, None, None, None, no(Customers), None, no(DoNotContact)];
        let others = no(NotCustomers);
        let customers_only = [others, others, others, others, None, others, no(DoNotContact)];
        let everyone = [None, None, None, None, None, None, no(DoNotContact)];
        let table = [
            (Goal::Acquisition, false, without_customers),
            (Goal::Acquisition, true, and_trials),
            (Goal::Reactivation, false, without_customers),
            (Goal::Reactivation, true, and_trials),
            (Goal::Expansion, false, customers_only),
            (Goal::Expansion, true, customers_only),
            (Goal::Announcement, false, everyone),
            (Goal::Announcement, true, everyone),
        ];
        for (goal, include_trials, rules) in table {
            for (status, rule) in Status::ALL.into_iter().zip(rules) {
                let shown = format!("{} {include_trials} {status}", goal.as_str());
                assert_eq!(exclusion(goal, include_trials, status, false), rule, "{shown}");
                // Accounts on hold are always excluded; those in Do not contact count under that rule
                // instead.
                let held = if status == Status::DoNotContact { DoNotContact } else { Rule::CampaignHold };
                assert_eq!(exclusion(goal, include_trials, status, true), Some(held), "{shown} on hold");
            }
        }
    }

    fn aims() -> impl Iterator<Item = Aim> {
        let filters = [
            Filter::default(),
            Filter { statuses: vec![Status::Customer, Status::Lost], ..Filter::default() },
            Filter { campaign_hold: Some(true), ..Filter::default() },
        ];
        Goal::ALL.into_iter().flat_map(move |goal| {
            let filters = filters.clone();
            [false, true].into_iter().flat_map(move |include_trials| {
                filters.clone().map(|filters| Aim { goal, include_trials, filters })
            })
        })
    }

    fn admits(filter: &Filter, status: Status, hold: bool) -> bool {
        (filter.statuses.is_empty() || filter.statuses.contains(&status))
            && filter.campaign_hold.is_none_or(|wanted| wanted == hold)
    }

    #[test]
    fn lists_and_counts_follow_the_rule() {
        for aim in aims() {
            assert!(aim.filters_for(None).len() <= 1, "one filter describes the members");
            for (status, hold) in Status::ALL.into_iter().flat_map(|status| [(status, false), (status, true)])
            {
                let matched = admits(&aim.filters, status, hold);
                let rule = aim.exclusion(status, hold);
                let listed = aim.members().is_some_and(|filter| admits(&filter, status, hold));
                assert_eq!(listed, matched && rule.is_none(), "{aim:?} {status} {hold}");
                for counted in aim.rules() {
                    let times =
                        aim.excluded_by(counted).iter().filter(|part| admits(part, status, hold)).count();
                    let expected = usize::from(matched && rule == Some(counted));
                    assert_eq!(times, expected, "{aim:?} {status} {hold} by {counted:?}");
                }
                assert!(rule.is_none_or(|rule| aim.rules().contains(&rule)));
            }
        }
    }

    #[test]
    fn requests_are_read_whole() {
        let body = json!({"name": "Spring", "goal": "expansion", "include_trials": true, "filters": {"status": "customer"}});
        let draft = Draft::parse(body.as_object().unwrap()).unwrap();
        assert_eq!(
            (draft.name.as_str(), draft.aim.goal, draft.aim.include_trials),
            ("Spring", Goal::Expansion, true)
        );
        assert_eq!(draft.aim.filters.statuses, [Status::Customer]);
        let faults = |value: Value| -> Vec<(String, &str)> {
            let invalid = Draft::parse(value.as_object().unwrap()).unwrap_err();
            invalid.0.into_iter().map(|error| (error.pointer, error.code)).collect()
        };
        let named = |faults: &[(&str, &'static str)]| -> Vec<(String, &str)> {
            faults.iter().map(|(pointer, code)| ((*pointer).to_owned(), *code)).collect()
        };
        assert_eq!(faults(json!({})), named(&[("/name", "required"), ("/goal", "required")]));
        let bad =
            json!({"name": "", "goal": "fame", "include_trials": 1, "filters": {"status": "x"}, "to": 1});
        let expected = [
            ("/name", "empty"),
            ("/goal", "unknown_goal"),
            ("/include_trials", "wrong_type"),
            ("/filters/status", "unknown_status"),
            ("/to", "unknown_member"),
        ];
        assert_eq!(faults(bad), named(&expected));
    }

    #[test]
    fn a_patch_changes_what_it_names() {
        let aim = Aim { goal: Goal::Acquisition, include_trials: false, filters: Filter::default() };
        let at = Time::from_micros;
        let campaign = Campaign {
            id: CampaignId::from_bytes([1; 16]),
            name: "Spring".to_owned(),
            aim,
            created_at: at(1),
            updated_at: at(1),
        };
        let (same, changed) =
            campaign.patched(&Patch { name: Some("Spring".to_owned()), ..Patch::default() }, at(2));
        assert_eq!((same, changed), (campaign.clone(), Vec::new()));
        let patch = json!({"goal": "announcement", "filters": {"q": "x"}});
        let patch = Patch::parse(patch.as_object().unwrap()).unwrap();
        let (new, changed) = campaign.patched(&patch, at(2));
        assert_eq!(
            (new.aim.goal, new.updated_at, changed),
            (Goal::Announcement, at(2), vec!["goal", "filters"])
        );
    }
}
