//! A large body, handed to hyper piece by piece.
//!
//! hyper copies what it is given into a buffer that lives as long as the connection and never
//! shrinks. In pieces, an idle connection does not keep the room of the largest answer it has had.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use hyper::body::{Body, Bytes, Frame, SizeHint};

use super::watch::Watch;

/// Bytes of a piece: as many as hyper buffers before it writes; most answers are smaller.
const PIECE: usize = 32 * 1024;

/// A body whose frames have at most [`PIECE`] bytes. Bytes are freed once the last of them was
/// handed over.
pub(super) struct Pieces<B> {
    body: B,
    /// Rest of the last frame that was not handed over yet.
    rest: Bytes,
    watch: Arc<Watch>,
}

impl<B> Pieces<B> {
    pub(super) fn new(body: B, watch: Arc<Watch>) -> Self {
        Self {
            body,
            rest: Bytes::new(),
            watch,
        }
    }

    fn next(&mut self) -> Frame<Bytes> {
        let length = self.rest.len().min(PIECE);
        let piece = self.rest.split_to(length);
        self.watch.has_more(!self.rest.is_empty());
        Frame::data(piece)
    }
}

impl<B: Body<Data = Bytes> + Unpin> Body for Pieces<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        if self.rest.is_empty() {
            let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
            match frame {
                Some(Ok(frame)) if frame.data_ref().is_some_and(|data| data.len() > PIECE) => {
                    self.rest = frame.into_data().unwrap_or_default();
                }
                other => return Poll::Ready(other),
            }
        }
        Poll::Ready(Some(Ok(self.next())))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (rest, body) = (self.rest.len() as u64, self.body.size_hint());
        let mut hint = SizeHint::new();
        hint.set_lower(rest + body.lower());
        if let Some(upper) = body.upper() {
            hint.set_upper(rest + upper);
        }
        hint
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use http_body_util::Full;
    use tokio::time::Instant;

    use super::*;

    fn pieces(length: usize) -> Pieces<Full<Bytes>> {
        let watch = Arc::new(Watch::new(Instant::now()));
        let bytes: Vec<u8> = (0..length).map(|place| place as u8).collect();
        Pieces::new(Full::new(bytes.into()), watch)
    }

    fn next(body: &mut Pieces<Full<Bytes>>) -> Option<Bytes> {
        let mut context = Context::from_waker(Waker::noop());
        match Pin::new(body).poll_frame(&mut context) {
            Poll::Ready(Some(Ok(frame))) => frame.into_data().ok(),
            _ => None,
        }
    }

    #[test]
    fn a_body_comes_whole_and_in_order_however_long_it_is() {
        for length in [0, 1, PIECE - 1, PIECE, PIECE + 1, 3 * PIECE, 900 * 1024 + 7] {
            let mut body = pieces(length);
            let mut read = Vec::new();
            assert_eq!(body.size_hint().exact(), Some(length as u64));
            while let Some(piece) = next(&mut body) {
                assert!(piece.len() <= PIECE);
                read.extend_from_slice(&piece);
                let left = (length - read.len()) as u64;
                assert_eq!(body.size_hint().exact(), Some(left));
                assert_eq!(body.is_end_stream(), left == 0);
            }
            let whole = (0..length).map(|place| place as u8);
            assert!(read.into_iter().eq(whole), "{length}");
        }
    }
}
