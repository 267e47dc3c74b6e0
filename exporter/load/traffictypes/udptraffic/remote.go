package udptraffic

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"sync"
	"syscall"
	"time"

	"oneway.example/exporter/core/hostid"
	"oneway.example/exporter/core/memlimit"
	"oneway.example/exporter/core/unit"
	"oneway.example/exporter/load/loadcontrol"
	"oneway.example/exporter/load/stream"
	"oneway.example/exporter/load/traffic"
	"oneway.example/exporter/net/sched"
	"oneway.example/exporter/probe/endclock"
)

// Type is this type of traffic.
type Type struct{}

// NewType makes the type for the registry.
func NewType() Type { return Type{} }

// Name returns Name.
func (Type) Name() string { return Name }

// New implements traffic.Type.
func (Type) New(env traffic.Env) traffic.Remote {
	return &remote{env: env, host: hostid.Read(), memory: memlimit.Process(), reported: reported}
}

// remote is the half of one load server: a UDP socket for each address of control, which the
// sessions share.
type remote struct {
	env  traffic.Env
	host hostid.ID
	// memory is the memory limit of this process.
	memory int64
	// reported is the constant, except in tests.
	reported time.Duration
	byID     sync.Map // *serving by session ID, for packets

	mu        sync.Mutex
	endpoints []*stream.Endpoint     // also closed ones, for their counts
	serve     func(*stream.Endpoint) // receives at a test port; nil while Run does not run
}

