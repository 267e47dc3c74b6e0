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

// Limits has the share of time of each limit; their sum is 1.
type Limits map[Limit]float64

// MainShare is the share of the time that the main limit exceeds.
const MainShare = 0.5

// Limited computes the shares of the time of all flows, from the last state of each: of the time with data to send, the
// rest after the receive window and the send buffer is the network's. The kernel counts in its ticks, which can be more than
// the time: the shares are of their sum then.
func Limited(last []State) (Limits, bool) {
	var total, busy, window, buffer time.Duration
	for _, s := range last {
		total += s.At
		busy, window, buffer = busy+min(s.Busy, s.At), window+s.RwndLimited, buffer+s.SndbufLimited
	}
	if total <= 0 {
		return nil, false
	}
	network, idle := max(0, busy-window-buffer), total-busy
	share := func(t time.Duration) float64 { return float64(t) / float64(window+buffer+network+idle) }
	return Limits{LimitReceiver: share(window), LimitSendBuffer: share(buffer), LimitNetwork: share(network), LimitApplication: share(idle)}, true
}

// Main returns the limit of more than MainShare of the time; empty: none has it.
func (l Limits) Main() Limit {
	for limit, share := range l {
		if share > MainShare {
			return limit
		}
	}
	return ""
}
