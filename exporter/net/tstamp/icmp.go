package tstamp

import (
	"fmt"
	"net/netip"
	"syscall"
)

// ICMPError is an ICMP message that refers to a sent packet (IP_RECVERR, ip(7)).
type ICMPError struct {
	// Peer is the destination of the packet.
	Peer netip.AddrPort
	// Offender is the sender of the message: a router, or the peer. The zero Addr if the kernel did not report it.
	Offender netip.Addr
	// Type and Code are the fields of the message: ICMP (RFC 792) if Peer is an IPv4 address, ICMPv6 (RFC 4443) if it is an
	// IPv6 address.
	Type, Code uint8
	// Err is the errno that the kernel maps them to: ECONNREFUSED for an unreachable port, EHOSTUNREACH for an exceeded
	// TTL, EMSGSIZE for a packet that is too big.
	Err syscall.Errno
	// MTU is the MTU of the link that the packet was too big for, in bytes with the IP header; 0 if Err is not EMSGSIZE,
	// or the router did not report it (RFC 1191 section 4).
	MTU int
	// Cookie is the Cookie of the Out, if Matched: the message quotes the first 16 bytes of its payload, or all of them, and
	// none of the last 4,096 packets with another Cookie begins with the same bytes. Messages of routers that quote no
	// payload (RFC 792 requires none) and packets of SendOptions.Unstamped are not matched.
	Cookie  uint64
	Matched bool
}

// icmpMessage is a message of ICMP by its type and code.
type icmpMessage struct{ kind, code uint8 }

// prohibited is the meaning of the messages that a filter sends (RFC 1812 section 5.2.7.1, RFC 4443 section 3.1).
const prohibited = "administratively prohibited"

// Meanings of packets that passed as many routers as their TTL, or hop limit, permits.
const (
	TTLExceeded      = "time to live exceeded"
	HopLimitExceeded = "hop limit exceeded"
)

// icmpMeanings are the meanings of the messages of IPv4 (RFC 792, RFC 1812) that an errno does not tell.
func icmpMeanings() map[icmpMessage]string {
	return map[icmpMessage]string{
		{3, 0}: "network unreachable", {3, 1}: "host unreachable", {3, 2}: "protocol unreachable", {3, 3}: "port unreachable",
		{3, 4}: "fragmentation needed", {3, 6}: "network unknown", {3, 7}: "host unknown",
		{3, 9}: prohibited, {3, 10}: prohibited, {3, 13}: prohibited, {11, 0}: TTLExceeded,
	}
}

// icmp6Meanings are the meanings of the messages of IPv6 (RFC 4443).
func icmp6Meanings() map[icmpMessage]string {
	return map[icmpMessage]string{
		{1, 0}: "no route", {1, 1}: prohibited, {1, 3}: "address unreachable", {1, 4}: "port unreachable",
		{1, 5}: prohibited, {1, 6}: prohibited, {2, 0}: "packet too big", {3, 0}: HopLimitExceeded,
	}
}

// Meaning is the message in words, such as "port unreachable".
func (e ICMPError) Meaning() string {
	meanings := icmpMeanings()
	if e.Peer.Addr().Unmap().Is6() {
		meanings = icmp6Meanings()
	}
	if words, known := meanings[icmpMessage{e.Type, e.Code}]; known {
		return words
	}
	return fmt.Sprintf("type %d, code %d", e.Type, e.Code)
}

// Prohibited reports whether a filter rejects the packets, such as a firewall with `reject with icmp host-prohibited`.
func (e ICMPError) Prohibited() bool { return e.Meaning() == prohibited }

// Error is the error of the kernel and the message, such as "no route to host (ICMP host unreachable from 192.0.2.1)".
func (e ICMPError) Error() string {
	from := ""
	if e.Offender.IsValid() && !e.Offender.IsUnspecified() {
		from = " from " + e.Offender.Unmap().String()
	}
	return fmt.Sprintf("%v (ICMP %s%s)", e.Err, e.Meaning(), from)
}

// Unwrap is the errno.
func (e ICMPError) Unwrap() error { return e.Err }
