//! What a browser can be made to send, and what a thief of one secret would: all of it is refused.

use super::*;

/// The requests that another page, another site or another program could send, each with what it tries.
fn attacks(desk: &Desk, device: &Device, stale: &Device) -> Vec<(String, Request)> {
    let port = desk.address.port();
    let read = desk.of(device, "GET", "/phone/sessions");
    let order = desk.of(device, "POST", &format!("/phone/sessions/{ID}/pause"));
    let code = "0123456789abcdef0123456789abcdef";
    let pair = desk.request("POST", "/phone/pair");
    let pair = pair.body(&json!({"code": code, "name": "x"}).to_string());
    let mut all = Vec::new();
    for request in [&read, &order] {
        hosts(port, request, &mut all);
        origins(port, request, &mut all);
        secrets(device, stale, request, &mut all);
        cookies(device, request, &mut all);
        heads(request, &mut all);
    }
    lengths(&order, &mut all);
    forms(&order, &mut all);
    forms(&pair, &mut all);
    shapes(device, &read, &order, &mut all);
    names(code, &pair, &mut all);
    all
}

type Attacks = Vec<(String, Request)>;

fn hosts(port: u16, request: &Request, all: &mut Attacks) {
    let own = format!("127.0.0.1:{port}");
    for host in [
        "evil.example".to_owned(),
        format!("evil.example:{port}"),
        format!("localhost.evil.example:{port}"),
        format!("desk.localhost:{port}"),
        format!("localhost.:{port}"),
        "127.0.0.1".to_owned(),
        "localhost:1".to_owned(),
        format!("2130706433:{port}"),
        format!("127.1:{port}"),
        format!("0x7f.0.0.1:{port}"),
        format!("0.0.0.0:{port}"),
        format!("[::ffff:127.0.0.1]:{port}"),
        format!("[::]:{port}"),
        format!("localhost:{port}@evil.example"),
        format!("localhost:{port}, evil.example"),
        String::new(),
    ] {
        all.push((
            format!("Host {host:?}"),
            request.clone().header("Host", &host),
        ));
    }
    all.push(("no Host".to_owned(), request.clone().without("Host")));
    let two = request.clone().also("Host", "evil.example");
    all.push(("two Hosts".to_owned(), two));
    all.push((
        "the same Host twice".to_owned(),
        request.clone().also("Host", &own),
    ));
}

fn origins(port: u16, request: &Request, all: &mut Attacks) {
    for origin in [
        "null".to_owned(),
        String::new(),
        "http://evil.example".to_owned(),
        format!("http://evil.example:{port}"),
        "http://127.0.0.1".to_owned(),
        "http://127.0.0.1:1".to_owned(),
        format!("http://localhost:{port}"),
        format!("http://desk.127.0.0.1:{port}"),
        format!("http://127.0.0.1:{port}.evil.example"),
        format!("http://127.0.0.1:{port}@evil.example"),
        format!("http://127.0.0.1:{port}/"),
        format!("ftp://127.0.0.1:{port}"),
        format!("https://127.0.0.1:{port}"),
        format!("HTTP://127.0.0.1:{port}"),
        format!("127.0.0.1:{port}"),
        "file://".to_owned(),
        "chrome-extension://abcdefgh".to_owned(),
    ] {
        let name = format!("Origin {origin:?}");
        all.push((name, request.clone().header("Origin", &origin)));
    }
    let own = format!("http://127.0.0.1:{port}");
    let two = request
        .clone()
        .header("Origin", &own)
        .also("Origin", "null");
    all.push(("two Origins".to_owned(), two));
    for site in [
        "cross-site",
        "same-site",
        "none",
        "",
        "same-origin, cross-site",
    ] {
        let name = format!("Sec-Fetch-Site {site:?}");
        all.push((name, request.clone().header("Sec-Fetch-Site", site)));
    }
    let two = request.clone().also("Sec-Fetch-Site", "cross-site");
    all.push(("two Sec-Fetch-Sites".to_owned(), two));
}

