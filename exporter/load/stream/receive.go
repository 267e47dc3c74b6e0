package stream

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"time"

	"oneway.example/exporter/net/sched"
	"oneway.example/exporter/net/tstamp"
	"oneway.example/exporter/net/wire/loadfmt"
)

// receiveBatch is the most packets per system call. A packet may have the longest UDP payload, and a
// coalesced one the longest IP packet.
const (
	receiveBatch = 64
	receiveBytes = 1<<16 - 1
)

// receiver is the state of Run.
type receiver struct {
	endpoint *Endpoint
	batch    *tstamp.Batch
	// last is the session of the last lookup.
	last *Session
}

func newReceiver(e *Endpoint) *receiver {
	return &receiver{endpoint: e, batch: tstamp.NewBatch(receiveBatch, receiveBytes)}
}

// take handles the results of a Receive: transmit timestamps first, as they are
// older.
func (r *receiver) take() {
	r.endpoint.stamped(r.batch.Tx)
	r.endpoint.unreachable(r.batch.Errors)
	if len(r.batch.In) == 0 {
		return
	}
	now := sched.Now()
	r.last = nil // it may have left
	for i := range r.batch.In {
		in := &r.batch.In[i]
		h, err := loadfmt.Parse(in.Payload)
		switch {
		case err == nil:
			r.packet(in, h, now)
		case !r.damaged(in, h, now):
			r.endpoint.counts[ignoredFor(err)].Add(1)
		}
	}
}

func ignoredFor(err error) Ignored {
	switch {
	case errors.Is(err, loadfmt.ErrShort):
		return TooShort
	case errors.Is(err, loadfmt.ErrForeign):
		return Foreign
	}
	return DamagedHeader
}

// packet handles a packet with a valid header.
func (r *receiver) packet(in *tstamp.In, h loadfmt.Header, now monotonic) {
	s := r.session(h.Session)
	if s == nil {
		r.endpoint.counts[UnknownSession].Add(1)
		return
	}
	s.received.Store(int64(now))
	switch h.Type {
	case loadfmt.Data:
		r.endpoint.counts[s.data(in, h, now)].Add(1)
	case loadfmt.Hello:
		s.replyToHello(in, h)
	case loadfmt.Challenge:
		s.challenged(in, h)
	case loadfmt.Report, loadfmt.Order:
		if why := s.adjusted(in, h, now); why != taken {
			r.endpoint.counts[why].Add(1)
		}
	default:
		r.endpoint.counts[UnknownType].Add(1)
	}
}

// session returns the session of a number; nil: not joined.
func (r *receiver) session(id uint64) *Session {
	if r.last != nil && r.last.id == id {
		return r.last
	}
	r.endpoint.mu.RLock()
	s := r.endpoint.sessions[id]
	r.endpoint.mu.RUnlock()
	if s != nil {
		r.last = s
	}
	return s
}

// damaged passes a packet with a damaged header to the session in it or, if it begins with our magic
// number, to the session of its source address. It returns whether a session
// received it.
func (r *receiver) damaged(in *tstamp.In, h loadfmt.Header, now monotonic) bool {
	id, magic := loadfmt.SessionOf(in.Payload)
	s := r.session(id)
	if s == nil && magic {
		r.endpoint.mu.RLock()
		s = r.endpoint.byPeer[in.Peer]
		r.endpoint.mu.RUnlock()
	}
	if s == nil || !s.badHeader(in, h, now) {
		return false
	}
	r.endpoint.counts[taken].Add(1)
	return true
}

// data passes a packet to its stream.
func (s *Session) data(in *tstamp.In, h loadfmt.Header, now monotonic) Ignored {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.receptions {
		if r.transfer == h.Transfer {
			if uint64(h.Seq) >= uint64(r.planned) {
				return BeyondPlan
			}
			r.add(in, h, now)
			s.source, s.sourceAt = in.Peer, now
			return taken
		}
	}
	return UnknownTransfer
}

// badHeader passes a packet with a damaged header to the stream that the header names, or to the only
// one.
func (s *Session) badHeader(in *tstamp.In, h loadfmt.Header, now monotonic) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.receptions {
		if r.transfer == h.Transfer || len(s.receptions) == 1 {
			r.addBadHeader(in, h, now)
			return true
		}
	}
	return false
}

// Times of the hello.
const (
	helloEvery   = 100 * time.Millisecond
	helloTimeout = 5 * time.Second
)

// ErrNoReply is wrapped by Hello if no challenge was received: the UDP port is filtered, or the
// remote end has no such session.
var ErrNoReply = errors.New("stream: no reply to hello packets")

// Hello sends a hello packet every 100 ms until a challenge arrives, and returns its cookie, which
// proves the address of this end as the load server sees it. After 5 s the error wraps
// ErrNoReply, and the error of sending or the tstamp.ICMPError, if there was one.
func (s *Session) Hello(ctx context.Context, to netip.AddrPort) (cookie []byte, err error) {
	_, cookie, err = s.HelloAny(ctx, to)
	return cookie, err
}

// HelloAny is Hello to several addresses, one of them forwarded to the other end by a NAT, and returns the first that replies.
func (s *Session) HelloAny(ctx context.Context, to ...netip.AddrPort) (at netip.AddrPort, cookie []byte, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, helloTimeout, ErrNoReply)
	defer cancel()
	s.asking.Store(&to)
	again := time.NewTicker(helloEvery)
	defer again.Stop()
	var refused error
	select {
	case <-s.challenges: // reply to an earlier hello: the address may have changed
	default:
	}
	for {
		for _, one := range to {
			if err := s.hello(one, 0); errors.Is(err, net.ErrClosed) {
				return at, nil, err
			} else if err != nil {
				refused = err
			}
		}
		select {
		case c := <-s.challenges:
			if slices.Contains(to, c.from) {
				return c.from, c.cookie, nil
			}
			return to[0], c.cookie, nil
		case <-ctx.Done():
			if e := s.Rejected(); e != nil {
				refused = e
			}
			if refused != nil {
				return at, nil, fmt.Errorf("%w from %v, and %w", context.Cause(ctx), to, refused)
			}
			return at, nil, fmt.Errorf("stream: hello to %v: %w", to, context.Cause(ctx))
		case <-again.C:
		}
	}
}

