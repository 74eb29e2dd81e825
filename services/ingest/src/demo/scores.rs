//! Invented scores of the départements. They agree with the alert levels that are shown with them.

use rand::RngExt;
use rand::rngs::StdRng;
use water_domain::{Departement, Level, departement};

use super::register;

/// Levels that the overseas départements get from their index: the register's packaged day has no level for them. Water
/// is scarce on Mayotte and abundant in Guyane.
const OVERSEAS: [(&str, Level); 5] = [
    ("971", Level::Alerte),
    ("972", Level::Vigilance),
    ("973", Level::Normal),
    ("974", Level::Vigilance),
    ("976", Level::AlerteRenforcee),
];

/// Scores of one département, in tenths.
pub struct Scores {
    /// Département of the scores.
    pub departement: &'static Departement,
    /// Water stress, 0 to 50: in the band of the département's level.
    pub stress_index: i64,
    /// Flood risk, 0 to 1000.
    pub flood: i64,
    /// Drought risk, 0 to 1000: near twenty times the index.
    pub drought: i64,
    /// Mean of both risks.
    pub overall: i64,
}

/// Returns the scores of all départements, in the order of their codes.
pub fn scores(mut random: StdRng) -> Vec<Scores> {
    let mut levels = register::levels();
    levels.extend(OVERSEAS);
    let row = |departement: &'static Departement| {
        let level = levels[departement.code];
        let stress_index = level as i64 * 10 + random.random_range(0..10);
        let drought = stress_index * 20 + random.random_range(-100..=100);
        let drought = drought.clamp(0, 1000);
        let flood = random.random_range(50..=950);
        Scores {
            departement,
            stress_index,
            flood,
            drought,
            overall: (flood + drought) / 2,
        }
    };
    departement::all().iter().map(row).collect()
}
