//! Compiles libaegis's AEGIS-256X4, once for each set of instructions that the processor may have.
//!
//! Flags are fixed here: the same sources give the same library on every machine, and nothing is tuned for the one that
//! builds it.

/// One implementation: its name, its file, `-O` and the stack that its calls use at most, with some to spare (`-fstack-usage`).
struct Backend(&'static str, &'static str, u32, &'static str);

/// `-O2` where `-O3` gives little and takes 6 KiB of `libpellucid.so` more.
const X86_64: &[Backend] = &[
    Backend("avx512", "aegis256x4/aegis256x4_avx512.c", 3, "1024"),
    Backend("avx2", "aegis256x4/aegis256x4_avx2.c", 3, "1536"),
    Backend("aesni", "aegis256x4/aegis256x4_aesni.c", 2, "2048"),
];
const AARCH64: &[Backend] = &[Backend("neon", "aegis256x4/aegis256x4_neon_aes.c", 3, "2048")];
const EVERYWHERE: &[Backend] = &[Backend("soft", "aegis256x4/aegis256x4_soft.c", 2, "4096")];

fn main() {
    println!("cargo:rerun-if-changed=libaegis");
    println!("cargo:rerun-if-changed=src");
    let architecture = std::env::var("CARGO_CFG_TARGET_ARCH").unwrap_or_default();
    let of_processor = match architecture.as_str() {
        "x86_64" => X86_64,
        "aarch64" => AARCH64,
        _ => &[],
    };
    for Backend(name, source, optimisation, stack_bytes) in of_processor.iter().chain(EVERYWHERE) {
        compiler()
            .opt_level(*optimisation)
            .define("BACKEND", *name)
            .define("SOURCE", format!("\"{source}\"").as_str())
            .define("STACK_BYTES", *stack_bytes)
            .file("src/backend.c")
            .compile(&format!("pellucid_aegis_{name}"));
    }
    // Behind those that call it, for linkers that look once.
    compiler()
        .opt_level(2)
        .flag("-include")
        .flag("src/names.h")
        .file("libaegis/common/softaes.c")
        .file("src/verify.c")
        .compile("pellucid_aegis_common");
}

fn compiler() -> cc::Build {
    let mut build = cc::Build::new();
    build
        .include("libaegis")
        .include("libaegis/include")
        .include("libaegis/aegis256x4")
        .include("src");
    // Of functions that are here and not called.
    build.warnings(false).flag_if_supported("-fvisibility=hidden");
    build
}
