package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/alecthomas/kingpin/v2"
	"github.com/prometheus/common/promslog"
	promslogflag "github.com/prometheus/common/promslog/flag"

	"oneway.example/exporter/agent"
	"oneway.example/exporter/agent/linklease"
	"oneway.example/exporter/agent/pathlabel"
	"oneway.example/exporter/core/errtext"
	"oneway.example/exporter/core/hostport"
	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/memlimit"
	"oneway.example/exporter/core/unit"
	"oneway.example/exporter/families"
	"oneway.example/exporter/net/relisten"
	"oneway.example/exporter/output"
	"oneway.example/exporter/output/point"
	"oneway.example/exporter/output/point/series"
	"oneway.example/exporter/output/promsink"
	"oneway.example/exporter/probes/stamp"
	"oneway.example/exporter/serve/httpd"
)

const agentHelp = `Measure the paths of a configuration and export the results.

The agent also reflects the test packets of other hosts, serves /metrics, and delivers to InfluxDB.

SIGHUP and POST /-/reload read the configuration again; paths that do not change keep their sessions
and counters. A configuration with an error is rejected, and the agent keeps the one in use. The page
at / shows the state of each part and the reason of each failure.

Load tests started from a terminal of this host ("oneway test") lease their link and its quota from
the agent, over a UNIX socket that only root and the agent's user may write to. With systemd,
RuntimeDirectory=oneway creates its directory.

Examples:
  oneway agent --config.file=/etc/oneway/oneway.yml
  oneway agent --web.listen-address=127.0.0.1:` + hostport.Agent + ` --log.level=debug
  oneway agent --web.config.file=/etc/oneway/web.yml   (TLS, passwords)
  oneway agent --test.socket-group=netops              (its members may run tests through the agent)

Exit status: 0 ended by a signal, 1 failure, 2 wrong usage or configuration.`

type agentFlags struct {
	config, socket, group string

	pprof           bool
	hosts           []string
	classic, native bool // kinds of histograms
	web             *httpd.Flags
	log             promslog.Config
}

func agentCommand(app *kingpin.Application) {
	f := &agentFlags{}
	cmd := app.Command("agent", agentHelp)
	cmd.Flag("config.file", "Configuration file; deploy/oneway.yml is a commented example.").Default("oneway.yml").StringVar(&f.config)
	f.web = webFlags(cmd)
	cmd.Flag("web.enable-pprof", "Serve Go's profiles at /debug/pprof/.").BoolVar(&f.pprof)
	cmd.Flag("web.external-host", "Additional host name accepted in POST /-/reload; repeatable. The host's own name, IP addresses and localhost are always accepted.").PlaceHolder("NAME").StringsVar(&f.hosts)
	cmd.Flag("metrics.classic-histograms", "Classic buckets of histograms; a Prometheus that accepts native histograms needs none.").Default("true").BoolVar(&f.classic)
	cmd.Flag("metrics.native-histograms", "Native buckets of histograms, for scrapes that accept them.").Default("true").BoolVar(&f.native)
	cmd.Flag("test.socket", "UNIX socket for this host's \"oneway test\" (leases of links, quotas) and \"oneway maintenance\"; empty: none. Default: "+linklease.DefaultSocket+".").Default(linklease.DefaultSocket).PlaceHolder("PATH").StringVar(&f.socket)
	cmd.Flag("test.socket-group", "Group that may use this socket, besides root and the agent's user.").PlaceHolder("GROUP").StringVar(&f.group)
	logFlags(cmd, &f.log)
	cmd.Action(interruptible(func(ctx context.Context) error {
		log, flush := newLog(os.Stderr, func(out io.Writer) slog.Handler {
			f.log.Writer = out
			return promslog.New(&f.log).Handler()
		})
		defer flush()
		return f.run(ctx, log)
	}))
}

