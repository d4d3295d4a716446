//! A persistent ordered map: a B+tree whose pages are shared between copies and copied when written.
//!
//! A copy is O(1); a look-up, insert or remove is O(log n) and copies at most the pages on its path; comparing two copies
//! ([`Map::diff`]) visits only the pages that they do not share. Path copying after Driscoll, Sarnak, Sleator and Tarjan,
//! "Making data structures persistent" (1989).

use std::cmp::Ordering;

// Without weak references, checking whether a page is owned is a plain load, and every step of a write does it.
use triomphe::Arc;

/// The maximum number of entries of a page.
const PAGE: usize = 32;
/// A page with fewer looks for a neighbour to merge with.
const SPARSE: usize = PAGE / 4;
/// Two pages merge if together they have at most this many entries, so that the next insert does not split them again.
const MERGED: usize = PAGE * 3 / 4;

type Link<K, V> = Arc<MapPage<K, V>>;
type Child<K, V> = (K, Link<K, V>);
type Links<'a, K, V> = Vec<&'a Link<K, V>>;

#[derive(Debug)]
enum MapPage<K, V> {
    Leaf(Vec<(K, V)>),
    /// Each child with a lower bound of its keys; that of the first is ignored.
    Inner(Vec<Child<K, V>>),
}

/// An ordered map with O(1) copies.
#[derive(Debug)]
pub struct Map<K, V> {
    root: Option<Link<K, V>>,
    len: usize,
}

impl<K, V> Clone for Map<K, V> {
    fn clone(&self) -> Self {
        Self { root: self.root.clone(), len: self.len }
    }
}

impl<K, V> Default for Map<K, V> {
    fn default() -> Self {
        Self { root: None, len: 0 }
    }
}

impl<K: Clone + Ord, V: Clone> MapPage<K, V> {
    /// The smallest key.
    fn first(&self) -> &K {
        match self {
            MapPage::Leaf(entries) => &entries[0].0,
            MapPage::Inner(children) => children[0].1.first(),
        }
    }

    fn height(&self) -> usize {
        match self {
            MapPage::Leaf(_) => 0,
            MapPage::Inner(children) => 1 + children[0].1.height(),
        }
    }

    fn len(&self) -> usize {
        match self {
            MapPage::Leaf(entries) => entries.len(),
            MapPage::Inner(children) => children.len(),
        }
    }
}

/// The page behind `link`, to write to: itself if it is not shared, else a copy with room for another entry.
fn own<K: Clone, V: Clone>(link: &mut Link<K, V>) -> &mut MapPage<K, V> {
    fn roomy<T: Clone>(entries: &[T]) -> Vec<T> {
        let mut copy = Vec::with_capacity((entries.len() + 1).next_power_of_two().min(PAGE));
        copy.extend_from_slice(entries);
        copy
    }
    if Arc::get_mut(link).is_none() {
        *link = Arc::new(match &**link {
            MapPage::Leaf(entries) => MapPage::Leaf(roomy(entries)),
            MapPage::Inner(children) => MapPage::Inner(roomy(children)),
        });
    }
    Arc::get_mut(link).expect("it is not shared")
}

/// The child that may hold the key that `order` looks for: `order` says how a key compares with it.
fn child_of<K, T>(children: &[(K, T)], order: &impl Fn(&K) -> Ordering) -> usize {
    children[1..].partition_point(|(low, _)| order(low).is_le())
}

fn place<T>(entries: &mut Vec<T>, at: usize, entry: T) {
    if entries.len() == entries.capacity() {
        entries.reserve_exact(entries.len().clamp(1, PAGE));
    }
    entries.insert(at, entry);
}

/// Inserts into a full page by splitting it; returns the right half. Keys inserted in order leave full pages behind.
fn split<T>(entries: &mut Vec<T>, at: usize, entry: T) -> Vec<T> {
    if at == entries.len() {
        return vec![entry];
    }
    let mut right = entries.split_off(PAGE / 2);
    match at.checked_sub(entries.len()) {
        Some(at) if at > 0 => place(&mut right, at, entry),
        _ => place(entries, at, entry),
    }
    right
}

