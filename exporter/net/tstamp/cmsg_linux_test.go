package tstamp

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"reflect"
	"testing"

	"golang.org/x/sys/unix"
)

// appendStamps writes struct scm_timestamping64.
func appendStamps(b []byte, software, hardware int64) []byte {
	b, data := appendCmsg(b, unix.SOL_SOCKET, unix.SO_TIMESTAMPING_NEW, 48)
	for i, ns := range []int64{software, 0, hardware} {
		binary.NativeEndian.PutUint64(data[16*i:], uint64(ns/1e9))
		binary.NativeEndian.PutUint64(data[16*i+8:], uint64(ns%1e9))
	}
	return b
}

func TestControlMessagesAreParsed(t *testing.T) {
	var space envelope
	b := appendStamps(space.controlSlice()[:0], 1_700_000_000_123_456_789, 42)
	b = appendCmsgUint32(b, unix.SOL_IP, unix.IP_TTL, 61)
	b, data := appendCmsg(b, unix.SOL_IP, unix.IP_TOS, 1)
	data[0] = 46<<2 | 1
	b, data = appendCmsg(b, unix.SOL_IP, unix.IP_PKTINFO, unix.SizeofInet4Pktinfo)
	copy(data, []byte{1, 0, 0, 0, 192, 0, 2, 7, 192, 0, 2, 255})
	want := controls{
		software: 1_700_000_000_123_456_789, hardware: 42,
		local: netip.MustParseAddr("192.0.2.7"), ttl: 61, tos: 46<<2 | 1,
	}
	if got := parseControls(b); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if ours, err := unix.ParseSocketControlMessage(b); err != nil || len(ours) != 4 {
		t.Errorf("x/sys/unix parses %d messages, %v; want 4", len(ours), err)
	}
}

func TestErrorQueueMessageIsParsed(t *testing.T) {
	var space envelope
	b := appendStamps(space.controlSlice()[:0], 5_000_000_006, 0)
	b, data := appendCmsg(b, unix.SOL_IPV6, unix.IPV6_RECVERR, sizeofExtendedErr+2)
	binary.NativeEndian.PutUint32(data, uint32(unix.ENOMSG))
	copy(data[4:8], []byte{unix.SO_EE_ORIGIN_TIMESTAMPING, 3, 4, 0})
	binary.NativeEndian.PutUint32(data[8:], unix.SCM_TSTAMP_SND)
	binary.NativeEndian.PutUint32(data[12:], 77)
	copy(data[16:], []byte{8, 9})
	want := controls{
		SockExtendedErr: unix.SockExtendedErr{Errno: uint32(unix.ENOMSG), Origin: unix.SO_EE_ORIGIN_TIMESTAMPING, Type: 3, Code: 4, Data: 77},
		software:        5_000_000_006, offender: []byte{8, 9},
	}
	if got := parseControls(b); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// FuzzControl checks that parsing stays within any input and ends, and that appended messages are parsed back.
func FuzzControl(f *testing.F) {
	var space envelope
	f.Add([]byte(nil))
	f.Add(appendStamps(space.controlSlice()[:0], 1e18, 1))
	f.Add(bytes.Repeat([]byte{0xff}, 40))
	f.Fuzz(func(t *testing.T, b []byte) {
		parseControls(b)
		parseControls(b)
		var z zones
		z.parseAddress(&socket{fd: -1}, b)
		n := min(len(b), controlBytes-unix.CmsgSpace(0)-8)
		var space envelope
		all, data := appendCmsg(space.controlSlice()[:0], 1, 2, n)
		copy(data, b)
		h, got, rest, err := unix.ParseOneSocketControlMessage(all)
		if err != nil || h.Level != 1 || h.Type != 2 || !bytes.Equal(got, b[:n]) || len(rest) != 0 {
			t.Errorf("message of %d bytes is parsed as %+v %x, %d bytes left: %v", n, h, got, len(rest), err)
		}
	})
}

// FuzzAddress checks that a kernel socket address is unchanged after parsing and writing.
func FuzzAddress(f *testing.F) {
	socket := &open(f, loopback(true), Options{}).socket
	for _, s := range []string{"192.0.2.1:862", "[2001:db8::1]:65535", "[fe80::1%lo]:9", "[::ffff:192.0.2.1]:9", "[fe80::1%4294967295]:9"} {
		a := netip.MustParseAddrPort(s)
		b := make([]byte, unix.SizeofSockaddrInet6)
		n, _ := new(zones).putAddress(socket, b, a, a.Addr().Unmap().Is6())
		f.Add(b[:n])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var z zones
		a := z.parseAddress(socket, b)
		if !a.IsValid() {
			return
		}
		again := make([]byte, unix.SizeofSockaddrInet6)
		n, errno := z.putAddress(socket, again, a, a.Addr().Unmap().Is6())
		if errno != 0 || int(n) > len(b) && !a.Addr().Is4In6() {
			t.Fatalf("address %x (%v) was written in %d bytes: %v", b, a, n, errno)
		}
		want := netip.AddrPortFrom(a.Addr().Unmap(), a.Port()) // an IPv6 socket has no IPv4 peers
		if got := z.parseAddress(socket, again[:n]); got != want {
			t.Errorf("address %x (%v) was written and parsed as %v", b, a, got)
		}
	})
}

func TestAddressesSurviveTheRoundTrip(t *testing.T) {
	socket := &open(t, loopback(true), Options{}).socket
	for _, s := range []string{"192.0.2.1:862", "0.0.0.0:0", "[2001:db8::1]:65535", "[fe80::1%lo]:9"} {
		want := netip.MustParseAddrPort(s)
		var z zones
		var b [unix.SizeofSockaddrInet6]byte
		n, errno := z.putAddress(socket, b[:], want, want.Addr().Is6())
		if got := z.parseAddress(socket, b[:n]); errno != 0 || got != want {
			t.Errorf("got %[2]v, %[3]v, want %[1]v", want, got, errno)
		}
		if _, errno := z.putAddress(socket, b[:], want, want.Addr().Is4()); errno != unix.EAFNOSUPPORT {
			t.Errorf("address %v was accepted for the other family", want)
		}
	}
}
