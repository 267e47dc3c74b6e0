package chrony

import (
	"cmp"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	fb "github.com/facebook/time/ntp/chrony"
)

// Layout of chronyd's command protocol, version 6 (chrony's candm.h), big-endian:
//
//	request: 0 version, 1 type (1), 4-5 command, 6-7 attempt, 8-11 sequence
//	reply:   0 version, 1 type (2), 2-3 zero, 4-5 command, 6-7 reply, 8-9 status,
//	         16-19 sequence, 28.. data
const (
	protocolVersion = 6
	typeReply       = 2
	replyHeadBytes  = 28
	maxReplyBytes   = 2048 // the longest reply of chronyd has 520
	statusSuccess   = 0

	commandSources    = 14
	commandSourceData = 15
	commandTracking   = 33
)

// maxDiscards limits the datagrams other than the reply that are read for one request.
const maxDiscards = 64

// link is one connection to chronyd. It exchanges whole datagrams, and passes only the reply to the last request to the
// decoder. It is not safe for concurrent use.
type link struct {
	net.Conn
	client fb.Client
	// command and sequence of the outstanding request.
	command  uint16
	sequence uint32
	in       [maxReplyBytes]byte
}

// newLink takes over conn. The first sequence number is random, so that replies to an earlier process on the same socket
// path are not accepted.
func newLink(conn net.Conn) *link {
	l := &link{Conn: conn}
	var start [4]byte
	_, _ = rand.Read(start[:]) // never fails
	l.client = fb.Client{Connection: l, Sequence: binary.BigEndian.Uint32(start[:])}
	return l
}

// Write sends a request, for the decoder's client.
func (l *link) Write(request []byte) (int, error) {
	l.command = binary.BigEndian.Uint16(request[4:])
	l.sequence = binary.BigEndian.Uint32(request[8:])
	if err := l.SetDeadline(time.Now().Add(queryTimeout)); err != nil {
		return 0, &queryError{unreachable, err}
	}
	n, err := l.Conn.Write(request)
	if err != nil {
		err = &queryError{reasonOf(err), err}
	}
	return n, err
}

// Read waits for the reply to the last request and returns it. Other datagrams are dropped, for example a late reply to an
// earlier request. If the reply does not arrive in time, the error is that of the last dropped datagram.
func (l *link) Read(reply []byte) (int, error) {
	var last error
	for range maxDiscards {
		n, err := l.Conn.Read(l.in[:])
		if err != nil {
			if last != nil && errors.Is(err, os.ErrDeadlineExceeded) {
				return 0, last
			}
			return 0, &queryError{reasonOf(err), err}
		}
		if last = l.check(l.in[:n]); last == nil {
			return copy(reply, l.in[:n]), nil
		}
		if causeOf(last) == refused {
			return 0, last // an error status is a reply, too
		}
	}
	return 0, &queryError{flood, last}
}

// check returns an error unless a datagram is the complete and successful reply to the last request.
func (l *link) check(b []byte) error {
	if len(b) < replyHeadBytes {
		return &queryError{truncated, fmt.Errorf("%d bytes, want %d for the head", len(b), replyHeadBytes)}
	}
	u16 := func(at int) uint16 { return binary.BigEndian.Uint16(b[at:]) }
	sequence, want := binary.BigEndian.Uint32(b[16:]), replies[l.command]
	switch {
	case b[0] != protocolVersion || b[1] != typeReply || u16(2) != 0 || u16(4) != l.command:
		return &queryError{malformed, fmt.Errorf("head %x, want version %d, type %d, command %d",
			b[:6], protocolVersion, typeReply, l.command)}
	case sequence != l.sequence:
		return &queryError{wrongSequence, fmt.Errorf("%d, want %d", sequence, l.sequence)}
	case u16(8) != statusSuccess:
		return &queryError{refused, fmt.Errorf("status %v", fb.ResponseStatusType(u16(8)))}
	case u16(6) != uint16(want.kind):
		return &queryError{malformed, fmt.Errorf("reply type %d, want %d", u16(6), want.kind)}
	case len(b) < want.bytes:
		return &queryError{truncated, fmt.Errorf("%d bytes, want %d", len(b), want.bytes)}
	case len(b) > want.bytes:
		return &queryError{oversized, fmt.Errorf("%d bytes, want %d", len(b), want.bytes)}
	}
	return nil
}

// replies are the type and length of the successful reply to each used command.
var replies = map[uint16]struct {
	kind  fb.ReplyType
	bytes int
}{
	commandSources:    {fb.RpyNSources, replyHeadBytes + 4},
	commandSourceData: {fb.RpySourceData, replyHeadBytes + 48},
	commandTracking:   {fb.RpyTracking, replyHeadBytes + 76},
}

func reasonOf(err error) failure {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return timeout
	}
	return unreachable
}

// request sends a request and expects a reply of type R.
func request[R any](l *link, request fb.RequestPacket) (reply R, err error) {
	any, err := l.client.Communicate(request)
	if err != nil {
		return reply, err
	}
	reply, ok := any.(R)
	if !ok {
		return reply, &queryError{malformed, fmt.Errorf("decoded as %T", any)}
	}
	return reply, nil
}

