package abuse

import (
	"cmp"
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
	"oneway.example/tests/await"
	"oneway.example/tests/lab"
)

// spoofed is a reflector, the built program on its own host, that is flooded from unassigned addresses by a host that
// also has a known peer.
type spoofed struct {
	t       *testing.T
	net     *lab.Lab
	server  netip.Addr
	binary  string
	process *exec.Cmd
	output  await.Text
	log     await.Text
	frames  *frames
	spoofs  uint32 // number of addresses so far
}

// spoofedPort is the reflector's port.
const spoofedPort = 8620

// families runs the test over IPv4 and over IPv6.
func families(t *testing.T, test func(t *testing.T, ipv6 bool)) {
	t.Run("IPv4", func(t *testing.T) { test(t, false) })
	t.Run("IPv6", func(t *testing.T) { test(t, true) })
}

// startSpoofed starts the reflector with further arguments and environment variables.
func startSpoofed(t *testing.T, ipv6 bool, environment []string, args ...string) *spoofed {
	t.Helper()
	s := &spoofed{t: t, net: lab.Start(t, lab.Options{}), binary: buildProgram(t)}
	s.server = s.net.Server.LAN4
	client := s.net.Client.LAN4
	if ipv6 {
		s.server, client = s.net.Server.LAN6, s.net.Client.LAN6
	}
	s.check(s.net.Server.Do(func() error { return routeAll("lan0", client) }))
	s.check(s.net.Client.Do(func() (err error) {
		s.frames, err = newFrames("lan0", s.server)
		return err
	}))
	t.Cleanup(func() { s.check(unix.Close(s.frames.fd)) })
	listen := netip.AddrPortFrom(s.server, spoofedPort).String()
	s.process = s.net.Server.Command(s.binary, append([]string{"reflect", "--listen", listen, "--clock=none"}, args...)...)
	s.process.Env = append(os.Environ(), environment...)
	s.process.Stdout, s.process.Stderr = &s.output, &s.log
	s.check(s.process.Start())
	t.Cleanup(func() { _ = s.process.Process.Kill(); _ = s.process.Wait() }) // ended already, if the test has passed
	if !await.Within(20*time.Second, func() bool { return strings.Contains(s.output.String(), "listening") }) {
		t.Fatalf("the reflector does not listen: %s", &s.log)
	}
	return s
}

func (s *spoofed) check(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// routeAll routes packets to unknown addresses to the neighbor, which drops them: it does not forward.
func routeAll(device string, via netip.Addr) error {
	link, err := netlink.LinkByName(device)
	if err != nil {
		return err
	}
	return netlink.RouteAdd(&netlink.Route{LinkIndex: link.Attrs().Index, Gw: via.AsSlice()})
}

// startProbe starts `oneway probe` on the attacker's host.
func (s *spoofed) startProbe(count int) *exec.Cmd {
	s.t.Helper()
	cmd := s.net.Client.Command(s.binary, "probe", "--json", "--clock=none", "--loss-timeout=1s", "--interval=10ms",
		fmt.Sprintf("--count=%d", count), netip.AddrPortFrom(s.server, spoofedPort).String())
	cmd.Stdout, cmd.Stderr = &await.Text{}, &await.Text{}
	s.check(cmd.Start())
	return cmd
}

// startKnown is startProbe, and waits until the reflector has received some of its packets.
func (s *spoofed) startKnown(count int) *exec.Cmd {
	s.t.Helper()
	before, cmd := s.received(), s.startProbe(count)
	if !await.Within(20*time.Second, func() bool { return s.received() >= before+20 }) {
		s.t.Fatal("the reflector has received no packet of the known peer")
	}
	return cmd
}

// received is the number of datagrams received on the reflector's host.
func (s *spoofed) received() int {
	s.t.Helper()
	of := fmt.Sprintf("/proc/%d/net/snmp", s.process.Process.Pid)
	if s.server.Is6() {
		b, err := os.ReadFile(of + "6")
		s.check(err)
		_, rest, _ := strings.Cut(string(b), "\nUdp6InDatagrams")
		n, err := strconv.Atoi(strings.Fields(rest)[0])
		s.check(err)
		return n
	}
	b, err := os.ReadFile(of)
	s.check(err)
	_, rest, _ := strings.Cut(string(b), "\nUdp: ") // the names
	_, rest, _ = strings.Cut(rest, "\nUdp: ")
	n, err := strconv.Atoi(strings.Fields(rest)[0])
	s.check(err)
	return n
}

func (s *spoofed) waitProbe(cmd *exec.Cmd) (r stamp.Document) {
	s.t.Helper()
	if err := cmd.Wait(); err != nil {
		s.t.Fatalf("oneway probe: %v\n%v", err, cmd.Stderr)
	}
	s.check(json.Unmarshal([]byte(cmd.Stdout.(*await.Text).String()), &r))
	return r
}

// memory is the reflector's anonymous memory, in bytes.
func (s *spoofed) memory() int {
	s.t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.process.Process.Pid))
	s.check(err)
	_, rest, _ := strings.Cut(string(b), "RssAnon:")
	n, err := strconv.Atoi(strings.Fields(rest)[0])
	s.check(err)
	return n << 10
}

