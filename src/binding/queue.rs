//! Admission: who may hold one of libuv's threads, of which a process has four.
//!
//! Every job of every environment (the main thread's and each worker's) waits in one queue, first come
//! first served, without a thread. At most two runners take jobs from it, each a piece of work on
//! libuv's pool; so fs, dns and the like always find threads there. A finished job goes back to its
//! own environment, which is woken to settle its promise: once for as many as have gathered.
//!
//! A runner belongs to the environment that started it, and runs the jobs of any. It ends where the
//! queue does, or where its own environment has nothing more to wait for; then those that have jobs
//! waiting are woken to start another.

use super::pace::Pace;
use crate::checkpoint::Checkpoint;
use crate::cpu::Claim;
use napi::{Env, sys};
use std::collections::VecDeque;
use std::ffi::{c_char, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, Weak};
use std::time::{Duration, Instant};

/// What a thread does, and its environment then settles.
pub trait Job: Send {
    /// On a thread of libuv's pool. Does not panic.
    fn run(&mut self, checkpoint: Checkpoint);
    /// On the environment's own thread, after `run`, or without it where the job was aborted.
    fn settle(self: Box<Self>, env: &Env);
    /// Whether it takes so little time that a long job may let it pass.
    fn is_small(&self) -> bool;
    /// Bytes of a result that was made for it, for V8 to collect.
    fn new_bytes(&self) -> usize;
}

/// Names a job to abort it by, in its environment; 0 for one that never is.
pub type JobId = u32;

struct Entry {
    home: Arc<Home>,
    id: JobId,
    job: Box<dyn Job>,
    /// A small one runs on one thread, whatever the others do.
    claim: Option<Claim>,
}

/// A job that a thread has.
struct Running {
    home: Arc<Home>,
    id: JobId,
    stop: Arc<AtomicBool>,
}

/// An environment.
struct Home {
    env: sys::napi_env,
    /// Either wakes the environment; they take turns. One that is called while it is being answered is
    /// answered again before anything else of the event loop, up to a thousand times.
    ///
    /// Called only while `STATE` is locked and `is_closed` is not set: after that they may be gone.
    wake: [sys::napi_threadsafe_function; 2],
    /// Whose turn it is. Under `STATE`.
    turn: AtomicUsize,
    is_closed: AtomicBool,
    /// Whether it was woken and has not looked yet. Under `STATE`.
    is_woken: AtomicBool,
    /// Jobs that are not settled: while there are any, they keep the environment's loop alive.
    unsettled: AtomicUsize,
    /// Jobs to settle. Under `STATE` too, but Rust can't know.
    done: Mutex<VecDeque<Done>>,
    pace: Mutex<Pace>,
}

/// A job to settle.
struct Done {
    job: Box<dyn Job>,
    handed_over: Instant,
    /// How often it has let others have their turn first.
    put_off: usize,
}

impl Done {
    fn is_to_be_put_off(&self) -> bool {
        self.put_off < MOST_PUT_OFF && self.handed_over.elapsed() > LATE
    }
}

// SAFETY: the environment is only used on its own thread, the function from any, as it may be.
unsafe impl Send for Home {}
unsafe impl Sync for Home {}

struct State {
    homes: Vec<Arc<Home>>,
    waiting: VecDeque<Entry>,
    running: Vec<Running>,
    runners: usize,
}

static STATE: Mutex<State> = Mutex::new(State {
    homes: Vec::new(),
    waiting: VecDeque::new(),
    running: Vec::new(),
    runners: 0,
});

/// Notified whenever a job has left `running`.
static LEFT: Condvar = Condvar::new();

fn state() -> MutexGuard<'static, State> {
    STATE.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// The size of libuv's pool, as libuv reads it.
fn pool_size() -> usize {
    static SIZE: OnceLock<usize> = OnceLock::new();
    *SIZE.get_or_init(|| match std::env::var("UV_THREADPOOL_SIZE") {
        Ok(size) => size.trim().parse().unwrap_or(0).clamp(1, 1024),
        Err(_) => 4,
    })
}

/// How many threads of the pool are ours at most: two, and one fewer than there are.
fn most_runners() -> usize {
    (pool_size() - 1).clamp(1, 2)
}

/// How long a runner keeps a pool's only thread before others have their turn.
const TURN: Duration = Duration::from_millis(2);

/// Small jobs that a long one lets pass between two of its chunks.
const MOST_PASSING: usize = 32;

/// Jobs that are settled in one turn of the event loop: as many small ones, and one that is not. What
/// the caller does with a large result, and what it costs to collect the last ones, is its own turn's.
const MOST_SETTLED: usize = 64;

