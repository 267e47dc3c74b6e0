package abuse

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"oneway.example/exporter/probes/stamp"
	"oneway.example/exporter/reflector"
	"oneway.example/tests/lab"
)

// spoofed is a reflector, the built program on a host of its own, that is flooded from
// addresses that nobody has, by a host that a known peer is on as well.
type spoofed struct {
	t       *testing.T
	net     *lab.Lab
	binary  string
	process *exec.Cmd
	said    said
	log     said
	frames  *frames
	spoofs  uint32 // addresses so far
}

// spoofedPort is the reflector's.
const spoofedPort = 8620

// startSpoofed starts the reflector with further arguments and variables of its environment.
func startSpoofed(t *testing.T, environment []string, args ...string) *spoofed {
	t.Helper()
	s := &spoofed{t: t, net: lab.Start(t, lab.Options{}), binary: buildProgram(t)}
	s.check(s.net.Server.Do(func() error { return routeAll("lan0", s.net.Client.LAN4) }))
	s.check(s.net.Client.Do(func() (err error) {
		s.frames, err = newFrames("lan0", s.net.Server.LAN4)
		return err
	}))
	t.Cleanup(func() { s.check(unix.Close(s.frames.fd)) })
	listen := netip.AddrPortFrom(s.net.Server.LAN4, spoofedPort).String()
	s.process = s.net.Server.Command(s.binary, append([]string{"reflect", "--listen", listen, "--clock=none"}, args...)...)
	s.process.Env = append(os.Environ(), environment...)
	s.process.Stdout, s.process.Stderr = &s.said, &s.log
	s.check(s.process.Start())
	t.Cleanup(func() { _ = s.process.Process.Kill(); _ = s.process.Wait() }) // it has ended, if the test has gone well
	if !within(20*time.Second, func() bool { return strings.Contains(s.said.String(), "answering") }) {
		t.Fatalf("the reflector does not answer: %s", &s.log)
	}
	return s
}

func (s *spoofed) check(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// routeAll sends what is for strangers to the neighbour, which drops it: it forwards nothing.
func routeAll(device string, via netip.Addr) error {
	link, err := netlink.LinkByName(device)
	if err != nil {
		return err
	}
	return netlink.RouteAdd(&netlink.Route{LinkIndex: link.Attrs().Index, Gw: via.AsSlice()})
}

// startProbe begins to measure as `oneway probe` does, from the host of the attacker.
func (s *spoofed) startProbe(count int) *exec.Cmd {
	s.t.Helper()
	cmd := s.net.Client.Command(s.binary, "probe", "--json", "--clock=none", "--timeout=1s", "--interval=10ms",
		fmt.Sprintf("--count=%d", count), netip.AddrPortFrom(s.net.Server.LAN4, spoofedPort).String())
	cmd.Stdout, cmd.Stderr = &said{}, &said{}
	s.check(cmd.Start())
	return cmd
}

// startKnown is startProbe, and waits until the reflector has received some of its packets.
func (s *spoofed) startKnown(count int) *exec.Cmd {
	s.t.Helper()
	before, cmd := s.received(), s.startProbe(count)
	if !within(20*time.Second, func() bool { return s.received() >= before+20 }) {
		s.t.Fatal("the reflector receives nothing from the known peer")
	}
	return cmd
}

// received is how many datagrams have been received on the reflector's host.
func (s *spoofed) received() int {
	s.t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/snmp", s.process.Process.Pid))
	s.check(err)
	_, rest, _ := strings.Cut(string(b), "\nUdp: ") // the names
	_, rest, _ = strings.Cut(rest, "\nUdp: ")
	n, err := strconv.Atoi(strings.Fields(rest)[0])
	s.check(err)
	return n
}

func (s *spoofed) waitProbe(cmd *exec.Cmd) (r stamp.Report) {
	s.t.Helper()
	if err := cmd.Wait(); err != nil {
		s.t.Fatalf("oneway probe: %v\n%v", err, cmd.Stderr)
	}
	s.check(json.Unmarshal([]byte(cmd.Stdout.(*said).String()), &r))
	return r
}

// memory is what the reflector holds in memory that is not a file's, in octets.
func (s *spoofed) memory() int {
	s.t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.process.Process.Pid))
	s.check(err)
	_, rest, _ := strings.Cut(string(b), "RssAnon:")
	n, err := strconv.Atoi(strings.Fields(rest)[0])
	s.check(err)
	return n << 10
}

