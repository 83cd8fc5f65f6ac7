//! The map of the house, held against the code: who may import whom, and how large a file may be.

use std::path::{Path, PathBuf};

const LINES_MAX: usize = 500;

/// Each room and the rooms it may import, as ARCHITECTURE.md says.
fn arrows() -> Vec<(String, Vec<String>)> {
    let page = read(&source().join("../../../ARCHITECTURE.md"));
    let (_, table) = page.split_once("| room | may import |\n|---|---|\n").expect("the table");
    let names = |cell: &str| cell.split('`').skip(1).step_by(2).map(str::to_owned).collect();
    let rooms = table.lines().map_while(|line| line.strip_prefix("| ")?.split_once(" | "));
    rooms.map(|(room, allowed)| (room.trim_matches('`').to_owned(), names(allowed))).collect()
}

#[test]
fn every_import_follows_an_arrow() {
    let files = rust_files(&source());
    assert!(files.len() > 30, "only {} files found", files.len());
    let wrong: Vec<_> =
        files.iter().flat_map(|path| forbidden_imports(path, &read(path))).collect();
    assert!(wrong.is_empty(), "forbidden imports:\n{}", wrong.join("\n"));
}

#[test]
fn a_forbidden_import_is_found() {
    let inside = |room: &str| source().join(room).join("file.rs");
    let found = forbidden_imports(&inside("domain"), "use crate::store::Store;");
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(forbidden_imports(&inside("orders"), "crate::http::ApiError").len(), 1);
    assert_eq!(forbidden_imports(&inside("partner"), "use crate::{ops, server};").len(), 2);
    assert!(forbidden_imports(&inside("orders"), "use crate::store::Store;").is_empty());
    assert!(forbidden_imports(&inside("store"), "use crate::store::records;").is_empty());
}

#[test]
fn every_arrow_is_used() {
    let files = rust_files(&source());
    for (room, allowed) in arrows() {
        let imported: Vec<_> = files
            .iter()
            .filter(|path| room_of(path) == room)
            .flat_map(|path| imported_rooms(&read(path)))
            .collect();
        for arrow in allowed {
            assert!(imported.contains(&arrow), "{room} does not import {arrow}");
        }
    }
}

#[test]
fn arrows_lead_up_and_never_round() {
    let mut above = Vec::new();
    for (room, allowed) in arrows() {
        let below: Vec<_> = allowed.iter().filter(|arrow| !above.contains(*arrow)).collect();
        assert!(below.is_empty(), "{room} leads to {below:?}, which come after it");
        above.push(room);
    }
}

#[test]
fn every_room_has_its_arrows() {
    let arrows = arrows();
    for entry in std::fs::read_dir(source()).unwrap() {
        let path = entry.unwrap().path();
        let room = room_of(&path);
        let known = room == "lib" || arrows.iter().any(|(name, _)| *name == room);
        assert!(known, "{room} is missing in the table of arrows");
    }
}

/// They meet on the wire, as real merchants do: a wrong field name fails a test instead of agreeing
/// with itself.
#[test]
fn merchants_link_nothing_of_the_service() {
    let crates = source().join("../..");
    for (party, links) in [("client", &[][..]), ("merchant", &["svc-client"])] {
        let manifest = read(&crates.join(party).join("Cargo.toml"));
        let ours: Vec<_> = manifest
            .lines()
            .filter(|line| line.starts_with("svc-"))
            .filter_map(|line| line.split([' ', '.']).next())
            .collect();
        assert_eq!(ours, links, "{party}");
    }
}

#[test]
fn files_are_small_and_say_what_they_are_for() {
    let workspace = source().join("../../..");
    let files: Vec<_> = ["crates", "bench", "fuzz"]
        .iter()
        .flat_map(|part| rust_files(&workspace.join(part)))
        .collect();
    for path in files {
        let text = read(&path);
        let lines = text.lines().count();
        assert!(lines <= LINES_MAX, "{} has {lines} lines", path.display());
        assert!(text.starts_with("//!"), "{} does not say what it is for", path.display());
    }
}

#[test]
fn both_engines_have_the_same_tables_in_the_same_order() {
    let tables = |engine: &str| {
        let directory = source().join("store/migrations").join(engine);
        let mut files: Vec<_> =
            std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        // What one engine alone needs carries its name, and its number is not used by the other.
        let own = [format!("__{engine}_"), format!("__adds_{engine}_")];
        files.retain(|path| !own.iter().any(|own| path.to_string_lossy().contains(own)));
        let statements = files.iter().flat_map(|path| {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            let text = read(path);
            let named = text
                .lines()
                .filter(|line| line.starts_with("create "))
                .map(|line| line.split('(').next().unwrap().trim().to_owned());
            std::iter::once(name).chain(named.collect::<Vec<_>>())
        });
        statements.collect::<Vec<_>>()
    };
    assert_eq!(tables("sqlite"), tables("postgres"));
}

/// The macro gives each call its time (decision 0036): one that goes by itself may wait for ever.
#[test]
fn nothing_asks_postgresql_but_the_macro_that_gives_it_a_time() {
    for path in rust_files(&source().join("store")) {
        let in_the_room = path.parent().is_some_and(|folder| folder.ends_with("store"));
        if in_the_room && !path.ends_with("store/mod.rs") {
            let text = read(&path).replace("Engine::Postgres(_)", "");
            assert!(!text.contains("Engine::Postgres("), "{}", path.display());
        }
    }
}

/// Every `crate::room` that the file's room has no arrow to.
fn forbidden_imports(path: &Path, text: &str) -> Vec<String> {
    let room = room_of(path);
    let Some((_, allowed)) = arrows().into_iter().find(|(name, _)| *name == room) else {
        return Vec::new();
    };
    imported_rooms(text)
        .into_iter()
        .filter(|imported| *imported != room && !allowed.contains(imported))
        .map(|imported| format!("{} imports {imported}", path.display()))
        .collect()
}

/// The names after `crate::`, also inside `crate::{a, b::c}`.
fn imported_rooms(text: &str) -> Vec<String> {
    let name = |part: &str| -> String {
        part.trim().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
    };
    let mut rooms: Vec<String> = Vec::new();
    for after in text.split("crate::").skip(1) {
        match after.strip_prefix('{').and_then(|rest| rest.split_once('}')) {
            Some((list, _)) => rooms.extend(list.split(',').map(name)),
            None => rooms.push(name(after)),
        }
    }
    rooms.retain(|room| !room.is_empty());
    rooms
}

/// The first part of the path below `src`.
fn room_of(path: &Path) -> String {
    let inside = path.strip_prefix(source()).expect("a file of the service");
    let first = inside.components().next().expect("a file, not the folder itself");
    Path::new(first.as_os_str()).with_extension("").to_string_lossy().into_owned()
}

fn source() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

fn rust_files(directory: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}
