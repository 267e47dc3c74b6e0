package loadserver

import (
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"sync"

	"oneway.example/exporter/core/keyfile"
	"oneway.example/exporter/load/loadcontrol"
)

// authorities sign client certificates. Their file is read again when it changes.
type authorities struct {
	log *slog.Logger

	mu sync.Mutex
	watched
	pool *x509.CertPool
}

// newAuthorities reads the file for the first time; an invalid file is an error.
func newAuthorities(file string, log *slog.Logger) (*authorities, error) {
	a := &authorities{log: log, watched: watch(file)}
	var err error
	if a.pool, err = keyfile.CAs(file); err != nil {
		return nil, err
	}
	return a, nil
}

// current returns the authorities. If the file cannot be read or is invalid, such as during an edit, the previous ones stay.
func (a *authorities) current() *x509.CertPool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.changed() {
		return a.pool
	}
	if pool, err := keyfile.CAs(a.file); err != nil {
		a.unread(err)
		a.log.Error("New authorities of client certificates not loaded; the previous ones stay in use", "err", err)
	} else {
		a.pool = pool
		a.log.Info("Authorities of client certificates reloaded", "file", a.file)
	}
	return a.pool
}

// tls is the configuration of TLS.
func (r *LoadServer) tls() *tls.Config {
	if r.clientCAs == nil {
		return loadcontrol.ServerTLS(r.identity.certificate, nil)
	}
	now := func() *tls.Config { return loadcontrol.ServerTLS(r.identity.certificate, r.clientCAs.current()) }
	c := now()
	c.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return now(), nil }
	return c
}
