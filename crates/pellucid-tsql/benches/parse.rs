//! Parser speed on generated scripts, in bytes per second. The goal is 20 MB/s.

use std::hint::black_box;

use criterion::{criterion_group, criterion_main, Criterion, Throughput};
use pellucid_tsql::batch::{Item, NoFiles, Script, Variables};
use pellucid_tsql::lexer::{Lexer, TokenKind};
use pellucid_tsql::{parse, statements};

/// Statements of a maintenance script, numbered, about 1 MiB.
fn script(separator: &str) -> String {
    let mut text = String::new();
    let mut number = 0;
    while text.len() < 1 << 20 {
        number += 1;
        text.push_str(&format!(
            "BACKUP DATABASE [db{number}] TO DISK = N'D:\\backup\\db{number}.bak'\n\
             WITH NOFORMAT, INIT, NAME = N'db{number}-Full', COMPRESSION, STATS = 10,\n\
             ENCRYPTION (ALGORITHM = AES_256, SERVER CERTIFICATE = BackupCert);\n\
             IF EXISTS (SELECT * FROM sys.databases WHERE name = 'db{number}' AND state = 0)\n\
             ALTER INDEX ALL ON [db{number}].dbo.[Table] REBUILD WITH (FILLFACTOR = 80, ONLINE = OFF) -- {number}\n\
             SELECT name, size = MAX(backup_size / 1024 / 1024.0) FROM msdb.dbo.backupset b\n\
             JOIN msdb.dbo.backupmediafamily f ON b.media_set_id = f.media_set_id WHERE name LIKE 'db{number}%'\n\
             GROUP BY name ORDER BY name{separator}"
        ));
    }
    text
}

fn benches(criterion: &mut Criterion) {
    let text = script("\n");
    let mut group = criterion.benchmark_group("sql");
    group.throughput(Throughput::Bytes(text.len() as u64)).sample_size(20);
    group.bench_function("tokens", |bencher| {
        bencher.iter(|| {
            let mut lexer = Lexer::new(&text).ok()?;
            let mut tokens = 0;
            while lexer.token().ok()?.kind != TokenKind::End {
                tokens += 1;
            }
            Some(black_box(tokens))
        });
    });
    group.bench_function("batch to trees", |bencher| bencher.iter(|| parse(black_box(&text))));
    group.bench_function("batch, a statement at a time", |bencher| {
        bencher.iter(|| statements(black_box(&text)).map(Iterator::count));
    });
    let text = script("\nGO\n");
    group.throughput(Throughput::Bytes(text.len() as u64));
    group.bench_function("script to trees", |bencher| {
        bencher.iter(|| {
            let reader = std::io::Cursor::new(text.clone().into_bytes());
            Script::new("bench.sql", reader, NoFiles, Variables::new())
                .filter_map(|item| match item {
                    Ok(Item::Batch(batch)) => parse(batch.text()).ok(),
                    _ => None,
                })
                .map(|statements| statements.len())
                .sum::<usize>()
        });
    });
    group.finish();
}

criterion_group!(parse_benches, benches);
criterion_main!(parse_benches);
