//! The `drumlin` command: passes its arguments to the library and exits with the code that it returns.

fn main() {
    std::process::exit(drumlin_cli::main(std::env::args_os().collect()));
}
