//! A whole node for a person: `make node`. It is there until this program is ended.
// Who calls it can do nothing but read why it failed.
#![allow(clippy::panic)]

use std::env;
use std::process::ExitCode;
use std::thread;

use node::{APP, Image, NEXT_APP, Node, Visit, isolated_program};

const HELP: &str = "\
A real Kubernetes node on this machine, with the Outrider image of the variable
OUTRIDER_IMAGE, until Ctrl-C. Prints how to run commands beside it. `make node`
builds the image and runs this program. Needs root and Linux.

Usage: node

Options:
  -h, --help    this text
";

fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => isolated_program(wait_for_visitors),
        ["-h" | "--help" | "help"] => print!("{HELP}"),
        _ => {
            eprintln!("node: it takes no arguments; see `node --help`");
            return ExitCode::from(2);
        }
    }
    ExitCode::SUCCESS
}

fn wait_for_visitors(visit: &Visit) {
    let program = env::current_exe().unwrap_or_else(|error| panic!("cannot find this program: {error}"));
    // Outside of what the node mounts over.
    let script = program.with_file_name("beside-node");
    let node = Node::start(&[Image::outrider()]);
    visit.write(&node, &script);
    let script = script.display();
    println!(
        "
A node is Ready, with cert-manager beside it; Ctrl-C ends it. In another terminal, {script} opens a shell
beside it, and runs a command if given one:

  {script} kubectl get nodes
  {script} helm install outrider charts/outrider --namespace outrider-system \\
    --create-namespace --atomic --no-hooks --set image.repository=localhost/outrider,image.tag=test

It pulls nothing. On it are localhost/outrider:test and {APP}, which waits, or serves with `args: [serve, \"8080\"]`;
{NEXT_APP} is the same program in another image.
Others come from a file that `docker save` wrote:

  {script} ctr images import --local --snapshotter native FILE
"
    );
    loop {
        thread::park();
    }
}
