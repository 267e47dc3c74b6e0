package pathstate

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"oneway.example/tests/testseed"
)

// path is a simulated path of one packet a second.
type path struct {
	Facts
	judge Judge
	now   time.Duration
	// said are the reasons that were said, each once in a row.
	said []Reason
	// tested: a load test fills its link.
	tested bool
}

func newPath() *path {
	return &path{Facts: Facts{Decided: true, Replies: true, Measured: true, Session: 1, Interval: time.Second, MaxLoss: 0.01, Ways: [2]Way{{LossKnown: true}, {LossKnown: true}}}}
}

// second passes one second, in which change changes the facts.
func (p *path) second(change func(p *path)) Reason {
	p.now += time.Second
	change(p)
	why := p.judge.Decide(p.now, &p.Facts, p.tested)
	if n := len(p.said); n == 0 || p.said[n-1] != why {
		p.said = append(p.said, why)
	}
	return why
}

// seconds passes n seconds.
func (p *path) seconds(n int, change func(p *path)) Reason {
	for range n {
		p.second(change)
	}
	return p.judge.Reason()
}

// Each is a second in which a packet has one outcome.
func reply(p *path) {
	p.Replies, p.Answered = true, p.Answered+1
	for i := range p.Ways {
		p.Ways[i].Received++
		p.Ways[i].Delays++
	}
}

func loseForward(p *path) { p.Unanswered, p.Ways[0].Lost = p.Unanswered+1, p.Ways[0].Lost+1 }

func loseReverse(p *path) {
	p.Unanswered++
	p.Ways[0].Received++
	p.Ways[1].Lost++
}

func loseSomewhere(p *path) { p.Unanswered++ }

// silence is a second of an outage that lasts.
func silence(p *path) { p.Replies, p.Silence, p.Unanswered = false, NoReply, p.Unanswered+1 }

// mixed is a reply, except in each n-th second.
func mixed(n int, other func(*path)) func(*path) {
	at := 0
	return func(p *path) {
		if at++; at%n == 0 {
			other(p)
			return
		}
		reply(p)
	}
}

// slowly is a delay that is, or may be, above the limit in a direction.
func slowly(way int, certain bool) func(*path) {
	return func(p *path) {
		reply(p)
		if certain {
			p.Ways[way].Slow++
		} else {
			p.Ways[way].MaybeSlow++
		}
	}
}

// undelayed is a reply whose delays have no valid bound.
func undelayed(why Reason) func(*path) {
	return func(p *path) {
		reply(p)
		for i := range p.Ways {
			p.Ways[i].Unbounded++
			p.Ways[i].Why = why
		}
	}
}