/// A loop that takes longer to look at what is done was busy. One that sleeps takes 20 us on two cores,
/// and 90 once in a hundred times.
const LATE: Duration = Duration::from_micros(200);

/// What is not small and meets a busy loop comes after everything else of that turn, which is long
/// enough. The loop answers both ways to wake it in one turn, so that it takes two to be in the next.
const MOST_PUT_OFF: usize = 2;

/// Puts a job in the queue.
pub fn submit(env: &Env, id: JobId, job: Box<dyn Job>) -> napi::Result<()> {
    let home = Home::of(env)?;
    home.begin_waiting(env)?;
    let claim = (!job.is_small()).then(Claim::new);
    let mut state = state();
    state.waiting.push_back(Entry { home: Arc::clone(&home), id, job, claim });
    drop(state);
    home.start_runner(env)
}

/// Stops a job: one that waits is settled at once, one that runs is told to stop at its next
/// checkpoint.
pub fn abort(env: &Env, id: JobId) {
    let mut state = state();
    let is_it = |home: &Home, its: JobId| home.env == env.raw() && its == id;
    if let Some(at) = state.waiting.iter().position(|entry| is_it(&entry.home, entry.id)) {
        let entry = state.waiting.remove(at);
        drop(state);
        if let Some(Entry { home, job, .. }) = entry {
            job.settle(env);
            home.end_waiting(env, 1);
        }
    } else if let Some(job) = state.running.iter().find(|job| is_it(&job.home, job.id)) {
        job.stop.store(true, Ordering::Relaxed);
    }
}

impl State {
    /// Takes a job off the queue to run it.
    fn begin(&mut self, at: usize) -> Option<(Entry, Arc<AtomicBool>)> {
        let entry = self.waiting.remove(at)?;
        let stop = Arc::new(AtomicBool::new(false));
        let (home, id) = (Arc::clone(&entry.home), entry.id);
        self.running.push(Running { home, id, stop: Arc::clone(&stop) });
        Some((entry, stop))
    }

    /// The end of a runner. Whoever has jobs waiting is woken, to start another.
    fn end_runner(&mut self) {
        self.runners -= 1;
        for entry in &self.waiting {
            entry.home.wake_up();
        }
    }
}

/// Runs a job, and gives it back to its environment to settle.
fn run(entry: Entry, stop: &Arc<AtomicBool>, between: impl Fn() + Sync) {
    let Entry { home, mut job, claim, .. } = entry;
    job.run(&|| {
        between();
        !stop.load(Ordering::Relaxed)
    });
    drop(claim);
    if !job.is_small() {
        home.wait_for_turn(job.new_bytes());
    }
    let mut state = state();
    state.running.retain(|running| !Arc::ptr_eq(&running.stop, stop));
    LEFT.notify_all();
    if home.is_closed.load(Ordering::Relaxed) {
        // Nobody is left to settle it. Its references went with the environment.
        drop(state);
        drop(job);
        return;
    }
    home.done().push_back(Done { job, handed_over: Instant::now(), put_off: 0 });
    home.wake_up();
}

/// Between two chunks of a long job: small ones that wait pass it, so that none waits longer than for
/// a chunk, whatever is running.
fn let_small_ones_pass() {
    for _ in 0..MOST_PASSING {
        let mut state = state();
        let Some(at) = state.waiting.iter().position(|entry| entry.job.is_small()) else { return };
        let Some((entry, stop)) = state.begin(at) else { return };
        drop(state);
        run(entry, &stop, || ());
    }
}

/// On a thread of libuv's pool: runs jobs until there are none, or none that this environment should
/// stay alive for.
fn run_jobs(home: &Arc<Home>) {
    let begun = Instant::now();
    loop {
        let mut state = state();
        let goes_on = !home.is_closed.load(Ordering::Relaxed)
            && (pool_size() > 1 || begun.elapsed() < TURN)
            && state.waiting.front().is_some_and(|next| {
                Arc::ptr_eq(&next.home, home) || home.unsettled.load(Ordering::Relaxed) > 0
            });
        let next = if goes_on { state.begin(0) } else { None };
        let Some((entry, stop)) = next else { return state.end_runner() };
        drop(state);
        if entry.job.is_small() {
            run(entry, &stop, || ());
        } else {
            run(entry, &stop, let_small_ones_pass);
        }
    }
}

/// Data of a runner's piece of work.
struct Runner {
    home: Arc<Home>,
    work: sys::napi_async_work,
}

impl Home {
    /// That of an environment; made with its first job.
    fn of(env: &Env) -> napi::Result<Arc<Home>> {
        let found = state().homes.iter().find(|home| home.env == env.raw()).map(Arc::clone);
        // The lock is let go by now.
        found.map_or_else(|| Home::make(env), Ok)
    }