// maxSources limits the number of sources in requests.
const maxSources = 64

// pollInterval requests the poll interval of the selected source; zero if none is selected.
func (l *link) pollInterval() (time.Duration, error) {
	sources, err := request[*fb.ReplySources](l, fb.NewSourcesPacket())
	if err != nil {
		return 0, err
	}
	for i := range min(maxSources, uint32(sources.NSources)) {
		source, err := request[*fb.ReplySourceData](l, fb.NewSourceDataPacket(int32(i)))
		if err != nil {
			return 0, err
		}
		if source.State == fb.SourceStateSync {
			// chrony's poll is the binary logarithm of seconds, from -7 to 24.
			return time.Second << max(0, min(24, source.Poll)), nil
		}
	}
	return 0, nil
}

// address is an address of chronyd's command socket.
type address struct {
	network string // "unixgram" or "udp"
	target  string // path, or address and port
}

// String is the address in its configured form.
func (a address) String() string {
	if a.network == "udp" {
		return "udp://" + a.target
	}
	return "unix://" + a.target
}

// parseAddresses parses Options.Address.
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

// dial connects. Both kinds of socket then receive datagrams of chronyd only.
func (a address) dial(dir string) (net.Conn, error) {
	if a.network == "udp" {
		return net.Dial("udp", a.target)
	}
	if err := closed(filepath.Dir(a.target)); err != nil {
		return nil, err
	}
	dir = cmp.Or(dir, filepath.Dir(a.target))
	removeStale(dir)
	// chronyd replies to the path of the sender, so the client's socket needs one (chronyd treats an abstract name as an
	// empty path).
	local := filepath.Join(dir, fmt.Sprintf("%s%d.%d", clientPrefix, os.Getpid(), clientNumber.Add(1)))
	conn, err := net.DialUnix("unixgram", unixAddr(local), unixAddr(a.target))
	if err != nil {
		_ = os.Remove(local) // bound but not connected
		return nil, err
	}
	c := &clientSocket{UnixConn: conn, path: local}
	// chronyd, which no longer runs as root, must be able to write to it. A connected datagram socket rejects datagrams of
	// others.
	if err := os.Chmod(local, 0o666); err != nil {
		_ = c.Close()
		return nil, err
	}
	return c, nil
}

// closed returns an error for a directory in which all users can create a socket, and so impersonate chronyd.
func closed(dir string) error {
	info, err := os.Stat(dir)
	if err == nil && info.Mode().Perm()&0o002 != 0 {
		err = fmt.Errorf("everybody can write to %s (mode %#o), so the socket may be another user's; want a directory like chronyd's own, mode 0750", dir, info.Mode().Perm())
	}
	return err
}

// clientPrefix is the prefix of the file names of client sockets.
const clientPrefix = "oneway-chrony."

// clientNumber distinguishes the clients of one process.
var clientNumber atomic.Uint64

// clientSocket removes its file when it is closed.
type clientSocket struct {
	*net.UnixConn
	path string
}

// Close closes the socket and removes its file.
func (c *clientSocket) Close() error {
	err := c.UnixConn.Close()
	_ = os.Remove(c.path) // the directory may have been removed with chronyd
	return err
}

// removeStale removes sockets of killed agents. A connect to them is refused, in contrast to a socket in use.
func removeStale(dir string) {
	paths, _ := filepath.Glob(filepath.Join(dir, clientPrefix+"*")) // none if dir is an invalid pattern; then stale files are kept
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

// failure is the reason why a request got no usable reply: the label `reason` of oneway_clock_query_failures_total.
type failure string

const (
	// unreachable: no socket, connection refused, or no permission.
	unreachable failure = "unreachable"
	// timeout: no reply in time.
	timeout failure = "timeout"
	// truncated: a reply shorter than its type.
	truncated failure = "truncated"
	// oversized: a reply longer than its type.
	oversized failure = "oversized"
	// malformed: not a reply of this protocol version to this command.
	malformed failure = "malformed"
	// wrongSequence: a reply to another request.
	wrongSequence failure = "wrong_sequence"
	// flood: too many datagrams without the reply.
	flood failure = "flood"
	// refused: chronyd's status is an error, such as UNAUTH.
	refused failure = "refused"
	// implausible: well-formed, but impossible for a clock.
	implausible failure = "implausible"
)

func failures() []failure {
	return []failure{unreachable, timeout, truncated, oversized, malformed, wrongSequence, flood, refused, implausible}
}

// queryError is a failure and its cause.
type queryError struct {
	reason failure
	cause  error
}

// Error names the reason and the cause.
func (e *queryError) Error() string { return fmt.Sprintf("chrony: %s: %v", e.reason, e.cause) }

// Unwrap returns the cause.
func (e *queryError) Unwrap() error { return e.cause }

// causeOf is the reason that counts err.
func causeOf(err error) failure {
	if q, ok := errors.AsType[*queryError](err); ok {
		return q.reason
	}
	return malformed // an error of the decoder
}
