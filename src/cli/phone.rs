//! `pitstop phone`: pairs a device with the page, lists the paired ones and revokes them.

use std::{
    io::{self, IsTerminal as _, Write as _},
    path::Path,
    time::{Duration, Instant},
};

use chrono::{DateTime, Utc};
use clap::{Args, Subcommand};
use qrcode::{Color, EcLevel, QrCode};
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

/// The light modules around a QR code.
const QUIET_ZONE: usize = 4;

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
        .and_then(|end| closed.map(|()| end))
        .map_err(failed)?;
    let after = store.devices().map_err(failed)?;
    let is_known = |device: &Device| {
        let mut known = before.iter();
        known.any(|one| (&one.name, one.paired_at) == (&device.name, device.paired_at))
    };
    let paired = after.iter().find(|device| !is_known(device));
    match (waited, paired) {
        (End::Closed, Some(device)) => {
            let may = match device.right {
                DeviceRight::Watch => "it may watch",
                DeviceRight::Decide => "it may decide",
            };
            Ok(out::print(&format!(
                "paired {}: {may}\n",
                one_line(&device.name)
            )))
        }
        (End::Interrupted, _) => {
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
    // Nobody is left to see that it could not be shown.
    let _ = stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush());
}

/// Draws a QR code in half blocks, both colours set, so that it is the same on a dark and on a light ground.
fn drawn(text: &str) -> Option<String> {
    const DARK: u8 = 16;
    const LIGHT: u8 = 231;
    let code = QrCode::with_error_correction_level(text, EcLevel::L).ok()?;
    let (width, modules) = (code.width(), code.to_colors());
    let color = |x: usize, y: usize| {
        let place = x.checked_sub(QUIET_ZONE).zip(y.checked_sub(QUIET_ZONE));
        let inside = place.filter(|(x, y)| *x < width && *y < width);
        let is_dark = inside.is_some_and(|(x, y)| modules[y * width + x] == Color::Dark);
        if is_dark { DARK } else { LIGHT }
    };
    let side = width + 2 * QUIET_ZONE;
    let mut drawn = String::new();
    for y in (0..side).step_by(2) {
        for x in 0..side {
            let (upper, lower) = (color(x, y), color(x, y + 1));
            drawn.push_str(&format!("\x1b[38;5;{upper};48;5;{lower}m▀"));
        }
        drawn.push_str("\x1b[0m\n");
    }
    Some(drawn)
}

/// The way in which a pairing has ended.
enum End {
    /// The code was used, or is over.
    Closed,
    /// The person has interrupted it.
    Interrupted,
}

/// Waits until the code is used, over, or not wanted any more.
async fn wait(store: &DeviceStore, code: &str, signals: &mut Signals) -> Result<End, DeviceError> {
    let end = Instant::now() + CODE_TIME;
    while Instant::now() < end && store.waits(code, Moment::now())? {
        tokio::select! {
            _ = signals.next() => return Ok(End::Interrupted),
            () = tokio::time::sleep(LOOK) => {}
        }
    }
    Ok(End::Closed)
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
        let cells: Vec<&str> = lines[2].split_inclusive('▀').collect();
        let (light, dark) = ("38;5;231;48;5;231m▀", "38;5;16;48;5;16m▀");
        assert!(
            lines[0]
                .split_inclusive('▀')
                .take(8)
                .all(|cell| cell.ends_with(light))
        );
        assert!(cells[..4].iter().all(|cell| cell.ends_with(light)));
        // The upper left corner's own upper left corner: its two rows are dark at its edge.
        assert!(cells[4].ends_with(dark), "{:?}", cells[4]);
        assert!(lines.iter().all(|line| line.ends_with("\x1b[0m")));
    }
}
