package tcpdelay

import (
	"bufio"
	"cmp"
	"flag"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/load/loadcontrol"
	"oneway.example/exporter/load/traffictypes/tcptraffic"
	"oneway.example/tests/lab"
	"oneway.example/tests/loadsite"
	"oneway.example/tests/tcplog"
)

var ackRuns = flag.Int("ack.runs", 0, "runs over each link of the test of ACK inter-arrival; 0: one over the first two")

// A difference of inter-arrival times may be this large in the median, and in 95 %.
const (
	ackMedian = 50 * time.Microsecond
	ackMost   = 500 * time.Microsecond
)

// The inter-arrival times of acknowledgments are those that tshark has captured at the sending host in the same run.
func TestACKInterArrivalIsThatOfACapture(t *testing.T) {
	for _, name := range []string{"dumpcap", "tshark"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skipf("SKIPPED, NOT PASSED: %v (package tshark)", err)
		}
	}
	for i, c := range []struct {
		profile   string
		direction sample.Direction
	}{{"wibro-tcp", sample.Reverse}, {"wibro-tcp", sample.Forward}, {"wimax-calgary", sample.Reverse}} {
		if *ackRuns == 0 && i >= 2 {
			break
		}
		profile, err := lab.LoadProfile(c.profile)
		if err != nil {
			t.Fatal(err)
		}
		for run := range max(1, *ackRuns) {
			const rounds = 5
			for round := 1; ; round++ {
				r := captured(t, c.direction, profile, uint64(1+run*rounds+round))
				t.Logf("%s, %s, run %d, round %d: %s", c.profile, c.direction, 1+run, round, r)
				if r.late() && round < rounds { // the lab's log shows that it was
					t.Logf("the host was late: once more")
					continue
				}
				r.judge(t)
				break
			}
		}
	}
}

// ackRun are the acknowledgments of one run.
type ackRun struct {
	bursts int
	// errors are differences of inter-arrival times, gaps these times by the capture.
	errors, gaps []time.Duration
	// after are the times from the capture to the stamp. Of these, outside are not within its bound, and slow are within it as
	// the link's system call took longer than processing takes.
	after         []time.Duration
	outside, slow int
	// unknown acknowledgments are not in the capture; of all in the capture, missed are not recorded.
	unknown, missed int
	// width are the times that the link's system calls took to forward acknowledgments.
	width []time.Duration
}

func (r *ackRun) String() string {
	const format = "%d inter-arrival times in %d bursts, median %v by the capture; errors: median %v, 95 %% %v, most %v; " +
		"stamps after the capture: median %v, most %v, %d not within the bound, %d in a slow call; %d unknown, %d missed; the link took %v in 95 %%"
	return fmt.Sprintf(format, len(r.errors), r.bursts, ofRank(r.gaps, 0.5), ofRank(r.errors, 0.5), ofRank(r.errors, 0.95), ofRank(r.errors, 1), ofRank(r.after, 0.5), ofRank(r.after, 1), r.outside, r.slow, r.unknown, r.missed, ofRank(r.width, 0.95))
}

// late reports whether the link itself forwarded acknowledgments with a delay that is near what the test allows.
func (r *ackRun) late() bool { return ofRank(r.width, 0.95) > ackMost/2 }

func (r *ackRun) judge(t *testing.T) {
	t.Helper()
	if len(r.errors) < 50 || r.unknown > 0 || r.missed > len(r.errors)/20 {
		t.Errorf("%d inter-arrival times, %d unknown and %d missed acknowledgments", len(r.errors), r.unknown, r.missed)
	}
	if m, most := ofRank(r.errors, 0.5), ofRank(r.errors, 0.95); m > ackMedian || most > ackMost {
		t.Errorf("errors: median %v, 95 %% %v; want at most %v and %v", m, most, ackMedian, ackMost)
	}
	if r.outside > len(r.after)/100 {
		t.Errorf("%d of %d stamps are not within their bound", r.outside, len(r.after))
	}
}

func ofRank(v []time.Duration, rank float64) time.Duration {
	if len(v) == 0 {
		return 0
	}
	v = slices.Clone(v)
	slices.Sort(v)
	return v[int(math.Ceil(rank*float64(len(v)-1)))]
}

// captured does a stamped transfer over a link with a capture at the sending host.
func captured(t *testing.T, d sample.Direction, p lab.Profile, seed uint64) *ackRun {
	t.Helper()
	client, _ := lab.Addresses()
	l := lab.Start(t, lab.Options{Profile: p, Seed: seed, Segments: tcplog.Segments(client, loadcontrol.DefaultPort)})
	s := loadsite.Between(t, binary, l.Client, l.Server, l.Server.Addr4)
	s.Network = l
	sender := l.Client
	if d == sample.Reverse {
		sender = l.Server
	}
	file := filepath.Join(t.TempDir(), "capture")
	stop := dumpcap(t, sender, file)
	result := perform(t, s, tcptraffic.Plan{
		Direction: d, Flows: []tcptraffic.Flow{{MessageBytes: 64 << 10}}, Duration: 4 * time.Second, Most: 1 << 29,
		Interval: 100 * time.Millisecond, Idle: 10 * time.Second, Stamps: true,
	})
	stop()
	s.Drained(t)
	var exits []lab.Interval
	for _, one := range l.Log(1 - d) {
		if tcplog.Is(&one) && one.Outcome == lab.Delivered {
			exits = append(exits, one.Exit)
		}
	}
	return compareAcks(t, d, result, acknowledged(t, file, sender.Addr4.String()), exits)
}

