//! Header lists whose items have weights, such as `Accept` and `Accept-Encoding` (RFC 9110 §12.4.2).

use http::HeaderValue;

/// Returns the weight of an item in thousandths, by its first place in the list; `None` if it is not listed. The list
/// may have several lines.
pub fn first<'a>(lines: impl IntoIterator<Item = &'a HeaderValue>, name: &str) -> Option<u16> {
    matching(lines, |item| item.eq_ignore_ascii_case(name)).next()
}

/// Returns the highest weight among the items that match; `None` if none does.
pub fn greatest<'a>(
    lines: impl IntoIterator<Item = &'a HeaderValue>,
    matches: impl Fn(&str) -> bool,
) -> Option<u16> {
    matching(lines, matches).max()
}

/// Returns the weights of the items that match, in the order of the list.
fn matching<'a>(
    lines: impl IntoIterator<Item = &'a HeaderValue>,
    matches: impl Fn(&str) -> bool,
) -> impl Iterator<Item = u16> {
    let texts = lines.into_iter().filter_map(|line| line.to_str().ok());
    let items = texts.flat_map(|text| text.split(','));
    items.filter_map(move |item| {
        let mut parts = item.split(';').map(str::trim);
        matches(parts.next()?).then(|| parts.find_map(quality).unwrap_or(1000))
    })
}

/// Reads a weight: `q=0.5` is 500. One that cannot be read is 0: the item was not clearly asked for.
fn quality(parameter: &str) -> Option<u16> {
    let text = parameter
        .strip_prefix("q=")
        .or_else(|| parameter.strip_prefix("Q="))?;
    let value: f32 = text.parse().unwrap_or(0.0);
    Some((value.clamp(0.0, 1.0) * 1000.0) as u16)
}
