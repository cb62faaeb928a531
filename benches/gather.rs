//! The gather on the CPU, without JavaScript: `cargo bench --features internals`.

use cugather::internals::{
    Bounds, DeviceChoice, IndexType, Input, Mode, Output, Request, Shape, run,
};
use divan::{Bencher, counter::ItemsCount};

fn main() {
    divan::main();
}

/// Numbers of 0 … below - 1 that jump about, the same on every run (SplitMix64).
fn random(length: usize, below: u64) -> Vec<i32> {
    let mut state = 20_261_201u64;
    let mut next = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (((z ^ (z >> 31)) as u128 * u128::from(below)) >> 64) as i32
    };
    (0..length).map(|_| next()).collect()
}

/// `length` rows of `row_bytes` bytes out of a source of 64 MiB.
fn bench(bencher: Bencher, row_bytes: usize, length: usize, mode: Mode) {
    let source = vec![1u8; 64 << 20];
    let rows = (source.len() / row_bytes) as u64;
    let index = random(length, rows);
    let mut out = vec![0u8; length * row_bytes];
    let request = Request {
        shape: Shape {
            row_bytes,
            length,
            index_type: IndexType::I32,
            bounds: Bounds { rows, mode, wrap_negative: true },
            fill: [0; 16],
        },
        source: Input::Borrowed(source.as_ptr()),
        index: Input::Borrowed(index.as_ptr().cast()),
        out: Output::Host { address: out.as_mut_ptr(), is_callers: true },
    };
    bencher.counter(ItemsCount::new(length)).bench_local(|| {
        run(&request, DeviceChoice::Cpu, &|| true).map(|_| ()).expect("every index names a row")
    });
}

#[divan::bench(args = [64, 16 << 10, 1 << 20])]
fn scalars(bencher: Bencher, length: usize) {
    bench(bencher, 4, length, Mode::Clip);
}

#[divan::bench(args = [12, 16, 64, 1024])]
fn rows_of_bytes(bencher: Bencher, row_bytes: usize) {
    bench(bencher, row_bytes, 64 << 10, Mode::Clip);
}

/// An `out` that has to stay untouched is written only once every index was found good.
#[divan::bench(args = ["raise", "wrap", "clip", "fill"])]
fn modes(bencher: Bencher, name: &str) {
    let mode = match name {
        "raise" => Mode::Raise,
        "wrap" => Mode::Wrap,
        "clip" => Mode::Clip,
        _ => Mode::Fill,
    };
    bench(bencher, 4, 1 << 18, mode);
}
