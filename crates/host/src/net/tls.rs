//! Who is at the other end: TLS 1.3 with bare Ed25519 keys (RFC 7250), both sides shown by theirs.
//!
//! There are no names, no chains and no authorities here: a key is the machine. Which keys are welcome is
//! decided after the handshake, by whoever runs the network.

use std::{any::Any, sync::Arc};

use base::{PublicKey, SecretKey};
use quinn::crypto::rustls::{HandshakeData, QuicClientConfig, QuicServerConfig};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, DistinguishedName, Error, ServerConfig,
    SignatureScheme,
    client::{
        AlwaysResolvesClientRawPublicKeys, Resumption,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    },
    crypto::{CryptoProvider, aws_lc_rs, verify_tls13_signature_with_raw_key},
    pki_types::{
        CertificateDer, PrivatePkcs8KeyDer, ServerName, SubjectPublicKeyInfoDer, UnixTime,
    },
    server::{
        AlwaysResolvesServerRawPublicKeys, NoServerSessionStorage,
        danger::{ClientCertVerified, ClientCertVerifier},
    },
    sign::CertifiedKey,
    version::TLS13,
};
use zeroize::Zeroizing;

use crate::Failure;

/// A connection that carries lanes and requests. The number is the version of what is said over it.
pub(crate) const LINK: &[u8] = b"croft/1";
/// A connection for one request.
pub(crate) const ASK: &[u8] = b"croft-ask/1";

/// What stands before the 32 bytes of a public key (RFC 8410).
const PUBLIC_PREFIX: [u8; 12] =
    [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];
/// What stands before the 32 bytes of a seed (RFC 8410).
const SECRET_PREFIX: [u8; 16] = [
    0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20,
];

/// What this machine shows to others.
#[derive(Clone)]
pub(crate) struct Identity {
    provider: Arc<CryptoProvider>,
    shown: Arc<CertifiedKey>,
}

fn unfit(error: impl std::fmt::Display) -> Failure {
    Failure::Unfit(format!("the network can't be set up with this machine's key: {error}"))
}

impl Identity {
    pub(crate) fn new(key: &SecretKey) -> Result<Identity, Failure> {
        let mut pkcs8 = Zeroizing::new([0; 48]);
        pkcs8[..16].copy_from_slice(&SECRET_PREFIX);
        pkcs8[16..].copy_from_slice(key.as_seed());
        let signing = aws_lc_rs::sign::any_eddsa_type(&PrivatePkcs8KeyDer::from(&pkcs8[..]));
        let signing = signing.map_err(unfit)?;
        let public = [&PUBLIC_PREFIX[..], key.public().as_bytes()].concat();
        let shown = CertifiedKey::new(vec![CertificateDer::from(public)], signing);
        let provider = CryptoProvider {
            kx_groups: vec![aws_lc_rs::kx_group::X25519],
            ..aws_lc_rs::default_provider()
        };
        Ok(Identity { provider: Arc::new(provider), shown: Arc::new(shown) })
    }

    /// For those who call us.
    pub(crate) fn server(&self) -> Result<QuicServerConfig, Failure> {
        let verifier = Verifier { provider: Arc::clone(&self.provider), wanted: None };
        let config = ServerConfig::builder_with_provider(Arc::clone(&self.provider))
            .with_protocol_versions(&[&TLS13])
            .map_err(unfit)?;
        let resolver = AlwaysResolvesServerRawPublicKeys::new(Arc::clone(&self.shown));
        let mut config = config
            .with_client_cert_verifier(Arc::new(verifier))
            .with_cert_resolver(Arc::new(resolver));
        config.alpn_protocols = vec![LINK.to_vec(), ASK.to_vec()];
        // Whoever comes again shows its key again: it may have been sent away meanwhile.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        QuicServerConfig::try_from(config).map_err(unfit)
    }

    /// For calling the machine with this key, or whichever answers.
    pub(crate) fn client(
        &self,
        wanted: Option<PublicKey>,
        protocol: &[u8],
    ) -> Result<QuicClientConfig, Failure> {
        let verifier = Verifier { provider: Arc::clone(&self.provider), wanted };
        let config = ClientConfig::builder_with_provider(Arc::clone(&self.provider))
            .with_protocol_versions(&[&TLS13])
            .map_err(unfit)?;
        let resolver = AlwaysResolvesClientRawPublicKeys::new(Arc::clone(&self.shown));
        let mut config = config
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier))
            .with_client_cert_resolver(Arc::new(resolver));
        config.alpn_protocols = vec![protocol.to_vec()];
        config.resumption = Resumption::disabled();
        config.enable_sni = false;
        QuicClientConfig::try_from(config).map_err(unfit)
    }
}

/// The key that the other end has shown, of a connection whose handshake is over.
pub(crate) fn peer_of(connection: &quinn::Connection) -> Option<PublicKey> {
    let identity: Box<dyn Any> = connection.peer_identity()?;
    let shown = identity.downcast::<Vec<CertificateDer<'static>>>().ok()?;
    key_of(shown.first()?)
}

/// What is spoken over a connection whose handshake is over.
pub(crate) fn protocol_of(connection: &quinn::Connection) -> Option<Vec<u8>> {
    connection.handshake_data()?.downcast::<HandshakeData>().ok()?.protocol
}

fn key_of(shown: &CertificateDer<'_>) -> Option<PublicKey> {
    let bytes = shown.strip_prefix(&PUBLIC_PREFIX[..])?;
    Some(PublicKey::from_bytes(bytes.try_into().ok()?))
}

/// Checks that the other end has the key that it shows, and shows the wanted one.
#[derive(Debug)]
struct Verifier {
    provider: Arc<CryptoProvider>,
    wanted: Option<PublicKey>,
}

impl Verifier {
    fn check(&self, shown: &CertificateDer<'_>) -> Result<(), Error> {
        let key = key_of(shown).ok_or(CertificateError::BadEncoding)?;
        match self.wanted {
            Some(wanted) if wanted != key => {
                Err(CertificateError::ApplicationVerificationFailure.into())
            }
            _ => Ok(()),
        }
    }

    fn check_signature(
        &self,
        message: &[u8],
        shown: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let key = SubjectPublicKeyInfoDer::from(shown.as_ref());
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature_with_raw_key(message, &key, signature, algorithms)
    }
}

/// TLS 1.2 is never offered.
fn is_too_old() -> Error {
    Error::PeerIncompatible(rustls::PeerIncompatible::Tls12NotOffered)
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        shown: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.check(shown).map(|()| ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(is_too_old())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        shown: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.check_signature(message, shown, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}

impl ClientCertVerifier for Verifier {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        shown: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        self.check(shown).map(|()| ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(is_too_old())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        shown: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.check_signature(message, shown, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}
