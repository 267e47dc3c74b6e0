package responder

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"oneway.example/exporter/control"
	"oneway.example/exporter/hostid"
	"oneway.example/exporter/sched"
	"oneway.example/exporter/stream"
)

// Responder lets others run heavy tests against this host. It is made by New and runs once.
type Responder struct {
	options   Options
	env       Env
	tokens    *tokens
	clientCAs *x509.CertPool // nil: no client certificates
	gate      *gate
	counts    counts
	rates     rates
	turns     turns
	host      hostid.ID
	started   chan struct{}

	// Of Run.
	identity *identity
	ledger   *sched.Links // what each token has used today, under its name
	byID     sync.Map     // session number -> *session, for packets

	mu       sync.Mutex
	points   []*point
	closing  bool
	sessions map[*session]struct{} // the authorised ones
	running  sync.WaitGroup        // of sessions
}

// point is one address: control and test traffic.
type point struct {
	listener *net.TCPListener
	endpoint *stream.Endpoint
}

// New checks o and the files that it names. It opens nothing else: see Run.
func New(o Options, env Env) (*Responder, error) {
	o.Listen, o.Allow = slices.Clone(o.Listen), slices.Clone(o.Allow)
	if err := o.complete(); err != nil {
		return nil, err
	}
	if env.Sink == nil || env.Clock == nil || env.Links == nil {
		return nil, errors.New("responder: a sink, a clock and links are needed")
	}
	if env.Log == nil {
		env.Log = slog.New(slog.DiscardHandler)
	}
	r := &Responder{options: o, env: env, host: hostid.Read(), started: make(chan struct{}), sessions: map[*session]struct{}{}}
	r.gate = newGate(&r.options, r.notLetIn)
	var err error
	if r.tokens, err = newTokens(o.TokensFile, env.Log); err != nil {
		return nil, err
	}
	if o.CertFile != "" {
		if r.identity, err = newIdentity(o, o.now(), env.Log); err != nil {
			return nil, err
		}
	}
	if o.ClientCAFile != "" {
		pem, err := os.ReadFile(o.ClientCAFile)
		if err != nil {
			return nil, fmt.Errorf("responder: client CA file: %w", err)
		}
		if r.clientCAs = x509.NewCertPool(); !r.clientCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("responder: client CA file %s: no certificate in it; it must be PEM", o.ClientCAFile)
		}
	}
	return r, nil
}

// Started is closed when all sockets are open.
func (r *Responder) Started() <-chan struct{} { return r.started }

// Run opens the sockets and serves until ctx ends, which is no error. It returns when
// nothing is left running.
func (r *Responder) Run(ctx context.Context) error {
	if err := r.prepare(); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	closeSeries := r.counts.open(r.env.Sink, r.options.StateDir != "")
	defer closeSeries()
	server := r.server(ctx)
	failures := make(chan error, 2*len(r.points))
	var serving sync.WaitGroup
	for _, p := range r.points {
		secured := tls.NewListener(gatedListener{p.listener, r.gate}, r.tlsConfig())
		serving.Go(func() { failures <- server.Serve(secured) })
		serving.Go(func() {
			if err := p.endpoint.Run(context.WithoutCancel(ctx)); err != nil {
				failures <- fmt.Errorf("responder: test traffic: %w", err)
			}
		})
	}
	serving.Go(func() { r.publish(ctx) })
	r.env.Log.Info("Responder runs", "addresses", fmt.Sprint(r.Addrs()), "pin", r.Pin(), "link", r.options.Link)
	close(r.started)
	var err error
	select {
	case <-ctx.Done():
	case err = <-failures:
	}
	cancel()
	r.end(server)
	serving.Wait()
	return err
}

// ledgerFile is the ledger's in the state directory.
const ledgerFile = "responder-usage.json"

// prepare opens all that Run needs, or nothing.
func (r *Responder) prepare() (err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.identity == nil {
		if r.identity, err = newIdentity(r.options, r.options.now(), r.env.Log); err != nil {
			return err
		}
	}
	file := ""
	if r.options.StateDir != "" {
		file = filepath.Join(r.options.StateDir, ledgerFile)
	}
	if r.ledger, err = sched.NewLinks(sched.LinksOptions{StateFile: file, Now: r.options.now, Log: r.env.Log}); err != nil {
		return fmt.Errorf("responder: %w", err)
	}
	for _, a := range r.options.Listen {
		p, err := r.openPoint(a)
		if err != nil {
			r.closePoints()
			return err
		}
		r.points = append(r.points, p)
	}
	return nil
}

