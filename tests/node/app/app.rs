//! The program of the test's pods. Without arguments it waits for ever, as a pod's sandbox must; `serve PORT` answers HTTP
//! requests with the release of its image; `sleep SECONDS` ends well after that time.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::time::Duration;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args[..] {
        [] => loop {
            std::thread::park();
        },
        ["serve", port] => serve(port.parse().expect("a port")),
        ["sleep", seconds] => std::thread::sleep(Duration::from_secs(seconds.parse().expect("seconds"))),
        _ => panic!("unknown arguments {args:?}"),
    }
}

fn serve(port: u16) {
    let release = std::env::var("RELEASE").expect("the image names its release");
    let reply = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{release}", release.len());
    println!("serving release {release} on port {port}");
    for stream in TcpListener::bind(("0.0.0.0", port)).expect("a free port").incoming() {
        let mut stream = stream.expect("a connection");
        // One read holds a probe's request; the reply may come too late for who has gone.
        let _ = stream.read(&mut [0; 4096]);
        let _ = stream.write_all(reply.as_bytes());
    }
}
