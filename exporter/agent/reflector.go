package agent

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"reflect"
	"sync"
	"syscall"
	"time"

	"oneway.example/exporter/calibration"
	"oneway.example/exporter/clock"
	"oneway.example/exporter/config"
	"oneway.example/exporter/keyfile"
	"oneway.example/exporter/metric"
	"oneway.example/exporter/reflector"
	"oneway.example/exporter/wire/stamp"
)

// reflectorPlan is a reflector section and the secrets that it names.
type reflectorPlan struct {
	config  config.Reflector
	secrets [][]byte
}

// planReflector checks a reflector section; nil if there is none.
func planReflector(c *config.Config, m clock.Monitor) (*reflectorPlan, *config.Problem) {
	if c.Reflector == nil {
		return nil, nil
	}
	p := &reflectorPlan{config: *c.Reflector}
	if file := p.config.KeyFile; file != "" {
		secrets, err := keyfile.Load(file)
		if err != nil {
			return nil, c.Problem("reflector.key_file", "cannot be used: "+err.Error())
		}
		p.secrets = secrets
	}
	if _, err := reflector.New(p.options(), reflector.Env{Sink: metric.Discard{}, Clock: m}); err != nil {
		return nil, c.Problem("reflector", "cannot be used: "+err.Error())
	}
	return p, nil
}

func (p *reflectorPlan) options() reflector.Options {
	c := p.config
	o := reflector.Options{
		Keys: p.keys(), RequireKey: c.RequireKey, Stateless: c.Stateless,
		RatePackets: c.RateLimit.PacketsPerSecond, RateBurst: c.RateLimit.Burst,
		MaxSessions: c.MaxSessions, Expiry: c.SessionExpiry, Allow: c.Allow, Hardware: c.Hardware,
	}
	for _, l := range c.Listen {
		if l.Addr.IsValid() {
			o.Listen = append(o.Listen, netip.AddrPortFrom(l.Addr, l.Port))
			continue
		}
		o.Listen = append(o.Listen, netip.AddrPortFrom(netip.IPv4Unspecified(), l.Port))
		if hasIPv6() {
			o.Listen = append(o.Listen, netip.AddrPortFrom(netip.IPv6Unspecified(), l.Port))
		}
	}
	return o
}

func (p *reflectorPlan) keys() (keys []*stamp.Key) {
	for _, s := range p.secrets {
		keys = append(keys, stamp.NewKey(s))
	}
	return keys
}

// hasIPv6 is false on a kernel without that family, where ":862" means one
// address and not two. All other reasons are the reflector's to tell.
func hasIPv6() bool {
	c, err := net.ListenPacket("udp6", "[::]:0")
	if err != nil {
		return !errors.Is(err, syscall.EAFNOSUPPORT)
	}
	_ = c.Close() // it was only to see that it opens
	return true
}

// reflectorKeeper runs the reflector that the configuration wants.
type reflectorKeeper struct {
	log   *slog.Logger
	env   reflector.Env
	retry retry

	mu      sync.Mutex
	plan    *reflectorPlan
	unit    *unit
	current *reflector.Reflector
}

func newReflectorKeeper(sink metric.Sink, log *slog.Logger, m clock.Monitor, r retry) *reflectorKeeper {
	log = log.With("component", "reflector")
	return &reflectorKeeper{log: log, env: reflector.Env{Log: log, Sink: sink, Clock: m}, retry: r}
}

// apply puts a section in force, if it differs from the one that is. If nothing
// but the secrets differs, its sessions go on.
func (k *reflectorKeeper) apply(ctx context.Context, p *reflectorPlan) {
	k.mu.Lock()
	old, unit := k.plan, k.unit
	k.mu.Unlock()
	if old != nil && p != nil && reflect.DeepEqual(old.config, p.config) {
		k.setSecrets(old, p)
		return
	}
	if old == nil && p == nil {
		return
	}
	if err := stopUnit("the reflector", unit); err != nil {
		k.log.Error("Reflector did not end", "err", err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.plan, k.unit, k.current = p, nil, nil
	if p != nil {
		k.unit = startUnit(ctx, k.log, k.retry, k.run)
	}
}

func (k *reflectorKeeper) setSecrets(old, p *reflectorPlan) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if equalSecrets(old.secrets, p.secrets) {
		return
	}
	k.plan = p
	if k.current == nil {
		return
	}
	if err := k.current.SetKeys(p.keys()); err != nil {
		k.log.Error("Keys not changed", "err", err)
		return
	}
	k.log.Info("Keys changed", "keys", len(p.secrets))
}

func equalSecrets(a, b [][]byte) bool {
	return bytes.Equal(bytes.Join(a, []byte{'\n'}), bytes.Join(b, []byte{'\n'}))
}

// run is one run of a reflector; the sockets are opened in it.
func (k *reflectorKeeper) run(ctx context.Context) error {
	k.mu.Lock()
	o, env := k.plan.options(), k.env
	env.Clock = clock.Widen(env.Clock, calibration.ModerationAt(o.Listen))
	r, err := reflector.New(o, env)
	k.current = r
	k.mu.Unlock()
	if err != nil {
		return err
	}
	return r.Run(ctx)
}

func (k *reflectorKeeper) stop() error {
	k.mu.Lock()
	unit := k.unit
	k.mu.Unlock()
	return stopUnit("the reflector", unit)
}

// stopUnit must be called without a lock that the unit's run takes.
func stopUnit(what string, u *unit) error {
	if u == nil {
		return nil
	}
	timer := time.NewTimer(stopTimeout)
	defer timer.Stop()
	return u.stop(what, timer.C)
}

func (k *reflectorKeeper) status() *ReflectorStatus {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.plan == nil || k.unit == nil {
		return nil
	}
	s := &ReflectorStatus{Error: unitError(k.unit)}
	for _, l := range k.plan.config.Listen {
		s.Listen = append(s.Listen, l.String())
	}
	if k.current == nil {
		return s
	}
	stats := k.current.Stats()
	s.Answering = s.Error == "" && len(stats.Addrs) > 0
	s.Packets, s.Answered, s.Sessions = stats.Packets(), stats.Answered(), stats.Sessions
	return s
}
