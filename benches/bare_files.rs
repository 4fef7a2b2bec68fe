//! Durable files done bare: what the disk and the kernel allow.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

/// So many files in a new folder, by four threads: temporary file, sync, rename,
/// sync of the folder.
pub(crate) fn write(folder: &Path, count: usize, content: &str) {
    std::fs::create_dir(folder).unwrap();
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                loop {
                    let n = next.fetch_add(1, Ordering::Relaxed);
                    if n >= count {
                        return;
                    }
                    let temporary = folder.join(format!(".{n}.tmp"));
                    let mut file = File::create(&temporary).unwrap();
                    file.write_all(content.as_bytes()).unwrap();
                    file.sync_all().unwrap();
                    std::fs::rename(&temporary, folder.join(n.to_string())).unwrap();
                    File::open(folder).unwrap().sync_all().unwrap();
                }
            });
        }
    });
}
