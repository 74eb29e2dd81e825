//! Golden files: what kubectl prints, with everything that differs from run to
//! run replaced by its name.

use std::{env, fs, path::Path};

use anyhow::{Context, Result, ensure};

/// Set to write the files instead of comparing with them.
const UPDATE: &str = "WATER_UPDATE_GOLDEN";

/// Compares `text` with the file `golden/<name>`.
pub fn assert_golden(name: &str, text: &str) -> Result<()> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("golden")
        .join(name);
    let text = format!("{}\n", text.trim_end());
    if env::var_os(UPDATE).is_some() {
        return fs::write(&file, text).with_context(|| format!("write {}", file.display()));
    }
    let golden = fs::read_to_string(&file).unwrap_or_default();
    ensure!(
        golden == text,
        "golden/{name} says\n{golden}\nbut it is\n{text}\nIf that is right: {UPDATE}=1 cargo dev test"
    );
    Ok(())
}

/// Tables of kubectl, cells separated by ` | `: those of the `changing` columns are replaced by
/// `<COLUMN>` unless they are empty.
pub fn table(text: &str, changing: &[&str]) -> String {
    let mut header = "";
    let mut rows = Vec::new();
    for line in text.lines() {
        if line.trim().is_empty() {
            header = "";
            rows.push(String::new());
            continue;
        }
        let is_header = header.is_empty();
        if is_header {
            header = line;
        }
        let columns = columns(header);
        let cells = columns.iter().enumerate().map(|(number, &(start, name))| {
            let end = columns.get(number + 1).map_or(line.len(), |next| next.0);
            let cell = line
                .get(start..end.min(line.len()))
                .unwrap_or_default()
                .trim();
            match cell {
                "" | "<none>" => cell.to_owned(),
                _ if !is_header && changing.contains(&name) => format!("<{name}>"),
                _ => cell.to_owned(),
            }
        });
        rows.push(cells.collect::<Vec<_>>().join(" | ").trim_end().to_owned());
    }
    rows.join("\n")
}

/// Where each column starts, and its name: kubectl writes cells below their header, two or more spaces apart.
fn columns(header: &str) -> Vec<(usize, &str)> {
    let mut columns = Vec::new();
    let mut start = 0;
    for name in header.split("  ") {
        let indent = name.len() - name.trim_start().len();
        if !name.trim().is_empty() {
            columns.push((start + indent, name.trim()));
        }
        start += name.len() + 2;
    }
    columns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changing_cells_are_replaced_by_their_columns_name() {
        let text = "NAME   KEY-ID   AGE\nacme   abc      5s\n\nNAME    AGE\nwater   1m";
        let expected = "NAME | KEY-ID | AGE\nacme | <KEY-ID> | <AGE>\n\nNAME | AGE\nwater | <AGE>";
        assert_eq!(table(text, &["KEY-ID", "AGE"]), expected);
    }

    #[test]
    fn an_empty_cell_stays_in_its_column() {
        let text = "NAME   EXPIRES   LAST USED   AGE\nacme                         5s";
        assert_eq!(
            table(text, &["AGE"]),
            "NAME | EXPIRES | LAST USED | AGE\nacme |  |  | 5s".replace("5s", "<AGE>")
        );
    }
}