fn secrets(device: &Device, stale: &Device, request: &Request, all: &mut Attacks) {
    let (_, cookie) = device.cookie.split_once('=').unwrap();
    let with_key = |key: &str| request.clone().header("X-Pitstop-Key", key);
    let with_cookie = |cookie: &str| request.clone().header("Cookie", cookie);
    let of = |name: &str, request: Request| (name.to_owned(), request);
    all.extend([
        of(
            "a cookie without a key",
            request.clone().without("X-Pitstop-Key"),
        ),
        of("a key without a cookie", request.clone().without("Cookie")),
        of("an empty key", with_key("")),
        of("a key and more", with_key(&format!("{}0", device.key))),
        of("a part of the key", with_key(&device.key[..63])),
        of("the cookie for the key", with_key(cookie)),
        of("the key of another device", with_key(&stale.key)),
        of("the cookie of a revoked device", with_cookie(&stale.cookie)),
        of(
            "a cookie of another name",
            with_cookie(&format!("pitstop2={cookie}")),
        ),
        of("a cookie without a name", with_cookie(cookie)),
        of(
            "two keys",
            request.clone().also("X-Pitstop-Key", &device.key),
        ),
        of("a revoked device", stale.sign(request.clone())),
        of(
            "the token of a session",
            request
                .clone()
                .without("Cookie")
                .header("Authorization", "Bearer ab12"),
        ),
    ]);
}

/// Cookies that are almost that of a device.
fn cookies(device: &Device, request: &Request, all: &mut Attacks) {
    let (_, cookie) = device.cookie.split_once('=').unwrap();
    let others = "pitstop=0; ".repeat(4);
    for text in [
        format!("Pitstop={cookie}"),
        format!("PITSTOP={cookie}"),
        format!("pitstop ={cookie}"),
        format!("pitstop=\"{cookie}\""),
        format!("pitstop={}", cookie.to_uppercase()),
        format!("pitstop=0{cookie}"),
        format!("pitstop={cookie}, pitstop={cookie}"),
        format!("__Host-pitstop={cookie}"),
        format!("theme=pitstop={cookie}"),
        format!("{others}pitstop={cookie}"),
        format!("theme={}; pitstop={cookie}", "x".repeat(20_000)),
    ] {
        let name = format!("Cookie {:?}", &text[..text.len().min(40)]);
        all.push((name, request.clone().header("Cookie", &text)));
    }
    let key = device.key.to_uppercase();
    let loud = request.clone().header("X-Pitstop-Key", &key);
    all.push(("the key in capitals".to_owned(), loud));
    let underlined = request.clone().without("X-Pitstop-Key");
    let underlined = underlined.also("X_Pitstop_Key", &device.key);
    all.push(("the key in a header with underlines".to_owned(), underlined));
}

/// Heads that two programs could read as different requests, or that never end.
fn heads(request: &Request, all: &mut Attacks) {
    let (method, target) = request.line.split_once(' ').unwrap();
    let target = target.trim_end_matches(" HTTP/1.1");
    let mut lines = vec![
        format!("{} {target} HTTP/1.1", method.to_lowercase()),
        format!("{method}  {target} HTTP/1.1"),
        format!("{method} {target}"),
        format!("{method} {target} HTTP/2.0"),
        format!("{method} {target} HTTP/1.1 HTTP/1.1"),
        format!("{method} {target}\0 HTTP/1.1"),
        format!("{method} * HTTP/1.1"),
        "PRI * HTTP/2.0".to_owned(),
        "\x16\x03\x01\x02\x00\x01".to_owned(),
    ];
    for path in [
        target.replacen('/', "//", 1),
        target.replace("/phone/", "/phone//"),
        target.replace("/phone/", "/phone/./"),
        target.replace("/phone/", "/x/../phone/"),
        target.replace("/phone/", "/phone%2f"),
        target.replace("/phone/", "\\phone\\"),
        target.replace("/phone/", "/Phone/"),
        target.replace("/phone/", "/%70hone/"),
        format!("{target}/"),
        format!("{target}%20"),
        format!("{target};x=y"),
        format!("{target}?"),
    ] {
        lines.push(format!("{method} {path} HTTP/1.1"));
    }
    for line in lines {
        let mut strange = request.clone();
        strange.line.clone_from(&line);
        all.push((format!("{line:?}"), strange));
    }
    for (name, value) in [
        ("X-A ", "a blank before the colon"),
        ("X-A", "a fold\r\n of two lines"),
        ("X-A", "a zero\0"),
        ("X-A", "a line\nHost: evil.example"),
        ("", "no name"),
        (" X-A", "a blank before the name"),
        ("X\u{e9}", "a letter that is none of a name"),
        ("X-A", &*"x".repeat(20_000)),
    ] {
        let shown = &value[..value.len().min(30)];
        all.push((
            format!("a header with {shown:?}"),
            request.clone().also(name, value),
        ));
    }
    let many = (0..70).fold(request.clone(), |request, number| {
        request.also(&format!("X-{number}"), "x")
    });
    all.push(("seventy headers".to_owned(), many));
    let older = Request {
        line: format!("{method} {target} HTTP/1.0"),
        ..request.clone()
    };
    all.push((
        "the older HTTP without a Host".to_owned(),
        older.without("Host"),
    ));
    let network = request.clone().line("OPTIONS", target);
    let network = network.also("Access-Control-Request-Private-Network", "true");
    all.push(("a preflight of a private network".to_owned(), network));
    for name in ["X-Forwarded-Host", "X-Original-URL", "Forwarded"] {
        let forwarded = request.clone().header("Host", "evil.example");
        let own = request.headers.iter().find(|(name, _)| name == "Host");
        let forwarded = forwarded.also(name, &own.unwrap().1);
        all.push((format!("a Host by {name}"), forwarded));
    }
}

