package tcptraffic

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/core/tcpstamp"
	"oneway.example/exporter/load/loadcontrol"
	"oneway.example/exporter/net/tcpsocket"
)

// FlowEnd is what one end of a flow did and knows; the zero value: the record of the load server's end did not arrive.
type FlowEnd struct {
	Ended Ended `json:"ended"`
	// Payload are the bytes that the application has written or read. First and Last are the times of the
	// first and the last of them since this end began; zero: none.
	Payload int64         `json:"payload_bytes"`
	First   time.Duration `json:"first_ns"`
	Last    time.Duration `json:"last_ns"`
	// Buffer is the send buffer of the sending end, or the receive buffer, at the end of the flow.
	Buffer tcpsocket.Buffer `json:"buffer"`
	// CongestionControl is the algorithm in use.
	CongestionControl string `json:"congestion_control"`
	// Count is the number of Samples, Stamped those of the records of a flow with stamps; nil: it had none.
	Count   int      `json:"samples"`
	Stamped *Stamped `json:"stamped,omitempty"`
	// Final is the kernel's state at the end.
	Final   tcpsocket.Info `json:"-"`
	Samples []Sample       `json:"-"`
	// Sent and Acks are of the sending end, Received of the receiving one; Handshake is the zero value without Stamped.
	Sent      []tcpstamp.Sent     `json:"-"`
	Received  []tcpstamp.Received `json:"-"`
	Acks      []tcpstamp.Ack      `json:"-"`
	Handshake tcpstamp.Handshake  `json:"-"`
}

// Known reports whether the record of this end arrived.
func (f *FlowEnd) Known() bool { return f.Ended != "" }

// Stamped are the numbers of records of a flow with stamps.
type Stamped struct {
	Sent     int `json:"sent,omitempty"`
	Received int `json:"received,omitempty"`
	Acks     int `json:"acks,omitempty"`
}

// check returns an error unless an end may have so many records.
func (s *Stamped) check(sends bool) error {
	most := Stamped{Received: tcpstamp.MaxReceived}
	if sends {
		most = Stamped{Sent: tcpstamp.MaxSent, Acks: tcpstamp.MaxBursts * tcpstamp.MaxBurstAcks}
	}
	if min(s.Sent, s.Received, s.Acks) < 0 || s.Sent > most.Sent || s.Received > most.Received || s.Acks > most.Acks {
		return fmt.Errorf("%d, %d and %d stamped bytes sent, received and acknowledged, want 0 to %d, %d and %d", s.Sent, s.Received, s.Acks, most.Sent, most.Received, most.Acks)
	}
	return nil
}

// FirstAcked returns the time of the first sample of the client's end in which payload was acknowledged; false: none has it.
func (f *FlowEnd) FirstAcked() (time.Duration, bool) {
	i := slices.IndexFunc(f.Samples, func(s Sample) bool { return s.Acked > 1+cookieBytes+1 }) // SYN, cookie, index
	if i < 0 {
		return 0, false
	}
	return f.Samples[i].At, true
}

// Sample is the state of a connection at a time. All fields have a fixed size, for encoding/binary.
type Sample struct {
	// At is the time since this end began; it increases.
	At time.Duration
	// Payload are the bytes that the application had written or read.
	Payload int64
	// The others are those of tcpsocket.Info and tcpsocket.Memory.
	Acked, Sent, Retransmitted, Outstanding, NotSent int64
	Cwnd, Ssthresh, DeliveryRate                     int64
	RTT, RTTVar, MinRTT                              time.Duration
	Busy, RwndLimited, SndbufLimited                 time.Duration
	SendBuffer, ReceiveBuffer                        int64
}

// appendRecords appends the final states and the samples of flows, and the records of those with stamps.
func appendRecords(b []byte, flows []FlowEnd) []byte {
	for _, f := range flows {
		b, _ = binary.Append(b, binary.BigEndian, f.Final) // never fails: fixed size
		b, _ = binary.Append(b, binary.BigEndian, f.Samples)
		if f.Stamped != nil {
			for _, records := range []any{f.Handshake, f.Sent, f.Received, f.Acks} {
				b, _ = binary.Append(b, binary.BigEndian, records)
			}
		}
	}
	return b
}

