//! The golden stores that there are: see golden.rs.

/// By format, as numbered by the catalog: a store that one process writes, and one that is shared.
pub const VERSIONS: [&str; 38] = [
    "v5",
    "v5-shared",
    "v6",
    "v6-shared",
    "v7",
    "v7-shared",
    "v8",
    "v8-shared",
    // The same, with the feature of columns that change and rows changed in place.
    "v8-changes",
    "v8-changes-shared",
    "v9",
    "v9-shared",
    // The same, with the feature of patches.
    "v9-patches",
    "v9-patches-shared",
    // The same, with constraints, and columns of orders renamed.
    "v9-order",
    "v9-order-shared",
    "v10",
    "v10-shared",
    // The same, with an id of the store and entries that name the one before them; a witness beside the root.
    "v10-id",
    "v10-id-shared",
    // The same, with numbers and texts written by the codec of our own.
    "v10-codec",
    "v10-codec-shared",
    // The same, with defaults that are made.
    "v10-made",
    "v10-made-shared",
    // The same, with indexes.
    "v10-indexed",
    "v10-indexed-shared",
    // The same, with rows that expire.
    "v10-ttl",
    "v10-ttl-shared",
    // The same, with followers.
    "v10-followed",
    "v10-followed-shared",
    // The same, with presences and nodes that end.
    "v10-present",
    "v10-present-shared",
    // The same, with views.
    "v10-viewed",
    "v10-viewed-shared",
    // The same, with layouts.
    "v10-laid",
    "v10-laid-shared",
    // The same, with snapshots of patterns.
    "v10-covered",
    "v10-covered-shared",
];
/// Formats that are no longer read; each has a file with the format number.
pub const REFUSED: [u32; 4] = [1, 2, 3, 4];
