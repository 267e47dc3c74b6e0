package chrony

import (
	"container/heap"
	"context"
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"net"
	"os"
	"time"

	"oneway.example/exporter/clock"
	"oneway.example/exporter/core/instant"
	"oneway.example/tests/clocksim"
)

// simEpoch is when the simulation starts, in UTC.
const simEpoch = instant.Time(1_800_000_000_000_000_000)

// simulation is true time, and what happens in it, in order.
type simulation struct {
	now    time.Duration
	queue  events
	random *rand.Rand
}

type event struct {
	at     time.Duration
	number int // keeps events of one moment in order
	do     func()
}

type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].number < e[j].number
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

func newSimulation(seed uint64) *simulation {
	return &simulation{random: rand.New(rand.NewPCG(seed, 0))}
}

// at has f called at a moment that is not past.
func (w *simulation) at(moment time.Duration, f func()) {
	heap.Push(&w.queue, event{moment, len(w.queue), f})
}

// run lets the world go on until a moment.
func (w *simulation) run(until time.Duration) {
	for len(w.queue) > 0 && w.queue[0].at <= until {
		e := heap.Pop(&w.queue).(event)
		w.now = e.at
		e.do()
	}
	w.now = until
}

// simHost is a host: a clock, its chronyd, and our monitor, whose loop (poll)
// is played here so that no goroutine and no real time is needed.
type simHost struct {
	simulation *simulation
	clock      *clocksim.Clock
	config     clocksim.Config
	daemon     *clocksim.Chronyd
	killed     bool
	began      time.Duration // of this daemon
	monitor    *Monitor
	poller     *poller
	// falseReply changes the reply of the daemon; nil: nothing.
	falseReply  func(*clocksim.Tracking)
	stepped     bool          // by somebody's hand
	steppedAt   time.Duration // the last time
	unsyncSince time.Duration // since when the daemon is not synchronized; -1: it is
}

func newSimHost(w *simulation, o clocksim.Oscillator, offset time.Duration, c clocksim.Config) *simHost {
	h := &simHost{simulation: w, config: c, clock: clocksim.NewClock(o, offset, rand.New(rand.NewPCG(w.random.Uint64(), 1)))}
	m, err := New(Options{
		Address:  "udp://127.0.0.1:323",
		Interval: simEvery,
		Steps:    clock.StepOptions{Read: h.read},
		dial:     func(address) (net.Conn, error) { return h.dial() },
	})
	if err != nil {
		panic(err)
	}
	h.monitor = m
	h.poller = newPoller(m)
	h.startDaemon(0)
	w.at(time.Duration(w.random.Int64N(int64(time.Second))), h.poll)
	return h
}

// startDaemon starts chronyd; skew is that of its drift file.
func (h *simHost) startDaemon(skew float64) {
	c := h.config
	c.DriftSkew = skew
	if h.daemon != nil {
		c.DriftFrequency = h.daemon.Tracking(h.simulation.now).Frequency
	}
	h.daemon = clocksim.Start(h.clock, c, h.simulation.now, rand.New(rand.NewPCG(h.simulation.random.Uint64(), 2)))
	h.killed, h.began, h.unsyncSince = false, h.simulation.now, h.simulation.now
	h.simulation.at(h.daemon.Next(), h.act)
}

func (h *simHost) act() {
	if h.killed || h.simulation.now < h.daemon.Next() {
		return // of a daemon that is gone, or done already
	}
	h.daemon.Act(h.simulation.now)
	if h.unsyncSince >= 0 && h.daemon.Tracking(h.simulation.now).Synchronized {
		h.unsyncSince = -1
	}
	h.simulation.at(h.daemon.Next(), h.act)
}

// kill leaves the kernel slewing; there is no reply.
func (h *simHost) kill() { h.killed = true }

// step is by somebody's hand.
func (h *simHost) step(d time.Duration) {
	h.clock.Step(d)
	h.stepped, h.steppedAt = true, h.simulation.now
}

