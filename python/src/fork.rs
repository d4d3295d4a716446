//! What happens in a forked process, before anything else runs in it: it gives up its share of its parent's locks
//! (`drumlin::embedding::leave_to_parent`), so that they end with the parent.

#![allow(unsafe_code)]

use std::os::fd::RawFd;

/// Has every fork of this process do so, whatever code makes it.
pub fn prepare() {
    // SAFETY: the function is there as long as the process, since modules of Python are not unloaded, and calls only what may be
    // called in a fork of a process with many threads.
    unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
}

extern "C" fn in_child() {
    // SAFETY: as above; the descriptors are open, and their owners in this process do not use them.
    let nothing = unsafe { libc::open(c"/dev/null".as_ptr(), libc::O_RDWR | libc::O_CLOEXEC) };
    drumlin::embedding::leave_to_parent(|descriptor: RawFd| {
        // Where no more files can be opened, one of the standard streams has to serve.
        let stands_in = [nothing, libc::STDERR_FILENO, libc::STDOUT_FILENO, libc::STDIN_FILENO];
        // SAFETY: as above.
        let replaced = |with: &RawFd| *with >= 0 && unsafe { libc::dup2(*with, descriptor) } >= 0;
        let _ = stands_in.iter().any(replaced);
        // SAFETY: as above.
        unsafe { libc::fcntl(descriptor, libc::F_SETFD, libc::FD_CLOEXEC) };
    });
    if nothing >= 0 {
        // SAFETY: it was opened above.
        unsafe { libc::close(nothing) };
    }
}