// KeepAlive sends a hello without a reply: it preserves the mapping of a NAT, is consent to a stream, and shows that
// this end runs.
func (s *Session) KeepAlive(to netip.AddrPort) error { return s.hello(to, loadfmt.KeepAlive) }

// Ask is KeepAlive with a reply, which shows that the other end runs.
func (s *Session) Ask(to netip.AddrPort) error { return s.hello(to, 0) }

func (s *Session) hello(to netip.AddrPort, flags uint8) error {
	packet := loadfmt.AppendHello(make([]byte, 0, loadfmt.HelloBytes), s.id, flags)
	_, err := s.endpoint.conn.Send([]tstamp.Out{{Payload: packet, Peer: to, Source: s.sourceFor(to), Cookie: noStamp}})
	if err != nil {
		return fmt.Errorf("stream: %w", err)
	}
	return nil
}

// noStamp is the cookie of packets without a transmit timestamp.
const noStamp = 0

// A cookie has the address and its authentication code: 16 bytes of HMAC-SHA-256, the port, the
// address of 16 bytes, and its zone. So the Endpoint stores no state for addresses that are not
// proved.
const (
	macBytes    = 16
	cookieBytes = macBytes + 2 + 16
)

func (s *Session) appendCookie(b []byte, a netip.AddrPort) []byte {
	start := len(b)
	b = append(b, make([]byte, macBytes)...)
	b = binary.BigEndian.AppendUint16(b, a.Port())
	ip := a.Addr().As16()
	b = append(b, ip[:]...)
	b = append(b, a.Addr().Zone()...)
	copy(b[start:], s.mac(b[start+macBytes:], sched.Now()))
	return b
}

// cookieTime is the least validity of a cookie; the greatest is twice that. An older cookie does not
// prove that its address still receives.
const cookieTime = time.Minute

func (s *Session) mac(b []byte, at time.Duration) []byte {
	h := hmac.New(sha256.New, s.endpoint.secret[:])
	h.Write(binary.BigEndian.AppendUint64(nil, s.id))
	h.Write(binary.BigEndian.AppendUint64(nil, uint64(at/cookieTime)))
	h.Write(b)
	return h.Sum(nil)[:macBytes]
}

// VerifyCookie returns the address to which the cookie was sent, and so proves that it receives.
func (s *Session) VerifyCookie(cookie []byte) (netip.AddrPort, bool) {
	return s.proven(cookie, sched.Now())
}

func (s *Session) proven(cookie []byte, now time.Duration) (netip.AddrPort, bool) {
	if len(cookie) < cookieBytes || len(cookie) > loadfmt.MaxCookieBytes {
		return netip.AddrPort{}, false
	}
	proves := func(at time.Duration) bool { return hmac.Equal(cookie[:macBytes], s.mac(cookie[macBytes:], at)) }
	if !proves(now) && !proves(now-cookieTime) {
		return netip.AddrPort{}, false
	}
	b := cookie[macBytes:]
	ip := netip.AddrFrom16([16]byte(b[2:18])).Unmap().WithZone(string(b[18:]))
	return netip.AddrPortFrom(ip, binary.BigEndian.Uint16(b)), true
}

// replyToHello replies to a hello, within its limits.
func (s *Session) replyToHello(in *tstamp.In, h loadfmt.Header) {
	e := s.endpoint
	e.hellos.Add(1)
	s.isPeer(in.Peer, in.Local)
	if e.onHello != nil {
		e.onHello(s.id, in.Peer)
	}
	if h.Flags&loadfmt.KeepAlive != 0 {
		s.greeted.Store(true)
		return
	}
	if s.greeted.Load() { // the first ones are for a cookie
		s.asked.Store(s.received.Load())
	}
	if len(in.Payload) < loadfmt.HelloBytes || in.Peer.Port() == 0 || in.Peer.Addr().IsMulticast() {
		e.counts[BadHello].Add(1)
		return
	}
	if !s.limit.Allow() {
		e.counts[HelloTooOften].Add(1)
		return
	}
	packet := loadfmt.AppendChallenge(make([]byte, 0, loadfmt.HelloBytes), s.id, s.appendCookie(nil, in.Peer))
	// The peer repeats its hello after 100 ms if this challenge is not sent.
	if _, err := e.conn.Send([]tstamp.Out{{Payload: packet, Peer: in.Peer, Source: in.Local, Cookie: noStamp}}); err == nil {
		e.replies.Add(1)
	}
}

// challenged passes a cookie to Hello.
func (s *Session) challenged(in *tstamp.In, h loadfmt.Header) {
	cookie := loadfmt.Cookie(in.Payload, h)
	if cookie == nil {
		s.endpoint.counts[BadHello].Add(1)
		return
	}
	select {
	case <-s.challenges: // the newest one is kept
	default:
	}
	s.challenges <- challenge{in.Peer, append([]byte(nil), cookie...)} // only the receiving goroutine sends
	s.answered.Store(s.received.Load())
	s.isPeer(in.Peer, in.Local)
	if s.endpoint.onHello != nil {
		s.endpoint.onHello(s.id, in.Peer)
	}
}
