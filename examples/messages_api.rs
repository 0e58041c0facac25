//! Runs the stand-in Messages API by hand, to try `pitstop` on the real client with no account.
//!
//! `cargo run --example messages_api -- [PORT] [--usage 100000,130000,155000]`

#![allow(clippy::disallowed_methods, reason = "real programs take real time")]

use std::{process::ExitCode, thread, time::Duration};

#[path = "../tests/it/kit"]
mod kit {
    pub mod messages_api;
    pub mod played;
    pub mod player;
    pub mod prompt_cache;
    pub mod shape;
    pub mod transcripts;
}

use kit::messages_api::{MessagesApi, user_texts};

const USAGE: &str = "usage: messages_api [PORT] [--usage TOKENS,TOKENS,…]";

/// The port and the script of context sizes.
fn arguments() -> Option<(u16, Vec<u64>)> {
    let (mut port, mut usage) = (0, Vec::new());
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        if arg == "--usage" {
            let list = args.next()?;
            usage = list
                .split(',')
                .map(|n| n.trim().parse().ok())
                .collect::<Option<_>>()?;
        } else {
            port = arg.parse().ok()?;
        }
    }
    Some((port, usage))
}

fn main() -> ExitCode {
    let Some((port, usage)) = arguments() else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    let api = match MessagesApi::listen(port) {
        Ok(api) => api,
        Err(error) => {
            eprintln!("cannot listen on port {port}: {error}");
            return ExitCode::FAILURE;
        }
    };
    api.report_usage(usage);
    println!("export ANTHROPIC_BASE_URL={}", api.base_url());
    let mut seen = 0;
    loop {
        let calls = api.wait_for_calls(seen + 1, Duration::from_secs(3600));
        for call in &calls[seen..] {
            let last = user_texts(call).pop().unwrap_or_default();
            let first_line = last.lines().next().unwrap_or_default();
            println!("call {}: {} bytes, {first_line:?}", seen + 1, last.len());
            seen += 1;
        }
        thread::sleep(Duration::from_millis(10));
    }
}
