package udp

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

	"oneway.example/exporter/hostid"
	"oneway.example/exporter/loadcontrol"
	"oneway.example/exporter/option"
	"oneway.example/exporter/sched"
	"oneway.example/exporter/stream"
	"oneway.example/exporter/traffic"
)

// Traffic is this type of traffic.
type Traffic struct{}

// Name is Name.
func (Traffic) Name() string { return Name }

// New is traffic.Type's.
func (Traffic) New(env traffic.Env) traffic.Remote { return &remote{env: env, host: hostid.Read()} }

// remote is the half of one load server: a UDP socket beside each address of control, which its
// sessions share.
type remote struct {
	env  traffic.Env
	host hostid.ID
	byID sync.Map // session number -> *serving, for packets

	mu        sync.Mutex
	endpoints []*stream.Endpoint // those that were shut, too: their counts go on
}

func (f *remote) Listen(at netip.AddrPort) (shut func(), err error) {
	e, err := stream.Open(stream.Options{Local: at, Log: f.env.Log, OnHello: f.greeted})
	if err != nil {
		return nil, fmt.Errorf("test traffic: %w", err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.endpoints = append(f.endpoints, e)
	return e.Close, nil
}

func (f *remote) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var running sync.WaitGroup
	for _, e := range f.open() {
		running.Go(func() {
			if err := e.Run(ctx); err != nil {
				cancel(fmt.Errorf("test traffic: %w", err))
			}
		})
	}
	running.Wait()
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// Discarded is what all test ports have left alone, by the reason.
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

// at is the test socket beside the control address that a client has reached: the one opened last.
func (f *remote) at(local netip.AddrPort) *stream.Endpoint {
	for _, e := range slices.Backward(f.open()) {
		a := e.LocalAddr()
		if a.Port() == local.Port() && (a.Addr() == local.Addr() || a.Addr().IsUnspecified() && a.Addr().Is4() == local.Addr().Is4()) {
			return e
		}
	}
	return nil
}

// Open makes the session's number known to the test port.
func (f *remote) Open(host traffic.Host, _ json.RawMessage) (traffic.Session, any, *loadcontrol.Refusal) {
	e := f.at(host.Local())
	if e == nil {
		return nil, nil, badRequest("no test port belongs to the address %v", host.Local())
	}
	s := &serving{remote: f, host: host, id: randomID(), used: map[uint16]bool{}}
	s.ctx, s.end = context.WithCancel(context.Background())
	s.stream = e.Join(s.id)
	f.byID.Store(s.id, s)
	s.tasks.Go(s.watch)
	salt := uint32(randomID())
	return s, Reply{Session: s.id, Port: e.LocalAddr().Port(), Salt: salt, Host: f.host.Token(salt)}, nil
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

// greeted hears of a hello; it runs on the goroutine that receives.
func (f *remote) greeted(id uint64, from netip.AddrPort) {
	v, ok := f.byID.Load(id)
	if !ok {
		return
	}
	s := v.(*serving)
	if to := s.to.Load(); to != nil && *to == from {
		s.heardFrom()
	}
}

func badRequest(format string, args ...any) *loadcontrol.Refusal {
	return &loadcontrol.Refusal{Reason: loadcontrol.BadRequest, Detail: fmt.Sprintf(format, args...)}
}

// What says that the client still receives a stream, or does not: see consent.
const (
	// consentLasts is for how long a sign of life is consent.
	consentLasts = 3 * time.Second
	// refusals are so many errors that a port is closed, without a hello between them: one may be
	// forged, or left of another socket.
	refusals = 3
)

// consent is whether the client still receives a stream (stream.Consent): it says hello while
// it does, or sends packets of a stream of its own, from the address that was proved. A stream
// pauses without; what ends it is the end of the session, see serving.watch.
type consent struct {
	*serving
	begun time.Duration // when the stream began, by sched.Now
}

// Given is stream.Consent's. A stream that begins has as long as after a sign of life; after an ICMP
// error there must be one.
func (c *consent) Given() bool {
	now := sched.Now()
	unheard, gone := c.unheard(now), time.Duration(c.gone.Load())
	return min(unheard, now-c.begun) <= consentLasts && (gone == 0 || now-unheard > gone)
}

// Unreachable is stream.Consent's. A closed port is one until a hello comes, all else may pass
// (RFC 1122 section 3.2.2.1). That a packet is too long says nothing of the receiver.
func (c *consent) Unreachable(err syscall.Errno) {
	closed := err == syscall.ECONNREFUSED || err == syscall.ENOPROTOOPT
	if err == syscall.EMSGSIZE || closed && c.refused.Add(1) < refusals {
		return
	}
	c.gone.Store(int64(sched.Now()))
}

// roundingShare is what intervals in whole nanoseconds may add to a rate that is the limit.
const roundingShare = 0.001

// errTooFast is why a plan breaks a rate.
var errTooFast = errors.New("faster than the token allows")

// checkRate holds a plan to a token's rate: each segment that is paced in its mean, and the whole
// to the bucket, as it is at the beginning. It returns what is in it at the end.
func checkRate(p stream.Plan, b traffic.Bucket) (after float64, err error) {
	level, rate := b.Level, b.Rate*(1+roundingShare)
	for i, s := range p.Segments {
		burst := float64(s.Burst) * float64(s.PayloadBytes)
		gain := rate * s.Interval.Seconds()
		if s.Bursts > 1 && s.Interval > 0 && burst > gain {
			return 0, fmt.Errorf("%w: segment %d sends %s, the limit is %s of UDP payload", errTooFast, i, option.Rate(burst/s.Interval.Seconds()), option.Rate(b.Rate))
		}
		level = min(b.Depth, level+rate*s.Pause.Seconds())
		// Where the bucket loses, it is lowest after the last burst; where it gains, after the first.
		lowest := level - burst - math.Max(0, burst-gain)*float64(s.Bursts-1)
		if lowest < 0 {
			return 0, fmt.Errorf("%w: segment %d sends %.0f bytes at once, or too soon after others; just then it may be %.0f, and %.0f at the most", errTooFast, i, level-lowest, level, b.Depth)
		}
		level = min(b.Depth, level+(gain-burst)*float64(s.Bursts))
	}
	return level, nil
}