/// Bodies whose length two programs could read as different ones.
fn lengths(order: &Request, all: &mut Attacks) {
    for (name, value) in [
        ("Transfer-Encoding", "chunked"),
        ("Transfer-Encoding", "gzip, chunked"),
        ("Transfer-Encoding", "chunked, identity"),
        ("Transfer-Encoding", "identity"),
        ("Transfer-Encoding", "xchunked"),
        ("Content-Length", "+2"),
        ("Content-Length", "-1"),
        ("Content-Length", "0x2"),
        ("Content-Length", "2, 3"),
        ("Content-Length", "99999999999999999999"),
    ] {
        let request = order.clone().header(name, value);
        all.push((format!("{name}: {value}"), request));
    }
    let two = order
        .clone()
        .header("Content-Length", "2")
        .also("Content-Length", "3");
    all.push(("two lengths".to_owned(), two));
    let chunked = order.clone().header("Transfer-Encoding", "chunked");
    for body in [
        "fffffffffffffffff\r\n{}",
        "-2\r\n{}\r\n0\r\n\r\n",
        "2\n{}\n0\n\n",
        &*format!("200000\r\n{}\r\n0\r\n\r\n", " ".repeat(0x0020_0000)),
    ] {
        let shown = &body[..body.len().min(20)];
        all.push((format!("in pieces {shown:?}"), chunked.clone().body(body)));
    }
    for body in [
        "\u{feff}{}",
        "{\0}",
        "{}\0",
        "{\"\\ud800\":1}",
        "{'a':1}",
        "{}{}",
        "// x\n{}",
    ] {
        all.push((format!("a body {body:?}"), order.clone().body(body)));
    }
}

fn forms(request: &Request, all: &mut Attacks) {
    for kind in [
        "application/x-www-form-urlencoded",
        "text/plain",
        "text/plain; application/json",
        "multipart/form-data; boundary=x",
        "application/jsonp",
        "",
    ] {
        let name = format!("{} as {kind:?}", request.line);
        all.push((name, request.clone().header("Content-Type", kind)));
    }
    let line = &request.line;
    let untyped = request.clone().without("Content-Type");
    all.push((format!("{line} without a type"), untyped));
    let two = request.clone().also("Content-Type", "application/json");
    all.push((format!("{line} with two types"), two));
    let deep = format!("{{\"a\":{}1{}}}", "[".repeat(100), "]".repeat(100));
    let huge = request.clone().header("Content-Length", "2000000");
    all.push((format!("{line} with a huge body"), huge));
    for body in ["", "[]", "null", "7", "{", "{} x", "a=b", &*deep] {
        let shown = &body[..body.len().min(10)];
        all.push((format!("{line} with {shown:?}"), request.clone().body(body)));
    }
}

