package config

import (
	"fmt"
	"net/netip"
)

// Responder has the settings of the responder, the far end of heavy tests; zero values
// mean its defaults.
type Responder struct {
	// Listen has at least one address: TCP for control, UDP for test traffic.
	Listen []Listen `yaml:"listen"`
	// TokensFile says who may run tests; "oneway token new" writes it.
	TokensFile string `yaml:"tokens_file"`
	// CertFile and KeyFile are both given or both empty: then the responder makes a
	// key of its own and keeps it in the state directory.
	CertFile string `yaml:"cert_file"`
	KeyFile  string `yaml:"key_file"`
	// ClientCAFile signs certificates of clients; empty: tokens only.
	ClientCAFile string `yaml:"client_ca_file"`
	// Link is the name of what no two heavy tests may use at once; empty: the
	// responder's own.
	Link string `yaml:"link"`
	// MaxConnections and MaxSessions bound what is open at one time.
	MaxConnections int `yaml:"max_connections"`
	MaxSessions    int `yaml:"max_sessions"`
	// Allow lists the sources that are answered; empty: all.
	Allow []netip.Prefix `yaml:"allow"`
}

// responderPort is that of control and of test traffic.
const responderPort = 8620

// Limits of the responder's settings.
const (
	maxResponderConnections = 1 << 14
	maxResponderSessions    = 1 << 12
)

func (d *decoder) checkResponder(r *Responder, at atFunc) {
	section := at("responder")
	given := func(key string) bool { return at("responder", key) != section }
	if len(r.Listen) == 0 {
		if given("listen") {
			d.fail(at("responder", "listen"), "responder.listen", `is an empty list; name an address such as ":8620", or leave the key out`)
		}
		r.Listen = []Listen{{Port: responderPort}}
	}
	seen := map[Listen]bool{}
	for i, l := range r.Listen {
		if seen[l] {
			d.fail(at("responder", "listen"), fmt.Sprintf("responder.listen[%d]", i), "is %q, which is in the list already", l)
		}
		seen[l] = true
	}
	if r.TokensFile == "" {
		d.fail(section, "responder.tokens_file", `is missing; it says who may run tests: "oneway token new --file tokens --name NAME" makes one`)
	}
	if r.CertFile != "" && r.KeyFile == "" {
		d.fail(section, "responder.key_file", "is missing; cert_file needs it")
	}
	if r.KeyFile != "" && r.CertFile == "" {
		d.fail(section, "responder.cert_file", "is missing; key_file needs it")
	}
	if given("link") {
		d.checkName(at("responder", "link"), "responder.link", r.Link)
	}
	if given("max_connections") {
		d.count(at("responder", "max_connections"), "responder.max_connections", r.MaxConnections, 1, maxResponderConnections)
	}
	if given("max_sessions") {
		d.count(at("responder", "max_sessions"), "responder.max_sessions", r.MaxSessions, 1, maxResponderSessions)
	}
}