// unknown is how long the monitor may not know that chronyd has lost its
// synchronization: the time between two queries.
const unknown = simEvery + 10*time.Millisecond

// worthless reports whether chronyd cannot know the time now: it is not synchronized,
// or somebody has stepped the clock and it has used no sample taken since.
func (h *simHost) worthless() bool {
	return h.unsyncSince >= 0 && h.simulation.now-h.unsyncSince > unknown ||
		h.stepped && h.daemon.MeasuredFrom() < h.steppedAt && h.began <= h.steppedAt
}

func (h *simHost) read() clock.Reading {
	wall, mono := h.clock.Read(h.simulation.now)
	return clock.Reading{Wall: simEpoch.Add(wall), Mono: mono}
}

// wall is a time stamp.
func (h *simHost) wall() instant.Time { return h.read().Wall }

func (h *simHost) quality() clock.Quality { return h.monitor.Quality(h.wall()) }

// poll is one turn of the monitor's loop.
func (h *simHost) poll() {
	pause := h.poller.pollOnce(context.Background())
	h.simulation.at(h.simulation.now+max(pause, time.Millisecond), h.poll)
}

func (h *simHost) dial() (net.Conn, error) {
	if h.killed {
		return nil, errors.New("connection refused")
	}
	return &simConn{host: h}, nil
}

// simConn is a socket on which chronyd replies at once.
type simConn struct {
	net.Conn
	host  *simHost
	reply []byte
}

func (c *simConn) SetDeadline(time.Time) error { return nil }
func (c *simConn) Close() error                { return nil }

func (c *simConn) Write(request []byte) (int, error) {
	if c.host.killed {
		return 0, errors.New("connection refused")
	}
	c.reply = c.host.reply(request)
	return len(request), nil
}

func (c *simConn) Read(b []byte) (int, error) {
	if c.reply == nil {
		return 0, os.ErrDeadlineExceeded
	}
	n := copy(b, c.reply)
	c.reply = nil
	return n, nil
}

// reply is the simulated chronyd's datagram.
func (h *simHost) reply(request []byte) []byte {
	b, command := replyHead(request)
	t := h.daemon.Tracking(h.simulation.now)
	if h.falseReply != nil {
		h.falseReply(&t)
	}
	switch command {
	case commandTracking:
		b = appendSimTracking(b, t)
	case commandSources:
		b = binary.BigEndian.AppendUint32(b, 1)
	case commandSourceData:
		b = append(b, make([]byte, 20)...)
		b = binary.BigEndian.AppendUint16(b, uint16(t.Poll))
		b = append(b, make([]byte, cap(b)-len(b))...) // state 0: selected; all that replyHead made space for
	}
	return b
}

func appendSimTracking(b []byte, t clocksim.Tracking) []byte {
	refID, stratum, leap := uint32(0x50505300), uint16(1), uint16(0)
	if !t.Synchronized {
		refID, stratum, leap = 0, 0, leapUnsynchronized
	}
	b = binary.BigEndian.AppendUint32(b, refID)
	b = append(b, make([]byte, 20)...)
	b = binary.BigEndian.AppendUint16(b, stratum)
	b = binary.BigEndian.AppendUint16(b, leap)
	ns := uint64(0)
	if t.Updated {
		ns = uint64(simEpoch.Add(t.ReferenceTime))
	}
	for _, v := range []uint64{ns / 1e9 >> 32, ns / 1e9, ns % 1e9} {
		b = binary.BigEndian.AppendUint32(b, uint32(v))
	}
	for _, f := range []float64{
		t.Correction, t.LastOffset, math.Abs(t.LastOffset), t.Frequency * 1e6, t.Residual * 1e6, t.Skew * 1e6,
		t.RootDelay, t.RootDispersion, t.Interval,
	} {
		b = binary.BigEndian.AppendUint32(b, wireFloat(f))
	}
	return b
}
