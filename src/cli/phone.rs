//! `pitstop phone`: pairs a device with the page, lists the paired ones and revokes them.

use std::{
    io::{self, IsTerminal as _, Write as _},
    path::Path,
    time::{Duration, Instant},
};

use chrono::{DateTime, Utc};
use clap::{Args, Subcommand};
use qrcode::{EcLevel, QrCode, render::unicode::Dense1x2};
use rustix::process::Signal;
use serde_json::{Value, json};

use super::{
    here::Here,
    out::{self, Failure, Outcome},
};
use crate::runtime::{Signals, wall};
use pitstop_base::{clean::one_line, exit::INTERRUPTED};
use pitstop_core::config::{
    ApiConfig,
    error::Style,
    load::{Flags, paths::Paths},
};
use pitstop_server::phone::{
    PAGE_ADDRESS,
    devices::{CODE_TIME, Device, DeviceError, DeviceRight, DeviceStore, Moment},
    has_session, page_url,
};

/// The time between two looks whether the code was used.
const LOOK: Duration = Duration::from_millis(200);

/// The longest wait for a session to serve the page, once there is a pairing.
const SERVED_LIMIT: Duration = Duration::from_secs(3);

/// The signals by which a person ends the command.
const INTERRUPTS: [(&str, Signal); 3] = [
    ("SIGINT", Signal::INT),
    ("SIGTERM", Signal::TERM),
    ("SIGHUP", Signal::HUP),
];

/// Pair a phone, or another browser, with the page that shows your sessions.
///
/// It shows a QR code and an address with a code that works once, within two minutes, and waits until it is used. The device may then
/// look, and decide with the same gates as the keys do.
#[derive(Args, Clone, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub struct PhoneArgs {
    /// List or revoke instead
    #[command(subcommand)]
    pub command: Option<PhoneCommand>,
    /// Let the device only look
    #[arg(long)]
    pub watch: bool,
    /// Show this address instead of that of the configuration; the page answers to its own names and to that of `api.url`
    #[arg(long, value_name = "URL")]
    pub url: Option<String>,
}

