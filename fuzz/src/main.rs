//! The fuzzer: one program for all targets, because they share nearly all of their code. `DRUMLIN_FUZZ_TARGET` names the
//! target; everything else is libFuzzer's command line. `-list` prints the targets, `-seeds=FOLDER` writes their seeds.
//!
//! A panic that Drumlin catches is not a failure of a target, so the panic hook only records its message. A panic that
//! leaves the target is a failure: it is printed, and the process aborts.
#![no_main]
#![allow(clippy::disallowed_methods, reason = "the macro of libFuzzer writes a file of its own")]

mod cursor;
mod repair;
mod stores;
mod targets;

use std::backtrace::Backtrace;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::{Mutex, OnceLock};

use targets::{TARGETS, Target};

libfuzzer_sys::fuzz_target!(init: start(), |bytes: &[u8]| run(bytes));

static TARGET: OnceLock<&Target> = OnceLock::new();

/// The message of the last panic.
static PANIC: Mutex<String> = Mutex::new(String::new());

fn start() {
    for argument in std::env::args().skip(1) {
        if argument == "-list" {
            TARGETS.iter().for_each(|target| println!("{}", target.name));
            std::process::exit(0);
        }
        if let Some(folder) = argument.strip_prefix("-seeds=") {
            TARGETS.iter().for_each(|target| write_seeds(target, &Path::new(folder).join(target.name)));
            std::process::exit(0);
        }
    }
    let name = std::env::var("DRUMLIN_FUZZ_TARGET").unwrap_or_default();
    let Some(target) = TARGETS.iter().find(|target| target.name == name) else {
        let names: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
        eprintln!("DRUMLIN_FUZZ_TARGET is '{name}'; expected one of: {}", names.join(", "));
        std::process::exit(2);
    };
    let _ = TARGET.set(target);
    std::panic::set_hook(Box::new(|panic| {
        let text = format!("{panic}\n{}", Backtrace::capture());
        *PANIC.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = text;
    }));
    report_stack_overflows();
}

fn run(bytes: &[u8]) {
    let target = TARGET.get().expect("libFuzzer calls `start` first");
    if catch_unwind(AssertUnwindSafe(|| (target.run)(bytes))).is_err() {
        eprintln!("{}", PANIC.lock().unwrap_or_else(|poisoned| poisoned.into_inner()));
        std::process::abort();
    }
}

/// Generated seeds are named by their number. Seeds from other sources have other names and are kept.
#[expect(clippy::disallowed_methods, reason = "writes the project's own files, not a store's")]
fn write_seeds(target: &Target, folder: &Path) {
    std::fs::create_dir_all(folder).expect("a folder for seeds");
    for (number, seed) in (target.seeds)().into_iter().enumerate() {
        std::fs::write(folder.join(format!("{number:02}")), seed).expect("a seed");
    }
}

/// libFuzzer's signal handler must run on a separate stack, or a stack overflow ends the process before it can write the
/// input. It keeps the flag that is set here.
fn report_stack_overflows() {
    const BYTES: usize = 1 << 20;
    let stack = Box::leak(vec![0_u8; BYTES].into_boxed_slice());
    let stack = libc::stack_t { ss_sp: stack.as_mut_ptr().cast(), ss_flags: 0, ss_size: BYTES };
    // SAFETY: the stack is never freed; the rest of the action is zero, which is the default one.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_flags = libc::SA_ONSTACK;
        libc::sigaltstack(&stack, std::ptr::null_mut());
        libc::sigaction(libc::SIGSEGV, &action, std::ptr::null_mut());
    }
}
