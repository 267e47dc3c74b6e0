package stamp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/memlimit"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/net/sched"
	"oneway.example/exporter/net/source"
	"oneway.example/exporter/net/tstamp"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/probes/stamp/ledger"
)

// hub is one socket and all sessions that use it: thousands of sessions share one socket, one goroutine and the
// pacer's thread.
//
// Only the pacer's thread sends (reserve, flush), except for the rare statistics queries; the hub's goroutine
// receives.
type hub struct {
	conn *tstamp.Conn
	// sources checks the addresses of this host. addresses counts the changes after which each peer has to be checked again; it is
	// used by the pacer's thread only.
	sources   *source.Checker
	addresses uint64
	key       hubKey
	card      card // nil: no hardware timestamps
	log       *slog.Logger
	// users counts the probers of this hub; stop ends its goroutines. Both are guarded by the Type.
	users int
	stop  func()

	mu       sync.RWMutex
	sessions map[uint16]*session
	byPeer   map[netip.AddrPort][]*session
	nextSSID uint16
	// same are the sessions of one peer, used by the receiving goroutine only.
	same []*session
	// searched is when all sessions were last searched for a packet from an address of no peer (monotonic).
	searched time.Duration

	// The batch, used by the pacer's thread only.
	batch  []tstamp.Out
	owners []batched
	used   int

	snapshots sync.Pool // of *snapshot, between two uses

	renewals atomic.Uint32 // of the socket

	// heard is the monotonic time up to which all packets that have arrived are processed.
	heard atomic.Int64

	drops  ledger.Drops
	stray  [ledger.DiscardReasons]uint64 // guarded by mu
	errors map[syscall.Errno]uint64
	series hubSeries
}

// batched is the session and number of a packet in the batch.
type batched struct {
	session *session
	seq     uint64
}

const (
	batchPackets   = 64
	receivePackets = 64
	// receiveBufferBytes lasts for the replies and transmit timestamps of 10,000 packets a second during a stall of
	// more than three seconds.
	receiveBufferBytes = 16 << 20
)

// newHub opens the card's clock, if one is configured, and then a socket. Without the card it returns an error.
func newHub(key hubKey, openCard func(string, *slog.Logger) (card, error), env probe.Env) (h *hub, err error) {
	h = &hub{
		key: key, log: env.Log, sessions: map[uint16]*session{}, byPeer: map[netip.AddrPort][]*session{}, nextSSID: 1, addresses: 1,
		batch: make([]tstamp.Out, batchPackets), owners: make([]batched, batchPackets), errors: map[syscall.Errno]uint64{},
	}
	o := tstamp.Options{Device: key.device, ReceiveBufferBytes: memlimit.Buffer(receiveBufferBytes)}
	if key.hardware != "" {
		if h.card, err = openCard(key.hardware, env.Log); err != nil {
			return nil, err
		}
		o.Hardware = h.card
	}
	if h.conn, err = tstamp.Open(key.local, o); err != nil {
		h.closeCard()
		if errors.Is(err, syscall.EADDRNOTAVAIL) {
			return nil, source.Missing(key.local.Addr())
		}
		return nil, err
	}
	if h.sources, err = source.Open(key.device); err != nil {
		_ = h.conn.Close() // nothing was sent
		h.closeCard()
		return nil, err
	}
	h.heardUpTo(sched.Now())
	h.drops.Begin()
	h.series = newHubSeries(env.Sink, key.local)
	return h, nil
}

// errFull: all 65535 session identifiers of a socket are in use.
var errFull = errors.New("stamp: 65535 sessions on one local address; give some paths another `local`")

// add registers s and assigns its identifier. A session that comes from another hub keeps its own, if that is free: our
// reflector then continues its session.
func (h *hub) add(s *session) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.sessions) == 1<<16-1 {
		return errFull
	}
	if s.ssid == 0 || h.sessions[s.ssid] != nil {
		for h.nextSSID == 0 || h.sessions[h.nextSSID] != nil {
			h.nextSSID++
		}
		s.ssid = h.nextSSID
		h.nextSSID++
	}
	h.sessions[s.ssid] = s
	h.byPeer[s.peer] = append(h.byPeer[s.peer], s)
	s.hub.Store(h)
	return nil
}

// remove removes s, which has an identifier here.
func (h *hub) remove(s *session, ssid uint16) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.sessions, ssid)
	same := slices.DeleteFunc(h.byPeer[s.peer], func(one *session) bool { return one == s })
	if h.byPeer[s.peer] = same; len(same) == 0 {
		delete(h.byPeer, s.peer)
	}
}