    fn make(env: &Env) -> napi::Result<Arc<Home>> {
        let home = Arc::new_cyclic(|home: &Weak<Home>| Home {
            env: env.raw(),
            wake: std::array::from_fn(|_| Home::make_wake(env, home)),
            turn: AtomicUsize::new(0),
            is_closed: AtomicBool::new(false),
            is_woken: AtomicBool::new(false),
            unsettled: AtomicUsize::new(0),
            done: Mutex::new(VecDeque::new()),
            pace: Mutex::new(Pace::default()),
        });
        if home.wake.iter().any(|wake| wake.is_null()) {
            return Err(napi::Error::from_reason("the runtime made no thread-safe function"));
        }
        // After the functions, so that it is run before they are gone: hooks run in reverse.
        let hook = Arc::as_ptr(&home).cast_mut().cast();
        // SAFETY: the home is among `homes` until the hook has run.
        napi::check_status!(unsafe {
            sys::napi_add_env_cleanup_hook(env.raw(), Some(close_home), hook)
        })?;
        state().homes.push(Arc::clone(&home));
        Ok(home)
    }

    /// A function that wakes the environment and does not keep its loop alive; null where the runtime
    /// makes none.
    fn make_wake(env: &Env, home: &Weak<Home>) -> sys::napi_threadsafe_function {
        let mut wake = null_mut();
        let context = home.clone().into_raw().cast_mut().cast();
        // SAFETY: the callbacks are as Node-API wants them; the context is one weak reference, which
        // `forget_home` takes back when the function is gone.
        unsafe {
            let status = sys::napi_create_threadsafe_function(
                env.raw(),
                null_mut(),
                null_mut(),
                name(env.raw()),
                0,
                1,
                context,
                Some(forget_home),
                context,
                Some(settle_jobs),
                &mut wake,
            );
            if status != sys::Status::napi_ok {
                return null_mut();
            }
            sys::napi_unref_threadsafe_function(env.raw(), wake);
        }
        wake
    }

    fn done(&self) -> MutexGuard<'_, VecDeque<Done>> {
        self.done.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn pace(&self) -> MutexGuard<'_, Pace> {
        self.pace.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// On a thread that has run a long job: until its result may be handed over. One that is alone in
    /// flight is waited for, and comes at once.
    fn wait_for_turn(&self, new_bytes: usize) {
        if new_bytes > 0 && self.unsettled.load(Ordering::Relaxed) > 1 {
            let wait = self.pace().book(new_bytes, Instant::now());
            std::thread::sleep(wait);
        }
    }

    /// Has the environment look at what is done and what waits. `STATE` is locked.
    fn wake_up(&self) {
        if self.is_closed.load(Ordering::Relaxed) || self.is_woken.swap(true, Ordering::Relaxed) {
            return;
        }
        let mode = sys::ThreadsafeFunctionCallMode::nonblocking;
        let wake = self.wake[self.turn.load(Ordering::Relaxed) % 2];
        // SAFETY: the environment is not closed, so that the function is there.
        unsafe { sys::napi_call_threadsafe_function(wake, null_mut(), mode) };
    }

    /// One job more to wait for. On the environment's thread, as what follows.
    fn begin_waiting(&self, env: &Env) -> napi::Result<()> {
        if self.unsettled.fetch_add(1, Ordering::Relaxed) == 0 {
            // SAFETY: on the environment's thread, which is not closed: it runs JavaScript.
            napi::check_status!(unsafe {
                sys::napi_ref_threadsafe_function(env.raw(), self.wake[0])
            })?;
        }
        Ok(())
    }

    fn end_waiting(&self, env: &Env, jobs: usize) {
        if self.unsettled.fetch_sub(jobs, Ordering::Relaxed) == jobs {
            // SAFETY: as above.
            unsafe { sys::napi_unref_threadsafe_function(env.raw(), self.wake[0]) };
        }
    }

    /// Starts a runner where there may be one more and something waits.
    fn start_runner(self: &Arc<Home>, env: &Env) -> napi::Result<()> {
        let mut locked = state();
        if locked.waiting.is_empty() || locked.runners >= most_runners() {
            return Ok(());
        }
        locked.runners += 1;
        drop(locked);
        let runner = Box::into_raw(Box::new(Runner { home: Arc::clone(self), work: null_mut() }));
        // SAFETY: the callbacks are as Node-API wants them; the data lives until `end_work`.
        let status = unsafe {
            let mut status = sys::napi_create_async_work(
                env.raw(),
                null_mut(),
                name(env.raw()),
                Some(begin_work),
                Some(end_work),
                runner.cast(),
                &raw mut (*runner).work,
            );
            if status == sys::Status::napi_ok {
                status = sys::napi_queue_async_work(env.raw(), (*runner).work);
            }
            status
        };
        if status != sys::Status::napi_ok {
            // SAFETY: nobody else has it.
            drop(unsafe { Box::from_raw(runner) });
            state().runners -= 1;
        }
        napi::check_status!(status)
    }
}

