// Package lab is an emulated network with known truth: a client and a server
// in network namespaces of their own, and between them a link of which the
// rate, the delay, the queue and the faults are given, and of which the true
// outcome of every packet is written down.
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
// # What the link does to a packet
//
// In this order, for each direction apart:
//
//  1. Droptail queue. Sizes are IP bytes (IPv4 total length, IPv6 payload
//     length + 40), never Ethernet headers. A packet that would make the bytes
//     waiting exceed Link.Queue is dropped (the rule of bfifo and tbf, so that
//     the queue never holds more than Queue and adds at most Queue/Rate).
//     Other disciplines, and limits in packets or in time, take its place (package
//     bottleneck), which is also where others' packets (Link.Others) wait.
//  2. Rate. As tbf with a bucket of one packet:
//     departure(n) = max(entry(n), departure(n-1) + 8 size(n-1) / Rate).
//     So a lone packet waits for nothing, and packets of a train leave exactly
//     8 size/Rate apart. A trace, slots or a token bucket take its place, and
//     a second queue with its rate may follow.
//  3. Loss, after the queue: a packet lost on the air has used the air.
//  4. Corruption: one byte of the UDP payload is changed and the checksum made
//     right again, so that the damage reaches the socket (RepairChecksum).
//  5. Delay, plus a uniform jitter of 0..Jitter. Jitter never reorders: a packet
//     leaves no earlier than the one before it (so packets closer together than
//     Jitter see mostly the upper part of it). A retransmission (Link.Retransmit)
//     is a delay of this kind, too. Grow and Outage change the delay in the run.
//  6. Reordering: a chosen packet is held back until the next 1, 2 or 3 packets
//     of its class have left, or for HoldTimeout beyond its time at most.
//  7. Duplication: the copy leaves right after the packet, and uses no rate.
//
// Loss, duplication and reordering meet UDP and TCP only, corruption UDP only;
// ICMP meets queue, rate and delay; ARP and neighbor discovery pass at once.
//
// # Where the truth comes from
//
// A packet's entry is the kernel's own stamp at the router's veth end, taken
// inside the sender's system call. The link's times are counted from that stamp,
// so the lab's own wake-up latency is made up for as long as it is smaller than
// Delay. A packet's exit is the interval between two clock readings around the
// system call that sends it on. Delays below about 0.3 ms cannot be kept, but
// are logged as they were.
//
// Punctuality depends on the machine: half of the packets leave within 10 us of
// their time, 99 % within some 50 us; but with the program under test in the same
// process its scheduler and collector can stop the link's threads too, and on a
// busy machine one packet in thousands is 1..200 ms late. So hold a measurement
// against the Record of the packet, not against the profile; and run what is
// heavy as a Command.
//
// The link is a pair of AF_PACKET sockets on veth ends rather than a TUN device:
// what a TUN reader knows is when it woke up, 30 us to milliseconds after the
// packet came; an AF_PACKET ring carries the kernel's stamp. Offloads are off,
// so that frames are what would be on the wire, checksums filled in.
//
// A loss of the lab's own making (a full ring, a failed send, frames that the
// kernel counted and the link did not see) is an error from Err, Drain and
// Close, and never looks like a loss of the network.
package lab
