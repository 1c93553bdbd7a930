package transport

import (
	"crypto/tls"
	"errors"
	"net"
	"slices"
	"strings"
)

// HandshakeError is the failure of a TLS handshake.
type HandshakeError struct {
	err error
	// again is true if the next handshake sends another hello.
	again bool
	// hint says what may help, or "".
	hint string
}

func (e *HandshakeError) Error() string {
	if e.hint != "" {
		return "TLS handshake: " + e.err.Error() + ". " + e.hint
	}
	return "TLS handshake: " + e.err.Error()
}

func (e *HandshakeError) Unwrap() error { return e.err }

// IsFinal reports whether another handshake over the same link will most likely fail, too:
// one side refused the other's offer, or another server answered. A connection that ended
// or timed out refused nothing.
func (e *HandshakeError) IsFinal() bool {
	if e.again {
		return false
	}
	if errors.As(e.err, new(*tls.CertificateVerificationError)) || errors.As(e.err, new(tls.RecordHeaderError)) {
		return true
	}
	if refused := new(net.OpError); errors.As(e.err, &refused) {
		// crypto/tls marks alerts so. The type of alerts is private.
		isAlert := refused.Op == "remote error" || refused.Op == "local error"
		return isAlert && refused.Err.Error() != "tls: internal error"
	}
	return strings.HasPrefix(e.err.Error(), "tls: ")
}

// certificateRequired is the error of a TLS 1.3 server after the handshake of this side (RFC
// 8446 4.4.2.4). Another connection would have no certificate either.
type certificateRequired struct{ error }

func (certificateRequired) Permanent() bool { return true }

func (e certificateRequired) Unwrap() error { return e.error }

// wantsCertificate reports whether a server demands a client certificate.
func wantsCertificate(err error) bool {
	alert := new(net.OpError)
	return errors.As(err, &alert) && alert.Op == "remote error" && alert.Err.Error() == "tls: certificate required"
}

// carriesHTTP2 reports whether RFC 9113 allows HTTP/2 on this connection: TLS 1.3, or TLS
// 1.2 with an ephemeral key exchange and AEAD (9.2.2).
func carriesHTTP2(state tls.ConnectionState) bool {
	return state.Version >= tls.VersionTLS13 || slices.Contains([]uint16{
		tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
		tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
		tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256, tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
	}, state.CipherSuite)
}
