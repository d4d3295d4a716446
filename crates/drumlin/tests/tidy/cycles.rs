//! Cycles between files: within a layer, a package or the tests, no file uses a file that uses it, directly or through
//! others.
//!
//! A file uses another if it imports something that the other defines, or names that by a path. A re-exported name is
//! used from the file that defines it; the re-export itself does not count. Nor do unit tests. In Python every import
//! counts, those within functions and those for types only, too. In Rust a call of a method uses the file that defines the
//! method, if it is the only one of its name among all sources, and types of libraries have none of that name.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::{LAYERS, core, files};

/// Methods of ours that types of libraries have by the same names, so that a call does not tell whose it is.
const COMMON: [&str; 11] =
    ["entry", "extend", "fields", "fold", "for_each", "is_none", "is_null", "or", "pause", "wait", "write_str"];

/// Source texts of modules, by paths such as `catalog/tree`.
type Sources = BTreeMap<String, String>;
/// For each module the modules that it uses, with the names that it uses from them.
type Uses = BTreeMap<String, BTreeMap<String, BTreeSet<String>>>;

#[test]
fn files_of_a_layer_do_not_use_each_other() {
    let uses = rust_uses(&sources(&core(), "", &["rs"]), &Sources::new());
    let wrong: Vec<String> = LAYERS.iter().flat_map(|layer| complaints(&uses, layer)).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn files_above_the_core_do_not_use_each_other() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let mut wrong = Vec::new();
    let below = sources(&core(), "", &["rs"]);
    for folder in ["crates/drumlin-cli/src", "crates/drumlin-ui/src", "crates/drumlin/tests/it", "python/src"] {
        let found = complaints(&rust_uses(&sources(&root.join(folder), "", &["rs"]), &below), "");
        wrong.extend(found.iter().map(|cycle| format!("{folder}: {cycle}")));
    }
    for (folder, package) in [("python/drumlin", "drumlin"), ("python/tests", "")] {
        let found = complaints(&python_uses(&sources(&root.join(folder), package, &["py", "pyi"])), "");
        wrong.extend(found.iter().map(|cycle| format!("{folder}: {cycle}")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The modules in the files below `folder`, which is the module `top`. A stub of Python is a module without text.
fn sources(folder: &Path, top: &str, extensions: &[&str]) -> Sources {
    let mut found = Sources::new();
    for file in files(folder, extensions) {
        let inside = file.strip_prefix(folder).unwrap();
        let mut names: Vec<&str> = inside.iter().map(|name| name.to_str().unwrap()).collect();
        let stem = file.file_stem().unwrap().to_str().unwrap();
        names.pop();
        names.extend((!["mod", "lib", "main", "__init__"].contains(&stem)).then_some(stem));
        let module = join(top, &names.join("/"));
        if names.contains(&"tests") {
            continue;
        } else if file.extension().is_some_and(|extension| extension == "pyi") {
            found.entry(module).or_default();
        } else {
            found.insert(module, std::fs::read_to_string(&file).unwrap());
        }
    }
    found
}

fn join(module: &str, below: &str) -> String {
    if module.is_empty() || below.is_empty() { format!("{module}{below}") } else { format!("{module}/{below}") }
}

fn parent(module: &str) -> &str {
    module.rsplit_once('/').map_or("", |(parent, _)| parent)
}

/// One text for each cycle among the modules at and below `top`.
fn complaints(uses: &Uses, top: &str) -> Vec<String> {
    let inside = |module: &str| top.is_empty() || module == top || module.starts_with(&format!("{top}/"));
    let mut reached: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for module in uses.keys().filter(|module| inside(module)) {
        let (mut all, mut left) = (BTreeSet::new(), vec![module.as_str()]);
        while let Some(from) = left.pop() {
            let next = uses.get(from).into_iter().flat_map(BTreeMap::keys).map(String::as_str);
            left.extend(next.filter(|to| inside(to) && all.insert(*to)));
        }
        reached.insert(module, all);
    }
    let mutual = |a: &&str, b: &&str| reached[a].contains(b) && reached.get(b).is_some_and(|all| all.contains(a));
    let mut cycles = BTreeSet::new();
    for module in reached.keys() {
        cycles.insert(reached[module].iter().copied().filter(|other| mutual(module, other)).collect::<Vec<_>>());
    }
    let complain = |cycle: &Vec<&str>| {
        let mut lines = vec![format!("a cycle of files: {}", cycle.join(", "))];
        for from in cycle {
            for (to, names) in uses[*from].iter().filter(|(to, _)| cycle.contains(&to.as_str())) {
                let names = names.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
                lines.push(format!("  {from} uses {names} of {to}"));
            }
        }
        lines.push("  move what they share to the file that it belongs to, or to one of its own".to_owned());
        lines.join("\n")
    };
    cycles.iter().filter(|cycle| !cycle.is_empty()).map(complain).collect()
}

/// A Rust file.
#[derive(Default)]
struct RustFile {
    /// What it defines at its top level.
    defined: BTreeSet<String>,
    /// What it imports, re-exports included: the paths by the names that they get.
    imported: BTreeMap<String, Vec<Vec<String>>>,
    /// Paths that it uses.
    used: BTreeSet<Vec<String>>,
    /// The methods that it defines, of types and of traits.
    methods: BTreeSet<String>,
    /// The methods that it calls.
    calls: BTreeSet<String>,
}

/// What the modules of `sources` use of each other, which may use what is `below` them.
fn rust_uses(sources: &Sources, below: &Sources) -> Uses {
    let libraries: Vec<RustFile> = below.values().map(|text| parse(text)).collect();
    let files: BTreeMap<&str, RustFile> = sources.iter().map(|(module, text)| (module.as_str(), parse(text))).collect();
    // Of each method where it is defined, or `None` below.
    let mut methods: BTreeMap<&str, Vec<Option<&str>>> = BTreeMap::new();
    let known = files.iter().map(|(module, file)| (Some(*module), file));
    for (module, file) in known.chain(libraries.iter().map(|file| (None, file))) {
        file.methods.iter().for_each(|name| methods.entry(name).or_default().push(module));
    }
    let mut uses = Uses::new();
    for (module, file) in &files {
        for call in file.calls.iter().filter(|call| !COMMON.contains(&call.as_str())) {
            if let Some([Some(to)]) = methods.get(call.as_str()).map(Vec::as_slice)
                && to != module
            {
                let names = uses.entry((*module).to_owned()).or_default().entry((*to).to_owned()).or_default();
                names.insert(format!(".{call}"));
            }
        }
        for path in &file.used {
            if let Some(to) = defining(&files, module, path, 8).filter(|to| to != module) {
                let names = uses.entry((*module).to_owned()).or_default().entry(to).or_default();
                names.extend(path.last().cloned());
            }
        }
    }
    uses
}

/// The module that defines what `path` names in the module `from`, if it is one of `files`.
fn defining(files: &BTreeMap<&str, RustFile>, from: &str, path: &[String], steps: usize) -> Option<String> {
    let (mut module, mut rest) = match path.first()?.as_str() {
        "crate" => (String::new(), &path[1..]),
        "self" => (from.to_owned(), &path[1..]),
        "super" => {
            let ups = path.iter().take_while(|name| *name == "super").count();
            ((0..ups).fold(from, |module, _| parent(module)).to_owned(), &path[ups..])
        }
        child if files.contains_key(join(from, child).as_str()) => (from.to_owned(), path),
        _ => return None,
    };
    let defines = |module: &str, name: &str| files.get(module).is_some_and(|file| file.defined.contains(name));
    while let Some((name, more)) = rest.split_first() {
        let child = join(&module, name);
        let is_item = more.is_empty() && defines(&module, name);
        if is_item || !files.contains_key(child.as_str()) {
            break;
        }
        (module, rest) = (child, more);
    }
    let (Some(name), file) = (rest.first(), files.get(module.as_str())?) else { return Some(module) };
    if module == from || steps == 0 || defines(&module, name) {
        return Some(module);
    }
    let mut named = file.imported.get(name).into_iter().flatten();
    let named = named.find_map(|path| defining(files, &module, path, steps - 1));
    let any = || {
        let paths = file.imported.get("*").into_iter().flatten();
        let mut of = paths.filter_map(|path| defining(files, &module, &[path, &rest[..1]].concat(), steps - 1));
        of.find(|of| defines(of, name))
    };
    named.or_else(any).or_else(|| Some(module.clone()))
}

fn parse(text: &str) -> RustFile {
    let tokens = without_tests(tokens(text));
    let mut file = RustFile::default();
    let (mut exported, mut words, mut depth, mut at) = (Vec::new(), BTreeSet::new(), 0, 0);
    // Whether it is in an `impl` or a `trait`, or at its head.
    let mut composes = false;
    while let Some(token) = tokens.get(at) {
        let before = if at == 0 { "" } else { tokens[at - 1] };
        let after = tokens.get(at + 1).copied().unwrap_or_default();
        at += 1;
        match *token {
            "use" if after != "<" => {
                let mut paths = Vec::new();
                at = import(&tokens, at, &[], &mut paths);
                for (name, path) in paths {
                    match before {
                        "pub" | ")" => exported.push((name.clone(), path.clone())),
                        _ => drop(file.used.insert(path.clone())),
                    }
                    file.imported.entry(name).or_default().push(path);
                }
            }
            "{" => depth += 1,
            "}" => depth -= 1,
            // Who sees an item is not what it uses.
            "in" if before == "(" => at += tokens[at..].iter().take_while(|token| **token != ")").count(),
            "impl" if depth == 0 => composes = true,
            "fn" if depth == 1 && composes => {
                file.methods.extend(has_receiver(&tokens[at..]).then(|| after.to_owned()));
            }
            word if before == "." && is_word(word) && ["(", "::"].contains(&after) => {
                file.calls.insert(word.to_owned());
            }
            "struct" | "enum" | "trait" | "fn" | "const" | "static" | "type" | "union" if depth == 0 => {
                composes = *token == "trait";
                file.defined.insert(after.to_owned());
            }
            "macro_rules" => drop(file.defined.insert(tokens[at + 1].to_owned())),
            word if is_word(word) && !["::", ".", "mod", "fn"].contains(&before) => {
                let mut path = vec![word.to_owned()];
                while tokens.get(at) == Some(&"::") && tokens.get(at + 1).is_some_and(|next| is_word(next)) {
                    path.push(tokens[at + 1].to_owned());
                    at += 2;
                }
                words.insert(word.to_owned());
                file.used.extend((path.len() > 1).then_some(path));
            }
            _ => {}
        }
    }
    // What is re-exported may also be used here.
    file.used.extend(exported.into_iter().filter(|(name, _)| words.contains(name)).map(|(_, path)| path));
    file
}

/// Whether the function whose name and parameters follow takes `self`.
fn has_receiver(tokens: &[&str]) -> bool {
    let parameters = tokens.iter().skip_while(|token| **token != "(").skip(1);
    let mut first = parameters.take_while(|token| ![",", ")", ":"].contains(token));
    first.any(|token| *token == "self")
}

/// Adds the paths of the import that begins at `at`, each with the name it gets; returns the place after it.
fn import(tokens: &[&str], mut at: usize, above: &[String], paths: &mut Vec<(String, Vec<String>)>) -> usize {
    let mut path = above.to_vec();
    loop {
        let token = tokens[at];
        at += 1;
        match token {
            "{" => {
                while tokens[at] != "}" {
                    at = import(tokens, at, &path, paths);
                    at += usize::from(tokens[at] == ",");
                }
                return at + 1;
            }
            "::" => {}
            "self" if !above.is_empty() && path.len() == above.len() => {}
            "*" => {
                paths.push(("*".to_owned(), path));
                return at;
            }
            "as" => {
                paths.push((tokens[at].to_owned(), path));
                return at + 1;
            }
            word if is_word(word) => path.push(word.to_owned()),
            _ => {
                paths.extend(path.last().cloned().map(|name| (name, path)));
                return at - 1;
            }
        }
    }
}

fn is_word(token: &str) -> bool {
    token.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// Words, `::` and single characters; no comments and no literals.
fn tokens(text: &str) -> Vec<&str> {
    let (mut found, mut rest) = (Vec::new(), text);
    while let Some(first) = rest.chars().next() {
        let in_word = |c: char| c.is_alphanumeric() || c == '_';
        let raw = rest.trim_start_matches(['b', 'r']).trim_start_matches('#');
        let opening = &rest[..rest.len() - raw.len()];
        let [second, third] = [1, 2].map(|n| rest.chars().nth(n));
        let (skipped, bytes) = if rest.starts_with("//") {
            (true, rest.find('\n').unwrap_or(rest.len()))
        } else if raw.starts_with('"') && ["r", "br"].contains(&opening.trim_end_matches('#')) {
            let end = format!("\"{}", "#".repeat(opening.matches('#').count()));
            (true, opening.len() + 1 + raw[1..].find(&end).map_or(raw.len() - 1, |at| at + end.len()))
        } else if first == '"' {
            (true, 1 + closed(&rest[1..], "\""))
        } else if first == '\'' && second == Some('\\') {
            (true, 1 + closed(&rest[1..], "'"))
        } else if first == '\'' && third == Some('\'') {
            (true, 2 + second.map_or(0, char::len_utf8))
        } else if in_word(first) {
            (false, rest.find(|c| !in_word(c)).unwrap_or(rest.len()))
        } else {
            (first.is_whitespace(), if rest.starts_with("::") { 2 } else { first.len_utf8() })
        };
        found.extend((!skipped).then_some(&rest[..bytes]));
        rest = &rest[bytes..];
    }
    found
}

/// The bytes up to the end of a literal, `quote` included, where a backslash escapes the next character.
fn closed(text: &str, quote: &str) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        if !escaped && text[at..].starts_with(quote) {
            return at + quote.len();
        }
        escaped = !escaped && c == '\\';
    }
    text.len()
}

fn without_tests(mut tokens: Vec<&str>) -> Vec<&str> {
    while let Some(start) = tokens.windows(7).position(|some| some.concat() == "#[cfg(test)]") {
        let mut depth = 0;
        let ends = |token: &&str| {
            depth += i32::from(*token == "{") - i32::from(*token == "}");
            depth == 0 && [";", "}"].contains(token)
        };
        let end = tokens[start..].iter().position(ends).map_or(tokens.len(), |at| start + at + 1);
        tokens.drain(start..end);
    }
    tokens
}

/// An import of Python: the module, and the name in it with the name that it gets, unless the module itself is imported.
type Import = (String, Option<(String, String)>);

fn python_uses(sources: &Sources) -> Uses {
    let imports: BTreeMap<&str, Vec<Import>> =
        sources.iter().map(|(module, text)| (module.as_str(), python_imports(sources, module, text))).collect();
    let mut uses = Uses::new();
    for (module, all) in &imports {
        for (of, name) in all {
            let to = python_defining(&imports, of, name.as_ref().map(|(name, _)| name.as_str()), 8);
            if let Some(to) = to.filter(|to| to != module) {
                let name = name.as_ref().map_or("the module", |(name, _)| name.as_str());
                uses.entry((*module).to_owned()).or_default().entry(to).or_default().insert(name.to_owned());
            }
        }
    }
    uses
}

fn python_defining(
    imports: &BTreeMap<&str, Vec<Import>>,
    module: &str,
    name: Option<&str>,
    steps: usize,
) -> Option<String> {
    let Some(name) = name else { return imports.contains_key(module).then(|| module.to_owned()) };
    let below = join(module, name);
    if imports.contains_key(below.as_str()) {
        return Some(below);
    }
    let exported = imports.get(module)?.iter().find_map(|(of, import)| {
        let (original, _) = import.as_ref().filter(|(_, known)| known == name && steps > 0)?;
        python_defining(imports, of, Some(original), steps - 1)
    });
    exported.or_else(|| Some(module.to_owned()))
}

/// All imports of `module`, wherever they stand.
fn python_imports(sources: &Sources, module: &str, text: &str) -> Vec<Import> {
    let mut found = Vec::new();
    for line in statements(text) {
        let named = |part: &str| {
            let mut words = part.split_whitespace();
            words.next().map(|name| (name.to_owned(), words.last().unwrap_or(name).to_owned()))
        };
        if let Some((of, names)) = line.strip_prefix("from ").and_then(|line| line.split_once(" import ")) {
            let path = of.trim().trim_start_matches('.');
            let dots = of.trim().len() - path.len();
            let is_package = sources.keys().any(|other| other != module && parent(other) == module);
            let above = (usize::from(is_package)..dots).fold(module, |module, _| parent(module));
            let of = join(if dots == 0 { "" } else { above }, &path.replace('.', "/"));
            found.extend(names.split(',').filter_map(named).map(|names| (of.clone(), Some(names))));
        } else if let Some(modules) = line.strip_prefix("import ") {
            found.extend(modules.split(',').filter_map(named).map(|(of, _)| (of.replace('.', "/"), None)));
        }
    }
    found
}

/// The statements of Python, each in one line, without indentation, comments, texts and brackets.
fn statements(text: &str) -> Vec<String> {
    let (mut found, mut line, mut depth, mut rest) = (Vec::new(), String::new(), 0, text);
    while let Some(first) = rest.chars().next() {
        let quote = ["\"\"\"", "'''", "\"", "'"].into_iter().find(|quote| rest.starts_with(quote));
        let mut bytes = first.len_utf8();
        match (first, quote) {
            (_, Some(quote)) => bytes = quote.len() + closed(&rest[quote.len()..], quote),
            ('#', _) => bytes = rest.find('\n').unwrap_or(rest.len()),
            ('\\', _) => bytes = 2.min(rest.len()),
            ('\n', _) if depth == 0 => found.push(std::mem::take(&mut line)),
            _ => {
                depth += i32::from("([{".contains(first)) - i32::from(")]}".contains(first));
                line.push(if "([{)]}\n".contains(first) { ' ' } else { first });
            }
        }
        rest = &rest[bytes..];
    }
    found.push(line);
    found.into_iter().map(|line| line.trim().to_owned()).filter(|line| !line.is_empty()).collect()
}

mod tests {
    use super::*;

    fn rust_uses_alone(sources: &Sources) -> Uses {
        rust_uses(sources, &Sources::new())
    }

    fn sources(texts: &[(&str, &str)]) -> Sources {
        texts.iter().map(|(module, text)| ((*module).to_owned(), (*text).to_owned())).collect()
    }

    #[test]
    fn a_cycle_through_a_re_export_is_noticed() {
        let block = "mod reader;\nmod writer;\npub use reader::row_group;\npub use writer::{Written, Written as Put};";
        let uses = |reader: &str| {
            rust_uses_alone(&sources(&[
                ("", "mod block;\npub use block::*;"),
                ("block", block),
                ("block/reader", &format!("{reader}\npub fn row_group() {{}}")),
                ("block/writer", "use super::row_group;\npub struct Written;"),
            ]))
        };
        for (name, reader) in [
            ("Put", "use super::{Put};"),
            ("Put", "fn f<'a>(_: &'a super::Put) {}"),
            ("Written", "use crate::Written;"),
            ("Written", "use crate::block::{self, writer::{Written as W}};"),
        ] {
            let expected = format!(
                "a cycle of files: block/reader, block/writer\n  \
                block/reader uses {name} of block/writer\n  block/writer uses row_group of block/reader\n"
            );
            let found = complaints(&uses(reader), "block");
            assert!(found.len() == 1 && found[0].starts_with(&expected), "{found:?}");
            assert_eq!(complaints(&uses(reader), "table"), [""; 0]);
        }
        for reader in [
            "pub use super::Put;",
            "/// See [`super::Put`].\nconst TEXT: (&str, char) = (\"super::Put \\\" {\", '\"');",
            "#[cfg(test)]\nmod tests { use crate::Written; fn of(_: super::super::Put) {} }",
        ] {
            assert_eq!(complaints(&uses(reader), ""), [""; 0], "{reader}");
        }
    }

    #[test]
    fn a_module_that_uses_what_is_below_it_is_in_a_cycle_if_that_uses_it() {
        let files =
            |child| sources(&[("a", "mod b;\npub struct A;\nfn f() { b::g::<u8>(r#\"\"\"#) }"), ("a/b", child)]);
        for child in ["use super::A;", "use crate::{a::{self, A}, x};", "fn g(_: crate::a::A) {}"] {
            assert_eq!(complaints(&rust_uses_alone(&files(child)), "a").len(), 1, "{child}");
        }
        assert_eq!(complaints(&rust_uses_alone(&files("pub fn g<T>(_: T) {}")), "a"), [""; 0]);
        let exported = |top| sources(&[("a", top), ("a/b", "use super::A;\npub struct B;")]);
        assert_eq!(complaints(&rust_uses_alone(&exported("pub use b::B;\npub struct A;")), "a"), [""; 0]);
        assert_eq!(complaints(&rust_uses_alone(&exported("pub use b::B;\npub struct A(B);")), "a").len(), 1);
    }

    #[test]
    fn a_cycle_through_method_calls_is_noticed() {
        let a = "pub struct A;\nimpl A {\n    pub fn first<'a>(&'a mut self) { self.second::<u8>() }\n    fn third(n: u8) {}\n}";
        let files = |b: &str| sources(&[("x/a", a), ("x/b", b), ("x/c", "trait C { fn third(self); }")]);
        let b = "impl super::a::A {\n    pub fn second<T>(self: &mut Self) {}\n}";
        let found = complaints(&rust_uses_alone(&files(b)), "x");
        assert!(found.len() == 1 && found[0].contains("x/a uses .second of x/b"), "{found:?}");
        for none in [
            // A field, a function without a receiver, a name that is not the only one, and none that is ours.
            "fn f(a: super::a::A) { a.first; third(1); a.len() }",
            "impl super::a::A {\n    pub fn second(this: &Self) {}\n}",
            "impl super::a::A {\n    pub fn second(&self) {}\n}\nimpl B {\n    pub fn first(&self) {}\n}",
        ] {
            let mut sources = files(none);
            sources.insert("x/d".to_owned(), "impl D {\n    fn second(&self) {}\n}".to_owned());
            assert_eq!(complaints(&rust_uses_alone(&sources), "x"), [""; 0], "{none}");
        }
    }

    #[test]
    fn cycles_of_python_are_noticed() {
        let files = |store| {
            sources(&[
                ("p", "from p._store import Store as Shop\nfrom p._table import Table\n"),
                ("p/_core", ""),
                ("p/_store", store),
                ("p/_table", "from . import (  # both\n    Shop,\n    _core,\n)\n"),
            ])
        };
        for store in [
            "from p._table import Table",
            "import p._table",
            "try:\n    from . import Table\nexcept A:\n    pass",
            "if TYPE_CHECKING:\n    import p._table",
            "class A:\n    def f(\n        a,\n    ):\n        from p import Table  # once it is needed",
        ] {
            let found = complaints(&python_uses(&files(store)), "");
            assert_eq!(found.len(), 1, "{store}: {found:?}");
            assert!(found[0].contains("p/_table uses Shop of p/_store"), "{found:?}");
        }
        let none = "'''\nimport p._table\n'''\nfrom p import _core\n\n\
            def f(\n    a,\n):\n    r'''\n    >>> from p import Table\n    '''\n    # import p._table\n    import json\n";
        assert_eq!(complaints(&python_uses(&files(none)), ""), [""; 0]);
    }
}
