package httpd

import (
	"math"
	"net"
	"syscall"
)

// Limits where memory has none.
const (
	maxConnections = 512
	maxOfSource    = 64
	// maxMaking is how many replies are made at one time, each of which is kept whole; further ones
	// wait for makeTimeout.
	maxMaking = 4
	// maxHeld is how many bytes may wait to be read; as many replies as are made at one time may
	// always.
	maxHeld        = 64 << 20
	maxHeaderBytes = 64 << 10
)

// What a limit of memory has space for.
const (
	// connectionBytes is for a connection with TLS, a request's header and the kernel's buffers.
	connectionBytes  = 1 << 20
	fewestOfSource   = 8
	makingBytes      = 4 << 30 // for each; an agent of 10,000 paths takes a quarter of it
	heldShare        = 8
	sendShare        = 16 // of a connection's; the kernel takes twice as much
	receiveBytes     = 16 << 10
	headerShare      = 128 // of a connection's; names of few bytes take some sixteen times as much
	connectionShares = maxConnections / maxOfSource
)

// space is what the server may take at one time.
type space struct {
	connections, ofSource int // of one source, an eighth of all
	making, makingFor     int // answers; for one source, half of them
	held                  int // bytes of replies that wait to be read
	most                  int // bytes of them, if they are long; one may always wait
	header                int // bytes of a request's; net/http takes 4 KiB more
	send, receive         int // bytes that the kernel is asked to buffer for a connection; 0: it decides
}

// spaceIn is the room in a process that may take so many bytes; math.MaxInt64: there is no limit.
func spaceIn(limit int64) space {
	r := space{
		connections: maxConnections, ofSource: maxOfSource, making: maxMaking, makingFor: maxMaking / 2,
		held: maxHeld, most: math.MaxInt, header: maxHeaderBytes,
	}
	if limit == math.MaxInt64 {
		return r
	}
	r.ofSource = int(min(max(limit/connectionBytes/connectionShares, fewestOfSource), maxOfSource))
	r.connections = connectionShares * r.ofSource
	r.making = int(min(max(limit/makingBytes, 1), maxMaking))
	r.makingFor = max(r.making/2, 1)
	r.most = int(min(limit/heldShare, math.MaxInt))
	connection := int(min(max(limit/int64(r.connections), connectionBytes), math.MaxInt32))
	r.header = min(connection/headerShare, maxHeaderBytes)
	r.send, r.receive = connection/sendShare, receiveBytes
	return r
}

// mayWait is how many bytes may wait together with a reply of n.
func (r *space) mayWait(n int) int { return max(min(max(r.held, maxMaking*n), r.most), n) }

// limit bounds what the kernel keeps for a connection, which it charges to the control group.
func (r *space) limit(c net.Conn) {
	t, ok := c.(*net.TCPConn)
	if !ok || r.send == 0 {
		return
	}
	_ = t.SetWriteBuffer(r.send) // the connection may have ended
	_ = t.SetReadBuffer(r.receive)
}

// mostDescriptors is how many files and sockets this process may have open (RLIMIT_NOFILE).
func mostDescriptors() int {
	var r syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &r); err != nil {
		return math.MaxInt
	}
	return int(min(r.Cur, math.MaxInt))
}