impl<K: Clone + Ord, V: Clone> Map<K, V> {
    /// The number of entries.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether the two are copies of one map, neither written since. O(1); `false` means nothing.
    pub fn same(&self, other: &Self) -> bool {
        match (&self.root, &other.root) {
            (None, None) => true,
            (Some(a), Some(b)) => Arc::ptr_eq(a, b),
            _ => false,
        }
    }

    /// The entry that `order` looks for: `order` says how a key compares with the wanted one.
    pub fn find(&self, order: impl Fn(&K) -> Ordering) -> Option<(&K, &V)> {
        let mut page = self.root.as_deref()?;
        loop {
            match page {
                MapPage::Inner(children) => page = &children[child_of(children, &order)].1,
                MapPage::Leaf(entries) => {
                    let at = entries.binary_search_by(|(key, _)| order(key)).ok()?;
                    return Some((&entries[at].0, &entries[at].1));
                }
            }
        }
    }

    /// The value, to write to; its page is copied if shared. A missing key costs as much.
    pub fn find_mut(&mut self, order: impl Fn(&K) -> Ordering) -> Option<&mut V> {
        let mut link = self.root.as_mut()?;
        loop {
            match own(link) {
                MapPage::Inner(children) => {
                    let at = child_of(children, &order);
                    link = &mut children[at].1;
                }
                MapPage::Leaf(entries) => {
                    let at = entries.binary_search_by(|(key, _)| order(key)).ok()?;
                    return Some(&mut entries[at].1);
                }
            }
        }
    }

    /// Sets a value. Returns the previous one.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        let Some(root) = &mut self.root else {
            self.root = Some(Arc::new(MapPage::Leaf(vec![(key, value)])));
            self.len = 1;
            return None;
        };
        let (old, right) = insert(root, key, value);
        if let Some(right) = right {
            let left = std::mem::replace(root, Arc::new(MapPage::Inner(Vec::new())));
            *root = Arc::new(MapPage::Inner(vec![(left.first().clone(), left), right]));
        }
        self.len += usize::from(old.is_none());
        old
    }

    /// Removes the entry that `order` looks for. A missing key costs as much.
    pub fn remove(&mut self, order: impl Fn(&K) -> Ordering) -> Option<V> {
        self.remove_if(order, |_| Ok::<_, std::convert::Infallible>(())).unwrap_or_else(|never| match never {})
    }

    /// The same, if `permit` allows it.
    pub fn remove_if<E>(
        &mut self,
        order: impl Fn(&K) -> Ordering,
        permit: impl FnOnce(&V) -> Result<(), E>,
    ) -> Result<Option<V>, E> {
        let Some(root) = self.root.as_mut() else { return Ok(None) };
        let Some(old) = remove(root, &order, permit)? else { return Ok(None) };
        self.len -= 1;
        while let MapPage::Inner(children) = &**root
            && children.len() == 1
        {
            *root = children[0].1.clone();
        }
        if self.len == 0 {
            self.root = None;
        }
        Ok(Some(old))
    }

    /// A map of entries given in order, each key once. O(n).
    pub fn from_sorted(entries: impl Iterator<Item = (K, V)>) -> Self {
        let mut len = 0;
        let mut entries = entries.inspect(|_| len += 1).peekable();
        let mut pages: Vec<Link<K, V>> = Vec::new();
        while entries.peek().is_some() {
            pages.push(Arc::new(MapPage::Leaf(entries.by_ref().take(PAGE).collect())));
        }
        while pages.len() > 1 {
            let level = pages.chunks(PAGE).map(|chunk| {
                let children = chunk.iter().map(|page| (page.first().clone(), page.clone())).collect();
                Arc::new(MapPage::Inner(children))
            });
            pages = level.collect();
        }
        Self { root: pages.pop(), len }
    }

    /// All entries, in order.
    pub fn iter(&self) -> Iter<'_, K, V> {
        Iter { stack: self.root.as_deref().map(|page| (page, 0)).into_iter().collect() }
    }

    /// The entries from the first one whose key makes `before` false; `before` must be true for a prefix of the keys
    /// only.
    pub fn iter_from(&self, before: impl Fn(&K) -> bool) -> Iter<'_, K, V> {
        let mut stack = Vec::new();
        let mut page = self.root.as_deref();
        while let Some(now) = page {
            page = None;
            match now {
                MapPage::Leaf(entries) => stack.push((now, entries.partition_point(|(key, _)| before(key)))),
                MapPage::Inner(children) => {
                    let at = children[1..].partition_point(|(low, _)| before(low));
                    stack.push((now, at + 1));
                    page = Some(&children[at].1);
                }
            }
        }
        Iter { stack }
    }

    /// Calls `found` for each key whose entry may differ, in order, with the value that `self` has and the one that
    /// `other` has. Visits only pages that are not shared: O(pages that differ).
    pub fn diff<'a>(&'a self, other: &'a Self, found: &mut impl FnMut(&'a K, Option<&'a V>, Option<&'a V>)) {
        let (mut ours, mut theirs): (Vec<_>, Vec<_>) =
            (self.root.as_ref().into_iter().collect(), other.root.as_ref().into_iter().collect());
        let height = |pages: &[&Link<K, V>]| pages.first().map_or(0, |page| page.height());
        loop {
            (ours, theirs) = unshared(ours, theirs);
            let (a, b) = (height(&ours), height(&theirs));
            if a.max(b) == 0 {
                break;
            }
            if a >= b {
                ours = ours.into_iter().flat_map(children).collect();
            }
            if b >= a {
                theirs = theirs.into_iter().flat_map(children).collect();
            }
        }
        let mut ours = ours.into_iter().flat_map(entries).peekable();
        let mut theirs = theirs.into_iter().flat_map(entries).peekable();
        loop {
            let order = match (ours.peek(), theirs.peek()) {
                (None, None) => return,
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some((a, _)), Some((b, _))) => a.cmp(b),
            };
            let a = if order.is_le() { ours.next() } else { None };
            let b = if order.is_ge() { theirs.next() } else { None };
            if let Some((key, _)) = a.or(b) {
                found(key, a.map(|(_, value)| value), b.map(|(_, value)| value));
            }
        }
    }
}

