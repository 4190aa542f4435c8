//! Pipelining: several statements are sent in order before the first answer arrives.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;
use tokio_postgres::{Error, Row};

/// A statement that is sent when it is first polled.
pub(crate) type Step<'a> = Pin<Box<dyn Future<Output = Result<Vec<Row>, Error>> + Send + 'a>>;

/// Sends all steps in order and waits for all answers.
pub(crate) async fn all(mut steps: Vec<Step<'_>>) -> Vec<Result<Vec<Row>, Error>> {
    let mut answers: Vec<Option<Result<Vec<Row>, Error>>> = steps.iter().map(|_| None).collect();
    poll_fn(|context| {
        let mut waiting = false;
        for (step, answer) in steps.iter_mut().zip(&mut answers) {
            if answer.is_none() {
                match step.as_mut().poll(context) {
                    Poll::Ready(result) => *answer = Some(result),
                    Poll::Pending => waiting = true,
                }
            }
        }
        if waiting { Poll::Pending } else { Poll::Ready(()) }
    })
    .await;
    answers.into_iter().flatten().collect()
}
