#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| outrider_fuzz::checks::quantity::check(data));
