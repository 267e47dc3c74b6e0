// Package reflector answers STAMP test packets (RFC 8762 section 4.3, RFC 8972)
// and the test packets of TWAMP-Light senders.
//
// # What is answered
//
// A request of at least 41 bytes gets one reply of exactly its length, never
// a longer one: the reflector amplifies nothing. T2 is the kernel's receive
// stamp, T3 is read in user space after the whole batch has been prepared; the
// kernel's true transmit stamp follows in the next reply (Follow-Up Telemetry)
// and in the two after that (our Receipt). Stamps are in the format (Z bit) of
// the request's Error Estimate.
//
// TLVs: Extra Padding, Timestamp Information, Class of Service, Direct
// Measurement, Follow-Up Telemetry, HMAC and our Receipt are understood.
// Others, Location and Access Report among them, come back with the U flag. At
// a malformed one the M flag is set and the rest is copied (RFC 8972 section 4).
// If the HMAC TLV fails, is missing in authenticated mode or stands in the
// wrong place, every TLV comes back unprocessed with the I flag (section 4.8); a session that had
// Receipts within the last minute takes it for damage and does not answer.
//
// # Sessions
//
// A session is (peer address and port, local address, SSID, Run of the Receipt,
// authenticated or not). Run is part of the key, so that a sender that restarts
// gets a new session while nobody else can reset the old one by guessing. A
// TWAMP-Light sender pads from byte 14 on, where STAMP has the SSID: if the
// bytes that STAMP wants zero are not, the SSID is taken as 0, else random
// padding would open a session for every packet.
//
// When the address is unknown but the Receipt repeats the Epoch that only the
// receiver of our answers knows, and Run and SSID fit, a NAT has rebound: the
// session moves to the new address.
//
// In a request the Receipt's Tx field, which has no other use there, holds the
// sender's waiting time (Tmax) in milliseconds; 0 means Options.LossWait.
//
// A query's reply has no number of its own: Seq is the number of the next
// reply, and the stamps in the Receipt are those of the last two replies,
// Tx-1 and Tx-2.
//
// # Protection
//
// An HMAC does not tell who sent a packet: it may be recorded. A copy of an authenticated request is
// counted and not answered. A request from another address than its session's is answered if its number is
// not decided and has not come, and moves the session if it is ahead of all in number and time. A session that was
// opened by recorded requests begins anew with one that is younger than they by more than the waiting
// time. A request without a Receipt is a copy only if its T1 is not news either: its sender may have restarted.
//
// Sessions come in four tiers. New ones are on trial, or signed if they are
// authenticated. One is proven when it
// repeats our Epoch: its sender does receive our answers, so its address is not
// spoofed. One is seasoned when it has sent 16 packets over 10 seconds: senders
// without a Receipt cannot prove more. (An HMAC proves less: a captured
// packet can be replayed from any address.) A full table evicts the session on
// trial that has been silent longest; if there is none, a newcomer that is
// authenticated has the signed one that has been silent longest evicted, and any other is refused.
// At most a quarter of the table is seasoned, and a half signed; beyond that, the most silent one
// goes back on trial. A flood of spoofed sources therefore only evicts itself.
// One source (/32 or /64) may hold half the table.
//
// How many sessions may begin is limited, of one source, of one network (/24 or /48) and in
// all (Options.NewSessions); those that are authenticated have a limit of their own. A packet
// beyond it costs a few look-ups and no reply, so that the socket is emptied for the
// peers that are known. All share the socket's buffer: what the kernel drops there, before
// anybody has looked at it, is anyone's.
//
// Sessions and windows take no more memory than a part of what the process may take
// (Options.MemoryLimit). When three of four sessions are gone, it is given back. A window grows
// beyond its first 2 KiB within a quota, of which one source may have half, and all
// sessions on trial an eighth.
//
// Each source has a token bucket (Options.RatePackets), kept in a bounded
// table. Whoever sends under a peer's address can use up the burst for newcomers there; sessions
// that are proven or authenticated have as much again, and so go before.
//
// What is refused for the host's sake (rate, new sessions, a full table) is told to the
// session that it belongs to, with the socket's drops: no loss of the path. To which session the
// packets of before a session belonged is not known; it is told at most as many as it
// has sent.
//
// Without a required key, HMACs are computed only for packets that look
// authenticated: that format has zeros where the other has T1 and the Error
// Estimate. False HMACs are limited by source and in total; the key that
// verified a session before is tried whatever the limit.
//
// Loops: two reflectors that reply each other would do so forever after one
// spoofed packet. A request is refused if it comes from UDP port 862 or a port
// that we listen on (where reflectors are), or if it looks like a reply: a
// reply has T3 and T2 of one clock, at most ten seconds apart, where a
// request has its T1 and zeros or padding. The second rule alone ends a loop
// with a reflector on any port, or with an echo service, after one round.
//
// Never answered: source port 0, and sources that are unspecified, multicast or
// broadcast addresses, or multicast destinations.
package reflector
