// The HTTP/3 server of quic-go's examples, which nobody here wrote; and in fetch a client that chooses its
// links.
module github.com/linklab/linklab/tests/http3

go 1.26.7

tool github.com/quic-go/quic-go/example

require github.com/quic-go/quic-go v0.65.0

require (
	github.com/quic-go/qpack v0.6.0 // indirect
	golang.org/x/crypto v0.54.0 // indirect
	golang.org/x/net v0.56.0 // indirect
	golang.org/x/sys v0.47.0 // indirect
	golang.org/x/text v0.40.0 // indirect
)