func (f *remote) Listen(at netip.AddrPort) (shut func(), err error) {
	e, err := stream.Open(stream.Options{Local: at, Log: f.env.Log, OnHello: f.challenge})
	if err != nil {
		return nil, fmt.Errorf("test traffic: %w", err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.endpoints = append(f.endpoints, e)
	if f.serve != nil {
		f.serve(e)
	}
	return e.Close, nil
}

func (f *remote) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var running sync.WaitGroup
	serve := func(e *stream.Endpoint) {
		running.Go(func() {
			if err := e.Run(ctx); err != nil {
				cancel(fmt.Errorf("test traffic: %w", err))
			}
		})
	}
	f.mu.Lock()
	f.serve = serve
	for _, e := range f.endpoints {
		serve(e)
	}
	f.mu.Unlock()
	<-ctx.Done()
	f.mu.Lock()
	f.serve = nil
	f.mu.Unlock()
	running.Wait()
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// Discarded returns the packets ignored by all test ports, by reason.
func (f *remote) Discarded() map[string]uint64 {
	sum := map[string]uint64{}
	for i := range stream.Reasons {
		sum[stream.Ignored(i).String()] = 0
	}
	for _, e := range f.open() {
		for i, n := range e.Stats().Ignored {
			sum[stream.Ignored(i).String()] += n
		}
	}
	return sum
}

func (f *remote) open() []*stream.Endpoint {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.endpoints
}

// at returns the test socket for the control address that a client uses: the one opened last.
func (f *remote) at(local netip.AddrPort) *stream.Endpoint {
	for _, e := range slices.Backward(f.open()) {
		a := e.LocalAddr()
		if a.Port() == local.Port() && (a.Addr() == local.Addr() || a.Addr().IsUnspecified() && a.Addr().Is4() == local.Addr().Is4()) {
			return e
		}
	}
	return nil
}

// Open adds the session to the test port.
func (f *remote) Open(host traffic.Host, _ json.RawMessage) (traffic.Session, any, *loadcontrol.Refusal) {
	e := f.at(host.Local())
	if e == nil {
		return nil, nil, loadcontrol.Reject("no test port belongs to the address %v", host.Local())
	}
	s := &serving{remote: f, host: host, id: randomID(), used: map[uint16]bool{}}
	s.ctx, s.end = context.WithCancel(context.Background())
	s.stream = e.Join(s.id)
	f.byID.Store(s.id, s)
	s.recordReceived()
	s.tasks.Go(func() { greet(s.ctx, s.stream, s.greets) })
	s.tasks.Go(func() {
		traffic.EndIdle(s.ctx, host, func() time.Duration { return s.idleTime(sched.Now()) }, s.idleError)
	})
	return s, Reply{Session: s.id, Port: e.LocalAddr().Port(), Kernel: endclock.NewKernel(f.host)}, nil
}

func randomID() uint64 {
	for {
		var b [8]byte
		_, _ = rand.Read(b[:]) // never fails (Go 1.24)
		if id := binary.BigEndian.Uint64(b[:]); id != 0 {
			return id
		}
	}
}

// challenge handles a hello packet, or the reply to one, on the receiving goroutine.
func (f *remote) challenge(id uint64, from netip.AddrPort) {
	v, ok := f.byID.Load(id)
	if !ok {
		return
	}
	s := v.(*serving)
	switch to := s.to.Load(); {
	case to == nil:
	case *to == from:
		s.recordReceived()
	default:
		s.other.Store(&otherSource{from, sched.Now()})
	}
}

// Times and limits of consent.
const (
	// consentLasts is how long a packet from the client counts as consent.
	consentLasts = 3 * time.Second
	// refusals is the number of ICMP port-unreachable errors without a hello between them that end
	// consent: single ones may be forged, or refer to an earlier socket.
	refusals = 3
)

// consent is the consent of the client to a stream (stream.Consent): it sends hello packets, or packets
// of a stream of its own, from the proved address, and has returned a cookie that was sent there in the last stream.CookieLasts: the
// others can be forged. Without consent a stream pauses; the end of the session ends it, see traffic.EndIdle.
type consent struct {
	*serving
	begun time.Duration // when the stream began, by sched.Now
}

// Given implements stream.Consent. A new stream needs no packet for consentLasts; after an ICMP error a
// packet from the client must follow.
func (c *consent) Given() bool {
	now := sched.Now()
	silentFor, ended := c.silentTime(now), time.Duration(c.consentEnded.Load())
	return min(silentFor, now-c.begun) <= consentLasts && (ended == 0 || now-silentFor > ended) && c.expiredFor() <= 0
}

// Unreachable implements stream.Consent. A closed port ends consent after several errors, other
// errors at once (RFC 1122 section 3.2.2.1), until a packet arrives. EMSGSIZE does not concern the receiver.
func (c *consent) Unreachable(err syscall.Errno) {
	closed := err == syscall.ECONNREFUSED || err == syscall.ENOPROTOOPT
	if err == syscall.EMSGSIZE || closed && c.refused.Add(1) < refusals {
		return
	}
	c.consentEnded.Store(int64(sched.Now()))
}

// roundingShare is how much rounding of intervals to nanoseconds may add to a rate at the limit.
const roundingShare = 0.001

// errRate: a plan exceeds a rate.
var errRate = errors.New("faster than the token allows")

// checkRate checks a plan against a token's rate: the mean of each paced segment, and the whole
// against the bucket as it is at the beginning. It returns the level at the end.
func checkRate(p stream.Plan, b traffic.Bucket) (after float64, err error) {
	level, rate := b.Level, b.Rate*(1+roundingShare)
	for _, s := range p.Segments {
		burst := float64(s.Burst) * float64(s.PayloadBytes)
		gain := rate * s.Interval.Seconds()
		if s.Bursts > 1 && s.Interval > 0 && burst > gain {
			return 0, fmt.Errorf("%w: the test sends %s of UDP payload, the limit is %s; %s", errRate,
				unit.BytesPerSecond.Format(burst/s.Interval.Seconds()), unit.BytesPerSecond.Format(b.Rate), loadcontrol.AboveLimit("rate"))
		}
		level = min(b.Depth, level+rate*s.Pause.Seconds())
		// If the level falls, it is lowest after the last burst; if it rises, after the first.
		if level < 0 {
			return 0, fmt.Errorf("%w: a transfer of this token that began before has its %s for another %s", errRate,
				unit.BytesPerSecond.Format(b.Rate), time.Duration(math.Ceil(-level/b.Rate))*time.Second)
		}
		lowest := level - burst - math.Max(0, burst-gain)*float64(s.Bursts-1)
		if lowest < 0 {
			sends, left := unit.DistinctBytes(int64(math.Ceil(level-lowest)), int64(level))
			return 0, fmt.Errorf("%w: the test sends %s of UDP payload at once, or too soon after other packets; at the limit of %s, %s may be sent then, and never more than %s; %s", errRate,
				sends, unit.BytesPerSecond.Format(b.Rate), left, unit.Bytes.Format(b.Depth), loadcontrol.AboveLimit("rate"))
		}
		level = min(b.Depth, level+(gain-burst)*float64(s.Bursts))
	}
	return level, nil
}
