//! The sample accounts. Their names are made up, and their addresses are at domains that exist only in examples.

use crate::pipeline::Status::{
    self, Contacted, Customer, DoNotContact, InNegotiation, InTrial, Lost, Prospect,
};

pub const COUNT: usize = 36;

/// One account. Days count back from today.
#[derive(Debug, PartialEq, Eq)]
pub struct Line {
    pub name: &'static str,
    /// Its domain without `.example`.
    pub site: &'static str,
    /// The local part of somebody's address there.
    pub person: &'static str,
    pub industry: &'static str,
    pub country: &'static str,
    pub employees: i64,
    pub status: Status,
    pub created: i64,
    /// When it entered its stage.
    pub entered: i64,
    /// In the company's currency.
    pub value: Option<i64>,
    /// The index of its channel.
    pub channel: Option<usize>,
    pub care: Care,
    pub usage: Usage,
    /// Its own cadence.
    pub cadence: Option<i64>,
    pub snoozed_for: Option<i64>,
}

/// When the last contact was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Care {
    Nobody,
    Ago(i64),
    /// So long ago that contact is overdue by this many days.
    Overdue(i64),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Usage {
    Nothing,
    /// On most days, this intensely.
    Daily(i64),
    /// Until so many days ago.
    Stopped(i64),
}

