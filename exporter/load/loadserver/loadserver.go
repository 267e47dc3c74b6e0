// Package loadserver is the remote end of load tests: it receives and sends streams of test packets
// for clients with a token, within the limits of that token.
//
// Control is HTTPS (package loadcontrol), test traffic UDP (package stream), on one port number. The
// checks between a connection of an unknown peer and a stream, in order:
//
//	TCP connection   MaxConnections in all, a quarter of them unknown peers from one address;
//	                 at the limit a new connection replaces the oldest unknown peer of the busiest source; Allow
//	TLS 1.3          5 s for the handshake, and 5 s for the request; 8 KiB of headers
//	token            by its SHA-256, or a client certificate; 401 otherwise
//	sessions         MaxSessions in all, and those of the token, 2 by default; 429 otherwise
//	Open             within 10 s; one session at a time on the link, and turns among the
//	                 tokens that wait; the bytes of the whole session are reserved of the
//	                 token's day and saved
//	Prove            the cookie that was sent, in a packet no longer than the hello, to the
//	                 address that is to receive; streams are sent only there
//	Transfer         rate, duration and bytes within the token's limits and the announced ones
//
// On request a session has a reflector (package reflector) on a UDP port of Ports, for test packets during the load. It
// replies to packets that the session's random key authenticates, from the address of the control connection, with no
// more bytes than it receives; their number is announced, and their bytes count as those of the transfers.
//
// The control connection is the session. Its end, or the idle timeout of the traffic, ends all that
// belongs to it: streams, the reflector, memory, the use of the link. A refusal has a reason and the time of a
// retry. The state directory has each token's usage of the day, with the reservations of running
// sessions, so that a crash loses none.
//
// Memory is bounded by MaxConnections (about 50 KiB each), and by the one session that holds the
// link: stream.LoadServerMemory for each packet of its streams, at most stream.MaxPackets and a quarter of the memory
// limit in each direction.
//
// The only packets to an unproved address are challenges: each is the reply to a hello with the 64
// random bits of an authorized session, is no longer than the hello, and is limited to 20 a second
// (package stream).
//
// A stream needs the consent of its receiver: hello packets from the proved address, cookies of the last 30 s, and no ICMP
// errors. Without consent it pauses; a client that stays silent, or returns no cookie, loses its session, and so the stream.
//
// A transfer with feedback is authorized as if all of its plan were sent. The client's rate orders
// must come from the proved address and choose a rate within the plan. Reports of received packets
// are sent to that address only, and have fewer bytes than were received.
//
// The tokens file has one token per line, as "oneway token new" writes it. It is reloaded when it
// changes; the transfers of a removed token are refused from the next one
// on:
//
//	# name   sha256 of the token, or: certificate   limits; none: no limit
//	berlin   sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08 rate=20Mbit duration=5m per-day=10GB
//	seoul    certificate sessions=2
//
// "certificate" stands for a client certificate whose common name is the name of the token, signed
// by ClientCAFile.
package loadserver

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"oneway.example/exporter/core/hostport"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/option"
	"oneway.example/exporter/load/loadcontrol"
	"oneway.example/exporter/load/traffic"
	"oneway.example/exporter/net/listen"
	"oneway.example/exporter/net/relisten"
	"oneway.example/exporter/probe/quota"
)

// LoadServer serves load tests of remote clients. Make it with New; it runs once.
type LoadServer struct {
	options   Options
	env       Env
	tokens    *tokens
	clientCAs *authorities // nil: no client certificates
	gate      *gate
	counts    counts
	turns     turns
	rates     rates
	remote    map[string]traffic.Remote // by the name of the traffic
	types     []string                  // the names in order
	started   chan struct{}
	listened  *listen.Addresses

	// Of Run.
	identity *identity
	usage    *quota.Store // usage of today by the token's name

	mu        sync.Mutex
	listeners []*relisten.Listener
	accept    func(net.Listener) // serves a listener; nil before Run does
	shut      []func()           // close the sockets of the traffic
	closing   bool
	sessions  map[*session]struct{} // the authorized ones
	running   sync.WaitGroup        // of sessions
}

