package chrony

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
)

// address is where chronyd listens for commands.
type address struct {
	network string // "unixgram" or "udp"
	target  string // path, or address and port
}

// String is the address as it is configured.
func (a address) String() string {
	if a.network == "udp" {
		return "udp://" + a.target
	}
	return "unix://" + a.target
}

// parseAddresses reads Options.Address.
func parseAddresses(s string) ([]address, error) {
	if s == "" {
		return []address{
			{"unixgram", "/run/chrony/chronyd.sock"},
			{"udp", "127.0.0.1:323"},
			{"udp", "[::1]:323"},
		}, nil
	}
	if path, ok := strings.CutPrefix(s, "unix://"); ok {
		if !filepath.IsAbs(path) {
			return nil, fmt.Errorf("chrony: address %q: want an absolute path, as in unix:///run/chrony/chronyd.sock", s)
		}
		return []address{{"unixgram", path}}, nil
	}
	if hostport, ok := strings.CutPrefix(s, "udp://"); ok {
		if _, err := netip.ParseAddrPort(hostport); err != nil {
			return nil, fmt.Errorf("chrony: address %q: want an IP address and a port, as in udp://127.0.0.1:323: %w", s, err)
		}
		return []address{{"udp", hostport}}, nil
	}
	return nil, fmt.Errorf("chrony: address %q: want unix:///run/chrony/chronyd.sock or udp://127.0.0.1:323", s)
}

// dial connects. Both kinds of socket then take datagrams from chronyd only.
func (a address) dial(dir string) (net.Conn, error) {
	if a.network == "udp" {
		return net.Dial("udp", a.target)
	}
	if err := closed(filepath.Dir(a.target)); err != nil {
		return nil, err
	}
	if dir == "" {
		dir = filepath.Dir(a.target)
	}
	removeStale(dir)
	// chronyd answers to the path it was asked from, so the client's end needs one
	// (a name in the abstract space it takes for an empty path).
	local := filepath.Join(dir, fmt.Sprintf("%s%d.%d", clientPrefix, os.Getpid(), clientNumber.Add(1)))
	conn, err := net.DialUnix("unixgram", unixAddr(local), unixAddr(a.target))
	if err != nil {
		_ = os.Remove(local) // bound but not connected
		return nil, err
	}
	c := &clientSocket{UnixConn: conn, path: local}
	// chronyd has dropped root by now and must be able to write to it. A connected
	// datagram socket refuses what others send.
	if err := os.Chmod(local, 0o666); err != nil {
		_ = c.Close()
		return nil, err
	}
	return c, nil
}

// closed tells of a directory in which everybody can make a socket, and so be chronyd.
func closed(dir string) error {
	info, err := os.Stat(dir)
	if err == nil && info.Mode().Perm()&0o002 != 0 {
		err = fmt.Errorf("everybody can write to %s (mode %#o), so who answers there may be anybody; want a directory like chronyd's own, mode 0750", dir, info.Mode().Perm())
	}
	return err
}

// clientPrefix begins the file names of the clients' ends.
const clientPrefix = "oneway-chrony."

// clientNumber tells apart the clients of one process.
var clientNumber atomic.Uint64

// clientSocket removes its file when it is closed.
type clientSocket struct {
	*net.UnixConn
	path string
}

// Close closes the socket and removes its file.
func (c *clientSocket) Close() error {
	err := c.UnixConn.Close()
	_ = os.Remove(c.path) // the directory may be gone with chronyd
	return err
}

// removeStale removes what agents that were killed left behind. Nobody listens
// there: a connect is refused, while a socket in use answers otherwise.
func removeStale(dir string) {
	paths, err := filepath.Glob(filepath.Join(dir, clientPrefix+"*"))
	if err != nil {
		return // dir holds pattern characters; then stale files stay
	}
	for _, path := range paths {
		conn, err := net.DialUnix("unixgram", nil, unixAddr(path))
		switch {
		case err == nil:
			_ = conn.Close()
		case errors.Is(err, syscall.ECONNREFUSED):
			_ = os.Remove(path)
		}
	}
}

func unixAddr(path string) *net.UnixAddr { return &net.UnixAddr{Name: path, Net: "unixgram"} }
