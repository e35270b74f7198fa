// SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
// Many threads of Rust's library, which check what they get: channels, panics that are caught,
// thread-locals that are dropped, parked threads, waits that time out.
//
// Says "ready"; ends when the file of its argument is there, and says how it went.
use std::cell::RefCell;
use std::env;
use std::panic;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::mpsc;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

static STOPPED: AtomicBool = AtomicBool::new(false);
static MADE: AtomicU64 = AtomicU64::new(0);
static DROPPED: AtomicU64 = AtomicU64::new(0);

struct Local(Vec<u64>);

impl Drop for Local {
    fn drop(&mut self) {
        DROPPED.fetch_add((self.0[99] == 7) as u64, SeqCst);
    }
}

thread_local! {
    static LOCAL: RefCell<Local> = {
        MADE.fetch_add(1, SeqCst);
        RefCell::new(Local(vec![7; 100]))
    };
}

fn channels() -> bool {
    let (to, from) = mpsc::sync_channel::<u64>(4);
    let (back, results) = mpsc::channel();
    let senders: Vec<_> = (0..4u64)
        .map(|i| {
            let to = to.clone();
            thread::spawn(move || (0..25).for_each(|n| to.send(i * 1000 + n).unwrap()))
        })
        .collect();
    let receiver = thread::spawn(move || back.send(from.iter().sum::<u64>()).unwrap());
    drop(to);
    let good = senders.into_iter().all(|sender| sender.join().is_ok());
    let sum = results.recv().unwrap();
    receiver.join().unwrap();
    // 4 times 0 … 24, and 25 times 0 + 1000 + 2000 + 3000
    good && sum == 4 * 300 + 25 * 6000
}

fn panics() -> bool {
    let caught = panic::catch_unwind(|| {
        let text = vec![String::from("kept until it unwinds"); 5];
        if text.len() == 5 {
            panic!("{}", text.len());
        }
        text.len()
    });
    thread::sleep(Duration::from_micros(100));
    let joined = thread::spawn(|| -> () { panic!("thread") }).join();
    let text = caught.err().and_then(|any| any.downcast_ref::<String>().cloned());
    text.as_deref() == Some("5") && joined.is_err()
}

fn locals() -> bool {
    let threads: Vec<_> = (0..8)
        .map(|_| thread::spawn(|| LOCAL.with(|local| local.borrow().0.iter().sum::<u64>())))
        .collect();
    let sum: u64 = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
    thread::sleep(Duration::from_millis(1));
    sum == 8 * 700 && MADE.load(SeqCst) == DROPPED.load(SeqCst)
}

fn waits() -> bool {
    let wanted = Duration::from_millis(3);
    let pair = (Mutex::new(false), Condvar::new());
    let mut begin = Instant::now();
    let guard = pair.0.lock().unwrap();
    let (guard, result) = pair.1.wait_timeout_while(guard, wanted, |done| !*done).unwrap();
    let mut good = result.timed_out() && !*guard && begin.elapsed() >= wanted;
    begin = Instant::now();
    thread::sleep(wanted);
    good &= begin.elapsed() >= wanted;
    let (_to, from) = mpsc::channel::<()>();
    begin = Instant::now();
    good &= from.recv_timeout(wanted) == Err(mpsc::RecvTimeoutError::Timeout);
    good && begin.elapsed() >= wanted
}

fn park() -> bool {
    let count = Arc::new(AtomicU64::new(0));
    let parked = {
        let count = count.clone();
        thread::spawn(move || {
            for n in 1..=20 {
                while count.load(SeqCst) < n {
                    thread::park();
                }
            }
        })
    };
    for _ in 0..20 {
        count.fetch_add(1, SeqCst);
        parked.thread().unpark();
        thread::sleep(Duration::from_micros(50));
    }
    parked.join().is_ok()
}

fn compute() -> bool {
    let sum = || (1..4000).map(|i| (i as f64).sqrt() / (i + 1) as f64).sum::<f64>();
    let first = sum();
    thread::sleep(Duration::from_micros(200));
    first == sum()
}

fn main() {
    let tasks: [(&str, fn() -> bool); 6] = [
        ("channels", channels),
        ("panics", panics),
        ("thread-locals", locals),
        ("waits that time out", waits),
        ("park", park),
        ("arithmetic", compute),
    ];
    let mut threads = Vec::new();

    panic::set_hook(Box::new(|_| ()));
    for (name, step) in tasks {
        // Only one counts its thread-locals.
        for _ in 0..if name == "thread-locals" { 1 } else { 3 } {
            threads.push((
                name,
                thread::spawn(move || {
                    let (mut rounds, mut wrong) = (0, 0);
                    while !STOPPED.load(SeqCst) {
                        wrong += !step() as u64;
                        rounds += 1;
                    }
                    (rounds, wrong)
                }),
            ));
        }
    }
    println!("ready");
    let end = env::args().nth(1).expect("usage: threads FILE");
    while !Path::new(&end).exists() {
        thread::sleep(Duration::from_millis(20));
    }
    STOPPED.store(true, SeqCst);
    for (name, thread) in threads {
        let (rounds, wrong) = thread.join().unwrap();
        let good = if wrong == 0 && rounds > 0 { "ok" } else { "not ok" };
        println!("{good} - {name}: right every time\n# {name}: {rounds} rounds, {wrong} wrong");
    }
}
