//! Header lists whose items carry weights, such as `Accept` and `Accept-Encoding`
//! (RFC 9110 §12.4.2).

use http::HeaderValue;

/// The weight of an item in thousandths, by its first place in the list; none if it is not listed.
/// The list may stand on several lines.
pub fn of<'a>(lines: impl IntoIterator<Item = &'a HeaderValue>, name: &str) -> Option<u16> {
    let texts = lines.into_iter().filter_map(|line| line.to_str().ok());
    let mut items = texts.flat_map(|text| text.split(','));
    items.find_map(|item| {
        let mut parts = item.split(';').map(str::trim);
        let listed = parts.next()?.eq_ignore_ascii_case(name);
        listed.then(|| parts.find_map(quality).unwrap_or(1000))
    })
}

/// `q=0.5` is 500. A weight that cannot be read is 0: the item was not clearly asked for.
fn quality(parameter: &str) -> Option<u16> {
    let text = parameter
        .strip_prefix("q=")
        .or_else(|| parameter.strip_prefix("Q="))?;
    let value: f32 = text.parse().unwrap_or(0.0);
    Some((value.clamp(0.0, 1.0) * 1000.0) as u16)
}
