package lab

import (
	"encoding/binary"
	"fmt"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"oneway.example/exporter/core/instant"
)

// The ring: 16384 frames are 273 ms at 60 000 packets a second, 32 MiB. A machine that others use
// stands still for 100 ms at times.
const (
	ringFrame  = 2048
	ringFrames = 16384
	ringBlock  = 64 << 10
)

// ring is an AF_PACKET socket with a TPACKET_V2 receive ring. A ring rather
// than recvmmsg: its memory is not bounded by net.core.rmem_max, which an
// unprivileged user namespace could not exceed (about 3 ms of traffic), and a
// stamp is in every frame's header (Documentation/networking/packet_mmap.rst).
type ring struct {
	fd     int
	memory []byte
	next   int
	// dropped counts frames for which the ring had no room.
	dropped uint64
}

// openRing must run inside the interface's namespace.
func openRing(index int) (*ring, error) {
	// Protocol 0: nothing is received before bind.
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("lab: packet socket: %w", err)
	}
	r := &ring{fd: fd}
	if err := r.set(index); err != nil {
		r.close()
		return nil, fmt.Errorf("lab: packet ring: %w", err)
	}
	return r, nil
}

func (r *ring) set(index int) error {
	options := []struct{ level, name, value int }{
		{unix.SOL_PACKET, unix.PACKET_VERSION, unix.TPACKET_V2},
		{unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1},
		// Without a taker of stamps the kernel takes none on entry.
		{unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1},
	}
	for _, o := range options {
		if err := unix.SetsockoptInt(r.fd, o.level, o.name, o.value); err != nil {
			return fmt.Errorf("socket option %d: %w", o.name, err)
		}
	}
	request := &unix.TpacketReq{
		Block_size: ringBlock,
		Block_nr:   ringFrames * ringFrame / ringBlock,
		Frame_size: ringFrame,
		Frame_nr:   ringFrames,
	}
	if err := unix.SetsockoptTpacketReq(r.fd, unix.SOL_PACKET, unix.PACKET_RX_RING, request); err != nil {
		return fmt.Errorf("PACKET_RX_RING: %w", err)
	}
	var err error
	r.memory, err = unix.Mmap(r.fd, 0, ringFrames*ringFrame, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return fmt.Errorf("mmap: %w", err)
	}
	address := &unix.SockaddrLinklayer{Protocol: bigEndian16(unix.ETH_P_ALL), Ifindex: index}
	if err := unix.Bind(r.fd, address); err != nil {
		return fmt.Errorf("bind: %w", err)
	}
	// Bound to an interface that is still down the socket has that pending as
	// an error (and receives once it is up): reading it clears it.
	_, err = unix.GetsockoptInt(r.fd, unix.SOL_SOCKET, unix.SO_ERROR)
	return err
}

func (r *ring) close() {
	if r.memory != nil {
		_ = unix.Munmap(r.memory)
		r.memory = nil
	}
	_ = unix.Close(r.fd)
}

// header is the frame at the reader's place. Its status word is shared with
// the kernel and only touched atomically.
func (r *ring) header() *unix.Tpacket2Hdr {
	return (*unix.Tpacket2Hdr)(unsafe.Pointer(&r.memory[r.next*ringFrame]))
}

// take hands over the next frame, if there is one, with the kernel's stamp of
// its entry. data is valid until f returns.
func (r *ring) take(f func(data []byte, entry instant.Time, status uint32) error) (bool, error) {
	h := r.header()
	status := atomic.LoadUint32(&h.Status)
	if status&unix.TP_STATUS_USER == 0 {
		return false, nil
	}
	start := r.next*ringFrame + int(h.Mac)
	err := f(r.memory[start:start+int(h.Snaplen)], instant.FromUnix(int64(h.Sec), int64(h.Nsec)), status)
	atomic.StoreUint32(&h.Status, unix.TP_STATUS_KERNEL)
	r.next = (r.next + 1) % ringFrames
	return true, err
}

// losses reads how many frames found no room so far. The kernel's counter
// starts over with every reading.
func (r *ring) losses() (uint64, error) {
	s, err := unix.GetsockoptTpacketStats(r.fd, unix.SOL_PACKET, unix.PACKET_STATISTICS)
	if err != nil {
		return r.dropped, fmt.Errorf("lab: packet statistics: %w", err)
	}
	r.dropped += uint64(s.Drops)
	return r.dropped, nil
}

// bigEndian16 gives v in network order, as socket addresses have protocols.
func bigEndian16(v uint16) uint16 {
	var b [2]byte
	binary.BigEndian.PutUint16(b[:], v)
	return binary.NativeEndian.Uint16(b[:])
}
