//! The least that a call can cost which leaves the event loop: an empty task on libuv's pool.

use napi::bindgen_prelude::AsyncTask;
use napi::{Env, Task};
use napi_derive::napi;

pub struct Empty;

impl Task for Empty {
    type Output = ();
    type JsValue = ();

    fn compute(&mut self) -> napi::Result<()> {
        Ok(())
    }

    fn resolve(&mut self, _env: Env, (): ()) -> napi::Result<()> {
        Ok(())
    }
}

#[napi]
pub fn empty_task() -> AsyncTask<Empty> {
    AsyncTask::new(Empty)
}
