package stamp

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"oneway.example/exporter/core/errtext"
	"oneway.example/exporter/core/lightreason"
	"oneway.example/exporter/core/unit"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/probes/stamp/ledger"
)

// onceInterval is the default interval between test packets of single measurements.
const onceInterval = 200 * time.Millisecond

// Longest times of the queries before the packets, and of those for the final counts.
const (
	openingTime = ledger.OpenTries * ledger.StatsQueryInterval
	closingTime = 2 * ledger.StatsQueryInterval
)

// OnceDoc returns what a single measurement differs in.
func (*Type) OnceDoc() string {
	return fmt.Sprintf("The default of {interval} is %v. A measurement takes up to %s, {count} times {interval}, and two times {loss_timeout}, in which a packet without reply is decided.",
		onceInterval, unit.Duration(openingTime+closingTime))
}

// NewOnce makes a prober with a socket of its own for one measurement.
func (t *Type) NewOnce(env probe.Env, path probe.Target, decode func(...any) error) (probe.Once, error) {
	o := DefaultOptions()
	o.Interval = onceInterval
	if err := decode(&o); err != nil {
		return nil, err
	}
	own := NewType()
	own.openCard = t.openCard
	p, err := own.NewProber(env, path, o)
	if err != nil {
		return nil, err
	}
	return once{p}, nil
}

// once is a Prober that measures once.
type once struct{ *Prober }

// Fits reports whether the peer's address is of the family of the options.
func (o once) Fits(peer netip.Addr) bool { return o.opts.Fits(peer) }

// Longest is the time of the opening queries, of the packets and of settling.
func (o once) Longest(count uint64) time.Duration {
	return openingTime + time.Duration(count)*o.opts.Interval + o.settling()
}

// settling is the time in which the last packet is decided, since a reply of twice the loss timeout is not lost but late, and
// the remote end reports its final counts.
func (o once) settling() time.Duration { return 2*o.opts.LossTimeout + closingTime }

// Measure sends count packets, fewer if a Poisson schedule leaves no time to settle before the end of ctx.
func (o once) Measure(ctx context.Context, count uint64) (probe.Outcome, error) {
	sending := ctx
	if deadline, ok := ctx.Deadline(); ok {
		var end context.CancelFunc
		sending, end = context.WithDeadline(ctx, deadline.Add(-o.settling()))
		defer end()
	}
	v, err := o.measure(sending, ctx, count, seriesOf(o.env.Scope(o.path)), func(Report) {})
	if err != nil {
		return probe.Outcome{}, err
	}
	out := probe.Outcome{Received: v.RoundTripsReceived, Lost: v.RoundTripsLost}
	if out.Received == 0 {
		out.Failure, out.Detail = v.failure()
	}
	return out, nil
}

// failure is why no reply was received.
func (v *snapshot) failure() (why lightreason.Reason, sentence string) {
	switch why = v.failureReason(); {
	case why != lightreason.NotSent:
		return why, v.silence()
	case v.peerError != nil:
		return why, errtext.Words(v.peerError)
	}
	return why, "no packet was sent in time"
}

// failureReason is failure in one word.
func (v *snapshot) failureReason() lightreason.Reason {
	switch sent := v.directions[0].Sent; {
	case sent.Value == 0:
		return lightreason.NotSent
	case v.peerError != nil:
		return lightreason.Unreachable
	case v.refused.Known:
		return lightreason.Discarded
	}
	return lightreason.NoReply
}

var _ probe.OnDemand = (*Type)(nil)
