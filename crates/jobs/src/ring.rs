//! Turns: companies one after the other, and within each company its webhooks one after the other.

use std::collections::{HashMap, VecDeque};

use rapport_domain::id::{CompanyId, WebhookId};

use crate::lanes::Key;

#[derive(Default)]
pub struct Ring {
    companies: VecDeque<CompanyId>,
    webhooks: HashMap<CompanyId, VecDeque<WebhookId>>,
}

impl Ring {
    pub fn push(&mut self, (company, webhook): Key) {
        let webhooks = self.webhooks.entry(company).or_default();
        if webhooks.is_empty() {
            self.companies.push_back(company);
        }
        webhooks.push_back(webhook);
    }

    /// The next webhook of the next company that may have a turn.
    pub fn pop(&mut self, may_go: impl Fn(CompanyId) -> bool) -> Option<Key> {
        let at = self.companies.iter().position(|company| may_go(*company))?;
        let company = self.companies.remove(at)?;
        let webhooks = self.webhooks.get_mut(&company)?;
        let webhook = webhooks.pop_front();
        if webhooks.is_empty() {
            self.webhooks.remove(&company);
        } else {
            self.companies.push_back(company);
        }
        webhook.map(|webhook| (company, webhook))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(company: i64, webhook: u8) -> Key {
        (CompanyId(company), WebhookId::from_bytes([webhook; 16]))
    }

    #[test]
    fn companies_take_turns_and_then_their_webhooks() {
        let mut ring = Ring::default();
        for (company, webhook) in [(1, 1), (1, 2), (1, 3), (2, 9)] {
            ring.push(key(company, webhook));
        }
        assert_eq!(
            ring.pop(|company| company == CompanyId(2)),
            Some(key(2, 9)),
            "only companies that may have a turn"
        );
        ring.push(key(2, 9));
        let order: Vec<Key> = std::iter::from_fn(|| ring.pop(|_| true)).collect();
        assert_eq!(order, [key(1, 1), key(2, 9), key(1, 2), key(1, 3)]);
    }
}
