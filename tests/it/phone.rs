//! The page for paired devices: who gets in, what is passed on, and when there is a port at all.

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpStream},
    os::unix::{
        fs::{OpenOptionsExt as _, PermissionsExt as _},
        net::{UnixListener, UnixStream},
    },
    path::Path,
    sync::{Arc, Mutex},
    thread,
    time::{Duration, Instant},
};

use pitstop_server::{
    Tls, bind_port,
    phone::{
        Gateway, GatewayPlan, ORDERS_A_MINUTE, PAIRINGS_A_MINUTE,
        devices::{DeviceRight, DeviceStore, Moment},
    },
    serve_port,
};
use serde_json::{Value, json};
use tokio::{runtime::Runtime, sync::oneshot};

use crate::{
    api::{Answered as Answer, receive},
    kit::poll,
};

mod attacks;
mod floods;
pub mod program;

/// How long to wait for what must happen.
const PATIENCE: Duration = Duration::from_secs(60);

/// How long a revoked device may be in on a machine that is busy with other tests: its own limit is a second.
const OUT_WITHIN: Duration = Duration::from_secs(1 + 5);

/// The id of the session that stands in for one.
const ID: &str = "0123456789abcdef";

/// A permission whose text must arrive as it is.
const PERMISSION: &str = r#"{"id":7,"tool":"Bash","input":"curl -H 'Authorization: Bearer abcdefgh12345678'","answerable":true}"#;

/// The answer of the stand-in for a session.
fn answer_to(line: &str) -> &'static str {
    match line {
        "GET /status HTTP/1.1" => r#"200 {"project":"/p/one","needs":[]}"#,
        "GET /api/sessions/current/handoff HTTP/1.1" => {
            r##"200 {"text":"# Handoff","revision":"r1"}"##
        }
        "GET /screen HTTP/1.1" => r#"200 {"columns":2,"rows":1,"lines":["ok"]}"#,
        "POST /control/defer HTTP/1.1" => r#"409 {"error":"nothing to defer","hint":""}"#,
        "POST /control/stop HTTP/1.1" => r#"401 {"error":"bad token","hint":""}"#,
        _ if line.starts_with("POST /control/") => r#"202 {"status":"accepted","message":"done"}"#,
        _ => r#"404 {"error":"nothing there","hint":""}"#,
    }
}

/// A stand-in for a session: a control socket, and what was asked of it.
#[derive(Clone, Default)]
struct Session(Arc<Mutex<Vec<String>>>);

impl Session {
    fn start(run: &Path, id: &str) -> Self {
        fs::create_dir_all(run).unwrap();
        let socket = run.join(format!("{id}.sock"));
        let mut options = fs::OpenOptions::new();
        let file = options.create_new(true).write(true).mode(0o600);
        let mut file = file.open(run.join(format!("{id}.control"))).unwrap();
        write!(file, "{}\nab12\n", socket.display()).unwrap();
        let (listener, session) = (UnixListener::bind(socket).unwrap(), Self::default());
        let asked = session.clone();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let asked = asked.clone();
                thread::spawn(move || asked.answer(&stream.unwrap()));
            }
        });
        session
    }

    fn answer(&self, mut stream: &UnixStream) {
        let mut reader = BufReader::new(stream);
        let (mut text, mut length) = (String::new(), 0);
        while !text.ends_with("\r\n\r\n") {
            let at = text.len();
            if reader.read_line(&mut text).unwrap_or(0) == 0 {
                return;
            }
            if let Some(given) = text[at..].strip_prefix("Content-Length: ") {
                length = given.trim().parse().unwrap();
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).unwrap();
        text += &String::from_utf8(body).unwrap();
        let line = text.lines().next().unwrap().to_owned();
        self.0.lock().unwrap().push(text);
        if line == "GET /events HTTP/1.0" {
            let head = "HTTP/1.0 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
            write!(stream, "{head}event: status\ndata: {{}}\n\n").ok();
            // It lasts until the other side ends it.
            stream.read_exact(&mut [0]).ok();
            return;
        }
        let answer = if line.starts_with("GET /permission") {
            format!("200 {PERMISSION}")
        } else {
            answer_to(&line).to_owned()
        };
        let (status, body) = answer.split_once(' ').unwrap();
        let length = body.len();
        write!(
            stream,
            "HTTP/1.1 {status} X\r\ncontent-length: {length}\r\n\r\n{body}"
        )
        .ok();
    }

    /// What was asked, as it came.
    fn asked(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }

    fn orders(&self) -> usize {
        let asked = self.asked();
        asked.iter().filter(|text| text.starts_with("POST")).count()
    }
}

