package config

import (
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"time"

	"go.yaml.in/yaml/v3"
	"oneway.example/exporter/hostport"
)

// namePattern is NamePattern, compiled; hostPattern is a DNS name, with the
// underscore that many have.
var (
	namePattern = regexp.MustCompile(`^` + NamePattern + `$`)
	hostPattern = regexp.MustCompile(`^[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?(\.[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?)*\.?$`)
)

// maxHost is the longest DNS name (RFC 1035 section 2.3.4).
const maxHost = 253

// check says what is wrong with values that have the right type, and fills in
// defaults that depend on others.
func (d *decoder) check(c *Config, root *yaml.Node) {
	at := (&locator{d, root}).at
	if at("paths") == root && at("reflector") == root && at("responder") == root {
		d.fail(root, "paths, reflector", "and responder are all missing; there is nothing to do")
	}
	d.checkClock(&c.Clock, at)
	d.checkState(c, root, at)
	d.checkLinks(c.Links, root)
	if c.Reflector != nil {
		d.checkReflector(c.Reflector, at)
	}
	if c.Responder != nil {
		d.checkResponder(c.Responder, at)
	}
	d.checkPaths(c.Paths, root)
}

// locator finds nodes for messages.
type locator struct {
	*decoder
	root *yaml.Node
}

// at returns the node of a key, or of the nearest mapping around it.
func (l *locator) at(path ...string) *yaml.Node {
	n := l.root
	for _, name := range path {
		n = child(n, name)
	}
	return n
}

func child(n *yaml.Node, name string) *yaml.Node {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if n.Kind != yaml.MappingNode {
		return n
	}
	for _, p := range (&decoder{}).inner(n) {
		if p.name() == name {
			return p.value
		}
	}
	return n
}

// checkName holds a name to NamePattern.
func (d *decoder) checkName(n *yaml.Node, key, name string) {
	if !namePattern.MatchString(name) {
		d.fail(n, key, "is %q; it must begin with a letter or digit, and have at most 100 letters, digits, and _ . : / -", name)
	}
}

func (d *decoder) between(n *yaml.Node, key string, v, low, high time.Duration) {
	if v < low || v > high {
		d.fail(n, key, "is %v; it must be between %v and %v", v, low, high)
	}
}

func (d *decoder) count(n *yaml.Node, key string, v, low, high int) {
	if v < low || v > high {
		d.fail(n, key, "is %d; it must be between %d and %d", v, low, high)
	}
}

// Limits of the reflector's settings.
const (
	maxRate     = 10_000_000
	maxSessions = 1 << 22
)

func (d *decoder) checkReflector(r *Reflector, at atFunc) {
	section := at("reflector")
	given := func(path ...string) bool {
		full := append([]string{"reflector"}, path...)
		return at(full...) != at(full[:len(full)-1]...)
	}
	if len(r.Listen) == 0 {
		if given("listen") {
			d.fail(at("reflector", "listen"), "reflector.listen", `is an empty list; name an address such as ":862", or leave the key out`)
		}
		r.Listen = []Listen{{Port: 862}}
	}
	seen := map[Listen]bool{}
	for i, l := range r.Listen {
		if seen[l] {
			d.fail(at("reflector", "listen"), fmt.Sprintf("reflector.listen[%d]", i), "is %q, which is in the list already", l)
		}
		seen[l] = true
	}
	if r.RequireKey && r.KeyFile == "" {
		d.fail(section, "reflector.key_file", "is missing; require_key needs it")
	}
	if given("rate_limit", "packets_per_second") {
		d.count(at("reflector", "rate_limit", "packets_per_second"), "reflector.rate_limit.packets_per_second", r.RateLimit.PacketsPerSecond, 1, maxRate)
	}
	if given("rate_limit", "burst") {
		d.count(at("reflector", "rate_limit", "burst"), "reflector.rate_limit.burst", r.RateLimit.Burst, 1, maxRate)
	}
	if given("max_sessions") {
		d.count(at("reflector", "max_sessions"), "reflector.max_sessions", r.MaxSessions, 2*len(r.Listen), maxSessions)
	}
	if given("session_expiry") {
		d.between(at("reflector", "session_expiry"), "reflector.session_expiry", r.SessionExpiry, time.Second, 24*time.Hour)
	}
}

// checkPaths goes through the nodes once: a file may have 10,000 of them.
func (d *decoder) checkPaths(paths []Path, root *yaml.Node) {
	var nodes []*yaml.Node
	if list := child(root, "paths"); len(paths) > 0 {
		for list.Kind == yaml.AliasNode {
			list = list.Alias
		}
		nodes = list.Content
	}
	seen := make(map[string]int, len(paths))
	for i := range paths {
		p, n, key := &paths[i], nodes[i], fmt.Sprintf("paths[%d]", i)
		switch first, twice := seen[p.Name]; {
		case child(n, "name") == n:
			d.fail(n, key+".name", "is missing; every path needs one")
		case !namePattern.MatchString(p.Name):
			d.checkName(child(n, "name"), key+".name", p.Name)
		case twice:
			d.fail(child(n, "name"), key+".name", "is %q, which paths[%d] in line %d has already; names must differ", p.Name, first, child(nodes[first], "name").Line)
		default:
			seen[p.Name] = i
		}
		if child(n, "peer") == n {
			d.fail(n, key+".peer", "is missing; it must be a host, such as reflector.example.net or 192.0.2.1:862")
		} else if wrong := wrongPeer(p.Peer); wrong != "" {
			d.fail(child(n, "peer"), key+".peer", "is %q; %s", p.Peer, wrong)
		}
		d.checkProbes(p.Probes, n, key)
	}
}

func (d *decoder) checkProbes(probes []Probe, path *yaml.Node, key string) {
	if len(probes) == 0 {
		d.fail(child(path, "probes"), key+".probes", "names no probe; a path needs at least one, such as {type: stamp}")
		return
	}
	seen := map[string]bool{}
	for j := range probes {
		p := &probes[j]
		key := fmt.Sprintf("%s.probes[%d]", key, j)
		if p.Type == "" {
			d.fail(p.Options.at, key+".type", "is missing; it says what kind of probe this is, such as stamp")
			continue
		}
		if p.Name == "" {
			p.Name = p.Type
		}
		d.checkName(p.Options.find("name"), key+".name", p.Name)
		if seen[p.Name] {
			d.fail(p.Options.find("name"), key+".name", "is %q, which another probe of this path has already; give one of them another name", p.Name)
		}
		seen[p.Name] = true
	}
}

// wrongPeer says what is wrong with a peer, or nothing.
func wrongPeer(peer string) string {
	host, _, err := hostport.Split(peer, 1)
	if errors.Is(err, hostport.ErrPort) || errors.Is(err, hostport.ErrBrackets) {
		return err.Error()
	}
	if _, notAddress := netip.ParseAddr(host); err != nil || notAddress != nil && (len(host) > maxHost || !hostPattern.MatchString(host)) {
		return "it must be a host name or address with an optional port, such as reflector.example.net:862, 192.0.2.1 or [2001:db8::1]:862"
	}
	return ""
}
