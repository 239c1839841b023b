//! Where the leader works: on threads of its own, which wait for those that answer reviews.

use std::io;

use tokio::runtime::{Builder, Handle, Runtime};

/// How much these threads give way, as `nice(1)` has it. At 10 the kernel's scheduler gives them a tenth of what it gives the others
/// where both want the processor, which is enough to go on.
const NICENESS: i32 = 10;

/// A runtime of lower priority. Reviews wait for nothing that runs here, however many objects its watches decode and count.
#[derive(Debug)]
pub struct Background {
    handle: Handle,
    runtime: Option<Runtime>,
}

impl Background {
    /// Starts it.
    ///
    /// # Errors
    /// What the system says of a thread that cannot be started.
    pub fn start() -> io::Result<Self> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("leader")
            .on_thread_start(give_way)
            .enable_all()
            .build()?;
        Ok(Self { handle: runtime.handle().clone(), runtime: Some(runtime) })
    }

    /// Where to spawn.
    pub const fn handle(&self) -> &Handle {
        &self.handle
    }
}

/// A runtime that is dropped waits for its threads, which tokio forbids where futures are polled.
impl Drop for Background {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// On Linux the niceness is that of a thread (nice(2), "C library/kernel differences").
fn give_way() {
    if let Err(error) = rustix::process::nice(NICENESS) {
        tracing::debug!(%error, "The leader's threads have the priority of all others");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn work_in_the_background_has_threads_of_its_own_that_give_way_and_ours_do_not() {
        let ours = rustix::process::getpriority_process(None).unwrap();
        let background = Background::start().unwrap();
        let theirs = async {
            let name = std::thread::current().name().map(str::to_owned);
            (name, rustix::process::getpriority_process(None).unwrap())
        };
        let (name, priority) = background.handle().spawn(theirs).await.unwrap();
        assert_eq!(name.as_deref(), Some("leader"));
        assert_eq!(priority, (ours + NICENESS).min(19));
        assert_eq!(rustix::process::getpriority_process(None).unwrap(), ours);
        drop(background);
    }
}
