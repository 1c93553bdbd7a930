package transport

import (
	"crypto/tls"
	"errors"
	"net"
	"slices"
	"strings"
)

// HandshakeError is the failure of a TLS handshake.
type HandshakeError struct{ err error }

func (e *HandshakeError) Error() string { return "TLS handshake: " + e.err.Error() }

func (e *HandshakeError) Unwrap() error { return e.err }

// IsFinal reports whether another handshake over the same link will most likely
// fail as well: one side has refused what the other one offers, or the server is
// another one. A connection that ended, or brought nothing in time, refuses nothing.
func (e *HandshakeError) IsFinal() bool {
	if errors.As(e.err, new(*tls.CertificateVerificationError)) || errors.As(e.err, new(tls.RecordHeaderError)) {
		return true
	}
	if refused := new(net.OpError); errors.As(e.err, &refused) {
		// What crypto/tls calls an alert; only its words are public.
		isAlert := refused.Op == "remote error" || refused.Op == "local error"
		return isAlert && refused.Err.Error() != "tls: internal error"
	}
	return strings.HasPrefix(e.err.Error(), "tls: ")
}

// certificateRequired is what a server of TLS 1.3 says when the handshake has ended
// for this side (RFC 8446 4.4.2.4). No other connection would have a certificate.
type certificateRequired struct{ error }

func (certificateRequired) Permanent() bool { return true }

func (e certificateRequired) Unwrap() error { return e.error }

// wantsCertificate reports whether a server wants a certificate of the client.
func wantsCertificate(err error) bool {
	alert := new(net.OpError)
	return errors.As(err, &alert) && alert.Op == "remote error" && alert.Err.Error() == "tls: certificate required"
}

// carriesHTTP2 reports whether RFC 9113 allows HTTP/2 on such a connection: TLS 1.3,
// or 1.2 with an ephemeral key exchange and AEAD (9.2.2).
func carriesHTTP2(state tls.ConnectionState) bool {
	return state.Version >= tls.VersionTLS13 || slices.Contains([]uint16{
		tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
		tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
		tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256, tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
	}, state.CipherSuite)
}