// flood sends questions for d, each from another address, and returns how many.
func (s *spoofed) flood(d time.Duration) (sent int) {
	payload := question(1, 99, nil)
	for end := time.Now().Add(d); time.Now().Before(end); {
		for range 64 {
			s.spoofs++
			// A multiplication spreads them over all networks.
			var from [4]byte
			binary.BigEndian.PutUint32(from[:], 11<<24|s.spoofs*0x9e3779b1>>8)
			if s.frames.send(from, payload) == nil {
				sent++
			}
		}
	}
	return sent
}

// stop ends the reflector and returns what it has counted.
func (s *spoofed) stop() string {
	s.t.Helper()
	s.check(s.process.Process.Signal(syscall.SIGINT))
	s.check(s.process.Wait())
	return s.said.String()
}

// frames writes Ethernet frames with UDP packets of any source address.
type frames struct {
	fd     int
	header [14 + 20 + 8]byte
	b      []byte
}

func newFrames(device string, to netip.Addr) (*frames, error) {
	link, err := netlink.LinkByName(device)
	if err != nil {
		return nil, err
	}
	neighbours, err := netlink.NeighList(link.Attrs().Index, netlink.FAMILY_V4)
	if err != nil || len(neighbours) == 0 {
		return nil, fmt.Errorf("neighbour of %s: %v, %w", device, neighbours, err)
	}
	f := &frames{}
	h := f.header[:]
	copy(h, neighbours[0].HardwareAddr)
	copy(h[6:], link.Attrs().HardwareAddr)
	binary.BigEndian.PutUint16(h[12:], unix.ETH_P_IP)
	ip := h[14:]
	ip[0], ip[8], ip[9] = 0x45, 64, unix.IPPROTO_UDP
	copy(ip[16:], to.AsSlice())
	binary.BigEndian.PutUint16(ip[22:], spoofedPort)
	if f.fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0); err != nil {
		return nil, err
	}
	return f, unix.Bind(f.fd, &unix.SockaddrLinklayer{Ifindex: link.Attrs().Index})
}

// send sends a UDP packet, without a checksum, from any address.
func (f *frames) send(from [4]byte, payload []byte) error {
	f.b = append(append(f.b[:0], f.header[:]...), payload...)
	ip, be := f.b[14:], binary.BigEndian
	be.PutUint16(ip[2:], uint16(len(ip)))
	copy(ip[12:], from[:])
	be.PutUint16(ip[20:], 5000)
	be.PutUint16(ip[24:], uint16(8+len(payload)))
	sum := uint32(0)
	for at := 0; at < 20; at += 2 {
		sum += uint32(be.Uint16(ip[at:]))
	}
	sum = sum>>16 + sum&0xffff
	be.PutUint16(ip[10:], ^uint16(sum+sum>>16))
	_, err := unix.Write(f.fd, f.b)
	return err
}

// TestSpoofedFloodTakesNoMoreMemoryThanItMay: GOMEMLIMIT of 64 MiB, and a session for each
// packet. It took 252 MB.
func TestSpoofedFloodTakesNoMoreMemoryThanItMay(t *testing.T) {
	const limit = 64 << 20
	s := startSpoofed(t, []string{fmt.Sprintf("GOMEMLIMIT=%d", limit)})
	sent := s.flood(3 * time.Second)
	peak := s.memory()
	t.Logf("%d packets, %d MB", sent, peak>>20)
	if peak > limit {
		t.Errorf("%d octets after %d packets, want at most %d", peak, sent, limit)
	}
	if said, want := s.log.String(), "sessions=4096"; !strings.Contains(said, want) {
		t.Errorf("the log does not say %s: %q", want, said)
	}
}

