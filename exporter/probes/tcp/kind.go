// Package tcp is the probe that measures what TCP achieves over a path: throughput, round-trip time under its own
// load, retransmissions, and what limited it (RFC 6349; Woo 2010 section 6.3; Halepovic 2008 figures 4 to 7).
//
// It also compares flows that share a direction (Jain's index, and the share of each congestion control), and two
// directions of which one sends in the middle of the other (Halepovic 2008 figures 13 and 17).
//
// Throughput counts payload that arrived, once: goodput. The other values are those of the sending end's kernel.
package tcp

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"oneway.example/exporter/core/ctxtime"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/runreason"
	"oneway.example/exporter/core/unit"
	"oneway.example/exporter/estimate/tcpstate"
	"oneway.example/exporter/load/loadcontrol"
	"oneway.example/exporter/load/loadsession"
	"oneway.example/exporter/load/loadtest"
	"oneway.example/exporter/load/traffictypes/mixed"
	"oneway.example/exporter/load/traffictypes/tcptraffic"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/probe/report"
)

// Kind is the load test "tcp". Make it with NewKind.
type Kind struct {
	opts       Options
	directions int
}

// NewKind checks the options.
func NewKind(shared loadsession.Options, own Options) (*Kind, error) {
	if err := own.check(len(shared.Directions)); err != nil {
		return nil, err
	}
	return &Kind{own, len(shared.Directions)}, nil
}

// NewType makes the type for the registry.
func NewType() loadsession.Type[Options] {
	t := loadsession.NewType("tcp", DefaultOptions, NewKind)
	t.Doc = "Throughput of TCP, its round-trip time while it sends, retransmissions, and what limits the sender."
	t.Unused = loadsession.PacketKeys()
	t.Help, t.Results = help, Result{}
	return t
}

// Kind is "tcp".
func (*Kind) Kind() string { return "tcp" }

// Traffic is TCP transfers, with stamps after some UDP packets.
func (k *Kind) Traffic() loadsession.Traffic[*mixed.Session] {
	return mixed.Local{NoUDP: !k.opts.Stamps, Optional: true}
}

// Bytes is the limit of all directions, with the UDP packets.
func (k *Kind) Bytes(int64) int64 { return int64(k.directions) * k.opts.most() }

// Fit limits a run to what the token has left of its day.
func (*Kind) Fit(l loadcontrol.Limits, _ int) int64 { return l.LeftOfDay() }

// Duration is the time of sending.
func (k *Kind) Duration() time.Duration {
	all := time.Duration(k.directions) * k.opts.Duration
	if k.opts.Together || k.opts.OverlapDuration > 0 {
		all = k.opts.Duration
	}
	if k.opts.Stamps {
		all += udpTime
	}
	return all
}

// Perform performs one transfer in each direction. With stamps it first measures the round trip of UDP over the idle path;
// without a reply to UDP that evidence is absent.
func (k *Kind) Perform(ctx context.Context, s *mixed.Session, r *loadtest.Run) error {
	if !k.opts.Stamps {
		return k.perform(ctx, s.TCP, r, &Result{}, 0)
	}
	res := &Result{}
	if err := res.idle(ctx, s.UDP, s.TCP.Left()); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		r.Note(fmt.Sprintf("no round trip of UDP to compare with: %v", err))
	}
	return k.perform(ctx, s.TCP, r, res, udpBytes)
}

// perform performs the transfers of a run, which keep this many bytes of the session for others.
func (k *Kind) perform(ctx context.Context, s *tcptraffic.Session, r *loadtest.Run, res *Result, others int64) (err error) {
	p := &performing{k, s, r, make([]*tcptraffic.Result, len(r.Directions)), others}
	r.Body = res
	defer func() {
		measured, unmeasured := false, error(nil)
		checkClocks(p.results, s.Clocks())
		for _, t := range p.results {
			if t != nil {
				d := Evaluate(t, &k.opts, s.Remote().Addr().Is6())
				d.stamps(t, res.udpRoundTrip(), s.Clocks())
				if d.Delay != nil {
					s.RecordDelays(t.Plan.Direction, d.Delay.Begin, d.Delay.all)
				}
				res.Directions = append(res.Directions, d)
				if why := Unmeasured(t, p.tokenLimits(t.Plan.Most)); why != nil {
					r.Note(d.Direction + ": " + why.Error())
					unmeasured = cmp.Or(unmeasured, fmt.Errorf("tcp: %s: %w", d.Direction, why))
				}
				measured = measured || d.Throughput != nil
			}
		}
		judgeTogether(res.Directions)
		noteClocks(r, p.results, s.Clocks())
		for _, d := range res.Directions {
			r.Summary = append(r.Summary, d.summary()...)
			d.note(r)
			if d.Throughput != nil {
				loadsession.NoteTokenRate(r, s.Limits(), *d.Throughput)
			}
		}
		if k.opts.OverlapDuration > 0 {
			res.overlap(r, p.results, k.opts.Omit)
		}
		if err == nil && !measured {
			err = unmeasured
		}
	}()
	if k.opts.Together || k.opts.OverlapDuration > 0 {
		return p.both(ctx)
	}
	for i, d := range r.Directions {
		r.Phase(d.String())
		if err := p.transfer(ctx, i, p.left()/int64(len(r.Directions)-i)); err != nil {
			return err
		}
	}
	return nil
}

