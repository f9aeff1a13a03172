//! HASHBYTES, and the functions that give something else each time.

use sha2::Digest;

use super::{scalar, text_at, unexpected, value_at, Scalar};
use crate::message::{table, Message, Result};
use crate::values::convert::{to_hex, Value};

pub(super) const SCALARS: &[Scalar] = &[scalar("tsql_hashbytes", hash_bytes)];

/// Functions that are called for each row.
pub(super) type Random = (&'static str, fn(&[Value]) -> Result<Value>);
pub(super) const RANDOM: &[Random] =
    &[("tsql_newid", |_| new_id()), ("tsql_rand", rand), ("tsql_crypt_gen_random", random_bytes)];

/// `tsql_hashbytes(algorithm, bytes)`; an unknown algorithm gives NULL.
fn hash_bytes(arguments: &[Value]) -> Result<Value> {
    let Value::Blob(bytes) = value_at(arguments, 1)? else { return Err(unexpected(1)) };
    let digest = match text_at(arguments, 0)?.trim_end().to_ascii_uppercase().as_str() {
        "MD5" => md5::Md5::digest(bytes).to_vec(),
        "SHA" | "SHA1" => sha1::Sha1::digest(bytes).to_vec(),
        "SHA2_256" => sha2::Sha256::digest(bytes).to_vec(),
        "SHA2_512" => sha2::Sha512::digest(bytes).to_vec(),
        old @ ("MD2" | "MD4") => return Err(Message::unsupported(format!("HASHBYTES {old}"))),
        _ => return Ok(Value::Null),
    };
    Ok(Value::Blob(digest))
}

fn random<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|error| Message::of(table::NO_RANDOM_NUMBERS, [&error]))?;
    Ok(bytes)
}

/// CRYPT_GEN_RANDOM. The seed, which is only added to what the system gives, is left aside.
fn random_bytes(arguments: &[Value]) -> Result<Value> {
    const BYTES_MOST: i64 = 8000;
    let length = match value_at(arguments, 0)? {
        Value::Null => return Ok(Value::Null),
        Value::Integer(length) if (1..=BYTES_MOST).contains(length) => *length as usize,
        _ => return Err(Message::unsupported("CRYPT_GEN_RANDOM of less than 1 or more than 8000")),
    };
    let mut bytes = vec![0; length];
    getrandom::fill(&mut bytes).map_err(|error| Message::of(table::NO_RANDOM_NUMBERS, [&error]))?;
    Ok(Value::Blob(bytes))
}

/// A random uniqueidentifier (RFC 9562, version 4).
fn new_id() -> Result<Value> {
    new_guid().map(Value::Text)
}

/// A new uniqueidentifier.
pub(crate) fn new_guid() -> Result<String> {
    let mut bytes = random::<16>()?;
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let hex = to_hex(&bytes);
    Ok([&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-"))
}

/// A float from 0 to 1, both excluded. Not for keys.
fn rand(arguments: &[Value]) -> Result<Value> {
    if !arguments.is_empty() {
        return Err(Message::unsupported("RAND with a seed"));
    }
    let number = u64::from_be_bytes(random()?) >> 11;
    Ok(Value::Real((number as f64 + 0.5) / (1_u64 << 53) as f64))
}
