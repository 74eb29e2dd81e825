//! The economic sector of a company.

use crate::text::validated_text;

validated_text!(
    /// A sector code, opaque: NAF rév. 2 and NAF 2025 live side by side from 2027.
    SectorCode,
    InvalidSectorCode,
    "sector code",
    is_sector_code,
    "a sector code is 1 to 16 letters, digits, '.', '_' or '-'",
    "^[A-Za-z0-9._-]{1,16}$",
    16
);

fn is_sector_code(text: &str) -> bool {
    (1..=SectorCode::MAX_LENGTH).contains(&text.len())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
}
