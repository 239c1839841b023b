//! The files of the demo, gone when it ends.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// A folder of its own in the folder for temporary files.
pub struct Folder(PathBuf);

impl Folder {
    /// Makes the folder.
    ///
    /// # Errors
    /// The system's error, also when the folder exists already: its files would be another program's.
    pub fn create() -> io::Result<Self> {
        let path = std::env::temp_dir().join(format!("outrider-demo-{}", std::process::id()));
        fs::create_dir(&path).map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))?;
        Ok(Self(path))
    }

    /// Writes a file and returns its path.
    ///
    /// # Errors
    /// What the system says.
    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) -> io::Result<PathBuf> {
        let path = self.path(name);
        fs::write(&path, content)?;
        Ok(path)
    }

    /// Where a file of this name is, or would be.
    pub fn path(&self, name: &str) -> PathBuf {
        Path::new(&self.0).join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // A folder that stays behind does no harm.
        let _ = fs::remove_dir_all(&self.0);
    }
}
