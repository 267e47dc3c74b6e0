package main

import (
	"net/netip"
	"sync/atomic"

	"oneway.example/exporter/core/sample"
	"oneway.example/tests/lab"
	"oneway.example/tests/tcplog"
	"oneway.example/tests/testpacket"
)

// A key names a packet of path client-to-server in the link's log:
//
//	request   its number
//	reply      1<<62 | number of its request << 31 | its own number
//	load       1<<63 | number of its transfer << 32 | its number
//
// Segments of TCP have keys of package tcplog, in which bits 62 and 63 are not set; no number of a request comes near its bit.
// Transfers of several runs may have one number; runs are distinguished by time.
const (
	replyKey = 1 << 62
	loadKey  = 1 << 63
	low31    = 1<<31 - 1
)

// classifier selects the requests of the client's agent, the replies to them, and the packets of load tests. The
// requests of the server's agent are on another path.
func classifier() lab.Classifier {
	client, server := lab.Addresses()
	request, load := netip.AddrPortFrom(server, reflectorPort), netip.AddrPortFrom(server, loadServerPort)
	return func(payload []byte, src, dst netip.AddrPort) (key uint64, ok bool) {
		switch {
		case dst == request && src.Addr() == client:
			seq, ok := testpacket.STAMP(payload)
			return uint64(seq), ok
		case src == request && dst.Addr() == client:
			seq, ok := testpacket.STAMP(payload)
			to, whole := testpacket.Request(payload)
			return replyKey | uint64(to&low31)<<31 | uint64(seq&low31), ok && whole
		case dst == load || src == load:
			transfer, seq, ok := testpacket.Load(payload)
			return loadKey | uint64(transfer)<<32 | uint64(seq), ok
		}
		return 0, false
	}
}

// segments selects the segments of TCP transfers while on is set: else the log of a demo that keeps running would fill.
func segments(on *atomic.Bool) lab.SegmentClassifier {
	client, _ := lab.Addresses()
	transfers := tcplog.Segments(client, loadServerPort)
	return func(s lab.Segment) (key uint64, ok bool) {
		if !on.Load() {
			return 0, false
		}
		return transfers(s)
	}
}

// light returns the requests, or the replies, of a direction's log, with their own number as key, and for each reply
// the number of its request.
func light(log []lab.Record, d sample.Direction) (all []lab.Record, to []uint64) {
	for _, r := range log {
		switch {
		case r.Key&loadKey != 0, tcplog.Is(&r), (r.Key&replyKey != 0) != (d == sample.Reverse):
			continue
		case d == sample.Reverse:
			to = append(to, r.Key>>31&low31)
			r.Key &= low31
		}
		all = append(all, r)
	}
	return all, to
}
