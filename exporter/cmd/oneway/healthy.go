package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/alecthomas/kingpin/v2"
	"golang.org/x/sys/unix"

	"oneway.example/exporter/core/errtext"
	"oneway.example/exporter/core/hostport"
	"oneway.example/exporter/load/loadcontrol"
)

const healthyHelp = `Check that an agent runs, as a container does.

It requests /-/healthy, or with --ready /-/ready, which replies once the agent measures. A reply that asks for a
password shows that a server runs, the agent or another: with http://USER:PASSWORD@HOST:PORT as --url it must be an
agent. The certificate of a loopback address is not verified.

Examples:
  oneway healthy
  oneway healthy --ready --url=https://localhost:` + hostport.Agent + `

Exit status: 0 it does, 1 it does not, 2 wrong usage.`

// healthyTimeout is shorter than the 10 s after which the health check of the images and the probes of the Helm chart end this command.
const healthyTimeout = 5 * time.Second

func healthyCommand(app *kingpin.Application) {
	var base string
	var ready bool
	cmd := app.Command("healthy", healthyHelp)
	cmd.Flag("url", "Address of the agent's web server. Default: http://127.0.0.1:"+hostport.Agent+".").Default("http://127.0.0.1:" + hostport.Agent).PlaceHolder("URL").StringVar(&base)
	cmd.Flag("ready", "Whether it measures, and not only whether it runs.").BoolVar(&ready)
	cmd.Action(interruptible(func(ctx context.Context) error {
		at, err := url.Parse(base)
		if err != nil || at.Scheme != "http" && at.Scheme != "https" || at.Host == "" {
			return usageError{fmt.Errorf("--url is %q; it must be an address such as http://127.0.0.1:%s", base, hostport.Agent)}
		}
		page := "/-/healthy"
		if ready {
			page = "/-/ready"
		}
		return checkHealth(ctx, at, page)
	}))
}

// checkHealth returns why the agent does not reply as it should.
func checkHealth(ctx context.Context, at *url.URL, page string) error {
	ctx, cancel := context.WithTimeout(ctx, healthyTimeout)
	defer cancel()
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.Proxy = nil // it is this host's
	if ip := net.ParseIP(at.Hostname()); at.Hostname() == "localhost" || ip.IsLoopback() {
		transport.TLSClientConfig = &tls.Config{InsecureSkipVerify: true} //nolint:gosec // nobody is between, and no secret is sent
	}
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at.JoinPath(page).String(), nil)
	if err != nil {
		return fmt.Errorf("healthy: %s", errtext.Words(err))
	}
	// An agent redirects nowhere: what does is not the agent, and another host's reply is not its health.
	client := &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	reply, err := client.Do(request)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("healthy: %s does not reply within %s", request.URL.Redacted(), healthyTimeout)
	case errors.Is(err, http.ErrSchemeMismatch):
		return fmt.Errorf("healthy: %s replies without TLS; write --url=http://%s", request.URL.Redacted(), at.Host)
	case errors.Is(err, unix.ECONNREFUSED):
		return fmt.Errorf("healthy: %s; does the agent run, and is this its --web.listen-address?", errtext.Words(err))
	case err != nil:
		return fmt.Errorf("healthy: %s", errtext.Words(err))
	}
	defer reply.Body.Close()
	text, err := io.ReadAll(io.LimitReader(reply.Body, 1000))
	switch {
	case err != nil:
		return fmt.Errorf("healthy: %s: %w", request.URL.Redacted(), err)
	case reply.StatusCode != http.StatusOK && reply.StatusCode != http.StatusUnauthorized:
		said := loadcontrol.Printable(fmt.Sprintf("%s, want %d: %.200s", reply.Status, http.StatusOK, strings.TrimSpace(string(text))))
		return fmt.Errorf("healthy: %s: %s", request.URL.Redacted(), said)
	case reply.StatusCode == http.StatusOK && !strings.HasPrefix(string(text), "oneway is "):
		return fmt.Errorf("healthy: %s is not of an agent of oneway: another server replies at this address; is it the agent's --web.listen-address?", request.URL.Redacted())
	}
	return nil
}
