package cli

import (
	"fmt"
	"net"
	"net/netip"

	"github.com/spf13/cobra"

	"github.com/linklab/linklab/client/internal/proxy"
	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/transfer"
)

// proxyFlags are the flags of "multilink proxy" as the user wrote them.
type proxyFlags struct {
	engineFlags
	metrics metricsFlags
	listen  string
	allow   []string
	buffer  quantity.Bytes
	streams int
}

// proxyGreeting precedes the address that the proxy prints when it listens.
const proxyGreeting = "multilink proxy on "

func newProxy(logs *logging) *cobra.Command {
	f := &proxyFlags{engineFlags: engineFlags{resident: true}, buffer: 8 << 20}
	command := &cobra.Command{
		Use:   "proxy",
		Short: "Run an HTTP and SOCKS5 proxy that downloads over several links",
		Long: `Run a proxy until SIGINT or SIGTERM. Programs use it in three ways:

  http://HOST/PATH                as their HTTP proxy
  http://PROXY/https://HOST/PATH  for https, with its address before the URL
  socks5h://PROXY                 as their SOCKS5 proxy, on the same port

Files and parts of files that a GET asks for come over all links, in their
order, with bounded memory; a player that pauses pauses the download. What is
small, or comes from a server without ranges, takes the best link. As the proxy
of https URLs, and by SOCKS5, it connects the program with the server over the
best link, since it cannot look inside. By SOCKS5, UDP takes the best link too
(UDP ASSOCIATE), so QUIC works.

Only programs on this machine may use it, unless --allow says otherwise.`,
		Example: `  multilink proxy --link wlan0 --link rmnet0 --listen 127.0.0.1:8080
  curl --proxy http://127.0.0.1:8080 -O http://example.org/file
  mpv http://127.0.0.1:8080/https://example.org/film.mkv
  multilink proxy --link wifi=wlan0 --link lte=rmnet0 --listen 192.168.1.2:8080 --allow 192.168.1.0/24`,
		Args: exactly(),
		RunE: func(command *cobra.Command, _ []string) error {
			return runProxy(command, f, logs)
		},
	}
	flags := command.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.listen, "listen", "127.0.0.1:8080", "address of the proxy, as HOST:PORT; port 0 takes a free one")
	flags.StringArrayVar(&f.allow, "allow", nil, "addresses of other clients that may use it, as CIDR such as 192.168.1.0/24 (repeatable)")
	flags.Var(&f.buffer, "buffer", "memory for putting one stream in order")
	flags.IntVar(&f.streams, "streams", 8, "streams over several links at a time; others take the best link")
	f.register(flags)
	f.registerHTTP3(flags)
	f.metrics.register(flags)
	return command
}

func runProxy(command *cobra.Command, f *proxyFlags, logs *logging) error {
	ctx := command.Context()
	options, err := f.engineFlags.options(command.Flags())
	var allow []netip.Prefix
	if err == nil {
		allow, err = f.check()
	}
	if err != nil {
		return usageError{err}
	}
	log, err := logs.logger(command.ErrOrStderr())
	if err != nil {
		return err
	}
	exported, stopMetrics, err := f.metrics.start(f.algorithm, options.Links)
	if err != nil {
		return err
	}
	defer stopMetrics()
	listener, err := net.Listen("tcp", f.listen)
	if err != nil {
		return err
	}
	o := proxy.Options{
		Engine:  options,
		Window:  f.buffer,
		Streams: f.streams,
		Allow:   allow,
		Port:    listener.Addr().(*net.TCPAddr).Port,
		Log:     log,
	}
	if exported != nil {
		o.Count = exported.Received
		o.NewRecorder = func() transfer.Recorder { return exported.Download() }
	}
	fmt.Fprintf(command.OutOrStdout(), "%shttp://%s\n", proxyGreeting, listener.Addr())
	return proxy.New(o).Serve(ctx, listener)
}

// check parses the flags that only this command has.
func (f *proxyFlags) check() (allow []netip.Prefix, err error) {
	host, _, err := net.SplitHostPort(f.listen)
	if err != nil {
		return nil, invalid("listen", f.listen, "allowed is HOST:PORT such as 127.0.0.1:8080")
	}
	for _, text := range f.allow {
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, invalid("allow", text, "allowed is ADDRESS/BITS such as 192.168.1.0/24")
		}
		allow = append(allow, prefix)
	}
	address, err := netip.ParseAddr(host)
	if loopback := host == "localhost" || err == nil && address.IsLoopback(); !loopback && len(allow) == 0 {
		return nil, invalid("listen", f.listen, "nobody else than this machine may use the proxy: listen on 127.0.0.1, or say with --allow who may")
	}
	if f.streams < 1 {
		return nil, invalid("streams", f.streams, "allowed are numbers from 1")
	}
	if f.buffer < 1<<20 {
		return nil, invalid("buffer", &f.buffer, "allowed are sizes from 1MiB")
	}
	return allow, nil
}
