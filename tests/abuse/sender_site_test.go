package abuse

import (
	"cmp"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"oneway.example/exporter/clocks/static"
	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/net/sched"
	"oneway.example/exporter/net/wire/stampfmt"
	"oneway.example/exporter/net/wire/timefmt"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/probes/stamp"
	"oneway.example/exporter/reflector"
	"oneway.example/tests/standstill"
	"oneway.example/tests/testbed"
)

// senders is what all STAMP senders share.
type senders struct {
	env     probe.Env
	kind    *stamp.Type
	keyFile string
	key     *stampfmt.Key
}

func newSenders(t *testing.T, sink metric.Sink) *senders {
	t.Helper()
	pacer, err := sched.NewPacer()
	if err != nil {
		t.Fatal(err)
	}
	clock := static.New(50*time.Microsecond, metric.Discard{})
	testbed.Background(t, pacer.Run)
	testbed.Background(t, clock.Run)
	const secret = "a secret of both ends, not of the attacker"
	s := &senders{
		env:  probe.Env{Log: slog.New(slog.DiscardHandler), Sink: sink, Clock: clock, Pacer: pacer},
		kind: stamp.NewType(), keyFile: filepath.Join(t.TempDir(), "key"), key: stampfmt.NewKey([]byte(secret)),
	}
	if err := os.WriteFile(s.keyFile, []byte(secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return s
}

// remote is one kind of path: its reflector, and its packets.
type remote struct {
	reflector     string // oneway, stateless, or stateful: another implementation that numbers its replies
	authenticated bool
	host          string
	size          int
}

// start runs the reflector and, where an attacker is on the path, the tamperer.
func (f remote) start(t *testing.T, s *senders, m *tamperer) (peer string, o stamp.Options) {
	t.Helper()
	o = stamp.DefaultOptions()
	o.Size = f.size
	if m.authenticated = f.authenticated; f.authenticated {
		o.KeyFile = s.keyFile
	}
	m.open(t, netip.MustParseAddr(f.host), f.serve(t, s, m))
	return m.local.LocalAddr().String(), o
}

func (f remote) serve(t *testing.T, s *senders, m *tamperer) netip.AddrPort {
	t.Helper()
	at := netip.AddrPortFrom(netip.MustParseAddr(f.host), 0)
	if f.reflector == "stateful" {
		remote := &foreign{tamperer: m}
		if f.authenticated {
			remote.key = s.key.Clone()
		}
		return remote.serve(t, at)
	}
	ro := reflector.Options{Listen: []netip.AddrPort{at}, Stateless: f.reflector == "stateless", RatePackets: -1}
	if f.authenticated {
		ro.Keys, ro.RequireKey = []*stampfmt.Key{s.key.Clone()}, true
	}
	r, err := reflector.New(ro, reflector.Env{Log: s.env.Log, Sink: metric.Discard{}, Clock: s.env.Clock})
	if err != nil {
		t.Fatal(err)
	}
	testbed.Background(t, r.Run)
	<-r.Started()
	return r.Addrs()[0]
}

// tamperer is on the path; its packets come from the reflector's address, like those of a spoofer.
type tamperer struct {
	authenticated bool
	// forge returns the packets to send to the sender before its request is forwarded; pass, if set, decides whether it
	// is.
	forge func(q stampfmt.SenderPacket, number int) [][]byte
	pass  func(number int) bool
	// renumber, if set, returns the next number of the foreign reflector.
	renumber func(number int, next uint32) uint32
	hold     time.Duration // delay of the foreign reflector's replies

	local, remote *net.UDPConn

	mu      sync.Mutex
	sender  netip.AddrPort
	longest time.Duration // from a request's T1 until its reply was forwarded
	replies [][]byte      // all that were forwarded
}

func listen(t *testing.T, at netip.AddrPort) *net.UDPConn {
	t.Helper()
	c, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(at))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (m *tamperer) open(t *testing.T, host netip.Addr, to netip.AddrPort) {
	t.Helper()
	m.local = listen(t, netip.AddrPortFrom(host, 0))
	var err error
	if m.remote, err = net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(to)); err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(m.requests)
	running.Go(m.backwards)
	t.Cleanup(func() {
		m.local.Close()
		m.remote.Close()
		running.Wait()
	})
}

func (m *tamperer) requests() {
	b := make([]byte, 1<<16)
	for number := 0; ; number++ {
		n, from, err := m.local.ReadFromUDPAddrPort(b)
		if err != nil {
			return
		}
		m.mu.Lock()
		m.sender = from
		m.mu.Unlock()
		q, err := m.parse(b[:n])
		if err != nil {
			continue
		}
		if m.forge != nil {
			for _, forged := range m.forge(q, number) {
				_, _ = m.local.WriteToUDPAddrPort(forged, from)
			}
		}
		if m.pass == nil || m.pass(number) {
			_, _ = m.remote.Write(b[:n])
		}
	}
}

func (m *tamperer) backwards() {
	b := make([]byte, 1<<16)
	for {
		n, err := m.remote.Read(b)
		if err != nil {
			return
		}
		m.mu.Lock()
		to := m.sender
		m.replies = append(m.replies, append([]byte(nil), b[:n]...))
		m.mu.Unlock()
		_, _ = m.local.WriteToUDPAddrPort(b[:n], to)
		m.forwarded(b[:n])
	}
}

// forwarded notes how long after its request a reply was forwarded: this host runs the reflector, too.
func (m *tamperer) forwarded(reply []byte) {
	_, t1, ok := stampfmt.ParseEcho(reply, m.authenticated)
	if !ok {
		return
	}
	now := instant.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.longest = max(m.longest, now.Sub(timefmt.NTP.Decode(t1, 0, now)))
}

// inTime ends the test if this host stood still and forwarded a reply after the loss timeout: its packet is lost by definition.
func (m *tamperer) inTime(t *testing.T, timeout time.Duration, still standstill.Standstills) {
	t.Helper()
	m.mu.Lock()
	longest := m.longest
	m.mu.Unlock()
	if longest > timeout && still.Total > timeout/2 {
		standstill.CannotTell(t, still, fmt.Sprintf("a reply was forwarded %v after its request, later than the loss timeout of %v", longest, timeout))
	}
}

// recorded is an earlier reply.
func (m *tamperer) recorded(i int) []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	if i >= len(m.replies) {
		return nil
	}
	return m.replies[i]
}