/// What is done about paired devices.
#[derive(Subcommand, Clone, Debug)]
pub enum PhoneCommand {
    /// List the paired devices.
    List {
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Revoke a device: within a second it is out.
    Revoke {
        /// The name of the device
        #[arg(required_unless_present = "all")]
        name: Option<String>,
        /// Revoke all of them
        #[arg(long, conflicts_with = "name")]
        all: bool,
    },
}

/// Runs the command; returns the exit code.
pub fn run(args: &PhoneArgs, flags: &Flags) -> Outcome {
    match &args.command {
        None => pair(args, flags),
        Some(PhoneCommand::List { json }) => store().and_then(|store| list(&store, *json)),
        Some(PhoneCommand::Revoke { name, .. }) => {
            store().and_then(|store| revoke(&store, name.as_deref()))
        }
    }
}

fn store() -> Result<DeviceStore, Failure> {
    let paths = Paths::of_process(Path::new("/"))?;
    Ok(DeviceStore::new(paths.state_dir()))
}

fn failed(error: DeviceError) -> Failure {
    let hint = match &error {
        DeviceError::Full => "revoke one with `pitstop phone revoke NAME`",
        DeviceError::Damaged { .. } => "remove the file: then no device is paired",
        _ => "",
    };
    let hint = hint.to_owned();
    Failure {
        hint,
        ..error.into()
    }
}

fn list(store: &DeviceStore, as_json: bool) -> Outcome {
    let devices = store.devices().map_err(failed)?;
    let described = devices.iter().map(described);
    let json = || json!({ "devices": described.collect::<Vec<_>>() });
    let text = out::render(as_json, json, || table(&devices, wall()));
    Ok(out::print(&text))
}

fn described(device: &Device) -> Value {
    json!({
        "name": device.name,
        "right": device.right,
        "paired_at": device.paired_at,
        "seen_at": device.seen_at,
    })
}

fn table(devices: &[Device], now: DateTime<Utc>) -> String {
    if devices.is_empty() {
        return "no device is paired\n".to_owned();
    }
    let ago = |at| out::ago(at, now);
    let mut rows = vec![out::heads("NAME|RIGHT|PAIRED|LAST SEEN")];
    rows.extend(devices.iter().map(|device| {
        vec![
            device.name.clone(),
            device.right.word().to_owned(),
            ago(device.paired_at),
            device.seen_at.map_or_else(|| "never".to_owned(), ago),
        ]
    }));
    out::columns(&rows)
}

fn revoke(store: &DeviceStore, name: Option<&str>) -> Outcome {
    let is_meant = |device: &Device| name.is_none_or(|name| device.name == name);
    let revoked = store.revoke(is_meant).map_err(failed)?;
    if let Some(name) = name.filter(|_| revoked.is_empty()) {
        let error = format!("no device named {name:?} is paired");
        return Err(out::failed(&error, "`pitstop phone list` lists them"));
    }
    if revoked.is_empty() {
        return Ok(out::print("no device is paired\n"));
    }
    let lines = revoked
        .iter()
        .map(|device| format!("revoked {}\n", one_line(&device.name)));
    Ok(out::print(&lines.collect::<String>()))
}

fn pair(args: &PhoneArgs, flags: &Flags) -> Outcome {
    let here = Here::find_configured(flags)?;
    let given = args.url.as_deref().map(checked).transpose()?;
    let right = if args.watch {
        DeviceRight::Watch
    } else {
        DeviceRight::Decide
    };
    let store = DeviceStore::new(here.paths.state_dir());
    let before = store.devices().map_err(failed)?;
    let runtime = out::runtime()?;
    // The signals are heard before there is a code to take back.
    let mut signals = {
        let _inside = runtime.enter();
        Signals::listen(&INTERRUPTS)?
    };
    let code = store.open_pairing(right, Moment::now()).map_err(failed)?;
    let has_session = has_session(here.paths.run_dirs());
    let served = if has_session {
        runtime.block_on(served(&store))
    } else {
        None
    };
    let note = match &served {
        Some(_) => "",
        None if has_session => "No session serves the page yet: its log says why.\n",
        None => "No session runs now. The page answers while one does.\n",
    };
    let address = given.or(served);
    let address = address.unwrap_or_else(|| address_of(&here.config.api));
    show(&format!("{address}/#{code}"), right, note);
    let waited = runtime.block_on(wait(&store, &code, &mut signals));
    let closed = store.close_pairing(&code);
    let waited = waited
        .and_then(|interrupted| closed.map(|()| interrupted))
        .map_err(failed)?;
    let after = store.devices().map_err(failed)?;
    let is_known = |device: &Device| {
        let mut known = before.iter();
        known.any(|one| (&one.name, one.paired_at) == (&device.name, device.paired_at))
    };
    let paired = after.iter().find(|device| !is_known(device));
    match (waited, paired) {
        (false, Some(device)) => {
            let may = match device.right {
                DeviceRight::Watch => "it may watch",
                DeviceRight::Decide => "it may decide",
            };
            Ok(out::print(&format!(
                "paired {}: {may}\n",
                one_line(&device.name)
            )))
        }
        (true, _) => {
            out::complain("interrupted: the code is taken back", "");
            Ok(INTERRUPTED)
        }
        _ => Err(out::failed(
            "no device was paired: the code is over",
            "run `pitstop phone` again",
        )),
    }
}

/// Returns the address that is given, without a slash at its end.
fn checked(url: &str) -> Result<String, Failure> {
    let is_web = url.starts_with("https://") || url.starts_with("http://");
    if is_web && !url.contains(|c: char| c.is_whitespace() || c.is_control() || "?#".contains(c)) {
        return Ok(url.trim_end_matches('/').to_owned());
    }
    let error = format!("expected an address such as https://desk.example.org, found {url:?}");
    Err(out::misused(&error, ""))
}

/// Returns the address of the page by this configuration.
fn address_of(api: &ApiConfig) -> String {
    let address = api.listen.unwrap_or(PAGE_ADDRESS);
    page_url(api.url.as_deref(), address, api.certificate.is_some())
}

/// Waits until a session serves the page, and returns its address: that session may have been started with other settings.
async fn served(store: &DeviceStore) -> Option<String> {
    let end = Instant::now() + SERVED_LIMIT;
    loop {
        let served = store.served_at();
        if served.is_some() || Instant::now() >= end {
            return served;
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// Shows the address with its code. It is written as it is: it is meant to be seen.
fn show(url: &str, right: DeviceRight, note: &str) {
    let mut stdout = io::stdout();
    let mut text = String::new();
    if stdout.is_terminal() && out::style(&stdout) == Style::Colour {
        text.extend(drawn(url));
    }
    let may = match right {
        DeviceRight::Watch => "look",
        DeviceRight::Decide => "look and decide",
    };
    text.push_str(&format!("{}\n\n", one_line(url)));
    text.push_str(&format!(
        "Open it on the device that may {may}. It works once, within two minutes; Ctrl-C takes it back.\n"
    ));
    if ["http://127.", "http://localhost", "http://[::1]"]
        .iter()
        .any(|own| url.starts_with(own))
    {
        text.push_str("This address is that of this machine itself: docs/phone.md says how another one reaches it.\n");
    }
    text.push_str(note);
    // No reader is left to see that it could not be shown.
    let _ = stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush());
}

/// Draws a QR code in half blocks, both colours set, so that it is the same on a dark and on a light ground.
fn drawn(text: &str) -> Option<String> {
    let code = QrCode::with_error_correction_level(text, EcLevel::L).ok()?;
    let (set, reset) = ("\x1b[38;5;16;48;5;231m", "\x1b[0m\n");
    let rows = code.render::<Dense1x2>().build();
    let rows = rows.replace('\n', &format!("{reset}{set}"));
    Some(format!("{set}{rows}{reset}"))
}

/// Waits until the code is used, over, or not wanted any more; returns true if the person has interrupted it.
async fn wait(store: &DeviceStore, code: &str, signals: &mut Signals) -> Result<bool, DeviceError> {
    let end = Instant::now() + CODE_TIME;
    while Instant::now() < end && store.waits(code, Moment::now())? {
        tokio::select! {
            _ = signals.next() => return Ok(true),
            () = tokio::time::sleep(LOOK) => {}
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_is_given_is_one_of_the_web() {
        assert_eq!(checked("https://a.b/").unwrap(), "https://a.b");
        for url in [
            "a.b",
            "ftp://a.b",
            "http://a b",
            "http://a/#x",
            "http://a\n",
        ] {
            assert!(checked(url).is_err(), "{url:?}");
        }
    }

    #[test]
    fn a_code_is_drawn_with_its_corners_and_a_light_frame() {
        let drawn = drawn("http://127.0.0.1:7433/#0123456789abcdef0123456789abcdef").unwrap();
        let lines: Vec<&str> = drawn.lines().collect();
        let rows = |row: &str| row.starts_with("\x1b[38;5;16;48;5;231m");
        assert!(lines.iter().all(|row| rows(row)));
        let cells = |row: usize| lines[row].split_once('m').unwrap().1;
        assert!(cells(0).starts_with("        "));
        // The upper left corner's own upper left corner: its two rows are dark at its edge.
        assert!(cells(2).starts_with("    █"), "{:?}", cells(2));
        assert!(lines.iter().all(|line| line.ends_with("\x1b[0m")));
    }
}
