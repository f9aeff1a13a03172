//! Goal: a key, a keyring or a library that another account could have put there is not taken, by whatever path it is
//! named; what only root or the caller could is, also as Kubernetes, systemd and a bind mount lay it out.
//!
//! Method: one file in a place of its own, read by `encrypt --key-file` as root and as an account with one group, over
//! owners, modes, directories, links, access control lists and bind mounts. What differs between two cases is one right,
//! so that each refusal is for that; each case that is taken shows that the place itself is. Needs root to give files
//! away: another caller gets a line that says so, and no verdict.

use std::os::unix::fs::{chown, lchown, symlink, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{extension, said, Place, Said, PELLUCID};

/// Accounts that no file knows.
const OTHER: u32 = 20001;
const SERVICE: u32 = 10001;

fn root() -> bool {
    let root = said(Command::new("id").arg("-u")).stdout.trim() == "0";
    if !root {
        println!("not root: nothing can be given away, nothing is tested");
    }
    root
}

fn mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
}

fn owned(path: &Path, owner: u32, group: u32) {
    lchown(path, Some(owner), Some(group)).unwrap();
}

/// A place that everybody may enter, with a key of root's in `way/key`.
fn place() -> Place {
    let place = Place::new();
    mode(&place.path(""), 0o755);
    std::fs::create_dir(place.path("way")).unwrap();
    place.secret("way/key", &[7; 32]);
    for file in [PELLUCID.into(), extension(&place)] {
        let file: String = file;
        let name = file.rsplit('/').next().unwrap().to_owned();
        place.copy_program(file.as_ref(), &name);
        mode(&place.path(&name), 0o755);
    }
    place
}

/// Whether `user`, with `user` as its only group, takes the key at `path`; what was said.
fn take(place: &Place, user: u32, path: &Path) -> (bool, Said) {
    let own = place.path("own");
    let _ = std::fs::remove_dir_all(&own);
    std::fs::create_dir(&own).unwrap();
    place.plain("own/app.db");
    for name in ["own", "own/app.db"] {
        owned(&place.path(name), user, user);
    }
    let mut command = place.command(place.path("pellucid").to_str().unwrap());
    command.env("PELLUCID_HOME", own.join("keys")).env("PELLUCID_CONFIG", "/nowhere");
    command.args(["encrypt", "own/app.db", "--key-file"]).arg(path).uid(user).gid(user);
    let said = said(&mut command);
    (said.code == 0, said)
}

