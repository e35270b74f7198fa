// SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
// stacks TRUTH: steps of Rust of which every twentieth makes a slow call: of a generic function, of a
// closure, and of a lock.
use std::hint::black_box;
use std::io::{BufRead, Write};
use std::sync::mpsc::{channel, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const STEPS: usize = 180;
const EVERY: usize = 20;
const SLOW: Duration = Duration::from_millis(30);

struct Engine {
    cache: Arc<Mutex<u64>>,
    ask: Sender<()>,
    taken: Receiver<()>,
}

#[inline(never)]
fn pause_for<T: Into<Duration>>(time: T) -> u64 {
    std::thread::sleep(time.into());
    black_box(1)
}

#[inline(never)]
fn call_it(what: &dyn Fn() -> u64) -> u64 {
    black_box(what()) + 1
}

#[inline(never)]
fn take_lock(engine: &Engine) -> u64 {
    let mut count = engine.cache.lock().unwrap();
    *count += 1;
    black_box(*count)
}

#[inline(never)]
fn hold_lock(cache: &Mutex<u64>, take: &Sender<()>) -> u64 {
    let guard = cache.lock().unwrap();
    take.send(()).unwrap();
    std::thread::sleep(SLOW);
    let count = *guard;
    drop(guard);
    black_box(count)
}

#[no_mangle]
#[inline(never)]
extern "C" fn engine_step(engine: &Engine, way: usize) -> u64 {
    let sum = match way {
        0 => pause_for(SLOW),
        1 => call_it(&|| pause_for(SLOW)),
        2 => take_lock(engine),
        _ => 0,
    };
    black_box(sum)
}

fn main() {
    let cache = Arc::new(Mutex::new(0));
    let (ask, asked) = channel::<()>();
    let (take, taken) = channel::<()>();
    let held = cache.clone();
    let holder = std::thread::spawn(move || {
        while asked.recv().is_ok() {
            hold_lock(&held, &take);
        }
    });
    let engine = Engine { cache, ask, taken };

    println!("ready");
    std::io::stdout().flush().unwrap();
    std::io::stdin().lock().lines().next();
    for i in 1..=STEPS {
        let way = if i % EVERY == 0 { i / EVERY % 3 } else { 9 };
        if way == 2 {
            engine.ask.send(()).unwrap();
            engine.taken.recv().unwrap();
        }
        engine_step(&engine, way);
        std::thread::sleep(Duration::from_micros(300));
    }
    drop(engine);
    holder.join().unwrap();
    let truth = std::env::args().nth(1).unwrap();
    std::fs::write(truth, format!("{{\"slow\": {}}}\n", STEPS / EVERY)).unwrap();
}