// all appends the sessions that send here to to.
func (h *hub) all(to []*session) []*session {
	h.mu.RLock()
	defer h.mu.RUnlock()
	for _, s := range h.sessions {
		if s.hub.Load() == h {
			to = append(to, s)
		}
	}
	return to
}

// addressChanges returns the number of changes of this host's addresses so far. It looks for new ones once in a batch, before its first packet is
// made.
func (h *hub) addressChanges() uint64 {
	if h.used == 0 && h.sources.Changed() {
		h.addresses++
	}
	return h.addresses
}

// reserve returns the next place of the batch for a packet of s. A session has at most one packet in a batch, so
// that a packet refused by the kernel is withdrawn without a gap in the numbers.
func (h *hub) reserve(s *session) *tstamp.Out {
	if h.used == len(h.batch) {
		h.flush()
	}
	for i := range h.used {
		if h.owners[i].session == s {
			h.flush()
			break
		}
	}
	out := &h.batch[h.used]
	out.Payload = out.Payload[:0]
	return out
}

// commit adds the reserved place to the batch.
func (h *hub) commit(s *session, seq uint64) {
	h.owners[h.used] = batched{s, seq}
	h.used++
}

// flush sends the batch. It runs after each wake-up of the pacer.
func (h *hub) flush() {
	for first := 0; first < h.used; {
		sent, err := h.conn.Send(h.batch[first:h.used])
		first += sent
		if err == nil || first >= h.used {
			continue
		}
		if errors.Is(err, net.ErrClosed) {
			break
		}
		failed := h.owners[first]
		why, everyone := skipOf(err)
		failed.session.withdraw(failed.seq, why, err)
		h.count(err)
		first++
		for everyone && first < h.used {
			h.owners[first].session.withdraw(h.owners[first].seq, why, nil)
			first++
		}
	}
	clear(h.owners[:h.used])
	h.used = 0
}

// skipOf returns why a send failed, and whether the next packet would fail too.
func skipOf(err error) (why ledger.SkipReason, everyone bool) {
	switch {
	case errors.Is(err, syscall.EAGAIN), errors.Is(err, syscall.ENOMEM):
		return ledger.SkipBufferFull, true
	case errors.Is(err, syscall.ENOBUFS): // the queue of its interface; other sessions may use another
		return ledger.SkipBufferFull, false
	case errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETDOWN), errors.Is(err, syscall.ENODEV):
		return ledger.SkipUnreachable, false
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return ledger.SkipNoAddress, false
	case errors.Is(err, syscall.EPERM), errors.Is(err, syscall.EACCES):
		return ledger.SkipRefusedByHost, false
	}
	return ledger.SkipError, false
}

// dropped returns how many of the losses decided now are attributed to drops of the socket, at most ago old.
func (h *hub) dropped(lost uint64, ago time.Duration) uint64 {
	now := sched.Now()
	h.drops.Update(h.conn.Stats().Dropped, now)
	return h.drops.Take(lost, now, ago)
}

func (h *hub) count(err error) {
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		h.mu.Lock()
		h.errors[errno]++
		h.mu.Unlock()
	}
}

// sendNow sends one packet outside the batch: a statistics query.
func (h *hub) sendNow(out tstamp.Out) error {
	one := [1]tstamp.Out{out}
	if _, err := h.conn.Send(one[:]); err != nil {
		h.count(err)
		return err
	}
	return nil
}

// receive serves the socket until it is closed.
func (h *hub) receive() error {
	b := tstamp.NewBatch(receivePackets, maxSize+1)
	for {
		begin := sched.Now()
		if err := h.conn.Receive(b); err != nil {
			if errors.Is(err, net.ErrClosed) {
				return nil
			}
			return fmt.Errorf("stamp: receive: %w", err)
		}
		for i := range b.Tx {
			h.transmitted(&b.Tx[i])
		}
		now, at := sched.Now(), instant.Now()
		for i := range b.In {
			h.arrived(&b.In[i], h.arrival(&b.In[i], now, at))
		}
		h.hear(b, begin, now, at)
		for _, e := range b.Errors {
			h.failed(e)
		}
	}
}

func (h *hub) transmitted(t *tstamp.TxStamp) {
	h.mu.RLock()
	s := h.sessions[uint16(t.Cookie>>sequenceBits)]
	h.mu.RUnlock()
	if s != nil {
		s.transmitted(t.Cookie, t.Stamp, &h.series)
	}
}

