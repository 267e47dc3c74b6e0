package httpd

import (
	"math"
	"net"
	"syscall"
)

// Limits without a memory limit.
const (
	maxConnections = 512
	maxOfSource    = 64
	// maxMaking is the number of replies that are generated at the same time, each completely in memory; further ones
	// wait at most for makeTimeout.
	maxMaking = 4
	// maxPendingBytes is the maximum number of bytes that wait to be sent; as many replies as are generated at the same
	// time are always allowed.
	maxPendingBytes = 64 << 20
	maxHeaderBytes  = 64 << 10
)

// Limits by the memory limit.
const (
	// connectionBytes is for a connection with TLS, the header of a request and the kernel's buffers.
	connectionBytes  = 1 << 20
	minOfSource      = 8
	makingBytes      = 4 << 30 // per reply in progress; an agent of 10,000 paths uses a quarter of it
	pendingShare     = 8
	sendShare        = 16 // of connectionBytes; the kernel uses twice as much
	receiveBytes     = 16 << 10
	headerShare      = 128 // of connectionBytes; short names use about 16 times as much
	connectionShares = maxConnections / maxOfSource
)

// space is the set of limits of the server.
type space struct {
	connections, ofSource int // ofSource: of one source, an eighth of all
	making, makingFor     int // replies in progress; makingFor: of one source, half of all
	pending               int // bytes of replies that wait to be sent
	most                  int // limit of pending for long replies; one is always allowed
	header                int // bytes of a request's header; net/http adds 4 KiB
	send, receive         int // socket buffers of a connection in bytes; 0: the kernel's default
}

// spaceIn is the space for a memory limit in bytes; math.MaxInt64: no limit.
func spaceIn(limit int64) space {
	r := space{
		connections: maxConnections, ofSource: maxOfSource, making: maxMaking, makingFor: maxMaking / 2,
		pending: maxPendingBytes, most: math.MaxInt, header: maxHeaderBytes,
	}
	if limit == math.MaxInt64 {
		return r
	}
	r.ofSource = int(min(max(limit/connectionBytes/connectionShares, minOfSource), maxOfSource))
	r.connections = connectionShares * r.ofSource
	r.making = int(min(max(limit/makingBytes, 1), maxMaking))
	r.makingFor = max(r.making/2, 1)
	r.most = int(min(limit/pendingShare, math.MaxInt))
	connection := int(min(max(limit/int64(r.connections), connectionBytes), math.MaxInt32))
	r.header = min(connection/headerShare, maxHeaderBytes)
	r.send, r.receive = connection/sendShare, receiveBytes
	return r
}

// mayWait is the limit of waiting bytes together with a reply of n bytes.
func (r *space) mayWait(n int) int { return max(min(max(r.pending, maxMaking*n), r.most), n) }

// limit bounds the kernel's buffers of a connection, which count in the control group.
func (r *space) limit(c net.Conn) {
	t, ok := c.(*net.TCPConn)
	if !ok || r.send == 0 {
		return
	}
	_ = t.SetWriteBuffer(r.send) // the connection may have ended
	_ = t.SetReadBuffer(r.receive)
}

// maxDescriptors is the maximum number of open files and sockets of this process (RLIMIT_NOFILE).
func maxDescriptors() int {
	var r syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &r); err != nil {
		return math.MaxInt
	}
	return int(min(r.Cur, math.MaxInt))
}
