//! What is wrong is refused before anything happens, by a message that names the
//! field, its value and the remedy. Each test compares the whole message.

mod api_keys;
mod chart;
