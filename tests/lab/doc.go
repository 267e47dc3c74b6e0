// Package lab is an emulated network with known truth: a client and a server
// in separate network namespaces, and between them a link with a configured
// rate, delay, queue and faults, and with a log of the true
// outcome of every packet.
//
//	client ns              router ns                      server ns
//	+---------+      +-----------------------+          +---------+
//	| wan0    |======| client   link  server |==========| wan0    |
//	| lan0    |======|=======(not here)======|==========| lan0    |
//	+---------+      +-----------------------+          +---------+
//
// wan0 to wan0 is one subnet (IPv4 and IPv6, MTU 1500) through the link; lan0
// to lan0 is a veth pair without any impairment. Nothing leaves the machine.
//
// # The link's treatment of a packet
//
// In this order, for each direction separately:
//
//  1. Droptail queue. Sizes are IP bytes (IPv4 total length, IPv6 payload
//     length + 40), never Ethernet headers. A packet that would make the bytes
//     waiting exceed Link.Queue is dropped (the rule of bfifo and tbf, so that
//     the queue never holds more than Queue and adds at most Queue/Rate).
//     Other disciplines, and limits in packets or in time, replace it (package
//     bottleneck), which also queues the packets of others (Link.Others).
//  2. Rate. As tbf with a bucket of one packet:
//     departure(n) = max(entry(n), departure(n-1) + 8 size(n-1) / Rate).
//     So a lone packet does not wait, and packets of a train leave exactly
//     8 size/Rate apart. A trace, slots or a token bucket replace it, and
//     a second queue with its rate may follow.
//  3. Loss, after the queue: a lost packet has used the rate.
//  4. ECN: the mark CE at random (Link.Mark). Corruption: one byte of the UDP payload is
//     changed and the checksum repaired, so that the corruption reaches the socket
//     (RepairChecksum).
//  5. Delay, plus a uniform jitter of 0..Jitter. Jitter never reorders: a packet
//     leaves no earlier than the one before it (so packets closer together than
//     Jitter have mostly the upper part of it). A retransmission (Link.Retransmit)
//     is a delay of this kind, too. Grow and Outage change the delay in the run.
//  6. Reordering: a chosen packet is held back until the next 1, 2 or 3 packets
//     of its class have left, or for HoldTimeout beyond its time at most.
//  7. Duplication: the copy leaves right after the packet, and uses no rate.
//
// Loss, marks, duplication and reordering apply to UDP and TCP only, corruption to UDP only;
// queue, rate and delay also to ICMP; ARP and neighbor discovery pass at once.
//
// # Source of the truth
//
// A packet's entry is the kernel's timestamp at the router's veth end, taken
// inside the sender's system call. The link's times begin at that timestamp,
// so the lab's own wake-up latency has no effect while it is smaller than
// Delay. A packet's exit is the interval between two clock readings around the
// system call that forwards it. Delays below about 0.3 ms are exceeded, but
// logged as they were.
//
// Punctuality depends on the machine: half of the packets leave within 10 us of
// their time, 99 % within some 50 us; but with the program under test in the same
// process its scheduler and collector can stop the link's threads too, and on a
// busy machine one packet in thousands is 1..200 ms late. So compare a measurement
// with the Record of the packet, not with the profile; and run programs that use
// much CPU as a Command.
//
// The link is a pair of AF_PACKET sockets on veth ends rather than a TUN device:
// a TUN reader only has the time of its wake-up, 30 us to milliseconds after the
// arrival; an AF_PACKET ring has the kernel's timestamp. Offloads are off,
// so that frames are as on a wire, with checksums.
//
// A loss that the lab itself causes (a full ring, a failed send, frames that the
// kernel counted and the link did not receive) is an error of Err, Drain and
// Close, and never appears as a loss of the network.
package lab