// New checks o and reads the files it names. Run opens the sockets.
func New(o Options, env Env) (*LoadServer, error) {
	if o.now == nil {
		o.now = env.Local.Now
	}
	o.Listen, o.Allow = slices.Clone(o.Listen), slices.Clone(o.Allow)
	errs := []error{o.complete()}
	if env.Sink == nil || env.Clock == nil || env.Links == nil || len(env.Traffic) == 0 {
		return nil, errors.New("loadserver: Env: a sink, a clock, links and a type of traffic are required")
	}
	if env.Log == nil {
		env.Log = slog.New(slog.DiscardHandler)
	}
	r := &LoadServer{options: o, env: env, counts: newCounts(), rates: rates{buckets: map[[2]string]bucket{}}, remote: map[string]traffic.Remote{}, started: make(chan struct{}), listened: listen.New(env.Log, o.Listen), sessions: map[*session]struct{}{}}
	for _, t := range env.Traffic {
		r.types = append(r.types, t.Name())
		r.remote[t.Name()] = t.New(traffic.Env{Log: env.Log, Clock: env.Clock, Allowed: o.allowed, Other: func(name string) traffic.Remote { return r.remote[name] }})
	}
	r.gate = newGate(&r.options, r.counts.request)
	if errs = append(errs, r.read(o)...); errors.Join(errs...) != nil {
		return nil, errors.Join(errs...)
	}
	return r, nil
}

// read reads the files that o names.
func (r *LoadServer) read(o Options) (errs []error) {
	use := func(key string, err error) {
		if err != nil {
			errs = append(errs, option.Errorf(key, "cannot be used: %v", err))
		}
	}
	var err error
	if o.TokensFile != "" {
		r.tokens, err = newTokens(o.TokensFile, r.env.Log)
		use("tokens_file", err)
	}
	switch {
	case o.CertFile != "" && o.KeyFile != "":
		r.identity, err = newIdentity(o, o.now(), r.env.Log)
		use("cert_file", err)
	case o.CertFile == "" && o.KeyFile == "" && o.StateDir == "":
		errs = append(errs, errNoIdentity)
	}
	if o.ClientCAFile != "" {
		r.clientCAs, err = newAuthorities(o.ClientCAFile, r.env.Log)
		use("client_ca_file", err)
	}
	return errs
}

// errNoIdentity is the error of a load server that clients could not verify.
var errNoIdentity = errors.New("state_dir is missing; without cert_file the load server needs a directory for its generated key, such as state_dir: /var/lib/oneway")

// Started is closed when the sockets are open, of all addresses that this host has.
func (r *LoadServer) Started() <-chan struct{} { return r.started }

// Run opens the sockets and serves until ctx ends, which is no error. It returns after all its
// goroutines have ended.
func (r *LoadServer) Run(ctx context.Context) error {
	if err := r.prepare(); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	series := metric.NewScope(r.env.Sink)
	defer series.Close()
	server := r.server(ctx)
	failures := make(chan error, len(r.options.Listen)+len(r.remote))
	var serving sync.WaitGroup
	serve := func(l net.Listener) {
		secured := tls.NewListener(gatedListener{allowedListener{l, r.gate}}, r.tls())
		serving.Go(func() { failures <- server.Serve(secured) })
	}
	r.mu.Lock()
	r.accept = serve
	for _, l := range r.listeners {
		serve(l)
	}
	r.mu.Unlock()
	retrying := make(chan struct{})
	go func() {
		defer close(retrying)
		r.listened.Retry(ctx)
	}()
	sharing, stopSharing := context.WithCancel(context.WithoutCancel(ctx))
	defer stopSharing()
	for _, f := range r.remote {
		serving.Go(func() {
			if err := f.Run(sharing); err != nil {
				failures <- fmt.Errorf("loadserver: %w", err)
			}
		})
	}
	serving.Go(func() { r.publish(ctx, series) })
	r.env.Log.Info("Load server runs", "addresses", fmt.Sprint(r.Addrs()), "pin", r.Pin(), "link", r.options.Link)
	close(r.started)
	var err error
	select {
	case <-ctx.Done():
	case err = <-failures:
	}
	cancel()
	<-retrying
	r.end(server)
	stopSharing()
	serving.Wait()
	return err
}

// usageFile is the file of the usage in the state directory.
const usageFile = "load-server-usage.json"

// prepare opens the resources of Run: all of them or none.
func (r *LoadServer) prepare() (err error) {
	if err = r.identify(); err != nil {
		return err
	}
	file := ""
	if r.options.StateDir != "" {
		file = filepath.Join(r.options.StateDir, usageFile)
	}
	r.usage = quota.New(quota.Options{File: file, Now: r.options.now, Log: r.env.Log})
	return r.listened.Open(func(i int) error { return r.listen(r.options.Listen[i]) })
}