// flood sends requests for d, each from another address, and returns their number.
func (s *spoofed) flood(d time.Duration) (sent int) {
	payload := request(1, 99, nil)
	for end := time.Now().Add(d); time.Now().Before(end); {
		for range 64 {
			s.spoofs++
			// The multiplication distributes them over all networks.
			var from [16]byte
			if binary.BigEndian.PutUint32(from[:], 11<<24|s.spoofs*0x9e3779b1>>8); s.server.Is6() {
				binary.BigEndian.PutUint64(from[:], 0x2001<<48|uint64(s.spoofs)*0x9e3779b97f4a7c15>>16)
				from[15] = 1
			}
			if s.frames.send(from[:s.server.BitLen()/8], payload) == nil {
				sent++
			}
		}
	}
	return sent
}

// stop ends the reflector and returns its final counts.
func (s *spoofed) stop() string {
	s.t.Helper()
	s.check(s.process.Process.Signal(syscall.SIGINT))
	s.check(s.process.Wait())
	return s.output.String()
}

// frames writes Ethernet frames with UDP packets of any source address.
type frames struct {
	fd     int
	header []byte // of Ethernet and IP
	b      []byte
}

func newFrames(device string, to netip.Addr) (*frames, error) {
	link, err := netlink.LinkByName(device)
	if err != nil {
		return nil, err
	}
	family := unix.AF_INET
	if to.Is6() {
		family = unix.AF_INET6
	}
	neighbors, err := netlink.NeighList(link.Attrs().Index, family)
	if err != nil {
		return nil, err
	}
	f, be := &frames{}, binary.BigEndian
	for _, n := range neighbors {
		if n.IP.Equal(to.AsSlice()) {
			f.header = append(f.header, n.HardwareAddr...)
		}
	}
	if f.header == nil {
		return nil, fmt.Errorf("neighbors of %[2]s do not include %[1]v: %[3]v", to, device, neighbors)
	}
	f.header = append(f.header, link.Attrs().HardwareAddr...)
	if to.Is6() {
		f.header = append(be.AppendUint16(f.header, unix.ETH_P_IPV6), make([]byte, 40)...)
		ip := f.header[14:]
		ip[0], ip[6], ip[7] = 0x60, unix.IPPROTO_UDP, 64
		copy(ip[24:], to.AsSlice())
	} else {
		f.header = append(be.AppendUint16(f.header, unix.ETH_P_IP), make([]byte, 20)...)
		ip := f.header[14:]
		ip[0], ip[8], ip[9] = 0x45, 64, unix.IPPROTO_UDP
		copy(ip[16:], to.AsSlice())
	}
	if f.fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0); err != nil {
		return nil, err
	}
	return f, unix.Bind(f.fd, &unix.SockaddrLinklayer{Ifindex: link.Attrs().Index})
}

