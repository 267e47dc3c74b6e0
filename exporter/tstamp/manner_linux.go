package tstamp

import (
	"encoding/binary"
	"fmt"

	"golang.org/x/sys/unix"

	"oneway.example/exporter/instant"
)

// adopt makes m the socket's manner. The caller holds sendMu.
func (c *Conn) adopt(m Manner) error {
	if m.Fragmentation != c.manner.Fragmentation {
		if err := c.adoptFragmentation(m.Fragmentation); err != nil {
			return fmt.Errorf("tstamp: path MTU discovery: %w", err)
		}
		c.manner.Fragmentation = m.Fragmentation
	}
	if m.NoChecksum != c.manner.NoChecksum {
		on := 0
		if m.NoChecksum {
			on = 1
		}
		if err := unix.SetsockoptInt(c.fd, unix.SOL_SOCKET, unix.SO_NO_CHECK, on); err != nil {
			return fmt.Errorf("tstamp: SO_NO_CHECK: %w", err)
		}
	}
	c.manner = m
	return nil
}

func (c *Conn) adoptFragmentation(f Fragmentation) (err error) {
	level, option := unix.SOL_IP, unix.IP_MTU_DISCOVER
	if c.v6 {
		level, option = unix.SOL_IPV6, unix.IPV6_MTU_DISCOVER
	}
	if c.manner.Fragmentation == SystemFragmentation {
		if c.discovery, err = unix.GetsockoptInt(c.fd, level, option); err != nil {
			return err
		}
	}
	value := c.discovery
	switch f { // the values are the same for both families
	case SystemFragmentation:
	case NoFragmentation:
		value = unix.IP_PMTUDISC_PROBE
	case Fragmented:
		value = unix.IP_PMTUDISC_DONT
	}
	return unix.SetsockoptInt(c.fd, level, option, value)
}

// unstamped appends what keeps the kernel from stamping a packet (the flags of
// SO_TIMESTAMPING for one packet, Linux 4.6), and what has it cut one into many.
func (c *Conn) unstamped(b []byte, o *Out) []byte {
	if c.setup.stamps != 0 {
		b = appendCmsgUint32(b, unix.SOL_SOCKET, int32(c.setup.stamps), 0)
	}
	if o.Segment > 0 && o.Segment < len(o.Payload) {
		var data []byte
		b, data = appendCmsg(b, unix.SOL_UDP, unix.UDP_SEGMENT, 2)
		binary.NativeEndian.PutUint16(data, uint16(min(o.Segment, 1<<16-1)))
	}
	return b
}

// sendUnstamped is one sendmmsg of packets that nobody waits for.
func (c *Conn) sendUnstamped(out []Out) (sent int, errno unix.Errno) {
	n, errno := c.address(out)
	if n == 0 {
		return 0, errno
	}
	at := instant.Now()
	for i := range out[:n] {
		out[i].At = at
	}
	sent, errno = sendmmsg(c.fd, c.out.messages[:n])
	packets := 0
	for i := range out[:sent] {
		packets++
		if s := out[i].Segment; s > 0 {
			packets += max(0, (len(out[i].Payload)+s-1)/s-1)
		}
	}
	c.counts.sent.Add(uint64(packets))
	return sent, errno
}

// Coalesce has the kernel hand over packets of one sender and size that arrived right
// after each other as one (UDP_GRO, Linux 5.0), or not. Receive takes them apart again;
// all have the stamp of the first. It needs a Batch with room for 65,535 octets a packet,
// or packets are truncated.
func (c *Conn) Coalesce(on bool) error {
	value := 0
	if on {
		value = 1
	}
	c.sendMu.Lock()
	defer c.sendMu.Unlock()
	if c.closed.Load() {
		return nil
	}
	if err := unix.SetsockoptInt(c.fd, unix.SOL_UDP, unix.UDP_GRO, value); err != nil {
		return fmt.Errorf("tstamp: UDP_GRO: %w", err)
	}
	return nil
}