// identify loads or makes the key, if New did not.
func (r *LoadServer) identify() (err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.identity == nil {
		r.identity, err = newIdentity(r.options, r.options.now(), r.env.Log)
	}
	return err
}

// portTries is the most attempts to find a free port if the port is 0.
const portTries = 10

// listen opens the TCP and UDP sockets of an address with one port number.
func (r *LoadServer) listen(a netip.AddrPort) error {
	o, network := net.ListenConfig{KeepAliveConfig: loadcontrol.KeepAlive()}, "tcp4" // not dual-stack
	if a.Addr().Is6() {
		network = "tcp6"
	}
	for try := 1; ; try++ {
		l, err := relisten.Listen(context.Background(), o, network, a.String())
		if err != nil {
			return listenError(a, err)
		}
		at := netip.AddrPortFrom(a.Addr(), l.Addr().(*net.TCPAddr).AddrPort().Port())
		shut, err := r.share(at)
		if err == nil {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.listeners, r.shut = append(r.listeners, l), append(r.shut, shut...)
			if r.accept != nil {
				r.accept(l)
			}
			return nil
		}
		_ = l.Close() // unused
		if a.Port() != 0 || try == portTries {
			return listenError(a, err)
		}
	}
}

// listenError adds the remedy to an error of listening.
func listenError(a netip.AddrPort, err error) error {
	return fmt.Errorf("loadserver: %w", hostport.ListenError(err, a.String(), "load server"))
}

// share calls Listen of all types of traffic for an address of control: all succeed or none is open.
func (r *LoadServer) share(at netip.AddrPort) (shut []func(), err error) {
	for _, name := range r.types {
		one, err := r.remote[name].Listen(at)
		if err != nil {
			call(shut)
			return nil, err
		}
		shut = append(shut, one)
	}
	return shut, nil
}

func call(all []func()) {
	for _, f := range all {
		f()
	}
}

// closeSockets closes all sockets; mu must be held.
func (r *LoadServer) closeSockets() {
	for _, l := range r.listeners {
		_ = l.Close() // the HTTP server has closed it already
	}
	call(r.shut)
	r.listeners, r.shut = nil, nil
}

// end ends all sessions, waits for them and closes the sockets.
func (r *LoadServer) end(server *http.Server) {
	r.mu.Lock()
	r.closing = true
	r.mu.Unlock()
	_ = server.Close() // closes the listeners and the connections without a session
	r.running.Wait()
	r.mu.Lock()
	r.closeSockets()
	r.mu.Unlock()
}

// maxHeaderBytes of a request; the headers of a valid one are about 200 bytes.
const maxHeaderBytes = 8 << 10

// server returns the HTTP server of control; Options.headers is the timeout of the handshake and
// of the request.
func (r *LoadServer) server(ctx context.Context) *http.Server {
	mux := http.NewServeMux()
	mux.HandleFunc(loadcontrol.Path, r.serve)
	s := &http.Server{
		Handler: mux, MaxHeaderBytes: maxHeaderBytes,
		ReadHeaderTimeout: r.options.headers, ReadTimeout: r.options.headers, WriteTimeout: r.options.writing, IdleTimeout: time.Second,
		BaseContext: func(net.Listener) context.Context { return ctx },
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, connKey{}, c.(*tls.Conn).NetConn())
		},
		ErrorLog: slog.NewLogLogger(r.env.Log.Handler(), slog.LevelDebug), // errors of unknown peers
	}
	s.SetKeepAlivesEnabled(false)
	return s
}

// connKey is the context key of a request's gatedConn.
type connKey struct{}

// Addrs returns the listening addresses of TCP and UDP, with the ports chosen by the kernel. It is
// empty before Started and after Run.
func (r *LoadServer) Addrs() (all []netip.AddrPort) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, l := range r.listeners {
		at := l.Addr().(*net.TCPAddr).AddrPort()
		all = append(all, netip.AddrPortFrom(at.Addr().Unmap(), at.Port()))
	}
	return all
}

// Pin returns the hash of the load server's key; empty before Started if the key is
// generated.
func (r *LoadServer) Pin() string {
	r.mu.Lock()
	i := r.identity
	r.mu.Unlock()
	if i == nil {
		return ""
	}
	return i.pin()
}
