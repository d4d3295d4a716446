//! Kernels compiled several times: for any processor, for those with AVX2 and, where it pays, for those with AVX-512. Which it is, is found
//! out when one is called.
//!
//! AVX-512 pays where values are compared or converted (a third less time on an AMD EPYC), and not where bits are shifted.
//!
//! This is the only unsafe code of the crate: a function that was compiled for instructions is called where the processor has them.

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

/// Defines a function whose body is compiled for AVX2 and AVX-512, too.
macro_rules! wide_kernel {
    ($(#[$meta:meta])* $visibility:vis fn $name:ident($($arg:ident: $T:ty),* $(,)?) $(-> $R:ty)? $body:block) => {
        $(#[$meta])*
        $visibility fn $name($($arg: $T),*) $(-> $R)? {
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
                fn avx512($($arg: $T),*) $(-> $R)? $body

                let has = std::arch::is_x86_feature_detected!("avx512f")
                    && std::arch::is_x86_feature_detected!("avx512bw")
                    && std::arch::is_x86_feature_detected!("avx512dq")
                    && std::arch::is_x86_feature_detected!("avx512vl");
                if has {
                    // SAFETY: the processor has all of them.
                    #[allow(unsafe_code, reason = "the compiler cannot know which processor there is")]
                    return unsafe { avx512($($arg),*) };
                }
            }
            $crate::cpu::kernel! {
                fn narrower($($arg: $T),*) $(-> $R)? $body
            }
            narrower($($arg),*)
        }
    };
}

pub(crate) use {kernel, wide_kernel};
