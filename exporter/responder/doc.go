// Package responder is the far end of heavy tests: it receives and sends streams of
// test packets for clients that hold a token, within the limits of that token.
//
// Control is HTTPS (package control), test traffic UDP (package stream), on one port
// number. What stands between a stranger and a stream, in the order in which it is met:
//
//	TCP connection   MaxConnections in all, a quarter of them strangers from one address;
//	                 for one more, the oldest stranger of the busiest source goes; Allow
//	TLS 1.3          5 s for the handshake, and 5 s for the request; 8 KiB of headers
//	token            by its SHA-256, or a client certificate; 401 otherwise
//	sessions         MaxSessions in all, and those of the token, 2 by default; 429 otherwise
//	Open             within 10 s; one session at a time on the link, and turns between the
//	                 tokens that want it; the octets of the whole session are set aside of
//	                 the token's day, and are saved, or it is refused
//	Prove            the cookie that went, no longer than the hello, to the address that
//	                 is to receive: nothing is sent anywhere else
//	Transfer         rate, duration and octets within the token's and what was announced
//
// The control connection is the session. When it ends, or is silent (control.Outage), all
// that belongs to it ends: streams, memory, the hold of the link. Refusals say why, and
// when to come back. The day's use of each token is kept in the state directory, with what
// running sessions may still use counted in: a responder that dies forgets nothing.
//
// Memory is bounded by MaxConnections (some 50 KiB each), and by the one session that has
// the link: some 60 octets for each packet of the streams that it runs, stream.MaxPackets
// at the most in each direction.
//
// The only packets that go to an address before its proof are challenges: each answers a
// hello that carries the 64 random bits of an authorised session, is no longer than it,
// and there are at most 20 a second (package stream).
//
// A stream goes on with the consent of its receiver: hellos from the proved address, and no ICMP
// errors. Without, it pauses, and ends after a while.
//
// A transfer with feedback is authorised as if all of its plan were sent. An order of the
// client's, which must come from the proved address, chooses a rate within it, never above. Reports of what is
// received go to that address only, and are fewer octets than were received.
//
// The tokens file holds one token a line, as "oneway token new" writes it; it is read
// again when it changes, and a token that is taken out of it is refused from its next
// transfer on:
//
//	# name   sha256 of the token, or: certificate   limits; none: no limit
//	berlin   sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08 rate=20Mbit duration=5m per-day=10GB
//	seoul    certificate sessions=2
//
// "certificate" stands for a client certificate whose common name is the token's name,
// signed by ClientCAFile.
package responder
