//! Waiting for the futures of wgpu, which on Vulkan are ready at once or after a poll of the device.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Runs a future to its end on this thread.
pub(super) fn block_on<F: Future>(future: F) -> F::Output {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_future_of_another_thread_is_awaited() {
        let (sender, receiver) = std::sync::mpsc::channel();
        let mut late = Some(receiver);
        let future = std::future::poll_fn(move |context: &mut Context<'_>| match late.take() {
            None => Poll::Ready(7),
            Some(receiver) => {
                let waker = context.waker().clone();
                thread::spawn(move || receiver.recv().map(|()| waker.wake()));
                sender.send(()).unwrap();
                Poll::Pending
            }
        });
        assert_eq!(block_on(future), 7);
    }
}
