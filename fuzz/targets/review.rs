#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    outrider_fuzz::bounds::hold(data);
    outrider_fuzz::checks::review::check(data);
});
