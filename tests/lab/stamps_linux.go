package lab

import (
	"errors"
	"fmt"
	"net"
	"time"

	"golang.org/x/sys/unix"

	"oneway.example/exporter/core/instant"
	"oneway.example/tests/capture"
)

// stampsTimeout is how long awaitStamps waits; the kernel takes milliseconds, and longer
// where it is busy.
const stampsTimeout = 30 * time.Second

// awaitStamps returns when the kernel stamps packets as they arrive. It leaves that to a
// worker when the first socket asks for it (net_enable_timestamp of Linux's net/core/dev.c),
// and until then stamps a packet when it is read. The rings ask for as long as they are open.
func (h *Host) awaitStamps() error {
	var c *net.UDPConn
	err := h.Do(func() (err error) {
		c, err = net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
		return err
	})
	if err != nil {
		return fmt.Errorf("lab: await stamps: %w", err)
	}
	defer func() { _ = c.Close() }()
	if err := askForStamps(c); err != nil {
		return fmt.Errorf("lab: await stamps: %w", err)
	}
	end := time.Now().Add(stampsTimeout)
	if err := c.SetDeadline(end); err != nil {
		return fmt.Errorf("lab: await stamps: %w", err)
	}
	packet, control := make([]byte, 8), make([]byte, 128)
	for time.Now().Before(end) {
		if _, err := c.WriteTo(packet, c.LocalAddr()); err != nil {
			return fmt.Errorf("lab: await stamps: %w", err)
		}
		sent := instant.Now() // the loopback has delivered it by now
		time.Sleep(time.Millisecond)
		_, n, _, _, err := c.ReadMsgUDPAddrPort(packet, control)
		if err != nil {
			return fmt.Errorf("lab: await stamps: %w", err)
		}
		if at := capture.Stamp(control[:n]); at != 0 && at <= sent {
			return nil
		}
	}
	return fmt.Errorf("lab: await stamps: the kernel stamps no packet on its arrival after %v, want milliseconds", stampsTimeout)
}

// askForStamps has the kernel stamp what c receives.
func askForStamps(c *net.UDPConn) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var inner error
	err = raw.Control(func(fd uintptr) { inner = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_TIMESTAMPNS_NEW, 1) })
	return errors.Join(err, inner)
}
