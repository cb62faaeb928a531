//! Huge pages for fresh memory: to touch a new MiB for the first time takes longer by 4 KiB pages
//! than to gather it.

/// Asks for huge pages under `bytes` bytes that are about to be written for the first time, where
/// the system has them and there are enough bytes to gain by it. Only a hint: memory that was
/// touched already, and systems that give none, are left as they are.
pub fn advise(address: *mut u8, bytes: usize) {
    /// What a huge page holds on most machines.
    const HUGE_PAGE: usize = 2 << 20;
    /// With fewer bytes than this, many threads on small pages are as fast as few on huge ones.
    const LEAST_BYTES: usize = 8 << 20;
    if bytes < LEAST_BYTES {
        return;
    }
    let start = (address as usize).next_multiple_of(HUGE_PAGE);
    let end = (address as usize + bytes) / HUGE_PAGE * HUGE_PAGE;
    if start < end {
        advise_pages(start, end - start);
    }
}

#[cfg(target_os = "linux")]
fn advise_pages(start: usize, bytes: usize) {
    // SAFETY: the pages lie within the caller's memory, and the call changes no content. Where the
    // kernel knows no huge pages it fails, which is as good.
    unsafe { libc::madvise(start as *mut _, bytes, libc::MADV_HUGEPAGE) };
}

#[cfg(not(target_os = "linux"))]
fn advise_pages(_start: usize, _bytes: usize) {}
