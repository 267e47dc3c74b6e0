package soak

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"oneway.example/exporter/core/hostport"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/net/wire/stampfmt"
	"oneway.example/tests/await"
	"oneway.example/tests/lab"
	"oneway.example/tests/testpacket"
)

// The paths: most have a packet a second, voices one each 20 ms. The size of a path's packets is
// its own, by which the link tells whose they are: smallest and the path's number. The link
// does not read authenticated ones.
const (
	plain    = 900 // never removed, so that the link's counts are theirs
	signed   = 950 // those from plain on are authenticated
	moving   = 1000
	voices   = moving + 5 // the last two of them are authenticated
	smallest = 172

	loadServerPort = hostport.LoadServer
)

// site is a link, the agent of 1,000 paths on its client, and one with reflector and load server on
// its server.
type site struct {
	t       *testing.T
	random  *rand.Rand // of the goroutine that makes the faults
	network *lab.Lab
	dir     string
	client  *agent
	server  atomic.Pointer[agent]
	// said are the last words of servers that were killed.
	said []string
	pin  string
	// readOnly says why the state directory cannot be made read-only here.
	readOnly error

	mu sync.Mutex
	// faults are all so far; the end of one under way is zero.
	faults []event
	// gaps are the packets that entered while the server was stopped, with what it may not
	// have reported before, by path.
	gaps map[uint64]uint64
}

// event is a fault and its time.
type event struct {
	name       string
	begin, end time.Time
}

func newSite(t *testing.T, seed uint64) *site {
	t.Helper()
	s := &site{t: t, dir: t.TempDir(), random: rand.New(rand.NewPCG(seed, 0)), gaps: map[uint64]uint64{}}
	s.network = lab.Start(t, lab.Options{Profile: lab.Profile{Name: "soak", Forward: clean(), Reverse: clean()}, Seed: seed, Classifier: classify, CountKeys: true})
	s.write("stamp.key", "a key of a test, and no secret\n")
	out, err := exec.Command(binary, "token", "new", "--name=soak", "--file="+filepath.Join(s.dir, "tokens")).Output()
	if err != nil {
		t.Fatal(err)
	}
	token, _, _ := strings.Cut(string(out), "\n")
	s.write("token", token+"\n")
	s.mount("state-client")
	s.mount("state-server")
	s.write("server.yml", fmt.Sprintf("clock: {source: static, bound: 1ms}\nstate_dir: state-server\nreflector: {listen: [%q], key_file: stamp.key}\n"+
		"load_server: {listen: [%q], tokens_file: tokens}\n", s.at(stampfmt.Port), s.at(loadServerPort)))
	s.startServer()
	await.That(t, "the load server's pin", func() bool {
		_, rest, ok := strings.Cut(s.server.Load().Stderr.String(), "pin=")
		s.pin, _, _ = strings.Cut(rest, "\n")
		s.pin, _, _ = strings.Cut(s.pin, " ")
		return ok
	})
	s.configure(moving)
	s.client = startAgent(t, s.network.Client, filepath.Join(s.dir, "client.yml"))
	return s
}

// mount makes a state directory a mount of its own, which can be made read-only: a mode keeps
// nobody from writing who is root.
func (s *site) mount(name string) {
	dir := filepath.Join(s.dir, name)
	if err := os.Mkdir(dir, 0o700); err != nil {
		s.t.Fatal(err)
	}
	if err := unix.Mount(dir, dir, "", unix.MS_BIND, ""); err != nil {
		s.readOnly = fmt.Errorf("mount: %w", err)
		return
	}
	s.t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			s.t.Error(err)
		}
	})
}

// clean is either direction of the link without a fault.
func clean() lab.Link { return lab.Link{Rate: 40e6, Delay: 10 * time.Millisecond} }

func (s *site) startServer() {
	s.server.Store(startAgent(s.t, s.network.Server, filepath.Join(s.dir, "server.yml")))
}

func (s *site) at(port uint16) string {
	return netip.AddrPortFrom(s.network.Server.Addr4, port).String()
}

func (s *site) write(name, content string) {
	if err := os.WriteFile(filepath.Join(s.dir, name), []byte(content), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// name is that of a path by its number.
func name(i int) string { return "path-" + strconv.Itoa(i) }

// configure writes the client's configuration with so many of the paths up to moving, and all voices.
func (s *site) configure(n int) {
	var b strings.Builder
	b.WriteString("clock: {source: static, bound: 1ms}\nstate_dir: state-client\nlinks: [{name: uplink, quota_bytes: 100GB}]\npaths:\n")
	for i := range voices {
		if i >= n && i < moving {
			continue
		}
		more := ""
		if i >= plain && i < signed || i >= voices-2 {
			more += ", key_file: stamp.key"
		}
		if i >= moving {
			more += ", interval: 20ms"
		}
		fmt.Fprintf(&b, "  - {name: %s, peer: %q, probes: [{type: stamp, payload_bytes: %d%s}]}\n", name(i), s.at(stampfmt.Port), smallest+i, more)
	}
	fmt.Fprintf(&b, "  - {name: load, peer: %q, probes: [{type: saturation, every: 1m, link: uplink, load_server: %q, token_file: token, pin: %q, "+
		"rate: {forward: 5Mbit, reverse: 5Mbit}, duration: 1s, skip: 200ms, drain_timeout: 2s, idle: {duration: 200ms, interval: 20ms}}]}\n",
		s.network.Server.Addr4, s.at(loadServerPort), s.pin)
	s.write("client.yml", b.String())
}

// classify counts a path's packets by its number: those of a size that only it has.
func classify(payload []byte, src, dst netip.AddrPort) (path uint64, ok bool) {
	i := len(payload) - smallest
	if i < 0 || i >= voices || src.Port() != stampfmt.Port && dst.Port() != stampfmt.Port {
		return 0, false
	}
	_, ok = testpacket.STAMP(payload)
	return uint64(i), ok
}

// unsharedPaths are the paths whose counts of the link are theirs alone: neither removed nor authenticated.
func unsharedPaths() (all []int) {
	for i := range voices - 2 {
		if i < plain || i >= moving {
			all = append(all, i)
		}
	}
	return all
}

// truth is what the link has counted, by direction and path.
func (s *site) truth() (all [2]map[uint64]lab.Counts) {
	for i, d := range sample.Directions() {
		all[i] = s.network.KeyCounts(d)
	}
	return all
}

// pause waits, as long as the test is not over.
func (s *site) pause(d time.Duration) {
	select {
	case <-time.After(d):
	case <-s.t.Context().Done():
	}
}

// between is a time by chance.
func (s *site) between(least, most time.Duration) time.Duration {
	return least + time.Duration(s.random.Int64N(int64(most-least)))
}

// fault makes one, and keeps its time.
func (s *site) fault(f fault) {
	s.mu.Lock()
	s.faults = append(s.faults, event{name: f.name, begin: time.Now()})
	i := len(s.faults) - 1
	s.mu.Unlock()
	what := f.make(s)
	s.mu.Lock()
	defer s.mu.Unlock()
	e := &s.faults[i]
	e.end = time.Now()
	s.t.Logf("%s %s for %v %s", e.begin.Format(time.TimeOnly), f.name, e.end.Sub(e.begin).Round(10*time.Millisecond), what)
}

// disturbed tells whether a fault that a name begins with, "" for any, was under way in a time, or
// had ended less than after before.
func (s *site) disturbed(name string, begin, end time.Time, after time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.faults {
		if strings.HasPrefix(e.name, name) && e.begin.Before(end) && (e.end.IsZero() || e.end.Add(after).After(begin)) {
			return true
		}
	}
	return false
}
