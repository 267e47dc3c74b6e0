// Package ipheader has the bytes of the headers of packets, without IP options and extension headers.
package ipheader

// Bytes of single headers.
const (
	IPv4 = 20 // RFC 791 section 3.1
	IPv6 = 40 // RFC 8200 section 3
	UDP  = 8  // RFC 768
	TCP  = 20 // RFC 9293 section 3.1
	// TCPTimestamps is the option in each segment, padded (RFC 7323 section 3.2 and appendix A).
	TCPTimestamps = 12
	// MaxUDP is the most of IP and UDP together.
	MaxUDP = IPv6 + UDP
)

// AnyPathBytes is a size of packets that nearly every path carries, with the IP header: BASE_PLPMTU of RFC 8899 section 5.1.2.
const AnyPathBytes = 1200

// WithIP returns the bytes of an IP header and the one that follows it.
func WithIP(ipv6 bool, next int) int {
	if ipv6 {
		return IPv6 + next
	}
	return IPv4 + next
}
