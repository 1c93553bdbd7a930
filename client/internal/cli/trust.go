package cli

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"os"

	"github.com/linklab/linklab/client/internal/ownfile"
	"github.com/linklab/linklab/client/internal/plainfile"
)

// mostAuthorities limits the size of a file of certificates, in bytes.
const mostAuthorities = 16 << 20

// tlsConfig trusts only the authorities in a PEM file, or the system's without a file. If the
// environment variable SSLKEYLOGFILE names a file, the keys to decrypt the connections are
// appended to it, as browsers and curl do.
func tlsConfig(caFile string) (*tls.Config, error) {
	config := &tls.Config{}
	if name := os.Getenv("SSLKEYLOGFILE"); name != "" {
		keys, err := ownfile.OpenOrCreate(name, 0o600)
		if err != nil {
			return nil, fmt.Errorf("SSLKEYLOGFILE: %w", err)
		}
		if _, err := keys.Seek(0, io.SeekEnd); err != nil {
			return nil, fmt.Errorf("SSLKEYLOGFILE: %w", err)
		}
		config.KeyLogWriter = keys
	}
	if caFile == "" {
		return config, nil
	}
	pem, err := plainfile.Read(caFile, mostAuthorities)
	if err != nil {
		return nil, invalid("ca-file", caFile, "%w", err)
	}
	config.RootCAs = x509.NewCertPool()
	if !config.RootCAs.AppendCertsFromPEM(pem) {
		return nil, invalid("ca-file", caFile, "there is no certificate in it, PEM is needed")
	}
	return config, nil
}