// compareAcks compares the recorded acknowledgments with the captured ones, which are the times by offset of the connection.
// The kernel captures a segment, and TCP processes it, in the link's system call that forwards it: exits are their times in order.
func compareAcks(t *testing.T, d sample.Direction, result *tcptraffic.Result, all map[int64]instant.Time, exits []lab.Interval) *ackRun {
	t.Helper()
	before := int64(0)
	if d == sample.Forward {
		before = proof
	}
	r := &ackRun{}
	for _, e := range exits {
		r.width = append(r.width, e.Before.Sub(e.After))
	}
	acks := result.Sender[0].Acks
	for i, a := range acks {
		at, ok := all[a.Offset+before]
		if !ok {
			r.unknown++
			t.Logf("no acknowledgment of %d is in the capture", a.Offset)
			continue
		}
		after := a.At.Sub(at)
		r.after = append(r.after, after)
		const processing = 100 * time.Microsecond // from the capture to TCP
		switch early := a.At.Add(-a.Early - processing); {
		case after < -time.Microsecond, early > at && early > forwarded(exits, at):
			r.outside++
		case early > at:
			r.slow++
		}
		if i == 0 || acks[i-1].Burst != a.Burst {
			r.bursts++
			continue
		}
		last := acks[i-1]
		if earlier, ok := all[last.Offset+before]; ok {
			gap := at.Sub(earlier)
			r.gaps = append(r.gaps, gap)
			r.errors = append(r.errors, (a.At.Sub(last.At) - gap).Abs())
		}
		for offset := range all {
			if offset > last.Offset+before && offset < a.Offset+before {
				r.missed++
			}
		}
	}
	return r
}

// forwarded returns the end of the system call in which a segment was captured; zero: none is known.
func forwarded(exits []lab.Interval, at instant.Time) instant.Time {
	for _, e := range exits {
		if e.After <= at && at <= e.Before {
			return e.Before
		}
	}
	return 0
}

// dumpcap captures at a host until the returned function is called.
func dumpcap(t *testing.T, at *lab.Host, file string) (stop func()) {
	t.Helper()
	cmd := at.Command("dumpcap", "-q", "-i", "wan0", "-f", "tcp", "-s", "120", "-B", "32", "-w", file)
	messages, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(messages)
	for lines.Scan() && !strings.HasPrefix(lines.Text(), "File:") { // it captures from then on
		t.Log(lines.Text())
	}
	rest := make(chan string, 1)
	go func() {
		var all strings.Builder
		for lines.Scan() {
			fmt.Fprintln(&all, lines.Text())
		}
		rest <- all.String()
	}()
	return func() {
		_ = cmd.Process.Signal(os.Interrupt) // it then writes how many packets it captured and dropped
		text := <-rest
		if err := cmd.Wait(); err != nil || !strings.Contains(text, "/0 (") {
			t.Errorf("dumpcap: %v: %s", err, text)
		}
	}
}

// acknowledged returns when the sending host received the first acknowledgment of each offset that advanced, of the
// connection with most segments, by tshark.
func acknowledged(t *testing.T, file, sender string) map[int64]instant.Time {
	t.Helper()
	out, err := exec.Command("tshark", "-n", "-r", file, "-Y", "tcp.flags.ack == 1 && ip.dst == "+sender, "-T", "fields",
		"-e", "tcp.stream", "-e", "frame.time_epoch", "-e", "tcp.ack").Output()
	if err != nil {
		t.Fatalf("tshark: %v", err)
	}
	type ack struct {
		at     instant.Time
		offset int64
	}
	streams := map[string][]ack{}
	for line := range strings.Lines(string(out)) {
		f := strings.Fields(line)
		if len(f) != 3 {
			t.Fatalf("tshark printed %q", line)
		}
		seconds, fraction, _ := strings.Cut(f[1], ".")
		s, err1 := strconv.ParseInt(seconds, 10, 64)
		ns, err2 := strconv.ParseInt((fraction + "000000000")[:9], 10, 64)
		number, err3 := strconv.ParseInt(f[2], 10, 64)
		if err := cmp.Or(err1, err2, err3); err != nil {
			t.Fatalf("tshark printed %q: %v", line, err)
		}
		streams[f[0]] = append(streams[f[0]], ack{instant.FromUnix(s, ns), number - 1}) // the SYN has number 0
	}
	var most []ack
	for _, s := range streams {
		if len(s) > len(most) {
			most = s
		}
	}
	first, highest := map[int64]instant.Time{}, int64(0)
	for _, a := range most {
		if a.offset > highest {
			highest = a.offset
			first[a.offset] = a.at
		}
	}
	return first
}
