// Package message is the probe that sends messages of one size at one rate over UDP, over TCP with Nagle's algorithm, and over
// TCP without it, one after the other in each direction (D-ITG report section 2.2): what each delivers, what it costs in
// packets, and what is lost or sent again.
//
// UDP sends each message at its time in one packet. TCP writes it at its time; a socket that cannot take it holds back the
// later ones, so that less is offered. Nagle's algorithm holds small segments back while another is not acknowledged, and
// joins them (RFC 9293 section 3.7.4): fewer packets than messages. All share one session, and so the link.
package message

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"oneway.example/exporter/core/errtext"
	"oneway.example/exporter/core/runreason"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/load/loadcontrol"
	"oneway.example/exporter/load/loadsession"
	"oneway.example/exporter/load/loadtest"
	"oneway.example/exporter/load/traffictypes/mixed"
	"oneway.example/exporter/probe/report"
)

// Kind is the load test "message". Make it with NewKind.
type Kind struct {
	opts       Options
	directions int
}

// NewKind checks the options.
func NewKind(shared loadsession.Options, own Options) (*Kind, error) {
	if err := own.check(); err != nil {
		return nil, err
	}
	return &Kind{own, len(shared.Directions)}, nil
}

// NewType makes the type for the registry.
func NewType() loadsession.Type[Options] {
	t := loadsession.NewType("message", DefaultOptions, NewKind)
	t.Help, t.Results, t.Families = help, Result{}, families()
	t.Doc = "Messages of one size at one rate over UDP, TCP with Nagle's algorithm, and TCP without it, one after the other."
	return t
}

// Kind is "message".
func (*Kind) Kind() string { return "message" }

// Traffic is UDP streams and TCP transfers.
func (*Kind) Traffic() loadsession.Traffic[*mixed.Session] { return mixed.Local{} }

// Bytes is the limit of all directions and transports.
func (k *Kind) Bytes(int64) int64 { return int64(k.directions) * k.opts.most() }

// Duration is the time of all of them.
func (k *Kind) Duration() time.Duration {
	return time.Duration(k.directions*len(transports())) * k.opts.Duration
}

// Transport is how messages are sent: a value of the label transport.
type Transport string

// The transports.
const (
	UDP        Transport = "udp"
	TCP        Transport = "tcp"
	TCPNoDelay Transport = "tcp_no_delay"
)

func transports() []Transport { return []Transport{UDP, TCP, TCPNoDelay} }

// Perform measures all transports in each direction.
func (k *Kind) Perform(ctx context.Context, s *mixed.Session, r *loadtest.Run) error {
	res := &Result{MessageBytes: int(k.opts.MessageBytes), MessageRate: float64(k.opts.MessageRate), Duration: report.Seconds(k.opts.Duration)}
	r.Body = res
	defer res.conclude(r)
	loadsession.NoteTokenRate(r, s.UDP.Limits(), float64(k.opts.MessageRate)*float64(k.opts.MessageBytes))
	complete := 0
	var failed error
	for _, d := range r.Directions {
		for _, name := range transports() {
			r.Phase(fmt.Sprintf("%v: %s", d, name.Words()))
			r.Share(float64(len(res.Parts)) / float64(len(r.Directions)*len(transports())))
			one, err := k.measure(ctx, s, d, name)
			if err == nil && one.Partial == "" {
				complete++
			}
			if err != nil {
				failed = fmt.Errorf("message: %v, %s: %w", d, name.Words(), err)
				one.Partial = errtext.Words(err)
			} else if one.Partial != "" {
				failed = cmp.Or(failed, error(&loadtest.Failure{Reason: runreason.Timeout, Err: fmt.Errorf("message: %v, %s: ended early: %s", d, name.Words(), one.Partial)}))
			}
			one.Direction, one.Transport = d.String(), name
			res.Parts = append(res.Parts, one)
			if err != nil && (!single(err) || ctx.Err() != nil) {
				return failed
			}
		}
	}
	if f, ok := errors.AsType[*loadtest.Failure](failed); complete == 0 || ok && f.Reason == runreason.TooLarge {
		return failed
	}
	return nil
}

// single reports whether an error concerns one transfer only, and not the session.
func single(err error) bool {
	if refusal, ok := errors.AsType[*loadcontrol.Refusal](err); ok {
		return refusal.ID != 0
	}
	f, ok := errors.AsType[*loadtest.Failure](err)
	return ok && (f.Reason == runreason.Socket || f.Reason == runreason.TooLarge)
}

// measure measures one transport in one direction.
func (k *Kind) measure(ctx context.Context, s *mixed.Session, d sample.Direction, by Transport) (Part, error) {
	if by == UDP {
		x, err := s.UDP.Transfer(ctx, d, s.UDP.Plan(k.opts.segment()), nil)
		if x == nil {
			return Part{}, err
		}
		if large := x.Oversized("message_bytes", s.UDP.Overhead()); err == nil && large != nil {
			return Part{}, large
		}
		return k.ofUDP(x), err
	}
	x, err := s.TCP.Transfer(ctx, k.opts.plan(d, by == TCPNoDelay))
	if x == nil {
		return Part{}, err
	}
	return k.ofTCP(x, s.TCP.Remote().Addr().Is6()), err
}

// Publish sets the values of the parts that are complete.
func (k *Kind) Publish(v *loadtest.Values, r *loadtest.Run) {
	res, ok := r.Body.(*Result)
	if !ok {
		return
	}
	for _, p := range res.Parts {
		if p.Partial != "" || p.Throughput == nil {
			continue
		}
		labels := []string{p.Direction, strconv.Itoa(res.MessageBytes), string(p.Transport)}
		v.Set(ThroughputDesc, *p.Throughput, labels...)
		v.SetKnown(OfferedDesc, p.Offered, labels...)
		v.SetKnown(LossDesc, p.Loss, labels...)
		v.SetKnown(RetransmittedDesc, p.Retransmitted, labels...)
	}
}

var _ loadsession.Kind[*mixed.Session] = (*Kind)(nil)