fn children<K, V>(page: &Link<K, V>) -> impl Iterator<Item = &Link<K, V>> {
    let children = match &**page {
        MapPage::Inner(children) => children.as_slice(),
        MapPage::Leaf(_) => &[],
    };
    children.iter().map(|(_, page)| page)
}

fn entries<K, V>(page: &Link<K, V>) -> impl Iterator<Item = (&K, &V)> {
    let entries = match &**page {
        MapPage::Leaf(entries) => entries.as_slice(),
        MapPage::Inner(_) => &[],
    };
    entries.iter().map(|(key, value)| (key, value))
}

/// Both lists without the pages that are in both. Both are ordered by first key, which a shared page has in both.
fn unshared<'a, K: Clone + Ord, V: Clone>(
    a: Links<'a, K, V>,
    b: Links<'a, K, V>,
) -> (Links<'a, K, V>, Links<'a, K, V>) {
    let (mut left, mut right) = (Vec::new(), Vec::new());
    let (mut a, mut b) = (a.into_iter().peekable(), b.into_iter().peekable());
    loop {
        let order = match (a.peek(), b.peek()) {
            (Some(x), Some(y)) if Arc::ptr_eq(x, y) => {
                a.next();
                b.next();
                continue;
            }
            (Some(x), Some(y)) => x.first().cmp(y.first()),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => return (left, right),
        };
        if order.is_le() {
            left.extend(a.next());
        }
        if order.is_ge() {
            right.extend(b.next());
        }
    }
}

