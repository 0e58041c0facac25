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
    }
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
    for (what, request) in &attacks {
        let answer = desk.send(request);
        assert!((400..500).contains(&answer.status), "{what}: {answer:?}");
        let head = answer.head.to_ascii_lowercase();
        assert!(!head.contains("access-control"), "{what}: {answer:?}");
        assert!(!head.contains("set-cookie"), "{what}: {answer:?}");
        assert!(!answer.body.contains("/p/one"), "{what}: {answer:?}");
    }
    assert_eq!(desk.session.orders(), orders, "none has arrived");
    assert_eq!(desk.store.devices().unwrap().len(), 1, "none was paired");
    assert_eq!(works(), [200, 202], "and the page works still");
}