type Company = (&'static str, &'static str, &'static str, &'static str, &'static str, i64);
type Deal = (Status, i64, i64, Option<i64>, Option<usize>);

const fn line(company: Company, deal: Deal, care: Care) -> Line {
    let (name, site, person, industry, country, employees) = company;
    let (status, created, entered, value, channel) = deal;
    let (usage, cadence, snoozed_for) = (Usage::Nothing, None, None);
    Line {
        name,
        site,
        person,
        industry,
        country,
        employees,
        status,
        created,
        entered,
        value,
        channel,
        care,
        usage,
        cadence,
        snoozed_for,
    }
}

impl Line {
    const fn using(mut self, usage: Usage) -> Self {
        self.usage = usage;
        self
    }

    const fn every(mut self, days: i64) -> Self {
        self.cadence = Some(days);
        self
    }

    const fn snoozed(mut self, days: i64) -> Self {
        self.snoozed_for = Some(days);
        self
    }
}

use Care::{Ago, Nobody, Overdue};
use Usage::{Daily, Stopped};

#[rustfmt::skip]
pub static LINES: [Line; COUNT] = [
    line(("Alder & Finch", "alder-finch", "mara.finch", "retail", "GB", 140),
        (Prospect, 2, 2, Some(4_800), Some(0)), Nobody),
    line(("Bluebell Bakeries", "bluebell-bakeries", "tomas.reed", "food", "IE", 60),
        (Prospect, 3, 3, None, None), Nobody),
    line(("Cobalt Cycles", "cobalt-cycles", "ines.duarte", "retail", "PT", 35),
        (Prospect, 5, 5, Some(2_400), Some(1)), Nobody),
    line(("Dovetail Joinery", "dovetail-joinery", "owen.marsh", "manufacturing", "GB", 22),
        (Prospect, 8, 8, None, None), Nobody),
    line(("Everglow Lighting", "everglow-lighting", "sofia.lind", "manufacturing", "SE", 210),
        (Prospect, 11, 11, Some(9_600), Some(2)), Nobody),
    line(("Foxglove Clinics", "foxglove-clinics", "ada.novak", "healthcare", "CZ", 320),
        (Prospect, 16, 16, Some(14_000), None), Nobody),
    line(("Greenline Couriers", "greenline-couriers", "paul.moreau", "logistics", "FR", 95),
        (Prospect, 24, 24, None, Some(1)), Nobody),
    line(("Hazelwood Academy", "hazelwood-academy", "nora.hale", "education", "GB", 180),
        (Prospect, 37, 37, Some(3_600), None), Nobody),
    line(("Ironbridge Tools", "ironbridge-tools", "lena.vogel", "manufacturing", "DE", 410),
        (Contacted, 14, 6, Some(12_000), Some(2)), Ago(2)),
    line(("Juniper Hotels", "juniper-hotels", "marco.riva", "hospitality", "IT", 260),
        (Contacted, 19, 9, Some(18_500), None), Ago(5)),
    line(("Kestrel Insurance", "kestrel-insurance", "greta.holm", "finance", "DK", 520),
        (Contacted, 26, 13, Some(32_000), Some(0)), Ago(9)),
    line(("Lantern Books", "lantern-books", "iris.blake", "retail", "GB", 18),
        (Contacted, 30, 20, Some(1_200), None), Ago(18)),
    line(("Maple & Rye", "maple-rye", "jon.arden", "food", "CA", 75),
        (Contacted, 41, 27, Some(5_400), Some(1)), Ago(24)),
    line(("Northwind Farms", "northwind-farms", "elsa.berg", "agriculture", "NO", 130),
        (Contacted, 55, 33, None, None), Ago(30)),
    line(("Osprey Energy", "osprey-energy", "karl.lund", "energy", "DE", 870),
        (InNegotiation, 38, 4, Some(48_000), Some(0)), Ago(1)),
    line(("Pebble Payments", "pebble-payments", "ruth.stein", "finance", "NL", 110),
        (InNegotiation, 46, 8, Some(26_000), None), Ago(3)),
    line(("Quayside Freight", "quayside-freight", "hugo.petit", "logistics", "BE", 340),
        (InNegotiation, 52, 12, Some(21_500), Some(2)), Ago(7)),
    line(("Redwood Optics", "redwood-optics", "amy.tran", "manufacturing", "US", 65),
        (InNegotiation, 60, 19, Some(7_800), Some(1)), Ago(15)),
    line(("Saffron Kitchens", "saffron-kitchens", "leo.amato", "food", "ES", 48),
        (InNegotiation, 66, 25, Some(6_200), None), Ago(22)),
    line(("Tidewater Labs", "tidewater-labs", "vera.kovac", "healthcare", "AT", 150),
        (InTrial, 44, 5, Some(16_000), Some(1)), Ago(2)).using(Daily(3)).every(7),
    line(("Umbra Studio", "umbra-studio", "finn.olsen", "media", "NO", 26),
        (InTrial, 49, 9, Some(3_900), None), Ago(4)).using(Daily(2)).every(7),
    line(("Verdant Gardens", "verdant-gardens", "clara.wood", "retail", "GB", 84),
        (InTrial, 58, 12, Some(5_200), Some(2)), Overdue(3)).using(Daily(1)).every(7),
    line(("Willow Analytics", "willow-analytics", "milo.hart", "software", "US", 55),
        (InTrial, 61, 16, Some(11_400), Some(0)), Ago(6)).using(Daily(3)).every(14),
    line(("Yarrow Textiles", "yarrow-textiles", "anya.pohl", "manufacturing", "PL", 230),
        (InTrial, 70, 21, Some(8_700), None), Overdue(6)).using(Stopped(9)).every(7),
    line(("Zephyr Wind", "zephyr-wind", "olaf.brandt", "energy", "DE", 640),
        (Customer, 210, 120, Some(54_000), Some(0)), Ago(6)).using(Daily(4)),
    line(("Amberline Bank", "amberline-bank", "julia.roth", "finance", "CH", 930),
        (Customer, 260, 180, Some(86_000), Some(0)), Ago(12)).using(Daily(5)),
    line(("Brightside Dental", "brightside-dental", "sam.okoro", "healthcare", "GB", 90),
        (Customer, 190, 110, Some(9_400), None), Ago(20)).using(Daily(2)),
    line(("Cedar Logistics", "cedar-logistics", "nils.akker", "logistics", "NL", 410),
        (Customer, 240, 150, Some(37_500), Some(2)), Overdue(4)).using(Daily(3)),
    line(("Driftwood Resorts", "driftwood-resorts", "eva.costa", "hospitality", "PT", 280),
        (Customer, 300, 215, Some(28_000), Some(1)), Overdue(11)).using(Daily(1)),
    line(("Ember Roasters", "ember-roasters", "theo.laurent", "food", "FR", 70),
        (Customer, 170, 95, Some(7_100), None), Overdue(23)).using(Stopped(19)),
    line(("Fjord Software", "fjord-software", "ingrid.dahl", "software", "NO", 125),
        (Customer, 150, 70, Some(19_800), Some(1)), Ago(28)).using(Daily(4)),
    line(("Granite Builders", "granite-builders", "max.kessler", "construction", "DE", 360),
        (Customer, 320, 230, Some(41_000), Some(2)), Overdue(2)).using(Daily(2)).snoozed(9),
    line(("Harbour Museum", "harbour-museum", "lucy.grey", "culture", "GB", 45),
        (Lost, 120, 40, Some(4_100), None), Ago(52)),
    line(("Ivory Pianos", "ivory-pianos", "otto.weiss", "manufacturing", "AT", 33),
        (Lost, 145, 62, Some(6_600), Some(1)), Ago(75)),
    line(("Jasper Mining", "jasper-mining", "dana.cruz", "mining", "US", 700),
        (Lost, 160, 88, Some(58_000), Some(2)), Ago(101)),
    line(("Kingfisher Boats", "kingfisher-boats", "piet.visser", "leisure", "NL", 28),
        (DoNotContact, 98, 71, None, None), Ago(80)),
];
