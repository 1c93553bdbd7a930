// Command oddserver serves a file, or random content, with habits: see package oddserver. For each
// habit it prints a line: NAME<tab>URL<tab>get or put<tab>SHA-256<tab>description. SHA-256 lists the
// files that it may give, separated by commas. It serves until its standard input ends.
package main

import (
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"

	"github.com/linklab/linklab/client/tests/oddserver"
)

// settings are the command's flags.
type settings struct {
	size                            int
	file                            string
	addresses, host                 string
	certificateFile, certificateKey string
}

func main() {
	var s settings
	flag.IntVar(&s.size, "size", 6_000_000, "size of random content in bytes")
	flag.StringVar(&s.file, "file", "", "file to serve in place of random content")
	flag.StringVar(&s.addresses, "addresses", "127.0.0.1", "where to listen, as HOST or HOST:PORT, separated by commas; all get the same port")
	flag.StringVar(&s.host, "host", "127.0.0.1", "name of the server in the URLs; its own certificate is for 127.0.0.1 and example.com")
	flag.StringVar(&s.certificateFile, "certificate", "", "PEM file with another certificate")
	flag.StringVar(&s.certificateKey, "key", "", "PEM file with the key of that certificate")
	flag.Parse()
	if err := serve(s); err != nil {
		fmt.Fprintln(os.Stderr, "oddserver:", err)
		os.Exit(1)
	}
}

func serve(s settings) error {
	content := make([]byte, s.size)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(content)
	if s.file != "" {
		var err error
		if content, err = os.ReadFile(s.file); err != nil {
			return err
		}
	}
	if len(content) == 0 {
		return errors.New("the file is empty: allowed are files of a byte and more")
	}
	var options []oddserver.Option
	if s.certificateFile != "" {
		pair, err := tls.LoadX509KeyPair(s.certificateFile, s.certificateKey)
		if err != nil {
			return err
		}
		options = append(options, oddserver.WithCertificate(pair))
	}
	odd := oddserver.New(content, options...)
	server, err := odd.Start(oddserver.HTTP2, strings.Split(s.addresses, ",")...)
	if err != nil {
		return err
	}
	defer server.Close()
	port := server.URL[strings.LastIndex(server.URL, ":"):]
	list := func(way string, habits []oddserver.Habit) {
		for _, h := range habits {
			fmt.Printf("%s\thttps://%s%s/%s/file\t%s\t%s\t%s\n", h.Name, s.host, port, h.Name, way, sums(odd.Files(h)), h.Does)
		}
	}
	list("get", oddserver.Habits)
	list("put", oddserver.Uploads)
	fmt.Println()
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// sums returns the SHA-256 of files, separated by commas.
func sums(files [][]byte) string {
	var all []string
	for _, file := range files {
		all = append(all, fmt.Sprintf("%x", sha256.Sum256(file)))
	}
	return strings.Join(all, ",")
}