// TestSpoofedFloodLeavesNothingBehind: what it took is given back when its sessions have
// expired; 252 MB were kept. Meanwhile strangers are answered as often as sessions may begin, no
// known peer is refused, and what this host dropped of him, or of one that begins in the midst of
// it, is not called a loss of the path.
func TestSpoofedFloodLeavesNothingBehind(t *testing.T) {
	s := startSpoofed(t, nil, "--session-expiry=5s")
	before := s.memory()
	known := s.startKnown(600)
	begin := time.Now()
	var sent [2]int
	sent[0] = s.flood(2 * time.Second)
	newcomer := s.startProbe(300)
	sent[1] = s.flood(2 * time.Second)
	took, peak := time.Since(begin), s.memory()
	for name, cmd := range map[string]*exec.Cmd{"known": known, "newcomer": newcomer} {
		r := s.waitProbe(cmd)
		f, b := &r.Forward, &r.Reverse
		t.Logf("%s: forward sent %d received %d dropped there %d lost %d", name, *f.Sent, *f.Received, *f.HostDropped, *f.Lost)
		if *f.Lost != 0 || *b.Lost != 0 || *f.Sent != *f.Received+*f.HostDropped {
			t.Errorf("%s: %d of %d packets and %d answers were lost on a path that loses none", name, *f.Lost, *f.Sent, *b.Lost)
		}
	}
	if !within(time.Minute, func() bool { return s.memory() < before+16<<20 }) {
		t.Errorf("%d octets before %d packets, %d after them, and still %d", before, sent[0]+sent[1], peak, s.memory())
	}
	t.Logf("%d packets: %d MB, %d and %d when they had expired", sent[0]+sent[1], before>>20, peak>>20, s.memory()>>20)
	said := s.stop()
	const perSecond = reflector.DefaultMaxSessions / 8
	// And queries, and what waited in the socket when the flood ended. A slow host receives no more than that.
	most := 600 + 300 + 100 + int(perSecond*(5+took.Seconds()))
	n, refused := counted(said, "answered"), counted(said, "new_session_limited")
	if n > most || n+refused > most && refused == 0 {
		t.Errorf("%d answered in %v, want at most %d, and the others new_session_limited; all:\n%s", n, took, most, said)
	}
	if n+refused <= most {
		t.Logf("NOT SHOWN: the limit of new sessions, for only %d of %d packets reached the reflector", n+refused, sent[0]+sent[1])
	}
}

// TestSpoofedAddressOfAPeerUsesUpNothingOfItsRate: it was refused, and booked that as a loss of
// the path.
func TestSpoofedAddressOfAPeerUsesUpNothingOfItsRate(t *testing.T) {
	s := startSpoofed(t, nil, "--rate-limit=500")
	known := s.startKnown(400)
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	for end := time.Now().Add(2 * time.Second); time.Now().Before(end); <-ticker.C {
		for range 10 { // so few that the socket drops none
			s.check(s.frames.send(s.net.Client.LAN4.As4(), question(1, 99, nil)))
		}
	}
	r := s.waitProbe(known)
	f, said := &r.Forward, s.stop()
	if *f.Received != *f.Sent || counted(said, "rate_limited") == 0 {
		t.Errorf("sent %d, received %d, lost %d, dropped there %d: want all received\n%s", *f.Sent, *f.Received, *f.Lost, *f.HostDropped, said)
	}
}

// TestPeerBeyondItsRateBooksNoLossOfThePath: it did.
func TestPeerBeyondItsRateBooksNoLossOfThePath(t *testing.T) {
	s := startSpoofed(t, nil, "--rate-limit=20")
	r := s.waitProbe(s.startProbe(300))
	f, said := &r.Forward, s.stop()
	refused := uint64(counted(said, "rate_limited"))
	t.Logf("sent %d received %d dropped there %d lost %d", *f.Sent, *f.Received, *f.HostDropped, *f.Lost)
	if *f.Lost != 0 || *f.HostDropped == 0 || *f.HostDropped > refused || *f.Sent != *f.Received+*f.HostDropped+*f.InFlight {
		t.Errorf("sent %d, received %d, lost %d, dropped there %d: want no loss\n%s", *f.Sent, *f.Received, *f.Lost, *f.HostDropped, said)
	}
}

// counted finds a number in the table that the reflector ends with; 0: it is not there.
func counted(said, result string) (n int) {
	for line := range strings.Lines(said) {
		if f := strings.Fields(line); len(f) == 2 && f[0] == result {
			n, _ = strconv.Atoi(f[1])
		}
	}
	return n
}
