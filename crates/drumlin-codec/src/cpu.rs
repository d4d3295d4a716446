//! Kernels compiled twice: for any processor, and for those with AVX2, which is found out when one is called.
//!
//! This is the only unsafe code of the crate: a function that was compiled for AVX2 is called where the processor has it.

/// Defines a function whose body is compiled for AVX2, too.
macro_rules! kernel {
    ($(#[$meta:meta])* $visibility:vis fn $name:ident($($arg:ident: $T:ty),* $(,)?) $(-> $R:ty)? $body:block) => {
        $(#[$meta])*
        $visibility fn $name($($arg: $T),*) $(-> $R)? {
            #[inline(always)]
            fn plain($($arg: $T),*) $(-> $R)? $body

            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx2")]
                fn avx2($($arg: $T),*) $(-> $R)? {
                    plain($($arg),*)
                }
                if std::arch::is_x86_feature_detected!("avx2") {
                    // SAFETY: the processor has AVX2.
                    #[allow(unsafe_code, reason = "the compiler cannot know which processor there is")]
                    return unsafe { avx2($($arg),*) };
                }
            }
            plain($($arg),*)
        }
    };
}

pub(crate) use kernel;