// checksum is that of RFC 1071, over the bytes and an initial sum.
func checksum(sum uint32, b []byte) uint16 {
	for ; len(b) > 1; b = b[2:] {
		sum += uint32(binary.BigEndian.Uint16(b))
	}
	if len(b) == 1 {
		sum += uint32(b[0]) << 8
	}
	sum = sum>>16 + sum&0xffff
	return ^uint16(sum + sum>>16)
}

// send sends a UDP packet from any address, over IPv4 without a checksum.
func (f *frames) send(from, payload []byte) error {
	be, length := binary.BigEndian, 8+len(payload)
	f.b = append(append(append(f.b[:0], f.header...), make([]byte, 8)...), payload...)
	ip, udp := f.b[14:], f.b[len(f.header):]
	be.PutUint16(udp, 5000)
	be.PutUint16(udp[2:], spoofedPort)
	be.PutUint16(udp[4:], uint16(length))
	if len(from) == 4 {
		be.PutUint16(ip[2:], uint16(20+length))
		copy(ip[12:], from)
		be.PutUint16(ip[10:], checksum(0, ip[:20]))
	} else {
		be.PutUint16(ip[4:], uint16(length))
		copy(ip[8:], from)
		sum := checksum(uint32(unix.IPPROTO_UDP+length), ip[8:]) // the addresses, and the UDP datagram
		be.PutUint16(udp[6:], cmp.Or(sum, 0xffff))
	}
	_, err := unix.Write(f.fd, f.b)
	return err
}

// TestSpoofedFloodStaysWithinTheMemoryLimit: GOMEMLIMIT of 64 MiB, and a new session with each packet (without the
// limit 252 MB).
func TestSpoofedFloodStaysWithinTheMemoryLimit(t *testing.T) {
	families(t, spoofedFloodTakesNoMoreMemory)
}

func spoofedFloodTakesNoMoreMemory(t *testing.T, ipv6 bool) {
	const limit = 64 << 20
	s := startSpoofed(t, ipv6, []string{fmt.Sprintf("GOMEMLIMIT=%d", limit)})
	sent := s.flood(3 * time.Second)
	peak := s.memory()
	t.Logf("sent %d packets, received %d, peak memory %d MB", sent, s.received(), peak>>20)
	if peak > limit {
		t.Errorf("peak memory %d bytes with %d packets, want at most %d", peak, sent, limit)
	}
	if said, want := s.log.String(), "sessions=4096"; !strings.Contains(said, want) {
		t.Errorf("the log lacks %s: %q", want, said)
	}
}

// TestSpoofedFloodReleasesItsMemory: the memory is released when its sessions have expired. Meanwhile unknown peers get
// replies at the rate of new sessions, no known peer is refused, and packets that this host dropped, of a known peer or
// of one that starts during the flood, do not count as lost on the path.
func TestSpoofedFloodReleasesItsMemory(t *testing.T) { families(t, spoofedFloodLeavesNothing) }

