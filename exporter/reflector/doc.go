// Package reflector is a STAMP Session-Reflector (RFC 8762 section 4.3, RFC 8972), also for TWAMP-Light senders. A
// request is a test packet or a statistics query (Receipt with the Query flag); a reply is the reflected packet.
//
// # What is answered
//
// A request of at least 41 bytes gets one reply of exactly its length, never a longer one: there is no amplification. With
// Options.ShortRequests one of 14 to 43 bytes gets a base packet.
// T2 is the kernel's receive timestamp, T3 is read in user space after the whole batch has been prepared; the kernel's
// transmit timestamp follows in the next reply (Follow-Up Telemetry) and in the two after that (Receipt). Timestamps
// are in the format (Z bit) of the request's Error Estimate.
//
// Extra Padding, Timestamp Information, Class of Service, Direct Measurement, Follow-Up Telemetry, HMAC and Receipt are
// the supported TLVs. Others, Location and Access Report among them, are returned with the U flag. A malformed one is
// returned with the M flag and the rest is copied (RFC 8972 section 4). If the HMAC TLV fails, is missing in
// authenticated mode or is misplaced, every TLV is returned unprocessed with the I flag (section 4.8); a session that
// had Receipts within the last minute treats the packet as damaged and does not reply.
//
// # Sessions
//
// A session is (peer address and port, local address, SSID, Run of the Receipt, authenticated or not). Run is part of
// the key, so that a sender that restarts gets a new session while no other host can reset the old one by guessing. A
// TWAMP-Light sender pads from byte 14 on, where STAMP has the SSID: if the bytes that STAMP requires to be zero are
// not, the SSID is 0, because random padding would open a session for every packet.
//
// If the address is unknown but the Receipt repeats the Epoch, which only a receiver of the replies knows, and Run and
// SSID match, a NAT binding has changed: the session moves to the new address, with the test packets that have come from there without a
// Receipt.
//
// In a request the Receipt's Tx field, which is otherwise unused there, is the sender's waiting time (Tmax) in
// milliseconds; 0 means Options.LossWait.
//
// Test packets without a Receipt belong to the session of their flow that was promoted last (see Protection). When its sender restarts, the
// session that the first statistics query of the new Run opens gets those packets that were sent after the query and whose numbers the former
// session does not wait for: a spoofed query takes nothing from it. A former session that was not proven gets none of them. A final query ends
// the claim of its session.
//
// The reply to a statistics query has no number of its own: Seq is the number of the next reply, and the timestamps in
// the Receipt are those of the last two replies, Tx-1 and Tx-2.
//
// # Protection
//
// An HMAC does not authenticate the sender of a packet, which may be recorded and replayed. A copy of an authenticated
// request is counted and gets no reply. A request from another address than its session's gets a reply if its number is
// undecided and has not been received, and moves the session if it is ahead of all others in number and time. A session
// opened by recorded requests starts anew with a request that is newer by more than the waiting time. A request without
// a Receipt is a copy only if its T1 is not new either: its sender may have restarted.
//
// Sessions have four tiers. A new one is on trial, or signed if it is authenticated. It is proven when it repeats the
// Epoch: its sender receives the replies, so its address is not spoofed. It is established when it has sent 16 packets
// over 10 seconds: senders without a Receipt cannot prove more. (An HMAC proves less: a captured packet can be replayed
// from any address.) A full table evicts the session on trial that has been idle longest; if there is none, a new
// authenticated session evicts the signed one that has been idle longest, and any other is refused. At most a quarter
// of the table is established, and a half signed; beyond that, the session idle longest returns to trial. A flood of
// spoofed sources therefore evicts only its own sessions. One source (/32 or /64) may have half the table.
//
// New sessions are limited per source, per network (/24 or /48) and in total (Options.NewSessions); authenticated ones
// have limits of their own. A packet beyond the limit costs a few look-ups and gets no reply, so that the socket is
// read in time for known peers. All peers share the socket's buffer: packets that the kernel drops there are not
// attributed to a peer.
//
// Sessions and windows use a limited part of the process's memory limit (Options.MemoryLimit). When three quarters of
// the sessions are closed, their memory is released. A window grows beyond its first 2 KiB within a quota, of which one
// source may use half, and all sessions on trial an eighth.
//
// Each source has a token bucket (Options.RatePackets) in a bounded table. A sender with a spoofed address can use up
// the burst for new sessions of that address; sessions that are proven or authenticated have the same burst in
// addition.
//
// Packets refused for lack of this host's resources (rate, new sessions, a full table) are reported to their session
// together with the socket's drops: they are not lost on the path. Refused packets before a session opens cannot be
// attributed; the session reports at most as many as its sender has sent.
//
// Without a required key, HMACs are computed only for packets that look authenticated: that format has zeros where the
// other has T1 and the Error Estimate. Invalid HMACs are limited per source and in total; the key that verified a
// session before is exempt from the limit.
//
// Loops: two reflectors that reply to each other would do so forever after one spoofed packet. A request is refused if
// it comes from UDP port stampfmt.Port or a local listening port (where reflectors are), or if it looks like a reply: a reply has
// T3 and T2 of one clock, at most ten seconds apart, where a request has its T1 and zeros or padding. The second rule
// alone ends a loop with a reflector on any port, or with an echo service, after one round.
//
// No reply is sent to source port 0, to unspecified, multicast or broadcast source addresses, or to requests with a
// multicast destination.
package reflector
