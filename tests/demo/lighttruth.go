package main

import (
	"math"
	"time"

	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/estimate/voice"
	"oneway.example/tests/lab"
)

// pathLog is the part of the link's log with the light probe's packets.
type pathLog struct {
	requests, replies []lab.Record
	to                []uint64 // of each reply, the number of its request
	// answered maps the number of a request to the indices of its received replies.
	answered map[uint64][]int
	lost     time.Duration // loss_timeout
}

func newPathLog(network *lab.Lab) *pathLog {
	p := &pathLog{answered: map[uint64][]int{}, lost: lossTimeout}
	p.requests, _ = light(network.Log(sample.Forward), sample.Forward)
	p.replies, p.to = light(network.Log(sample.Reverse), sample.Reverse)
	for i := range p.replies {
		if arrived(&p.replies[i]) {
			p.answered[p.to[i]] = append(p.answered[p.to[i]], i)
		}
	}
	return p
}

func arrived(r *lab.Record) bool { return r.Outcome == lab.Delivered && !r.Corrupted }

// came reports whether a packet was received within the waiting time; otherwise it is lost (RFC 7680 section 2.4), also
// after a stall of the link.
func (p *pathLog) came(r *lab.Record) bool { return arrived(r) && r.Delay() <= p.lost }

// late counts the packets of a log received after more than a time, and those that the agent knows of by a reply.
func (p *pathLog) late(d sample.Direction, log []lab.Record, than time.Duration) (told, all uint64) {
	for i := range log {
		r := &log[i]
		if !arrived(r) || r.Delay() <= than {
			continue
		}
		all++
		if d == sample.Reverse || len(p.answered[r.Key]) > 0 {
			told++
		}
	}
	return told, all
}

// trueDelay is the range of a packet's true delay. Of a duplicated packet the reply to either copy may have been
// received.
func trueDelay(r *lab.Record) bracket {
	b := bracket{r.Exit.After.Sub(r.Entry).Seconds(), r.Exit.Before.Sub(r.Entry).Seconds()}
	if r.Duplicated {
		b.most = max(b.most, r.Copy.Before.Sub(r.Entry).Seconds())
	}
	return b
}

func (p *pathLog) of(d sample.Direction) []lab.Record {
	if d == sample.Reverse {
		return p.replies
	}
	return p.requests
}

// window is the first window of the session, which starts with its first packet. The scrapes show its end: the last one
// without its values, and the first one with them. A packet that entered the link before sure was in it; one that
// entered after maybe was not.
type window struct{ sure, maybe instant.Time }

// members are the delays of a direction in a window. The agent does not know the forward delay of a request without a
// reply, and may omit or estimate it: it counts as uncertain. So do replies to copies of one request.
func (p *pathLog) members(d sample.Direction, w window) (m members) {
	all := p.of(d)
	for i := range all {
		r := &all[i]
		if r.Entry > w.maybe {
			break
		}
		b, sure := trueDelay(r), r.Entry <= w.sure
		switch {
		case !p.came(r):
			// It is lost only after the waiting time.
			b, sure = lostDelay(), r.Entry <= w.sure.Add(-p.lost)
		case d == sample.Forward:
			sure = sure && len(p.answered[r.Key]) > 0
		default:
			sure = sure && len(p.answered[p.to[i]]) == 1
		}
		if sure {
			m.sure = append(m.sure, b)
		} else {
			m.maybe = append(m.maybe, b)
		}
	}
	return m
}

// roundTrips are the sums of both delays of a window's requests with replies.
func (p *pathLog) roundTrips(w window) (m members) {
	for i := range p.requests {
		q := &p.requests[i]
		if q.Entry > w.maybe {
			break
		}
		if !p.came(q) {
			continue
		}
		there := trueDelay(q)
		for n, place := range p.answered[q.Key] {
			back := trueDelay(&p.replies[place])
			b := bracket{there.least + back.least, there.most + back.most}
			if n == 0 && len(p.answered[q.Key]) == 1 && q.Entry <= w.sure {
				m.sure = append(m.sure, b)
			} else {
				m.maybe = append(m.maybe, b)
			}
		}
	}
	return m
}

