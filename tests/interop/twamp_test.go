package interop

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"oneway.example/exporter/probe"
	"oneway.example/exporter/probes/stamp"
	"oneway.example/exporter/reflector"
	"oneway.example/tests/testseed"
)

// paddings are what RFC 5357 section 4.2.1 and RFC 6038 permit a Session-Reflector, and what twampy sends. Replies are as long
// as requests or not.
func paddings(rng *rand.Rand) map[string]func(q []byte) []byte {
	random := noise(rng, 10_000)
	of := func(n int) []byte { return random[:n:n] }
	all := map[string]func(q []byte) []byte{
		"none":   func([]byte) []byte { return nil },
		"random": func(q []byte) []byte { return of(len(q) - reflectorBytes) },
		"ones":   func(q []byte) []byte { return bytes.Repeat([]byte{0xff}, len(q)-reflectorBytes) },
		"zeros":  func(q []byte) []byte { return make([]byte, len(q)-reflectorBytes) },
		"the sender's": func(q []byte) []byte {
			return q[senderBytes : senderBytes+len(q)-reflectorBytes]
		},
		"the request's end":                        func(q []byte) []byte { return q[reflectorBytes:] },
		"the sender's whole padding, longer reply": func(q []byte) []byte { return q[senderBytes:] },
		"4 bytes of the server, the request":       func(q []byte) []byte { return append([]byte{1, 2, 3, 4}, q...) },
	}
	for _, n := range []int{1, 2, 3, 5, 97, 197, 1400, 9500} {
		all[fmt.Sprintf("%d zeros", n)] = func([]byte) []byte { return make([]byte, n) }
		all[fmt.Sprintf("%d random bytes", n)] = func([]byte) []byte { return of(n) }
	}
	return all
}

func TestTWAMPLightReflectorRepliesToOurSender(t *testing.T) {
	cases := []struct {
		at        string
		stateless bool
		size      int // 0: the default
	}{{"::1", true, 0}, {"127.0.0.1", false, 44}, {"127.0.0.1", true, 500}}
	all := paddings(rand.New(rand.NewPCG(testseed.Of(t), 1)))
	for i, name := range slices.Sorted(maps.Keys(all)) {
		padding, usual := all[name], cases[0]
		usual.at, usual.stateless = "127.0.0.1", false
		for _, c := range append(cases[i%len(cases):][:1:1], usual) {
			t.Run(fmt.Sprintf("%s/%s/%d", name, c.at, c.size), func(t *testing.T) {
				t.Parallel()
				f := remote{address: c.at, stateful: !c.stateless, format: "NTP", ours: "ntp"}
				checkTWAMP(t, f, "padding: "+name, c.size, twampReflector{padding: padding, stateless: c.stateless})
			})
		}
	}
}

// TestTwampysReflectorIsMeasuredOrRefusedWithItsLength: its replies have 38 bytes and as many zeros as --padding says, 0 by
// default.
func TestTwampysReflectorIsMeasuredOrRefusedWithItsLength(t *testing.T) {
	none := func([]byte) []byte { return nil }
	for _, padding := range []int{3, 8, 100, 200, 514, 1438} {
		f := remote{address: "127.0.0.1", stateful: true, format: "NTP", ours: "ntp"}
		checkTWAMP(t, f, fmt.Sprintf("twampy reflector --padding %d", padding), 0, twampReflector{padding: none, bytes: 38 + padding})
	}
	peer := twampReflector{padding: none, bytes: 38}.start(t, "127.0.0.1")
	r, err := measure(t, newEnv(t), peer, quick(), 20)
	if !errors.Is(err, probe.ErrNoReply) || !strings.Contains(err.Error(), "replies of 38 bytes, at least 41 are needed") || r.Discarded["short"] < 20 {
		t.Errorf("%v; discarded %v", err, r.Discarded)
	}
}

