//! The processes of agents that are left when we leave: their groups are ended, and those that live on are named.

use std::time::Duration;

use rustix::process::Signal;

use pitstop_base::{
    clean,
    process::{self, Member, StopStep},
};
use pitstop_core::lineage::ProcessStamp;

/// The signals for the rest of a group whose leader has ended: it was notified already, by the end of its leader or by the
/// signals that ended it.
const STEPS: [StopStep; 3] = [
    (Signal::HUP, Duration::from_millis(250)),
    (Signal::TERM, Duration::from_millis(750)),
    (Signal::KILL, Duration::from_secs(1)),
];

/// The processes that agents may leave behind.
#[derive(Debug, Default)]
pub(super) struct Remains {
    /// The agents whose groups or sessions were not empty when they ended.
    leaders: Vec<ProcessStamp>,
    /// The processes that the last agent had started when it was asked to end.
    family: Vec<Member>,
}

impl Remains {
    /// Notes an agent that has left others in its group or session, or cannot be ended.
    pub(super) fn of(&mut self, leader: ProcessStamp) {
        if !self.leaders.contains(&leader) {
            self.leaders.push(leader);
        }
    }

    /// Notes the processes that an agent has started, while they can still be found: its tools run in sessions of their own.
    pub(super) fn look(&mut self, agent: u32) {
        for member in process::descendants(agent) {
            if !self.family.contains(&member) {
                self.family.push(member);
            }
        }
    }

    /// Ends the groups of the agents; returns the processes that live on then, in a line for people.
    pub(super) async fn end(self) -> Option<String> {
        let Self { leaders, family } = self;
        let pids: Vec<u32> = leaders.iter().map(|leader| leader.pid).collect();
        let mut ends = tokio::task::JoinSet::new();
        for leader in leaders {
            ends.spawn_blocking(move || process::end_group(&leader, &STEPS));
        }
        for ended in ends.join_all().await {
            tracing::info!(?ended, "the rest of an agent's process group");
        }
        let mut left: Vec<Member> = family
            .into_iter()
            .filter(|member| process::alive(&member.stamp))
            .collect();
        for member in pids.into_iter().flat_map(process::members_of_session) {
            if !left.contains(&member) {
                left.push(member);
            }
        }
        named(&left)
    }
}

fn named(left: &[Member]) -> Option<String> {
    if left.is_empty() {
        return None;
    }
    let names: Vec<String> = left
        .iter()
        .map(|member| format!("{} ({})", member.stamp.pid, clean::one_line(&member.name)))
        .collect();
    let pids: Vec<String> = left
        .iter()
        .map(|member| member.stamp.pid.to_string())
        .collect();
    Some(format!(
        "still running, started by the agent: {}; to end them: kill -9 {}",
        names.join(", "),
        pids.join(" ")
    ))
}
