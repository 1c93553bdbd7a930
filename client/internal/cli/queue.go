package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/linklab/linklab/client/internal/daemon"
	"github.com/linklab/linklab/client/internal/printable"
	"github.com/linklab/linklab/client/internal/quantity"
)

// withDaemon calls f with a client of the daemon on the given socket.
func withDaemon(socket string, f func(*daemon.Client) error) error {
	path, err := socketPath(socket)
	if err != nil {
		return err
	}
	c := daemon.NewClient(path)
	defer c.Close()
	return f(c)
}

func newAdd() *cobra.Command {
	var socket, output, checksum string
	var wait, asJSON bool
	command := &cobra.Command{
		Use:   "add URL…",
		Short: "Give the daemon files to download",
		Example: `  multilink add https://example.org/file
  multilink add https://example.org/file -o copy --checksum sha-256=HEX --wait
  multilink add https://example.org/a https://example.org/b --json`,
		Args: func(_ *cobra.Command, arguments []string) error {
			if len(arguments) == 0 {
				return usagef("add takes one URL or more")
			}
			if len(arguments) > 1 && (output != "" || checksum != "") {
				return usagef("--output and --checksum are for one URL, not %d", len(arguments))
			}
			return nil
		},
		RunE: func(command *cobra.Command, urls []string) error {
			ctx, out := command.Context(), command.OutOrStdout()
			return withDaemon(socket, func(c *daemon.Client) error {
				var added []daemon.Download
				for _, url := range urls {
					d, err := c.Add(ctx, daemon.Request{URL: url, Output: output, Checksum: checksum})
					if err != nil {
						return err
					}
					added = append(added, d)
				}
				var failed error
				for _, d := range added {
					if wait {
						var err error
						if d, err = c.Wait(ctx, d.ID); err != nil {
							return err
						}
						if d.State != daemon.Complete {
							failed = errors.Join(failed, fmt.Errorf("download %d is %s%s", d.ID, d.State, reason(d)))
						}
					}
					if err := printDownload(out, d, asJSON); err != nil {
						return err
					}
				}
				return failed
			})
		},
	}
	flags := command.Flags()
	flags.SortFlags = false
	flags.StringVarP(&output, "output", "o", "", "name in the daemon's directory (default: last part of the URL)")
	flags.StringVar(&checksum, "checksum", "", "what the file must have, as sha-256=HEX")
	flags.BoolVar(&wait, "wait", false, "return when the downloads have ended")
	flags.StringVar(&socket, "socket", "", socketUsage)
	flags.BoolVar(&asJSON, "json", false, "print each download as one JSON object per line")
	return command
}

func reason(d daemon.Download) string {
	if d.Error == "" {
		return ""
	}
	return ": " + printable.Text(strings.ReplaceAll(d.Error, "\n", "; "))
}

func warning(d daemon.Download) string {
	if d.Warning == "" {
		return ""
	}
	return ": warning: " + printable.Text(d.Warning)
}

func retry(d daemon.Download) string {
	if d.RetryAt.IsZero() {
		return ""
	}
	return "; tries again at " + d.RetryAt.Local().Format(time.TimeOnly)
}

func newStatus() *cobra.Command {
	var socket string
	var asJSON bool
	command := &cobra.Command{
		Use:   "status [ID…]",
		Short: "Show the daemon's downloads and links",
		Example: `  multilink status
  multilink status 3 --json`,
		RunE: func(command *cobra.Command, arguments []string) error {
			ids, err := parseIDs(arguments)
			if err != nil {
				return err
			}
			ctx, out := command.Context(), command.OutOrStdout()
			return withDaemon(socket, func(c *daemon.Client) error {
				var status struct {
					Downloads []daemon.Download   `json:"downloads"`
					Links     []daemon.LinkStatus `json:"links"`
				}
				if len(ids) == 0 {
					if status.Downloads, err = c.List(ctx); err != nil {
						return err
					}
				}
				for _, id := range ids {
					d, err := c.Get(ctx, id)
					if err != nil {
						return err
					}
					status.Downloads = append(status.Downloads, d)
				}
				if status.Links, err = c.Links(ctx); err != nil {
					return err
				}
				if asJSON {
					return printJSON(out, status)
				}
				printDownloads(out, status.Downloads)
				printLinks(out, status.Links)
				return nil
			})
		},
	}
	command.Flags().StringVar(&socket, "socket", "", socketUsage)
	command.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return command
}

func newCancel() *cobra.Command {
	var socket string
	var asJSON bool
	command := &cobra.Command{
		Use:     "cancel ID…",
		Short:   "End downloads of the daemon",
		Example: `  multilink cancel 3`,
		RunE: func(command *cobra.Command, arguments []string) error {
			ids, err := parseIDs(arguments)
			if err != nil {
				return err
			}
			if len(ids) == 0 {
				return usagef("cancel takes one number or more, as 'multilink status' shows them")
			}
			ctx, out := command.Context(), command.OutOrStdout()
			return withDaemon(socket, func(c *daemon.Client) error {
				for _, id := range ids {
					d, err := c.Cancel(ctx, id)
					if err != nil {
						return err
					}
					if err := printDownload(out, d, asJSON); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
	command.Flags().StringVar(&socket, "socket", "", socketUsage)
	command.Flags().BoolVar(&asJSON, "json", false, "print each download as one JSON object per line")
	return command
}

func parseIDs(arguments []string) (ids []int, err error) {
	for _, text := range arguments {
		id, err := strconv.Atoi(text)
		if err != nil {
			return nil, usagef("%q is not the number of a download: 'multilink status' shows them", text)
		}
		ids = append(ids, id)
	}
	return ids, nil
}

// printJSON prints a value in one line.
func printJSON(w io.Writer, value any) error {
	return json.NewEncoder(w).Encode(value)
}

func printDownload(w io.Writer, d daemon.Download, asJSON bool) error {
	if asJSON {
		return printJSON(w, d)
	}
	_, err := fmt.Fprintf(w, "%d %s %s%s\n", d.ID, d.State, printable.Text(d.Output), warning(d))
	return err
}

func printDownloads(w io.Writer, downloads []daemon.Download) {
	if len(downloads) == 0 {
		fmt.Fprintln(w, "no downloads")
		return
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "ID\tSTATE\tMB\tOF\tMbit/s\tFILE")
	for _, d := range downloads {
		var received quantity.Bytes
		var throughput quantity.Rate
		for _, l := range d.Links {
			received += l.Received
			throughput += l.Throughput
		}
		fmt.Fprintf(table, "%d\t%s\t%.1f\t%.1f\t%.1f\t%s%s%s%s\n", d.ID, d.State, received.Megabytes(), d.Size.Megabytes(), throughput.MegabitsPerSecond(), printable.Text(d.Output), reason(d), warning(d), retry(d))
	}
	table.Flush()
}

func printLinks(w io.Writer, links []daemon.LinkStatus) {
	fmt.Fprintln(w)
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "LINK\tMB\tCAP\tSINCE")
	for _, l := range links {
		limit, since := "none", "the beginning"
		if l.Cap > 0 {
			limit = fmt.Sprintf("%.1f", l.Cap.Megabytes())
		}
		if !l.Since.IsZero() {
			since = l.Since.Format("2006-01-02")
		}
		fmt.Fprintf(table, "%s\t%.1f\t%s\t%s\n", printable.Text(l.Link), l.Used.Megabytes(), limit, since)
	}
	table.Flush()
}
