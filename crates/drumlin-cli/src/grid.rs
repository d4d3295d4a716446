//! Aligned columns of text.

use std::io::{self, Write};

/// The alignment of a column's cells.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Align {
    /// Text.
    Left,
    /// Numbers.
    Right,
}

/// A table of text. It may be printed in parts: the first part determines the widths of the columns.
pub struct Grid {
    head: Vec<(String, Align)>,
    rows: Vec<Vec<String>>,
    widths: Vec<usize>,
}

impl Grid {
    /// A grid with these column heads.
    pub fn new<S: Into<String>>(head: impl IntoIterator<Item = (S, Align)>) -> Self {
        let head = head.into_iter().map(|(name, align)| (name.into(), align)).collect();
        Self { head, rows: Vec::new(), widths: Vec::new() }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().map(|cell| one_line(&cell)).collect());
    }

    /// Rows not yet printed.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Prints the rows so far and forgets them; the heads come with the first part.
    pub fn print(&mut self, out: &mut impl Write) -> io::Result<()> {
        if self.widths.is_empty() {
            let heads: Vec<String> = self.head.iter().map(|(name, _)| one_line(name)).collect();
            let width =
                |at: usize| self.rows.iter().chain([&heads]).map(|row| row[at].chars().count()).max().unwrap_or(0);
            self.widths = (0..heads.len()).map(width).collect();
            self.line(out, &heads)?;
        }
        for row in &std::mem::take(&mut self.rows) {
            self.line(out, row)?;
        }
        Ok(())
    }

    fn line(&self, out: &mut impl Write, cells: &[String]) -> io::Result<()> {
        let mut line = String::new();
        for ((cell, (_, align)), &width) in cells.iter().zip(&self.head).zip(&self.widths) {
            match align {
                Align::Left => line.push_str(&format!("{cell:<width$}  ")),
                Align::Right => line.push_str(&format!("{cell:>width$}  ")),
            }
        }
        writeln!(out, "{}", line.trim_end())
    }
}

/// `text` with its control characters escaped, which would break the lines or control the terminal.
pub fn one_line(text: &str) -> String {
    if !text.contains(char::is_control) {
        return text.to_owned();
    }
    let escape = |c: char| if c.is_control() { c.escape_default().to_string() } else { c.to_string() };
    text.chars().map(escape).collect()
}
