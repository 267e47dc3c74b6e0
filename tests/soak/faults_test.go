package soak

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/net/wire/stampfmt"
	"oneway.example/tests/lab"
)

// fault makes a fault, reverts it, and describes its random parameters.
type fault struct {
	name string
	make func(*site) string
}

const (
	stopped    = "server: stopped"
	killed     = "server: killed"
	unwritable = "state read-only"
)

func faults() []fault {
	return []fault{
		{"link: outage", link(time.Second, 30*time.Second, func(_ *site, l *lab.Link) string { l.Loss = 1; return "" })},
		{"link: flapping", flapping},
		{"link: loss", link(5*time.Second, 10*time.Second, func(_ *site, l *lab.Link) string { l.Loss = 0.05; return "5 %" })},
		{"link: duplication", link(5*time.Second, 10*time.Second, func(_ *site, l *lab.Link) string { l.Duplicate = 0.1; return "10 %" })},
		{"link: reordering", link(5*time.Second, 10*time.Second, func(_ *site, l *lab.Link) string { l.Reorder = 0.1; return "10 %" })},
		{"link: corruption", link(5*time.Second, 10*time.Second, func(_ *site, l *lab.Link) string { l.Corrupt = 0.05; return "5 %" })},
		{"link: delay", link(5*time.Second, 10*time.Second, func(s *site, l *lab.Link) string {
			l.Delay = s.between(time.Millisecond, 500*time.Millisecond)
			return l.Delay.String()
		})},
		// Less than the paths need.
		{"link: rate", link(5*time.Second, 10*time.Second, func(_ *site, l *lab.Link) string { l.Rate = 4e6; return "4 Mbit/s, the queue is full" })},
		{stopped, stop},
		{killed, kill},
		{"reload: 50 paths removed and added", reload},
		{"attack: slow readers and aborted scrapes", readers},
		{"attack: idle connections", idle},
		{"attack: garbage", garbage},
		{"host: a busy core", busy},
		{unwritable, readOnly},
	}
}

// set changes a direction of the link.
func (s *site) set(d sample.Direction, l lab.Link) {
	if err := s.network.SetLink(d, l); err != nil {
		s.t.Error(err)
	}
}

// some is one direction of the link, or both, at random.
func (s *site) some() []sample.Direction {
	all := sample.Directions()
	if i := s.random.IntN(3); i < 2 {
		return all[i : i+1]
	}
	return all[:]
}

func link(least, most time.Duration, change func(*site, *lab.Link) string) func(*site) string {
	return func(s *site) string {
		l := clean()
		what := change(s, &l)
		directions := s.some()
		for _, d := range directions {
			s.set(d, l)
		}
		s.pause(s.between(least, most))
		for _, d := range directions {
			s.set(d, clean())
		}
		return fmt.Sprintf("%v %s", directions, what)
	}
}

func flapping(s *site) string {
	down := clean()
	down.Loss = 1
	directions := s.some()
	n := 3 + s.random.IntN(8)
	for range n {
		for _, l := range []lab.Link{down, clean()} {
			for _, d := range directions {
				s.set(d, l)
			}
			s.pause(s.between(100*time.Millisecond, time.Second))
		}
	}
	return fmt.Sprintf("%v %d times", directions, n)
}

// apart makes a fault of the server's, and takes note of what entered the link meanwhile: what of
// it arrives, the client is told late or never. A second after it, replies show what was received.
func (s *site) apart(unreported uint64, make func()) {
	before := s.network.KeyCounts(sample.Forward)
	make()
	s.pause(3 * time.Second)
	after := s.network.KeyCounts(sample.Forward)
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, c := range after {
		s.gaps[key] += c.Entered - before[key].Entered + unreported
	}
}

func stop(s *site) string {
	s.apart(0, func() {
		s.server.Load().Signal(s.t, syscall.SIGSTOP)
		s.pause(3 * time.Second)
		s.server.Load().Signal(s.t, syscall.SIGCONT)
	})
	return ""
}

// kill also loses what the reflector has received since its last reply that arrived, two
// packets of a second's interval and those of a round trip of the others.
func kill(s *site) string {
	const unreported = 10
	s.apart(unreported, func() {
		a := s.server.Load()
		a.Kill(s.t)
		s.said = append(s.said, a.Stderr.String())
		s.pause(s.between(0, 3*time.Second))
		s.startServer()
	})
	return ""
}