// performing is a run in progress, with the result of each direction; nil: it has none.
type performing struct {
	*Kind
	session *tcptraffic.Session
	run     *loadtest.Run
	results []*tcptraffic.Result
	others  int64
}

// left is what the session has left for the transfers.
func (p *performing) left() int64 { return p.session.Left() - p.others }

// permitted is what the options permit the transfer of one direction.
func (p *performing) permitted() int64 { return p.opts.most() - p.others }

// tokenLimits reports whether a transfer has this limit because the token has too little left of its day. Without a token's
// limit the second direction may have less than permitted as well: resent data of the first may exceed its limit.
func (p *performing) tokenLimits(most int64) bool {
	return most < p.permitted() && p.session.Limits().LeftOfDay() < p.Bytes(0)
}

// transfer performs the transfer of one direction.
func (p *performing) transfer(ctx context.Context, i int, most int64) (err error) {
	if most <= 0 {
		return &loadtest.Failure{Reason: runreason.DayLimit, Err: fmt.Errorf("the token has only %s left of its day: %s", unit.Bytes.Format(float64(p.session.Left())), loadcontrol.RaiseLimit("per-day"))}
	}
	plan := p.opts.plan(p.run.Directions[i], min(most, p.permitted()))
	if i > 0 && p.opts.OverlapDuration > 0 {
		plan.Duration = p.opts.OverlapDuration
	}
	t, err := p.session.Transfer(ctx, plan)
	p.results[i] = t
	if err == nil {
		if err = Failed(t); err != nil && t.NothingArrived() {
			err = fmt.Errorf("%w: choose a smaller mss_bytes", err)
		}
	}
	return err
}

// both performs all directions at the same time, or the second in the middle of the first. The first error ends both.
func (p *performing) both(ctx context.Context) error {
	p.run.Phase("both directions")
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	most := p.left() / int64(len(p.results))
	var transfers sync.WaitGroup
	for i := range p.results {
		transfers.Go(func() {
			if i > 0 && !ctxtime.Sleep(ctx, p.opts.OverlapStart) { // the plan of a two-way run
				return
			}
			if err := p.transfer(ctx, i, most); err != nil {
				cancel(err)
			}
		})
	}
	transfers.Wait()
	return context.Cause(ctx)
}

// Failed returns the error of a transfer that ended before its plan. One that reached its limit of bytes is complete,
// with a note.
func Failed(t *tcptraffic.Result) error {
	if t.Cut == "" || limited(t) {
		return nil
	}
	if t.NothingArrived() {
		return &loadtest.Failure{Reason: runreason.TooLarge, Err: fmt.Errorf("%s: cannot tell: %s", t.Plan.Direction, t.Cut)}
	}
	reason := runreason.Socket
	for _, f := range slices.Concat(t.Sender, t.Receiver) {
		if f.Ended == tcptraffic.EndedIdle || f.Ended == tcptraffic.EndedTime && t.Plan.Bytes > 0 {
			reason = runreason.Timeout
		}
	}
	return &loadtest.Failure{Reason: reason, Err: fmt.Errorf("tcp: %s: ended early: %s", t.Plan.Direction, t.Cut)}
}

// Unmeasured returns why a transfer that reached its limit of bytes has no throughput; nil: it has one. byToken: the limit
// is what the token has left of its day.
func Unmeasured(t *tcptraffic.Result, byToken bool) error {
	if t.Cut == "" || !limited(t) {
		return nil
	}
	took := ""
	if r, ok := tcpstate.Rate(arrivals(t), 0, 0); ok {
		if r.Seconds >= leastPartial.Seconds() {
			return nil
		}
		took = " in " + unit.Seconds.Format(r.Seconds)
	}
	var sent int64
	for i := range t.Sender {
		sent += t.Sender[i].Payload
	}
	limit, remedy := "the limit (max_bytes)", "raise max_bytes"
	if byToken {
		limit, remedy = "what the token has left of its day for this transfer", loadcontrol.RaiseLimit("per-day")
	}
	return &loadtest.Failure{Reason: runreason.NoResult, Err: fmt.Errorf("%s of %s, %s, was sent%s, and a throughput needs %s: %s",
		unit.Bytes.Format(float64(sent)), unit.Bytes.Format(float64(t.Plan.Most)), limit, took, unit.Duration(leastPartial), remedy)}
}

// limited reports whether a transfer ended at its limit of bytes.
func limited(t *tcptraffic.Result) bool {
	for i := range t.Sender {
		if t.Sender[i].Ended != tcptraffic.EndedLimit || t.Receiver[i].Ended != tcptraffic.EndedClosed {
			return false
		}
	}
	return true
}

