package tcpstate

import "time"

// Limit is what kept a sender from sending more.
type Limit string

// The limits.
const (
	LimitNetwork     Limit = "network"        // the congestion window, or the pacing
	LimitReceiver    Limit = "receive_window" // the receiver's buffer
	LimitSendBuffer  Limit = "send_buffer"
	LimitApplication Limit = "application" // nothing to send
)

// Limits has the share of time of each limit.
type Limits map[Limit]float64

// Limited computes the shares of the time of all flows, from the last state of each: of the time with data to send, the
// rest after the receive window and the send buffer is the network's. The kernel counts in its ticks, so that the sum can
// differ from 1.
func Limited(last []State) (Limits, bool) {
	var total, busy, window, buffer time.Duration
	for _, s := range last {
		total += s.At
		busy, window, buffer = busy+min(s.Busy, s.At), window+s.RwndLimited, buffer+s.SndbufLimited
	}
	if total <= 0 {
		return nil, false
	}
	share := func(t time.Duration) float64 { return float64(max(0, t)) / float64(total) }
	return Limits{
		LimitReceiver: share(window), LimitSendBuffer: share(buffer), LimitNetwork: share(busy - window - buffer), LimitApplication: share(total - busy),
	}, true
}

// Main returns the limit of more than half of the time; empty: none has it.
func (l Limits) Main() Limit {
	sum := 0.0
	for _, share := range l {
		sum += share
	}
	for limit, share := range l {
		if 2*share > sum {
			return limit
		}
	}
	return ""
}
