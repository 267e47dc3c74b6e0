package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/alecthomas/kingpin/v2"
	"github.com/prometheus/common/promslog"
	promslogflag "github.com/prometheus/common/promslog/flag"
	"github.com/prometheus/exporter-toolkit/web"
	"github.com/prometheus/exporter-toolkit/web/kingpinflag"

	"oneway.example/exporter/agent"
	"oneway.example/exporter/internal/httpd"
	"oneway.example/exporter/internal/promsink"
	"oneway.example/exporter/linklease"
	"oneway.example/exporter/memlimit"
	"oneway.example/exporter/probes"
)

const agentHelp = `Measure the paths of a configuration, answer other hosts, and serve /metrics.

The configuration is read again on SIGHUP and POST /-/reload; paths that do not
change keep their sessions and counters, and a configuration with an error is
refused with the old one left in force. The page at / says what works and why not.

Load tests that are started from a terminal of this host ("oneway test") ask the agent for
their link and its quota, at a UNIX socket that only root and the agent's own user may write
to. With systemd, RuntimeDirectory=oneway makes its directory.

Examples:
  oneway agent --config.file=/etc/oneway/oneway.yml
  oneway agent --web.listen-address=127.0.0.1:9862 --log.level=debug
  oneway agent --web.config.file=/etc/oneway/web.yml   (TLS, passwords)
  oneway agent --test.socket-group=netops              (whose members may run tests through it)

Exit status: 0 ended by a signal, 1 failure, 2 usage or a refused configuration.`

type agentFlags struct {
	config, socket, group string

	pprof bool
	hosts []string
	sink  promsink.Options
	web   *web.FlagConfig
	log   promslog.Config
}

func agentCommand(app *kingpin.Application) {
	f := &agentFlags{}
	cmd := app.Command("agent", agentHelp)
	cmd.Flag("config.file", "Configuration; deploy/oneway.yml is a commented example.").Default("oneway.yml").StringVar(&f.config)
	f.web = kingpinflag.AddFlags(cmd, ":9862")
	cmd.Flag("web.enable-pprof", "Serve Go's profiles at /debug/pprof/.").BoolVar(&f.pprof)
	cmd.Flag("web.external-host", "Name of this host, besides its own, under which it takes POST /-/reload; repeatable. IP addresses and localhost are always right.").PlaceHolder("NAME").StringsVar(&f.hosts)
	cmd.Flag("metrics.no-classic-histograms", "Leave the classic buckets out: a tenth of the bytes, for a Prometheus that takes native histograms.").BoolVar(&f.sink.NoClassic)
	cmd.Flag("metrics.no-native-histograms", "Leave the native buckets out.").BoolVar(&f.sink.NoNative)
	cmd.Flag("test.socket", "UNIX socket at which this host's \"oneway test\" asks for links and quotas; empty: none.").Default(linklease.DefaultSocket).PlaceHolder("PATH").StringVar(&f.socket)
	cmd.Flag("test.socket-group", "Group that may ask there, besides root and this agent's user.").PlaceHolder("GROUP").StringVar(&f.group)
	logFlags(cmd, &f.log)
	cmd.Action(interruptible(func(ctx context.Context) error { return f.run(ctx, promslog.New(&f.log)) }))
}

// logFlags are those of promslog, for one command.
func logFlags(cmd *kingpin.CmdClause, c *promslog.Config) {
	c.Level, c.Format = promslog.NewLevel(), promslog.NewFormat()
	cmd.Flag(promslogflag.LevelFlagName, promslogflag.LevelFlagHelp).Default("info").HintOptions(promslog.LevelFlagOptions...).SetValue(c.Level)
	cmd.Flag(promslogflag.FormatFlagName, promslogflag.FormatFlagHelp).Default("logfmt").HintOptions(promslog.FormatFlagOptions...).SetValue(c.Format)
}

// run measures and serves until ctx ends, or one of the two fails.
func (f *agentFlags) run(ctx context.Context, log *slog.Logger) error {
	if f.sink.NoClassic && f.sink.NoNative {
		return usageError{errors.New("histograms without classic and without native buckets are none; drop one of the two flags")}
	}
	if err := httpd.CheckHosts(f.hosts); err != nil {
		return usageError{fmt.Errorf("--web.external-host: %w", err)}
	}
	if err := httpd.CheckConfig(*f.web.WebConfigFile); err != nil {
		return usageError{err}
	}
	memlimit.Adopt(log)
	memlimit.Frugal()
	registry := httpd.NewRegistry()
	sink := promsink.New(f.sink)
	a, err := agent.New(agent.Options{ConfigFile: f.config, Types: probes.All(), Sink: sink, Log: log, Socket: f.socket, SocketGroup: f.group})
	if err != nil {
		return usageError{fmt.Errorf("the configuration is refused:\n%w", err)}
	}
	listeners, err := httpd.Listen(f.web)
	if err != nil {
		return err
	}
	handler := httpd.Handler(httpd.Options{Source: a, Registry: registry, Sink: sink, Log: log, Pprof: f.pprof, ExternalHosts: f.hosts})
	return together(ctx, a, func(ctx context.Context) error {
		return httpd.Serve(ctx, listeners, handler, f.web, log)
	})
}

// together runs the agent and the server; when one ends, so does the other.
func together(ctx context.Context, a *agent.Agent, serve func(context.Context) error) error {
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
				return
			case <-hup:
				_ = a.Reload() // the agent logs why not
			}
		}
	})
	err := a.Run(ctx)
	cancel()
	running.Wait()
	return errors.Join(err, served)
}

const checkConfigHelp = `Check a configuration as the start of an agent would, and start nothing.

Every error has the line, the key's path, and what would be right.

Examples:
  oneway check-config /etc/oneway/oneway.yml
  oneway check-config --web.config.file=/etc/oneway/web.yml /etc/oneway/oneway.yml

Exit status: 0 all right, 1 something is wrong, 2 usage.`

func checkConfigCommand(app *kingpin.Application) {
	var files []string
	var webConfig string
	cmd := app.Command("check-config", checkConfigHelp)
	cmd.Arg("file", "Configurations to check.").Required().StringsVar(&files)
	cmd.Flag("web.config.file", "TLS and authentication to check too.").StringVar(&webConfig)
	cmd.Action(action(func() error { return checkConfigs(os.Stdout, os.Stderr, files, webConfig) }))
}

// checkConfigs checks all, and says of each what it is or what is wrong.
func checkConfigs(out, problems io.Writer, files []string, webConfig string) error {
	wrong := 0
	if err := httpd.CheckConfig(webConfig); err != nil {
		fmt.Fprintln(problems, err)
		wrong++
	}
	for _, file := range files {
		s, err := agent.Check(file, probes.All())
		if err != nil {
			fmt.Fprintln(problems, err)
			wrong++
			continue
		}
		fmt.Fprintf(out, "%s: ok: %s, %s\n", file, count(s.Paths, "path"), count(s.Probes, "probe"))
	}
	switch wrong {
	case 0:
		return nil
	case 1:
		return fmt.Errorf("check-config: a file is not right")
	}
	return fmt.Errorf("check-config: %d files are not right", wrong)
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