#[derive(Clone, Copy)]
enum Taken {
    Yes,
    /// Not, and what is said of it.
    No(&'static str),
}
use Taken::{No, Yes};

fn expect(place: &Place, user: u32, path: &Path, taken: Taken, case: &str) {
    let (took, said) = take(place, user, path);
    match taken {
        Yes => assert!(took, "{case}: {said:?}"),
        No(why) => {
            assert!(!took && said.code == 1, "{case}: {said:?}");
            assert!(said.stderr.contains(why), "{case}: {said:?}");
        }
    }
}

#[test]
fn a_secret_is_its_owners_and_at_most_a_group_of_the_callers_reads_roots() {
    if !root() {
        return;
    }
    let place = place();
    let key = place.path("way/key");
    let read = "others can read this secret";
    let cases = [
        // Owner, group, mode, caller.
        (0, 0, 0o600, 0, Yes),
        (0, 0, 0o400, 0, Yes),
        (0, 0, 0o440, 0, Yes),
        (0, OTHER, 0o440, 0, No(read)),
        (0, 0, 0o604, 0, No(read)),
        (0, 0, 0o602, 0, No(read)),
        (0, 0, 0o460, 0, No(read)),
        (OTHER, OTHER, 0o600, 0, No("belongs to user 20001")),
        (OTHER, 0, 0o400, 0, No("belongs to user 20001")),
        (SERVICE, SERVICE, 0o400, SERVICE, Yes),
        (SERVICE, SERVICE, 0o440, SERVICE, No(read)),
        (SERVICE, OTHER, 0o640, SERVICE, No(read)),
        (0, SERVICE, 0o440, SERVICE, Yes),
        (0, SERVICE, 0o640, SERVICE, Yes),
        (0, SERVICE, 0o660, SERVICE, No(read)),
        (0, SERVICE, 0o444, SERVICE, No(read)),
        (OTHER, SERVICE, 0o440, SERVICE, No("belongs to user 20001")),
    ];
    for (owner, group, bits, user, taken) in cases {
        owned(&key, owner, group);
        mode(&key, bits);
        expect(&place, user, &key, taken, &format!("{owner}:{group} {bits:o} by {user}"));
    }
}

#[test]
fn nobody_else_writes_to_a_directory_on_the_way() {
    if !root() {
        return;
    }
    let place = place();
    let (way, key) = (place.path("way"), place.path("way/key"));
    owned(&key, SERVICE, SERVICE);
    let cases = [
        (0, 0, 0o755, Yes),
        (SERVICE, SERVICE, 0o700, Yes),
        (OTHER, OTHER, 0o755, No("belongs to user 20001")),
        // Even with the sticky bit: a directory's owner is above it.
        (OTHER, OTHER, 0o1777, No("belongs to user 20001")),
        (0, 0, 0o757, No("everybody may write to")),
        (0, 0, 0o1777, Yes),
        (0, SERVICE, 0o3777, Yes),
        (0, OTHER, 0o775, No("the group 20001 may write to")),
        (SERVICE, OTHER, 0o770, No("the group 20001 may write to")),
        (SERVICE, SERVICE, 0o770, No("the group 10001 may write to")),
    ];
    for (owner, group, bits, taken) in cases {
        owned(&way, owner, group);
        mode(&way, bits);
        expect(&place, SERVICE, &key, taken, &format!("{owner}:{group} {bits:o}"));
    }
    // The group that was made with an account is that account's, for whoever trusts it; `daemon` has such a one.
    let daemon = 1;
    for (owner, user, taken) in [
        (daemon, daemon, Yes),
        (0, daemon, Yes),
        (0, SERVICE, No("the group 1 may write to")),
        (SERVICE, SERVICE, No("the group 1 may write to")),
    ] {
        owned(&key, user, user);
        owned(&way, owner, daemon);
        mode(&way, 0o775);
        expect(&place, user, &key, taken, &format!("{owner}:{daemon} 775 by {user}"));
    }
    owned(&key, SERVICE, SERVICE);
    // Further up as well.
    owned(&way, 0, 0);
    mode(&way, 0o755);
    std::fs::create_dir(place.path("way/in")).unwrap();
    std::fs::rename(&key, place.path("way/in/key")).unwrap();
    let key = place.path("way/in/key");
    expect(&place, SERVICE, &key, Yes, "all root's");
    owned(&way, OTHER, OTHER);
    expect(&place, SERVICE, &key, No("belongs to user 20001"), "above");
    let up = place.path("own/../way/in/../in/key");
    expect(&place, SERVICE, &up, No("belongs to user 20001"), "by `..`");
}

#[test]
fn a_link_counts_and_so_does_the_way_that_it_leads() {
    if !root() {
        return;
    }
    let place = place();
    let key = place.path("way/key");
    std::fs::create_dir(place.path("links")).unwrap();
    let link = place.path("links/key");
    symlink("../way/key", &link).unwrap();
    expect(&place, 0, &link, Yes, "root's link to root's key");
    owned(&link, OTHER, OTHER);
    expect(&place, 0, &link, No("belongs to user 20001"), "another's link");
    owned(&link, 0, 0);
    owned(&place.path("links"), OTHER, OTHER);
    expect(&place, 0, &link, No("belongs to user 20001"), "in another's directory");
    owned(&place.path("links"), 0, 0);
    // From a good directory by way of a bad one to a good key.
    symlink("links", place.path("by")).unwrap();
    let by = place.path("by/key");
    expect(&place, 0, &by, Yes, "a directory by a link");
    owned(&place.path("links"), OTHER, OTHER);
    expect(&place, 0, &by, No("belongs to user 20001"), "which another one owns");
    owned(&place.path("links"), 0, 0);
    owned(&place.path("way"), OTHER, OTHER);
    expect(&place, 0, &link, No("belongs to user 20001"), "the target's directory");
    owned(&place.path("way"), 0, 0);
    // Everybody makes links in a sticky directory; they follow only one's own.
    mode(&place.path("links"), 0o1777);
    expect(&place, 0, &link, Yes, "root's link in a sticky directory");
    owned(&link, OTHER, OTHER);
    expect(&place, 0, &link, No("belongs to user 20001"), "another's link there");
    std::fs::remove_file(&link).unwrap();
    symlink("key", &link).unwrap();
    expect(&place, 0, &link, No("Too many levels"), "a circle");
    // A key of the command's own: no name leads to it.
    std::fs::remove_file(&link).unwrap();
    let open = std::fs::File::open(&key).unwrap();
    let mut command = place.command("sh");
    let line = "exec 3<\"$0\"; \"$1\" encrypt app.db --key-file /dev/fd/3";
    place.plain("app.db");
    drop(open);
    said(command.args(["-c", line]).arg(&key).arg(PELLUCID)).succeeded();
    let line = "(cat \"$0\") | \"$1\" check app.db --key-file /dev/stdin";
    said(place.command("sh").args(["-c", line]).arg(&key).arg(PELLUCID)).succeeded();
}

#[test]
fn a_secret_as_kubernetes_mounts_it() {
    if !root() {
        return;
    }
    // A tmpfs of root's that has the pod's group, a directory for each version, links to the present one.
    let place = place();
    let volume = place.path("secret");
    std::fs::create_dir_all(volume.join("..2026_11_25")).unwrap();
    std::fs::copy(place.path("way/key"), volume.join("..2026_11_25/key")).unwrap();
    symlink("..2026_11_25", volume.join("..data")).unwrap();
    symlink("..data/key", volume.join("key")).unwrap();
    for (name, bits) in [("..2026_11_25/key", 0o440), ("..2026_11_25", 0o2755), ("", 0o3777)] {
        chown(volume.join(name), Some(0), Some(SERVICE)).unwrap();
        mode(&volume.join(name), bits);
    }
    expect(&place, SERVICE, &volume.join("key"), Yes, "fsGroup");
    expect(&place, OTHER, &volume.join("key"), No("Permission denied"), "another pod");
    chown(volume.join("..2026_11_25/key"), Some(0), Some(0)).unwrap();
    mode(&volume.join("..2026_11_25/key"), 0o444);
    expect(&place, SERVICE, &volume.join("key"), No("others can read"), "defaultMode 0444");
}

#[test]
fn access_control_lists_count_by_what_they_say() {
    if !root() {
        return;
    }
    let place = place();
    let (way, key) = (place.path("way"), place.path("way/key"));
    let list = |path: &Path, entries: &[(u16, u16, u32)]| {
        let mut bytes = 2u32.to_le_bytes().to_vec();
        for (tag, rights, id) in entries {
            bytes.extend(tag.to_le_bytes());
            bytes.extend(rights.to_le_bytes());
            bytes.extend(id.to_le_bytes());
        }
        let name = "system.posix_acl_access";
        let set = rustix::fs::setxattr(path, name, &bytes, rustix::fs::XattrFlags::empty());
        set.inspect_err(|error| println!("no access control lists here ({error}): not tested"))
            .is_ok()
    };
    const NONE: u32 = u32::MAX;
    let (user, owner, group, named, mask, all) = (0x02, 0x01, 0x04, 0x08, 0x10, 0x20);
    // As systemd hands a credential to a service: root's, with one entry for its account.
    let of = |tag, rights, id| {
        let entry = (tag, rights, id);
        [(owner, 4, NONE), entry, (group, 0, NONE), (mask, 4, NONE), (all, 0, NONE)]
    };
    mode(&key, 0o400);
    if !list(&key, &of(user, 4, SERVICE)) {
        return;
    }
    expect(&place, SERVICE, &key, Yes, "an entry for the caller");
    expect(&place, 0, &key, No("others can read"), "for another one");
    let of = |id| {
        let entry = (named, 4, id);
        [(owner, 4, NONE), (group, 0, NONE), entry, (mask, 4, NONE), (all, 0, NONE)]
    };
    list(&key, &of(SERVICE));
    expect(&place, SERVICE, &key, Yes, "for a group of the caller's");
    expect(&place, 0, &key, No("others can read"), "for another group");
    // A directory that one more account may write to.
    owned(&key, 0, 0);
    std::fs::remove_file(&key).unwrap();
    place.secret("way/key", &[7; 32]);
    let of =
        |id| [(owner, 7, NONE), (user, 7, id), (group, 5, NONE), (mask, 7, NONE), (all, 5, NONE)];
    list(&way, &of(OTHER));
    expect(&place, 0, &key, No("the user 20001 may write to"), "another's entry");
    list(&way, &of(0));
    expect(&place, 0, &key, Yes, "root's own entry");
}

#[test]
fn a_bind_mount_is_looked_at_as_it_lies_there() {
    if !root() {
        return;
    }
    let place = place();
    place.sealed("app.db", &["--key-file", "way/key"]);
    let mount = |script: &str| {
        let mut command = place.command("unshare");
        let check = "exec \"$0\" check app.db --key-file way/key";
        let whole = format!("set -e; {script}; {check}");
        command.args(["--mount", "sh", "-c", &whole]).arg(PELLUCID);
        said(&mut command)
    };
    if said(place.command("unshare").args(["--mount", "true"])).code != 0 {
        println!("no mount namespaces here: not tested");
        return;
    }
    std::fs::create_dir(place.path("others")).unwrap();
    place.secret("others/key", &[7; 32]);
    owned(&place.path("others"), OTHER, OTHER);
    let told = mount("mount --bind others way");
    assert!(told.code == 1 && told.stderr.contains("belongs to user 20001"), "{told:?}");
    // One file of root's: where it comes from is not on the way.
    mount("mount --bind others/key way/key").succeeded();
    owned(&place.path("others/key"), OTHER, OTHER);
    let told = mount("mount --bind others/key way/key");
    assert!(told.code == 1 && told.stderr.contains("belongs to user 20001"), "{told:?}");
}

#[test]
fn nothing_is_waited_for() {
    let place = Place::new();
    place.plain("app.db");
    said(place.command("mkfifo").args(["-m", "600", "key"])).succeeded();
    let mut command = place.command("timeout");
    command.args(["60", PELLUCID, "encrypt", "app.db", "--key-file", "key"]);
    let told = said(&mut command);
    assert!(told.code == 1 && told.stderr.contains("neither a file nor a pipe"), "{told:?}");
    place.pellucid(&["init"]).succeeded();
    std::fs::remove_file(place.path("keys/service.key")).unwrap();
    said(place.command("mkfifo").args(["-m", "600", "keys/service.key"])).succeeded();
    let mut command = place.command("timeout");
    let told = said(command.args(["60", PELLUCID, "cert", "list"]));
    assert!(told.code == 1 && told.stderr.contains("neither a file nor a pipe"), "{told:?}");
}

/// Root with a HOME that somebody else has a hand in.
#[test]
fn roots_keys_do_not_come_from_another_users_home() {
    if !root() {
        return;
    }
    let registered = PathBuf::from("/root/.local/share/pellucid");
    let place = place();
    let home = place.path("user");
    std::fs::create_dir(&home).unwrap();
    let pellucid = |user: u32, variables: &[(&str, &Path)], words: &str| {
        let mut command = place.command(place.path("pellucid").to_str().unwrap());
        command.env_remove("PELLUCID_HOME").env("PELLUCID_CONFIG", place.path("none"));
        command.env("HOME", &home).envs(variables.iter().copied()).uid(user).gid(user);
        said(command.args(words.split(' ')))
    };
    owned(&home, OTHER, OTHER);
    let key_status = |variables: &[(&str, &Path)]| pellucid(0, variables, "--json key status");
    // There is none yet, and it is not begun there.
    for step in ["none there", "one there"] {
        let told = key_status(&[]);
        let all = told.all();
        assert!(all.contains("`HOME` or `XDG_DATA_HOME`"), "{step}: {all}");
        assert!(all.contains(registered.to_str().unwrap()), "{step}: {all}");
        assert!(all.contains("belongs to user 20001"), "{step}: {all}");
        let data = home.join(".local/share");
        let told = key_status(&[("HOME", Path::new("/root")), ("XDG_DATA_HOME", &data)]);
        assert!(told.all().contains("belongs to user 20001"), "{step}: {told:?}");
        pellucid(OTHER, &[], "--quiet init").succeeded();
    }
    let own = home.join(".local/share/pellucid");
    assert!(own.join("service.key").exists());
    // Named outright it is refused, for whatever looks into it.
    place.plain("app.db");
    let before = place.snapshot();
    let named: [(&str, &Path); 1] = [("PELLUCID_HOME", &own)];
    for words in ["encrypt app.db", "key status", "cert list", "cert create other", "init"] {
        let told = pellucid(0, &named, words);
        assert_eq!(told.code, 1, "{words}: {told:?}");
        assert!(told.stderr.contains("sudo -u '#20001'"), "{words}: {told:?}");
    }
    let told = pellucid(0, &named, "status --check app.db");
    assert!(told.code == 4 && told.stderr.contains("belongs to user 20001"), "{told:?}");
    assert_eq!(before, place.snapshot());
    // So is one that another file leads to.
    std::fs::write(place.path("none"), format!("home = {}\n", own.display())).unwrap();
    let told = pellucid(0, &[], "cert create other");
    assert!(told.code == 1 && told.stderr.contains("belongs to user 20001"), "{told:?}");
    std::fs::write(place.path("none"), "home = /nowhere\n").unwrap();
    owned(&place.path("none"), OTHER, OTHER);
    let told = pellucid(0, &[], "cert create other");
    assert!(told.code == 1 && told.stderr.contains("none`: `"), "{told:?}");
    std::fs::remove_file(place.path("none")).unwrap();
    // Its owner uses it as before.
    pellucid(OTHER, &[], "cert list").succeeded();
}

#[test]
fn a_library_is_loaded_from_where_nobody_else_could_have_put_it() {
    if !root() {
        return;
    }
    let place = place();
    let library = place.path("way/libpellucid.so");
    std::fs::copy(place.path("libpellucid.so"), &library).unwrap();
    let run = |path: &Path| {
        let mut command = place.command(PELLUCID);
        command.env("PELLUCID_EXTENSION", path);
        said(command.args(["run", "--", "sqlite3", ":memory:", "SELECT 1"]))
    };
    run(&library).succeeded();
    owned(&library, OTHER, OTHER);
    assert!(run(&library).stderr.contains("belongs to user 20001"));
    owned(&library, 0, 0);
    owned(&place.path("way"), OTHER, OTHER);
    mode(&place.path("way"), 0o775);
    assert!(run(&library).stderr.contains("belongs to user 20001"));
    owned(&place.path("way"), 0, OTHER);
    assert!(run(&library).stderr.contains("the group 20001 may write to"));
    owned(&place.path("way"), 0, 0);
    symlink("way/libpellucid.so", place.path("link.so")).unwrap();
    run(&place.path("link.so")).succeeded();
    owned(&place.path("link.so"), OTHER, OTHER);
    assert!(run(&place.path("link.so")).stderr.contains("belongs to user 20001"));
    // What a conversion loads, too.
    place.plain("app.db");
    owned(&library, OTHER, OTHER);
    let told = place.pellucid(&["encrypt", "app.db", "--load", "way/libpellucid.so"]);
    assert!(told.code == 1 && told.stderr.contains("belongs to user 20001"), "{told:?}");
}
