package interop

import (
	"fmt"
	"net/netip"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"oneway.example/exporter/probes/stamp"
	"oneway.example/tests/freeport"
)

// remote is one way to run stamp-suite as a reflector, with oneway as its sender.
type remote struct {
	address       string
	stateful      bool
	authenticated bool
	format        string // of its timestamps: NTP or PTP
	ours          string // of oneway's: ntp or ptp
}

func (f remote) String() string {
	words := []string{"stateless", "open", f.ours + "-" + f.format, f.address}
	if f.stateful {
		words[0] = "stateful"
	}
	if f.authenticated {
		words[1] = "authenticated"
	}
	return strings.Join(words, "/")
}

// remoteBound is the configured error of the suite's clock, as 2^(scale-32) s: it takes T3 in user space before it
// writes the packet, which a busy machine delays by milliseconds.
const (
	remoteScale = 22
	remoteBound = time.Second >> (32 - remoteScale)
)

// start runs the suite and returns its address, and the sender's options.
func (f remote) start(t *testing.T, more ...string) (peer string, o stamp.Options) {
	t.Helper()
	path := requireSuite(t)
	at := netip.MustParseAddr(f.address)
	port := freeport.Port(t)
	args := []string{
		"-i", "-S", f.address, "-o", strconv.Itoa(int(port)), "-K", f.format,
		"--clock-synchronized", "--error-scale", strconv.Itoa(remoteScale), "--error-multiplier", "1",
	}
	o = quick()
	o.TimestampFormat = f.ours
	// The suite's PTP timestamps count UTC seconds, not TAI's ("zero for this suite's UTC clocks" by its help).
	o.TAIOffset = 0
	if f.stateful {
		args = append(args, "--stateful-reflector")
	}
	if f.authenticated {
		key := writeSecret(t)
		o.KeyFile = key.ours
		args = append(args, "-A", "A", "--hmac-key-file", key.theirs, "--require-hmac", "--verify-tlv-hmac")
	}
	serve(t, exec.Command(path, append(args, more...)...))
	return netip.AddrPortFrom(at, port).String(), o
}

func TestStampSuiteRepliesToOurSender(t *testing.T) {
	requireSuite(t)
	for _, address := range []string{"127.0.0.1", "::1"} {
		for _, stateful := range []bool{false, true} {
			for _, authenticated := range []bool{false, true} {
				for _, formats := range [][2]string{{"NTP", "ntp"}, {"PTP", "ptp"}, {"NTP", "ptp"}, {"PTP", "ntp"}} {
					f := remote{address, stateful, authenticated, formats[0], formats[1]}
					t.Run(f.String(), func(t *testing.T) {
						peer, o := f.start(t)
						checkAnswered(t, f, peer, o)
					})
				}
			}
		}
	}
}

func TestStampSuiteRepliesToOurPacketsOfEverySize(t *testing.T) {
	requireSuite(t)
	for _, authenticated := range []bool{false, true} {
		f := remote{"127.0.0.1", true, authenticated, "NTP", "ntp"}
		sizes := []int{44, 48, 64, 68, 120, 140, 143, 172, 500, 1472, 8972}
		if authenticated {
			sizes = []int{112, 132, 136, 152, 228, 260, 500, 1472, 8972}
		}
		peer, o := f.start(t)
		for _, size := range sizes {
			t.Run(fmt.Sprintf("authenticated=%v/%d", authenticated, size), func(t *testing.T) {
				o := o
				o.Size = size
				checkAnswered(t, f, peer, o)
			})
		}
	}
}