// rating is R of ITU-T G.107 of a G.711 call with an adaptive playout buffer, from the true delays, losses and bursts:
// once of the packets that were certainly in the window, once of all that may have been.
func (p *pathLog) rating(d sample.Direction, w window) *span {
	s := span{math.Inf(1), math.Inf(-1)}
	for _, end := range []instant.Time{w.sure, w.maybe} {
		if r, ok := p.ratingUntil(d, end); ok {
			s.Low, s.High = min(s.Low, r), max(s.High, r)
		}
	}
	return s.finite()
}

func (p *pathLog) ratingUntil(d sample.Direction, end instant.Time) (r float64, ok bool) {
	path, delays, last := voice.Path{Delay: math.MaxInt64}, []time.Duration{}, false
	all := p.of(d)
	for i := range all {
		one := &all[i]
		if one.Entry > end {
			break
		}
		path.Decided++
		if !p.came(one) {
			path.Lost++
			if !last {
				path.Bursts++
			}
		} else {
			delays = append(delays, one.Delay())
			path.Delay = min(path.Delay, one.Delay())
		}
		last = !p.came(one)
	}
	buffer := voice.AdaptivePlayout(0)
	for i, d := range delays {
		buffer.Add(uint64(i), d-path.Delay)
	}
	return rate(path, buffer.Snapshot())
}

// rate is false if there are too few packets, or the codec or the model is unknown.
func rate(path voice.Path, buffer voice.Buffered) (r float64, ok bool) {
	codec, err := voice.CodecByName("G.711-PLC")
	if err != nil {
		return 0, false
	}
	model, err := voice.ModelByName("g107")
	if err != nil {
		return 0, false
	}
	a, ok := path.Assess(codec, buffer, voice.Defaults(), model)
	return a.R, ok
}

// expectedR is R of G.107 for the configured path with a G.711 call and an adaptive playout buffer of at least 10 ms.
func expectedR(link lab.Link, lossRatio float64) float64 {
	const decided = 1e6
	path := voice.Path{Delay: link.Delay, Decided: decided, Lost: uint64(lossRatio * decided), Bursts: uint64(lossRatio * (1 - lossRatio) * decided)}
	r, _ := rate(path, voice.Buffered{Played: decided - path.Lost, Delay: max(10*time.Millisecond, link.Jitter)})
	return r
}

// counted are the true counts of the packets numbered below sent: of all, and of those old enough that both ends have
// decided them (settled). The agent's counts lie between the two. A packet later than the waiting time is lost.
func (p *pathLog) counted(d sample.Direction, sent uint64) (settled, all lab.Tally, lost [2]uint64) {
	var log []lab.Record
	for _, r := range p.of(d) {
		if r.Key < sent {
			log = append(log, r)
		}
	}
	if len(log) == 0 {
		return settled, all, lost
	}
	until := func(back time.Duration) []lab.Record {
		end, n := log[len(log)-1].Entry.Add(-back), len(log)
		for n > 0 && log[n-1].Entry > end {
			n--
		}
		return log[:n]
	}
	settled, all = lab.TallyOf(until(hostSlack)), lab.TallyOf(log)
	old := until(p.lost + hostSlack)
	surely, _ := p.late(d, old, p.lost+lateDoubt)
	_, maybe := p.late(d, log, p.lost-lateDoubt)
	return settled, all, [2]uint64{lab.TallyOf(old).Lost + surely, all.Lost + maybe}
}

// drawn are the packets of a direction's log that a fault could affect, and the faults.
type drawn struct{ passed, lost, delivered, duplicated, corrupted uint64 }

func (p *pathLog) drawn(d sample.Direction) (out drawn) {
	for _, r := range p.of(d) {
		switch r.Outcome {
		case lab.DroppedLoss:
			out.passed++
			out.lost++
		case lab.Delivered:
			out.passed++
			out.delivered++
			if r.Duplicated {
				out.duplicated++
			}
			if r.Corrupted {
				out.corrupted++
			}
		case lab.Inside, lab.DroppedQueue, lab.Failed:
		}
	}
	return out
}
