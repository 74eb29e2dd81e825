//! Content codings, and the choice of the one that a client prefers.

use std::io::Write;

use brotli::enc::BrotliEncoderParams;
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::HeaderValue;

use crate::weights;

/// Coding of a body.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Coding {
    /// None.
    Identity,
    /// gzip.
    Gzip,
    /// br.
    Brotli,
}

/// Quality of about the speed of gzip's fast levels, with a smaller result.
const BROTLI_FAST: i32 = 4;
/// Quality with the smallest result.
const BROTLI_SMALL: i32 = 11;

impl Coding {
    /// All codings.
    pub(super) const ALL: [Self; 3] = [Self::Identity, Self::Gzip, Self::Brotli];

    /// Returns the coding with the highest weight in `Accept-Encoding`; of equal weights the one with the smaller
    /// result. Without the header, or when no coding of ours is accepted, the body is not coded.
    pub(super) fn preferred(accepted: &[HeaderValue]) -> Self {
        let weight = |name: &str| weight(accepted, name);
        let brotli = weight("br").unwrap_or(0);
        let gzip = weight("gzip").or_else(|| weight("x-gzip")).unwrap_or(0);
        // Unless it is named, identity is acceptable and least preferred (RFC 9110 §12.5.3).
        let identity = weights::first(accepted, "identity").unwrap_or(0);
        match brotli.max(gzip) {
            0 => Self::Identity,
            best if best < identity => Self::Identity,
            best if best == brotli => Self::Brotli,
            _ => Self::Gzip,
        }
    }

    /// Returns the `Content-Encoding`.
    pub(super) fn header(self) -> Option<HeaderValue> {
        match self {
            Self::Identity => None,
            Self::Gzip => Some(HeaderValue::from_static("gzip")),
            Self::Brotli => Some(HeaderValue::from_static("br")),
        }
    }

    /// Returns the part of an entity tag that distinguishes the codings.
    pub(super) fn suffix(self) -> &'static str {
        match self {
            Self::Identity => "",
            Self::Gzip => "-gzip",
            Self::Brotli => "-br",
        }
    }

    /// Codes a body that is sent once.
    pub(super) fn encode_fast(self, body: &Bytes) -> Bytes {
        self.encode(body, Compression::fast(), BROTLI_FAST)
    }

    /// Codes a body that is sent often.
    pub(super) fn encode_small(self, body: &Bytes) -> Bytes {
        self.encode(body, Compression::best(), BROTLI_SMALL)
    }

    fn encode(self, body: &Bytes, level: Compression, quality: i32) -> Bytes {
        match self {
            Self::Identity => body.clone(),
            Self::Gzip => {
                let mut encoder = GzEncoder::new(Vec::with_capacity(body.len() / 4), level);
                let written = encoder.write_all(body).and_then(|()| encoder.finish());
                written.expect("writing to memory cannot fail").into()
            }
            Self::Brotli => {
                let mut coded = Vec::with_capacity(body.len() / 4);
                let parameters = BrotliEncoderParams {
                    quality,
                    size_hint: body.len(),
                    ..Default::default()
                };
                brotli::BrotliCompress(&mut body.as_ref(), &mut coded, &parameters)
                    .expect("writing to memory cannot fail");
                coded.into()
            }
        }
    }
}

/// Returns the weight of a coding in thousandths: its own, else that of `*`; `None` if neither is listed.
fn weight(accepted: &[HeaderValue], name: &str) -> Option<u16> {
    weights::first(accepted, name).or_else(|| weights::first(accepted, "*"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn preferred(text: &'static str) -> Coding {
        Coding::preferred(&[HeaderValue::from_static(text)])
    }

    #[test]
    fn the_highest_weight_wins_and_then_the_smaller_body() {
        assert_eq!(preferred("gzip, deflate, br"), Coding::Brotli);
        assert_eq!(preferred("gzip;q=1.0, br;q=0.9"), Coding::Gzip);
        assert_eq!(preferred("x-gzip"), Coding::Gzip);
        assert_eq!(preferred("*"), Coding::Brotli);
        assert_eq!(preferred("GZIP ; Q=0.5, br;q=0"), Coding::Gzip);
        assert_eq!(preferred("identity, gzip;q=0.5"), Coding::Identity);
    }

    #[test]
    fn what_nobody_asked_for_is_not_coded() {
        assert_eq!(Coding::preferred(&[]), Coding::Identity);
        for text in [
            "",
            "identity",
            "deflate",
            "br;q=0, gzip;q=0",
            "br;q=x",
            "*;q=0",
        ] {
            assert_eq!(preferred(text), Coding::Identity, "{text}");
        }
    }

    #[test]
    fn the_header_may_stand_on_several_lines() {
        let lines = ["gzip;q=0.1", "br"].map(HeaderValue::from_static);
        assert_eq!(Coding::preferred(&lines), Coding::Brotli);
    }
}