func (m *tamperer) parse(b []byte) (stampfmt.SenderPacket, error) {
	if m.authenticated {
		return stampfmt.ParseSenderUnverified(b)
	}
	return stampfmt.ParseSender(b)
}

// replyTo is the reply of a reflector without TLVs; key is nil if unauthenticated.
func replyTo(q stampfmt.SenderPacket, number uint32, key *stampfmt.Key) []byte {
	now := timefmt.NTP.Encode(instant.Now(), 0)
	p := stampfmt.ReflectorPacket{
		Seq: number, T2: now, T3: now, SSID: q.SSID, Error: timefmt.MakeErrorEstimate(50*time.Microsecond, true, timefmt.NTP),
		SenderSeq: q.Seq, SenderT1: q.T1, SenderError: q.Error, SenderTTL: 255,
	}
	if key != nil {
		return p.AppendAuthenticatedTo(nil, key)
	}
	return p.AppendTo(nil)
}

// forged is a reply of an attacker without a key.
func (m *tamperer) forged(q stampfmt.SenderPacket, number uint32) []byte {
	if m.authenticated {
		return replyTo(q, number, newKey("guessed"))
	}
	return replyTo(q, number, nil)
}

// foreign is a reflector of RFC 8762 alone that numbers its replies.
type foreign struct {
	*tamperer
	key *stampfmt.Key // nil: unauthenticated
}

func (f *foreign) serve(t *testing.T, at netip.AddrPort) netip.AddrPort {
	t.Helper()
	conn := listen(t, at)
	type reply struct {
		b  []byte
		to netip.AddrPort
		at time.Time
	}
	held := make(chan reply, 10_000)
	var running sync.WaitGroup
	running.Go(func() {
		for a := range held {
			time.Sleep(time.Until(a.at)) // this is the path's delay
			_, _ = conn.WriteToUDPAddrPort(a.b, a.to)
		}
	})
	running.Go(func() {
		defer close(held)
		b, next := make([]byte, 1<<16), uint32(0)
		for number := 0; ; number++ {
			n, from, err := conn.ReadFromUDPAddrPort(b)
			if err != nil {
				return
			}
			q, err := f.parse(b[:n])
			if err != nil {
				continue
			}
			if f.renumber != nil {
				next = f.renumber(number, next)
			}
			held <- reply{replyTo(q, next, f.key), from, time.Now().Add(f.hold)}
			next++
		}
	})
	t.Cleanup(func() { conn.Close(); running.Wait() })
	return conn.LocalAddr().(*net.UDPAddr).AddrPort()
}

// wantBooks expects every packet of both directions in exactly one count.
func wantBooks(t *testing.T, r stamp.Report) {
	t.Helper()
	for name, d := range map[string]stamp.DirectionReport{"forward": r.Forward, "reverse": r.Reverse} {
		if d.Lost == nil {
			continue
		}
		if dropped, undecided := cmp.Or(d.HostDropped, new(uint64)), cmp.Or(d.Undecided, new(uint64)); *d.Sent != *d.Received+*d.Lost+*dropped+*undecided+*d.Outstanding || *d.Outstanding != 0 {
			t.Errorf("%s: sent %d, received %d, lost %d, dropped %d, outstanding %d", name, *d.Sent, *d.Received, *d.Lost, *dropped, *d.Outstanding)
		}
	}
}