/// A page that is served, with a session behind it.
struct Desk {
    home: tempfile::TempDir,
    address: SocketAddr,
    store: DeviceStore,
    session: Session,
    _stop: oneshot::Sender<()>,
    _runtime: Runtime,
}

impl Desk {
    fn start() -> Self {
        Self::with(None, None)
    }

    fn with(url: Option<&str>, tls: Option<Tls>) -> Self {
        let mode = fs::Permissions::from_mode(0o700);
        let home = tempfile::Builder::new()
            .permissions(mode)
            .tempdir()
            .unwrap();
        let (state, run) = (home.path().join("state"), home.path().join("state/run"));
        let session = Session::start(&run, ID);
        let runtime = Runtime::new().unwrap();
        let listening = runtime.block_on(bind_port("127.0.0.1:0".parse().unwrap()));
        let listening = listening.unwrap();
        let address = listening.address().unwrap();
        let gateway = Gateway::new(GatewayPlan {
            state_dir: state.clone(),
            run_dirs: vec![home.path().join("none"), run],
            url: url.map(str::to_owned),
        });
        let (stop, stopped) = oneshot::channel::<()>();
        runtime.spawn(async move {
            let stopped = async { stopped.await.unwrap_or_default() };
            serve_port(listening, tls, &gateway, None, stopped).await;
        });
        Self {
            home,
            address,
            store: DeviceStore::new(&state),
            session,
            _stop: stop,
            _runtime: runtime,
        }
    }

    /// A request of a browser that shows the page.
    fn request(&self, method: &str, target: &str) -> Request {
        let host = self.address.to_string();
        let mut request = Request::new(method, target).header("Host", &host);
        request = request.header("Sec-Fetch-Site", "same-origin");
        if method == "POST" {
            let origin = format!("http://{host}");
            let json = request.header("Content-Type", "application/json");
            request = json.header("Origin", &origin).body("{}");
        }
        request
    }

    fn send(&self, request: &Request) -> Answer {
        request.send(TcpStream::connect(self.address).unwrap())
    }

    fn open(&self, right: DeviceRight) -> String {
        self.store.open_pairing(right, Moment::now()).unwrap()
    }

    fn try_pair(&self, code: &str, name: &str) -> Answer {
        let body = json!({"code": code, "name": name}).to_string();
        self.send(&self.request("POST", "/phone/pair").body(&body))
    }

    fn pair(&self, right: DeviceRight, name: &str) -> Device {
        let code = self.open(right);
        Device::of(&self.try_pair(&code, name))
    }

    /// A request of a paired device.
    fn of(&self, device: &Device, method: &str, target: &str) -> Request {
        device.sign(self.request(method, target))
    }

    fn ask(&self, device: &Device, method: &str, target: &str) -> Answer {
        self.send(&self.of(device, method, target))
    }
}

/// The secrets of a paired device.
#[derive(Clone)]
pub struct Device {
    name: String,
    cookie: String,
    key: String,
}

impl Device {
    #[track_caller]
    fn of(answer: &Answer) -> Self {
        assert_eq!(answer.status, 200, "{answer:?}");
        let cookie = answer
            .head
            .lines()
            .find_map(|line| line.strip_prefix("set-cookie: "));
        let (cookie, rules) = cookie.unwrap().split_once("; ").unwrap();
        for rule in ["Path=/", "HttpOnly", "SameSite=Strict"] {
            assert!(rules.contains(rule), "{rules}");
        }
        let said = answer.json();
        Self {
            name: said["device"].as_str().unwrap().to_owned(),
            cookie: cookie.to_owned(),
            key: said["key"].as_str().unwrap().to_owned(),
        }
    }

    pub fn sign(&self, request: Request) -> Request {
        let signed = request.header("Cookie", &format!("theme=dark; {}", self.cookie));
        signed.header("X-Pitstop-Key", &self.key)
    }
}

/// A request, byte for byte as it is sent.
#[derive(Clone)]
pub struct Request {
    line: String,
    headers: Vec<(String, String)>,
    body: String,
}

