//! Invented companies. Each is analysed and audited again and again, and its scores move slowly.

use std::sync::Arc;

use rand::RngExt;
use rand::rngs::StdRng;
use water_domain::Departement;

use super::scores::Scores;

/// Mean year of the Gregorian calendar.
pub const YEAR_MILLIS: i64 = 31_556_952_000;

/// Trades, and their classes of NAF rév. 2.
const TRADES: [(&str, &str); 6] = [
    ("Brasserie", "11.05Z"),
    ("Laiterie", "10.51A"),
    ("Papeterie", "17.12Z"),
    ("Maraîchage", "01.13Z"),
    ("Énergie", "35.11Z"),
    ("Régie des eaux", "36.00Z"),
];
/// No company is called "exemple".
const INVENTED: &str = "Exemple";
/// A prime that divides no number of trades and départements: steps of it meet each pair once.
const STRIDE: usize = 257;

/// A company, the same in both histories of its account.
pub struct Company {
    /// Name, which no other company of the account has.
    pub name: String,
    /// Class of its trade.
    pub sector: &'static str,
    /// Département of its site.
    pub departement: &'static Departement,
    /// Thousandths of the time between two visits by which its visits come before those of others.
    pub shift: i64,
    /// Water risk: higher in the dry season.
    pub risk: Course,
    /// Compliance: lower in the dry season, when restrictions are in force.
    pub compliance: Course,
}

/// A score over time, in tenths of a point.
pub struct Course {
    /// Score at the end of the history, without the season's part.
    end: i64,
    /// Trend.
    per_year: i64,
    /// Part of the season at its height.
    season: i64,
}

impl Course {
    /// Returns the score at a moment (milliseconds since the epoch) that is `age` before the end.
    pub fn at(&self, moment: i64, age: i64, departement: &Departement) -> i64 {
        self.end - self.per_year * age / YEAR_MILLIS
            + self.season * dryness(moment, departement) / 1000
    }
}

/// Endless companies of an account.
pub struct Companies {
    random: StdRng,
    scores: Arc<[Scores]>,
    next: usize,
}

impl Companies {
    /// Begins at a random company.
    pub fn new(mut random: StdRng, scores: Arc<[Scores]>) -> Self {
        let next = random.random_range(0..TRADES.len() * scores.len());
        Self {
            random,
            scores,
            next,
        }
    }
}

impl Iterator for Companies {
    type Item = Company;

    fn next(&mut self) -> Option<Company> {
        let (number, random) = (self.next, &mut self.random);
        self.next += STRIDE;
        let scores = &self.scores[number / TRADES.len() % self.scores.len()];
        let (trade, sector) = TRADES[number % TRADES.len()];
        let place = scores.departement.name;
        // A number distinguishes the companies beyond the name that each pair has once.
        let round = number / (TRADES.len() * self.scores.len() * STRIDE);
        let name = if round == 0 {
            format!("{trade} {INVENTED}, {place}")
        } else {
            format!("{trade} {INVENTED} {}, {place}", round + 1)
        };
        // The ranges keep each score between 0 and 100 for four years.
        Some(Company {
            name,
            sector,
            departement: scores.departement,
            shift: random.random_range(0..750),
            risk: Course {
                end: (scores.overall + random.random_range(-100..=100)).clamp(205, 795),
                per_year: random.random_range(-30..=30),
                season: 80,
            },
            compliance: Course {
                end: random.random_range(300..=850),
                per_year: random.random_range(-20..=40),
                season: -50,
            },
        })
    }
}

/// Returns how near a moment is to the middle of the driest month: from 1000 in it to -1000 half a year
/// away. Whole numbers only, so that the same seed gives the same rows on any machine.
fn dryness(moment: i64, departement: &Departement) -> i64 {
    let driest_month = match departement.code {
        "971" | "972" => 3,
        "973" | "974" | "976" => 10,
        _ => 8,
    };
    let middle = (2 * driest_month - 1) * YEAR_MILLIS / 24;
    let later = (moment - middle).rem_euclid(YEAR_MILLIS);
    let apart = later.min(YEAR_MILLIS - later);
    1000 - 4000 * apart / YEAR_MILLIS
}
