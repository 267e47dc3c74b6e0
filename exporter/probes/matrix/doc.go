// Package matrix is the probe that measures a path at every combination of some packet
// sizes and some packet rates: throughput at the sender and at the receiver, one-way delay,
// delay variation and loss. Sizes and rates are those of the D-ITG report on heterogeneous
// wireless networks (chapter 2, table 1): 64 to 1500 octets, 100, 1000 and 10000 packets a
// second, for access networks whose limit may be octets a second or packets a second.
//
// Two figures are not that report's. It had no clocks to trust and measured the round trip,
// as an upper bound of the one-way delay (sections 2.1.2 and 2.2.6); here the one-way delay is
// measured. Its jitter is the standard deviation of the delays (section 2.1.3); here it is the mean
// absolute difference in delay of packets sent one after the other (RFC 5481 section 4.1).
//
// A cell is one size at one rate in one direction. Cells are measured one after the other in
// an order by chance, so that a path that changes with time spoils no row or column in
// particular; the seed is in the report. A cell that the far end's token or what is left of
// the link's data budget does not allow is left out, and the report says so.
//
// What the sender could not send is the sender's shortfall, and what the receiving host
// dropped for want of buffer is the receiver's: neither is loss of the path.
package matrix