// summary has the main values in a few lines.
func (d *Direction) summary() []probe.Result {
	line := func(quantity string, numbers ...report.Number) probe.Result {
		return probe.Result{Quantity: quantity, Direction: d.Direction, Numbers: numbers}
	}
	var lines []probe.Result
	if d.Throughput != nil {
		lines = append(lines, line("TCP throughput", report.Number{Value: d.Throughput, Unit: unit.BytesPerSecond}))
	}
	if d.LinkUsed != nil {
		lines = append(lines, line("of the link", report.Number{Value: d.LinkUsed, Unit: unit.Ratio}, report.Number{Label: "of", Value: d.LinkRate, Unit: unit.BytesPerSecond}))
	}
	if d.Fairness != nil {
		lines = append(lines, d.Fairness.summary(line)...)
	}
	if d.RTT != nil {
		lines = append(lines, line("RTT under load", report.Number{Value: &d.RTT[1], Range: &[2]float64{d.RTT[0], d.RTT[2]}, Unit: unit.Seconds}),
			line("min RTT", report.Number{Value: d.RTTMin, Unit: unit.Seconds}))
	}
	if d.Retransmitted != nil {
		lines = append(lines, line("retransmitted", report.Number{Value: d.Retransmitted, Unit: unit.Ratio}))
	}
	if d.Limit != "" {
		lines = append(lines, line("limited by", report.Number{Text: metric.Words(string(d.Limit))},
			report.Number{Value: new(d.Limited[d.Limit]), Unit: unit.Ratio, Text: "of the time"}))
	}
	if d.Models != nil && len(d.Models.Throughput) > 0 {
		var rates []report.Number
		for _, m := range tcpstate.Models() {
			if rate, ok := d.Models.Throughput[m.Name]; ok {
				rates = append(rates, report.Number{Label: m.Name, Value: &rate, Unit: unit.BytesPerSecond})
			}
		}
		lines = append(lines, line("models", rates...))
	}
	if d.RFC6349.TransferTime != nil {
		lines = append(lines, line("transfer time", report.Number{Value: d.RFC6349.TransferTime, Unit: unit.Index, Text: "of the ideal"}))
	}
	return append(lines, d.stampLines(line)...)
}

// note adds what may make the values doubtful.
func (d *Direction) note(r *loadtest.Run) {
	if d.Partial != "" {
		r.Note(fmt.Sprintf("%s: partial: %s", d.Direction, d.Partial))
	}
	if d.Partial != "" && d.Fairness != nil {
		r.Note(fmt.Sprintf("%s: fairness is that of the first %.3g s, in which all flows sent", d.Direction, d.Fairness.Seconds))
	}
	d.noteStamps(r)
	for _, f := range d.Flows[:1] { // all flows have the same sizes
		if f.SenderEnd != nil && f.SendBuffer.Clipped {
			r.Note(fmt.Sprintf("%s: the sending host limits the send buffer to %d of %d bytes (net.core.wmem_max)", d.Direction, f.SendBuffer.Effective/2, f.SendBuffer.Asked))
		}
		if f.ReceiverEnd != nil && f.ReceiveBuffer.Clipped {
			r.Note(fmt.Sprintf("%s: the receiving host limits the receive buffer to %d of %d bytes (net.core.rmem_max)", d.Direction, f.ReceiveBuffer.Effective/2, f.ReceiveBuffer.Asked))
		}
	}
}

// Publish sets the values of each direction.
func (*Kind) Publish(v *loadtest.Values, r *loadtest.Run) {
	res, ok := r.Body.(*Result)
	if !ok {
		return
	}
	for _, d := range res.Directions {
		for desc, value := range map[*metric.Desc]*float64{
			metric.TCPThroughput: d.Throughput, metric.TCPRTTMin: d.RTTMin, metric.TCPRetransmitted: d.Retransmitted,
			metric.TCPConnect: d.Connect, metric.TCPMarked: d.Marked, metric.TCPLinkRate: d.LinkRate,
		} {
			v.SetKnown(desc, value, d.Direction)
		}
		if d.Throughput != nil {
			v.Observe(metric.TCPRunThroughput, *d.Throughput, d.Direction)
		}
		if d.RTT != nil {
			for i, rank := range rttRanks() {
				v.Set(metric.TCPRTT, d.RTT[i], d.Direction, rank)
			}
		}
		for state, share := range d.Limited {
			v.Set(metric.TCPLimited, share, d.Direction, string(state))
		}
		if d.Models != nil {
			for model, rate := range d.Models.Throughput {
				v.Set(metric.TCPModel, rate, d.Direction, model)
			}
		}
		if d.Timeouts != nil {
			v.Add(metric.TCPTimeouts, float64(*d.Timeouts), d.Direction)
		}
		if d.Fairness != nil {
			d.Fairness.publish(v, d.Direction)
		}
		d.publishStamps(v)
	}
	v.SetKnown(metric.TCPUDPRoundTrip, res.UDPRoundTrip)
	if res.TwoWay != nil {
		res.TwoWay.publish(v)
	}
}

var _ loadsession.Kind[*mixed.Session] = (*Kind)(nil)