// arrival is the monotonic time at which a packet arrived, given the same time of both clocks after it was read. A busy
// host reads late; that must not count as delay of the path. If the system clock is set back in between, the wait counts as delay, up to
// the step.
func (h *hub) arrival(in *tstamp.In, now time.Duration, at instant.Time) time.Duration {
	return max(now-max(0, at.Sub(in.Stamp.At)), time.Duration(h.heard.Load()))
}

// hear takes a batch whose reading began at begin, after it is processed. A full batch and one that an ICMP error ended may
// leave packets unread that arrived before begin; the last one that was read, with a timestamp of the kernel, then tells.
func (h *hub) hear(b *tstamp.Batch, begin, now time.Duration, at instant.Time) {
	n := min(len(b.In), receivePackets)
	switch {
	case n < receivePackets && len(b.Errors) == 0:
		h.heardUpTo(begin)
	case n > 0 && b.In[n-1].Stamp.Origin != sample.User: // the user-space timestamp may be much later
		h.heardUpTo(h.arrival(&b.In[n-1], now, at))
	}
}

func (h *hub) heardUpTo(at time.Duration) { h.heard.Store(max(h.heard.Load(), int64(at))) }

// upTo returns the time up to which all packets that have arrived are processed: a timeout that has passed since is
// not proven, since the reply may wait to be read.
func (h *hub) upTo(now time.Duration) time.Duration {
	if h.conn.Idle() {
		return now
	}
	return time.Duration(h.heard.Load())
}

// keep ticks all sessions until ctx ends, and renews the socket. It passes sessions whose port has this age, and that have heard
// nothing in this time, to unheard, and those that need their former ports no more to settled. Neither must wait for it.
func (h *hub) keep(ctx context.Context, portAge time.Duration, unheard, settled func([]*session)) {
	ticker := time.NewTicker(ledger.TickInterval)
	defer ticker.Stop()
	var sessions []*session
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		now := sched.Now()
		h.renew()
		h.drops.Update(h.conn.Stats().Dropped, now)
		heard := h.upTo(now)
		sessions = h.all(sessions[:0])
		var silent, replied []*session
		for _, s := range sessions {
			s.tick(now, heard)
			if s.report(now, portAge) {
				silent = append(silent, s)
			} else if s.settled(now) {
				replied = append(replied, s)
			}
		}
		clear(sessions)
		if len(replied) > 0 {
			settled(replied)
		}
		if len(silent) > 0 {
			unheard(silent)
		}
		h.publish()
	}
}

// renew opens the socket again if its interface was made again. While there is no interface, sending fails, which the paths
// report.
func (h *hub) renew() {
	switch renewed, err := h.conn.Renew(); {
	case err != nil:
		h.log.Debug("A socket cannot be opened again", "interface", h.key.device, "err", err)
	case renewed:
		h.renewals.Add(1)
		for _, s := range h.all(nil) {
			s.renewed(h.port())
		}
		h.log.Info("Opened a socket again, since its interface was made again", "interface", h.key.device, "local", h.conn.LocalAddr().String())
	}
}

// port numbers the source ports of the sessions that send here: each socket that replaces another one has its own.
func (h *hub) port() ledger.Port { return ledger.Port(h.key.port)<<32 | ledger.Port(h.renewals.Load()) }

// publish updates the socket's own series.
func (h *hub) publish() {
	h.mu.RLock()
	errs, stray := maps.Clone(h.errors), h.stray
	h.mu.RUnlock()
	c, name := h.series.scope, h.series.name
	c.Total(metric.SocketDrops, float64(h.conn.Stats().Dropped), name)
	for reason, n := range tstamp.CountByReason(errs) {
		c.Total(metric.SendErrors, float64(n), name, reason)
	}
	for reason, n := range stray {
		if n > 0 {
			c.Total(metric.SocketDiscarded, float64(n), name, ledger.DiscardReason(reason).String())
		}
	}
}

// close closes the socket, waits for what uses the hub, such as receive, and then ends the series.
func (h *hub) close(wait func()) {
	if err := h.conn.Close(); err != nil {
		h.log.Warn("Closing a socket failed", "err", err)
	}
	wait()
	h.sources.Close()
	h.closeCard()
	h.series.scope.Close()
}

func (h *hub) closeCard() {
	if h.card != nil {
		h.card.Close()
	}
}
