// Command oddserver serves random content on loopback, with habits: see package
// oddserver. It prints its URLs, one of each habit, as NAME<tab>URL<tab>what it does,
// and serves until its standard input ends.
package main

import (
	"encoding/pem"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/linklab/linklab/client/internal/oddserver"
)

func main() {
	size := flag.Int("size", 6_000_000, "size of the file in bytes")
	seed := flag.Uint64("seed", 1, "of the content")
	addresses := flag.String("addresses", "127.0.0.1", "where to listen, separated by commas; all get the same port")
	protocol := flag.String("protocol", oddserver.HTTP2, "h2, http/1.1 (both with TLS) or http")
	host := flag.String("host", "127.0.0.1", "name of the server in the URLs; the certificate is for 127.0.0.1 and example.com")
	rate := flag.Int("rate", 0, "limit of each answer in bytes per second")
	delay := flag.Duration("delay", 0, "time until an answer begins")
	content := flag.String("content", "", "file to write the content to")
	authority := flag.String("ca-file", "", "file to write the server's authority to, as PEM")
	flag.Parse()
	if !slices.Contains([]string{oddserver.HTTP2, oddserver.HTTP1, oddserver.Plain}, *protocol) {
		fmt.Fprintf(os.Stderr, "oddserver: --protocol %s: allowed are h2, http/1.1 and http\n", *protocol)
		os.Exit(2)
	}
	if err := serve(*size, *seed, strings.Split(*addresses, ","), *protocol, *host, *rate, *delay, *content, *authority); err != nil {
		fmt.Fprintln(os.Stderr, "oddserver:", err)
		os.Exit(1)
	}
}

func serve(size int, seed uint64, addresses []string, protocol string, host string, rate int, delay time.Duration, contentName, authorityName string) error {
	content := make([]byte, size)
	source := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8)})
	_, _ = source.Read(content)
	if contentName != "" {
		if err := os.WriteFile(contentName, content, 0o600); err != nil {
			return err
		}
	}
	server, err := oddserver.New(content, oddserver.WithRate(rate), oddserver.WithDelay(delay)).Start(protocol, addresses...)
	if err != nil {
		return err
	}
	defer server.Close()
	if authorityName != "" && protocol != oddserver.Plain {
		text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
		if err := os.WriteFile(authorityName, text, 0o600); err != nil {
			return err
		}
	}
	scheme, _, _ := strings.Cut(server.URL, ":")
	port := server.URL[strings.LastIndex(server.URL, ":"):]
	for _, h := range oddserver.Habits {
		fmt.Printf("%s\t%s://%s%s/%s/file\t%s\n", h.Name, scheme, host, port, h.Name, h.Does)
	}
	fmt.Println()
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}
