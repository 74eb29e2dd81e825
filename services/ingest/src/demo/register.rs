//! The drought register's levels of one day, which are real. `data/SOURCE.md` tells where they come from.

use crate::load::Origin;

/// The file's name.
pub const FILE: &str = "vigieau-2026-07-02.json";
/// The day.
pub const AS_OF: &str = "2026-07-02";
/// The register's JSON.
pub const LEVELS: &[u8] = include_bytes!("../../data/vigieau-2026-07-02.json");
/// Where they come from, in a file beside them.
pub const NOTE_FILE: &str = "vigieau-2026-07-02.SOURCE.md";
/// Its content.
pub const NOTE: &str = include_str!("../../data/SOURCE.md");

/// The same for the provenance and for clients.
pub fn origin() -> Origin {
    Origin {
        source: Some("VigiEau, the national drought register, 2 July 2026".to_owned()),
        source_url: Some("https://www.data.gouv.fr/datasets/662a5e2cd71b24df5e9a0827".to_owned()),
        licence: Some("Licence Ouverte 2.0".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::vigieau;
    use crate::problem::Problems;

    #[test]
    fn the_levels_are_those_of_metropolitan_france() {
        let mut problems = Problems::of(FILE);
        let levels = vigieau::read(Box::new(LEVELS), &mut problems).unwrap();
        assert_eq!((levels.len(), problems.text().as_str()), (96, ""));
        assert!(levels.iter().all(|(_, level)| level.is_some()));
        assert!(NOTE.contains(FILE) && NOTE.contains("Licence Ouverte 2.0"));
        assert!(NOTE.contains(&origin().source_url.unwrap()));
    }
}
