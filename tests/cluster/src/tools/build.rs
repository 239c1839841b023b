//! Building programs with `go`, once, however many processes ask.

use std::ffi::OsStr;
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::{Files, Module, Progress, Tool};
use crate::{Error, component};

/// How often a long build says that it is still at it.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(15);
const POLL: Duration = Duration::from_millis(100);

/// Builds `missing` into the cache, one after the other: each build uses all processors.
///
/// # Errors
/// If `go` is missing or fails; what was built before stays.
pub(super) fn build(cache: &Path, missing: &[(&Tool, Module)], progress: Progress) -> Result<(), Error> {
    if missing.is_empty() {
        return Ok(());
    }
    fs::create_dir_all(cache).map_err(|e| Error::io("create", cache, e))?;
    let _lock = lock(cache, progress)?;
    let total = missing.len();
    for (index, (tool, module)) in missing.iter().enumerate() {
        if module.dir(cache).join(tool.name).is_file() {
            continue; // Another process has built it while we waited for the lock.
        }
        let label = format!("building {} {} ({} of {total})", tool.name, module.version, index + 1);
        if index == 0 {
            progress(&format!("{total} programs must be built in {}; the first time takes minutes", cache.display()));
        }
        build_one(tool, module, cache, &label, progress)?;
    }
    Ok(())
}

/// Held until the file is dropped; the kernel releases it when the process dies.
fn lock(cache: &Path, progress: Progress) -> Result<File, Error> {
    let path = cache.join("lock");
    let file = File::create(&path).map_err(|e| Error::io("create", &path, e))?;
    match file.try_lock() {
        Ok(()) => return Ok(file),
        Err(TryLockError::WouldBlock) => {
            progress("another process is building the cluster's programs; waiting for it");
        }
        Err(TryLockError::Error(error)) => return Err(Error::io("lock", &path, error)),
    }
    file.lock().map_err(|e| Error::io("lock", &path, e))?;
    Ok(file)
}

/// Builds apart and renames, so that what has the right name is whole. The caller holds the lock.
fn build_one(tool: &Tool, module: &Module, cache: &Path, label: &str, progress: Progress) -> Result<(), Error> {
    progress(label);
    let start = Instant::now();
    let dir = module.dir(cache);
    fs::create_dir_all(&dir).map_err(|e| Error::io("create", &dir, e))?;
    let work = cache.join("building");
    // What is in it was left by a build that was killed.
    remove_dir(&work)?;
    fs::create_dir(&work).map_err(|e| Error::io("create", &work, e))?;
    let go = Go::new(&work);
    module.write(&work)?;
    let still = |seconds| progress(&format!("{label}: {seconds} s"));
    let built = work.join(tool.name);
    let mut args = vec!["build".to_owned()];
    args.extend(module.flags());
    args.extend(["-o".to_owned(), built.display().to_string(), tool.package.to_owned()]);
    go.run(&args, &still)?;
    if let Some(files) = &tool.files {
        copy_files(files, &go, &work, &dir)?;
    }
    let target = dir.join(tool.name);
    fs::rename(&built, &target).map_err(|e| Error::io("write", &target, e))?;
    remove_dir(&work)?;
    progress(&format!("{label}: done in {} s", start.elapsed().as_secs()));
    Ok(())
}

/// Copies files of the tool's module beside the tool.
fn copy_files(files: &Files, go: &Go, work: &Path, dir: &Path) -> Result<(), Error> {
    let module = go.output(&["list", "-m", "-f", "{{.Dir}}", files.module])?;
    let source = Path::new(module.trim()).join(files.from);
    let copied = work.join(files.folder);
    fs::create_dir(&copied).map_err(|e| Error::io("create", &copied, e))?;
    for name in files.names {
        let from = source.join(name);
        // Read and written, not copied: files of the module cache are read-only, and their mode would come along.
        let text = fs::read_to_string(&from).map_err(|e| Error::io("read", &from, e))?;
        let to = copied.join(file_name(name));
        fs::write(&to, text).map_err(|e| Error::io("write", &to, e))?;
    }
    let target = dir.join(files.folder);
    remove_dir(&target)?;
    fs::rename(&copied, &target).map_err(|e| Error::io("write", &target, e))
}

fn remove_dir(dir: &Path) -> Result<(), Error> {
    match fs::remove_dir_all(dir) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(Error::io("remove", dir, error)),
        _ => Ok(()),
    }
}

/// The files that were put beside a tool in `dir` when it was built.
pub(super) fn files_of(files: &Files, dir: &Path) -> Vec<PathBuf> {
    files.names.iter().map(|name| dir.join(files.folder).join(file_name(name))).collect()
}

fn file_name(path: &str) -> &str {
    path.rsplit_once('/').map_or(path, |(_, name)| name)
}

/// `go`, run in one directory.
pub(super) struct Go<'a> {
    dir: &'a Path,
}

impl<'a> Go<'a> {
    pub(super) const fn new(dir: &'a Path) -> Self {
        Self { dir }
    }

    fn command(&self, args: &[impl AsRef<OsStr>]) -> Command {
        let mut command = Command::new("go");
        // A workspace file above the cache must not choose other versions; without cgo a program needs no libc.
        command.args(args).current_dir(self.dir).env("GOWORK", "off").env("CGO_ENABLED", "0").stdin(Stdio::null());
        command
    }

    /// Runs it to its end and gives its standard output.
    pub(super) fn output(&self, args: &[&str]) -> Result<String, Error> {
        let output = self.command(args).output().map_err(Error::NoGo)?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        if output.status.success() {
            return Ok(text);
        }
        let printed = format!("{text}{}", String::from_utf8_lossy(&output.stderr));
        Err(Error::Go { command: args.join(" "), status: output.status.to_string(), output: printed })
    }

    /// Runs it to its end; `still` gets the elapsed seconds from time to time.
    fn run(&self, args: &[String], still: &dyn Fn(u64)) -> Result<(), Error> {
        let log = self.dir.join("go.log");
        let output = File::create(&log).map_err(|e| Error::io("create", &log, e))?;
        let mut child = self.command(args).stdout(Stdio::null()).stderr(output).spawn().map_err(Error::NoGo)?;
        let start = Instant::now();
        let mut told = PROGRESS_INTERVAL;
        loop {
            if let Some(status) = child.try_wait().map_err(Error::NoGo)? {
                if status.success() {
                    return Ok(());
                }
                let output = component::tail(&log);
                return Err(Error::Go { command: args.join(" "), status: status.to_string(), output });
            }
            if start.elapsed() >= told {
                still(start.elapsed().as_secs());
                told += PROGRESS_INTERVAL;
            }
            thread::sleep(POLL);
        }
    }
}
