package control

import (
	"testing"
	"time"

	"oneway.example/exporter/sample"
	"oneway.example/exporter/stream"
)

func TestPatienceLastsFromTheLastOctet(t *testing.T) {
	at := func(d time.Duration) time.Time { return time.Unix(0, 0).Add(d) }
	const s, quiet, idle = 900 * time.Millisecond, 10 * time.Second, 15 * time.Second
	const rarer = time.Second // so much later come pings under load
	busy := load{idle: idle, every: PingEvery + rarer}
	for _, c := range []struct {
		name     string
		do       func(p *patience)
		want     time.Duration
		dripping bool
	}{
		{"nothing said", func(*patience) {}, quiet, false},
		{"heard", func(p *patience) { p.hear(at(time.Second)) }, time.Second + quiet, false},
		{"a transfer under way", func(p *patience) { p.begin(1, busy) }, s + idle + rarer, false},
		{"two transfers: the longer", func(p *patience) { p.begin(1, busy); p.begin(2, load{idle: time.Second}) }, s + idle + rarer, false},
		{"a short one that this end sends", func(p *patience) {
			p.begin(1, load{idle: time.Second, sends: at(time.Minute)})
		}, s + time.Second, false},
		{"a short one that this end has sent", func(p *patience) {
			p.begin(1, load{idle: time.Second, sends: at(-time.Second)})
		}, quiet, false},
		{"refused", func(p *patience) { p.begin(1, busy); p.drop(1) }, quiet, false},
		{"an end without a beginning", func(p *patience) { p.end(7, at(time.Second)) }, quiet, false},
		{"ended, last heard before", func(p *patience) {
			p.begin(1, busy)
			p.hear(at(time.Second))
			p.end(1, at(3*time.Second))
		}, time.Second + idle + s, false},
		{"ended, heard long after", func(p *patience) {
			p.begin(1, busy)
			p.end(1, at(time.Second))
			p.hear(at(5 * time.Second))
		}, time.Second + idle + s, false},
		{"ended and the tail over", func(p *patience) {
			p.begin(1, busy)
			p.end(1, at(time.Second))
			p.hear(at(20 * time.Second))
		}, 20*time.Second + quiet, false},
		{"ended, and a question from before answered", func(p *patience) {
			p.begin(1, busy)
			before := p.ask()
			p.end(1, at(0))
			p.answer(before)
		}, idle + s, false},
		{"ended, and a question from after answered", func(p *patience) {
			p.begin(1, busy)
			p.ask()
			p.end(1, at(0))
			p.answer(p.ask())
		}, quiet, false},
		{"one ended, the next under way and shorter", func(p *patience) {
			p.begin(1, busy)
			p.end(1, at(0))
			p.begin(2, load{idle: time.Second})
		}, idle + s, false},
		{"a frame under way", func(p *patience) {
			p.frame = at(time.Second)
			p.hear(at(time.Minute))
		}, time.Second + frameTime + quiet, true},
		{"a frame under way, and silence sooner", func(p *patience) { p.frame = at(0) }, quiet, false},
	} {
		p := newPatience(at(0))
		c.do(&p)
		if got, dripping := p.deadline(at(0)); !got.Equal(at(c.want)) || dripping != c.dripping {
			t.Errorf("%s: given up at %v (dripping %v), want %v (%v)", c.name, got.Sub(at(0)), dripping, c.want, c.dripping)
		}
	}
}

func TestPatienceAsksOnceAfterALoad(t *testing.T) {
	p := newPatience(time.Unix(0, 0))
	if p.wants() {
		t.Error("it wants to ask before any load")
	}
	p.begin(1, load{idle: time.Second})
	p.end(1, time.Unix(1, 0))
	if !p.wants() {
		t.Error("it does not want to ask after a load")
	}
	seq := p.ask()
	if p.wants() {
		t.Error("it wants to ask twice")
	}
	if !p.answer(seq) || p.wants() {
		t.Error("it wants to ask after the answer")
	}
}

func TestPatienceTakesNoAnswerToNoQuestion(t *testing.T) {
	p := newPatience(time.Unix(0, 0))
	p.ask()
	p.ask()
	for _, c := range []struct {
		seq  uint64
		want bool
	}{{3, false}, {0, false}, {2, true}, {1, false}, {2, true}} {
		if got := p.answer(c.seq); got != c.want {
			t.Errorf("answer to %d: %v, want %v", c.seq, got, c.want)
		}
	}
}

func TestLoadIsBorneByDirectionAndPingedByRate(t *testing.T) {
	fast := stream.Segment{PayloadBytes: 1382, Interval: 2 * time.Millisecond, Burst: 1, Bursts: 1000}
	slow := stream.Segment{PayloadBytes: 1382, Interval: 40 * time.Millisecond, Burst: 1, Bursts: 50}
	train := stream.Segment{PayloadBytes: 1472, Burst: 25, Bursts: 1}
	for name, c := range map[string]struct {
		transfer Transfer
		want     load
	}{
		"forward, fast": {
			Transfer{Direction: sample.Forward, Idle: 5 * time.Second, Plan: stream.Plan{Segments: []stream.Segment{fast}}},
			load{idle: 15 * time.Second, every: PingEvery},
		},
		"reverse, slow": {
			Transfer{Direction: sample.Reverse, Idle: 8 * time.Second, Plan: stream.Plan{Segments: []stream.Segment{slow}}},
			load{idle: 8 * time.Second, every: 1736 * time.Millisecond},
		},
		"slow, and an Idle that is short": {
			Transfer{Direction: sample.Reverse, Idle: 2 * time.Second, Plan: stream.Plan{Segments: []stream.Segment{slow}}},
			load{idle: 2 * time.Second, every: 500 * time.Millisecond},
		},
		"a train": {
			Transfer{Direction: sample.Reverse, Idle: 5 * time.Second, Plan: stream.Plan{Segments: []stream.Segment{train}}},
			load{idle: 5 * time.Second, every: PingEvery},
		},
		"an Idle beyond the limit": {
			Transfer{Direction: sample.Reverse, Idle: time.Hour, Plan: stream.Plan{Segments: []stream.Segment{fast}}},
			load{idle: MaxIdle, every: PingEvery},
		},
	} {
		got := loadOf(&c.transfer)
		if got.every = got.every.Truncate(time.Millisecond); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

func TestClientSendsUntilItsStreamIsOver(t *testing.T) {
	at := func(d time.Duration) time.Time { return time.Unix(0, 0).Add(d) }
	p := newPatience(at(0))
	p.begin(1, load{sends: at(2 * time.Second)})
	p.begin(2, load{})
	for after, want := range map[time.Duration]bool{0: true, time.Second: true, 2 * time.Second: false} {
		if got := p.sending(at(after)); got != want {
			t.Errorf("after %v: sending %v; want %v", after, got, want)
		}
	}
	p.end(1, at(time.Second))
	if p.sending(at(time.Second)) {
		t.Error("sending what has ended")
	}
}
