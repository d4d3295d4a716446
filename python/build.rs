//! Has the linker keep one of all functions that are compiled to the same code, such as those of generic functions in several crates.
//!
//! That is for the linker that comes with the compiler; another one, as for wheels of a release, may not know how.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let own_linker = std::env::var_os("RUSTC_LINKER").is_none();
    if own_linker && std::env::var("TARGET").is_ok_and(|target| target == "x86_64-unknown-linux-gnu") {
        println!("cargo:rustc-cdylib-link-arg=-Wl,--icf=all");
    }
}
