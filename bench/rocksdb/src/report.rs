//! Samples by workload and side, and a table of their medians.

/// What a sample counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Items per second, shown in millions: the ratio says how many times as fast.
    Rate,
    /// Seconds, shown in millionths: the ratio says how many times as fast.
    Seconds,
    /// Bytes: the ratio says how many times as many.
    Bytes,
}

impl Unit {
    fn shown(self, value: f64) -> String {
        match self {
            Unit::Rate => format!("{:.2}", value / 1e6),
            Unit::Seconds => format!("{:.2}", value * 1e6),
            Unit::Bytes => format!("{value:.1}"),
        }
    }

    fn ratio(self, sample: f64, base: f64) -> f64 {
        match self {
            Unit::Rate | Unit::Bytes => sample / base,
            Unit::Seconds => base / sample,
        }
    }
}

/// A row of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workload {
    pub name: String,
    pub unit: Unit,
    /// The ratio wanted.
    pub target: &'static str,
}

impl Workload {
    /// A workload measured in rates.
    pub fn rate(name: impl Into<String>, target: &'static str) -> Self {
        Self { name: name.into(), unit: Unit::Rate, target }
    }
}

/// What was measured; sides are compared with the first.
pub struct Sheet {
    title: String,
    sides: Vec<&'static str>,
    lines: Vec<(Workload, Vec<Vec<f64>>)>,
}

impl Sheet {
    /// An empty sheet.
    pub fn new(title: impl Into<String>, sides: &[&'static str]) -> Self {
        Self { title: title.into(), sides: sides.to_vec(), lines: Vec::new() }
    }

    /// Adds a side's sample of the next round.
    pub fn add(&mut self, workload: &Workload, side: usize, sample: f64) {
        let found = self.lines.iter().position(|(known, _)| known == workload);
        let at = found.unwrap_or_else(|| {
            self.lines.push((workload.clone(), vec![Vec::new(); self.sides.len()]));
            self.lines.len() - 1
        });
        self.lines[at].1[side].push(sample);
    }

    /// Prints it.
    pub fn print(&self) {
        if self.lines.is_empty() {
            return;
        }
        let mut header = vec!["workload".to_owned(), self.sides[0].to_owned()];
        header.extend(self.sides[1..].iter().flat_map(|side| [(*side).to_owned(), "ratio".to_owned()]));
        header.push("target".to_owned());
        let mut rows = vec![header];
        rows.extend(self.lines.iter().map(|(workload, samples)| cells(workload, samples)));
        let widths: Vec<usize> =
            (0..rows[0].len()).map(|at| rows.iter().map(|row| row[at].chars().count()).max().unwrap_or(0)).collect();
        println!("\n{}", self.title);
        for row in rows {
            let (name, rest) = (format!("{:<1$}", row[0], widths[0]), row[1..].iter().zip(&widths[1..]));
            let rest: Vec<String> = rest.map(|(cell, width)| format!("{cell:>width$}")).collect();
            println!("{name}  {}", rest.join("  "));
        }
    }

    /// Each workload as a member of a JSON object: the samples of each side, in the order of the rounds, in what a sample
    /// counts. Names need no escapes.
    pub fn raw(&self) -> Vec<String> {
        let samples =
            |(side, samples): (&&str, &Vec<f64>)| (!samples.is_empty()).then(|| format!("\"{side}\": {samples:?}"));
        let line = |(workload, sides): &(Workload, Vec<Vec<f64>>)| {
            let sides: Vec<String> = self.sides.iter().zip(sides).filter_map(samples).collect();
            format!("  \"{}\": {{\"unit\": \"{:?}\", {}}}", workload.name.trim(), workload.unit, sides.join(", "))
        };
        self.lines.iter().map(line).collect()
    }
}

fn median(mut samples: Vec<f64>) -> Option<f64> {
    samples.sort_by(f64::total_cmp);
    samples.get(samples.len() / 2).copied()
}

fn cells(workload: &Workload, samples: &[Vec<f64>]) -> Vec<String> {
    let (unit, none) = (workload.unit, || "-".to_owned());
    let value = |side: &Vec<f64>| median(side.clone()).map_or_else(none, |value| unit.shown(value));
    let ratio = |side: &Vec<f64>| {
        let pairs = side.iter().zip(&samples[0]).map(|(sample, base)| unit.ratio(*sample, *base));
        median(pairs.collect()).map_or_else(none, |ratio| format!("{ratio:.2}"))
    };
    let mut cells = vec![workload.name.clone(), value(&samples[0])];
    cells.extend(samples[1..].iter().flat_map(|side| [value(side), ratio(side)]));
    cells.push(workload.target.to_owned());
    cells
}