/// Inserts below `link`. Returns the old value, and the page that was split off, with its first key.
fn insert<K: Clone + Ord, V: Clone>(link: &mut Link<K, V>, key: K, value: V) -> (Option<V>, Option<Child<K, V>>) {
    match own(link) {
        MapPage::Leaf(entries) => match entries.binary_search_by(|(known, _)| known.cmp(&key)) {
            Ok(at) => (Some(std::mem::replace(&mut entries[at].1, value)), None),
            Err(at) if entries.len() < PAGE => {
                place(entries, at, (key, value));
                (None, None)
            }
            Err(at) => {
                let right = split(entries, at, (key, value));
                (None, Some((right[0].0.clone(), Arc::new(MapPage::Leaf(right)))))
            }
        },
        MapPage::Inner(children) => {
            let at = child_of(children, &|low: &K| low.cmp(&key));
            let (old, right) = insert(&mut children[at].1, key, value);
            let Some(right) = right else { return (old, None) };
            if children.len() < PAGE {
                place(children, at + 1, right);
                return (old, None);
            }
            let right = split(children, at + 1, right);
            (old, Some((right[0].0.clone(), Arc::new(MapPage::Inner(right)))))
        }
    }
}

fn remove<K: Clone + Ord, V: Clone, E>(
    link: &mut Link<K, V>,
    order: &impl Fn(&K) -> Ordering,
    permit: impl FnOnce(&V) -> Result<(), E>,
) -> Result<Option<V>, E> {
    match own(link) {
        MapPage::Leaf(entries) => {
            let Ok(at) = entries.binary_search_by(|(key, _)| order(key)) else { return Ok(None) };
            permit(&entries[at].1)?;
            Ok(Some(entries.remove(at).1))
        }
        MapPage::Inner(children) => {
            let at = child_of(children, order);
            let Some(old) = remove(&mut children[at].1, order, permit)? else { return Ok(None) };
            let left = children[at].1.len();
            if left == 0 {
                children.remove(at);
            } else if left < SPARSE {
                merge(children, at);
            }
            Ok(Some(old))
        }
    }
}

/// Merges the sparse child at `at` with a neighbour, if there is one that has room.
fn merge<K: Clone + Ord, V: Clone>(children: &mut Vec<Child<K, V>>, at: usize) {
    let fits = |left: usize| {
        children.get(left + 1).is_some_and(|_| children[left].1.len() + children[left + 1].1.len() <= MERGED)
    };
    let left = match at.checked_sub(1) {
        _ if fits(at) => at,
        Some(before) if fits(before) => before,
        _ => return,
    };
    let (low, right) = children.remove(left + 1);
    let right = Arc::try_unwrap(right).unwrap_or_else(|shared| match &*shared {
        MapPage::Leaf(entries) => MapPage::Leaf(entries.clone()),
        MapPage::Inner(children) => MapPage::Inner(children.clone()),
    });
    match (own(&mut children[left].1), right) {
        (MapPage::Leaf(entries), MapPage::Leaf(more)) => entries.extend(more),
        (MapPage::Inner(children), MapPage::Inner(mut more)) => {
            // As a first child, its bound was ignored and may be anything.
            if let Some(first) = more.first_mut() {
                first.0 = low;
            }
            children.extend(more);
        }
        _ => unreachable!("the pages of one level are of one kind"),
    }
}

/// See [`Map::iter`].
pub struct Iter<'a, K, V> {
    /// The pages from the root to the leaf, each with the position of the next entry.
    stack: Vec<(&'a MapPage<K, V>, usize)>,
}

impl<'a, K, V> Iterator for Iter<'a, K, V> {
    type Item = (&'a K, &'a V);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let (page, at) = self.stack.last_mut()?;
            match page {
                MapPage::Leaf(entries) => {
                    if let Some((key, value)) = entries.get(*at) {
                        *at += 1;
                        return Some((key, value));
                    }
                    self.stack.pop();
                }
                MapPage::Inner(children) => match children.get(*at) {
                    Some((_, child)) => {
                        *at += 1;
                        self.stack.push((child, 0));
                    }
                    None => drop(self.stack.pop()),
                },
            }
        }
    }
}

