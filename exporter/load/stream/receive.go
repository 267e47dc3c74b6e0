package stream

import (
	"bytes"
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

	"golang.org/x/sys/unix"

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
// this end runs. It returns the cookie of the last Offer.
func (s *Session) KeepAlive(to netip.AddrPort) error { return s.hello(to, loadfmt.KeepAlive) }

// Ask is KeepAlive with a reply, which shows that the other end runs.
func (s *Session) Ask(to netip.AddrPort) error { return s.hello(to, 0) }

// Offer sends a challenge without a hello. The other end returns its cookie, and so proves that its address still receives.
func (s *Session) Offer(to netip.AddrPort) error {
	cookie := s.appendCookie(nil, to, sched.Now())
	return s.send(to, loadfmt.AppendChallenge(make([]byte, 0, loadfmt.HelloBytes), s.id, loadfmt.Unrequested, cookie))
}

func (s *Session) hello(to netip.AddrPort, flags uint8) error {
	var cookie []byte
	if o := s.offered.Load(); o != nil {
		cookie = o.cookie
	}
	return s.send(to, loadfmt.AppendHello(make([]byte, 0, loadfmt.HelloBytes), s.id, flags, cookie))
}

func (s *Session) send(to netip.AddrPort, packet []byte) error {
	_, err := s.endpoint.conn.Send([]tstamp.Out{{Payload: packet, Peer: to, Source: s.sourceFor(to), Cookie: noStamp}})
	if err != nil {
		return fmt.Errorf("stream: %w", err)
	}
	return nil
}

// noStamp is the cookie of packets without a transmit timestamp.
const noStamp = 0

// A cookie has the address, when it was sent there, and their authentication code: 16 bytes of HMAC-SHA-256, the time, the port, the
// address of 16 bytes, and its zone with zeros. So the Endpoint stores no state for addresses that are not
// proved.
const (
	macBytes    = 16
	timeBytes   = 8
	zoneBytes   = unix.IFNAMSIZ
	cookieBytes = macBytes + timeBytes + 2 + 16 + zoneBytes
)

func (s *Session) appendCookie(b []byte, a netip.AddrPort, now monotonic) []byte {
	start := len(b)
	b = append(b, make([]byte, macBytes)...)
	b = binary.BigEndian.AppendUint64(b, uint64(now))
	b = binary.BigEndian.AppendUint16(b, a.Port())
	ip := a.Addr().As16()
	b = append(b, ip[:]...)
	var zone [zoneBytes]byte
	copy(zone[:], a.Addr().Zone())
	b = append(b, zone[:]...)
	copy(b[start:], s.mac(b[start+macBytes:]))
	return b
}

// CookieLasts is the validity of a cookie: an older one does not prove that its address still receives (RFC 7675 section 5.1).
const CookieLasts = 30 * time.Second

func (s *Session) mac(b []byte) []byte {
	h := hmac.New(sha256.New, s.endpoint.secret[:])
	h.Write(binary.BigEndian.AppendUint64(nil, s.id))
	h.Write(b)
	return h.Sum(nil)[:macBytes]
}

// Prove returns the address to which the cookie was sent, and which so proves that it receives. From now on its hellos renew the
// proof with later cookies: see LastProof. A cookie that is not later than the last one of its address proves nothing.
func (s *Session) Prove(cookie []byte) (netip.AddrPort, bool) {
	a, sent, ok := s.proven(cookie, sched.Now())
	if !ok {
		return netip.AddrPort{}, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if a == s.proved && int64(sent) <= s.proof.Load() {
		return netip.AddrPort{}, false
	}
	s.proved = a
	s.proof.Store(int64(sent))
	return a, true
}

// LastProof returns the age of the last cookie that the address of Prove has returned; false: no address is proved.
func (s *Session) LastProof() (ago time.Duration, ok bool) {
	at := s.proof.Load()
	return sched.Now() - time.Duration(at), at != 0
}

// proven returns the address of a valid cookie, and when it was sent there.
func (s *Session) proven(cookie []byte, now monotonic) (a netip.AddrPort, sent monotonic, ok bool) {
	if len(cookie) != cookieBytes || !hmac.Equal(cookie[:macBytes], s.mac(cookie[macBytes:])) {
		return netip.AddrPort{}, 0, false
	}
	b := cookie[macBytes:]
	if sent = sentAt(cookie); now-sent > CookieLasts {
		return netip.AddrPort{}, 0, false
	}
	port, ip, zone := b[timeBytes:], b[timeBytes+2:], b[timeBytes+2+16:]
	at := netip.AddrFrom16([16]byte(ip)).Unmap().WithZone(string(bytes.TrimRight(zone, "\x00")))
	return netip.AddrPortFrom(at, binary.BigEndian.Uint16(port)), sent, true
}

// sentAt returns when a cookie was sent, by the cookie.
func sentAt(cookie []byte) monotonic { return monotonic(binary.BigEndian.Uint64(cookie[macBytes:])) }

// renew renews the proof of an address by the cookie in its hello.
func (s *Session) renew(in *tstamp.In, h loadfmt.Header) {
	cookie := loadfmt.Cookie(in.Payload, h)
	s.mu.Lock()
	defer s.mu.Unlock()
	if in.Peer != s.proved || len(cookie) < cookieBytes || sentAt(cookie) <= monotonic(s.proof.Load()) { // the last saves the HMAC of most
		return
	}
	if a, sent, ok := s.proven(cookie[:cookieBytes], sched.Now()); ok && a == s.proved {
		s.proof.Store(int64(sent))
	}
}

// replyToHello replies to a hello, within its limits.
func (s *Session) replyToHello(in *tstamp.In, h loadfmt.Header) {
	e := s.endpoint
	s.isPeer(in.Peer, in.Local)
	s.renew(in, h)
	e.hellos.Add(1)
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
	packet := loadfmt.AppendChallenge(make([]byte, 0, loadfmt.HelloBytes), s.id, 0, s.appendCookie(nil, in.Peer, sched.Now()))
	// The peer repeats its hello after 100 ms if this challenge is not sent.
	if _, err := e.conn.Send([]tstamp.Out{{Payload: packet, Peer: in.Peer, Source: in.Local, Cookie: noStamp}}); err == nil {
		e.replies.Add(1)
	}
}

// challenged passes a cookie to Hello, or stores one for the next hello.
func (s *Session) challenged(in *tstamp.In, h loadfmt.Header) {
	cookie := loadfmt.Cookie(in.Payload, h)
	if cookie == nil {
		s.endpoint.counts[BadHello].Add(1)
		return
	}
	c := challenge{in.Peer, bytes.Clone(cookie)}
	if h.Flags&loadfmt.Unrequested != 0 {
		if s.asking.Load() == nil { // this end proves addresses: an echo of its own offers must not
			s.endpoint.counts[BadHello].Add(1)
			return
		}
		s.offered.Store(&offer{c.cookie, monotonic(s.received.Load())})
		return
	}
	select {
	case <-s.challenges: // the newest one is kept
	default:
	}
	s.challenges <- c // only the receiving goroutine sends
	s.answered.Store(s.received.Load())
	s.isPeer(in.Peer, in.Local)
	if s.endpoint.onHello != nil {
		s.endpoint.onHello(s.id, in.Peer)
	}
}
