// SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
//! Says what ferrum's own crate makes of documents, lines and files:
//!
//!     ferrum-judge env       for each line of stdin, a JSON document, the hash of either release
//!     ferrum-judge profile   for each line of stdin whether either release takes it for an event
//!     ferrum-judge trace     whether stdin is an array of trace events
//!
//! A line is "OLD NEW": a hash or "ok", or "-" where the document is refused.
use std::io::{self, BufRead, Read};

fn either(old: Option<String>, new: Option<String>) -> String {
    let text = |answer: Option<String>| answer.unwrap_or_else(|| "-".into());
    format!("{} {}", text(old), text(new))
}

fn judge_env(line: &str) -> String {
    either(
        serde_json::from_str::<old::Env>(line).ok().map(|env| env.hash().0),
        serde_json::from_str::<new::Env>(line).ok().map(|env| env.hash().0),
    )
}

fn judge_profile(line: &str) -> String {
    let ok = |good: bool| good.then(|| "ok".to_string());
    either(
        ok(old::profile::parse_profile_jsonl_str(line).is_ok()),
        ok(new::profile::parse_profile_jsonl_str(line).is_ok()),
    )
}

fn judge_lines(judge: fn(&str) -> String) {
    for line in io::stdin().lock().lines() {
        println!("{}", judge(&line.expect("stdin is UTF-8")));
    }
}

fn judge_trace() {
    let mut text = String::new();
    io::stdin().read_to_string(&mut text).expect("stdin is UTF-8");
    match serde_json::from_str::<Vec<old::trace::TraceEvent>>(&text) {
        Ok(events) => println!("{} events", events.len()),
        Err(error) => println!("{error}"),
    }
}

fn main() {
    match std::env::args().nth(1).as_deref() {
        Some("env") => judge_lines(judge_env),
        Some("profile") => judge_lines(judge_profile),
        Some("trace") => judge_trace(),
        _ => {
            eprintln!("usage: ferrum-judge env|profile|trace");
            std::process::exit(2);
        }
    }
}