// parse completes the flows of finished from its data and checks them against the plan. Its errors wrap
// loadcontrol.ErrProtocol.
func (m *finished) parse(p *Plan, data []byte) error {
	wrong := func(format string, args ...any) error {
		return fmt.Errorf("%w: finished %d: %s", loadcontrol.ErrProtocol, m.ID, fmt.Sprintf(format, args...))
	}
	if m.Error != "" && len(m.Flows) == 0 {
		m.Error = loadcontrol.Printable(m.Error)
		return nil
	}
	if len(m.Flows) != len(p.Flows) {
		return wrong("%d flows, want %d", len(m.Flows), len(p.Flows))
	}
	most, r := p.samples(), bytes.NewReader(data)
	for i := range m.Flows {
		f := &m.Flows[i]
		if f.Count < 0 || f.Count > most {
			return wrong("flow %d has %d samples, want 0 to %d", i, f.Count, most)
		}
		if f.Stamped != nil {
			if !p.stamped(i) {
				return wrong("flow %d has stamps, want none", i)
			}
			if err := f.Stamped.check(p.Direction == sample.Reverse); err != nil {
				return wrong("flow %d has %v", i, err)
			}
		}
		if !f.readRecords(r) {
			return wrong("data of flow %d are too short", i)
		}
		if why := f.implausible(p); why != "" {
			return wrong("flow %d: %s", i, why)
		}
		if err := f.checkStamps(); err != nil {
			return wrong("flow %d: %v", i, err)
		}
		f.CongestionControl = loadcontrol.Printable(f.CongestionControl)
	}
	if r.Len() > 0 {
		return wrong("%d bytes of data too many", r.Len())
	}
	return nil
}

// readRecords reads what appendRecords appends for a flow; the numbers of records are in their ranges. It reports whether
// all is there.
func (f *FlowEnd) readRecords(r *bytes.Reader) bool {
	ok := binary.Read(r, binary.BigEndian, &f.Final) == nil && readAll(r, &f.Samples, f.Count)
	if s := f.Stamped; ok && s != nil {
		ok = binary.Read(r, binary.BigEndian, &f.Handshake) == nil && readAll(r, &f.Sent, s.Sent) && readAll(r, &f.Received, s.Received) && readAll(r, &f.Acks, s.Acks)
	}
	return ok
}

// readAll reads n records, and allocates nothing if there are fewer.
func readAll[T any](r *bytes.Reader, to *[]T, n int) bool {
	var one T
	if n > r.Len()/binary.Size(one) {
		return false
	}
	*to = make([]T, n)
	return binary.Read(r, binary.BigEndian, *to) == nil
}

// implausible returns which value is out of its range; empty: none is.
func (f *FlowEnd) implausible(p *Plan) string {
	latest := longest(p) + grace
	i := &f.Final
	counts := []int64{
		f.Payload, int64(f.First), int64(f.Last), int64(f.Buffer.Asked), int64(f.Buffer.Effective), int64(i.RTO),
		i.Sent, i.Retransmitted, i.Acked, i.Received, i.SegmentsOut, i.SegmentsIn, i.RetransmittedSegments, i.Delivered, i.DeliveredCE, i.ReceivedCE, i.RTOs, i.MSS,
	}
	times := []time.Duration{i.RTT, i.MinRTT, i.ReceiverRTT, i.Busy, i.RwndLimited, i.SndbufLimited}
	for _, s := range f.Samples {
		counts = append(counts, s.Acked, s.Sent, s.Retransmitted, s.Outstanding, s.NotSent, s.Cwnd, s.Ssthresh, s.DeliveryRate, s.SendBuffer, s.ReceiveBuffer)
		times = append(times, s.RTT, s.RTTVar, s.MinRTT, s.Busy, s.RwndLimited, s.SndbufLimited)
	}
	for _, v := range counts {
		if v < 0 || v > maxBytes {
			return fmt.Sprintf("a value is %d, want 0 to %d", v, int64(maxBytes))
		}
	}
	for _, t := range times {
		if t < 0 || t > latest+connectTime {
			return fmt.Sprintf("a time is %v, want 0s to %v", t, latest+connectTime)
		}
	}
	switch {
	case !slices.Contains(reasons(), f.Ended):
		return fmt.Sprintf("ended %.20q is unknown", f.Ended)
	case f.Last < f.First || f.Last > latest:
		return fmt.Sprintf("payload from %v to %v, want at most %v", f.First, f.Last, latest)
	case i.Retransmitted > i.Sent || i.DeliveredCE > i.Delivered || i.ReceivedCE > i.SegmentsIn || len(f.CongestionControl) > 15:
		return "parts exceed their whole"
	}
	before := Sample{At: -1}
	for _, s := range f.Samples {
		if s.At <= before.At || s.At > latest || s.Payload < before.Payload || s.Payload > f.Payload {
			return fmt.Sprintf("sample at %v with %d bytes after one at %v with %d", s.At, s.Payload, before.At, before.Payload)
		}
		before = s
	}
	return ""
}

// checkStamps validates the records of a flow with stamps.
func (f *FlowEnd) checkStamps() error {
	return errors.Join(
		tcpstamp.CheckSent(f.Sent, f.Payload), tcpstamp.CheckReceived(f.Received, f.Payload), tcpstamp.CheckAcks(f.Acks, f.Payload), f.Handshake.Check(),
	)
}
