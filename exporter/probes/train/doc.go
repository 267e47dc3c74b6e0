// Package train is the probe that learns a path's capacity from packet trains: packets
// back to back, which the slowest link spreads to the time that it takes for each (WPI EvDO
// report, sections 3.2.4 and 3.5: 30 trains of 25 packets for each of four sizes). It also finds the
// path's MTU (RFC 8899), and says which trains are fragmented.
//
// Of each direction and size:
//
//	a train alone, to see how long the link takes for it, and whether its queue holds one
//	more and more together, ten in all (group), and a pause; and again, until there are enough
//	as many again as were discarded, up to a limit (repeats)
//
// and of the largest size that is not fragmented three long trains, which empty a token bucket
// that the others do not.
//
// A train is discarded if a packet was lost, reordered or duplicated, or if something other
// than the slowest link has set the packets' distances (package estimate/capacity says
// what). Where too few are left there is no capacity, but the reason why.
//
// Trains whose last packets are lost again and again are too long for the queue of the
// slowest link, and are made shorter.
package train