func reload(s *site) string {
	for _, n := range []int{moving - 50, moving} {
		s.configure(n)
		if err := s.client.reload(); err != nil {
			s.t.Error(err)
		}
		s.pause(s.between(2*time.Second, 8*time.Second))
	}
	return ""
}

// dial connects on a host from an address; on an error the attacker continues.
func dial(h *lab.Host, network, from, to string) (c net.Conn, err error) {
	err = h.Do(func() (err error) {
		d := net.Dialer{Timeout: time.Second}
		switch {
		case from == "":
		case network == "tcp":
			d.LocalAddr = &net.TCPAddr{IP: net.ParseIP(from)}
		default:
			d.LocalAddr = &net.UDPAddr{IP: net.ParseIP(from)}
		}
		c, err = d.Dial(network, to)
		return err
	})
	return c, err
}

// readers are of another address than the scrapes: the limits of connections are by address.
func readers(s *site) string {
	const attackers = 8
	request := "GET /metrics HTTP/1.1\r\nHost: " + agentAddress + "\r\n\r\n"
	ctx, cancel := context.WithTimeout(s.t.Context(), 8*time.Second)
	defer cancel()
	var slow []net.Conn
	for _, h := range []*lab.Host{s.network.Client, s.network.Server} {
		for i := range attackers {
			c, err := dial(h, "tcp", "127.0.0.3", agentAddress)
			if err != nil {
				continue
			}
			defer c.Close()
			_, _ = c.Write([]byte(request))
			if i%2 == 0 {
				slow = append(slow, c)
				continue
			}
			_ = c.SetReadDeadline(time.Now().Add(time.Second))
			_, _ = c.Read(make([]byte, 100)) // and no more
			_ = c.Close()
		}
	}
	for ctx.Err() == nil {
		for _, c := range slow {
			_ = c.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
			_, _ = c.Read(make([]byte, 10))
		}
		s.pause(200 * time.Millisecond)
	}
	return ""
}

func idle(s *site) string {
	n := 0
	for range 50 {
		for _, at := range []struct {
			host     *lab.Host
			from, to string
		}{
			{s.network.Client, "127.0.0.4", agentAddress},
			{s.network.Server, "127.0.0.4", agentAddress},
			{s.network.Client, "", s.at(loadServerPort)},
		} {
			if c, err := dial(at.host, "tcp", at.from, at.to); err == nil {
				defer c.Close()
				n++
			}
		}
	}
	s.pause(s.between(5*time.Second, 8*time.Second))
	return fmt.Sprint(n, " connections")
}

// garbage has sizes that no path has.
func garbage(s *site) string {
	const packets = 4000
	for _, port := range []uint16{stampfmt.Port, loadServerPort} {
		c, err := dial(s.network.Client, "udp", "", netip.AddrPortFrom(s.network.Server.Addr4, port).String())
		if err != nil {
			s.t.Error(err)
			continue
		}
		b := make([]byte, 1400)
		for i := range packets {
			for k := range b {
				b[k] = byte(s.random.Uint32())
			}
			size := s.random.IntN(smallest)
			if i%2 == 0 {
				size = smallest + voices + s.random.IntN(len(b)-smallest-voices)
			}
			_, _ = c.Write(b[:size])
			if i%40 == 0 {
				s.pause(20 * time.Millisecond)
			}
		}
		c.Close()
	}
	return ""
}

func busy(s *site) string {
	c := exec.CommandContext(s.t.Context(), "sh", "-c", "while :; do :; done")
	if err := c.Start(); err != nil {
		s.t.Error(err)
		return ""
	}
	s.pause(5 * time.Second)
	_ = c.Process.Kill()
	_ = c.Wait()
	return ""
}

func readOnly(s *site) string {
	if s.readOnly != nil {
		return "(NOT MADE here: " + s.readOnly.Error() + ")"
	}
	// Long enough that a load test ends in it.
	what := ""
	set := func(flags uintptr) {
		for _, name := range []string{"state-client", "state-server"} {
			if err := unix.Mount("", filepath.Join(s.dir, name), "", unix.MS_BIND|unix.MS_REMOUNT|flags, ""); err != nil {
				what += fmt.Sprintf("(%s NOT MADE: %v) ", name, err)
			}
		}
	}
	set(unix.MS_RDONLY)
	s.pause(s.between(10*time.Second, 20*time.Second))
	set(0)
	return what
}