// logFlags registers the flags of promslog for one command.
func logFlags(cmd *kingpin.CmdClause, c *promslog.Config) {
	c.Level, c.Format = promslog.NewLevel(), promslog.NewFormat()
	cmd.Flag(promslogflag.LevelFlagName, promslogflag.LevelFlagHelp).Default("info").HintOptions(promslog.LevelFlagOptions...).SetValue(c.Level)
	cmd.Flag(promslogflag.FormatFlagName, promslogflag.FormatFlagHelp).Default("logfmt").HintOptions(promslog.FormatFlagOptions...).SetValue(c.Format)
}

// run measures and serves until ctx ends or one of the two fails.
func (f *agentFlags) run(ctx context.Context, log *slog.Logger) error {
	if !f.classic && !f.native {
		return usageError{errors.New("--no-metrics.classic-histograms and --no-metrics.native-histograms exclude each other")}
	}
	if err := httpd.CheckHosts(f.hosts); err != nil {
		return usageError{fmt.Errorf("--web.external-host: %w", err)}
	}
	if err := httpd.CheckConfig(*f.web.WebConfigFile); err != nil {
		return usageError{fmt.Errorf("--web.config.file: %w", err)}
	}
	if f.pprof && !httpd.Profiles {
		return usageError{errors.New("--web.enable-pprof: this build (slim) has no profiles")}
	}
	if !f.pprof {
		runtime.MemProfileRate = 0 // the tables of a heap profile that nobody reads take 2 MB
	}
	memlimit.SetFromCgroups(log)
	memlimit.SetGCPercent()
	registry := httpd.NewRegistry()
	newSink := func() *promsink.Sink {
		return promsink.New(promsink.Options{NoClassic: !f.classic, NoNative: !f.native})
	}
	sink := newSink()
	var web []string
	o := agent.Options{
		Addresses:  func() []string { return web },
		ConfigFile: f.config, Types: families.Types(), Light: stamp.Light, Sink: sink, Log: log,
		Socket: f.socket, SocketGroup: f.group,
	}
	o.Series = seriesOf(&o.Types, sink)
	a, err := agent.New(o)
	if _, later := errors.AsType[agent.NotYet](err); later {
		return fmt.Errorf("the configuration cannot be used yet:\n%w", err)
	}
	if err != nil {
		return usageError{fmt.Errorf("the configuration is rejected:\n%w", err)}
	}
	listeners, err := httpd.Listen(f.web, log)
	if err != nil {
		return err
	}
	for _, l := range listeners {
		if later, ok := l.(*relisten.Listener); ok && !later.Listens() {
			continue
		}
		web = append(web, httpd.Scheme(*f.web.WebConfigFile)+" "+l.Addr().String())
	}
	handler := httpd.Handler(httpd.Options{
		Source: a, Registry: registry, Sink: sink, ProbeSink: func() httpd.ProbeSink { return newSink() },
		Log: log, Pprof: f.pprof, ExternalHosts: f.hosts,
	})
	begin := time.Now()
	err = together(ctx, a, log, func(ctx context.Context) error {
		return httpd.Serve(ctx, listeners, handler, f.web, log)
	})
	log.Info("Ended", "ran_seconds", math.Round(time.Since(begin).Seconds()))
	return err
}

// seriesOf reads the sink for the outputs. What that needs is made at the first use: most agents have no output.
func seriesOf(types *agent.Types, sink *promsink.Sink) output.Series {
	of := sync.OnceValue(func() output.Series { return series.Of(types.MetricGroups(), sink) })
	return func(at instant.Time, emit func(*point.Point)) error { return of()(at, emit) }
}

