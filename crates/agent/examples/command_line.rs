//! Prints the command by which a session of Claude Code is begun, with the user's own arguments in their places.
//!
//! `cargo run --example command_line -- --model opus --append-system-prompt 'Answer in French.'`

use pitstop_agent::{AgentKind, Launch, Start, command_line};
use pitstop_transcript::SessionId;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let launch = Launch {
        kind: AgentKind::Claude,
        program: "claude".into(),
        lead_args: Vec::new(),
        session: SessionId::new(uuid::Uuid::from_u128(1)),
        way: Start::Fresh,
        first: true,
        prompt: None,
        user_args: std::env::args().skip(1).collect(),
        settings_file: "/run/user/1000/pitstop/settings.json".into(),
        mods: None,
        mcp_config: None,
        user_append: None,
    };
    let command = command_line(&launch)?;
    println!("{}", command.program.display());
    for argument in &command.args {
        println!("  {}", argument.display());
    }
    Ok(())
}
