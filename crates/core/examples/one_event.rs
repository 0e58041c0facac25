//! Gives the core one event, and prints the effects that follow: `cargo run --example one_event`.

use std::time::Duration;

use chrono::DateTime;
use pitstop_agent::AgentKind;
use pitstop_base::clock::{At, UTC};
use pitstop_core::{
    app::{
        Core,
        event::{Event, HostEvent, NewIds},
        model::{Beginning, Identity},
        model_of,
    },
    config::Config,
    lineage::{Lineage, RunId},
};
use pitstop_handoff::generate::Generator;
use pitstop_transcript::SessionId;
use uuid::Uuid;

fn main() {
    let wall = DateTime::UNIX_EPOCH;
    let at = |seconds| At {
        since_start: Duration::from_secs(seconds),
        asleep: Duration::ZERO,
        wall,
        zone: UTC,
    };
    let identity = Identity {
        version: env!("CARGO_PKG_VERSION"),
        pid: 1,
        project: "/home/ada/tide".to_owned(),
        environment: "tide".to_owned(),
        agent_kind: AgentKind::Claude,
        agent_command: "claude".to_owned(),
        agent_args: Vec::new(),
        todo_tools: true,
    };
    let mut core = Core::new(model_of(Beginning {
        identity,
        config: Config::default(),
        lineage: Lineage::new(RunId::new(wall, [1, 2, 3])),
        session: SessionId::new(Uuid::from_u128(1)),
        new_ids: NewIds {
            reboot: Uuid::from_u128(2),
            session: SessionId::new(Uuid::from_u128(3)),
            nonce: "00000001".to_owned(),
        },
        notes: "- [ ] read the tide tables".to_owned(),
        generator: Generator::default(),
        host: (140, 40),
        now: at(0),
    }));
    let (columns, rows) = (100, 30);
    let event = Event::Host(HostEvent::Resized { columns, rows });
    for effect in core.update(at(1), event) {
        println!("{effect:?}");
    }
}
