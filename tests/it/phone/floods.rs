//! Requests that are late, come at the same time, or never end.

use super::*;

/// A request whose body is held back: its head is sent.
fn begun(desk: &Desk, request: &Request) -> TcpStream {
    let text = request.text();
    let (head, _) = text.split_once("\r\n\r\n").unwrap();
    let mut stream = TcpStream::connect(desk.address).unwrap();
    write!(stream, "{head}\r\n\r\n").unwrap();
    stream
}

#[test]
fn a_device_that_is_revoked_while_its_order_arrives_gives_none() {
    let desk = Desk::start();
    let device = desk.pair(DeviceRight::Decide, "phone");
    // Where nobody is paired there is nothing.
    desk.pair(DeviceRight::Watch, "another");
    let order = desk.of(&device, "POST", &format!("/phone/sessions/{ID}/stop"));
    let mut late = begun(&desk, &order);
    // What was sent after it has passed the same checks.
    assert_eq!(desk.ask(&device, "GET", "/phone/sessions").status, 200);
    desk.store.revoke(|one| one.name == "phone").unwrap();
    late.write_all(b"{}").unwrap();
    let answer = receive(late);
    assert_eq!(answer.status, 401, "{answer:?}");
    assert_eq!(desk.session.orders(), 0);
}

#[test]
fn a_phone_that_lost_its_network_gets_its_events_again() {
    let desk = Desk::start();
    let [phone, other] = ["phone", "other"].map(|name| desk.pair(DeviceRight::Watch, name));
    let open = |device: &Device| {
        let request = desk.of(device, "GET", &format!("/phone/sessions/{ID}/events"));
        let mut events = request.listen(desk.address);
        let text = read_until(&mut events, "\n");
        assert!(text.starts_with("HTTP/1.1 200"), "{text}");
        read_until(&mut events, "data: {}");
        events
    };
    // The machine does not notice that nobody is at the other end.
    let mut lost: Vec<_> = (0..40).map(|_| open(&phone)).collect();
    open(&other);
    lost[0].read_to_end(&mut Vec::new()).unwrap();
}

#[test]
fn of_many_who_send_the_same_code_one_is_paired() {
    let desk = Desk::start();
    let code = desk.open(DeviceRight::Decide);
    let statuses: Vec<u16> = thread::scope(|scope| {
        let tries: Vec<_> = (0..20)
            .map(|number| {
                let (desk, code) = (&desk, &code);
                scope.spawn(move || desk.try_pair(code, &format!("phone {number}")).status)
            })
            .collect();
        tries.into_iter().map(|one| one.join().unwrap()).collect()
    });
    assert_eq!(statuses.iter().filter(|status| **status == 200).count(), 1);
    assert!(
        statuses
            .iter()
            .all(|status| [200, 403, 404, 429].contains(status)),
        "{statuses:?}"
    );
    assert_eq!(desk.store.devices().unwrap().len(), 1);
}

#[test]
fn connections_that_send_nothing_whole_do_not_keep_the_page_away() {
    let desk = Desk::start();
    let device = desk.pair(DeviceRight::Watch, "phone");
    let _idle: Vec<TcpStream> = (0..300)
        .map(|number| {
            let mut stream = TcpStream::connect(desk.address).unwrap();
            let part = ["", "GET ", "POST /phone/pair HTTP/1.1\r\nHost: x\r\n"][number % 3];
            stream.write_all(part.as_bytes()).unwrap();
            stream
        })
        .collect();
    assert_eq!(desk.ask(&device, "GET", "/phone/sessions").status, 200);
}

#[test]
fn a_watch_device_finds_no_way_to_an_order() {
    let desk = Desk::start();
    let device = desk.pair(DeviceRight::Watch, "eyes");
    // What a permission asks for may be looked at.
    let orders = [
        "reboot", "approve", "defer", "say", "pause", "resume", "stop",
    ];
    for order in orders {
        let target = format!("/phone/sessions/{ID}/{order}");
        for method in [
            "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "QUERY",
        ] {
            let request = desk.of(&device, method, &target).body("{}");
            let request = request.header("Content-Type", "application/json");
            let overridden = request
                .clone()
                .also("X-HTTP-Method-Override", "POST")
                .also("X-Method-Override", "POST")
                .also("X-Pitstop-Device", "hands")
                .also("Authorization", "Bearer ab12");
            // A second request in the body of the first, for one who reads on.
            let hidden = desk.of(&device, "POST", &target).text();
            let smuggled = request.clone().body(&hidden);
            for request in [request, overridden, smuggled] {
                let answer = desk.send(&request);
                assert!(
                    [403, 404, 405].contains(&answer.status),
                    "{method} {order}: {answer:?}"
                );
            }
        }
    }
    let list = desk.of(&device, "GET", "/phone/sessions");
    let list = list.also("X-Pitstop-Device", "hands");
    let hidden = desk.of(&device, "POST", &format!("/phone/sessions/{ID}/stop"));
    assert_eq!(desk.send(&list.body(&hidden.text())).status, 200);
    let asked = desk.session.asked();
    assert_eq!(asked.len(), 1, "{asked:?}");
    assert!(
        asked[0].contains("\r\nX-Pitstop-Device: eyes\r\n"),
        "{asked:?}"
    );
}
