//! The made-up company: its people, its customers, and what they write. Tables only.

pub const COMPANY: &str = "Brightwater Analytics";
pub const PROJECT: &str = "brightwater";
pub const OWNER: (&str, &str) = ("maya@brightwater.test", "Maya Lindqvist");
/// Address, name and role. They share the owner's password.
pub const COLLEAGUES: [(&str, &str, &str); 3] = [
    ("jonas@brightwater.test", "Jonas Ekberg", "admin"),
    ("priya@brightwater.test", "Priya Nair", "member"),
    ("tom@brightwater.test", "Tom Becker", "member"),
];
/// The browser that everybody uses.
pub const BROWSER: &str = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0";

/// Two years.
pub const DAYS: i64 = 730;
pub const ACCOUNTS: usize = 320;

pub const PLACES: [&str; 40] = [
    "Nordlys",
    "Harbour",
    "Alder",
    "Kestrel",
    "Lumen",
    "Granite",
    "Saffron",
    "Meridian",
    "Juniper",
    "Cobalt",
    "Heron",
    "Solstice",
    "Bramble",
    "Atlas",
    "Verde",
    "Quarry",
    "Linden",
    "Tidewater",
    "Orchard",
    "Summit",
    "Falke",
    "Isar",
    "Baltic",
    "Rhône",
    "Tejo",
    "Vltava",
    "Øresund",
    "Limmat",
    "Garda",
    "Fjell",
    "Moorland",
    "Copper",
    "Willow",
    "Anchor",
    "Polar",
    "Amber",
    "Cedar",
    "Delta",
    "Ember",
    "Larch",
];
/// The second word of a name, and its industry.
pub const TRADES: [(&str, &str); 16] = [
    ("Bank", "finance"),
    ("Insurance", "finance"),
    ("Logistics", "logistics"),
    ("Freight", "logistics"),
    ("Clinics", "healthcare"),
    ("Labs", "healthcare"),
    ("Foods", "retail"),
    ("Outfitters", "retail"),
    ("Energy", "energy"),
    ("Wind", "energy"),
    ("Software", "software"),
    ("Systems", "software"),
    ("Mills", "manufacturing"),
    ("Tools", "manufacturing"),
    ("Academy", "education"),
    ("Hotels", "hospitality"),
];
/// A country, and the currency that its companies pay in.
pub const COUNTRIES: [(&str, &str); 10] = [
    ("DE", "EUR"),
    ("DE", "EUR"),
    ("FR", "EUR"),
    ("NL", "EUR"),
    ("ES", "EUR"),
    ("SE", "SEK"),
    ("NO", "NOK"),
    ("GB", "GBP"),
    ("CH", "CHF"),
    ("US", "USD"),
];
/// A plan, its fewest and most seats, and the price of a seat per year.
pub const PLANS: [(&str, i64, i64, i64); 3] =
    [("starter", 3, 20, 180), ("team", 15, 80, 240), ("enterprise", 80, 600, 300)];

/// Channels and their codes.
pub const CHANNELS: [(&str, &[&str]); 4] = [
    ("Partner referrals", &["PARTNER-25", "PARTNER-GOLD"]),
    ("Webinars", &["WEBINAR-DATA", "WEBINAR-CHURN"]),
    ("Hannover trade fair", &["FAIR-HANNOVER"]),
    ("Podcast", &["PODCAST10"]),
];
/// The index of a channel, and a code that it no longer uses.
pub const ARCHIVED: (usize, &str) = (2, "FAIR-OLD");

