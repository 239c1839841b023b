//! Why a TLS handshake failed.

use std::io;

use rustls::{AlertDescription, Error};

use crate::metrics::HandshakeFailure;

/// The cause, as it is counted.
pub fn cause(error: &io::Error) -> HandshakeFailure {
    let Some(tls) = error.get_ref().and_then(|inner| inner.downcast_ref::<Error>()) else {
        return match error.kind() {
            io::ErrorKind::UnexpectedEof
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::BrokenPipe => HandshakeFailure::closed,
            io::ErrorKind::TimedOut => HandshakeFailure::timeout,
            _ => HandshakeFailure::other,
        };
    };
    match tls {
        Error::AlertReceived(alert) => of_alert(*alert),
        Error::NoCertificatesPresented | Error::InvalidCertificate(_) => HandshakeFailure::client_certificate,
        Error::PeerIncompatible(_) | Error::NoApplicationProtocol => HandshakeFailure::incompatible,
        Error::InvalidMessage(_)
        | Error::InappropriateMessage { .. }
        | Error::InappropriateHandshakeMessage { .. }
        | Error::PeerSentOversizedRecord => HandshakeFailure::not_tls,
        // What rustls says where the resolver has no certificate, in `server/hs.rs`.
        Error::General(text) if text.contains("no server certificate chain resolved") => {
            HandshakeFailure::no_certificate
        }
        _ => HandshakeFailure::other,
    }
}

const fn of_alert(alert: AlertDescription) -> HandshakeFailure {
    match alert {
        AlertDescription::BadCertificate
        | AlertDescription::UnsupportedCertificate
        | AlertDescription::CertificateRevoked
        | AlertDescription::CertificateExpired
        | AlertDescription::CertificateUnknown
        | AlertDescription::UnknownCA
        | AlertDescription::DecryptError => HandshakeFailure::untrusted,
        AlertDescription::ProtocolVersion | AlertDescription::HandshakeFailure => HandshakeFailure::incompatible,
        AlertDescription::CloseNotify | AlertDescription::UserCanceled => HandshakeFailure::closed,
        _ => HandshakeFailure::alert,
    }
}