/// What async_hooks calls our work.
fn name(env: sys::napi_env) -> sys::napi_value {
    const NAME: &str = "cugather";
    let mut name = null_mut();
    // SAFETY: the string is as long as said.
    unsafe {
        sys::napi_create_string_utf8(
            env,
            NAME.as_ptr().cast::<c_char>(),
            NAME.len() as isize,
            &mut name,
        )
    };
    name
}

unsafe extern "C" fn begin_work(_env: sys::napi_env, runner: *mut c_void) {
    // SAFETY: what `start_runner` gave, until `end_work`.
    run_jobs(&unsafe { &*runner.cast::<Runner>() }.home);
}

unsafe extern "C" fn end_work(env: sys::napi_env, _status: sys::napi_status, runner: *mut c_void) {
    // SAFETY: what `start_runner` gave, for the last time.
    unsafe {
        let runner = Box::from_raw(runner.cast::<Runner>());
        sys::napi_delete_async_work(env, runner.work);
    }
}

/// On the environment's thread, once it was woken.
unsafe extern "C" fn settle_jobs(
    env: sys::napi_env,
    _function: sys::napi_value,
    home: *mut c_void,
    _data: *mut c_void,
) {
    // SAFETY: the context that the function was made with; borrowed, not taken.
    let weak =
        std::mem::ManuallyDrop::new(unsafe { Weak::from_raw(home.cast::<Home>().cast_const()) });
    let Some(home) = weak.upgrade().filter(|_| !env.is_null()) else { return };
    let env = Env::from_raw(env);
    let jobs = {
        let _locked = state();
        home.is_woken.store(false, Ordering::Relaxed);
        home.turn.fetch_add(1, Ordering::Relaxed);
        let mut done = home.done();
        let first_large = done.iter().position(|done| !done.job.is_small());
        let mut count = first_large.map_or(done.len(), |at| at + 1).min(MOST_SETTLED);
        // What is not small is the last of them.
        let large = first_large.filter(|&at| at + 1 == count).and_then(|at| done.get_mut(at));
        if let Some(large) = large.filter(|large| large.is_to_be_put_off()) {
            large.put_off += 1;
            count -= 1;
        }
        let jobs: Vec<_> = done.drain(..count).map(|done| done.job).collect();
        if !done.is_empty() {
            home.wake_up();
        }
        jobs
    };
    let count = jobs.len();
    for job in jobs {
        let mut scope = null_mut();
        // SAFETY: on the environment's thread; opened and closed in order.
        unsafe { sys::napi_open_handle_scope(env.raw(), &mut scope) };
        job.settle(&env);
        // SAFETY: as above.
        unsafe { sys::napi_close_handle_scope(env.raw(), scope) };
    }
    if count > 0 {
        home.end_waiting(&env, count);
    }
    // Where it can't be started, those that wait have to wait for another's.
    let _ = home.start_runner(&env);
}

/// The environment ends: its jobs that wait are dropped, those that run are stopped and waited for,
/// since they use its memory.
unsafe extern "C" fn close_home(home: *mut c_void) {
    let home = home.cast::<Home>().cast_const();
    let mut state = state();
    // A home is found by its address; the hook has no reference of its own.
    let Some(at) = state.homes.iter().position(|each| Arc::as_ptr(each) == home) else { return };
    let home = state.homes.swap_remove(at);
    home.is_closed.store(true, Ordering::Relaxed);
    let (its, others) = std::mem::take(&mut state.waiting)
        .into_iter()
        .partition(|entry| Arc::ptr_eq(&entry.home, &home));
    state.waiting = others;
    for job in state.running.iter().filter(|job| Arc::ptr_eq(&job.home, &home)) {
        job.stop.store(true, Ordering::Relaxed);
    }
    while state.running.iter().any(|job| Arc::ptr_eq(&job.home, &home)) {
        state = LEFT.wait(state).unwrap_or_else(|poisoned| poisoned.into_inner());
    }
    drop(state);
    let its: VecDeque<Entry> = its;
    drop(its);
    home.done().clear();
}

/// The function is gone, and its reference with it.
unsafe extern "C" fn forget_home(_env: sys::napi_env, home: *mut c_void, _hint: *mut c_void) {
    // SAFETY: what `make` made of a weak reference, for the last time.
    drop(unsafe { Weak::from_raw(home.cast::<Home>().cast_const()) });
}
