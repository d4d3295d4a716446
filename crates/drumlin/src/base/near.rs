//! The name that was probably meant by one that is not there.

/// The characters that are compared, of longer names.
const COMPARED_MAX: usize = 120;

/// The name that is most like `name` among others, if one is: by letters that are added, left out or replaced, at most one and
/// a fourth of its own, but not all, upper or lower case. Takes time proportional to the names and to the square of their lengths.
pub fn nearest<'a>(name: &str, among: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let name: Vec<char> = name.to_lowercase().chars().take(COMPARED_MAX).collect();
    let near = among.filter_map(|other| {
        let lower: Vec<char> = other.to_lowercase().chars().take(COMPARED_MAX).collect();
        let most = (1 + lower.len() / 4).min(lower.len().saturating_sub(1));
        let distance = (lower.len().abs_diff(name.len()) <= most).then(|| distance(&name, &lower))?;
        (distance <= most).then_some((distance, other))
    });
    near.min_by_key(|(distance, _)| *distance).map(|(_, other)| other)
}

/// The edit distance of Levenshtein between two names.
fn distance(a: &[char], b: &[char]) -> usize {
    let mut row = (0..=b.len()).collect::<Vec<_>>();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn names_that_are_near_are_found() {
        let names = || ["close", "open", "prices/us/AAPL", "größe", "n"].into_iter();
        for (meant, found) in [
            ("clse", "close"),
            ("OPEN", "open"),
            ("opne", "open"),
            ("prices/us/APPL", "prices/us/AAPL"),
            ("GRÖẞE", "größe"),
        ] {
            assert_eq!(nearest(meant, names()), Some(found), "{meant}");
        }
        for far in ["", "volume", "prices", "x"] {
            assert_eq!(nearest(far, names()), None, "{far}");
        }
    }
}
