//! `pitstop api METHOD PATH`: sends a request to the control socket of this directory, so that a script needs no token.

use clap::{Args, ValueEnum};

use super::out::{self, Failure, Outcome};

/// The size in bytes of the longest body that is sent: more than the server takes, so that the server reports that.
const BODY: u64 = 2 << 20;

/// Send a request to the supervisor of this directory and print its answer.
///
/// Such as `pitstop api GET /status`, or `pitstop api POST /control/say --data '{"text": "go on"}'`. The user's own token is
/// added. Exits with 0 if the request was accepted, 1 if it was refused, 2 on bad usage, 3 if no supervisor runs here.
#[derive(Args, Clone, Debug)]
pub struct ApiArgs {
    /// GET or POST
    #[arg(value_enum, ignore_case = true)]
    pub method: Method,
    /// The path, such as `/status` or `/context/usage?used_tokens=90000`
    pub path: String,
    /// The JSON to post, else `{}`; `-` reads it from standard input
    #[arg(long, value_name = "JSON", allow_hyphen_values = true)]
    pub data: Option<String>,
}

/// The methods that the API has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "UPPER")]
pub enum Method {
    /// Read
    Get,
    /// Order or report
    Post,
}

/// Runs the command; returns the exit code.
pub fn run(args: &ApiArgs) -> Outcome {
    check_path(&args.path)?;
    if args.method == Method::Get && args.data.is_some() {
        return Err(out::misused("--data is only for POST", ""));
    }
    let body = match args.data.as_deref() {
        Some("-") => out::piped(BODY),
        given => Ok(given.unwrap_or("{}").as_bytes().to_vec()),
    };
    let body = body.map_err(|error| out::failed(format!("cannot read the JSON: {error}"), ""))?;
    let answer = out::ask(|door, deadline| match args.method {
        Method::Get => door.get(&args.path, deadline),
        Method::Post => door.post(&args.path, &body, deadline),
    })?;
    let text = String::from_utf8_lossy(&answer.body);
    Ok(out::print(&format!("{}\n", text.trim_end())))
}

/// Checks that this can be sent as the path of a request, and will be answered at once.
fn check_path(path: &str) -> Result<(), Failure> {
    if !path.starts_with('/') || !path.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(out::misused(
            format!("{path:?} is not a path"),
            "expected printable ASCII that begins with a slash, such as /status",
        ));
    }
    if path.split('?').next() == Some("/events") {
        return Err(out::misused(
            "/events is a stream that does not end, and this command prints complete answers only",
            "read it with curl, as docs/api.md shows",
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_path_that_is_answered_at_once_is_sent() {
        assert_eq!(check_path("/context/usage?used_tokens=1"), Ok(()));
        for wrong in ["status", "/a b", "/a\r\nX: y", "/é", "/events?last=3"] {
            assert!(check_path(wrong).is_err(), "{wrong}");
        }
    }
}
