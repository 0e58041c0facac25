//! Runs the scripted agent in this terminal, without pitstop around it: `cargo run --example agent`. `Ctrl-D` ends it.

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    std::process::exit(pitstop_demo::main(&args));
}
