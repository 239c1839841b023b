//! Images of the pods, built without a registry.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The image of all pods that are not Outrider's: it waits, serves or ends, as its arguments say, and is the sandbox too.
pub const APP: &str = "localhost/app:1";

/// The same program in the next release of its image: another image, not another name for it.
pub const NEXT_APP: &str = "localhost/app:2";

/// An image in a file, as `docker save` writes it.
#[derive(Clone, Debug)]
pub struct Image(PathBuf);

impl Image {
    /// Outrider's, from the file that `make image` wrote and `OUTRIDER_IMAGE` names.
    ///
    /// # Panics
    /// If the variable is not set.
    pub fn outrider() -> Self {
        let file = std::env::var_os("OUTRIDER_IMAGE");
        Self(PathBuf::from(file.expect("OUTRIDER_IMAGE names the image: use `make test-node`, which builds it")))
    }

    /// [`APP`] and [`NEXT_APP`], built in `dir`.
    ///
    /// # Panics
    /// If one cannot be built.
    pub(crate) fn apps(dir: &Path) -> [Self; 2] {
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/app/app.rs");
        fs::create_dir_all(dir).unwrap_or_else(|error| panic!("cannot create {}: {error}", dir.display()));
        let program = dir.join("app");
        run(Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()))
            .args(["--edition=2024", "-Copt-level=1", "-Ctarget-feature=+crt-static", "-Cstrip=symbols", source, "-o"])
            .arg(&program));
        [(APP, "1"), (NEXT_APP, "2")].map(|(name, release)| Self::release(dir, name, release))
    }

    /// One release of the program in `dir`.
    fn release(dir: &Path, name: &str, release: &str) -> Self {
        let (dockerfile, archive) = (dir.join("Dockerfile"), dir.join(format!("app-{release}.tar")));
        let text =
            format!("FROM scratch\nCOPY app /app\nENV RELEASE={release}\nUSER 65532:65532\nENTRYPOINT [\"/app\"]\n");
        fs::write(&dockerfile, text).unwrap_or_else(|error| panic!("cannot write {}: {error}", dockerfile.display()));
        let buildah = || {
            let mut command = Command::new("buildah");
            command.args(["--storage-driver=vfs", "--root"]).arg(dir.join("storage"));
            command.arg("--runroot").arg(dir.join("storage-run"));
            command
        };
        run(buildah()
            .args(["bud", "--quiet", "--isolation=chroot", "--tag", name, "--file"])
            .arg(&dockerfile)
            .arg(dir));
        run(buildah().args(["push", "--quiet", name]).arg(format!("docker-archive:{}:{name}", archive.display())));
        Self(archive)
    }

    pub(crate) fn file(&self) -> &Path {
        &self.0
    }
}

fn run(command: &mut Command) {
    let output = command.output().unwrap_or_else(|error| panic!("cannot run {command:?}: {error}"));
    assert!(output.status.success(), "{command:?} failed: {}", String::from_utf8_lossy(&output.stderr));
}
