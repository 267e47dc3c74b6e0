package httpd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/coreos/go-systemd/v22/activation"
	"go.yaml.in/yaml/v4"

	"oneway.example/exporter/core/hostport"
	"oneway.example/exporter/core/keyfile"
	"oneway.example/exporter/core/memlimit"
	"oneway.example/exporter/net/relisten"
)

// Limits against clients that are slow, many or send much. Writing a scrape of 10,000 paths may take long.
const (
	headerTimeout   = 10 * time.Second
	readTimeout     = 30 * time.Second
	writeTimeout    = 2 * time.Minute
	idleTimeout     = 30 * time.Second
	shutdownTimeout = 3 * time.Second
	maxStreams      = 4        // concurrent HTTP/2 requests of a connection
	maxUploadBytes  = 64 << 10 // unread bytes of them: the minimum of net/http
)

// Listen opens the addresses of the --web flags. One that this host does not have is tried again, if another one is open; any other
// failure opens none.
func Listen(flags *Flags, log *slog.Logger) ([]net.Listener, error) {
	if flags.WebSystemdSocket != nil && *flags.WebSystemdSocket {
		return activated(activation.Listeners())
	}
	var all []net.Listener
	var missing []string
	var failed, absent error
	for _, address := range *flags.WebListenAddresses {
		l, err := relisten.Listen(context.Background(), net.ListenConfig{}, "tcp", address)
		switch {
		case hostport.Absent(err):
			missing, absent = append(missing, address), cmp.Or(absent, hostport.ListenError(err, address, "agent"))
		case err != nil:
			failed = cmp.Or(failed, hostport.ListenError(err, address, "agent"))
		default:
			all = append(all, l)
		}
	}
	if len(all) == 0 {
		failed = cmp.Or(failed, absent)
	}
	if failed != nil {
		for _, open := range all {
			_ = open.Close() // the first error is returned
		}
		return nil, fmt.Errorf("httpd: --web.listen-address: %w", failed)
	}
	for _, address := range missing {
		log.Warn("Cannot listen on an address of --web.listen-address, which this host does not have; it is tried again", "address", address)
		all = append(all, relisten.Pending(net.ListenConfig{}, "tcp", address, func(err error) {
			log.Warn("Cannot listen on an address of --web.listen-address; it is tried again", "address", address, "err", hostport.ListenError(err, address, "agent"))
		}))
	}
	return all, nil
}

// activated are the listeners of systemd; nil among them is a socket of another kind.
func activated(listeners []net.Listener, err error) ([]net.Listener, error) {
	switch {
	case err != nil:
	case len(listeners) == 0:
		err = errors.New("systemd passed no socket; check that the .socket unit is active")
	case slices.Contains(listeners, nil):
		err = errors.New("systemd passed a socket that is no stream listener; the .socket unit may have ListenStream= only")
	}
	if err != nil {
		return nil, fmt.Errorf("httpd: %w", err)
	}
	return listeners, nil
}

// CheckConfig checks a --web.config.file and the files that it names; an empty name is valid.
func CheckConfig(file string) error {
	if file == "" {
		return nil
	}
	if err := errors.Join(validate(file), checkKey(file)); err != nil {
		return fmt.Errorf("httpd: %s: %w", file, err)
	}
	return nil
}

// checkKey checks that not all users can read the private key that a --web.config.file names; other errors are web.Validate's.
func checkKey(file string) error {
	key := tlsOf(file).KeyFile
	if key == "" {
		return nil
	}
	if !filepath.IsAbs(key) {
		key = filepath.Join(filepath.Dir(file), key)
	}
	if err := keyfile.Check(key); errors.Is(err, keyfile.ErrMode) {
		return fmt.Errorf("tls_server_config.key_file cannot be used: %w", err)
	}
	return nil
}

// tlsConfig is the private key of a --web.config.file: the name of its file, or the key itself. Without TLS both are empty.
type tlsConfig struct {
	KeyFile string `yaml:"key_file"`
	Key     string `yaml:"key"`
}

func tlsOf(file string) tlsConfig {
	var c struct {
		TLS tlsConfig `yaml:"tls_server_config"`
	}
	content, err := os.ReadFile(file)
	if err != nil || yaml.Unmarshal(content, &c) != nil {
		return tlsConfig{}
	}
	return c.TLS
}

// Scheme is the scheme of the URLs of a server with this --web.config.file.
func Scheme(file string) string {
	if tlsOf(file) == (tlsConfig{}) {
		return "http"
	}
	return "https"
}

// Serve serves h on all listeners until ctx ends, closes them, and then returns nil.
func Serve(ctx context.Context, listeners []net.Listener, h http.Handler, flags *Flags, log *slog.Logger) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	errs := make([]error, len(listeners))
	r := spaceIn(memlimit.Process())
	d := newLimiter(min(r.connections, maxDescriptors()/2), r.ofSource) // the other half is for probes
	var running sync.WaitGroup
	for i, l := range listeners {
		// One server per listener, since exporter-toolkit modifies the server.
		s := newServer(h, log, &r)
		running.Go(func() {
			defer cancel() // the failure of one address ends all
			// serveOn logs that it listens.
			if p, ok := l.(*relisten.Listener); ok && !p.Await(ctx) {
				_ = p.Close() // it has no socket
				return
			}
			l := limiterListener{l, d, &r}
			if err := serveOn(l, s, flags, log); !errors.Is(err, http.ErrServerClosed) {
				errs[i] = fmt.Errorf("httpd: %s: %w", l.Addr(), err)
				_ = l.Close() // the first error is returned
			}
		})
		running.Go(func() {
			<-ctx.Done()
			shutdown(s)
		})
	}
	running.Wait()
	return errors.Join(errs...)
}

func newServer(h http.Handler, log *slog.Logger, r *space) *http.Server {
	return &http.Server{
		Handler: counted(h), ConnContext: connContext, ReadHeaderTimeout: headerTimeout, ReadTimeout: readTimeout, WriteTimeout: writeTimeout,
		IdleTimeout: idleTimeout, MaxHeaderBytes: r.header,
		HTTP2: &http.HTTP2Config{MaxConcurrentStreams: maxStreams, MaxReceiveBufferPerConnection: maxUploadBytes, MaxReceiveBufferPerStream: maxUploadBytes},
		// Errors of clients, such as a failed TLS handshake, are logged at debug: any client could fill the log with
		// them.
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
}

// shutdown waits for requests in progress, at most shutdownTimeout.
func shutdown(s *http.Server) {
	ctx, cancel := context.WithTimeout(context.Background(), shutdownTimeout)
	defer cancel()
	if err := s.Shutdown(ctx); err != nil {
		_ = s.Close() // requests still in progress are cut off
	}
}
