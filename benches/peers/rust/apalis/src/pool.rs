//! The pool of connections, as it ships and at FULL.

use std::collections::BTreeMap;
use std::time::Duration;

use apalis_sqlite::{SqliteConnectOptions, SqlitePool, SqliteStorage};
use peers_common::{Args, Pragmas, give_up};
use sqlx::sqlite::{SqliteJournalMode, SqliteSynchronous};

pub async fn open(args: &Args) -> SqlitePool {
    let options = SqliteConnectOptions::new().filename(args.folder.join("apalis.db")).create_if_missing(true);
    let pool = SqlitePool::connect_with(options.clone()).await.unwrap_or_else(|e| give_up(&e.to_string()));
    SqliteStorage::setup(&pool).await.unwrap_or_else(|e| give_up(&e.to_string()));
    if args.setting != "full" {
        // `setup` turns syncs off for the one connection it is given; those that the pool adds later have SQLite's
        // own level, which is FULL. That is how it ships, and `pragmas` says what came of it.
        return pool;
    }
    pool.close().await;
    // A second pool, on which `setup` is not called again.
    let options = options.journal_mode(SqliteJournalMode::Wal).synchronous(SqliteSynchronous::Full);
    SqlitePool::connect_with(options).await.unwrap_or_else(|e| give_up(&e.to_string()))
}

/// Of all connections that the pool has: the level, or how many have which.
pub async fn pragmas(pool: &SqlitePool) -> Pragmas {
    // A connection comes back a moment after its last use.
    while pool.num_idle() < pool.size() as usize {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let mut connections = Vec::new();
    while let Some(connection) = pool.try_acquire() {
        connections.push(connection);
    }
    let mut levels: BTreeMap<i64, usize> = BTreeMap::new();
    let mut journal_mode = String::new();
    for connection in &mut connections {
        let level = sqlx::query_scalar("PRAGMA synchronous").fetch_one(&mut **connection).await;
        *levels.entry(level.unwrap_or_else(|e| give_up(&e.to_string()))).or_default() += 1;
        let mode = sqlx::query_scalar("PRAGMA journal_mode").fetch_one(&mut **connection).await;
        journal_mode = mode.unwrap_or_else(|e| give_up(&e.to_string()));
    }
    let named = levels.iter().map(|(level, count)| match levels.len() {
        1 => peers_common::level(*level).to_owned(),
        _ => format!("{} on {count}", peers_common::level(*level)),
    });
    Pragmas { synchronous: named.collect::<Vec<_>>().join(", "), journal_mode }
}

pub async fn count(pool: &SqlitePool, sql: &'static str) -> usize {
    let count = sqlx::query_scalar::<_, i64>(sql).fetch_one(pool).await;
    usize::try_from(count.unwrap_or_else(|e| give_up(&e.to_string()))).unwrap_or_default()
}
