// SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
// unknown TRUTH: an engine of Rust whose step is a method behind a trait object, awaited in an async
// function whose polls are twice as many, until SIGTERM. The account is when each step began and how
// long it lasted, in ns of CLOCK_MONOTONIC.
use std::future::Future;
use std::hint::black_box;
use std::io::{Read, Write};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, RawWaker, RawWakerVTable, Waker};
use std::time::{Duration, Instant};

static OVER: AtomicBool = AtomicBool::new(false);

extern "C" fn end(_: i32) {
    OVER.store(true, Ordering::Relaxed);
}

extern "C" {
    fn signal(number: i32, handler: extern "C" fn(i32)) -> usize;
}

struct Turn(bool);

impl Future for Turn {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        if self.0 {
            return Poll::Ready(());
        }
        self.0 = true;
        Poll::Pending
    }
}

#[inline(never)]
fn smooth(values: &mut [f32], rounds: usize) {
    for _ in 0..rounds {
        for value in values.iter_mut() {
            *value = *value * 0.999 + 0.001;
        }
    }
    black_box(&values);
}

struct Tokens {
    values: Vec<f32>,
    begun: Instant,
    account: Vec<(u128, u128)>,
}

trait Work {
    fn advance(&mut self, rounds: usize) -> f32;
}

impl Work for Tokens {
    #[inline(never)]
    fn advance(&mut self, rounds: usize) -> f32 {
        let begin = self.begun.elapsed().as_nanos();
        for _ in 0..24 {
            smooth(&mut self.values, rounds);
        }
        let ns = self.begun.elapsed().as_nanos() - begin;
        self.account.push((begin, ns));
        self.values[0]
    }
}

async fn iterate(work: &mut dyn Work, i: usize) -> f32 {
    Turn(false).await;
    black_box(work.advance(if i % 40 == 0 { 30 } else { 4 }))
}

async fn all(work: &mut dyn Work) {
    let mut i = 0;
    while !OVER.load(Ordering::Relaxed) {
        iterate(work, i).await;
        i += 1;
        if i % 7 == 0 {
            std::thread::sleep(Duration::from_micros(300));
        }
    }
}

fn waker() -> RawWaker {
    fn nothing(_: *const ()) {}
    fn again(_: *const ()) -> RawWaker {
        waker()
    }
    static TABLE: RawWakerVTable = RawWakerVTable::new(again, nothing, nothing, nothing);
    RawWaker::new(std::ptr::null(), &TABLE)
}

fn drive(work: &mut dyn Work) {
    let waker = unsafe { Waker::from_raw(waker()) };
    let mut context = Context::from_waker(&waker);
    let mut future = Box::pin(all(work));
    while future.as_mut().poll(&mut context).is_pending() {}
}

fn main() {
    let path = std::env::args().nth(1).expect("TRUTH");
    unsafe { signal(15, end) };
    println!("ready");
    let _ = std::io::stdin().read(&mut [0; 1]);
    let tokens = std::thread::spawn(|| {
        let mut tokens =
            Tokens { values: vec![1.0; 160000], begun: Instant::now(), account: Vec::new() };
        drive(&mut tokens);
        tokens
    })
    .join()
    .unwrap();
    let spans: Vec<String> =
        tokens.account.iter().map(|(begin, ns)| format!("[{begin}, {ns}]")).collect();
    let mut file = std::fs::File::create(path).unwrap();
    writeln!(file, "{{\"steps\": [{}]}}", spans.join(", ")).unwrap();
}
