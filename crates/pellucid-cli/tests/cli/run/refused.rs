//! Programs that the shim would not get into.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Output;

use super::workplace::{answer, library, need, text, Workplace};

#[track_caller]
fn assert_refused(output: &Output, why: &str, hint: &str) {
    let said = text(output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("pellucid: error: ") && said.contains(why), "{said}");
    assert!(said.contains("pellucid: hint: ") && said.contains(hint), "{said}");
}

fn with_mode(path: PathBuf, mode: u32) -> PathBuf {
    std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
    path
}

/// A copy of a program that would run.
fn copy(place: &Workplace, name: &str) -> PathBuf {
    let path = place.path(name);
    std::fs::copy(need("/usr/bin/true", "coreutils"), &path).unwrap();
    path
}

fn run(place: &Workplace, program: &Path) -> Output {
    place.run(&[], program, &[])
}

#[test]
fn static_programs_and_scripts_that_lead_to_one() {
    let place = Workplace::new();
    let (source, program) = (place.path("static.c"), place.path("static"));
    std::fs::write(&source, "int main(void) { return 0; }").unwrap();
    let mut command = place.command(need("/usr/bin/gcc", "gcc libc6-dev"));
    command.arg("-static").arg(&source).arg("-o").arg(&program);
    answer(&command.output().unwrap());
    assert_refused(&run(&place, &program), "is statically linked", "dynamically");

    let script = place.path("script");
    std::fs::write(&script, format!("#!{}\n", program.display())).unwrap();
    let script = with_mode(script, 0o755);
    assert_refused(&run(&place, &script), "static` is statically linked", "dynamically");
}

#[test]
fn programs_with_more_rights_than_their_caller() {
    let place = Workplace::new();
    let setuid = with_mode(copy(&place, "setuid"), 0o4755);
    assert_refused(&run(&place, &setuid), "is setuid", "without the mark");
    let setgid = with_mode(copy(&place, "setgid"), 0o2755);
    assert_refused(&run(&place, &setgid), "is setgid", "without the mark");

    let capable = copy(&place, "capable");
    // CAP_NET_RAW, permitted and effective (linux/capability.h, `vfs_cap_data`, revision 2).
    let words = [0x0200_0001_u32, 1 << 13, 0, 0, 0];
    let value: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let flags = rustix::fs::XattrFlags::empty();
    match rustix::fs::setxattr(&capable, "security.capability", &value, flags) {
        Ok(()) => assert_refused(&run(&place, &capable), "file capabilities", "without the mark"),
        Err(error) if rustix::process::geteuid().is_root() => panic!("setxattr: {error}"),
        Err(error) => eprintln!("NOT TRIED: only root gives files capabilities: {error}"),
    }
}

#[test]
fn programs_with_a_sqlite_inside_also_stripped() {
    let place = Workplace::new();
    let own = Path::new(env!("CARGO_BIN_EXE_pellucid"));
    assert_refused(&run(&place, own), "carries a SQLite of its own", "?vfs=pellucid");
    let stripped = place.path("stripped");
    let strip = need("/usr/bin/strip", "binutils");
    answer(&place.command(strip).arg("-o").arg(&stripped).arg(own).output().unwrap());
    assert_refused(&run(&place, &stripped), "carries a SQLite of its own", "load_extension");
}

#[test]
fn other_loaders_and_processors() {
    let place = Workplace::new();
    let source = place.path("main.c");
    std::fs::write(&source, "int main(void) { return 0; }").unwrap();
    let linked = |name: &str, loader: &str| {
        let path = place.path(name);
        let mut command = place.command(need("/usr/bin/gcc", "gcc libc6-dev"));
        command.arg(format!("-Wl,--dynamic-linker={loader}")).arg(&source).arg("-o").arg(&path);
        answer(&command.output().unwrap());
        path
    };
    let musl = linked("musl", "/lib/ld-musl-x86_64.so.1");
    assert_refused(&run(&place, &musl), "runs on musl", "glibc build");
    let other = linked("other", "/libexec/ld-elf.so.1");
    assert_refused(&run(&place, &other), "not glibc's dynamic linker", "glibc");

    let foreign = copy(&place, "foreign");
    let mut bytes = std::fs::read(&foreign).unwrap();
    bytes[18..20].copy_from_slice(&8u16.to_le_bytes()); // e_machine: MIPS
    std::fs::write(&foreign, &bytes).unwrap();
    assert_refused(&run(&place, &foreign), "another processor", "that processor");
    bytes.truncate(19);
    std::fs::write(&foreign, &bytes).unwrap();
    assert_refused(&run(&place, &foreign), "too short", "damaged");
}

#[test]
fn what_is_no_program_at_all() {
    let place = Workplace::new();
    assert_refused(&run(&place, Path::new("no-such-program")), "`no-such-program` is not", "PATH");
    let text = place.path("text");
    std::fs::write(&text, "echo\n").unwrap();
    assert_refused(&run(&place, &text), "is not a program", "PATH");
    let text = with_mode(text, 0o755);
    assert_refused(&run(&place, &text), "neither an ELF program nor a script", "run -- sh");
    let endless = place.path("endless");
    std::fs::write(&endless, format!("#!{}\n", endless.display())).unwrap();
    assert_refused(&run(&place, &with_mode(endless, 0o755)), "too many scripts", "interpreter");
    let output = place.pellucid(&["run"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
}

/// glibc only warns about a preload that it cannot load, and starts the program without it.
#[test]
fn a_library_that_would_not_be_loaded() {
    let place = Workplace::new();
    let run_with = |library: &Path| {
        let mut command = place.pellucid(&["run", "--", "true"]);
        command.env("PELLUCID_EXTENSION", library).output().unwrap()
    };
    let broken = place.path("libpellucid.so");
    std::fs::write(&broken, "nothing").unwrap();
    assert_refused(&run_with(&broken), "does not take the shim", "ldd");
    std::fs::create_dir(place.path("a b")).unwrap();
    let spaced = place.path("a b/libpellucid.so");
    std::fs::copy(library(), &spaced).unwrap();
    assert_refused(&run_with(&spaced), "takes apart", "PELLUCID_EXTENSION");
    assert_refused(&run_with(&place.path("none.so")), "names", "unset");
}
