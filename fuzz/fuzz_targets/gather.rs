//! The gather on the CPU against the table of the contract, worked row by row in 128 bits.
#![no_main]

use arbitrary::Arbitrary;
use cugather::internals::{
    Bounds, DeviceChoice, Error, IndexType, Input, Mode, Output, Request, Shape, run,
};
use libfuzzer_sys::fuzz_target;

#[derive(Debug, Arbitrary)]
struct Call {
    source: Vec<u8>,
    row_bytes: u8,
    index: Vec<u8>,
    /// Repeats the index, so that a gather has several pieces.
    repeat: u8,
    index_type: u8,
    mode: u8,
    wrap_negative: bool,
    fill: [u8; 16],
    is_callers: bool,
}

enum Row {
    At(usize),
    Fill,
    Outside,
}

fn place(i: i128, n: i128, mode: Mode, wrap_negative: bool) -> Row {
    let in_range = (0..n).contains(&i) || (wrap_negative && (-n..0).contains(&i));
    match mode {
        Mode::Wrap | Mode::Clip if n == 0 => Row::Outside,
        Mode::Wrap => Row::At(i.rem_euclid(n) as usize),
        Mode::Clip => Row::At(i.clamp(0, n - 1) as usize),
        Mode::Raise | Mode::Fill if in_range => Row::At(if i < 0 { i + n } else { i } as usize),
        Mode::Raise => Row::Outside,
        Mode::Fill => Row::Fill,
    }
}

const TYPES: [IndexType; 8] = [
    IndexType::I8,
    IndexType::U8,
    IndexType::I16,
    IndexType::U16,
    IndexType::I32,
    IndexType::U32,
    IndexType::I64,
    IndexType::U64,
];
const MODES: [Mode; 4] = [Mode::Raise, Mode::Wrap, Mode::Clip, Mode::Fill];

fuzz_target!(|call: Call| {
    let row_bytes = usize::from(call.row_bytes).max(1);
    let rows = call.source.len() / row_bytes;
    let index_type = TYPES[usize::from(call.index_type) % TYPES.len()];
    let mode = MODES[usize::from(call.mode) % MODES.len()];
    let size = index_type.size();

    let whole = call.index.len() / size * size;
    let once = call.index[..whole].repeat(1 + usize::from(call.repeat) * 8);
    // Aligned as a typed array is.
    let mut words = vec![0u64; once.len().div_ceil(8)];
    for (i, &byte) in once.iter().enumerate() {
        words[i / 8] |= u64::from(byte) << (i % 8 * 8);
    }
    let length = once.len() / size;
    if length * row_bytes > 1 << 22 {
        return;
    }
    let decode = |i: usize| {
        let mut bytes = [0; 8];
        bytes[..size].copy_from_slice(&once[i * size..][..size]);
        index_type.decode(bytes)
    };

    let mut out = vec![0xa5; length * row_bytes];
    let bounds = Bounds { rows: rows as u64, mode, wrap_negative: call.wrap_negative };
    let request = Request {
        shape: Shape { row_bytes, length, index_type, bounds, fill: call.fill },
        source: Input::Borrowed(call.source.as_ptr()),
        index: Input::Borrowed(words.as_ptr().cast()),
        out: Output::Host { address: out.as_mut_ptr(), is_callers: call.is_callers },
    };
    let outcome = run(&request, DeviceChoice::Cpu, &|| true).map(|_| ());

    let place = |i: usize| place(decode(i), rows as i128, mode, call.wrap_negative);
    let first_outside = (0..length).find(|&i| matches!(place(i), Row::Outside));
    match (outcome, first_outside) {
        (Ok(()), None) => {
            for (i, got) in out.chunks_exact(row_bytes).enumerate() {
                match place(i) {
                    Row::At(row) => assert_eq!(got, &call.source[row * row_bytes..][..row_bytes]),
                    Row::Fill => {
                        assert!(got.iter().enumerate().all(|(k, &b)| b == call.fill[k % 16]))
                    }
                    Row::Outside => unreachable!(),
                }
            }
        }
        (Err(Error::OutOfRange { position, index, length }), Some(first)) => {
            assert_eq!((position, length), (first as u64, rows as u64));
            assert_eq!(index, decode(first));
            assert!(!call.is_callers || out.iter().all(|&byte| byte == 0xa5));
        }
        (outcome, first) => panic!("{outcome:?} where the first bad index is at {first:?}"),
    }
});
