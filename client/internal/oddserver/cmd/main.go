// Command oddserver serves a file, or random content, with habits: see package oddserver. For each
// habit it prints a line: NAME<tab>URL<tab>get or put<tab>SHA-256<tab>description. SHA-256 lists the
// files that it may give, separated by commas. It serves until its standard input ends.
package main

import (
	"crypto/sha256"
	"crypto/tls"
	"encoding/pem"
	"errors"
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

// settings are the command's flags.
type settings struct {
	size                            int
	seed                            uint64
	addresses, host                 string
	protocol                        string
	rate                            int
	delay                           time.Duration
	file, content, authority        string
	certificateFile, certificateKey string
}

func main() {
	var s settings
	flag.IntVar(&s.size, "size", 6_000_000, "size of random content in bytes")
	flag.Uint64Var(&s.seed, "seed", 1, "of the random content")
	flag.StringVar(&s.file, "file", "", "file to serve in place of random content")
	flag.StringVar(&s.addresses, "addresses", "127.0.0.1", "where to listen, as HOST or HOST:PORT, separated by commas; all get the same port")
	flag.StringVar(&s.protocol, "protocol", oddserver.HTTP2, "h2, http/1.1 (both with TLS) or http")
	flag.StringVar(&s.host, "host", "127.0.0.1", "name of the server in the URLs; its own certificate is for 127.0.0.1 and example.com")
	flag.StringVar(&s.certificateFile, "certificate", "", "PEM file with another certificate")
	flag.StringVar(&s.certificateKey, "key", "", "PEM file with the key of that certificate")
	flag.IntVar(&s.rate, "rate", 0, "limit of each answer in bytes per second")
	flag.DurationVar(&s.delay, "delay", 0, "time until an answer begins")
	flag.StringVar(&s.content, "content", "", "file to write the content to")
	flag.StringVar(&s.authority, "ca-file", "", "file to write the server's authority to, as PEM")
	flag.Parse()
	if !slices.Contains([]string{oddserver.HTTP2, oddserver.HTTP1, oddserver.Plain}, s.protocol) {
		fmt.Fprintf(os.Stderr, "oddserver: --protocol %s: allowed are h2, http/1.1 and http\n", s.protocol)
		os.Exit(2)
	}
	if err := serve(s); err != nil {
		fmt.Fprintln(os.Stderr, "oddserver:", err)
		os.Exit(1)
	}
}

func serve(s settings) error {
	content, err := contentOf(s)
	if err != nil {
		return err
	}
	if s.content != "" {
		if err := os.WriteFile(s.content, content, 0o600); err != nil {
			return err
		}
	}
	options := []oddserver.Option{oddserver.WithRate(s.rate), oddserver.WithDelay(s.delay)}
	if s.certificateFile != "" {
		pair, err := tls.LoadX509KeyPair(s.certificateFile, s.certificateKey)
		if err != nil {
			return err
		}
		options = append(options, oddserver.WithCertificate(pair))
	}
	odd := oddserver.New(content, options...)
	server, err := odd.Start(s.protocol, strings.Split(s.addresses, ",")...)
	if err != nil {
		return err
	}
	defer server.Close()
	if s.authority != "" && s.protocol != oddserver.Plain {
		text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
		if err := os.WriteFile(s.authority, text, 0o600); err != nil {
			return err
		}
	}
	scheme, _, _ := strings.Cut(server.URL, ":")
	port := server.URL[strings.LastIndex(server.URL, ":"):]
	list := func(way string, habits []oddserver.Habit) {
		for _, h := range habits {
			fmt.Printf("%s\t%s://%s%s/%s/file\t%s\t%s\t%s\n", h.Name, scheme, s.host, port, h.Name, way, sums(odd.Files(h)), h.Does)
		}
	}
	list("get", oddserver.Habits)
	list("put", oddserver.Uploads)
	fmt.Println()
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// contentOf returns the content to serve.
func contentOf(s settings) ([]byte, error) {
	if s.file == "" {
		content := make([]byte, s.size)
		_, _ = rand.NewChaCha8([32]byte{byte(s.seed), byte(s.seed >> 8)}).Read(content)
		return content, nil
	}
	content, err := os.ReadFile(s.file)
	if err == nil && len(content) == 0 {
		err = errors.New(s.file + ": is empty")
	}
	return content, err
}

// sums returns the SHA-256 of files, separated by commas.
func sums(files [][]byte) string {
	var all []string
	for _, file := range files {
		all = append(all, fmt.Sprintf("%x", sha256.Sum256(file)))
	}
	return strings.Join(all, ",")
}
