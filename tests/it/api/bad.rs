//! Requests that are none, or wrong: the server answers each with what is wrong, or hangs up, and goes on.

use std::net::Shutdown;

use super::*;
use crate::bad_inputs::{Item, item, outcomes};

/// Stands in a request for the token that it needs.
const TOKEN: &str = "@token@";

#[test]
fn whatever_is_asked_the_server_says_what_is_wrong_and_goes_on() {
    let supervisor = Supervisor::start();
    let token = supervisor.token("control");
    let reported = outcomes(&items(), |input| {
        let text = replaced(input, TOKEN.as_bytes(), token.as_bytes());
        let mut stream = UnixStream::connect(supervisor.socket()).unwrap();
        limit(&stream);
        // A server that refuses early may stop reading; what is not sent is not waited for.
        stream.write_all(&text).ok();
        stream.shutdown(Shutdown::Write).ok();
        let answer = receive(stream);
        assert!(!answer.body.contains(&token) && !answer.head.contains("access-control"));
        let error: serde_json::Value = serde_json::from_str(&answer.body).unwrap_or_default();
        let error = error["error"].as_str().map(|error| format!(" {error}"));
        format!("{}{}", answer.status, error.unwrap_or_default())
    });
    insta::assert_snapshot!("bad_requests", reported);
    supervisor.expects(200, "control", "GET", "/status", b"");
}

fn replaced(bytes: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    match memchr::memmem::find(bytes, from) {
        Some(at) => [&bytes[..at], to, &bytes[at + from.len()..]].concat(),
        None => bytes.to_vec(),
    }
}

/// A request with these parts, and the token.
fn request(first: &str, headers: &[&str], body: &[u8]) -> Vec<u8> {
    let authorized = format!("Authorization: Bearer {TOKEN}");
    let own = ["Host: pitstop", &authorized, "Connection: close"];
    message(first, &[&own, headers].concat(), body)
}

pub fn items() -> Vec<Item> {
    let mut all = first_lines();
    all.extend(headers());
    all.extend(bodies());
    all.extend(queries());
    all
}

fn first_lines() -> Vec<Item> {
    let long = format!("GET /{} HTTP/1.1", "x".repeat(100_000));
    let cases = [
        ("no version", "GET /status"),
        ("version 0.9", "GET /status HTTP/0.9"),
        ("version 2", "GET /status HTTP/2.0"),
        ("version of letters", "GET /status HTTP/x.y"),
        ("version without a number", "GET /status HTTP"),
        ("no path", "GET HTTP/1.1"),
        ("two spaces", "GET  /status HTTP/1.1"),
        ("tabs", "GET\t/status\tHTTP/1.1"),
        ("a space at the end", "GET /status HTTP/1.1 "),
        ("a method in small letters", "get /status HTTP/1.1"),
        ("a method of no kind", "BREW /status HTTP/1.1"),
        ("a method with a control", "G\x01T /status HTTP/1.1"),
        ("no method", "/status HTTP/1.1"),
        ("CONNECT", "CONNECT evil:443 HTTP/1.1"),
        ("TRACE", "TRACE /status HTTP/1.1"),
        ("OPTIONS of all", "OPTIONS * HTTP/1.1"),
        ("a whole address", "GET http://evil/status HTTP/1.1"),
        ("another scheme", "GET file:///etc/passwd HTTP/1.1"),
        ("a path out", "GET /../../etc/passwd HTTP/1.1"),
        (
            "a path out in escapes",
            "GET /%2e%2e/%2e%2e/etc/passwd HTTP/1.1",
        ),
        ("a NUL in the path", "GET /status\0 HTTP/1.1"),
        ("an escaped NUL", "GET /status%00 HTTP/1.1"),
        ("half an escape", "GET /status%2 HTTP/1.1"),
        ("other letters", "GET /stätus HTTP/1.1"),
        ("two slashes", "GET //status HTTP/1.1"),
        ("a slash at the end", "GET /status/ HTTP/1.1"),
        ("a fragment", "GET /status#x HTTP/1.1"),
        ("a line that is too long", &long),
        ("TLS", "\x16\x03\x01\x02\0\x01\0\x01"),
        ("nothing", ""),
        ("NULs", "\0\0\0\0\0\0\0\0"),
        ("HTTP 2's preface", "PRI * HTTP/2.0"),
    ];
    cases
        .map(|(name, line)| item(format!("first line: {name}"), request(line, &[], b"")))
        .into()
}

