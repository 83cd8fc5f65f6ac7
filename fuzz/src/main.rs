//! One target under libFuzzer, chosen by `SVC_FUZZ_TARGET`: see dev/fuzz.
#![no_main]

use std::sync::LazyLock;

static TARGET: LazyLock<fn(&[u8])> = LazyLock::new(|| {
    let name = std::env::var("SVC_FUZZ_TARGET").unwrap_or_default();
    let found = svc_fuzz::TARGETS.iter().find(|target| target.name == name);
    found.unwrap_or_else(|| panic!("there is no target {name:?}")).run
});

libfuzzer_sys::fuzz_target!(|data: &[u8]| TARGET(data));
