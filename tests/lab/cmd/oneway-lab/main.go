//go:build linux

// Command oneway-lab raises the emulated network of package lab and keeps it up
// until it is interrupted, or until a command that it runs on the client has
// ended; then it prints what really became of the packets.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"os/signal"
	"text/tabwriter"
	"time"

	"github.com/alecthomas/kingpin/v2"
	"golang.org/x/sys/unix"

	"oneway.example/exporter/core/sample"
	"oneway.example/tests/lab"
)

// options of the command line.
type options struct {
	profile string
	seed    uint64
	server  string
	client  []string
}

func main() { os.Exit(lab.Main(run)) }

func run() int {
	var o options
	app := kingpin.New("oneway-lab", "An emulated network with known truth: client and server namespaces and an impaired link between them.")
	app.HelpFlag.Short('h')
	app.Flag("seed", "Decides all chance.").Default("1").Uint64Var(&o.seed)
	app.Flag("server", "Shell command to run on the server meanwhile.").PlaceHolder("COMMAND").StringVar(&o.server)
	app.Arg("profile", "Name or file of the path's profile.").Default("wibro").StringVar(&o.profile)
	app.Arg("command", "Command to run on the client; without, the network stays up until interrupted.").StringsVar(&o.client)
	kingpin.MustParse(app.Parse(os.Args[1:]))

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, unix.SIGTERM)
	defer stop()
	if err := o.raise(ctx); err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) && exit.ExitCode() > 0 {
			return exit.ExitCode() // the command has said why
		}
		fmt.Fprintln(os.Stderr, "oneway-lab:", err)
		return 1
	}
	return 0
}

// raise builds the network, runs the commands or waits, and reports.
func (o *options) raise(ctx context.Context) (err error) {
	profile, err := lab.LoadProfile(o.profile)
	if err != nil {
		return err
	}
	l, err := lab.New(lab.Options{Profile: profile, Seed: o.seed, Classifier: nothing})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	describe(os.Stderr, l, profile)

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if o.server != "" {
		server := o.command(ctx, l.Server, "sh", "-c", o.server)
		if err := server.Start(); err != nil {
			return fmt.Errorf("server: %w", err)
		}
		defer func() {
			cancel()
			_ = server.Wait() // ended by us
		}()
	}
	if len(o.client) > 0 {
		err = o.command(ctx, l.Client, o.client[0], o.client[1:]...).Run()
	} else {
		<-ctx.Done()
	}
	report(os.Stderr, l)
	return err
}

// command passes on our terminal, and asks the process to end before killing it.
func (o *options) command(ctx context.Context, h *lab.Host, name string, args ...string) *exec.Cmd {
	cmd := h.CommandContext(ctx, name, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(unix.SIGTERM) }
	cmd.WaitDelay = 2 * time.Second
	return cmd
}

// nothing is a classifier that picks no packet: all are counted, and a long run
// does not fill the log.
func nothing([]byte, netip.AddrPort, netip.AddrPort) (key uint64, ok bool) { return 0, false }

func describe(w io.Writer, l *lab.Lab, p lab.Profile) {
	fmt.Fprintf(w, "profile %s\n", p.Name)
	table := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	for _, h := range []*lab.Host{l.Client, l.Server} {
		fmt.Fprintf(table, "%s\t%v\t%v\twithout the link: %v %v\n", h.Name, h.Addr4, h.Addr6, h.LAN4, h.LAN6)
		fmt.Fprintf(table, "\t%s\n", h.Shell())
	}
	table.Flush()
}

// report prints the true outcomes.
func report(w io.Writer, l *lab.Lab) {
	table := tabwriter.NewWriter(w, 0, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "direction\tentered\tdelivered\tqueue full\tlost\tduplicated\treordered\tcorrupted\tinside\t")
	for _, d := range sample.Directions() {
		_, c := l.Counts(d)
		fmt.Fprintf(table, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t\n", d,
			c.Entered, c.Delivered, c.DroppedQueue, c.DroppedLoss, c.Duplicated, c.Reordered, c.Corrupted, c.Inside())
	}
	table.Flush()
}
