//! The `drumlin` command: hands its arguments to the library and exits with what that returns.

fn main() {
    std::process::exit(drumlin_cli::main(std::env::args_os().collect()));
}
