//! Reading a request body into one piece of memory, within bounds.

use std::pin::pin;
use std::time::Duration;

use admission::Unserved;
use bytes::{Buf, Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::Body;
use tokio::sync::OwnedSemaphorePermit;

use super::body_memory::{AHEAD, AwaitedClient, BodyMemory, STEP};

/// A refused body is read to its end if that comes within this time, and within this many times the limit.
const DISCARD_TIME: Duration = Duration::from_secs(5);
const DISCARD_FACTOR: usize = 4;

/// A whole body, and its share of the memory.
#[derive(Debug)]
pub struct WholeBody {
    /// The bytes.
    pub bytes: Bytes,
    _memory: Option<OwnedSemaphorePermit>,
}

impl WholeBody {
    /// Of bytes that no memory is taken for.
    #[cfg(test)]
    pub const fn of(bytes: Bytes) -> Self {
        Self { bytes, _memory: None }
    }
}

/// Reads the body to its end.
///
/// Memory is taken for what has arrived, not for what was announced: an announcement costs the client nothing.
///
/// # Errors
/// [`Unserved::TooLarge`] beyond `limit` bytes, before reading if the length was announced; [`Unserved::Overloaded`] when the
/// memory for bodies is used up, or does not hold what was announced; [`Unserved::Unreadable`] when the client stops in the middle.
pub async fn read<B>(body: B, limit: usize, memory: &BodyMemory) -> Result<WholeBody, Unserved>
where
    B: Body<Data = Bytes>,
    B::Error: std::fmt::Display,
{
    let announced = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    if announced > limit {
        return Err(Unserved::TooLarge(limit));
    }
    memory.make_room(announced, announced, None).await?;
    let mut body = pin!(body);
    let Some(first) = next(&mut body).await? else {
        return Ok(WholeBody { bytes: Bytes::new(), _memory: None });
    };
    // Small bodies arrive in one frame, which is a slice of the connection's read buffer: nothing to copy.
    if body.is_end_stream() || (announced != 0 && first.len() == announced) {
        // It is a slice of a buffer of the connection, and connections are bounded; one that is not small is charged all the same.
        let permit =
            if first.len() > AHEAD { memory.take_making_room(first.len(), first.len(), None).await? } else { None };
        return within(first, limit).map(|bytes| WholeBody { bytes, _memory: permit });
    }
    let mut whole = BytesMut::with_capacity(announced.min(first.len() + AHEAD).max(first.len()));
    let mut permit: Option<OwnedSemaphorePermit> = None;
    let mut taken = 0;
    // From now on memory is held for as long as the client takes.
    let awaited = memory.awaits_body();
    let mut since_it_went_on = 0;
    let mut frame = Some(first);
    while let Some(data) = frame {
        if whole.len() + data.len() > limit {
            return Err(Unserved::TooLarge(limit));
        }
        grow(&mut whole, data.len(), announced);
        let owed = whole.capacity().div_ceil(STEP);
        if owed > taken {
            let in_all = announced.max(whole.capacity());
            let more = memory.take_making_room((owed - taken) * STEP, in_all, Some(&awaited)).await?;
            taken = owed;
            match (&mut permit, more) {
                (Some(permit), Some(more)) => permit.merge(more),
                (permit, more) => *permit = more,
            }
        }
        whole.extend_from_slice(data.chunk());
        since_it_went_on += data.len();
        if AwaitedClient::is_enough(since_it_went_on, whole.capacity()) {
            since_it_went_on = 0;
            awaited.goes_on();
        }
        frame = tokio::select! {
            biased;
            frame = next(&mut body) => frame?,
            () = awaited.ended() => return Err(Unserved::Overloaded),
        };
    }
    Ok(WholeBody { bytes: whole.freeze(), _memory: permit })
}

/// Makes room by doubling, but never for more than was announced.
fn grow(whole: &mut BytesMut, more: usize, announced: usize) {
    let needed = whole.len() + more;
    if needed > whole.capacity() {
        let target = if announced >= needed { announced.min(needed * 2) } else { needed * 2 };
        whole.reserve(target - whole.len());
    }
}

fn within(bytes: Bytes, limit: usize) -> Result<Bytes, Unserved> {
    if bytes.len() > limit { Err(Unserved::TooLarge(limit)) } else { Ok(bytes) }
}

async fn next<B>(body: &mut std::pin::Pin<&mut B>) -> Result<Option<Bytes>, Unserved>
where
    B: Body<Data = Bytes>,
    B::Error: std::fmt::Display,
{
    loop {
        match body.frame().await {
            None => return Ok(None),
            Some(Err(error)) => return Err(Unserved::Unreadable(format!("the request broke off: {error}"))),
            Some(Ok(frame)) => {
                if let Ok(data) = frame.into_data() {
                    return Ok(Some(data));
                }
            }
        }
    }
}

/// Reads on behind a reply that is sent early, within bounds.
///
/// Closing a socket with unread bytes resets the connection, and then the client may lose the reply that says what was wrong.
pub fn discard<B>(mut body: B, limit: usize)
where
    B: Body<Data = Bytes> + Send + Unpin + 'static,
{
    if body.is_end_stream() {
        return;
    }
    tokio::spawn(async move {
        let reading = async {
            let mut read = 0;
            while let Some(Ok(frame)) = body.frame().await {
                read += frame.data_ref().map_or(0, Bytes::len);
                if read > DISCARD_FACTOR * limit {
                    return;
                }
            }
        };
        // Whether the client ended in time or not: the connection goes its own way now.
        let _ = tokio::time::timeout(DISCARD_TIME, reading).await;
    });
}
