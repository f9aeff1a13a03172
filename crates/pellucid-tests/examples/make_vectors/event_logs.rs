//! Vectors of event logs, chained here from docs/format.md and not by the keyring's code.

use aws_lc_rs::{digest, hmac};
use pellucid::hash::hex;
use pellucid::Result;

use super::keyrings::{derive, sealed_file};
use super::{key_bytes, Case};

fn sha256(bytes: &[u8]) -> [u8; 32] {
    digest::digest(&digest::SHA256, bytes).as_ref().try_into().unwrap()
}

/// A line of the chain, with its line feed.
fn line(secret: &[u8; 32], seq: u64, prev: &[u8; 32], more: &str) -> Vec<u8> {
    let key: [u8; 32] = derive(secret, b"", &[b"pellucid/1 event log"]);
    let body = format!(
        "{{\"action\":\"opened\",\"name\":\"/srv/app{seq}.db\",\"subject\":\"database\"{more},\"seq\":{seq},\"prev\":\"{}\"",
        hex(prev)
    );
    let mac = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &key), body.as_bytes());
    format!("{body},\"mac\":\"{}\"}}\n", hex(mac.as_ref())).into_bytes()
}

/// Four lines in a chain behind two of before there was one.
fn lines(secret: &[u8; 32], before: &[u8]) -> Vec<Vec<u8>> {
    let mut lines = vec![line(secret, 1, &sha256(before), ",\"begins\":true")];
    for seq in 2..=4 {
        let prev = sha256(&lines[seq as usize - 2]);
        lines.push(line(secret, seq, &prev, ""));
    }
    lines
}

pub fn cases() -> Result<Vec<Case>> {
    let (service, master, secret) = (key_bytes(96), key_bytes(160), key_bytes(16));
    let before = b"{\"action\":\"created\"}\n{\"action\":\"added\"}\n".to_vec();
    let own = lines(&secret, &before);
    let whole = [&before[..], &own.concat()].concat();
    let memory = |seq: u64, end: usize, last: &[u8]| {
        [&secret[..], &seq.to_be_bytes(), &(end as u64).to_be_bytes(), &sha256(last)].concat()
    };
    let known = memory(4, whole.len(), &own[3]);
    let held = |content: &[u8]| sealed_file(&master, 6, "events", content);
    let good = Case::new("event-log", "whole")
        .with("expect", "success")
        .with_bytes("service-key", &service)
        .with_bytes("master-key-file", &sealed_file(&service, 1, "", &master)?)
        .with_bytes("keyring-events", &held(&known)?)
        .with("last", 4)
        .with_body(&whole);
    let edited = |kind: &str, line: usize, pieces: &[&[u8]]| {
        good.failing(kind, "unauthentic", &format!("line {line} "))
            .with("line", line)
            .with_body(&pieces.concat())
    };
    let [one, two, three, four] = [0, 1, 2, 3].map(|at| &own[at][..]);
    let mut flipped = two.to_vec();
    flipped[20] ^= 1;
    let put_in = b"{\"action\":\"dropped\"}\n";
    let foreign = lines(&key_bytes(17), &before);
    // A writer was interrupted between the log and the keyring, and another one within a line.
    let mut ahead = good.clone().with("kind", "ahead-of-the-keyring");
    let end = whole.len() - four.len();
    ahead = ahead.with_bytes("keyring-events", &held(&memory(3, end, three))?);
    let torn = &four[..30];
    let between = [torn, b"\n"].concat();
    let prev = sha256(&[&sha256(three)[..], &between].concat());
    let more = format!(",\"unfinished_bytes\":{}", between.len());
    let behind = line(&secret, 4, &prev, &more);
    let unfinished = [&whole[..end], &between, &behind].concat();
    let memory_of_it = held(&memory(4, unfinished.len(), &behind))?;
    Ok(vec![
        edited("flipped", 4, &[&before, one, &flipped, three, four]),
        edited("line-taken-out", 4, &[&before, one, three, four]),
        edited("line-put-in", 5, &[&before, one, two, put_in, three, four]),
        edited("lines-exchanged", 4, &[&before, one, three, two, four]),
        edited("line-twice", 5, &[&before, one, two, two, three, four]),
        edited("line-of-another-chain", 5, &[&before, one, two, &foreign[2], four]),
        edited("cut", 6, &[&before, one, two, three]),
        edited("emptied", 1, &[]),
        edited("beginning-changed", 3, &[&before[1..], one, two, three, four]),
        edited(
            "another-end",
            6,
            &[&before, one, two, three, &line(&secret, 4, &sha256(three), ",\"forced\":true")],
        ),
        ahead,
        good.clone()
            .with("kind", "unfinished-line")
            .with_bytes("keyring-events", &memory_of_it)
            .with_body(&unfinished),
        good,
    ])
}
