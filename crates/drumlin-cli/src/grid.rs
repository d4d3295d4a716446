//! Aligned columns of text, fitted to the terminal.

use std::io::{self, Write};

use console::{Term, measure_text_width};

/// The alignment of a column's cells.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Align {
    /// Text.
    Left,
    /// Numbers.
    Right,
}

/// Between two columns.
const GAP: usize = 2;

/// The least that a column is cut to, to make room for others.
const CUT_MIN: usize = 8;

/// A table of text. It may be printed in parts: the first part determines the widths of the columns.
pub struct Grid {
    head: Vec<(String, Align)>,
    rows: Vec<Vec<String>>,
    widths: Vec<usize>,
    /// The columns that are printed; a gap stands for those left out.
    shown: Vec<Option<usize>>,
    /// How wide a line may be.
    fits: Option<usize>,
}

impl Grid {
    /// A grid with these column heads.
    pub fn new<S: Into<String>>(head: impl IntoIterator<Item = (S, Align)>) -> Self {
        let head: Vec<(String, Align)> = head.into_iter().map(|(name, align)| (name.into(), align)).collect();
        Self { head, rows: Vec::new(), widths: Vec::new(), shown: Vec::new(), fits: None }
    }

    /// The same, no wider than the terminal that it is printed on: long cells are cut short, and columns in the middle left out
    /// where that is not enough.
    pub fn fitted(mut self) -> Self {
        let terminal = Term::stdout();
        self.fits = terminal.is_term().then(|| usize::from(terminal.size().1)).filter(|width| *width > 0);
        self
    }

    /// The same, no wider than this.
    #[cfg(test)]
    pub fn within(mut self, width: usize) -> Self {
        self.fits = Some(width);
        self
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
        if self.shown.is_empty() {
            let heads: Vec<String> = self.head.iter().map(|(name, _)| one_line(name)).collect();
            let width =
                |at: usize| self.rows.iter().chain([&heads]).map(|row| measure_text_width(&row[at])).max().unwrap_or(0);
            self.widths = (0..heads.len()).map(width).collect();
            self.fit();
            self.line(out, &heads)?;
        }
        for row in &std::mem::take(&mut self.rows) {
            self.line(out, row)?;
        }
        Ok(())
    }

    /// Takes width from the widest columns, then leaves out those in the middle.
    fn fit(&mut self) {
        self.shown = (0..self.widths.len()).map(Some).collect();
        let Some(fits) = self.fits else { return };
        let total = |widths: &[usize]| widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1);
        while total(&self.widths) > fits {
            let excess = total(&self.widths) - fits;
            let Some(widest) = self.widths.iter_mut().max().filter(|width| **width > CUT_MIN) else { break };
            *widest -= excess.min((*widest - CUT_MIN).div_ceil(2)).max(1);
        }
        let width = |shown: &[Option<usize>], widths: &[usize]| {
            total(&shown.iter().map(|at| at.map_or(1, |at| widths[at])).collect::<Vec<_>>())
        };
        while width(&self.shown, &self.widths) > fits && self.shown.len() > 3 {
            let middle = self.shown.len() / 2;
            match self.shown.iter().position(Option::is_none) {
                Some(gap) => drop(self.shown.remove(if gap >= middle { gap - 1 } else { gap + 1 })),
                None => self.shown[middle] = None,
            }
        }
    }

    fn line(&self, out: &mut impl Write, cells: &[String]) -> io::Result<()> {
        let mut line = String::new();
        for (nth, at) in self.shown.iter().enumerate() {
            let (cell, align, width) = match at {
                Some(at) => (cells[*at].as_str(), self.head[*at].1, self.widths[*at]),
                None => ("…", Align::Left, 1),
            };
            // Parts after the first may have longer cells: they are only cut where there is a limit.
            let cell = if self.fits.is_some() { cut(cell, width) } else { cell.to_owned() };
            let space = " ".repeat(width.saturating_sub(measure_text_width(&cell)));
            if nth > 0 {
                line.push_str(&" ".repeat(GAP));
            }
            match align {
                Align::Left => line.extend([cell, space]),
                Align::Right => line.extend([space, cell]),
            }
        }
        writeln!(out, "{}", line.trim_end())
    }
}

/// At most `width` columns of a terminal.
fn cut(text: &str, width: usize) -> String {
    if measure_text_width(text) <= width {
        return text.to_owned();
    }
    let mut kept = String::new();
    for c in text.chars() {
        kept.push(c);
        if measure_text_width(&kept) >= width {
            kept.pop();
            break;
        }
    }
    kept + "…"
}

/// `text` with those characters escaped which would break lines, control the terminal, hide, or turn the direction of the text
/// around them.
pub fn one_line(text: &str) -> String {
    if !text.contains(is_unsafe) {
        return text.to_owned();
    }
    let escape = |c: char| if is_unsafe(c) { c.escape_default().to_string() } else { c.to_string() };
    text.chars().map(escape).collect()
}

fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{61c}' | '\u{200b}' | '\u{200e}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(grid: &mut Grid) -> String {
        let mut out = Vec::new();
        grid.print(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    fn grid(columns: usize, cell: &str) -> Grid {
        let mut grid = Grid::new((0..columns).map(|at| (format!("c{at}"), Align::Left)));
        grid.row(vec![cell.to_owned(); columns]);
        grid
    }

    #[test]
    fn lines_are_no_wider_than_they_may_be() {
        for columns in 1..40 {
            for cell in ["x", "a text that is quite long", "日本語のテキストです"] {
                for width in [20, 40, 80, 200] {
                    let text = printed(&mut grid(columns, cell).within(width));
                    for line in text.lines() {
                        assert!(measure_text_width(line) <= width.max(30), "{columns} of {cell} in {width}: {line}");
                    }
                    assert!(
                        text.starts_with("c0") && text.lines().next().unwrap().contains(&format!("c{}", columns - 1))
                    );
                }
            }
        }
        assert_eq!(printed(&mut grid(2, "abcdefghijklmnop").within(22)), "c0          c1\nabcdefghi…  abcdefghi…\n");
    }

    #[test]
    fn wide_characters_are_aligned() {
        let mut grid = Grid::new([("a", Align::Right), ("b", Align::Left)]);
        grid.row(["日本".to_owned(), "x".to_owned()]);
        grid.row(["1".to_owned(), "y".to_owned()]);
        assert_eq!(printed(&mut grid), "   a  b\n日本  x\n   1  y\n");
    }

    #[test]
    fn what_controls_or_deceives_is_escaped() {
        assert_eq!(one_line("a\u{1b}[2Jb\u{202e}c\nd\u{200b}"), "a\\u{1b}[2Jb\\u{202e}c\\nd\\u{200b}");
        assert_eq!(one_line("größe 日本 🙂"), "größe 日本 🙂");
    }
}