func TestSituations(t *testing.T) {
	const hour = 3600
	for name, c := range map[string]struct {
		play func(p *path)
		want []Reason
	}{
		"no reply from the start": {func(p *path) {
			p.Decided, p.Replies, p.Measured = false, false, false
			p.seconds(5, func(p *path) { p.Silence = NoReply })
			p.Decided = true
			p.seconds(hour, silence)
		}, []Reason{NoData, NoReply}},
		"a first window": {func(p *path) {
			p.Measured = false
			p.seconds(10, reply)
			p.Measured = true
			p.seconds(10, reply)
		}, []Reason{NoData, None}},
		"died and returned": {func(p *path) {
			p.seconds(hour, reply)
			p.seconds(60, silence)
			p.seconds(hour, reply)
		}, []Reason{None, NoReply, Loss, None}},
		"all lost forward only": {func(p *path) {
			p.seconds(hour, reply)
			p.seconds(600, func(p *path) { silence(p); p.Ways[0].Lost++ })
		}, []Reason{None, NoReply}},
		"a lost packet, and another one": {func(p *path) {
			p.seconds(hour, mixed(1700, loseForward))
		}, []Reason{None}},
		"3 % of few packets": {func(p *path) {
			p.seconds(100, mixed(32, loseForward))
		}, []Reason{None, FewPackets}},
		"3 % of many packets forward": {func(p *path) {
			p.seconds(hour, mixed(33, loseForward))
		}, []Reason{None, FewPackets, LossForward}},
		"3 % of many packets reverse": {func(p *path) {
			p.seconds(hour, mixed(33, loseReverse))
		}, []Reason{None, FewPackets, LossReverse}},
		"3 % of many packets of a reflector that does not tell where": {func(p *path) {
			p.Ways = [2]Way{}
			p.seconds(hour, mixed(33, loseSomewhere))
		}, []Reason{None, FewPackets, Loss}},
		"0.7 % of each direction": {func(p *path) {
			n := 0
			p.seconds(3*hour, func(p *path) {
				switch n++; n % 142 {
				case 70:
					loseForward(p)
				case 141:
					loseReverse(p)
				default:
					reply(p)
				}
			})
		}, []Reason{None, FewPackets, Loss}},
		"packets that the receiving host dropped": {func(p *path) {
			p.seconds(hour, mixed(20, func(p *path) { p.Unanswered++; p.Ways[1].Dropped++; p.Ways[0].Received++ }))
		}, []Reason{None}},
		"one packet in 10 s, a tenth lost": {func(p *path) {
			p.Interval = 10 * time.Second
			n := 0
			p.seconds(2*hour, func(p *path) {
				switch n++; {
				case n%100 == 0:
					loseForward(p)
				case n%10 == 0:
					reply(p)
				}
			})
		}, []Reason{NoData, None, LossForward}},
		"a clock whose bound is wider than the delay": {func(p *path) {
			p.seconds(hour, slowly(0, false))
		}, []Reason{None, BoundTooWide}},
		"delays above the limit": {func(p *path) {
			p.seconds(hour, mixed(8, slowly(1, true)))
		}, []Reason{None, FewPackets, DelayReverse}},
		"3 % of delays above the limit": {func(p *path) {
			p.seconds(2*hour, mixed(33, slowly(1, true)))
		}, []Reason{None, FewPackets, None}},
		"this host's clock": {func(p *path) {
			p.seconds(hour, reply)
			p.seconds(hour, undelayed(LocalClock))
			p.seconds(hour, reply)
		}, []Reason{None, LocalClock, None}},
		"no clock, by the configuration": {func(p *path) {
			p.Clockless = true
			p.seconds(hour, undelayed(LocalClock))
		}, []Reason{None}},
		"a clock that is proved wrong": {func(p *path) {
			p.seconds(hour, reply)
			p.ClockWrong = true
			p.seconds(300, reply)
			p.ClockWrong = false
			p.seconds(hour, reply)
		}, []Reason{None, ClockWrong, None}},
		"an impossible path_minimum": {func(p *path) {
			p.MinimumWrong = true
			p.seconds(hour, reply)
		}, []Reason{PathMinimum}},
		"a restart of the reflector": {func(p *path) {
			p.seconds(hour, reply)
			p.seconds(4, func(p *path) { p.Unanswered++; p.Ways[0].Undecided++ })
			p.seconds(hour, reply)
		}, []Reason{None, FewPackets, None}},
		"a pause of this host of 4 minutes": {func(p *path) {
			p.seconds(hour, reply)
			p.now += 4 * time.Minute
			p.seconds(hour, reply)
		}, []Reason{None}},
		"a suspended host": {func(p *path) {
			p.seconds(hour, reply)
			p.now += time.Hour
			p.seconds(1, func(*path) {})
			p.seconds(hour, reply)
		}, []Reason{None, NoData, None}},
		"another address": {func(p *path) {
			p.seconds(hour, mixed(1700, loseForward))
			p.Session, p.Answered, p.Unanswered, p.Ways = 2, 0, 0, [2]Way{{LossKnown: true}, {LossKnown: true}}
			p.Decided = false
			p.seconds(4, func(*path) {})
			p.Decided = true
			p.seconds(hour, reply)
		}, []Reason{None}},
		"a short load test": {func(p *path) {
			p.seconds(hour, reply)
			p.tested = true
			p.seconds(60, mixed(2, loseForward))
			p.tested = false
			p.seconds(5, mixed(2, loseForward))
			p.seconds(hour, reply)
		}, []Reason{None}},
		"a long load test": {func(p *path) {
			p.seconds(hour, reply)
			p.tested = true
			p.seconds(900, mixed(2, loseForward))
			p.tested = false
			p.seconds(hour, reply)
		}, []Reason{None, LoadTest, None}},
		"a path that dies beside a load test": {func(p *path) {
			p.seconds(hour, reply)
			p.tested = true
			p.seconds(60, silence)
		}, []Reason{None, NoReply}},
		"a cause that comes and goes": {func(p *path) {
			n := 0
			p.seconds(hour, func(p *path) {
				silence(p)
				if n++; n%60 >= 30 {
					p.Silence = Unreachable
				}
			})
		}, []Reason{NoReply}},
		"another cause": {func(p *path) {
			p.seconds(hour, silence)
			p.seconds(hour, func(p *path) { silence(p); p.Silence = Unresolved })
		}, []Reason{NoReply, Unresolved}},
		"both directions": {func(p *path) {
			p.seconds(hour, slowly(1, true))
			p.seconds(hour, func(p *path) { slowly(1, true)(p); p.Ways[0].Slow++ })
		}, []Reason{None, DelayReverse}},
		"a probe that fails and begins again": {func(p *path) {
			p.seconds(hour, reply)
			p.NotRunning = true
			p.seconds(10, func(*path) {})
			p.NotRunning, p.Session, p.Answered, p.Ways = false, 2, 0, [2]Way{}
			p.seconds(hour, reply)
		}, []Reason{None, NotRunning, None}},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPath()
			c.play(p)
			if !slices.Equal(p.said, c.want) {
				t.Errorf("said %v, want %v", p.said, c.want)
			}
		})
	}
}