// together runs the agent and the server until one of them ends.
func together(ctx context.Context, a *agent.Agent, log *slog.Logger, serve func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	defer signal.Stop(hup)
	var running sync.WaitGroup
	var served error
	running.Go(func() {
		defer cancel()
		served = serve(ctx)
	})
	running.Go(func() {
		for {
			select {
			case <-ctx.Done():
				if s, ok := errors.AsType[signaled](context.Cause(ctx)); ok {
					log.Info("Ending", "signal", s.Error())
				}
				return
			case <-hup:
				_ = a.Reload() // the agent logs the error
			}
		}
	})
	err := a.Run(ctx)
	cancel()
	running.Wait()
	return errors.Join(err, served)
}

const checkConfigHelp = `Check a configuration as the agent does at its start.

Each error has the line, the path of the key and the expected value. A warning tells what is allowed, but probably
not meant, such as load tests on a link without a quota.

Examples:
  oneway check-config /etc/oneway/oneway.yml
  oneway check-config --paths /etc/oneway/oneway.yml   (a table of the paths, of a mesh too)
  oneway check-config --web.config.file=/etc/oneway/web.yml /etc/oneway/oneway.yml

Exit status: 0 no errors (perhaps warnings), 1 errors in a file, 2 wrong usage.`

func checkConfigCommand(app *kingpin.Application) {
	var files []string
	var webConfig string
	var paths bool
	cmd := app.Command("check-config", checkConfigHelp)
	cmd.Arg("file", "Configuration files to check.").Required().StringsVar(&files)
	cmd.Flag("web.config.file", "File with TLS and authentication settings to check as well.").StringVar(&webConfig)
	cmd.Flag("paths", "Print a table of the paths: peer, probes, links, labels.").BoolVar(&paths)
	cmd.Action(action(func() error { return checkConfigs(os.Stdout, os.Stderr, files, webConfig, paths) }))
}

// checkConfigs checks all files and writes a line for each file without errors, or its errors.
func checkConfigs(out, problems io.Writer, files []string, webConfig string, paths bool) error {
	wrong := 0
	if err := httpd.CheckConfig(webConfig); err != nil {
		fmt.Fprintln(problems, errtext.Words(err))
		wrong++
	}
	for _, file := range files {
		s, all, err := agent.Check(agent.Options{ConfigFile: file, Types: families.Types()})
		if err != nil {
			fmt.Fprintln(problems, errtext.Words(err))
			wrong++
			continue
		}
		for _, w := range s.Warnings {
			fmt.Fprintln(problems, "warning:", w)
		}
		fmt.Fprintf(out, "%s: ok: %s\n", file, sizeOf(s))
		if paths {
			if err := printPaths(out, all); err != nil {
				return err
			}
		}
	}
	if wrong == 0 {
		return nil
	}
	return fmt.Errorf("check-config: %s errors", unit.Counted(wrong, "file has", "files have"))
}

// printPaths writes a table of paths.
func printPaths(out io.Writer, all []agent.PathSummary) error {
	t := newTable(out, "")
	t.margin = 0
	t.names("PATH", "PEER", "PROBES", "LINKS", "LABELS")
	word := func(s string) string { return cmp.Or(s, "-") }
	for _, p := range all {
		t.row(p.Name, p.Peer, strings.Join(p.Probes, ","), word(strings.Join(p.Links, ",")), word(pathlabel.Text(p.Labels)))
	}
	t.lay()
	return t.flush()
}

// sizeOf is "2 paths, 3 probes, reflector".
func sizeOf(s agent.Summary) string {
	paths := count(s.Paths, "path")
	if s.Meshed > 0 {
		paths += fmt.Sprintf(" (%d of a mesh)", s.Meshed)
	}
	parts := []string{paths, count(s.Probes, "probe")}
	for _, one := range []struct {
		n    int
		noun string
	}{{s.Watchers, "watcher"}, {s.Outputs, "output"}, {s.Modules, "on-demand module"}} {
		if one.n > 0 {
			parts = append(parts, count(one.n, one.noun))
		}
	}
	if s.Reflector {
		parts = append(parts, "reflector")
	}
	if s.LoadServer {
		parts = append(parts, "load server")
	}
	return strings.Join(parts, ", ")
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