fn shapes(device: &Device, read: &Request, order: &Request, all: &mut Attacks) {
    let list = "/phone/sessions";
    let of = |id: &str, what: &str| format!("{list}/{id}/{what}");
    for (method, target) in [
        ("GET", "/?code=0123456789abcdef".to_owned()),
        ("GET", format!("{list}?key={}", device.key)),
        ("GET", format!("http://127.0.0.1{list}")),
        ("GET", format!("http://evil.example{list}")),
        ("GET", "/phone".to_owned()),
        ("GET", "/phone/pair".to_owned()),
        ("GET", "/phone/nothing".to_owned()),
        ("GET", "/status".to_owned()),
        ("GET", "/events".to_owned()),
        ("GET", of(ID, "reboot")),
        ("GET", of(ID, "stop")),
        ("GET", of(ID, "nothing")),
        ("GET", of("..", "status")),
        ("GET", of("%2e%2e", "status")),
        ("GET", of("..%2f..%2fetc%2fpasswd", "status")),
        ("GET", of(&format!("..%2frun%2f{ID}"), "status")),
        ("GET", of(&format!("{ID}.control"), "status")),
        ("GET", of(&format!("{ID}%00"), "status")),
        ("GET", of(&format!("{ID}%0d%0a"), "status")),
        ("GET", of("%ff", "status")),
        ("GET", of(&"a".repeat(5_000), "status")),
        ("GET", of(ID, "..%2f..%2fcontrol%2fstop")),
        ("HEAD", of(ID, "stop")),
        ("OPTIONS", of(ID, "pause")),
        ("PUT", of(ID, "pause")),
        ("DELETE", of(ID, "pause")),
        ("PATCH", of(ID, "pause")),
        ("TRACE", "/".to_owned()),
        ("CONNECT", "127.0.0.1:22".to_owned()),
    ] {
        all.push((
            format!("{method} {target}"),
            read.clone().line(method, &target),
        ));
    }
    for target in [
        of(ID, "undo"),
        of(ID, "status"),
        of(ID, "events"),
        of(ID, "pause%2f..%2fundo"),
        of(ID, "../undo"),
        of("..", "pause"),
        of(&format!("..%2frun%2f{ID}"), "pause"),
        of(ID, "pause?x=1"),
        "/control/pause".to_owned(),
        "/".to_owned(),
        list.to_owned(),
    ] {
        all.push((
            format!("POST {target}"),
            order.clone().line("POST", &target),
        ));
    }
    let preflight = order.clone().line("OPTIONS", &of(ID, "pause"));
    let preflight = preflight.without("Cookie").without("X-Pitstop-Key");
    let preflight = preflight.also("Access-Control-Request-Method", "POST");
    all.push(("a preflight".to_owned(), preflight));
    let socket = read
        .clone()
        .also("Upgrade", "websocket")
        .also("Connection", "Upgrade");
    all.push(("a web socket".to_owned(), socket));
    let override_method = read.clone().line("GET", &of(ID, "pause"));
    let override_method = override_method.also("X-HTTP-Method-Override", "POST");
    all.push(("another method by a header".to_owned(), override_method));
}

fn names(code: &str, pair: &Request, all: &mut Attacks) {
    for name in [
        "",
        " ",
        "a\r\nSet-Cookie: x=y",
        "a\nb",
        "a\0b",
        "\u{1b}]0;x\u{7}",
        "\u{202e}enohp",
        &"x".repeat(61),
        &"x".repeat(100_000),
    ] {
        let body = json!({"code": code, "name": name}).to_string();
        let shown: String = name.chars().take(10).collect();
        all.push((format!("the name {shown:?}"), pair.clone().body(&body)));
    }
    for body in [
        json!({"code": code}),
        json!({"name": "x"}),
        json!({"code": 7, "name": "x"}),
        json!({"code": "", "name": "x"}),
        json!({"code": [code], "name": "x"}),
        json!({"code": "x".repeat(100_000), "name": "x"}),
    ] {
        let text = body.to_string();
        let shown = &text[..text.len().min(40)];
        all.push((format!("pairing with {shown}"), pair.clone().body(&text)));
    }
}

#[test]
fn what_another_page_or_a_thief_could_send_is_refused() {
    let desk = Desk::start();
    let stale = desk.pair(DeviceRight::Decide, "stale");
    let device = desk.pair(DeviceRight::Decide, "phone");
    desk.store.revoke(|one| one.name == "stale").unwrap();
    let read = desk.of(&device, "GET", "/phone/sessions");
    let order = desk.of(&device, "POST", &format!("/phone/sessions/{ID}/pause"));
    let works = || [&read, &order].map(|request| desk.send(request).status);
    assert_eq!(works(), [200, 202], "what the page itself sends");
    let (orders, attacks) = (desk.session.orders(), attacks(&desk, &device, &stale));
    assert!(attacks.len() > 60, "{}", attacks.len());
    let mut not_refused = Vec::new();
    for (what, request) in &attacks {
        let answer = desk.send(request);
        let head = answer.head.to_ascii_lowercase();
        let gives = ["access-control", "set-cookie"]
            .iter()
            .any(|one| head.contains(one));
        if !(400..500).contains(&answer.status) || gives || answer.body.contains("/p/one") {
            not_refused.push(format!("{what}: {answer:?}"));
        }
    }
    assert_eq!(not_refused, [""; 0]);
    assert_eq!(desk.session.orders(), orders, "none has arrived");
    assert_eq!(desk.store.devices().unwrap().len(), 1, "none was paired");
    assert_eq!(works(), [200, 202], "and the page works still");
}
