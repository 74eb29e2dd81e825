//! A progress bar on a terminal, and nothing elsewhere.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// A bar over the bytes of a file, or a spinner where their number is not known.
pub fn bar(dataset: &'static str, length: Option<u64>) -> ProgressBar {
    let (bar, template) = match length {
        Some(length) => (
            ProgressBar::new(length),
            "{msg} {wide_bar} {bytes}/{total_bytes} {bytes_per_sec} {eta}",
        ),
        None => (
            ProgressBar::new_spinner(),
            "{msg} {spinner} {bytes} {bytes_per_sec}",
        ),
    };
    let style = ProgressStyle::with_template(template).expect("the templates above are valid");
    let bar = bar
        .with_style(style)
        .with_message(format!("loading {dataset}"));
    // Keeps moving while the database merges what was read.
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}