impl Request {
    fn new(method: &str, target: &str) -> Self {
        Self {
            line: format!("{method} {target} HTTP/1.1"),
            headers: Vec::new(),
            body: String::new(),
        }
    }

    fn line(mut self, method: &str, target: &str) -> Self {
        self.line = format!("{method} {target} HTTP/1.1");
        self
    }

    /// With this header in place of one of its name.
    fn header(self, name: &str, value: &str) -> Self {
        self.without(name).also(name, value)
    }

    /// With this header, too.
    fn also(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    fn without(mut self, name: &str) -> Self {
        self.headers.retain(|(known, _)| known != name);
        self
    }

    fn body(mut self, body: &str) -> Self {
        body.clone_into(&mut self.body);
        self
    }

    fn text(&self) -> String {
        let mut text = format!("{}\r\n", self.line);
        for (name, value) in &self.headers {
            text += &format!("{name}: {value}\r\n");
        }
        if !text.contains("\r\nContent-Length: ") {
            text += &format!("Content-Length: {}\r\n", self.body.len());
        }
        text + "\r\n" + &self.body
    }

    /// Sends it, and leaves its answer to be read.
    fn listen(&self, address: SocketAddr) -> BufReader<TcpStream> {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(self.text().as_bytes()).unwrap();
        BufReader::new(stream)
    }

    fn send(&self, mut stream: impl Read + Write) -> Answer {
        // A server that refuses early may stop reading; its answer is what counts.
        stream.write_all(self.text().as_bytes()).ok();
        receive(stream)
    }
}

/// Reads lines until one has this text.
#[track_caller]
fn read_until(reader: &mut impl BufRead, needle: &str) -> String {
    let mut text = String::new();
    while !text.contains(needle) {
        assert_ne!(reader.read_line(&mut text).unwrap(), 0, "{text}");
    }
    text
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

#[test]
fn where_nobody_is_paired_there_is_nothing() {
    let desk = Desk::start();
    let page = || desk.send(&desk.request("GET", "/")).status;
    assert_eq!((page(), desk.try_pair("x", "phone").status), (404, 404));
    let code = desk.open(DeviceRight::Watch);
    assert_eq!(page(), 200);
    desk.store.close_pairing(&code).unwrap();
    assert_eq!(page(), 404);
    desk.pair(DeviceRight::Watch, "phone");
    assert_eq!(page(), 200);
    assert_eq!(desk.store.revoke(|_| true).unwrap().len(), 1);
    assert_eq!(page(), 404);
}

#[test]
fn the_page_has_its_policy_and_no_data() {
    let desk = Desk::start();
    desk.open(DeviceRight::Watch);
    let typed = desk.request("GET", "/").header("Sec-Fetch-Site", "none");
    let page = desk.send(&typed);
    assert_eq!(page.status, 200);
    for line in [
        "content-security-policy: default-src 'none'; script-src 'sha256-",
        "x-frame-options: DENY",
        "x-content-type-options: nosniff",
        "cache-control: no-store",
        "referrer-policy: no-referrer",
        "cross-origin-opener-policy: same-origin",
        "cross-origin-resource-policy: same-origin",
        "content-type: text/html; charset=utf-8",
    ] {
        assert!(page.head.contains(line), "{line}: {}", page.head);
    }
    assert!(!page.head.contains("access-control") && !page.head.contains("set-cookie"));
    assert!(!page.body.contains("/p/one") && !page.body.contains(ID));
    assert_eq!(desk.session.asked(), [""; 0]);
}

#[test]
fn a_code_pairs_once_and_a_wrong_one_never() {
    let desk = Desk::start();
    let code = desk.open(DeviceRight::Decide);
    let answer = desk.try_pair(&code, "Ada's phone");
    let device = Device::of(&answer);
    assert!(!answer.head.contains("Secure"), "{}", answer.head);
    assert_eq!(answer.json()["right"], "decide");
    assert_eq!(device.name, "Ada's phone");
    assert_eq!(desk.try_pair(&code, "another").status, 403, "a replay");
    assert_eq!(desk.ask(&device, "GET", "/phone/sessions").status, 200);
    let code = desk.open(DeviceRight::Watch);
    for _ in 1..PAIRINGS_A_MINUTE {
        assert_eq!(desk.try_pair("0123", "guess").status, 403);
    }
    // Not even the right code now.
    assert_eq!(desk.try_pair(&code, "guess").status, 429);
    assert!(desk.store.waits(&code, Moment::now()).unwrap());
    assert_eq!(desk.store.devices().unwrap().len(), 1);
}

#[test]
fn a_device_sees_the_sessions_as_they_are() {
    let desk = Desk::start();
    let device = desk.pair(DeviceRight::Watch, "phone");
    let list = desk.ask(&device, "GET", "/phone/sessions").json();
    assert_eq!(
        (&list["device"], &list["right"]),
        (&json!("phone"), &json!("watch"))
    );
    assert_eq!(
        list["sessions"],
        json!([{"id": ID, "project": "/p/one", "status": {"project": "/p/one", "needs": []}}])
    );
    let show = |what: &str| desk.ask(&device, "GET", &format!("/phone/sessions/{ID}/{what}"));
    assert_eq!(show("status").json()["project"], "/p/one");
    assert_eq!(show("handoff").json()["revision"], "r1");
    assert_eq!(show("screen").json()["lines"], json!(["ok"]));
    // A person must see what they allow.
    assert_eq!(show("permission").body, PERMISSION);
    for asked in desk.session.asked() {
        assert!(asked.contains("\r\nX-Pitstop-Device: phone\r\n"), "{asked}");
        assert!(
            asked.contains("\r\nAuthorization: Bearer ab12\r\n"),
            "{asked}"
        );
    }
    assert_eq!(
        desk.ask(&device, "GET", "/phone/sessions/00/status").status,
        404
    );
    let seen = || desk.store.devices().unwrap()[0].seen_at.is_some();
    poll::until_true(PATIENCE, seen, || "it was never seen".to_owned());
}

#[test]
fn a_session_that_hangs_or_has_ended_does_not_hide_the_others() {
    let desk = Desk::start();
    let device = desk.pair(DeviceRight::Watch, "phone");
    let run = desk.home.path().join("state/run");
    let control = |id: &str| {
        let socket = run.join(format!("{id}.sock"));
        let file = run.join(format!("{id}.control"));
        fs::write(&file, format!("{}\nab12\n", socket.display())).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        socket
    };
    let _hangs = UnixListener::bind(control("aa")).unwrap();
    drop(UnixListener::bind(control("bb")).unwrap());
    let list = desk.ask(&device, "GET", "/phone/sessions").json();
    let sessions = list["sessions"].as_array().unwrap();
    let ids: Vec<_> = sessions
        .iter()
        .map(|one| one["id"].as_str().unwrap())
        .collect();
    assert_eq!(ids, ["aa", ID]);
    assert_eq!(sessions[0]["status"], Value::Null);
    assert_eq!(sessions[0]["error"], "it does not answer");
    for (id, status) in [("aa", 504), ("bb", 404)] {
        let answer = desk.ask(&device, "GET", &format!("/phone/sessions/{id}/status"));
        assert_eq!(answer.status, status, "{answer:?}");
    }
}

#[test]
fn only_a_device_that_may_decide_gives_orders_and_not_without_end() {
    let desk = Desk::start();
    let [watch, decide] = [(DeviceRight::Watch, "eyes"), (DeviceRight::Decide, "hands")]
        .map(|(right, name)| desk.pair(right, name));
    let to = |order: &str| format!("/phone/sessions/{ID}/{order}");
    let orders = [
        ("reboot", "{}", 202),
        ("approve", r#"{"handoff":"edited","revision":"r1"}"#, 202),
        ("defer", "{}", 409),
        ("say", r#"{"text":"go on"}"#, 202),
        ("pause", "{}", 202),
        ("resume", "{}", 202),
        // What a session says to the gateway does not unpair the device.
        ("stop", "{}", 503),
        ("permission", r#"{"id":7,"answer":"allow"}"#, 202),
    ];
    for (order, body, status) in orders {
        let request = desk.request("POST", &to(order)).body(body);
        assert_eq!(
            desk.send(&watch.sign(request.clone())).status,
            403,
            "{order}"
        );
        let answer = desk.send(&decide.sign(request));
        assert_eq!(answer.status, status, "{order}: {answer:?}");
        let asked = desk.session.asked().pop().unwrap();
        assert!(
            asked.starts_with(&format!("POST /control/{order} HTTP/1.1\r\n")),
            "{asked}"
        );
        assert!(asked.contains("\r\nX-Pitstop-Device: hands\r\n"), "{asked}");
        assert!(asked.ends_with(body), "{asked}");
    }
    assert_eq!(desk.session.orders(), orders.len());
    for order in ["undo", "save", "detach", "clear-state", "status", "events"] {
        let answer = desk.ask(&decide, "POST", &to(order));
        assert!([404, 405].contains(&answer.status), "{order}: {answer:?}");
    }
    for _ in orders.len()..ORDERS_A_MINUTE {
        assert_eq!(desk.ask(&decide, "POST", &to("pause")).status, 202);
    }
    assert_eq!(desk.ask(&decide, "POST", &to("pause")).status, 429);
    assert_eq!(desk.ask(&decide, "GET", &to("status")).status, 200);
    let other = desk.pair(DeviceRight::Decide, "hands");
    assert_eq!(other.name, "hands (2)");
    assert_eq!(desk.ask(&other, "POST", &to("pause")).status, 202);
}

#[test]
fn a_revoked_device_is_out_and_its_events_end() {
    let desk = Desk::start();
    let [gone, stays] = ["gone", "stays"].map(|name| desk.pair(DeviceRight::Watch, name));
    let open = |device: &Device| {
        let request = desk.of(device, "GET", &format!("/phone/sessions/{ID}/events"));
        let request = request.header("Last-Event-ID", "t1-7");
        let mut events = request.listen(desk.address);
        let text = read_until(&mut events, "data: {}");
        assert!(text.starts_with("HTTP/1.1 200"), "{text}");
        assert!(text.contains("content-type: text/event-stream"), "{text}");
        events
    };
    let mut streams = [&gone, &stays].map(open);
    let asked = desk.session.asked().pop().unwrap();
    assert!(asked.contains("\r\nLast-Event-ID: t1-7\r\n"), "{asked}");
    let began = Instant::now();
    desk.store.revoke(|device| device.name == "gone").unwrap();
    assert_eq!(desk.ask(&gone, "GET", "/phone/sessions").status, 401);
    streams[0].read_to_end(&mut Vec::new()).unwrap();
    let took = began.elapsed();
    assert!(took < OUT_WITHIN, "{took:?}");
    assert_eq!(desk.ask(&stays, "GET", "/phone/sessions").status, 200);
    let waiting = streams[1].get_ref();
    waiting
        .set_read_timeout(Some(Duration::from_millis(1)))
        .unwrap();
    let more = streams[1].read_to_end(&mut Vec::new());
    assert!(more.is_err(), "it is not over: {more:?}");
}

#[test]
fn by_its_own_name_the_page_is_reached_over_https() {
    let desk = Desk::with(Some("https://desk.example.org"), None);
    let by_name = |request: Request| {
        let request = request.header("Host", "desk.example.org");
        request.header("Origin", "https://desk.example.org")
    };
    let code = desk.open(DeviceRight::Watch);
    let body = json!({"code": code, "name": "phone"}).to_string();
    let answer = desk.send(&by_name(desk.request("POST", "/phone/pair").body(&body)));
    assert!(answer.head.contains("; Secure"), "{}", answer.head);
    let device = Device::of(&answer);
    let request = desk.of(&device, "GET", "/phone/sessions");
    assert_eq!(desk.send(&by_name(request.clone())).status, 200);
    // The desk itself may use it, too, but not in the other's name.
    assert_eq!(desk.send(&request).status, 200);
    let mixed = request.clone().header("Origin", "https://desk.example.org");
    assert_eq!(desk.send(&mixed).status, 403);
    // What the page sends over plain HTTP is that of someone on the way.
    let plain = by_name(request).header("Origin", "http://desk.example.org");
    assert_eq!(desk.send(&plain).status, 403);
}

#[test]
fn with_a_certificate_the_port_speaks_tls_and_nothing_else() {
    use tokio_rustls::rustls::{
        ClientConfig, ClientConnection, RootCertStore, StreamOwned,
        crypto::ring::default_provider,
        pki_types::{CertificateDer, ServerName, pem::PemObject as _},
    };
    // Both are those of this test alone: whoever reads them can speak for `localhost` to nobody else.
    let pem =
        |kind: &str, lines: &str| format!("-----BEGIN {kind}-----\n{lines}-----END {kind}-----\n");
    let made = pem(
        "CERTIFICATE",
        include_str!("../fixtures/tls/localhost.certificate"),
    );
    let dir = tempfile::tempdir().unwrap();
    let (certificate, key) = (
        dir.path().join("certificate.pem"),
        dir.path().join("key.pem"),
    );
    fs::write(&certificate, made).unwrap();
    let secret = include_str!("../fixtures/tls/localhost.key");
    fs::write(&key, pem("PRIVATE KEY", secret)).unwrap();
    assert!(Tls::load(&key, &certificate).is_err());
    assert!(Tls::load(&certificate, &dir.path().join("none")).is_err());
    let desk = Desk::with(None, Some(Tls::load(&certificate, &key).unwrap()));
    let code = desk.open(DeviceRight::Watch);
    assert_eq!(desk.send(&desk.request("GET", "/")).status, 0, "in clear");
    let mut roots = RootCertStore::empty();
    let root = CertificateDer::from_pem_file(&certificate).unwrap();
    roots.add(root).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let config = Arc::new(config);
    let send = |request: &Request| {
        let name = ServerName::try_from("localhost").unwrap();
        let client = ClientConnection::new(Arc::clone(&config), name).unwrap();
        let stream = TcpStream::connect(desk.address).unwrap();
        request.send(StreamOwned::new(client, stream))
    };
    let host = format!("localhost:{}", desk.address.port());
    let body = json!({"code": code, "name": "phone"}).to_string();
    let request = desk.request("POST", "/phone/pair").body(&body);
    let request = request
        .header("Host", &host)
        .header("Origin", &format!("https://{host}"));
    let answer = send(&request);
    assert!(answer.head.contains("; Secure"), "{answer:?}");
    let device = Device::of(&answer);
    let list = desk
        .of(&device, "GET", "/phone/sessions")
        .header("Host", &host);
    assert_eq!(send(&list).json()["sessions"][0]["id"], ID);
}

#[test]
fn a_link_of_another_site_leads_to_the_page_and_to_nothing_else() {
    let desk = Desk::start();
    let device = desk.pair(DeviceRight::Decide, "phone");
    let from = |site: &str, shown_as: Option<&str>, target: &str| {
        let request = desk.of(&device, "GET", target);
        let request = request.header("Sec-Fetch-Site", site);
        let request = match shown_as {
            Some(kind) => request.header("Sec-Fetch-Dest", kind),
            None => request,
        };
        desk.send(&request).status
    };
    for site in ["cross-site", "same-site"] {
        assert_eq!(from(site, Some("document"), "/"), 200, "{site}");
        for shown_as in [
            None,
            Some("iframe"),
            Some("script"),
            Some("empty"),
            Some(""),
        ] {
            assert_eq!(from(site, shown_as, "/"), 403, "{site} {shown_as:?}");
        }
        let list = "/phone/sessions";
        assert_eq!(from(site, Some("document"), list), 403, "{site}");
    }
    assert_eq!(from("elsewhere", Some("document"), "/"), 403);
}

#[test]
fn pages_at_two_ports_of_a_host_keep_their_devices_apart() {
    let desks = [Desk::start(), Desk::start()];
    let devices = desks
        .each_ref()
        .map(|desk| desk.pair(DeviceRight::Watch, "phone"));
    let [one, other] = devices.each_ref().map(|device| device.cookie.clone());
    assert_ne!(
        one.split_once('=').unwrap().0,
        other.split_once('=').unwrap().0
    );
    // A browser sends both to each.
    for (desk, device) in desks.iter().zip(&devices) {
        let request = desk.of(device, "GET", "/phone/sessions");
        let both = request.header("Cookie", &format!("{one}; {other}"));
        assert_eq!(desk.send(&both).status, 200);
        // One that was paired by an older version has the same name everywhere.
        let (_, value) = device.cookie.split_once('=').unwrap();
        let older = both.header("Cookie", &format!("pitstop={value}"));
        assert_eq!(desk.send(&older).status, 200);
    }
    // Where the address has no port there is nothing to tell apart.
    let desk = Desk::with(Some("https://desk.example.org"), None);
    let body = json!({"code": desk.open(DeviceRight::Watch), "name": "phone"}).to_string();
    let request = desk.request("POST", "/phone/pair").body(&body);
    let request = request.header("Host", "desk.example.org");
    let answer = desk.send(&request.header("Origin", "https://desk.example.org"));
    assert!(Device::of(&answer).cookie.starts_with("pitstop="));
}