// checkTWAMP measures to a TWAMP-Light reflector, and checks the report.
func checkTWAMP(t *testing.T, f remote, what string, size int, r twampReflector) {
	t.Helper()
	o := quick()
	o.Size = size
	const count = 40
	report, err := measure(t, newEnv(t), r.start(t, f.address), o, count)
	if err != nil {
		t.Fatalf("%s: %v\n%s", what, err, asJSON(report))
	}
	results.add(t, line{
		asks: "oneway", replies: "RFC 5357", what: fmt.Sprintf("%v, %s", f, what), sent: fmt.Sprint(*report.Forward.Sent),
		answered: fmt.Sprint(report.RoundTrip.Received), forward: show(report.Forward.Delay), reverse: show(report.Reverse.Delay),
	})
	if *report.Forward.Sent != count || report.RoundTrip.Received != count || report.RoundTrip.Lost != 0 || len(report.Discarded) > 0 {
		t.Errorf("%s: not every packet got a reply: %s", what, asJSON(report))
	}
	checkKind(t, f.stateful, report)
}

// TestProbesToOneTWAMPLightReflectorAreToldApart: it has no session identifiers, and numbers the replies to both together.
func TestProbesToOneTWAMPLightReflectorAreToldApart(t *testing.T) {
	peer := twampReflector{padding: func(q []byte) []byte { return q[reflectorBytes:] }}.start(t, "127.0.0.1")
	env, kind := newEnv(t), stamp.NewType()
	reports, errs := make([]stamp.Report, 3), make([]error, 3)
	ended := make(chan int)
	for i := range reports {
		o := quick()
		o.Interval, o.DSCP = time.Duration(2+i)*time.Millisecond, 10*i
		p, err := kind.NewProber(env, probe.Target{Path: fmt.Sprint("p", i), Probe: "stamp", Peer: peer}, o)
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			reports[i], errs[i] = p.Measure(t.Context(), 300, func(stamp.Report) {})
			ended <- i
		}()
	}
	for range reports {
		<-ended
	}
	for i, r := range reports {
		if errs[i] != nil || r.RoundTrip.Received != 300 || r.RoundTrip.Lost != 0 || len(r.Discarded) > 0 || r.Reverse.Lost != nil && *r.Reverse.Lost != 0 {
			t.Errorf("probe %d: %v %s", i, errs[i], asJSON(r))
		}
	}
}

func TestOurReflectorRepliesToATWAMPLightSender(t *testing.T) {
	rng := rand.New(rand.NewPCG(testseed.Of(t), 2))
	for _, at := range []string{"127.0.0.1", "::1"} {
		for _, short := range []bool{false, true} {
			o := reflector.Options{ShortRequests: short, Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}}
			peer, _ := local{options: o}.serve(t, at)
			for name, padding := range map[string]func(n int) []byte{
				"zeros": func(n int) []byte { return make([]byte, n) }, "random": func(n int) []byte { return noise(rng, n) },
				"ones": func(n int) []byte { return bytes.Repeat([]byte{0xff}, n) },
			} {
				s := newTwampSender(t, peer)
				sent := 0
				for _, n := range []int{0, 1, 2, 8, 26, 27, 28, 29, 30, 31, 64, 100, 534, 1400} {
					if n < 27 && !short {
						continue
					}
					want := senderBytes + n
					if short {
						want = max(want, 44) // the base packet of RFC 8762
					}
					for range 5 {
						sent++
						if err := s.ask(padding(n), want); err != nil {
							t.Fatalf("%s, short requests %v, %d %s: %v", at, short, n, name, err)
						}
					}
				}
				results.add(t, line{
					asks: "RFC 5357", replies: "oneway", what: fmt.Sprintf("%s, short requests %v, padding: %s", at, short, name),
					sent: fmt.Sprint(sent), answered: fmt.Sprint(s.next), forward: "-", reverse: "-",
				})
			}
		}
	}
}

// TestShortRequestsGetNoReplyByDefault: a longer reply would amplify what spoofed senders send.
func TestShortRequestsGetNoReplyByDefault(t *testing.T) {
	peer, _ := local{}.serve(t, "127.0.0.1")
	conn, err := net.Dial("udp", peer.String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for n := range 27 {
		if _, err := conn.Write(twampRequest(uint32(n), make([]byte, n))); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := conn.Write(twampRequest(99, make([]byte, 27))); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 100)
	if err := conn.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	// Packets stay in order on loopback: a reply to a short request would be first.
	if n, err := conn.Read(b); err != nil || n != 41 || b[27] != 99 {
		t.Errorf("read %d bytes, %v: % x, want the reply to request 99", n, err, b[:n])
	}
}
