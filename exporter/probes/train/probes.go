package train

import (
	"context"
	"fmt"
	"time"

	"oneway.example/exporter/heavy"
	"oneway.example/exporter/sample"
	"oneway.example/exporter/stream"
)

// A size is asked for with so many single packets (MAX_PROBES of RFC 8899 section 5.1.2),
// each followed by a small one: a witness that the path is up, without whose arrival a lost
// probe says nothing about its size.
const (
	probes       = 3
	witnessBytes = 128
	probeSpace   = 20 * time.Millisecond
)

// ask sends the probes of one size and says what became of them.
func ask(ctx context.Context, s *heavy.Session, d sample.Direction, ipBytes int, p *patience) (answer, error) {
	var segments []stream.Segment
	for range probes {
		for _, size := range []int{ipBytes, witnessBytes} {
			payload := size - s.Overhead()
			segments = append(segments, stream.Segment{
				PayloadBytes: payload, Interval: max(probeSpace, leastTime(payload, s.Limits().BytesPerSecond)), Burst: 1, Bursts: 1,
			})
		}
	}
	t, err := s.TransferWithin(ctx, d, s.Plan(segments...), p.idle(leastIdleProbes), nil)
	if err != nil {
		return unclear, fmt.Errorf("train: path MTU: %d octets: %w", ipBytes, err)
	}
	p.learn(t)
	return answerOf(t), nil
}

// leastTime is how long so many octets of UDP payload must take at a limit in octets a
// second, 0: none.
func leastTime(payload int, limit float64) time.Duration {
	if limit <= 0 {
		return 0
	}
	return time.Duration(float64(payload)/limit*1e9) + time.Microsecond
}

// answerOf judges a transfer of ask.
func answerOf(t *heavy.Transfer) answer {
	tried, refused, arrived, witnesses := 0, 0, 0, 0
	for i := range t.Packets {
		p := &t.Packets[i]
		switch probe := p.Segment%2 == 0; {
		case !probe && p.Copies > 0:
			witnesses++
		case !probe:
		case !p.Sent.Present():
			tried, refused = tried+1, refused+1
		default:
			tried++
			arrived += min(1, int(p.Copies))
		}
	}
	switch {
	case arrived > 0:
		return passed
	case tried == probes && (refused == probes || witnesses > probes/2):
		return tooLarge
	}
	return unclear
}

// pathMTU searches for the MTU of one direction; 0: it was not found.
func pathMTU(ctx context.Context, s *heavy.Session, d sample.Direction, top int, p *patience) (int, error) {
	search := newMTUSearch(isIPv6(s), top)
	for size, ok := search.next(); ok; size, ok = search.next() {
		a, err := ask(ctx, s, d, size, p)
		if err != nil {
			return 0, err
		}
		search.observe(size, a)
	}
	mtu, ok := search.found()
	if !ok {
		return 0, nil
	}
	return mtu, nil
}

// isIPv6 tells the session's family by the headers of its packets.
func isIPv6(s *heavy.Session) bool { return s.Overhead() > 28 }
