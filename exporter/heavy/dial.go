package heavy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"time"

	"oneway.example/exporter/calibration"
	"oneway.example/exporter/control"
	"oneway.example/exporter/hostid"
	"oneway.example/exporter/keyfile"
	"oneway.example/exporter/sched"
	"oneway.example/exporter/stream"
)

// connectPatience is how long it may take until a session is open and its address proved.
const connectPatience = 25 * time.Second

// dial opens a session with the responder.
func (r *runner) dial(ctx context.Context, a ask) (*connection, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, connectPatience, &Failure{
		Reason: ReasonUnreachable, Err: fmt.Errorf("responder %s: no session after %v", r.where(), connectPatience),
	})
	defer cancel()
	token, err := readToken(r.opts.TokenFile)
	if err != nil {
		return nil, &Failure{Reason: ReasonConfiguration, Err: err}
	}
	a.phase("connecting")
	client, err := control.Dial(ctx, control.ClientOptions{
		Address: r.where(), Token: token, CAFile: r.opts.CAFile, Pin: r.opts.Pin,
		CertFile: r.opts.CertFile, KeyFile: r.opts.KeyFile, Local: r.opts.local, Family: r.opts.Family,
	})
	if err != nil {
		return nil, r.unreachable(ctx, err)
	}
	c, err := r.session(ctx, client, a)
	if err != nil {
		_ = client.Close() // what is wrong is told
		return nil, err
	}
	return c, nil
}

// where is the responder's host:port.
func (r *runner) where() string { return net.JoinHostPort(r.host, strconv.Itoa(int(r.port))) }

func (r *runner) unreachable(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return refine(ctx, err)
	}
	if refusal, ok := errors.AsType[*control.Refusal](err); ok {
		return fmt.Errorf("responder %s: %w", r.where(), refusal)
	}
	return &Failure{Reason: ReasonUnreachable, Err: &worded{err}}
}

// worded is an error of package control as people read it: it names the responder.
type worded struct{ err error }

// Error is "responder 192.0.2.1:8620: ..." of an error that names it.
func (w *worded) Error() string {
	if text, ok := strings.CutPrefix(w.err.Error(), "control: "); ok {
		return "responder " + text
	}
	return w.err.Error()
}

// Unwrap is the error itself.
func (w *worded) Unwrap() error { return w.err }

// session opens a session over the control connection, and its UDP socket.
func (r *runner) session(ctx context.Context, client *control.Client, a ask) (*connection, error) {
	opened, err := client.Open(ctx, control.Open{
		Version: control.Version, Kind: r.kind.Kind(), Run: a.run, Bytes: r.announced(a.bytes, client),
	})
	if err != nil {
		return nil, r.unreachable(ctx, err)
	}
	remote := netip.AddrPortFrom(client.Remote().Addr().Unmap(), opened.Port)
	endpoint, err := stream.Open(stream.Options{Local: r.local(remote), Log: r.log})
	if err != nil {
		return nil, &Failure{Reason: ReasonSocket, Err: err}
	}
	running, stop := context.WithCancel(context.Background())
	var served sync.WaitGroup
	served.Go(func() {
		if err := endpoint.Run(running); err != nil {
			r.log.Error("Receiving test packets ended", "run", a.run, "err", err)
		}
	})
	end := func() {
		stop()
		served.Wait()
	}
	s := endpoint.Join(opened.Session)
	if err := r.prove(ctx, client, s, remote, a); err != nil {
		end()
		return nil, err
	}
	return &connection{
		session: NewSession(
			&carrier{client: client, session: s, remote: remote, clock: r.env.Clock, drain: r.opts.DrainTimeout, heard: sched.Now()},
			r.sessionOptions(ctx, client, opened, remote),
		),
		lost: client.Done(), why: client.Err,
		close: func() {
			_ = client.Close() // the responder forgets the session either way
			s.Leave()
			end()
		},
	}, nil
}

// announced is how many IP octets the far end is told that the run will move at the most.
func (r *runner) announced(most int64, client *control.Client) int64 {
	f, ok := r.kind.(Fitter)
	if !ok {
		return most
	}
	fits := f.Fit(client.Welcome().Limits, overhead(client.Remote().Addr().Unmap().Is6()))
	if fits <= 0 {
		return most
	}
	return min(fits, most)
}

// prove shows the responder where this end receives.
func (r *runner) prove(ctx context.Context, client *control.Client, s *stream.Session, remote netip.AddrPort, a ask) error {
	a.phase("opening the way for test packets")
	cookie, err := greet(ctx, s, remote)
	if err != nil {
		return refine(ctx, err)
	}
	if err := client.Prove(ctx, cookie); err != nil {
		return r.unreachable(ctx, err)
	}
	return nil
}

// greet fetches the cookie that proves where this end receives.
func greet(ctx context.Context, s *stream.Session, remote netip.AddrPort) (cookie []byte, err error) {
	cookie, err = s.Hello(ctx, remote)
	switch {
	case errors.Is(err, stream.ErrNoAnswer):
		err = &Failure{Reason: ReasonNoUDP, Err: fmt.Errorf("no answer to UDP at %s; is UDP %d open there and on the way?", remote, remote.Port())}
	case err != nil && ctx.Err() == nil:
		err = &Failure{Reason: ReasonSocket, Err: err}
	}
	return cookie, err
}

func (r *runner) sessionOptions(ctx context.Context, client *control.Client, opened control.Opened, remote netip.AddrPort) SessionOptions {
	o := SessionOptions{
		IPv6: remote.Addr().Is6(), DSCP: uint8(r.opts.DSCP), NoChecksum: r.opts.NoChecksum,
		Limits: client.Welcome().Limits, Remote: remote,
	}
	here := hostid.Read().Token(opened.Salt)
	o.Shared = here != 0 && here == opened.Host
	iface, err := calibration.InterfaceTo(ctx, r.opts.local, remote)
	if err != nil {
		r.log.Debug("Interface of the path not found; its stamps are taken as not calibrated", "err", err)
	}
	o.Near = r.env.Calibration.Host(iface)
	return o
}

func (r *runner) local(remote netip.AddrPort) netip.AddrPort {
	switch {
	case r.opts.local.IsValid():
		return netip.AddrPortFrom(r.opts.local, 0)
	case remote.Addr().Is4():
		return netip.AddrPortFrom(netip.IPv4Unspecified(), 0)
	}
	return netip.AddrPortFrom(netip.IPv6Unspecified(), 0)
}

// readToken reads the first line of a file that is neither empty nor a comment. No file:
// no token; the responder may know this agent by its certificate.
func readToken(file string) (string, error) {
	if file == "" {
		return "", nil
	}
	content, err := keyfile.Read(file)
	if err != nil {
		return "", fmt.Errorf("token_file: %w", err)
	}
	for line := range bytes.Lines(content) {
		if line = bytes.TrimSpace(line); len(line) > 0 && line[0] != '#' {
			return string(line), nil
		}
	}
	return "", fmt.Errorf("token_file: %s holds no token; \"oneway token new\" makes one", file)
}
