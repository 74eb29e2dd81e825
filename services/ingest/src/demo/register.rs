//! The drought register's levels of one day, which are real. `data/SOURCE.md` names their source.

use std::collections::BTreeMap;

use water_domain::Level;

use crate::dataset::vigieau;
use crate::load::Origin;
use crate::problem::Problems;

/// Name of the file.
pub const FILE: &str = "vigieau-2026-07-02.json";
/// Day of the levels.
pub const AS_OF: &str = "2026-07-02";
/// The register's JSON.
pub const LEVELS: &[u8] = include_bytes!("../../data/vigieau-2026-07-02.json");
/// Name of a file with their source, written next to them.
pub const NOTE_FILE: &str = "vigieau-2026-07-02.SOURCE.md";
/// Content of that file.
pub const NOTE: &str = include_str!("../../data/SOURCE.md");

/// Origin of the levels, for the provenance and for clients.
pub fn origin() -> Origin {
    Origin {
        source: Some("VigiEau, the national drought register, 2 July 2026".to_owned()),
        source_url: Some("https://www.data.gouv.fr/datasets/662a5e2cd71b24df5e9a0827".to_owned()),
        licence: Some("Licence Ouverte 2.0".to_owned()),
    }
}

/// Levels by the codes of their départements, those of metropolitan France.
pub fn levels() -> BTreeMap<&'static str, Level> {
    vigieau::read(Box::new(LEVELS), &mut Problems::new(FILE))
        .expect("bytes in memory can be read")
        .levels
        .into_iter()
        .filter_map(|(departement, level)| Some((departement.code, level?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_levels_are_those_of_metropolitan_france() {
        let mut problems = Problems::new(FILE);
        let answer = vigieau::read(Box::new(LEVELS), &mut problems).unwrap();
        let levels = answer.levels;
        assert_eq!((levels.len(), problems.text().as_str()), (96, ""));
        assert!(levels.iter().all(|(_, level)| level.is_some()));
        assert!(NOTE.contains(FILE) && NOTE.contains("Licence Ouverte 2.0"));
        assert!(NOTE.contains(&origin().source_url.unwrap()));
    }
}