// TestBetterStateIsSaidAfterAMinute, and a worse one at once.
func TestBetterStateIsSaidAfterAMinute(t *testing.T) {
	p := newPath()
	p.seconds(600, reply)
	if why := p.second(func(p *path) { reply(p); p.ClockWrong = true }); why != ClockWrong {
		t.Errorf("%v, want %v at once", why, ClockWrong)
	}
	p.ClockWrong = false
	if why := p.seconds(int(Hold.Seconds()), reply); why != ClockWrong {
		t.Errorf("%v after %v, want %v", why, Hold, ClockWrong)
	}
	if why := p.second(reply); why != None {
		t.Errorf("%v, want %v", why, None)
	}
}

// TestAlertOfLossFiresOnNoPathThatIsUp: OnewayLossHigh and OnewayRoundTripLoss need a ratio of 5 minutes and one of an hour above the
// limit, and more than two lost packets. Without randomness of the verdict no seed may fail.
func TestAlertOfLossFiresOnNoPathThatIsUp(t *testing.T) {
	rng, fired := rand.New(rand.NewPCG(testseed.Of(t), 32)), 0
	for range 20 {
		p, lost, ratio := newPath(), []bool{}, []float64{0.002, 0.01, 0.03, 0.1}[rng.IntN(4)]
		burst := 1 + rng.IntN(5)
		for at := range 3 * 3600 {
			is := rng.Float64() < ratio/float64(burst) || at > 0 && lost[at-1] && rng.IntN(burst) > 0
			lost = append(lost, is)
			why := p.second(map[bool]func(*path){true: loseForward, false: reply}[is])
			short, long := count(lost, 300), count(lost, 3600)
			if at < 300 || short*100 <= min(300, at+1) || long*100 <= min(3600, at+1) || long <= FewFaults {
				continue
			}
			if fired++; why == None {
				t.Fatalf("%d of 300 and %d of %d packets are lost, and the path is up", short, long, min(3600, at+1))
			}
		}
	}
	if fired == 0 {
		t.Error("no alert")
	}
}

// count is how many of the last n are true.
func count(all []bool, n int) (k int) {
	for _, is := range all[max(0, len(all)-n):] {
		if is {
			k++
		}
	}
	return k
}

// TestStateIsRarelyWrong: of paths with independent losses far from the limit. A wrong state within 5.5 minutes needs a binomial count
// outside of its 95 % interval; of 40 paths of 3 hours the share of the time is far below 2.5 %, and fails for less than one seed in a
// million at 5 %.
func TestStateIsRarelyWrong(t *testing.T) {
	for _, c := range []struct {
		ratio float64
		wrong State
	}{{0.001, Degraded}, {0.003, Degraded}, {0.05, Up}} {
		wrong, all := 0, 0
		rng := rand.New(rand.NewPCG(32, uint64(c.ratio*1e6)))
		for range 40 {
			p := newPath()
			p.seconds(900, mixed(int(1/c.ratio), loseForward))
			for range 3 * 3600 {
				why := p.second(map[bool]func(*path){true: loseForward, false: reply}[rng.Float64() < c.ratio])
				if all++; why.State() == c.wrong {
					wrong++
				}
			}
		}
		if share := float64(wrong) / float64(all); share > 0.05 {
			t.Errorf("loss of %v: %v for %.3f of the time", c.ratio, c.wrong, share)
		} else {
			t.Logf("loss of %v: %v for %.5f of the time", c.ratio, c.wrong, share)
		}
	}
}

func TestDecisionAllocatesNothing(t *testing.T) {
	p := newPath()
	p.seconds(600, mixed(33, loseForward))
	if n := testing.AllocsPerRun(100, func() {
		p.now += time.Second
		reply(p)
		p.judge.Decide(p.now, &p.Facts, false)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkDecision(b *testing.B) {
	p := newPath()
	p.seconds(600, mixed(33, loseForward))
	for b.Loop() {
		p.now += time.Second
		reply(p)
		p.judge.Decide(p.now, &p.Facts, false)
	}
}
