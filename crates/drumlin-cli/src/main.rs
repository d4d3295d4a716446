//! The `drumlin` command: hands its arguments to the library and exits with what that returns.

fn main() {
    let arguments: Result<Vec<String>, _> = std::env::args_os().map(|argument| argument.into_string()).collect();
    let code = match arguments {
        Ok(arguments) => drumlin_cli::main(arguments),
        Err(bad) => {
            eprintln!("drumlin: argument {bad:?} is not UTF-8");
            2
        }
    };
    std::process::exit(code);
}