fn headers() -> Vec<Item> {
    let post = "POST /control/say HTTP/1.1";
    let body = br#"{"text": "go"}"#;
    let long = format!("X: {}", "x".repeat(100_000));
    let many = "A: b\r\n".repeat(500);
    let cases: [(&str, &str); 26] = [
        ("no colon", "Content-Length 14"),
        ("a space before the colon", "Content-Length : 14"),
        ("no name", ": 14"),
        ("a name of other letters", "Cöntent: 14"),
        ("a control in a value", "X: a\x01b"),
        ("a NUL in a value", "X: a\0b"),
        ("a CR in a value", "X: a\rb"),
        ("a folded line", "X: a\r\n b"),
        ("a value in Latin 1", "X: caf\u{e9}"),
        ("no length", "X: y"),
        ("a length of letters", "Content-Length: ten"),
        ("a negative length", "Content-Length: -1"),
        ("a length with a sign", "Content-Length: +14"),
        ("a huge length", "Content-Length: 99999999999999999999999"),
        ("a length beyond the limit", "Content-Length: 104857600"),
        ("a length of 0", "Content-Length: 0"),
        ("a length that is too short", "Content-Length: 5"),
        ("two lengths", "Content-Length: 14\r\nContent-Length: 2"),
        ("a list of lengths", "Content-Length: 14, 14"),
        (
            "a length and pieces",
            "Content-Length: 14\r\nTransfer-Encoding: chunked",
        ),
        ("pieces of no kind", "Transfer-Encoding: gzip"),
        ("pieces twice", "Transfer-Encoding: chunked, chunked"),
        ("pieces that are none", "Transfer-Encoding: chunked"),
        (
            "what is expected of no kind",
            "Content-Length: 14\r\nExpect: magic",
        ),
        (
            "an upgrade",
            "Content-Length: 14\r\nConnection: upgrade\r\nUpgrade: websocket",
        ),
        (
            "a form",
            "Content-Length: 14\r\nContent-Type: application/x-www-form-urlencoded",
        ),
    ];
    let mut all: Vec<Item> = cases
        .into_iter()
        .map(|(name, header)| {
            item(
                format!("header: {name}"),
                request(post, &["Content-Type: application/json", header], body),
            )
        })
        .collect();
    all.push(item("header: too long", request(post, &[&long], body)));
    all.push(item(
        "header: 500 of them",
        request(post, &[many.trim_end()], body),
    ));
    all.push(item(
        "header: none",
        b"GET /status HTTP/1.1\r\n\r\n".as_slice(),
    ));
    all.push(item(
        "header: cut",
        b"GET /status HTTP/1.1\r\nAuthor".as_slice(),
    ));
    all.push(item(
        "header: line feeds alone",
        b"GET /status HTTP/1.1\nHost: pitstop\n\n".as_slice(),
    ));
    for (name, pieces) in [
        ("a size of letters", "zz\r\nab\r\n0\r\n\r\n"),
        ("a negative size", "-5\r\nabcde\r\n0\r\n\r\n"),
        ("a huge size", "ffffffffffffffffff\r\nab\r\n0\r\n\r\n"),
        ("a size that is too small", "1\r\nabcde\r\n0\r\n\r\n"),
        ("an extension", "2;x=\"y\"\r\n{}\r\n0\r\n\r\n"),
        ("no last one", "2\r\n{}\r\n"),
        (
            "a trailer",
            "2\r\n{}\r\n0\r\nAuthorization: Bearer x\r\n\r\n",
        ),
    ] {
        let headers = [
            "Content-Type: application/json",
            "Transfer-Encoding: chunked",
        ];
        all.push(item(
            format!("pieces: {name}"),
            request("POST /control/say HTTP/1.1", &headers, pieces.as_bytes()),
        ));
    }
    all
}

fn bodies() -> Vec<Item> {
    let deep = format!("{{\"text\": {}", "[".repeat(50_000));
    let long = format!("{{\"text\": \"{}\"}}", "x".repeat(70_000));
    let wrong: [(&str, &[u8]); 14] = [
        ("nothing", b""),
        ("cut", b"{\"text\": \"a"),
        ("a list", b"[1, 2]"),
        ("a text", b"\"text\""),
        ("two", b"{} {}"),
        ("deep", deep.as_bytes()),
        ("bad UTF-8", b"{\"text\": \"\xff\"}"),
        ("a byte order mark", b"\xef\xbb\xbf{\"text\": \"a\"}"),
        ("NULs", b"\0\0\0\0"),
        ("comments", b"{/* */\"text\": \"a\"}"),
        ("a lone surrogate", b"{\"text\": \"\\ud800\", \"commit_sha\": \"\\ud800\"}"),
        ("a number beyond all", b"{\"text\": 1e999, \"passed\": 1e999, \"used_tokens\": 1e999}"),
        ("other types", b"{\"text\": {}, \"commit_sha\": [], \"passed\": \"no\", \"environment\": 7, \"task\": 7}"),
        ("a long one", long.as_bytes()),
    ];
    let mut all = Vec::new();
    for path in [
        "/control/say",
        "/control/save",
        "/hooks/git-commit",
        "/hooks/test-result",
        "/context/auto-save",
    ] {
        for (name, body) in wrong {
            let length = format!("Content-Length: {}", body.len());
            let headers = ["Content-Type: application/json", &length];
            all.push(item(
                format!("{path}: {name}"),
                request(&format!("POST {path} HTTP/1.1"), &headers, body),
            ));
        }
    }
    all
}

fn queries() -> Vec<Item> {
    let cases = [
        "used_tokens=-1",
        "used_tokens=x",
        "used_tokens=1.5",
        "used_tokens=",
        "used_tokens=99999999999999999999",
        "max_tokens=0",
        "max_tokens=1000000000001",
        "used_tokens=1&used_tokens=2",
        "used_tokens=%31%",
        "max_tokens=%00",
        "&&&",
        "=1",
        "used_tokens=1;max_tokens=2",
        "%ff=%fe",
    ];
    let asked = cases.map(|query| {
        let first = format!("GET /context/usage?{query} HTTP/1.1");
        item(format!("query: {query}"), request(&first, &[], b""))
    });
    let ids = [
        "..",
        "%2e%2e",
        "x".repeat(5_000).as_str(),
        "0b1c 2d",
        "%00",
        "current%2f..",
        "'; drop table runs; --",
    ]
    .map(|id| {
        let first = format!("GET /api/sessions/{id}/handoff HTTP/1.1");
        let shown: String = id.chars().take(20).collect();
        item(format!("session: {shown}"), request(&first, &[], b""))
    });
    asked.into_iter().chain(ids).collect()
}