func spoofedFloodLeavesNothing(t *testing.T, ipv6 bool) {
	s := startSpoofed(t, ipv6, nil, "--session-expiry=5s")
	before := s.memory()
	known := s.startKnown(600)
	begin := time.Now()
	var sent [2]int
	sent[0] = s.flood(2 * time.Second)
	newcomer := s.startProbe(300)
	sent[1] = s.flood(2 * time.Second)
	peak := s.memory()
	for name, cmd := range map[string]*exec.Cmd{"known": known, "newcomer": newcomer} {
		r := s.waitProbe(cmd)
		t.Logf("%s: forward sent %d received %d host dropped %d lost %d", name, *r.Sent.Forward, *r.Received.Forward, *r.HostDropped.Forward, *r.Lost.Forward)
		if *r.Lost.Forward != 0 || *r.Lost.Reverse != 0 || *r.Sent.Forward != *r.Received.Forward+*r.HostDropped.Forward {
			t.Errorf("%s: lost %d of %d packets and %d replies on a path without loss", name, *r.Lost.Forward, *r.Sent.Forward, *r.Lost.Reverse)
		}
	}
	took := time.Since(begin) // a busy reflector reads the flood after its end, in order
	if !await.Within(time.Minute, func() bool { return s.memory() < before+16<<20 }) {
		t.Errorf("memory %d bytes before %d packets, peak %d, and %d after expiry", before, sent[0]+sent[1], peak, s.memory())
	}
	t.Logf("%d packets: memory %d MB before, peak %d, %d after expiry", sent[0]+sent[1], before>>20, peak>>20, s.memory()>>20)
	said := s.stop()
	const perSecond = reflector.DefaultMaxSessions / 8
	// Plus statistics queries, and packets in the socket buffer.
	most := 600 + 300 + 100 + int(perSecond*(5+took.Seconds()))
	n, refused := counted(said, "reflected"), counted(said, "new_session_limited")
	if n > most || n+refused > most && refused == 0 {
		t.Errorf("%d replies in %v, want at most %d, and the other packets new_session_limited; counts:\n%s", n, took, most, said)
	}
	if n+refused <= most {
		t.Logf("NOT TESTED: the limit of new sessions, because only %d of %d packets reached the reflector", n+refused, sent[0]+sent[1])
	}
}

// TestSpoofedAddressOfAPeerDoesNotUseUpItsRate: refused packets of a known peer would count as lost on the path.
func TestSpoofedAddressOfAPeerDoesNotUseUpItsRate(t *testing.T) {
	s := startSpoofed(t, false, nil, "--rate-limit=500")
	known := s.startKnown(400)
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	for end := time.Now().Add(2 * time.Second); time.Now().Before(end); <-ticker.C {
		for range 10 { // so few that the socket drops none
			s.check(s.frames.send(s.net.Client.LAN4.AsSlice(), request(1, 99, nil)))
		}
	}
	r := s.waitProbe(known)
	said := s.stop()
	if *r.Received.Forward != *r.Sent.Forward || counted(said, "rate_limited") == 0 {
		t.Errorf("sent %d, received %d, lost %d, host dropped %d, want all received\n%s", *r.Sent.Forward, *r.Received.Forward, *r.Lost.Forward, *r.HostDropped.Forward, said)
	}
}

// TestPacketsAboveThePeersRateAreNotLostOnThePath: the reflector reports them as host drops.
func TestPacketsAboveThePeersRateAreNotLostOnThePath(t *testing.T) {
	s := startSpoofed(t, false, nil, "--rate-limit=20")
	r := s.waitProbe(s.startProbe(300))
	said := s.stop()
	refused := uint64(counted(said, "rate_limited"))
	t.Logf("sent %d received %d host dropped %d lost %d", *r.Sent.Forward, *r.Received.Forward, *r.HostDropped.Forward, *r.Lost.Forward)
	if *r.Lost.Forward != 0 || *r.HostDropped.Forward == 0 || *r.HostDropped.Forward > refused || *r.Sent.Forward != *r.Received.Forward+*r.HostDropped.Forward+*r.Outstanding.Forward {
		t.Errorf("sent %d, received %d, lost %d, host dropped %d, want no loss\n%s", *r.Sent.Forward, *r.Received.Forward, *r.Lost.Forward, *r.HostDropped.Forward, said)
	}
}

// counted returns a number of the table that the reflector prints at its end; 0: it is missing.
func counted(said, result string) (n int) {
	for line := range strings.Lines(said) {
		if f := strings.Fields(line); len(f) == 2 && f[0] == result {
			n, _ = strconv.Atoi(f[1])
		}
	}
	return n
}
