//! Downloads a file by multipath QUIC, or serves files, with noq as it comes.
//!
//! noq-peer serve CONGESTION ADDRESS:PORT CERTIFICATE KEY DIRECTORY
//! noq-peer get ADDRESS:PORT NAME CA OUTPUT LOCAL-ADDRESS…
//!
//! CONGESTION is cubic or bbr3. A request is the line `GET /NAME` on a stream of its own. The answer
//! is the file, then the stream ends (HTTP/0.9 over QUIC). noq has no HTTP/3 of its own.

use std::error::Error;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use noq::congestion::{Bbr3Config, ControllerFactory, CubicConfig};
use noq::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use noq::rustls::pki_types::pem::PemObject;
use noq::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use noq::rustls::{self, RootCertStore};
use noq::{
    ClientConfig, Connection, Endpoint, FourTuple, PathStatus, ServerConfig, TransportConfig,
};

type Failure = Box<dyn Error + Send + Sync>;

const USAGE: &str = "usage: noq-peer serve cubic|bbr3 ADDRESS:PORT CERTIFICATE KEY DIRECTORY
       noq-peer get ADDRESS:PORT NAME CA OUTPUT LOCAL-ADDRESS…";

/// The protocol's name in TLS. The interoperability tests of QUIC call HTTP/0.9 so.
const PROTOCOL: &[u8] = b"hq-interop";

/// The most paths at the same time: more than a scenario has links.
const MOST_PATHS: u32 = 16;

/// The interval of attempts to open missing paths. The first ones may come before the server's
/// connection identifiers for further paths.
const AGAIN: Duration = Duration::from_millis(10);

/// The longest request line.
const LONGEST_BYTES: usize = 4096;

// One thread: the order of tasks is then the same each time.
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["serve", congestion, at, certificate, key, directory] => {
            serve(
                controller(congestion)?,
                at.parse()?,
                certificate,
                key,
                directory,
            )
            .await
        }
        ["get", server, name, ca, output, ref local @ ..] => {
            let local = local
                .iter()
                .map(|one| one.parse())
                .collect::<Result<_, _>>()?;
            get(server.parse()?, name, ca, output, local).await
        }
        _ => Err(USAGE.into()),
    }
}

fn controller(name: &str) -> Result<Arc<dyn ControllerFactory + Send + Sync>, Failure> {
    match name {
        "cubic" => Ok(Arc::new(CubicConfig::default())),
        "bbr3" => Ok(Arc::new(Bbr3Config::default())),
        _ => Err(format!("congestion control {name:?}: allowed are cubic and bbr3").into()),
    }
}

/// noq's defaults with several paths. With larger windows than its 1.25 MB a download ends with
/// "too many gaps in stream buffer".
fn transport() -> TransportConfig {
    let mut made = TransportConfig::default();
    made.max_concurrent_multipath_paths(MOST_PATHS);
    made
}

/// Serves the files of a directory until it is ended.
async fn serve(
    congestion: Arc<dyn ControllerFactory + Send + Sync>,
    at: SocketAddr,
    certificate: &str,
    key: &str,
    directory: &str,
) -> Result<(), Failure> {
    let chain = CertificateDer::pem_file_iter(certificate)?.collect::<Result<_, _>>()?;
    let mut tls = rustls::ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(chain, PrivateKeyDer::from_pem_file(key)?)?;
    tls.alpn_protocols = vec![PROTOCOL.to_vec()];
    let mut transport = transport();
    transport.congestion_controller_factory(congestion);
    let mut config = ServerConfig::with_crypto(Arc::new(QuicServerConfig::try_from(tls)?));
    config.transport_config(Arc::new(transport));
    let endpoint = Endpoint::server(config, at)?;
    while let Some(incoming) = endpoint.accept().await {
        let directory = PathBuf::from(directory);
        tokio::spawn(async move {
            if let Err(error) = answer(incoming, &directory).await {
                eprintln!("noq-peer: {error}");
            }
        });
    }
    Ok(())
}

/// Answers the requests of a connection until the client closes it.
async fn answer(incoming: noq::Incoming, directory: &Path) -> Result<(), Failure> {
    let connection = incoming.await?;
    while let Ok((mut send, mut receive)) = connection.accept_bi().await {
        let line = String::from_utf8(receive.read_to_end(LONGEST_BYTES).await?)?;
        let name = line
            .trim_end()
            .strip_prefix("GET /")
            .ok_or("a request is GET /NAME")?;
        let name = Path::new(name)
            .file_name()
            .ok_or("a request names a file")?;
        send.write_all(&fs::read(directory.join(name))?).await?;
        send.finish()?;
    }
    Ok(())
}

/// Downloads a file over all local addresses.
async fn get(
    server: SocketAddr,
    name: &str,
    ca: &str,
    output: &str,
    local: Vec<IpAddr>,
) -> Result<(), Failure> {
    let mut authorities = RootCertStore::empty();
    authorities.add_parsable_certificates(CertificateDer::pem_file_iter(ca)?.flatten());
    let mut tls = rustls::ClientConfig::builder()
        .with_root_certificates(authorities)
        .with_no_client_auth();
    tls.alpn_protocols = vec![PROTOCOL.to_vec()];
    let mut config = ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls)?));
    config.transport_config(Arc::new(transport()));
    let endpoint = Endpoint::client(SocketAddr::new(unspecified(server), 0))?;
    let connection = endpoint
        .connect_with(config, server, &server.ip().to_string())?
        .await?;
    let opening = tokio::spawn(keep_open(connection.clone(), server, local));
    let (mut send, mut receive) = connection.open_bi().await?;
    send.write_all(format!("GET /{name}\r\n").as_bytes())
        .await?;
    send.finish()?;
    let mut file = BufWriter::new(File::create(output)?);
    while let Some(bytes) = receive.read_chunk(usize::MAX).await? {
        file.write_all(&bytes)?;
    }
    file.flush()?;
    opening.abort();
    connection.close(0u32.into(), b"");
    Ok(())
}

fn unspecified(server: SocketAddr) -> IpAddr {
    match server {
        SocketAddr::V4(_) => std::net::Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => std::net::Ipv6Addr::UNSPECIFIED.into(),
    }
}

/// Keeps a path open from each local address: opens those that are missing or were given up.
async fn keep_open(connection: Connection, server: SocketAddr, local: Vec<IpAddr>) {
    loop {
        for address in &local {
            let path = FourTuple::new(server, Some(*address));
            drop(connection.open_path_ensure(path, PathStatus::Available));
        }
        tokio::time::sleep(AGAIN).await;
    }
}
