//! Credentials of a kubeconfig that the client library reads otherwise than kubectl does, or waits for without end.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use http::header::AUTHORIZATION;
use http::{HeaderValue, Request};
use kube::Config;

/// How long a program that fetches credentials may take before a server gives it up. One that waits for a person would wait for
/// ever.
pub const PLUGIN_TIMEOUT: Duration = Duration::from_secs(30);

/// Name of the command that runs such a program for [`PLUGIN_TIMEOUT`].
pub const RUN_PLUGIN: &str = "run-credential-plugin";

/// How often the file is read again, as client-go does (`NewCachedFileTokenSource`).
const READ_AGAIN_AFTER: Duration = Duration::from_secs(60);

/// A token in a file, which another process renews. As with kubectl, space around the token is no part of it: editors put a
/// newline behind it.
#[derive(Debug, Clone)]
pub struct TokenFile {
    path: PathBuf,
    known: Arc<Mutex<(HeaderValue, Instant)>>,
}

impl TokenFile {
    /// Takes the file out of the configuration, if that is how the client would get its token.
    ///
    /// # Errors
    /// What is wrong with the file.
    pub fn take(config: &mut Config) -> io::Result<Option<Self>> {
        let auth = &mut config.auth_info;
        // In the library's order.
        let is_used = auth.auth_provider.is_none() && auth.username.is_none() && auth.token.is_none();
        let Some(path) = auth.token_file.take_if(|_| is_used) else { return Ok(None) };
        auth.exec = None;
        let path = PathBuf::from(path);
        let known = Arc::new(Mutex::new((read(&path)?, Instant::now())));
        Ok(Some(Self { path, known }))
    }

    /// The request with the token.
    pub fn authorize<B>(&self, mut request: Request<B>) -> Request<B> {
        request.headers_mut().insert(AUTHORIZATION, self.header(Instant::now()));
        request
    }

    fn header(&self, now: Instant) -> HeaderValue {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if now.saturating_duration_since(known.1) >= READ_AGAIN_AFTER {
            known.1 = now;
            match read(&self.path) {
                Ok(header) => known.0 = header,
                // The file may be away for good: some remove it once programs have started.
                Err(error) => {
                    tracing::warn!(%error, path = %self.path.display(), "The token cannot be read; the last one stays");
                }
            }
        }
        known.0.clone()
    }
}

fn read(path: &Path) -> io::Result<HeaderValue> {
    let text = fs::read_to_string(path)?;
    let token = text.trim();
    let invalid = |text: &str| io::Error::new(io::ErrorKind::InvalidData, text.to_owned());
    if token.is_empty() {
        return Err(invalid("there is no token in it"));
    }
    let header = HeaderValue::try_from(format!("Bearer {token}"));
    let mut header = header.map_err(|_| invalid("what it holds cannot be a token"))?;
    header.set_sensitive(true);
    Ok(header)
}

/// Has a program that fetches credentials run by a command of ours, which gives it up after a while. The library waits for it
/// without end, and would block all requests to the API server.
pub fn limit_plugin(config: &mut Config, ours: &Path) {
    let Some(exec) = &mut config.auth_info.exec else { return };
    let Some(program) = exec.command.take() else { return };
    exec.command = Some(ours.display().to_string());
    let arguments = exec.args.take().unwrap_or_default();
    let ours = [RUN_PLUGIN, "--", &program].map(str::to_owned);
    exec.args = Some(ours.into_iter().chain(arguments).collect());
}

#[cfg(test)]
mod tests {
    use kube::config::{AuthInfo, ExecConfig};

    use super::*;

    fn config(auth_info: AuthInfo) -> Config {
        let mut config = Config::new("https://127.0.0.1:1".parse().unwrap());
        config.auth_info = auth_info;
        config
    }

    #[test]
    fn a_token_file_that_ends_in_a_newline_holds_the_token_and_is_read_again() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("token");
        fs::write(&path, "one\n").unwrap();
        let token_file = Some(path.display().to_string());
        let mut config = config(AuthInfo { token_file, ..AuthInfo::default() });
        let file = TokenFile::take(&mut config).unwrap().unwrap();
        assert_eq!(config.auth_info.token_file, None);
        let header = |file: &TokenFile, seconds| {
            let now = Instant::now() + Duration::from_secs(seconds);
            file.header(now).to_str().unwrap().to_owned()
        };
        assert_eq!(header(&file, 0), "Bearer one");
        fs::write(&path, " two \r\n").unwrap();
        assert_eq!(header(&file, 10), "Bearer one");
        assert_eq!(header(&file, 61), "Bearer two");
        fs::remove_file(&path).unwrap();
        assert_eq!(header(&file, 200), "Bearer two");
        let request = file.authorize(Request::new(()));
        assert!(request.headers()[AUTHORIZATION].is_sensitive());
        for text in ["", "\n", "a\nb"] {
            fs::write(&path, text).unwrap();
            assert!(read(&path).is_err(), "{text:?}");
        }
    }

    #[test]
    fn other_credentials_come_before_a_token_file() {
        let token_file = Some("/nowhere".to_owned());
        for auth in [
            AuthInfo { token_file: None, ..AuthInfo::default() },
            AuthInfo { token: Some("t".to_owned().into()), token_file: token_file.clone(), ..AuthInfo::default() },
        ] {
            assert!(TokenFile::take(&mut config(auth)).unwrap().is_none());
        }
        let mut missing = config(AuthInfo { token_file, ..AuthInfo::default() });
        assert!(TokenFile::take(&mut missing).is_err());
    }

    #[test]
    fn a_plugin_is_run_by_a_command_that_gives_it_up() {
        let exec: ExecConfig = serde_json::from_value(serde_json::json!({
            "apiVersion": "client.authentication.k8s.io/v1", "command": "aws", "args": ["eks", "get-token"],
        }))
        .unwrap();
        let mut config = config(AuthInfo { exec: Some(exec), ..AuthInfo::default() });
        limit_plugin(&mut config, Path::new("/outrider"));
        let exec = config.auth_info.exec.unwrap();
        assert_eq!(exec.command.as_deref(), Some("/outrider"));
        assert_eq!(exec.args.unwrap(), ["run-credential-plugin", "--", "aws", "eks", "get-token"]);
    }
}