/// Name, goal, whether trials are included, and the filters.
pub const CAMPAIGNS: [(&str, &str, bool, &str); 5] = [
    ("New year outreach", "acquisition", false, r#"{"status": ["prospect", "contacted"]}"#),
    ("Software trials", "acquisition", true, r#"{"fields": {"industry": "software"}}"#),
    ("Win back", "reactivation", false, r#"{"status": "lost"}"#),
    ("More seats", "expansion", false, r#"{"fields": {"plan": ["starter", "team"]}}"#),
    ("Dashboards 4.0", "announcement", false, "{}"),
];

/// Path on the local receiver, description and events. The last one fails.
pub const WEBHOOKS: [(&str, &str, &[&str]); 3] = [
    (
        "/hooks/crm",
        "CRM sync",
        &["account.created", "account.status_changed", "message.inbound", "client.contact_due"],
    ),
    ("/hooks/warehouse", "Data warehouse", &["account.created", "account.status_changed"]),
    ("/hooks/billing", "Billing", &["account.status_changed"]),
];

pub const FEATURES: [&str; 8] = [
    "dashboards.viewed",
    "dashboards.shared",
    "reports.exported",
    "queries.run",
    "alerts.created",
    "connectors.synced",
    "api.called",
    "admin.invited_user",
];

pub const SUBJECTS: [&str; 6] = [
    "Seeing churn before it happens",
    "Your data question from the webinar",
    "A faster way to your weekly report",
    "Brightwater for your team",
    "Following up on our call",
    "Dashboards for the board meeting",
];
pub const OPENINGS: [&str; 4] = [
    "Hello,\n\nYou asked how others in your industry read their numbers. Two of our customers let me share how \
     they do it. Would twenty minutes next week work for you?\n\nBest regards",
    "Hello,\n\nThank you for your time at the webinar. I've put the example we discussed into a small dashboard. \
     May I show it to you?\n\nBest regards",
    "Hello,\n\nI saw that your team has grown. We help teams of your size work from one set of figures. Would you \
     like to talk?\n\nBest regards",
    "Hello,\n\nOne of our partners told me that you're looking for a way out of spreadsheets. That's exactly what \
     we do.\n\nBest regards",
];
pub const REPLIES: [&str; 6] = [
    "Thursday at ten works. Please send an invitation to my colleague as well.",
    "Interesting. What would it cost for forty people?",
    "We'll decide on this next quarter. Please write again in six weeks.",
    "Could it read from our own database? That's the one thing we need.",
    "Thank you, the export works now. One more question: can alerts go to a shared mailbox?",
    "We're happy so far. Finance needs the invoice with our new address.",
];
pub const CHECK_INS: [&str; 5] = [
    "Hello,\n\nHow are you getting on with the new dashboards? If anything is in the way, let me know.\n\nBest regards",
    "Hello,\n\nYour usage went up by a third last month. Shall we look at the next plan together?\n\nBest regards",
    "Hello,\n\nThis month's release notes in short: faster exports and shared alerts.\n\nBest regards",
    "Hello,\n\nYour contract renews soon. Before we discuss it, I'd like to hear what you're missing.\n\nBest regards",
    "Hello,\n\nAs promised, the answer from our engineers: yes, it reads from your database.\n\nBest regards",
];
/// Kind and note.
pub const CONTACTS: [(&str, &str); 6] = [
    ("call", "Quarterly check-in. Happy, wants to add two teams in spring."),
    ("call", "Left a message."),
    ("call", "Solved a support question and explained alert thresholds."),
    ("meeting", "Demo of the report builder for the finance team."),
    ("meeting", "On site. Renewal looks safe; met the new head of operations."),
    ("other", "Met at the trade fair."),
];
pub const LOST_NOTES: [&str; 4] =
    ["No budget this year.", "Chose a competitor.", "Building it in-house.", "No reply after five attempts."];

/// A list from the trade fair, as it was imported. Two rows have mistakes in them.
pub const FAIR_LIST: &str = "\
imported_id;Company;Stage;Promo code;Country;Industry
fair-001;Silberbach Verpackungen;prospect;FAIR-HANNOVER;DE;manufacturing
fair-002;Kranz Hydraulik;prospect;FAIR-HANNOVER;DE;manufacturing
fair-003;Mørk Maskin;contacted;FAIR-HANNOVER;NO;manufacturing
fair-004;Atelier Dubois;prospect;FAIR-HANNOVER;FR;retail
fair-005;Costa Cork;prospekt;FAIR-HANNOVER;PT;manufacturing
fair-006;Ridderkerk Pumps;prospect;FAIR-HANNOVER;NL;manufacturing
fair-007;Øst Robotics;contacted;FAIR-HANNOVER;DK;manufacturing
fair-008;Nameless Card;interested;FAIR-HANNOVER;DE;retail
fair-009;Brunnen & Söhne;prospect;FAIR-HANNOVER;AT;manufacturing
fair-010;Zugspitz Optik;prospect;FAIR-HANNOVER;DE;healthcare
fair-011;Lago Textiles;prospect;FAIR-HANNOVER;IT;retail
fair-012;Weser Kühltechnik;contacted;FAIR-HANNOVER;DE;energy
";
pub const FAIR_LIST_NAME: &str = "hannover-visitors.csv";