// checkAnswered measures and checks the report: all packets got replies, the kind of the reflector is recognized, each
// delay is possible, and no value is reported that a reflector of that kind does not provide.
func checkAnswered(t *testing.T, f remote, peer string, o stamp.Options) {
	t.Helper()
	const count = 60
	size := "default size"
	if o.Size > 0 {
		size = fmt.Sprintf("%d bytes", o.Size)
	}
	r, err := measure(t, newEnv(t), peer, o, count)
	if err != nil {
		t.Fatalf("%v\n%s", err, asJSON(r))
	}
	results.add(t, line{
		asks: "oneway", replies: "stamp-suite", what: fmt.Sprintf("%v, %s", f, size),
		sent: fmt.Sprint(*r.Forward.Sent), answered: fmt.Sprint(r.RoundTrip.Received),
		forward: show(r.Forward.Delay), reverse: show(r.Reverse.Delay),
	})
	if *r.Forward.Sent != count || r.RoundTrip.Received != count || r.RoundTrip.Lost != 0 || len(r.Discarded) > 0 {
		t.Errorf("not every packet got a reply: %s", asJSON(r))
	}
	checkKind(t, f.stateful, r)
	checkDelays(t, r)
}

// checkKind: a stateless reflector does not show where a packet was lost, so that the loss of each direction must be
// absent, not 0.
func checkKind(t *testing.T, stateful bool, r stamp.Report) {
	t.Helper()
	want := map[bool]string{false: "stateless", true: "stateful"}[stateful]
	if r.Reflector != want {
		t.Errorf("reflector is %q, want %q", r.Reflector, want)
	}
	for name, p := range map[string]*uint64{
		"forward duplicated": r.Forward.Duplicated, "forward reordered": r.Forward.Reordered,
		"forward late": r.Forward.Late, "forward corrupted": r.Forward.Corrupted,
	} {
		if p != nil {
			t.Errorf("%s is %d, want absent", name, *p)
		}
	}
	for name, d := range map[string]stamp.DirectionReport{"forward": r.Forward, "reverse": r.Reverse} {
		if stateful && (d.Lost == nil || *d.Lost != 0 || *d.Received != *d.Sent || *d.Outstanding != 0) {
			t.Errorf("%s: %s", name, asJSON(d))
		}
		if !stateful && (d.Lost != nil || d.Outstanding != nil) {
			t.Errorf("%s: loss is %s, want absent with a stateless reflector", name, asJSON(d))
		}
	}
}

// checkDelays: on one clock a delay is between zero and the round trip, within its bound.
func checkDelays(t *testing.T, r stamp.Report) {
	t.Helper()
	most := duration(*r.RoundTrip.Time.Max)
	for name, d := range map[string]stamp.DirectionReport{"forward": r.Forward, "reverse": r.Reverse} {
		if d.Delay == nil || len(d.Invalid) > 0 {
			t.Errorf("%s: no valid delay: %s", name, asJSON(d))
			continue
		}
		bound := duration(*d.Delay.ErrorBound)
		if bound < remoteBound || bound > remoteBound+5*time.Millisecond {
			t.Errorf("%s: bound %v, want at least the suite's own %v", name, bound, remoteBound)
		}
		if least := duration(*d.Delay.Min); least < -bound {
			t.Errorf("%s: smallest delay %v is below -%v", name, least, bound)
		}
		if v := duration(*d.Delay.Max); v > most+bound {
			t.Errorf("%s: largest delay %v, largest round trip %v, bound %v", name, v, most, bound)
		}
	}
}

func TestUnsynchronizedReflectorGivesNoDelayButARoundTrip(t *testing.T) {
	path := requireSuite(t)
	port := freeport.Port(t)
	serve(t, exec.Command(path, "-i", "-S", "127.0.0.1", "-o", strconv.Itoa(int(port))))
	r, err := measure(t, newEnv(t), fmt.Sprintf("127.0.0.1:%d", port), quick(), 20)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []stamp.DirectionReport{r.Forward, r.Reverse} {
		if d.Delay != nil || d.Invalid["remote_unsynchronized"] != 20 || d.PDV == nil {
			t.Errorf("%s", asJSON(d))
		}
	}
	if r.RoundTrip.Received != 20 || r.RoundTrip.Time == nil {
		t.Errorf("%s", asJSON(r.RoundTrip))
	}
}