// portTries is how often another port is tried where any will do.
const portTries = 10

// openPoint opens both sockets of an address, with one port number.
func (r *Responder) openPoint(a netip.AddrPort) (*point, error) {
	for try := 1; ; try++ {
		l, err := listenTCP(a)
		if err != nil {
			return nil, fmt.Errorf("responder: control: %w", err)
		}
		port := l.Addr().(*net.TCPAddr).AddrPort().Port()
		e, err := stream.Open(stream.Options{Local: netip.AddrPortFrom(a.Addr(), port), Log: r.env.Log, OnHello: r.greeted})
		if err == nil {
			return &point{l, e}, nil
		}
		_ = l.Close() // nobody has used it
		if a.Port() != 0 || try == portTries {
			return nil, fmt.Errorf("responder: test traffic: %w", err)
		}
	}
}

// closePoints is called with the lock held.
func (r *Responder) closePoints() {
	for _, p := range r.points {
		_ = p.listener.Close() // the server has closed it already
		p.endpoint.Close()
	}
	r.points = nil
}

// end tells all sessions that it is over, waits for them, and closes the sockets.
func (r *Responder) end(server *http.Server) {
	r.mu.Lock()
	r.closing = true
	r.mu.Unlock()
	_ = server.Close() // the listeners, and connections that are not sessions
	r.running.Wait()
	r.mu.Lock()
	r.closePoints()
	r.mu.Unlock()
}

// tlsConfig is that of control, with a certificate that may change.
func (r *Responder) tlsConfig() *tls.Config {
	c := control.ServerTLS(tls.Certificate{}, r.clientCAs)
	c.Certificates, c.GetCertificate = nil, r.identity.certificate
	return c
}

// maxHeaderBytes of a request; a token and a few words fit.
const maxHeaderBytes = 8 << 10

// server serves control; a stranger gets headers' time for the handshake and as long for
// the request.
func (r *Responder) server(ctx context.Context) *http.Server {
	mux := http.NewServeMux()
	mux.HandleFunc(control.Path, r.serve)
	s := &http.Server{
		Handler: mux, MaxHeaderBytes: maxHeaderBytes,
		ReadHeaderTimeout: r.options.headers, ReadTimeout: r.options.headers, WriteTimeout: r.options.writing, IdleTimeout: time.Second,
		BaseContext: func(net.Listener) context.Context { return ctx },
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, connKey{}, c)
		},
		ErrorLog: slog.NewLogLogger(r.env.Log.Handler(), slog.LevelDebug), // strangers' mistakes
	}
	s.SetKeepAlivesEnabled(false)
	return s
}

// connKey finds a request's connection.
type connKey struct{}

// gatedOf is the connection under a request's TLS.
func gatedOf(ctx context.Context) *gatedConn {
	t, ok := ctx.Value(connKey{}).(*tls.Conn)
	if !ok {
		return nil
	}
	g, _ := t.NetConn().(*gatedConn)
	return g
}

// Addrs are the addresses listened on, with the real ports: TCP and UDP. It is empty
// before Started and after Run.
func (r *Responder) Addrs() (all []netip.AddrPort) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range r.points {
		all = append(all, p.endpoint.LocalAddr())
	}
	return all
}

// Pin is the hash of the responder's key, for clients; empty before Started if the key is
// its own.
func (r *Responder) Pin() string {
	r.mu.Lock()
	i := r.identity
	r.mu.Unlock()
	if i == nil {
		return ""
	}
	return i.pin()
}

// endpointAt is the test socket beside the control address that a client has reached.
func (r *Responder) endpointAt(local netip.AddrPort) *stream.Endpoint {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range r.points {
		a := p.endpoint.LocalAddr()
		if a.Port() == local.Port() && (a.Addr() == local.Addr() || a.Addr().IsUnspecified() && a.Addr().Is4() == local.Addr().Is4()) {
			return p.endpoint
		}
	}
	return nil
}
