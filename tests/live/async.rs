// SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
//! async TRUTH: futures of async functions, which are polled in turns, by two threads, and dropped. The
//! row of each says what a tracer has to find. Rows are in the order in which the futures begin.
use std::error::Error;
use std::fmt::Write as _;
use std::future::Future;
use std::hint::black_box;
use std::pin::Pin;
use std::sync::mpsc::channel;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

extern "C" {
    fn getppid() -> i32;
    fn gettid() -> i32;
}

struct Quiet;
impl Wake for Quiet {
    fn wake(self: Arc<Self>) {}
}

/// Awaits so many polls.
struct Nap(u32);
impl Future for Nap {
    type Output = u32;
    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<u32> {
        if self.0 == 0 {
            return Poll::Ready(7);
        }
        self.0 -= 1;
        Poll::Pending
    }
}

#[inline(never)]
fn call(count: u32) {
    for _ in 0..count {
        unsafe { getppid() };
    }
}

async fn unit(naps: u32) {
    call(1);
    for _ in 0..naps {
        Nap(1).await;
        call(2);
    }
}

async fn large(naps: u32) -> [u64; 16] {
    call(3);
    let got = Nap(naps).await;
    call(1);
    [got as u64; 16]
}

async fn falls(naps: u32) -> Result<String, Box<dyn Error>> {
    call(2);
    if Nap(naps).await == 8 {
        return Err("never".into());
    }
    let text = format!("{naps}");
    Nap(1).await;
    call(4);
    Ok(text)
}

async fn within(naps: u32) -> u64 {
    let sum = large(naps).await[3];
    unit(naps).await;
    sum
}

async fn panics(naps: u32) -> bool {
    call(1);
    Nap(naps).await;
    call(1);
    if naps < 1000 {
        panic!("as it shall");
    }
    true
}

trait Model {
    fn run<'a>(&'a self, naps: u32) -> Pin<Box<dyn Future<Output = Vec<u8>> + Send + 'a>>;
}
struct Boxed(u32);
impl Model for Boxed {
    /// As async-trait writes it.
    fn run<'a>(&'a self, naps: u32) -> Pin<Box<dyn Future<Output = Vec<u8>> + Send + 'a>> {
        Box::pin(async move {
            call(self.0);
            Nap(naps).await;
            vec![naps as u8; 3]
        })
    }
}

#[derive(Default)]
struct Row {
    polls: u32,
    calls: u32,
    await_ns: u128,
    total_ns: u128,
    tid: i32,
    end: &'static str,
}

type Polls = Box<dyn FnMut(&mut Context<'_>) -> bool + Send>;

struct Task {
    poll: Polls,
    row: usize,
    begin: Option<Instant>,
    last: Option<Instant>,
}

fn polls_of<T: 'static>(future: impl Future<Output = T> + Send + 'static) -> Polls {
    let boxed: Pin<Box<dyn Future<Output = T> + Send>> = Box::pin(future);
    let mut future = black_box(boxed);

    Box::new(move |context| black_box(future.as_mut().poll(context)).is_ready())
}

/// calls: in all polls of the future.
fn begin<T: 'static>(
    rows: &mut Vec<Row>,
    future: impl Future<Output = T> + Send + 'static,
    calls: u32,
    end: &'static str,
) -> Task {
    rows.push(Row { calls, end, ..Row::default() });
    Task { poll: polls_of(future), row: rows.len() - 1, begin: None, last: None }
}

fn poll(task: &mut Task, rows: &mut [Row]) -> bool {
    let waker = Waker::from(Arc::new(Quiet));
    let row = &mut rows[task.row];

    let now = Instant::now();
    if let Some(last) = task.last {
        row.await_ns += (now - last).as_nanos();
    } else {
        row.tid = unsafe { gettid() };
    }
    let begin = *task.begin.get_or_insert(now);
    let polls = std::panic::AssertUnwindSafe(|| (task.poll)(&mut Context::from_waker(&waker)));
    let is_over = std::panic::catch_unwind(polls).unwrap_or(true);
    let now = Instant::now();
    row.total_ns = (now - begin).as_nanos();
    row.polls += 1;
    task.last = Some(now);
    is_over
}

fn in_turns(rows: &mut Vec<Row>) {
    for round in 0..10 {
        let n = 1 + round % 3;
        let mut tasks = vec![
            begin(rows, unit(n), 1 + 2 * n, "return"),
            begin(rows, large(n), 4, "return"),
            begin(rows, falls(n), 6, "return"),
            begin(rows, async move { Boxed(n).run(n).await }, n, "return"),
            begin(rows, within(n), 5 + 2 * n, "return"),
            begin(rows, unit(0), 1, "return"),
        ];
        while !tasks.is_empty() {
            tasks.retain_mut(|task| !poll(task, rows));
            std::thread::sleep(Duration::from_micros(500));
        }
    }
}

/// The first poll here, the next one there, and so on.
fn by_two(rows: &mut Vec<Row>) {
    let (give, take) = channel::<(Task, Vec<Row>)>();
    let (give_back, take_back) = channel();
    let thread = std::thread::spawn(move || {
        for (mut task, mut rows) in take {
            let is_over = poll(&mut task, &mut rows);
            give_back.send((task, rows, is_over)).unwrap();
        }
    });

    for i in 0..20 {
        let mut task = begin(rows, large(6), 4, "return");
        let mut turn = i;
        let mut is_over = false;
        while !is_over {
            if turn % 2 == 0 {
                is_over = poll(&mut task, rows);
            } else {
                give.send((task, std::mem::take(rows))).unwrap();
                (task, *rows, is_over) = take_back.recv().unwrap();
            }
            turn += 1;
        }
    }
    drop(give);
    thread.join().unwrap();
}

/// On threads of their own: a step that was unwound ends there at the latest.
fn by_panic(rows: &mut Vec<Row>) {
    for naps in 0..5 {
        let mut task = begin(rows, panics(naps), 2, "panicked");
        let mut taken = std::mem::take(rows);
        let thread = std::thread::spawn(move || {
            while !poll(&mut task, &mut taken) {}
            taken
        });
        *rows = thread.join().unwrap();
    }
}

/// Polled once, then no more.
fn dropped(rows: &mut Vec<Row>) {
    for _ in 0..10 {
        poll(&mut begin(rows, falls(100), 2, "dropped"), rows);
    }
}

fn main() {
    let path = std::env::args().nth(1).expect("TRUTH");
    let mut rows = Vec::new();
    let mut line = String::new();
    let mut text = String::new();

    std::panic::set_hook(Box::new(|_| {}));
    println!("ready");
    std::io::stdin().read_line(&mut line).unwrap();
    in_turns(&mut rows);
    by_two(&mut rows);
    by_panic(&mut rows);
    dropped(&mut rows);
    for (id, row) in rows.iter().enumerate() {
        let comma = if text.is_empty() { "" } else { "," };
        writeln!(
            text,
            "{comma}{{\"id\": {id}, \"polls\": {}, \"calls\": {}, \"await_ns\": {}, \"total_ns\": {}, \
             \"tid\": {}, \"end\": \"{}\"}}",
            row.polls, row.calls, row.await_ns, row.total_ns, row.tid, row.end
        )
        .unwrap();
    }
    std::fs::write(path, format!("[\n{text}]\n")).unwrap();
}
