//! The shapes of what `--json` writes: a JSON Schema (draft 2020-12) for each command in docs/schemas.
//!
//! Every test that runs a command with `--json` holds its answer to the schema: no field that is not in it, none missing that it
//! requires, no other type. `PELLUCID_UPDATE=schemas` adds to the schemas what the tests see; descriptions stay.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Mutex;

use serde_json::{json, Map, Value};

/// Commands that have commands of their own.
const FAMILIES: [&str; 10] = [
    "broker",
    "cert",
    "key",
    "instance",
    "plugin",
    "protector",
    "scan",
    "policy",
    "history",
    "events",
];
/// Their answers are rows and messages of scripts, or another program's.
const OTHERS: [&str; 3] = ["sql", "lab", "run"];

/// Where the schemas are.
pub fn directory() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/schemas")
}

/// Holds what a command wrote to its schema; `words` are its arguments.
pub fn check(words: &[String], stdout: &str) {
    let Some(command) = command(words) else { return };
    // What else a command writes to standard output is no document: a backup, a key.
    let documents = stdout.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    for document in documents.filter(Value::is_object) {
        let is_failure = document.as_object().is_some_and(|all| all.contains_key("error"))
            && document.get("hint").is_some();
        let name = if is_failure { "error" } else { &command };
        if std::env::var_os("PELLUCID_UPDATE").is_some_and(|what| what == "schemas") {
            learn(name, &document);
            continue;
        }
        let mut wrong = Vec::new();
        differences(&schema(name), &document, name, &mut wrong);
        assert!(wrong.is_empty(), "docs/schemas/{name}.json: {wrong:#?}\n{document}");
    }
}

/// `cert-list` of `--json cert list`.
fn command(words: &[String]) -> Option<String> {
    let mut names = words.iter().filter(|word| !word.starts_with('-'));
    let first = names.next()?;
    let first = if first == "rotate" { "rekey" } else { first };
    if OTHERS.contains(&first) {
        return None;
    }
    let second = names.next().filter(|_| FAMILIES.contains(&first)).filter(|word| {
        word.chars().all(|letter| letter.is_ascii_lowercase() || letter == '-') && word.len() < 12
    });
    let third = names.next().filter(|_| second.is_some_and(|second| second == "password"));
    let all = [Some(first), second.map(String::as_str), third.map(String::as_str)];
    Some(all.into_iter().flatten().collect::<Vec<_>>().join("-"))
}

fn schema(name: &str) -> Value {
    static READ: Mutex<BTreeMap<String, Value>> = Mutex::new(BTreeMap::new());
    let mut read = READ.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let of_file = || {
        let path = directory().join(format!("{name}.json"));
        let text = std::fs::read_to_string(&path)
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        serde_json::from_str(&text).unwrap()
    };
    read.entry(name.to_owned()).or_insert_with(of_file).clone()
}

fn types(schema: &Value) -> Vec<String> {
    match &schema["type"] {
        Value::String(one) => vec![one.clone()],
        Value::Array(all) => all.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        _ => Vec::new(),
    }
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// What of a value is not as its schema says.
pub fn differences(schema: &Value, value: &Value, at: &str, wrong: &mut Vec<String>) {
    let (own, allowed) = (type_of(value), types(schema));
    let fits = allowed.iter().any(|one| one == own || (one == "number" && own == "integer"));
    if !fits {
        wrong.push(format!("{at} is {own}, not {}", allowed.join(" or ")));
        return;
    }
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                match schema["properties"].get(name) {
                    Some(of) => differences(of, field, &format!("{at}.{name}"), wrong),
                    None => wrong.push(format!("{at}.{name} is not in the schema")),
                }
            }
            let required = schema["required"].as_array().into_iter().flatten();
            for name in required.filter_map(Value::as_str) {
                if !fields.contains_key(name) {
                    wrong.push(format!("{at}.{name} is missing"));
                }
            }
        }
        Value::Array(items) => {
            for (number, item) in items.iter().enumerate() {
                differences(&schema["items"], item, &format!("{at}[{number}]"), wrong);
            }
        }
        _ => {}
    }
}

/// The schema that has exactly what a value has.
fn of_value(value: &Value) -> Value {
    let mut schema = json!({ "type": type_of(value) });
    match value {
        Value::Object(fields) => {
            let properties: Map<_, _> =
                fields.iter().map(|(name, field)| (name.clone(), of_value(field))).collect();
            schema["properties"] = properties.into();
            schema["required"] = fields.keys().cloned().collect();
            schema["additionalProperties"] = false.into();
        }
        Value::Array(items) => {
            let all = items.iter().map(of_value).reduce(|one, other| both(&one, &other));
            if let Some(all) = all {
                schema["items"] = all;
            }
        }
        _ => {}
    }
    schema
}

/// The schema of what is as either says.
fn both(one: &Value, other: &Value) -> Value {
    let mut all = types(one);
    all.extend(types(other));
    if all.iter().any(|name| name == "number") {
        all.retain(|name| name != "integer");
    }
    all.sort();
    all.dedup();
    let mut schema = json!({});
    schema["type"] = match <[String; 1]>::try_from(all.clone()) {
        Ok([only]) => only.into(),
        Err(_) => all.into(),
    };
    let of = |schema: &Value, key: &str| schema.get(key).cloned();
    if let Some(description) = of(one, "description").or(of(other, "description")) {
        schema["description"] = description;
    }
    let fields = |schema: &Value| schema["properties"].as_object().cloned();
    match (fields(one), fields(other)) {
        (Some(mut fields), Some(more)) => {
            for (name, field) in more {
                let known = fields.get(&name).cloned();
                fields.insert(name, known.map_or(field.clone(), |known| both(&known, &field)));
            }
            let required = |schema: &Value, name: &Value| {
                schema["required"].as_array().is_some_and(|all| all.contains(name))
            };
            let names = fields.keys().cloned().map(Value::from);
            let names = names.filter(|name| required(one, name) && required(other, name));
            schema["required"] = names.collect();
            schema["properties"] = fields.into();
            schema["additionalProperties"] = false.into();
        }
        (None, None) => {}
        (Some(_), None) | (None, Some(_)) => {
            let has = if one.get("properties").is_some() { one } else { other };
            for key in ["properties", "required", "additionalProperties"] {
                schema[key] = has[key].clone();
            }
        }
    }
    if let Some(items) = match (of(one, "items"), of(other, "items")) {
        (Some(one), Some(other)) => Some(both(&one, &other)),
        (one, other) => one.or(other),
    } {
        schema["items"] = items;
    }
    schema
}

fn learn(name: &str, document: &Value) {
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let path = directory().join(format!("{name}.json"));
    std::fs::create_dir_all(directory()).unwrap();
    let known = std::fs::read_to_string(&path).ok();
    let known = known.map(|text| serde_json::from_str::<Value>(&text).unwrap());
    let seen = of_value(document);
    let mut schema = known.as_ref().map_or(seen.clone(), |known| both(known, &seen));
    let title = match name {
        "error" => "A command that failed".to_owned(),
        name => format!("pellucid --json {}", name.replacen('-', " ", 1)),
    };
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema".into();
    schema["title"] = known.and_then(|known| known.get("title").cloned()).unwrap_or(title.into());
    let text = serde_json::to_string_pretty(&schema).unwrap() + "\n";
    std::fs::write(path, text).unwrap();
}