impl<K: Clone + Ord, V: Clone + PartialEq> PartialEq for Map<K, V> {
    fn eq(&self, other: &Self) -> bool {
        self.same(other) || (self.len == other.len && self.iter().eq(other.iter()))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn check(map: &Map<u32, u32>, model: &BTreeMap<u32, u32>) {
        assert_eq!(map.len(), model.len());
        assert!(map.iter().eq(model.iter()));
    }

    #[test]
    fn random_operations_agree_with_a_plain_map_and_copies_do_not_change() {
        let mut rng = fastrand::Rng::with_seed(7);
        for round in 0..40 {
            let span = [20, 300, 5000][round % 3];
            let (mut map, mut model) = (Map::default(), BTreeMap::new());
            let mut copies = Vec::new();
            for step in 0..4000 {
                let key = rng.u32(..span);
                // Waves of growth and shrinking.
                if rng.u32(..10) < if step / 1000 % 2 == 0 { 7 } else { 2 } {
                    assert_eq!(map.insert(key, step), model.insert(key, step));
                } else {
                    assert_eq!(map.remove(|k| k.cmp(&key)), model.remove(&key));
                }
                if let Some(value) = map.find_mut(|k| k.cmp(&key)) {
                    *value += 1;
                    *model.get_mut(&key).unwrap() += 1;
                }
                assert_eq!(map.find(|k| k.cmp(&key)), model.get_key_value(&key));
                if step % 500 == 0 {
                    copies.push((map.clone(), model.clone()));
                    let from = rng.u32(..span);
                    assert!(map.iter_from(|k| *k < from).eq(model.range(from..)));
                }
            }
            copies.push((map, model));
            copies.iter().for_each(|(map, model)| check(map, model));
            for ((map, model), (next, next_model)) in copies.iter().zip(&copies[1..]) {
                let mut changed = Vec::new();
                map.diff(next, &mut |key, a, b| {
                    assert_eq!((a, b), (model.get(key), next_model.get(key)));
                    changed.push(*key);
                });
                assert!(changed.is_sorted());
                let all: std::collections::BTreeSet<u32> = model.keys().chain(next_model.keys()).copied().collect();
                for key in all.iter().filter(|key| model.get(key) != next_model.get(key)) {
                    assert!(changed.binary_search(key).is_ok(), "{key}");
                }
                let built = Map::from_sorted(model.iter().map(|(k, v)| (*k, *v)));
                check(&built, model);
                assert!(built == *map);
            }
        }
    }

    #[test]
    fn ranges_that_go_and_come_again_over_many_pages_leave_all_keys_in_reach() {
        let mut rng = fastrand::Rng::with_seed(3);
        for _ in 0..20 {
            let (mut map, mut model) = (Map::default(), BTreeMap::new());
            for key in 0..6000 {
                map.insert(key, key);
                model.insert(key, key);
            }
            for step in 0..60 {
                let (from, n) = (rng.u32(0..6000), rng.u32(1..1500));
                let keys: Vec<u32> = (from..(from + n).min(6000)).collect();
                // Down and up, so that pages empty and fill from either end.
                let down = rng.bool();
                for at in 0..keys.len() {
                    let key = keys[if down { keys.len() - 1 - at } else { at }];
                    if step % 3 == 2 {
                        assert_eq!(map.insert(key, step), model.insert(key, step));
                    } else {
                        assert_eq!(map.remove(|k| k.cmp(&key)), model.remove(&key));
                    }
                }
                for key in (0..6000).step_by(7) {
                    assert_eq!(map.find(|k| k.cmp(&key)), model.get_key_value(&key), "{key}");
                }
                check(&map, &model);
            }
        }
    }

    #[test]
    fn comparing_copies_costs_what_differs() {
        let mut map = Map::from_sorted((0..100_000_u32).map(|n| (n, n)));
        let before = map.clone();
        map.insert(50_000, 1);
        let mut visited = 0;
        before.diff(&map, &mut |_, _, _| visited += 1);
        assert!((1..=PAGE).contains(&visited), "{visited}");
    }
}
